"""Pixels, headers, files and volumes out of packs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydicom.datadict import dictionary_description
from pydicom.dataset import Dataset

from ..._options import OnError, PathLike, row_array, row_number
from ...errors import PackError, PackIndexError, RecordFailure, row_error
from ...variable import VariableRecordPack
from . import exact as exact_files
from . import rebuild, schema
from .functional_groups import broken_elements, frame_elements
from .headers import Headers
from .model import dataset_of, quiet
from .output import require_free, write_whole
from .pixels import PixelRows
from .values import ModalityLut, ValueOptions, Window, modality_values
from .volume import PLANE_ELEMENTS, Volume, plane_of, stacked

Array = npt.NDArray[Any]


class DicomPatientReader:
    """A pack of DICOM instances. A row is a frame, that of an instance of one frame its only one.

    Opens eagerly, pickles as its absolute path, and may be shared by threads like any reader.
    Checks checksums unless told otherwise. Raises PackError for a pack of another kind.

    Values: pixels come as they are stored, colours as RGB, unless

    * ``modality_lut=True``: Modality LUT or rescale, e.g. Hounsfield units (PS3.3 C.11.1);
    * ``voi_lut=True``: and then the dataset's first VOI LUT or window (C.11.2);
      ``window=(center, width)``: that window in its place;
    * ``invert=True``: MONOCHROME1 with bright as high (C.7.6.3.1.2);
    * ``palette=True``: PALETTE COLOR as colours, not as indices (C.7.6.3.1.5).
    """

    def __init__(self, package_path: PathLike) -> None:
        self._pack = VariableRecordPack(package_path)
        self._check_header()
        self._pixels = PixelRows(self._pack)
        self._headers = Headers(self._pack, self._pixels)

    def _check_header(self) -> None:
        header, path = self.header, self._pack.reader.package_path
        if header.get("payload_type") != schema.PAYLOAD_TYPE:
            raise PackError(f"{path}: is not a pack of DICOM instances")
        version = header.get("dicom_schema_version")
        if type(version) is not int or version not in (schema.PEER_VERSION, schema.VERSION):
            raise PackError(f"{path}: dicom_schema_version is {version!r}, expected 1 or 2")
        if header.get("metadata_codec", "zstd") != "zstd":
            raise PackError(f"{path}: metadata_codec is not zstd")

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._pack.header

    @property
    def series_table(self) -> pa.Table:
        """A row a series."""
        return self._pack.slide_table

    @property
    def instance_table(self) -> pa.Table:
        """A row a frame."""
        return self._pack.index_table

    @property
    def record_count(self) -> int:
        """Number of rows."""
        return len(self._pack)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._pack)

    # Rows

    def row_of(self, sop_instance_uid: str, frame: int = 0) -> int:
        """The row of an instance's frame, counted from 0. Raises KeyError where there is none."""
        found = np.flatnonzero(self._pixels.column("sop_instance_uid") == sop_instance_uid)
        frames = self._pixels.column("frame_index")[found]
        for row in found[frames == frame].tolist():
            return row
        raise KeyError(f"{self._pack.reader.package_path}: has no such instance and frame")

    def rows_of_series(self, series: int | str) -> npt.NDArray[np.int64]:
        """The rows of a series, given as series_idx or Series Instance UID, in the pack's order.

        Raises KeyError where there is no such series.
        """
        if isinstance(series, str):
            uids = self.series_table["series_uid"].to_pylist()
            if uids.count(series) != 1:
                raise KeyError(
                    f"{self._pack.reader.package_path}: has {uids.count(series)} such series"
                )
            series = self.series_table["series_idx"][uids.index(series)].as_py()
        rows = np.flatnonzero(self._pixels.column("series_idx") == series)
        if len(rows) == 0:
            raise KeyError(f"{self._pack.reader.package_path}: has no series {series}")
        return rows

    # Pixels

    def read_pixel_array(
        self,
        row: int,
        *,
        verify: bool = True,
        modality_lut: bool = False,
        voi_lut: bool = False,
        window: Window | None = None,
        invert: bool = False,
        palette: bool = False,
    ) -> Array:
        """One frame, (rows, columns) or (rows, columns, samples), writable.

        As it is stored, and in colour, it is pydicom's pixel_array. Values as the class says:
        float64 after a rescale or window.
        """
        options = ValueOptions(modality_lut, voi_lut, window, invert, palette)
        number = self._row(row)
        array = self._pixels.read([number], 1, verify, "raise", None)[0]
        (lut,) = self._modality_luts([number], options, verify)
        return self._values(array, number, lut, options, verify)

    def read_pixel_arrays(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        modality_lut: bool = False,
        voi_lut: bool = False,
        window: Window | None = None,
        invert: bool = False,
        palette: bool = False,
    ) -> list[Array | None]:
        """Frames in the order given, decoded in parallel, each as :meth:`read_pixel_array`.

        ``workers``, ``on_error`` and ``report`` as VariableRecordPack.read_many_contiguous. Frames
        that cannot be had are None; with ``on_error="skip"`` they are left out.
        """
        options = ValueOptions(modality_lut, voi_lut, window, invert, palette)
        numbers = row_array(rows, len(self))
        failures: list[RecordFailure] = []
        arrays = self._pixels.read(numbers, workers, verify, on_error, failures)
        if report is not None:
            report += failures
        if on_error == "skip":
            numbers = np.delete(numbers, [failure.position for failure in failures])
        pairs = list(zip(arrays, numbers.tolist(), strict=True))
        here = [row for array, row in pairs if array is not None]
        luts = iter(self._modality_luts(here, options, verify))
        return [
            None if array is None else self._values(array, row, next(luts), options, verify)
            for array, row in pairs
        ]

    def read_tensor(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        modality_lut: bool = False,
        voi_lut: bool = False,
        window: Window | None = None,
        invert: bool = False,
        palette: bool = False,
    ) -> Array:
        """Frames as one writable array (n, rows, columns[, samples]), decoded in parallel.

        Where stored values are asked for, nothing is copied behind the decoder, and
        ``torch.from_numpy`` takes it as it is. Other values than stored ones are float32.

        Raises ValueError where frames differ in shape or dtype.
        """
        options = ValueOptions(modality_lut, voi_lut, window, invert, palette)
        numbers = row_array(rows, len(self))
        arrays = self._pixels.read(numbers, workers, verify, "raise", None)
        if isinstance(arrays, np.ndarray) and not options.any:
            return arrays
        if len(arrays) == 0:
            raise ValueError("no rows are no tensor")
        out: Array | None = None
        luts = self._modality_luts(numbers.tolist(), options, verify)
        for i, (array, row, lut) in enumerate(zip(arrays, numbers.tolist(), luts, strict=True)):
            values = self._values(array, row, lut, options, verify)
            if out is None:
                kind = values.dtype
                computed = options.any and kind == np.float64
                dtype = np.dtype(np.float32) if computed else kind
                out = np.empty((len(numbers), *values.shape), dtype)
            elif values.shape != out.shape[1:] or values.dtype != kind:
                raise ValueError(
                    f"frames differ: {out.shape[1:]} {kind} and {values.shape} {values.dtype}"
                )
            out[i] = values
        return out

    def _modality_luts(
        self, rows: Sequence[int], options: ValueOptions, verify: bool
    ) -> list[ModalityLut]:
        """That of each row, None where values stay as they are. Raises PackError naming a row whose
        header does not say how.
        """
        gray = [row for row in rows if options.modality and self._is_gray(row)]
        native = self._pack.reader.native
        luts = native.dicom_modality_luts(np.array(gray, np.int64), verify) if gray else []
        of_rows = dict(zip(gray, luts, strict=True))
        return [of_rows.get(row) for row in rows]

    def _is_gray(self, row: int) -> bool:
        return self._pixels.at("photometric_interpretation", row).startswith("MONOCHROME")

    def _values(
        self, array: Array, row: int, modality_lut: ModalityLut, options: ValueOptions, verify: bool
    ) -> Array:
        try:
            array = modality_values(array, modality_lut)
            if not options.more:
                return array
            model = self._headers.model(row, verify)
            frame = self._pixels.at("frame_index", row)
            elements = frame_elements(model["dataset"], frame)
            values = elements.get("00280004", {}).get("Value") or [""]
            self._require_whole(row, model, frame, options.needed(str(values[0])))
            said = {tag: element for tag, element in elements.items() if tag.startswith("0028")}
            with quiet():
                return options.apply(array, modality_lut, Dataset.from_json(said))
        except (PackError, MemoryError):
            raise
        except Exception as error:  # pydicom has one of every kind for broken headers
            raise self._error(row, f"its values cannot be had: {error}") from error

    # Headers and files

    def read_tags(self, row: int, *, verify: bool = True) -> dict[str, Any]:
        """The header of a row's instance as DICOM JSON model (PS3.18 F.2), without pixels."""
        number = self._row(row)
        try:
            return copy.deepcopy(self._headers.model(number, verify)["dataset"])
        except RecursionError as error:
            raise self._error(number, "its sequences are nested too deep") from error

    def read_dataset(self, row: int, *, verify: bool = True) -> Dataset:
        """The header of a row's instance as pydicom's Dataset, without pixels."""
        number = self._row(row)
        model = self._headers.model(number, verify)
        try:
            with quiet():
                return dataset_of(model)
        except Exception as error:  # pydicom has one of every kind for broken headers
            raise self._error(number, f"its header is damaged: {error}") from error

    def read_dicom(self, row: int, *, verify: bool = True, exact: bool = False) -> bytes:
        """The file of a row's instance, all its frames.

        Pixels stored as JPEG XL come in the transfer syntax JPEG XL Lossless, others in Explicit VR
        Little Endian, with the header rebuilt from its JSON. With ``exact=True`` the header's
        elements are the source's own, byte for byte, but for those that describe the new pixels.
        A pack of storage "original" always gives the source file, bit for bit.

        Raises ValueError for ``exact=True`` where the pack was built without.
        """
        number = self._row(row)
        header = self._headers.exact(number, verify)
        if exact and header is None:
            raise ValueError(
                f"{self._pack.reader.package_path}: holds no original headers, build it with "
                "exact=True or storage='original'"
            )
        frames = self._frames(self._headers.rows(number), verify)
        try:
            with quiet():
                if header and (not frames or self.header.get("storage") == "original"):
                    return exact_files.restore(header, frames)
                ds = dataset_of(self._headers.model(number, verify))
                if exact:
                    ds = rebuild.with_header(ds, header)
                if frames:
                    jxl = self._pixels.at("codec_id", number) == schema.PIXELS_JXL
                    give = rebuild.with_jxl if jxl else rebuild.with_values
                    give(ds, self._pixels.pixel(number), frames)
                return rebuild.file_of(ds)
        except (PackError, MemoryError):
            raise
        except Exception as error:  # pydicom has one of every kind for broken headers
            raise self._error(number, f"its file cannot be put together: {error}") from error

    def write_dicom(
        self,
        row: int,
        output_path: PathLike,
        *,
        verify: bool = True,
        overwrite: bool = False,
        exact: bool = False,
    ) -> None:
        """:meth:`read_dicom` to a file, which is there whole or not at all.

        Raises FileExistsError where there is one and not ``overwrite``.
        """
        require_free(output_path, overwrite)
        data = self.read_dicom(row, verify=verify, exact=exact)
        write_whole(output_path, data, overwrite)

    def _frames(self, rows: range, verify: bool) -> list[bytes]:
        """Frames as they are stored, without the Zstandard that is ours."""
        frames = self._pack.reader.read_payloads(rows, verify=verify)
        zstd = [self._pixels.at("codec_id", row) in schema.ZSTD for row in rows]
        return [
            schema.METADATA_CODEC.decode(frame) if here else frame
            for frame, here in zip(frames, zstd, strict=True)
        ]

    # Volumes

    def read_volume(
        self,
        series: int | str | None = None,
        *,
        rows: Iterable[int] | None = None,
        workers: int | None = None,
        verify: bool = True,
        modality_lut: bool = False,
        max_deviation: float = 1.0,
    ) -> Volume:
        """Frames ordered by their position along the normal: those of a series, or ``rows``.

        Functional groups of multi-frame instances are followed. Of frames at one position the
        first is kept. ``modality_lut=True`` gives float32 values.

        The affine is one of even steps. Its ``deviation`` says how far, in mm, positions differ
        from that at most.

        Raises ValueError where there are none, where they lie in different orientations or frames
        of reference, or one deviates by more than ``max_deviation`` mm (infinity takes all), and
        PackError naming the row whose header does not say where it lies.
        """
        if (series is None) == (rows is None):
            raise TypeError("pass series or rows, one of them")
        numbers = self.rows_of_series(series) if rows is None else row_array(rows, len(self))
        numbers = [self._row(row) for row in numbers.tolist()]
        here = self._pixels.column("has_pixel_data")
        planes = [self._plane(row, verify) for row in numbers if here[row]]
        if not planes:
            raise ValueError(f"{self._pack.reader.package_path}: no pixels, no volume")
        return stacked(
            planes,
            lambda chosen: self.read_tensor(
                chosen, workers=workers, verify=verify, modality_lut=modality_lut
            ),
            max_deviation,
        )

    def _plane(self, row: int, verify: bool) -> Any:
        model = self._headers.model(row, verify)
        frame = self._pixels.at("frame_index", row)
        self._require_whole(row, model, frame, PLANE_ELEMENTS)
        try:
            return plane_of(model["dataset"], frame, row)
        except ValueError as error:
            raise self._error(row, str(error)) from error
        except (AttributeError, KeyError, TypeError) as error:  # of JSON that is no DICOM model
            raise self._error(row, f"its header is damaged: {error}") from error

    def _require_whole(self, row: int, model: Any, frame: int, needed: set[str]) -> None:
        """Raises PackError where one of the elements is there but not what its VR says."""
        try:
            broken = sorted(broken_elements(model, frame) & needed)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._error(row, f"its header is damaged: {error}") from error
        if broken:
            tag = broken[0]
            name = f"{dictionary_description(tag)} ({tag[:4]},{tag[4:]})"
            raise self._error(row, f"its {name} is not what its VR says, so it cannot be used")

    def _row(self, row: int) -> int:
        number = row_number(row, len(self))
        if not 0 <= number < len(self):
            raise row_error(
                PackIndexError,
                str(self._pack.reader.package_path),
                number,
                f"the pack has {len(self)} rows",
            )
        return number

    def _error(self, row: int, reason: str) -> PackError:
        line = reason.partition("\n")[0]  # behind which pydicom puts tracebacks
        return row_error(PackError, str(self._pack.reader.package_path), row, line)

    def close(self) -> None:
        """Lets go of the file."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._pack.reader.package_path),)

    def __repr__(self) -> str:
        return repr(self._pack).replace(type(self._pack).__name__, type(self).__name__, 1)
