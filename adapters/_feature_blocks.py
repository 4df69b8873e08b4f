"""Features from memory and files as matrices of a few rows each: no source is held whole."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

#: Of the source that are held at a time.
_BLOCK_BYTES = 8 << 20


@dataclass
class FeatureBlocks:
    """Matrices of ``dim`` columns and one dtype; ``rows`` of them in all, None where unknown."""

    dim: int
    dtype: np.dtype[Any]
    rows: int | None
    blocks: Iterator[npt.NDArray[Any]]


@contextlib.contextmanager
def open_features(features: Any, key: str | None = None) -> Iterator[FeatureBlocks]:
    """Features as blocks: of a matrix, an iterable of vectors, or a file.

    Files are ``.npy`` (memory-mapped), ``.h5`` and ``.hdf5``, ``.safetensors``; ``key`` names the
    data set in the last three, which may be left out where there is one only. bfloat16 comes as
    float32, which holds it exactly.

    Raises ValueError naming the file for one that holds no matrix, or several and no key.
    """
    if isinstance(features, str | os.PathLike):
        with _opened(Path(os.fsdecode(features)), key) as source:
            yield _of_matrix(source)
        return
    if key is not None:
        raise ValueError("feature_key is for files")
    if isinstance(features, Mapping):
        raise TypeError("features are a mapping, use ..._from_feature_map")
    if hasattr(features, "shape") and hasattr(features, "dtype"):
        yield _of_matrix(features if hasattr(features, "__getitem__") else np.asarray(features))
    else:
        yield _of_vectors(features)


def _of_matrix(source: Any) -> FeatureBlocks:
    """Blocks of what has a shape, a dtype, and rows by slices."""
    shape = tuple(source.shape)
    if len(shape) != 2:
        raise ValueError(f"features have {len(shape)} dimensions, expected 2: rows of vectors")
    first = _block(source[:1])
    step = max(1, _BLOCK_BYTES // max(1, shape[1] * first.itemsize))
    starts = range(0, shape[0], step)
    blocks = (_block(source[start : start + step]) for start in starts)
    return FeatureBlocks(shape[1], first.dtype, shape[0], blocks)


def _of_vectors(vectors: Iterable[Any]) -> FeatureBlocks:
    vectors = iter(vectors)
    first = next(vectors, None)
    if first is None:
        raise ValueError("features are empty")
    first = _vector(first, 0)
    return FeatureBlocks(len(first), first.dtype, None, _stacked(first, vectors))


def _stacked(first: npt.NDArray[Any], vectors: Iterator[Any]) -> Iterator[npt.NDArray[Any]]:
    rows = max(1, _BLOCK_BYTES // max(1, first.nbytes))
    block = np.empty((rows, len(first)), first.dtype)
    block[0], filled, number = first, 1, 1
    for item in vectors:
        vector = _vector(item, number)
        if vector.shape != first.shape:
            raise ValueError(
                f"feature {number}: has {len(vector)} values, the first has {len(first)}"
            )
        if vector.dtype != first.dtype:
            raise ValueError(f"feature {number}: is {vector.dtype}, the first is {first.dtype}")
        if filled == rows:
            yield block
            filled = 0
        block[filled] = vector
        filled += 1
        number += 1
    yield block[:filled]


def _vector(item: Any, number: int) -> npt.NDArray[Any]:
    vector = _block(item)
    if vector.ndim != 1:
        raise ValueError(f"feature {number}: has {vector.ndim} dimensions, expected 1")
    return vector


def _block(values: Any) -> npt.NDArray[Any]:
    """Values in native byte order, bfloat16 of ml_dtypes as float32.

    Raises TypeError for what are no numbers, ValueError for masked ones.
    """
    if np.ma.is_masked(values):
        raise ValueError("features are masked, fill what is masked or leave it out")
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        return array.astype(np.float32)
    if array.dtype.kind not in "biuf" or array.dtype.char == "g":
        raise TypeError(f"features of {array.dtype} cannot be stored, expected numbers")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@contextlib.contextmanager
def _opened(path: Path, key: str | None) -> Iterator[Any]:
    openers = {
        ".npy": _open_npy,
        ".h5": _open_hdf5,
        ".hdf5": _open_hdf5,
        ".safetensors": _open_safetensors,
    }
    opener = openers.get(path.suffix.lower())
    if opener is None:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(openers)}")
    with contextlib.ExitStack() as stack:
        open(path, "rb").close()  # whose error says best why a file cannot be read
        try:
            source = stack.enter_context(opener(path, key))
            if len(source.shape) != 2:
                raise ValueError(f"has {len(source.shape)} dimensions, expected 2")
        except ImportError:
            raise
        except Exception as error:
            raise ValueError(f"{path}: holds no matrix that can be read: {error}") from error
        yield source


@contextlib.contextmanager
def _open_npy(path: Path, key: str | None) -> Iterator[npt.NDArray[Any]]:
    if key is not None:
        raise ValueError("feature_key is for .h5 and .safetensors, a .npy file holds one array")
    yield np.load(path, mmap_mode="r", allow_pickle=False)


@contextlib.contextmanager
def _open_hdf5(path: Path, key: str | None) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install iac-query[features]") from error
    with h5py.File(path, "r") as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        yield file[_chosen(key, names)]


@contextlib.contextmanager
def _open_safetensors(path: Path, key: str | None) -> Iterator[Any]:
    try:
        from safetensors import safe_open
    except ImportError as error:
        raise ImportError(
            "safetensors files need safetensors: pip install iac-query[features]"
        ) from error
    with safe_open(path, framework="np") as file:
        name = _chosen(key, list(file.keys()))
        tensor = file.get_slice(name)
        dtype = tensor.get_dtype()
        if dtype == "F4" or dtype.startswith(("F8_", "F6_", "C")):  # NumPy lacks them, or complex
            raise TypeError(f"features of {dtype} cannot be stored, expected numbers")
        if dtype == "BF16":
            with open(path, "rb") as raw:
                yield _BFloat16(raw, name, tuple(tensor.get_shape()))
        else:
            yield _Tensor(tensor)


class _Tensor:
    """A tensor of a safetensors file, its rows read by slices."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.shape = tuple(tensor.get_shape())

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        return self._tensor[start:stop]


class _BFloat16:
    """A tensor of bfloat16, which NumPy lacks, as float32: the upper half of its bits.

    The layout of the file was checked by who opened it: a length of 8 bytes, a header of JSON, the
    data.
    """

    def __init__(self, file: Any, name: str, shape: tuple[int, ...]) -> None:
        self._file = file
        self.shape = shape
        (length,) = struct.unpack("<Q", file.read(8))
        self._start = 8 + length + json.loads(file.read(length))[name]["data_offsets"][0]

    def __getitem__(self, rows: slice) -> npt.NDArray[np.float32]:
        start, stop, _ = rows.indices(self.shape[0])
        dim = self.shape[1]
        self._file.seek(self._start + 2 * dim * start)
        stored = self._file.read(2 * dim * (stop - start))
        halves = np.frombuffer(stored, "<u2").reshape(stop - start, dim)
        return (halves.astype(np.uint32) << 16).view(np.float32)


def _chosen(key: str | None, names: list[str]) -> str:
    if key is None and len(names) == 1:
        return names[0]
    if key not in names:
        raise ValueError(f"feature_key is {key!r}, expected one of {sorted(names)}")
    return key
