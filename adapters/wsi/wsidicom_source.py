"""Slides of DICOM (VL Whole Slide Microscopy Image, PS3.3 A.32.8), opened by wsidicom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import pydicom
    from pydicom.errors import InvalidDicomError
    from pydicom.filereader import read_file_meta_info
    from pydicom.multival import MultiValue
    from pydicom.uid import (
        JPEG2000,
        UID,
        ExplicitVRBigEndian,
        JPEG2000Lossless,
        JPEGBaseline8Bit,
        VLWholeSlideMicroscopyImageStorage,
    )
    from wsidicom import WsiDicom
    from wsidicom.config import Settings
    from wsidicom.file import WsiDicomFileSource, WsiDicomStreamOpener
    from wsidicom.geometry import Point
    from wsidicom.instance import ImageData, WsiInstance

    from .wsidicom_checks import check_image, check_places, reason_of
except ImportError as error:
    raise ImportError("wsidicom is missing: pip install iac-query[wsidicom]") from error

from ...codec import Codec
from ..dicom.model import quiet
from .sources import (
    AssociatedImage,
    NativeTiles,
    Source,
    SourceError,
    broken_tile,
    check_associated,
    check_memory,
    micrometres,
    plain,
)
from .tiled import TiledPixels

#: Of values of Photometric Interpretation the encoded colours of JPEG.
_JPEG_SPACES = {"RGB": "RGB", "YBR_FULL": "YCbCr", "YBR_FULL_422": "YCbCr"}
#: Those that decode to RGB or gray by what the stream says, whatever its syntax.
_SELF_EVIDENT = ("MONOCHROME2", "RGB", "YBR_ICT", "YBR_RCT")
#: What source_info tells of the raster's instance; nothing of the patient.
_FACTS = (
    "Manufacturer",
    "ManufacturerModelName",
    "DeviceSerialNumber",
    "SoftwareVersions",
    "AcquisitionDateTime",
    "StudyInstanceUID",
    "SeriesInstanceUID",
    "SOPInstanceUID",
    "FrameOfReferenceUID",
    "ImageType",
    "ImagedVolumeWidth",
    "ImagedVolumeHeight",
    "ImagedVolumeDepth",
    "PhotometricInterpretation",
    "LossyImageCompression",
    "LossyImageCompressionRatio",
    "LossyImageCompressionMethod",
    "FocusMethod",
)


@quiet()
def open_slide(path: Path) -> Source:
    """The finest level of the one slide in a folder, or of one file.

    Raises SourceError also where wsidicom passes over an image of a slide, or would move a frame.
    """
    expected = list(_images(path))
    if not expected:
        raise SourceError(f"{path}: holds no DICOM image of a slide")
    for file in expected:
        check_image(file)
    with ExitStack() as opened:
        try:
            streams = list(WsiDicomStreamOpener().open(expected))
            for stream in streams:
                opened.callback(stream.close)
            # Levels may be of tiles of another size.
            settings = Settings(strict_tile_size_check=False)
            files = WsiDicomFileSource(streams)
            slide = WsiDicom(files, settings=settings)
            instances = _instances(slide, expected)
            readers = {str(reader.filepath): reader for reader in files.readers}
            for instance in instances:
                check_places(instance, readers)
            source = _source(path, slide, expected)
        except (SourceError, OSError):
            raise
        except Exception as error:  # of any kind: wsidicom's have no common one
            raise SourceError(
                f"{path}: is no slide that wsidicom reads ({reason_of(error)})"
            ) from error
        return replace(source, close=opened.pop_all().close)


def _images(path: Path) -> Iterator[Path]:
    """The files that say to be images of slides."""
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if not file.is_file():
            continue
        try:
            meta = read_file_meta_info(file)
        except InvalidDicomError:
            continue  # is of another kind
        except Exception as error:  # of any kind, by what is broken
            reason = reason_of(error)
            raise SourceError(f"{file}: is no DICOM that can be read ({reason})") from error
        if meta.get("MediaStorageSOPClassUID") == VLWholeSlideMicroscopyImageStorage:
            yield file


def _source(path: Path, slide: WsiDicom, expected: list[Path]) -> Source:
    if len(slide.pyramids) != 1:
        raise SourceError(f"{path}: holds {len(slide.pyramids)} rasters, a slide has one")
    level = slide.pyramid.base_level
    if len(level.optical_paths) != 1 or len(level.focal_planes) != 1:
        raise SourceError(
            f"{path}: its raster is of {len(level.optical_paths)} optical paths and "
            f"{len(level.focal_planes)} focal planes, a slide has one of each"
        )
    if len(level.instances) != 1:
        raise SourceError(f"{path}: its finest level is of {len(level.instances)} images")
    frames = _Frames(path, level.default_instance.image_data)
    header = _header(level.default_instance)
    if "RESAMPLED" in header.ImageType[3:]:
        raise SourceError(f"{path}: is a coarser level of a slide whose finest one is missing")
    spacing = level.pixel_spacing
    return Source(
        path=path,
        width=frames.raster[0],
        height=frames.raster[1],
        channels=frames.channels,
        dtype=frames.dtype,
        pixels=frames.pixels(),
        backend="wsidicom",
        format="dicom",
        mode=frames.mode,
        mpp=micrometres(spacing.width * 1000, spacing.height * 1000),
        icc_profile=_icc_profile(header),
        orientation=1,
        info=_facts(header, frames),
        storage={
            "codec": frames.syntax.keyword,
            "lossy": frames.lossy,
            "native_compressed_bytes": _size_of(level.default_instance.image_data.files),
            "native_tile_height": frames.size[1],
            "native_tile_width": frames.size[0],
            "nominal_quality": None,
            "source_bytes": _size_of(expected),
            "tiff_compression": None,
        },
        native=frames.native,
        associated=tuple(_associated(path, slide)),
        keeps_associated=True,
    )


def _instances(slide: WsiDicom, expected: list[Path]) -> list[WsiInstance]:
    """The images of a slide, which wsidicom makes of some of its files: a coarser level would pass
    for the finest one.
    """
    series = [*slide.pyramids, slide.labels, slide.overviews]
    series += [pyramid.thumbnails for pyramid in slide.pyramids]
    instances = [instance for group in series if group for instance in group.instances]
    used = {str(file) for instance in instances for file in instance.image_data.files}
    for file in expected:
        if str(file) not in used:
            raise SourceError(
                f"{file}: is an image that wsidicom passes over, or of another slide than the "
                "finest raster beside it"
            )
    return instances


def _size_of(files: Iterable[Any]) -> int:
    return sum(Path(str(file)).stat().st_size for file in files)


def _header(instance: WsiInstance) -> pydicom.Dataset:
    """The elements that are kept, of the first file of an image."""
    tags = [*_FACTS, "OpticalPathSequence"]
    file = str(instance.image_data.files[0])
    return pydicom.dcmread(file, stop_before_pixels=True, specific_tags=tags)


def _optical_path(header: pydicom.Dataset) -> pydicom.Dataset:
    return (header.get("OpticalPathSequence") or [pydicom.Dataset()])[0]


def _icc_profile(header: pydicom.Dataset) -> bytes | None:
    return _optical_path(header).get("ICCProfile") or None


def _facts(header: pydicom.Dataset, frames: _Frames) -> dict[str, Any]:
    facts = {name: header.get(name) for name in _FACTS}
    facts["ObjectiveLensPower"] = _optical_path(header).get("ObjectiveLensPower")
    facts["TransferSyntaxUID"] = frames.syntax
    return {
        f"dicom.{name}": plain(list(value) if isinstance(value, MultiValue) else value)
        for name, value in facts.items()
        if value not in (None, "")
    }


def _associated(path: Path, slide: WsiDicom) -> Iterator[AssociatedImage]:
    """Labels, overviews and thumbnails, by the names that they have in other formats."""
    for name, series in (
        ("label", slide.labels),
        ("macro", slide.overviews),
        ("thumbnail", slide.pyramid.thumbnails),
    ):
        for number, group in enumerate(series.groups if series else (), start=1):
            instance = group.default_instance
            frames = _Frames(path, instance.image_data)
            if frames.dtype != np.uint8:
                raise SourceError(f"{path}: {name} is of {frames.dtype}, expected uint8")
            header = _header(instance)
            check_associated(path, name, frames.raster)
            pixels = frames.pixels().read(0, 0, *frames.raster, 1)
            yield AssociatedImage(
                name if number == 1 else f"{name}-{number}",
                np.repeat(pixels, 3 // frames.channels, axis=2),
                frames.mode,
                "none",
                _facts(header, frames),
                _icc_profile(header),
            )


class _Frames:
    """The frames of an image, one a tile, for any number of threads at once."""

    def __init__(self, path: Path, image: ImageData) -> None:
        self._path, self._image = path, image
        self._plane = image.default_z, image.default_path
        self.raster = image.image_size.width, image.image_size.height
        self.size = image.tile_size.width, image.tile_size.height
        self.channels, self.dtype = image.samples_per_pixel, image.dtype
        check_memory(path, "a tile", self.size, self.channels * self.dtype.itemsize)
        self.mode = "RGB" if self.channels == 3 else "L" if self.dtype.itemsize == 1 else "I;16"
        self.syntax: UID = image.transfer_syntax
        self.native = self._native()

    def pixels(self) -> TiledPixels:
        return TiledPixels(self.raster, self.size, self.channels, self.dtype, self._tile)

    @property
    def lossy(self) -> bool:
        return self._image.lossy_compression is not None or self.syntax == JPEGBaseline8Bit

    def _native(self) -> NativeTiles | None:
        """The frames as our codecs read them, where they do."""
        space = self._image.photometric_interpretation
        decoding: dict[str, Any] = {}
        if self.syntax == JPEGBaseline8Bit and self.channels == 3 and space in _JPEG_SPACES:
            codec = Codec.JPEG
            decoding = {"encoded_color_space": _JPEG_SPACES[space], "tables_base64": None}
        elif space not in _SELF_EVIDENT or self._image.bits not in self._depths():
            raise SourceError(
                f"{self._path}: pixels are of {self._image.bits} bits, {space}, in "
                f"{self.syntax.name}; gray of 8 and 16 bits and RGB of 8 can be stored"
            )
        elif self.syntax in (JPEG2000, JPEG2000Lossless) and self.channels == 3:
            codec = Codec.JPEG2000
        else:
            return None
        return NativeTiles.create(self._path, codec, decoding, self.syntax.keyword, self.size, self)

    def _depths(self) -> tuple[int, ...]:
        """Bits of samples whose order of bytes is known: 8 bits of a big-endian file may be swapped
        by twos, by a Value Representation (PS3.5 A.3) that wsidicom does not look at.
        """
        return (16,) if self.syntax == ExplicitVRBigEndian else (8, 16)

    def there(self) -> npt.NDArray[np.bool_]:
        """Whether there is a frame, (rows, columns)."""
        columns, rows = (-(-r // s) for r, s in zip(self.raster, self.size, strict=True))
        return np.array(
            [[self._is_there(column, row) for column in range(columns)] for row in range(rows)]
        )

    def read(self, places: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """The bytes of frames in places (column, row), None where there is none."""
        return [self._stored(*place) for place in places]

    def _is_there(self, column: int, row: int) -> bool:
        try:
            return not self._image.is_sparse(Point(column, row), *self._plane)
        except Exception as error:  # of any kind: wsidicom's have no common one
            raise self._unreadable(column, row, error) from error

    def _stored(self, column: int, row: int) -> bytes | None:
        if not self._is_there(column, row):
            return None
        try:
            return self._image.get_encoded_tile(Point(column, row), *self._plane)
        except Exception as error:
            raise self._unreadable(column, row, error) from error

    def _unreadable(self, column: int, row: int, error: Exception) -> SourceError:
        return broken_tile(self._path, column, row, f"cannot be read ({reason_of(error)})")

    def _tile(self, column: int, row: int) -> npt.NDArray[Any]:
        """The pixels of a frame, (height, width, channels), cut to the raster."""
        width = min(self.size[0], self.raster[0] - column * self.size[0])
        height = min(self.size[1], self.raster[1] - row * self.size[1])
        return self._whole_tile(column, row)[:height, :width]

    def _whole_tile(self, column: int, row: int) -> npt.NDArray[Any]:
        if self.native is not None:
            return self.native.pixels(column, row)
        try:
            tile = self._image.get_decoded_tile(Point(column, row), *self._plane, cache=False)
        except Exception as error:
            reason = f"cannot be decoded ({reason_of(error)})"
            raise broken_tile(self._path, column, row, reason) from error
        shape = (self.size[1], self.size[0], self.channels)
        if tile.size != np.prod(shape) or tile.dtype.newbyteorder("=") != self.dtype:
            reason = f"is {tile.shape} of {tile.dtype}, expected {shape}"
            raise broken_tile(self._path, column, row, reason)
        return tile.reshape(shape).astype(self.dtype, copy=False)
