"""Every way to the pixels of DICOM instances in a pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl
from dicom_packs import column
from dicoms import build, file_of, read
from iac_query.adapters import dicom
from pydicom.dataset import Dataset

import iac_query as iac


def with_uid(ds: Dataset, number: int) -> Dataset:
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
    return ds


def array_of(image: dict) -> np.ndarray:
    array = np.frombuffer(image["data"], image["dtype"])
    shape = image["height"], image["width"], image["channels"]
    return array.reshape(shape[:2] if shape[2] == 1 else shape)


class Case:
    """A pack of storage "original" with a slice of each encoding, and those slices."""

    def __init__(self, path: Path, encodings: Mapping[str, Callable[[], Dataset]]) -> None:
        self.path = path
        made = [with_uid(make(), number) for number, make in enumerate(encodings.values())]
        self.files = dict(zip(encodings, map(file_of, made), strict=True))
        self.slices = {name: read(file) for name, file in self.files.items()}
        build(path, *self.files.values(), strict=True, storage="original")
        self.reader = dicom.DicomPatientReader(path)
        self.rows = range(len(self.reader))
        self.row_of = {
            name: self.reader.row_of(ds.SOPInstanceUID) for name, ds in self.slices.items()
        }
        self.con = iac.connect()
        self.references = f"SELECT record FROM '{path}' ORDER BY record.row"

    def sql(self) -> list[np.ndarray]:
        return [array_of(image) for image in column(self.con, self.path, "iac_image(record)")]

    def decoded(self) -> list[np.ndarray]:
        table = iac.decode(self.con.sql(self.references), as_="image")
        return [array_of(image) for image in table["payload"].to_pylist()]

    def tensors(self) -> list[np.ndarray]:
        arrays = []
        references = self.con.sql(self.references).to_arrow_table()
        for row in self.rows:
            table = iac.decode(references.slice(row, 1), as_="tensor")
            (array,) = table["payload"].combine_chunks().to_numpy_ndarray()
            arrays.append(array[..., 0] if array.shape[-1] == 1 else array)
        return arrays

    def frame(self) -> list[np.ndarray]:
        images = iac.scan_iac(self.path).select(pl.col("record").iac.image()).collect()
        return [array_of(image) for image in images.to_series()]

    def arrow(self) -> list[np.ndarray]:
        images = iac.scan_arrow(self.path, as_="image").read_all()["payload"]
        return [array_of(image) for image in images.to_pylist()]

    def records(self) -> list[np.ndarray]:
        with iac.VariableRecordPack(self.path) as pack:
            return list(pack.read_many_contiguous(self.rows))


DOORS: dict[str, Callable[[Case], list[np.ndarray]]] = {
    "read_pixel_array": lambda case: [case.reader.read_pixel_array(row) for row in case.rows],
    "read_pixel_arrays": lambda case: case.reader.read_pixel_arrays(case.rows),
    "read_tensor": lambda case: [case.reader.read_tensor([row, row])[1] for row in case.rows],
    "iac_image": Case.sql,
    "decode": Case.decoded,
    "decode to tensors": Case.tensors,
    "scan_iac": Case.frame,
    "scan_arrow": Case.arrow,
    "read_many_contiguous": Case.records,
}
