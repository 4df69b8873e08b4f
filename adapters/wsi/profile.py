"""How the raster of a slide is stored: as it is, or as JPEG XL of some distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...codec import Codec, ImageCodec
from .._parallel import in_order
from .sources import NativeTiles, Source

#: Below so many stored bits a pixel the native tiles are kept: nothing smaller looks the same.
PASSTHROUGH_BPP = 1.0
DISTANCES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
MIN_PSNR = 40.0
#: Of the source's size.
MAX_SIZE = 0.97
SAMPLES = 48
#: Of rasters beside tiles that are kept.
COARSER_DISTANCE = 1.0
#: Estimated bytes of a pack beside its tiles, and beside each tile.
PACK_BYTES, TILE_BYTES = 2 << 20, 128


@dataclass(frozen=True)
class Profile:
    """What the header says of the raster's codec."""

    codec: str
    params: dict[str, Any]
    selection: dict[str, Any]
    effort: int
    #: JPEG XL: of the raster, or where that is kept of coarser ones.
    jxl_params: dict[str, Any]
    encoder: ImageCodec
    tile_size: tuple[int, int]
    native: NativeTiles | None = field(default=None)


def choose(
    source: Source,
    tile_size: tuple[int, int],
    lossless: bool,
    distance: float | None,
    effort: int,
    workers: int | None,
) -> Profile:
    """The profile that the arguments name, or that matches the source.

    Raises ValueError when there is none.
    """
    if lossless or distance is not None:
        return jxl_profile(tile_size, 0.0 if lossless else distance, effort, "explicit")
    bpp, lossy = source.bits_per_pixel, source.storage["lossy"]
    threshold = {"source_bpp": bpp, "threshold_bpp": PASSTHROUGH_BPP}
    if source.native is not None and bpp < PASSTHROUGH_BPP:
        return _passthrough(
            source.native, effort, {"reason": "source_bpp_below_threshold", **threshold}
        )
    if lossy is None:
        raise ValueError(
            f"{source.path}: whether {source.format} lost anything is not known, pass distance= or "
            "lossless=True"
        )
    if not lossy:
        return _matched(tile_size, 0.0, effort, lossy, [])
    metrics = []
    for tried in DISTANCES:
        metrics.append(_measure(source, tile_size, tried, effort, workers))
        if metrics[-1]["quality_accepted"] and metrics[-1]["size_accepted"]:
            return _matched(tile_size, tried, effort, lossy, metrics)
        if not metrics[-1]["quality_accepted"]:
            break  # larger distances lose more
    if source.native is not None:
        return _passthrough(
            source.native,
            effort,
            {"reason": "jxl_profile_rejected", **threshold, "jxl_candidate_metrics": metrics},
        )
    raise ValueError(
        f"{source.path}: no JPEG XL is both smaller than the source and within {MIN_PSNR:g} dB of "
        "it, pass distance= or lossless=True"
    )


def _matched(
    tile_size: tuple[int, int], distance: float, effort: int, lossy: bool, metrics: list[Any]
) -> Profile:
    facts = {"source_lossy": lossy, "candidate_metrics": metrics}
    return jxl_profile(tile_size, distance, effort, "source_matched_v1", **facts)


def jxl_profile(
    tile_size: tuple[int, int], distance: float | None, effort: int, strategy: str, **more: Any
) -> Profile:
    """JPEG XL of a distance, 0 for lossless."""
    params = jxl_params(distance, effort)
    selection = {
        "strategy": strategy,
        "selected_lossless": params["lossless"],
        "selected_distance": params["distance"],
        **more,
    }
    return Profile("jxl", params, selection, effort, params, jxl_codec(params), tile_size)


def jxl_params(distance: float | None, effort: int) -> dict[str, Any]:
    """The schema's words for JPEG XL of a distance, 0 for lossless."""
    lossless = not distance
    return {
        "mode": "lossless" if lossless else "lossy",
        "lossless": lossless,
        "distance": float(distance or 0),
        "effort": effort,
    }


def jxl_codec(params: Mapping[str, Any]) -> ImageCodec:
    """The codec that they stand for."""
    given = {"effort": params["effort"], "lossless": params["lossless"]}
    if not params["lossless"]:
        given["distance"] = params["distance"]
    codec = Codec.create(Codec.JXL, **given)
    assert isinstance(codec, ImageCodec)
    return codec


def _passthrough(native: NativeTiles, effort: int, reason: dict[str, Any]) -> Profile:
    selection = {"strategy": "native_passthrough_v1", "pixel_transcode": False, **reason}
    params = {**native.params, "associated_image_jxl_effort": effort}
    size = native.tile_width, native.tile_height
    coarser = jxl_params(COARSER_DISTANCE, effort)
    encoder = jxl_codec(coarser)
    return Profile(native.codec, params, selection, effort, coarser, encoder, size, native)


def _measure(
    source: Source, tile_size: tuple[int, int], distance: float, effort: int, workers: int | None
) -> dict[str, Any]:
    """What a distance does to some tiles, and how large it would make the pack."""
    codec = jxl_codec(jxl_params(distance, effort))

    def lose(tile: npt.NDArray[Any]) -> tuple[int, int, int, int]:
        payload = codec.encode(tile)
        loss = np.abs(codec.decode(payload).reshape(tile.shape).astype(np.int64) - tile)
        return len(payload), int(loss.sum()), int((loss**2).sum()), tile.size

    columns, rows = (
        -(-s // t) for s, t in zip((source.width, source.height), tile_size, strict=True)
    )
    count = columns * rows
    chosen = sorted(set(np.linspace(0, count - 1, min(count, SAMPLES)).round().astype(int)))
    results = list(in_order(lose, _samples(source, tile_size, columns, chosen), workers))
    stored, absolute, squared, samples = (sum(column) for column in zip(*results, strict=True))
    peak = float(np.iinfo(source.dtype).max)
    psnr = 10 * math.log10(peak**2 * samples / squared) if squared else 100.0
    estimate = round(stored * count / len(chosen)) + PACK_BYTES + TILE_BYTES * count
    return {
        "distance": distance,
        "estimated_package_bytes": estimate,
        "mean_absolute_error": absolute / samples,
        "psnr_db": psnr,
        "quality_accepted": psnr >= MIN_PSNR,
        "size_accepted": estimate <= MAX_SIZE * source.storage["source_bytes"],
    }


def _samples(
    source: Source, tile_size: tuple[int, int], columns: int, chosen: list[int]
) -> Iterator[npt.NDArray[Any]]:
    for number in chosen:
        y, x = (int(at) for at in divmod(number, columns))
        left, top = x * tile_size[0], y * tile_size[1]
        width = min(tile_size[0], source.width - left)
        height = min(tile_size[1], source.height - top)
        yield np.ascontiguousarray(source.pixels.read(left, top, width, height, 1))
