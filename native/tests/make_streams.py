"""Makes the Arrow streams under data/ that the native tests read: make_streams.py

They hold what the tests cannot write themselves. The files are kept, so this runs only when a
stream is added.
"""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

DATA = Path(__file__).parent / "data"


def write(name, table_or_batches, schema=None, **options):
    """Write one stream."""
    if isinstance(table_or_batches, pa.Table):
        schema, table_or_batches = table_or_batches.schema, table_or_batches.to_batches()
    with pa.OSFile(str(DATA / f"{name}.arrows"), "wb") as file:
        options = pa.ipc.IpcWriteOptions(**options)
        with pa.ipc.new_stream(file, schema, options=options) as writer:
            for batch in table_or_batches:
                writer.write_batch(batch)


def every_type() -> pa.Table:
    """Four rows, two of them null or short, of every type of the format."""
    day, time = dt.date(2024, 2, 29), dt.time(12, 30, 15)
    moment = dt.datetime(2024, 2, 29, 12, 30, 15)
    values = {
        "null": (pa.null(), [None] * 4),
        "bool": (pa.bool_(), [True, None, False, True]),
        "i8": (pa.int8(), [-128, None, 127, 0]),
        "u64": (pa.uint64(), [0, None, 2**64 - 1, 5]),
        "f16": (pa.float16(), [1.5, None, -2.0, 0.0]),
        "f64": (pa.float64(), [1.5, None, float("inf"), 0.0]),
        "dec32": (pa.decimal32(5, 2), [Decimal("1.25"), None, Decimal("-9.99"), Decimal(0)]),
        "dec128": (pa.decimal128(20, 3), [Decimal("1.125"), None, Decimal(-7), Decimal(0)]),
        "dec256": (pa.decimal256(50, 0), [Decimal(10) ** 40, None, Decimal(-7), Decimal(0)]),
        "date32": (pa.date32(), [day, None, day, day]),
        "date64": (pa.date64(), [day, None, day, day]),
        "time32": (pa.time32("s"), [time, None, time, time]),
        "time64": (pa.time64("ns"), [time, None, time, time]),
        "timestamp": (pa.timestamp("us", "Europe/Berlin"), [moment, None, moment, moment]),
        "duration": (pa.duration("ms"), [1, None, -5, 0]),
        "interval": (pa.month_day_nano_interval(), [(1, 2, 3), None, (0, 0, 0), (-1, 0, 9)]),
        "utf8": (pa.utf8(), ["a", None, "é日🩺", ""]),
        "large_utf8": (pa.large_utf8(), ["a", None, "é日🩺", ""]),
        "utf8_view": (pa.string_view(), ["short", None, "longer than twelve bytes: é", ""]),
        "binary": (pa.binary(), [b"\xff", None, b"", b"abc"]),
        "large_binary": (pa.large_binary(), [b"\xff", None, b"", b"abc"]),
        "binary_view": (pa.binary_view(), [b"\xff", None, b"\xfe" * 40, b"abc"]),
        "fixed_binary": (pa.binary(3), [b"abc", None, b"\0\0\0", b"xyz"]),
        "list": (pa.list_(pa.int32()), [[1, 2], None, [], [None]]),
        "large_list": (pa.large_list(pa.utf8()), [["x"], None, [], ["y", None]]),
        "fixed_list": (pa.list_(pa.float32(), 2), [[1, 2], None, [3, 4], [None, 5]]),
        "list_view": (pa.list_view(pa.int32()), [[1, 2], None, [], [3]]),
        "large_list_view": (pa.large_list_view(pa.int32()), [[1, 2], None, [], [3]]),
        "map": (pa.map_(pa.utf8(), pa.int32()), [[("k", 1)], None, [], [("l", None)]]),
        "struct": (pa.struct({"a": pa.int8(), "b": pa.utf8()}), [{"a": 1, "b": "x"}, None, {}, {}]),
    }
    arrays = {name: pa.array(data, kind) for name, (kind, data) in values.items()}
    kinds = pa.array([0, 1, 0, 1], pa.int8())
    children = [pa.array([1, 2, 3, 4], pa.int32()), pa.array(["a", "b", "c", "d"])]
    arrays["sparse_union"] = pa.UnionArray.from_sparse(kinds, children)
    places = pa.array([0, 0, 1, 1], pa.int32())
    arrays["dense_union"] = pa.UnionArray.from_dense(kinds, places, children)
    arrays["run_ends"] = pa.RunEndEncodedArray.from_arrays(
        pa.array([3, 4], pa.int32()), pa.array(["long", None])
    )
    arrays["dictionary"] = pa.array(["x", None, "y", "x"]).dictionary_encode()
    table = pa.table(arrays)
    notes = {i: {"note": f"field {i}"} for i in (0, 5)}
    for i, note in notes.items():
        table = table.cast(table.schema.set(i, table.schema.field(i).with_metadata(note)))
    return table.replace_schema_metadata({"key": "value", "ключ": "значение"})


def plain(rows: int) -> pa.Table:
    """Numbers, text and a list, in batches of different sizes."""
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "small": pa.array([i % 7 for i in range(rows)], pa.uint8()),
        "name": [f"name {i}" for i in range(rows)],
        "some": pa.array([None if i % 3 else i for i in range(rows)], pa.float64()),
        "list": [[i, i + 1] for i in range(rows)],
    }
    return pa.table(columns)


def batches_of(table: pa.Table, *sizes: int) -> list[pa.RecordBatch]:
    """Cut a table into batches of these sizes."""
    batches, at = [], 0
    for size in sizes:
        [batch] = table.slice(at, size).combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=table.schema)
        ]
        batches.append(batch)
        at += size
    return batches


def nested_dictionaries() -> tuple[list[pa.RecordBatch], pa.Schema]:
    """A dictionary within a list and one whose values hold another; both change between batches."""
    batches = []
    for words in (["a", "b"], ["c", "d"]):
        inner = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(words))
        outer = pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 0], pa.int16()), pa.StructArray.from_arrays([inner], ["word"])
        )
        listed = pa.ListArray.from_arrays(
            pa.array([0, 1, 2, 3], pa.int32()),
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.uint8()), pa.array(words)),
        )
        flat = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int32()), pa.array(words))
        batches.append(pa.record_batch({"flat": flat, "listed": listed, "outer": outer}))
    return batches, batches[0].schema


def main() -> None:
    """Write every stream."""
    DATA.mkdir(exist_ok=True)
    write("every_type", every_type())
    table = plain(100)
    batches = batches_of(table, 10, 0, 60, 30)
    write("plain", batches, table.schema)
    write("lz4", batches, table.schema, compression="lz4")
    write("zstd", batches, table.schema, compression="zstd")
    write("nested_dictionaries", *nested_dictionaries())
    words = [pa.array(w).dictionary_encode() for w in (["a", "b"], ["a", "b", "c"])]
    delta = [pa.record_batch({"word": w}) for w in words]
    write("delta_dictionary", delta, delta[0].schema, emit_dictionary_deltas=True)
    two = {"a": pa.array(["x", "y"]).dictionary_encode(), "b": pa.array([5, 6]).dictionary_encode()}
    write("two_dictionaries", pa.table(two))
    write("no_rows", [], table.schema)
    write("no_columns", [], pa.schema([]))
    both = pa.table({"offset": pa.array([1, 2], pa.uint64()), "id": [1, 2]})
    write("two_offsets", both.rename_columns(["offset", "offset"]))


if __name__ == "__main__":
    main()
