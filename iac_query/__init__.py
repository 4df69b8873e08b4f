"""Query ``.iac`` packs with SQL, Polars and Arrow, and decode just the rows that were picked."""

from ._native import FORMAT_VERSION, HEADER_BYTES, MAGIC, __version__
from .batch import ContiguousRecordBatch
from .build import (
    build_pack,
    build_pack_data_segment,
    build_pack_data_segment_from_file,
    build_pack_streaming,
)
from .codec import Codec
from .cohorts.write_pack import write_pack
from .decoding.decode import decode
from .decoding.iter_decode import iter_decode
from .engines.duckdb import connect, load
from .errors import (
    ChecksumError,
    CodecError,
    PackError,
    PackIndexError,
    PackNotFoundError,
    RecordFailure,
    StaleReferenceError,
)
from .fixed import FixedRecordPack
from .images import ImageBatch
from .notebook import load_ipython_extension as load_ipython_extension
from .notebook import unload_ipython_extension as unload_ipython_extension
from .pack import PackReader, iter_payloads, read_header, read_tables
from .remote import RemoteOptions
from .scan import scan_arrow, scan_iac
from .variable import VariableRecordPack

__all__ = [
    "FORMAT_VERSION",
    "HEADER_BYTES",
    "MAGIC",
    "ChecksumError",
    "Codec",
    "CodecError",
    "ContiguousRecordBatch",
    "FixedRecordPack",
    "ImageBatch",
    "PackError",
    "PackIndexError",
    "PackNotFoundError",
    "PackReader",
    "RecordFailure",
    "RemoteOptions",
    "StaleReferenceError",
    "VariableRecordPack",
    "__version__",
    "build_pack",
    "build_pack_data_segment",
    "build_pack_data_segment_from_file",
    "build_pack_streaming",
    "connect",
    "decode",
    "iter_decode",
    "iter_payloads",
    "load",
    "read_header",
    "read_tables",
    "scan_arrow",
    "scan_iac",
    "write_pack",
]
