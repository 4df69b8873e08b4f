"""One column of each Arrow type, with NULLs at every level, and what DuckDB makes of it."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

UTC = dt.UTC
D = decimal.Decimal


@dataclass
class Column:
    array: pa.Array
    duckdb_type: str
    values: list[Any] | None = None  # where to_pylist() does not give what DuckDB does
    sql: str = "{}"  # how to look at a value that Python cannot hold exactly

    def expected(self) -> list[Any]:
        values = self.array.to_pylist() if self.values is None else self.values
        return [plain(value) for value in values]


def plain(value: Any) -> Any:
    """A value with what differs between Arrow and DuckDB in Python alone taken away."""
    if isinstance(value, tuple | list):
        if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return {key: plain(item) for key, item in value}  # Arrow's map
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float) and value != value:
        return "NaN"
    return value


def _int(type: pa.DataType, low: int, high: int, name: str) -> Column:
    return Column(pa.array([0, 1, None, low, high], type), name)


def _stamp(unit: str, name: str, units: int) -> Column:
    values = [0, None, 1_700_000_000 * units + units // 3, -1, 5 * units]
    nanoseconds = [None if value is None else value * (10**9 // units) for value in values]
    return Column(pa.array(values, pa.timestamp(unit)), name, nanoseconds, "epoch_ns({})")


LONG = "a text that is much longer than twelve bytes, äöü"
TEXTS = ["", "short", None, "exactly12345", "thirteen12345", LONG, "日本語", "nul\0inside", LONG]
BYTES = [None if text is None else text.encode() + b"\xff" for text in TEXTS]


def _union(mode: Callable[..., pa.Array]) -> Column:
    numbers, texts = pa.array([1, None, 3], pa.int32()), pa.array(["x", LONG, None])
    if mode is pa.UnionArray.from_dense:
        types, offsets = [0, 1, 1, 0, 0, 1], [0, 0, 1, 1, 2, 2]
        array = mode(
            pa.array(types, pa.int8()), pa.array(offsets, pa.int32()), [numbers, texts], ["n", "t"]
        )
    else:
        types = [0, 1, 1, 0, 0, 1]
        numbers = pa.array([1, 0, 0, None, 3, 0], pa.int32())
        texts = pa.array(["", "x", LONG, "", "", None])
        array = mode(pa.array(types, pa.int8()), [numbers, texts], ["n", "t"])
    expected = [1, "x", LONG, None, 3, None]
    return Column(array, "UNION(n INTEGER, t VARCHAR)", expected)


def _columns() -> dict[str, Column]:
    struct = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
    structs = [{"x": 1, "y": {"z": LONG}}, None, {"x": None, "y": None}, {"x": 2, "y": {"z": None}}]
    lists = [["a", None, LONG], [], None, [LONG, LONG], ["b"]]
    numbers = [[1, 2, None], [], None, [3], [4, 5, 6, 7]]
    maps = [[("k", 1), (LONG, None)], None, [("z", 3)]]
    times = [dt.time(0), dt.time(23, 59, 59), None, dt.time(1, 2, 3)]
    columns = {
        "null": Column(pa.nulls(3), '"NULL"'),
        "bool": Column(pa.array([True, None, False, True, True]), "BOOLEAN"),
        "int8": _int(pa.int8(), -128, 127, "TINYINT"),
        "int16": _int(pa.int16(), -(2**15), 2**15 - 1, "SMALLINT"),
        "int32": _int(pa.int32(), -(2**31), 2**31 - 1, "INTEGER"),
        "int64": _int(pa.int64(), -(2**63), 2**63 - 1, "BIGINT"),
        "uint8": _int(pa.uint8(), 0, 255, "UTINYINT"),
        "uint16": _int(pa.uint16(), 0, 2**16 - 1, "USMALLINT"),
        "uint32": _int(pa.uint32(), 0, 2**32 - 1, "UINTEGER"),
        "uint64": _int(pa.uint64(), 0, 2**64 - 1, "UBIGINT"),
        "half": Column(
            pa.array(
                [np.float16(v) for v in (0, -0.0, 1.5, 6e-8, 65504, -2.5, "inf", "nan")] + [None],
                pa.float16(),
            ),
            "FLOAT",
        ),
        "float": Column(
            pa.array([0.0, None, 1.5, float("inf"), float("nan")], pa.float32()), "FLOAT"
        ),
        "double": Column(pa.array([1e300, None, -0.5, float("nan")], pa.float64()), "DOUBLE"),
        "string": Column(pa.array(TEXTS), "VARCHAR"),
        "large_string": Column(pa.array(TEXTS, pa.large_string()), "VARCHAR"),
        "string_view": Column(pa.array(TEXTS, pa.string_view()), "VARCHAR"),
        "binary": Column(pa.array(BYTES, pa.binary()), "BLOB"),
        "large_binary": Column(pa.array(BYTES, pa.large_binary()), "BLOB"),
        "binary_view": Column(pa.array(BYTES, pa.binary_view()), "BLOB"),
        "fixed_binary": Column(pa.array([b"abcd", None, b"\0\1\2\3"], pa.binary(4)), "BLOB"),
        "fixed_binary_20": Column(pa.array([b"a" * 20, None, b"b" * 20], pa.binary(20)), "BLOB"),
        "date32": Column(pa.array([dt.date(2020, 2, 29), None, dt.date(1, 1, 1)]), "DATE"),
        "date64": Column(
            pa.array([dt.date(2020, 2, 29), None, dt.date(1960, 1, 1)], pa.date64()), "DATE"
        ),
        "time_s": Column(pa.array(times, pa.time32("s")), "TIME"),
        "time_ms": Column(pa.array([*times, dt.time(1, 2, 3, 4000)], pa.time32("ms")), "TIME"),
        "time_us": Column(pa.array([*times, dt.time(1, 2, 3, 4)], pa.time64("us")), "TIME"),
        "time_ns": Column(
            pa.array([0, None, 1_002_003_004], pa.int64()).cast(pa.time64("ns")),
            "TIME_NS",
            ["00:00:00", None, "00:00:01.002003004"],
            "{}::VARCHAR",
        ),
        "stamp_s": _stamp("s", "TIMESTAMP_S", 1),
        "stamp_ms": _stamp("ms", "TIMESTAMP_MS", 10**3),
        "stamp_us": _stamp("us", "TIMESTAMP", 10**6),
        "stamp_ns": _stamp("ns", "TIMESTAMP_NS", 10**9),
        **{
            f"zoned_{unit}": Column(
                pa.array([0, None, -1, 7], pa.timestamp(unit, "Europe/Berlin")),
                "TIMESTAMP WITH TIME ZONE",
                [None if v is None else v * 10**6 // units for v in (0, None, -1, 7)],
                "epoch_us({})",
            )
            for unit, units in [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)]
        },
        **{
            f"duration_{unit}": Column(
                pa.array([0, None, 90_061 * units], pa.duration(unit)),
                "INTERVAL",
                [dt.timedelta(0), None, dt.timedelta(seconds=90_061)],
            )
            for unit, units in [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)]
        },
        "interval": Column(
            pa.array([(1, 2, 3_000_000), None, (-14, 0, 0)], pa.month_day_nano_interval()),
            "INTERVAL",
            ["1 month 2 days 00:00:00.003", None, "-1 year -2 months"],
            "{}::VARCHAR",
        ),
        "decimal_4": Column(
            pa.array([D("1.23"), None, D("-99.99")], pa.decimal128(4, 2)), "DECIMAL(4,2)"
        ),
        "decimal_9": Column(pa.array([D("123456.789"), None], pa.decimal128(9, 3)), "DECIMAL(9,3)"),
        "decimal_18": Column(
            pa.array([D(10**17), None, D(-1)], pa.decimal128(18, 0)), "DECIMAL(18,0)"
        ),
        "decimal_38": Column(
            pa.array([D(10**37), None, D(-(10**37)), D(-1)], pa.decimal128(38, 0)), "DECIMAL(38,0)"
        ),
        "dictionary": Column(pa.array(TEXTS).dictionary_encode(), "VARCHAR"),
        "small_dictionary": Column(
            pa.DictionaryArray.from_arrays(
                pa.array([1, 0, None, 2], pa.uint8()), ["u", None, LONG]
            ),
            "VARCHAR",
        ),
        "number_dictionary": Column(pa.array([5, None, 7, 5]).dictionary_encode(), "BIGINT"),
        "list": Column(pa.array(lists), "VARCHAR[]"),
        "large_list": Column(pa.array(numbers, pa.large_list(pa.int32())), "INTEGER[]"),
        "list_view": Column(
            pa.ListViewArray.from_arrays(
                pa.array([4, 0, 1, 0], pa.int32()),
                pa.array([1, 3, 4, 0], pa.int32()),
                pa.array(["v", LONG, "w", None, "x"]),
                mask=pa.array([False, False, False, True]),
            ),
            "VARCHAR[]",
        ),
        "large_list_view": Column(pa.array(numbers, pa.large_list_view(pa.int16())), "SMALLINT[]"),
        "list_of_lists": Column(pa.array([numbers, None, [], [None, [9]]]), "BIGINT[][]"),
        "fixed_list": Column(
            pa.array([[1.0, 2.0], None, [None, 4.0]], pa.list_(pa.float32(), 2)), "FLOAT[2]"
        ),
        "fixed_list_0": Column(pa.array([[], None], pa.list_(pa.int8(), 0)), "TINYINT[]"),
        "fixed_texts": Column(
            pa.array([["a", LONG], None], pa.list_(pa.string(), 2)), "VARCHAR[2]"
        ),
        "fixed_of_fixed": Column(
            pa.array([[[1, 2], None], None], pa.list_(pa.list_(pa.int32(), 2), 2)), "INTEGER[2][2]"
        ),
        "struct": Column(pa.array(structs, struct), "STRUCT(x BIGINT, y STRUCT(z VARCHAR))"),
        "list_of_structs": Column(
            pa.array([structs, None, []], pa.list_(struct)),
            "STRUCT(x BIGINT, y STRUCT(z VARCHAR))[]",
        ),
        "struct_of_list": Column(
            pa.array(
                [{"a": [1, None]}, None, {"a": None}], pa.struct([("a", pa.list_(pa.int32()))])
            ),
            "STRUCT(a INTEGER[])",
        ),
        "map": Column(pa.array(maps, pa.map_(pa.string(), pa.int64())), "MAP(VARCHAR, BIGINT)"),
        "dense_union": _union(pa.UnionArray.from_dense),
        "sparse_union": _union(pa.UnionArray.from_sparse),
        "run_ends": Column(
            pa.RunEndEncodedArray.from_arrays(
                pa.array([2, 3, 6], pa.int32()), pa.array(["r", None, LONG])
            ),
            "VARCHAR",
        ),
        "list_of_dictionary": Column(
            pa.ListArray.from_arrays([0, 2, 2, 3], pa.array(["d", None, LONG]).dictionary_encode()),
            "VARCHAR[]",
        ),
    }
    if hasattr(pa, "decimal32"):
        columns["decimal32"] = Column(
            pa.array([D("1.5"), None], pa.decimal32(7, 1)), "DECIMAL(7,1)"
        )
        columns["decimal64"] = Column(
            pa.array([D("-2.5"), None], pa.decimal64(15, 1)), "DECIMAL(15,1)"
        )
    return columns


COLUMNS = _columns()
