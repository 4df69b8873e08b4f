"""library_loop.cpp, compiled when it is needed."""

from __future__ import annotations

import ctypes
import functools
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt

import iac_query

CODECS = {"none": 0, "zstd": 1, "brotli": 2}

_HERE = Path(__file__).parent


class LibraryLoop:
    """Rows of one pack, decoded into memory of their size that every call uses again, and other
    loops over as much as well: what was used just before is warmer."""

    def __init__(self, path: Path, rows: npt.NDArray[np.int64], sizes: list[int]) -> None:
        self._function = _compiled().library_loop
        self._pack = iac_query.VariableRecordPack(path)
        self._codec = CODECS[self._pack.header["codec"]]
        native = self._pack.reader.native
        offsets, lengths = native.locate(rows)
        places = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        self._arrays = offsets + np.uint64(native.data_offset), lengths, places
        self._out = _memory(int(places[-1]))

    def run(self, threads: int) -> npt.NDArray[np.uint8]:
        """Reads and decodes all rows. Raises RuntimeError when one fails."""
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*self._arrays, self._out)]
        descriptor = self._pack.reader.native.descriptor
        count = ctypes.c_uint64(len(self._arrays[0]))
        if self._function(descriptor, self._codec, count, *pointers, ctypes.c_uint(threads)):
            raise RuntimeError("the library loop could not read every record")
        return self._out


@functools.cache
def _memory(size: int) -> npt.NDArray[np.uint8]:
    return np.zeros(size, np.uint8)


def _compiled() -> ctypes.CDLL:
    source = _HERE / "library_loop.cpp"
    library = _HERE.parent / "build" / "library_loop.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(exist_ok=True)
        asked = ["pkg-config", "--cflags", "--libs", "libzstd", "libbrotlidec"]
        flags = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
        compiler = ["g++", "-std=c++20", "-O3", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*compiler, str(source), *flags, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
