"""Small packs for tests, whole ones and ones made wrong on purpose."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iac_query as iac

DATA = Path(__file__).parent / "data"
MANIFEST = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
#: The packs there whose records are images.
IMAGES = sorted(
    name
    for name, entry in MANIFEST.items()
    if any(record.get("decoded", {}).get("kind") == "ndarray" for record in entry["records"])
    and "feature_dim" not in entry["header"]
)
HEADER_BYTES = 65536


def slide_table(count: int = 1) -> pa.Table:
    return pa.table(
        {
            "slide_idx": pa.array(range(count), pa.uint8()),
            "slide_id": [f"slide-{i:03}" for i in range(count)],
            "patient_id": [f"patient-{i:03}" for i in range(count)],
        }
    )


def item_table(count: int) -> pa.Table:
    return pa.table(
        {
            "item_id": pa.array([f"item-{i}" for i in range(count)], pa.string()),
            "slide_idx": pa.array([0] * count, pa.uint8()),
        }
    )


def payloads_of(count: int, size: int = 40) -> list[bytes]:
    return [(f"record {i} " * (1 + size // 9)).encode()[: size + i % 7] for i in range(count)]


def write_pack(path: Path, payloads: list[bytes], index: pa.Table | None = None, **header: Any):
    """A pack of raw payloads; ``header`` goes over the usual one."""
    index = item_table(len(payloads)) if index is None else index
    fields = {"payload_type": "raw_bytes", "codec": "none", **header}
    iac.build_pack(path, fields, slide_table(), index, payloads, overwrite=True)
    return path


def write_encoded(path: Path, objects: list[bytes], codec: str, **params: Any) -> Path:
    """A pack of objects encoded by a codec."""
    iac.VariableRecordPack.build(
        path,
        payload_type="bytes",
        slide_table=slide_table(),
        index_table=item_table(len(objects)),
        objects=objects,
        codec=iac.Codec.create(codec, **params),
        overwrite=True,
    )
    return path


def write_matrix(path: Path, matrix: Any, **header: Any) -> Path:
    """A pack of a matrix, with further fields in its header."""
    iac.FixedRecordPack.build(
        path,
        payload_type="embeddings",
        slide_table=slide_table(),
        index_table=item_table(len(matrix)),
        matrix=matrix,
        extra_header=header,
        overwrite=True,
    )
    return path


def ipc_stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def segments_of(path: Path) -> tuple[dict[str, Any], bytes, bytes, bytes]:
    """Header fields, both tables' streams and the data of a pack."""
    raw = Path(path).read_bytes()
    header = json.loads(raw[16 : 16 + struct.unpack_from("<I", raw, 8)[0]])
    parts = [
        raw[header[f"{name}_offset"] :][: header[f"{name}_length"]]
        for name in ("slide_table", "index_table", "data")
    ]
    return header, *parts


def layout_header(slides: bytes, index: bytes, data: bytes, **fields: Any) -> dict[str, Any]:
    return {
        "payload_type": "raw_bytes",
        "codec": "none",
        "format": "IatroCache",
        "version": 2,
        "header_bytes": HEADER_BYTES,
        "slide_table_offset": HEADER_BYTES,
        "slide_table_length": len(slides),
        "index_table_offset": HEADER_BYTES + len(slides),
        "index_table_length": len(index),
        "data_offset": HEADER_BYTES + len(slides) + len(index),
        "data_length": len(data),
        **fields,
    }


def fixed_header(text: bytes, **binary: Any) -> bytes:
    """The 64 KiB at the start. ``binary``: magic, length, version, padding."""
    head = binary.get("magic", iac.MAGIC)
    head += struct.pack("<II", binary.get("length", len(text)), binary.get("version", 2))
    return (head + text).ljust(HEADER_BYTES, binary.get("padding", b"\0"))


def replaced(name: str, row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    """A change of one value of a table."""

    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, pa.array(values, table.schema.field(at).type))

    return change


def assemble(
    path: Path,
    index: pa.Table | bytes,
    data: bytes = b"",
    slides: pa.Table | bytes | None = None,
    rows: tuple[int, int] = (1, 0),
    **fields: Any,
) -> Path:
    """A pack put together by hand, whatever its parts are."""
    slides = slide_table() if slides is None else slides
    num_slides = rows[0] if isinstance(slides, bytes) else slides.num_rows
    num_records = rows[1] if isinstance(index, bytes) else index.num_rows
    slides = slides if isinstance(slides, bytes) else ipc_stream(slides)
    index = index if isinstance(index, bytes) else ipc_stream(index)
    counts = {"num_slides": num_slides, "num_records": num_records}
    header = layout_header(slides, index, data, **{**counts, **fields})
    path.write_bytes(fixed_header(json.dumps(header).encode()) + slides + index + data)
    return path


def ten_bytes(folder: Path, index: pa.Table | bytes, data: bytes = b"abcdefghij", **fields) -> Path:
    """A pack of this index over ten bytes of data."""
    return assemble(folder / "x.iac", index, data, **fields)


def layout_index(offsets: Any, lengths: Any, crc32s: Any = None, **columns: Any) -> pa.Table:
    """An index table whose layout columns are as given: lists get the usual types."""

    def column(values: Any, type: pa.DataType) -> Any:
        return values if isinstance(values, pa.Array) else pa.array(values, type)

    columns = {**columns, "offset": column(offsets, pa.uint64())}
    columns["length"] = column(lengths, pa.uint32())
    if crc32s is not None:
        columns["crc32"] = column(crc32s, pa.uint32())
    return pa.table(columns)


def bytes_read(call: Callable[[], Any]) -> int:
    """How many bytes this process read from files during the call."""

    def counter() -> int:
        text = Path("/proc/self/io").read_text()
        return int(text.split("rchar: ")[1].split()[0])

    before = counter()
    idle = counter() - before
    before = counter()
    call()
    return counter() - before - idle


def patch(path: Path, at: int, data: bytes) -> None:
    """Overwrites bytes of a file in place."""
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def flip_payload(path: Path, row: int) -> None:
    """Damages the first byte of a record."""
    with iac.PackReader(path) as reader:
        start = reader.header["data_offset"] + reader.index_table["offset"][row].as_py()
        byte = reader.read_payload(row, verify=False)[0]
    patch(path, start, bytes([byte ^ 0x40]))


def assert_same_table(ours: pa.Table, other: pa.Table) -> None:
    """Equal in schema, metadata and every value, NaN included."""
    assert ours.schema.equals(other.schema, check_metadata=True), f"{ours.schema}\n{other.schema}"
    ours.validate(full=True)
    assert ours.num_rows == other.num_rows
    for name, a, b in zip(other.column_names, ours.columns, other.columns, strict=True):
        assert repr(a.to_pylist()) == repr(b.to_pylist()), name


def build(path: Path, *, index=None, payloads=None, header=None, **options) -> Path:
    """A pack of three records, but for what the test changes."""
    iac.build_pack(
        path,
        {"payload_type": "raw_bytes"} if header is None else header,
        slide_table(),
        item_table(3) if index is None else index,
        payloads_of(3) if payloads is None else payloads,
        **options,
    )
    return path


def refuses(path, message: str | None = None) -> None:
    """Opening is a PackError that names the file."""
    with pytest.raises(iac.PackError, match=message) as raised:
        iac.PackReader(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert raised.value.pack == str(path)


def reads(path, payloads=None) -> None:
    """The pack reads as if nothing were wrong."""
    payloads = payloads_of(10) if payloads is None else payloads
    with iac.PackReader(path) as reader:
        assert reader.read_payloads(range(len(reader))) == payloads
        assert reader.index_table.num_rows == len(payloads)
        assert reader.slide_table.num_rows == 1


#: Something of all that a header can hold.
EVERY_HEADER_VALUE = {
    "payload_type": "raw_bytes",
    "codec": "none",
    "text": 'é "quoted" \\ \n\t\x01\x7f\u2028 日本 🩺',
    "nested": {"z": [1, [], {}, None, True, False], "a": {"b": [{"c": -1}]}},
    "numbers": [0, -1, 2**64 - 1, -(2**63), 1.5, 0.1, 1e16, 1e-5, -0.0, 123456.789, 1e300],
    "Zed": 1,
    "ä": 2,
    "": "an empty key",
}
