"""Random packs, and random conditions in the words of each engine."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import iac_query as iac

WORDS = ["", "alpha", "beta", "gamma ray", "Ünïcode", "a text of more than twelve bytes"]
COLUMNS = {
    "k": (pa.int32(), lambda chance: chance.randrange(-3, 8)),
    "big": (pa.int64(), lambda chance: chance.choice([-(2**62), -1, 0, 2**40, 2**62])),
    "tiny": (pa.int8(), lambda chance: chance.choice([-128, 0, 127])),
    "small": (pa.uint8(), lambda chance: chance.randrange(4)),
    "medium": (pa.uint16(), lambda chance: chance.choice([0, 65535])),
    "wide": (pa.uint32(), lambda chance: chance.choice([0, 1, 2**32 - 1])),
    "huge": (pa.uint64(), lambda chance: chance.choice([0, 2**63, 2**64 - 1])),
    "f": (pa.float64(), lambda chance: chance.choice([-1.5, 0.0, 0.25, 1e300])),
    "single": (pa.float32(), lambda chance: chance.choice([-1.5, 0.0, 0.25])),
    "flag": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "text": (pa.string(), lambda chance: chance.choice(WORDS)),
    "long": (pa.large_string(), lambda chance: chance.choice(WORDS)),
    "code": (pa.dictionary(pa.int8(), pa.string()), lambda chance: chance.choice(WORDS)),
    "blob": (pa.binary(), lambda chance: chance.choice([b"", b"\0\xff", b"abc"])),
    "sha": (pa.binary(2), lambda chance: chance.choice([b"\0\0", b"\0\xff", b"ab"])),
    "day": (pa.date32(), lambda chance: dt.date(2020, 1, 1 + chance.randrange(5))),
    "at": (pa.timestamp("us"), lambda chance: dt.datetime(2020, 1, 1, chance.randrange(5), 30)),
    "zoned": (
        pa.timestamp("us", "UTC"),
        lambda chance: dt.datetime(2020, 1, 1, chance.randrange(5), 30, tzinfo=dt.UTC),
    ),
    "time": (pa.time64("us"), lambda chance: dt.time(chance.randrange(5), 30)),
    "marks": (pa.list_(pa.int16()), lambda chance: [1, None, 3][: chance.randrange(4)]),
    "place": (
        pa.struct({"x": pa.int32(), "name": pa.string()}),
        lambda chance: {"x": chance.choice([None, 1, 2]), "name": chance.choice(WORDS)},
    ),
    "pair": (pa.list_(pa.float32(), 2), lambda chance: [chance.choice([None, 0.5]), 1.0]),
    "price": (pa.decimal128(9, 2), lambda chance: decimal.Decimal(chance.randrange(500)) / 100),
}
SLIDE_COLUMNS = {
    "slide_id": (pa.string(), lambda chance: f"s{chance.randrange(5)}"),
    "age": (pa.int16(), lambda chance: chance.randrange(20, 90)),
}
PAYLOADS = ["", "no tumour seen", "tumour at the margin", "margins free", "résection"]


def _values(chance: random.Random, columns: dict[str, Any], names, count: int) -> dict[str, Any]:
    return {
        name: pa.array(
            [None if chance.random() < 0.15 else columns[name][1](chance) for _ in range(count)],
            columns[name][0],
        )
        for name in names
    }


def write_random_pack(chance: random.Random, path: Path) -> pa.Table:
    """A pack, and the table that scans are to show, put together without any scan."""
    count = chance.choice([0, 1, 7, 40, 120])
    names = chance.sample(sorted(COLUMNS), chance.randrange(3, len(COLUMNS)))
    index = pa.table(_values(chance, COLUMNS, names, count))
    slides = chance.choice([1, 3])
    keys = chance.sample(range(10), slides)
    slide_of = [chance.choice([*keys, 11, None]) for _ in range(count)]
    key = chance.choice(["slide_idx", "series_idx"])
    slide_table = pa.table(
        {
            key: pa.array(keys, pa.uint8()),
            **_values(chance, SLIDE_COLUMNS, SLIDE_COLUMNS, slides),
        }
    )
    index = index.append_column(key, pa.array(slide_of, pa.int16()))
    texts = [chance.choice(PAYLOADS) for _ in range(count)]
    iac.VariableRecordPack.build(
        path,
        payload_type="notes",
        slide_table=slide_table,
        index_table=index,
        objects=[text.encode() for text in texts],
        codec=iac.Codec.create(chance.choice(["none", "zstd"])),
    )
    at = {value: i for i, value in enumerate(keys)}
    joined = slide_table.drop_columns(key).take(
        pa.array([at.get(value) for value in slide_of], pa.int64())
    )
    stamps = iac.PackReader(path).index_table["crc32"].to_pylist()
    records = [{"pack": str(path), "row": i, "stamp": stamp} for i, stamp in enumerate(stamps)]
    table = pa.table(
        {
            **dict(zip(index.column_names, index.columns, strict=True)),
            **dict(zip(joined.column_names, joined.columns, strict=True)),
            "record": pa.array(records, iac.scan_arrow(path).schema.field("record").type),
            "payload": pa.array(texts, pa.large_string()),
        }
    )
    if "code" in table.column_names:
        position = table.schema.get_field_index("code")
        table = table.set_column(position, "code", table["code"].cast(pa.string()))
    return table


@dataclass
class Condition:
    """One condition in the words of SQL, Polars and pyarrow."""

    sql: str
    polars: pl.Expr
    arrow: pc.Expression

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            f"({self.sql} AND {other.sql})", self.polars & other.polars, self.arrow & other.arrow
        )

    def __or__(self, other: Condition) -> Condition:
        return Condition(
            f"({self.sql} OR {other.sql})", self.polars | other.polars, self.arrow | other.arrow
        )

    def __invert__(self) -> Condition:
        return Condition(f"(NOT {self.sql})", ~self.polars, ~self.arrow)


def random_condition(chance: random.Random, table: pa.Table, depth: int = 3) -> Condition:
    """A condition over columns of a table, of some depth."""
    kind = chance.random() if depth else 1
    if kind < 0.35:
        parts = [random_condition(chance, table, depth - 1) for _ in range(2)]
        return parts[0] & parts[1]
    if kind < 0.6:
        return random_condition(chance, table, depth - 1) | random_condition(
            chance, table, depth - 1
        )
    if kind < 0.7:
        return ~random_condition(chance, table, depth - 1)
    name = chance.choice(table.column_names)
    return _leaf(chance, name, table.schema.field(name).type, table[name].to_pylist())


OPERATORS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _leaf(chance: random.Random, name: str, type: pa.DataType, values: list[Any]) -> Condition:
    sql, polars, arrow = f'"{name}"', pl.col(name), pc.field(name)
    if name == "payload":
        sql = "iac_text(record)"
    if name == "record":
        row = chance.randrange(50)
        return Condition(
            f"record.row < {row}", polars.struct.field("row") < row, pc.field("record", "row") < row
        )
    if pa.types.is_struct(type):
        x = chance.randrange(3)
        return Condition(
            f"({sql}.x = {x})", polars.struct.field("x") == x, pc.field(name, "x") == x
        )
    if chance.random() < 0.2:
        return Condition(f"({sql} IS NULL)", polars.is_null(), arrow.is_null())
    if pa.types.is_boolean(type) and chance.random() < 0.5:
        return Condition(sql, polars, arrow)
    present = [value for value in values if value is not None]
    if not present or pa.types.is_null(type):
        return Condition(f"({sql} IS NOT NULL)", polars.is_not_null(), arrow.is_valid())
    if pa.types.is_list(type):
        most = chance.randrange(4)
        lengths = pc.list_value_length(arrow)
        return Condition(f"(len({sql}) <= {most})", polars.list.len() <= most, lengths <= most)
    if pa.types.is_fixed_size_list(type):
        return Condition(f"({sql} IS NOT NULL)", polars.is_not_null(), arrow.is_valid())
    value = chance.choice(present)
    if isinstance(value, str) and chance.random() < 0.4:
        part = value[:3]
        return Condition(
            f"contains({sql}, '{part}')",
            polars.str.contains(part, literal=True),
            pc.match_substring(arrow, part),
        )
    operator, compare = chance.choice(list(OPERATORS.items()))
    literal = pl.lit(value, dtype=pl.from_arrow(pa.array([value], type)).dtype)
    return Condition(
        f"({sql} {operator} {_sql(value)}::{_sql_type(type)})",
        compare(polars, literal),
        compare(arrow, pa.scalar(value, type)),
    )


def _sql(value: Any) -> str:
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
    return f"'{value}'"


def _sql_type(type: pa.DataType) -> str:
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    return {
        **{"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"},
        **{"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"},
        **{"float": "FLOAT", "double": "DOUBLE", "bool": "BOOLEAN", "string": "VARCHAR"},
        **{"large_string": "VARCHAR", "binary": "BLOB", "large_binary": "BLOB"},
        **{"fixed_size_binary[2]": "BLOB", "date32[day]": "DATE", "time64[us]": "TIME"},
        **{"timestamp[us]": "TIMESTAMP", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"},
    }[str(type)]
