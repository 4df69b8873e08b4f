"""Slides made up for tests: tissue-like pixels, and TIFF files of several makers' kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from iac_query.adapters.wsi import WsiImageReader, build_wsi_image_package
from PIL import ImageCms

from iac_query import Codec

#: 0.5 micrometres a pixel.
RESOLUTION = {"resolution": (20000, 20000), "resolutionunit": "CENTIMETER"}
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def tissue(width: int, height: int, channels: int = 3, dtype: Any = np.uint8) -> np.ndarray:
    """A bright slide with a coloured, noisy ellipse: (height, width[, channels])."""
    random = np.random.default_rng(width * 1000 + height)
    y, x = np.mgrid[:height, :width]
    inside = ((x / width - 0.4) / 0.35) ** 2 + ((y / height - 0.5) / 0.45) ** 2 < 1
    pixels = np.full((height, width, 3), 243.0)
    waves = np.stack([160 + 20 * np.sin(x / 9), 60 + 20 * np.cos(y / 7), 170 + 20 * np.sin(y / 5)])
    pixels[inside] = (waves.transpose(1, 2, 0) + random.normal(0, 2, pixels.shape))[inside]
    pixels = pixels.clip(0, 255)
    if dtype == np.uint16:
        pixels = pixels * 257
    pixels = pixels.astype(dtype)
    return pixels if channels == 3 else pixels[:, :, 0]


def write_tiff(path: Path, pixels: Any, **options: Any) -> Path:
    """A TIFF slide of half a micrometre a pixel."""
    photometric = "minisblack" if pixels.ndim == 2 else "rgb"
    tifffile.imwrite(path, pixels, **{"photometric": photometric, **RESOLUTION, **options})
    return path


def write_svs(path: Path, pixels: np.ndarray, **options: Any) -> Path:
    """A file as Aperio's scanners write it: raster, thumbnail, coarser raster, label, macro."""
    height, width = pixels.shape[:2]
    text = (
        f"Aperio Image Library v12.0.0\r\n{width}x{height} [0,0 {width}x{height}] (64x64) JPEG/RGB "
        "Q=90|AppMag = 20|MPP = 0.5|ScanScope ID = SS1"
    )
    rgb = {"photometric": "rgb", "metadata": None}
    tiled = {"tile": (64, 64), "compression": "jpeg", **rgb, **options}
    with tifffile.TiffWriter(path) as file:
        file.write(pixels, description=text, iccprofile=ICC, **tiled)
        file.write(np.ascontiguousarray(pixels[::4, ::4]), description=text, **rgb)
        file.write(np.ascontiguousarray(pixels[::2, ::2]), description=text, **tiled)
        for name, kind in (("label", 1), ("macro", 9)):
            image = tissue(40 + kind, 30)
            text = f"Aperio Image Library v12.0.0\r\n{name} {image.shape[1]}x{image.shape[0]}"
            file.write(image, description=text, subfiletype=kind, **rgb)
    return path


def cut_tiles(pixels: np.ndarray, side: int) -> list[np.ndarray]:
    """The tiles of a raster, row by row, those at the edges padded with their last pixels."""
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((0, -height % side), (0, -width % side), (0, 0)), "edge")
    return [
        np.ascontiguousarray(padded[y : y + side, x : x + side])
        for y in range(0, height, side)
        for x in range(0, width, side)
    ]


def write_tiles(
    path: Path, pixels: np.ndarray, payloads: list[bytes], compression: Any, side: int = 64, **more
) -> Path:
    """A TIFF slide of tiles that are encoded already."""
    tifffile.imwrite(
        path,
        iter(payloads),
        shape=pixels.shape,
        dtype=pixels.dtype,
        tile=(side, side),
        compression=compression,
        **{"photometric": "rgb", **RESOLUTION, **more},
    )
    return path


def with_tiles_far_behind(source: Path, far: int = 5 << 30) -> Path:
    """The BigTIFF slide with its tiles behind the first ``far`` bytes, of which few are stored."""
    data = bytearray(source.read_bytes())
    with tifffile.TiffFile(source) as file:
        page = file.pages[0]
        offsets, lengths = page.dataoffsets, page.databytecounts
        at = page.tags["TileOffsets"].valueoffset
    data[at : at + 8 * len(offsets)] = (np.array(offsets, "<u8") + far).tobytes()
    with open(source, "wb") as out:
        out.write(data)
        for offset, length in zip(offsets, lengths, strict=True):
            out.seek(offset + far)
            out.write(data[offset : offset + length])
    assert source.stat().st_size > far
    return source


def ycbcr(pixels: np.ndarray) -> np.ndarray:
    """RGB as luminance and colour differences of ITU-R BT.601, full range."""
    red, green, blue = np.moveaxis(pixels.astype(float), 2, 0)
    luminance = 0.299 * red + 0.587 * green + 0.114 * blue
    planes = [luminance, 128 + (blue - luminance) / 1.772, 128 + (red - luminance) / 1.402]
    return np.stack(planes, axis=2).round().clip(0, 255).astype(np.uint8)


def jpeg2000(tiles: list[np.ndarray]) -> list[bytes]:
    return Codec.create("jpeg2000").encode_many(tiles)


def build(source: Path, **options: Any) -> Path:
    """The pack of a slide, beside it."""
    path = source.with_suffix(".iac")
    options = {"slide_id": "slide-1", "effort": 1, "workers": 2, "overwrite": True, **options}
    build_wsi_image_package(source, path, **options)
    return path


def plain_average(
    pixels: np.ndarray, background: Any, start: Any, scale: Any, size: tuple[int, int]
) -> np.ndarray:
    """What an area average is, by weights for each pixel: (height, width, channels)."""
    weights = []
    for axis, side in ((1, 1), (0, 0)):
        cells = np.arange(size[0 if axis else 1])
        low = start[0 if axis else 1] + cells * scale[0 if axis else 1]
        high = start[0 if axis else 1] + (cells + 1) * scale[0 if axis else 1]
        pixel = np.arange(pixels.shape[side])
        part = np.minimum(high[:, None], pixel + 1) - np.maximum(low[:, None], pixel)
        weights.append(np.maximum(part, 0))
    across, down = weights
    values = pixels.astype(float) - background
    sums = np.einsum("iy,jx,yxc->ijc", down, across, values, optimize=True)
    mean = sums / (scale[0] * scale[1]) + background
    return np.rint(mean).clip(0, np.iinfo(pixels.dtype).max).astype(pixels.dtype)


def assert_same_regions(path: Path, expected: np.ndarray, most: int = 0) -> None:
    """The pack's pixels are those expected (height, width[, channels]), within ``most``: as a
    whole, and in 200 random rectangles."""
    expected = expected.reshape(*expected.shape[:2], -1)
    height, width, channels = expected.shape
    assert_same_rectangles(
        path, (width, height), lambda x, y, w, h: expected[y : y + h, x : x + w], most
    )
    with WsiImageReader(path) as reader:
        assert (reader.channels, reader.dtype) == (channels, expected.dtype)
        found = reader.read_native_region(0, 0, width, height).astype(int)
        assert np.abs(found - expected).max() <= most


def openslide_regions(
    slide: Any, colour: Any = (255, 255, 255), corner: Any = (0, 0)
) -> Callable[..., np.ndarray]:
    """Rectangles of an OpenSlide slide's finest level, from a corner on, laid on a colour."""

    def read(x: int, y: int, width: int, height: int) -> np.ndarray:
        place = corner[0] + x, corner[1] + y
        rgba = np.asarray(slide.read_region(place, 0, (width, height))).astype(int)
        alpha = rgba[:, :, 3:]
        return (rgba[:, :, :3] * alpha + np.array(colour) * (255 - alpha)) // 255

    return read


def assert_same_rectangles(
    path: Path, size: tuple[int, int], expected: Callable[..., np.ndarray], most: int = 0
) -> None:
    """The pack's pixels in 200 random rectangles are those that ``expected(x, y, width, height)``
    gives, within ``most``."""
    random = np.random.default_rng(3)
    with WsiImageReader(path, cache_bytes=64 << 20) as reader:
        assert reader.dimensions == size
        for _ in range(200):
            x, y = (int(random.integers(side)) for side in size)
            w, h = (int(random.integers(1, 61)) for _ in size)
            w, h = min(w, size[0] - x), min(h, size[1] - y)
            found = reader.read_native_region(x, y, w, h).astype(int)
            assert np.abs(found - expected(x, y, w, h)).max() <= most
