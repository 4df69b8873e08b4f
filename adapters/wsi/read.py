"""Reading whole-slide images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..._options import PathLike, read_options
from ...errors import CodecError, PackError, row_error
from ...images import single_image
from ...pack import PackReader
from . import grid
from .arguments import finite, integer, pair, side, sides
from .colour import to_srgb
from .deepzoom import DeepZoom
from .region import Pair, Raster
from .schema import SlideIndex, read_slide

#: Pixels may be finer than native ones by so much, which rounding of micrometres explains.
_TOLERANCE = 1e-9
#: The longer side of the image that tissue is found on.
_TISSUE_SIDE = 2048


class WsiImageReader:
    """Reads regions of a slide by pixels or micrometres, and what else its pack holds.

    Opens eagerly and checks header and index, pickles as its absolute path, and may be shared by
    threads and forked children. ``cache_bytes`` bounds the decoded tiles that it keeps for the next
    region, none for 0. Pixels are arrays (height, width, channels): RGB of uint8, unless the pack
    says otherwise (``channels``, ``dtype``).

    ``workers`` of each call: threads that decode, None for as many as are useful. Stored bytes are
    compared with their crc32.

    Raises PackError for a pack of another payload type, and where header or index are wrong.
    Readers raise ChecksumError, CodecError and PackError with pack and row in them for a damaged
    tile, and ValueError once closed.
    """

    def __init__(self, package_path: PathLike, *, cache_bytes: int = 0) -> None:
        self._reader = PackReader(package_path)
        self._cache_bytes = cache_bytes
        self._slide = slide = read_slide(self._reader)
        self._index = SlideIndex(self._reader, slide)
        self._row = self._slide_row()
        self._rasters = [
            Raster(self._reader, slide, level, rows, cache_bytes)
            for level, rows in zip(slide.levels, self._index.tiles, strict=True)
        ]

    def _slide_row(self) -> dict[str, Any]:
        rows = self._reader.slide_table.to_pylist()
        if len(rows) != 1 or not rows[0].get("slide_id"):
            raise PackError(f"{self._reader.package_path}: is not of one slide with a slide_id")
        return rows[0]

    @property
    def reader(self) -> PackReader:
        """The pack below."""
        return self._reader

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._reader.header

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the native raster in pixels."""
        return self.level_dimensions[0]

    @property
    def native_mpp(self) -> tuple[float, float]:
        """Micrometres a native pixel, along x and y."""
        return self._slide.levels[0].mpp

    @property
    def physical_dimensions(self) -> tuple[float, float]:
        """Width and height in micrometres."""
        (width, height), mpp = self.dimensions, self.native_mpp
        return width * mpp[0], height * mpp[1]

    @property
    def channels(self) -> int:
        """Samples a pixel: 3, or 1 for gray."""
        return self._slide.channels

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the samples: uint8 or uint16."""
        return self._slide.dtype

    @property
    def background(self) -> tuple[int, ...]:
        """The pixel where the pack stores none, and outside the slide."""
        return self._slide.background

    @property
    def slide_id(self) -> str:
        """The slide's id."""
        return self._row["slide_id"]

    @property
    def patient_id(self) -> str:
        """The patient's id, or an empty text."""
        return self._row.get("patient_id") or ""

    @property
    def specimen_id(self) -> str:
        """The specimen's id, or an empty text."""
        return self._row.get("specimen_id") or ""

    @property
    def level_count(self) -> int:
        """Number of stored rasters, from the native one to the coarsest."""
        return len(self._slide.levels)

    @property
    def level_dimensions(self) -> tuple[tuple[int, int], ...]:
        """Width and height of each stored raster."""
        return tuple((level.width, level.height) for level in self._slide.levels)

    @property
    def level_downsamples(self) -> tuple[int, ...]:
        """Native pixels for one of each stored raster."""
        return tuple(level.downsample for level in self._slide.levels)

    @property
    def scanner_metadata(self) -> dict[str, Any]:
        """What the builder kept of the source: scanner, compression, associated images."""
        row = self._index.metadata_row
        try:
            metadata = json.loads(self._decoded(row))
        except (RecursionError, ValueError) as error:
            if isinstance(error, PackError):
                raise
            raise self._error(row, "scanner metadata is no JSON") from error
        if not isinstance(metadata, dict):
            raise self._error(row, "scanner metadata is no JSON object")
        return metadata

    @property
    def icc_profile(self) -> bytes | None:
        """The ICC profile of the raster, or None."""
        row = self._index.icc_row
        return None if row is None else self._decoded(row)

    @property
    def associated_image_names(self) -> tuple[str, ...]:
        """Names of the images beside the raster: label, macro, thumbnail."""
        return tuple(sorted(self._index.images))

    def associated_image_icc_profile(self, name: str) -> bytes | None:
        """The ICC profile of an associated image, or None. Raises KeyError for an unknown one."""
        self._image_row(name)
        row = self._index.image_profiles.get(name)
        return None if row is None else self._decoded(row)

    def read_associated_image(self, name: str) -> npt.NDArray[np.uint8]:
        """An associated image, (height, width, 3). Raises KeyError for an unknown one."""
        row = self._image_row(name)
        batch = self._reader.native.read(np.array([row]), *read_options(True, 1))
        image = None if batch.images is None else single_image(batch)
        if image is None or image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise self._error(row, "the associated image is no RGB image of 8 bits")
        return image

    def _image_row(self, name: str) -> int:
        try:
            return self._index.images[name]
        except KeyError:
            raise KeyError(
                f"no associated image {name!r} in {self._reader.package_path}, there are "
                f"{list(self.associated_image_names)}"
            ) from None

    def _decoded(self, row: int) -> bytes:
        return self._reader.native.read_one(row, True, True, 1 << 30)

    def _error(self, row: int, reason: str) -> PackError:
        return row_error(CodecError, str(self._reader.package_path), row, reason)

    def read_native_region(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        *,
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """Native pixels (height, width, channels) of a rectangle, background outside the slide.

        ``srgb`` converts them by the slide's ICC profile, if it has one.
        """
        return self.read_level(0, x, y, width, height, workers=workers, srgb=srgb)

    def read_level(
        self,
        level: int,
        x: int,
        y: int,
        width: int,
        height: int,
        *,
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """Pixels of a stored raster, ``x`` and ``y`` counted in its own pixels; otherwise
        :meth:`read_native_region`.
        """
        if not 0 <= level < self.level_count:
            raise ValueError(f"level is {level}, there are {self.level_count}")
        raster = self._raster(level)
        place = integer("x", x), integer("y", y)
        size = side("width", width), side("height", height)
        return self._converted(raster.read(*place, *size, workers), srgb)

    def read_region(
        self,
        x_um: float,
        y_um: float,
        width: int,
        height: int,
        *,
        mpp: float | tuple[float, float],
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """Pixels (height, width, channels) of ``mpp`` micrometres from ``x_um``, ``y_um`` on.

        Each is the mean over the rectangle that it covers, in double precision, rounded half to
        even; what lies outside the slide is background. Coarse regions are read from a stored
        coarser raster where there is one, and otherwise some native tiles at a time.

        Raises ValueError for an ``mpp`` finer than the native one.
        """
        target = pair("mpp", mpp)
        place = finite("x_um", x_um), finite("y_um", y_um)
        size = side("width", width), side("height", height)
        number = self._level_for(target)
        level = self._slide.levels[number]
        scale = tuple(
            max(wanted / stored, 1.0) for wanted, stored in zip(target, level.mpp, strict=True)
        )
        start = tuple(
            finite("the place in pixels", at / stored)
            for at, stored in zip(place, level.mpp, strict=True)
        )
        return self._converted(self._raster(number).average(start, scale, *size, workers), srgb)

    def _level_for(self, target: Pair) -> int:
        fits = [
            number
            for number, level in enumerate(self._slide.levels)
            if all(t >= m * (1 - _TOLERANCE) for t, m in zip(target, level.mpp, strict=True))
        ]
        if not fits:
            raise ValueError(
                f"mpp of {target} is finer than the slide's, {self.native_mpp}: nothing is "
                "interpolated"
            )
        return max(fits, key=lambda number: self._slide.levels[number].downsample)

    def average(
        self,
        start: tuple[float, float],
        scale: tuple[float, float],
        width: int,
        height: int,
        *,
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """:meth:`read_region` with ``start`` in native pixels, and ``scale`` of them for one."""
        factors = pair("scale", scale)
        mpp = factors[0] * self.native_mpp[0], factors[1] * self.native_mpp[1]
        number = self._level_for(mpp)
        down = self._slide.levels[number].downsample
        place = finite("start", start[0]) / down, finite("start", start[1]) / down
        factors = max(factors[0] / down, 1.0), max(factors[1] / down, 1.0)
        size = side("width", width), side("height", height)
        return self._converted(self._raster(number).average(place, factors, *size, workers), srgb)

    def thumbnail(
        self,
        max_size: int | tuple[int, int],
        *,
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """The whole slide, no wider and higher than ``max_size``, and never larger than it is."""
        most = sides("max_size", max_size)
        down = max(1.0, *(own / m for own, m in zip(self.dimensions, most, strict=True)))
        width, height = (max(1, round(own / down)) for own in self.dimensions)
        scale = self.dimensions[0] / width, self.dimensions[1] / height
        return self.average((0, 0), scale, width, height, workers=workers, srgb=srgb)

    def deep_zoom(self, tile_size: int = 254, overlap: int = 1) -> DeepZoom:
        """The slide as Deep Zoom tiles."""
        return DeepZoom(self, tile_size, overlap)

    def grid(
        self,
        *,
        tile_size: int,
        mpp: float | None = None,
        overlap: int = 0,
        tissue: float | None = None,
        workers: int | None = None,
    ) -> pa.Table:
        """Places of tiles that cover the slide, a row each, row by row.

        ``tile_size`` and ``overlap`` are in pixels of ``mpp`` micrometres, None for the coarser
        side of native ones. Columns: ``column``, ``row`` of the grid, ``x_um``, ``y_um``, ``size``
        (pixels), ``mpp``, and ``tissue``, the fraction of the tile that is tissue: more saturated
        than Otsu's threshold on a thumbnail of at most 2048 pixels, or darker where slides are
        gray. ``tissue=0.5`` keeps the places with at least that. :meth:`iter_grid` reads them.
        """
        mpp, other = pair("mpp", max(self.native_mpp) if mpp is None else mpp)
        if mpp != other:
            raise ValueError(f"mpp is {mpp}, {other}, expected one number, a grid is of squares")
        size, over = side("tile_size", tile_size), integer("overlap", overlap)
        if not 0 <= over < size:
            raise ValueError(f"overlap is {over}, expected 0 to {size - 1}")
        self._level_for((mpp, mpp))
        columns, rows = grid.positions(self.physical_dimensions, size, mpp, over)
        step = (size - over) * mpp
        mask = grid.tissue_mask(self.thumbnail(_TISSUE_SIDE, workers=workers))
        # Pixels of the mask a micrometre.
        across, down = (
            pixels / length
            for pixels, length in zip(mask.shape[::-1], self.physical_dimensions, strict=True)
        )
        width, height = size * mpp * across, size * mpp * down
        left, top = columns * step * across, rows * step * down
        found = grid.fractions(mask, left, top, width, height)
        table = grid.table(columns, rows, step, size, mpp, found)
        if tissue is not None:
            table = table.filter(pc.greater_equal(table["tissue"], finite("tissue", tissue)))
        return table

    def iter_grid(
        self,
        places: Any,
        *,
        batch_size: int = 32,
        workers: int | None = None,
        srgb: bool = False,
    ) -> Iterator[npt.NDArray[Any]]:
        """The tiles of a grid, or of some of its rows in any order, in batches (n, size, size,
        channels).

        ``places`` is anything with ``__arrow_c_stream__`` that has the columns of :meth:`grid` that
        say what to read. Raises KeyError where it lacks one, ValueError for NULLs, and for places
        of several sizes.
        """
        for batch in grid.batches(places, side("batch_size", batch_size)):
            regions = [
                self.read_region(
                    place["x_um"],
                    place["y_um"],
                    place["size"],
                    place["size"],
                    mpp=place["mpp"],
                    workers=workers,
                    srgb=srgb,
                )
                for place in batch
            ]
            yield np.stack(regions)

    def _raster(self, number: int) -> Raster:
        self._reader.native  # noqa: B018  raises once closed
        return self._rasters[number]

    def _converted(self, pixels: npt.NDArray[Any], srgb: bool) -> npt.NDArray[Any]:
        profile = self.icc_profile if srgb else None
        return pixels if profile is None else to_srgb(pixels, profile)

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (str(self._reader.package_path), self._cache_bytes)

    def __repr__(self) -> str:
        width, height = self.dimensions
        return (
            f"<WsiImageReader({str(self._reader.package_path)!r}): {width:,} x {height:,} pixels "
            f"of {self.native_mpp[0]:g} um>"
        )


def _reopened(path: str, cache_bytes: int) -> WsiImageReader:
    return WsiImageReader(path, cache_bytes=cache_bytes)
