"""The C++ core. Private: use the names of iac_query."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer as BytesLike

__version__: str
MAGIC: bytes
FORMAT_VERSION: int
HEADER_BYTES: int
PIXEL_TYPES: tuple[str, ...]

class Buffer:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class MutableBuffer:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Batch:
    @property
    def count(self) -> int: ...
    @property
    def data(self) -> Buffer: ...
    @property
    def offsets(self) -> Buffer: ...
    @property
    def validity(self) -> bytes | None: ...
    @property
    def positions(self) -> npt.NDArray[np.int64]: ...
    @property
    def failures(self) -> list[tuple[int, Exception]]: ...
    @property
    def unchecked(self) -> int: ...
    @property
    def images(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]] | None: ...
    def take_data(self) -> MutableBuffer: ...

class Codec:
    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> str: ...
    def decode_many(
        self,
        payloads: list[Any],
        workers: int,
        on_error: str,
        max_record_bytes: int,
        max_batch_bytes: int,
        max_samples: int,
    ) -> Batch: ...

class ByteCodec(Codec):
    def encode(self, object: BytesLike) -> bytes: ...
    def encode_many(self, objects: list[Any], workers: int) -> list[bytes]: ...

class ImageCodec(Codec):
    def encode_many(self, arrays: list[npt.NDArray[Any]], workers: int) -> list[bytes]: ...
    def image_shape(self, payload: BytesLike) -> tuple[int, int, int, str]: ...
    def check_whole(self, payloads: list[Any], workers: int) -> list[tuple[int, int, int, str]]: ...

def make_codec(name: str, params: str) -> ByteCodec | ImageCodec: ...
def make_decoder(name: str, params: str) -> ByteCodec | ImageCodec: ...
def parse_documents(
    payloads: BytesLike,
    offsets: npt.NDArray[np.uint64],
    payload_type: str,
    workers: int,
    path: bytes,
    rows: npt.NDArray[np.int64],
) -> list[tuple[str, str, list[tuple[Any, ...]]] | Exception]: ...
def document_columns(
    payloads: BytesLike,
    offsets: npt.NDArray[np.uint64],
    payload_type: str,
    workers: int,
    path: bytes,
    rows: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.int64],
    dict[str, tuple[Buffer, npt.NDArray[np.int64]]],
    npt.NDArray[np.int32],
    list[tuple[int, Exception]],
]: ...
def stop_requested() -> bool: ...

class StopSource:
    def request_stop(self) -> bool: ...
    def stops_this_thread(self) -> None: ...

def add_area_sums(
    sums: npt.NDArray[np.float64],
    tiles: list[npt.NDArray[Any]],
    places: npt.NDArray[np.int64],
    start: tuple[float, float],
    scale: tuple[float, float],
    background: list[float],
    workers: int,
) -> None: ...
def read_tiles(
    pack: Pack,
    out: npt.NDArray[np.uint8] | npt.NDArray[np.uint16],
    rows: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    tile_size: tuple[int, int],
    workers: int,
) -> None: ...

class Pack:
    def __init__(self, path: bytes) -> None: ...
    @staticmethod
    def from_source(
        read: Callable[[int, int], BytesLike],
        ask_version: Callable[[], str] | None,
        size: int,
        version: str,
        path: str,
        gap: int,
        group: int,
        at_once: int,
    ) -> Pack: ...
    @property
    def path(self) -> str: ...
    @property
    def header_json(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def decodes_to_images(self) -> bool: ...
    @property
    def is_dicom(self) -> bool: ...
    @property
    def num_records(self) -> int: ...
    @property
    def num_slides(self) -> int: ...
    @property
    def data_offset(self) -> int: ...
    @property
    def descriptor(self) -> int: ...
    def table(self, name: str, columns: list[str] | None) -> Any: ...
    def table_bytes(self, name: str) -> bytes: ...
    def locate(
        self, rows: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...
    def stamps(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]: ...
    def read(
        self,
        rows: npt.NDArray[np.int64],
        decode: bool,
        workers: int,
        verify: bool,
        on_error: str,
        max_record_bytes: int,
        max_batch_bytes: int,
        max_samples: int,
        text: bool = False,
        images: bool = False,
    ) -> Batch: ...
    def read_one(self, row: int, decode: bool, verify: bool, max_record_bytes: int) -> bytes: ...
    def dicom_tags(
        self,
        rows: npt.NDArray[np.int64],
        tag: str | None,
        verify: bool,
        on_error: str,
    ) -> Batch: ...
    def dicom_modality_luts(
        self, rows: npt.NDArray[np.int64], verify: bool
    ) -> list[tuple[float, float] | tuple[npt.NDArray[np.uint16], int, int] | None]: ...
    def dicom_patient_ids(self, rows: npt.NDArray[np.int64], verify: bool) -> list[str | None]: ...
    def read_data(self, offset: int, length: int) -> bytes: ...

class Writer:
    def __init__(
        self,
        path: bytes,
        overwrite: bool,
        header_json: str,
        slide_table_length: int,
        index_table_length: int,
        num_slides: int,
        num_records: int,
    ) -> None: ...
    def append(self, payloads: list[Any]) -> None: ...
    def append_all(self, data: BytesLike, offsets: npt.NDArray[np.int64]) -> None: ...
    def append_data(self, data: BytesLike) -> None: ...
    @property
    def offsets(self) -> npt.NDArray[np.uint64]: ...
    @property
    def lengths(self) -> npt.NDArray[np.uint32]: ...
    @property
    def crc32s(self) -> npt.NDArray[np.uint32]: ...
    @property
    def data_length(self) -> int: ...
    def abandon(self) -> None: ...
    def finish(self, slide_table: BytesLike, index_table: BytesLike) -> None: ...
