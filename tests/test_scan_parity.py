"""SQL, Polars in both engines, Arrow and plain pyarrow give the same rows."""

from __future__ import annotations

import collections
import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scan_cases import Condition, random_condition, write_random_pack

import iac_query as iac

SOURCES = 12
CASES_A_SOURCE = 25


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


@pytest.fixture(scope="module", params=range(SOURCES))
def source(request, tmp_path_factory) -> tuple[list[str], pa.Table]:
    """Paths of one or several packs, and the rows that they hold together."""
    chance = random.Random(request.param)
    folder: Path = tmp_path_factory.mktemp("packs")
    paths = [folder / f"{i}.iac" for i in range(chance.choice([1, 1, 4]))]
    tables = [write_random_pack(chance, path) for path in paths]
    whole = pa.concat_tables(tables, promote_options="default")
    return [str(path) for path in paths], whole


def selected(names: list[str]) -> str:
    return ", ".join(
        "iac_text(record) AS payload" if name == "payload" else f'"{name}"' for name in names
    )


def test_random_queries(con, source):
    paths, whole = source
    chance = random.Random(str(whole.schema))
    frame, scanned = iac.scan_iac(paths, as_="text"), iac.scan_arrow(paths, as_="text").schema
    assert sorted(scanned.names) == sorted(whole.column_names)
    columns = con.sql(f"FROM iac_scan({paths})").columns
    assert scanned.names == [*columns, "payload"]
    assert frame.collect_schema().names() == scanned.names

    for _ in range(CASES_A_SOURCE):
        names = chance.sample(scanned.names, chance.randrange(1, len(scanned.names) + 1))
        condition = None if chance.random() < 0.1 else random_condition(chance, whole)
        limit = chance.choice([None, None, 0, 1, 10])
        expected = whole if condition is None else whole.filter(condition.arrow)
        expected = expected.select(names).slice(0, limit).to_pylist()

        where = "" if condition is None else f"WHERE {condition.sql}"
        bound = "" if limit is None else f"LIMIT {limit}"
        query = f"SELECT {selected(names)} FROM iac_scan({paths}) {where} {bound}"
        assert con.sql(query).to_arrow_table().to_pylist() == expected, query

        lazy = frame if condition is None else frame.filter(condition.polars)
        lazy = lazy.select(names) if limit is None else lazy.select(names).head(limit)
        for engine in ("in-memory", "streaming"):
            found = lazy.collect(engine=engine).to_arrow().to_pylist()
            assert found == expected, (engine, query)

        expression = None if condition is None else condition.arrow
        reader = iac.scan_arrow(paths, names, expression, "text")
        assert reader.schema.names == names
        assert reader.read_all().slice(0, limit).to_pylist() == expected, query


def test_conditions_on_the_first_rows(con, source):
    """A filter behind a head is about those rows alone, wherever packs begin."""
    paths, whole = source
    chance = random.Random(str(whole.schema))
    frame = iac.scan_iac(paths, as_="text")
    sql = pl.SQLContext(packs=frame)
    ages = pl.LazyFrame({"age": range(20, 60)}, {"age": pl.Int16})
    for _ in range(CASES_A_SOURCE // 5):
        condition, later = (random_condition(chance, whole) for _ in range(2))
        count = chance.choice([0, 1, 3, 10, 50, len(whole) + 1])
        first = whole.slice(0, count)
        expected = first.filter(condition.arrow)
        query = (
            f"SELECT {selected(whole.column_names)} FROM (FROM iac_scan({paths}) LIMIT {count}) "
            f"WHERE {condition.sql}"
        )
        assert con.sql(query).to_arrow_table().to_pylist() == expected.to_pylist(), query

        head = frame.head(count).select(whole.column_names)
        kept = head.filter(condition.polars)
        queried = sql.execute(f"SELECT * FROM (SELECT * FROM packs LIMIT {count}) AS p")
        of_ages = (pc.field("age") >= 20) & (pc.field("age") < 60)
        cases = {
            "filter": (kept, expected),
            "two": (
                kept.head(5).filter(later.polars),
                expected.slice(0, 5).filter(later.arrow),
            ),
            "SQL": (queried.filter(condition.polars).select(whole.column_names), expected),
            "concat": (pl.concat([kept, head]), pa.concat_tables([expected, first])),
            "join": (
                kept.join(ages, on="age", how="semi", maintain_order="left"),
                expected.filter(of_ages),
            ),
        }
        for engine in ("in-memory", "streaming"):
            for name, (lazy, rows) in cases.items():
                found = lazy.collect(engine=engine).to_arrow().to_pylist()
                assert found == rows.to_pylist(), (name, engine, query)
            grouped = head.group_by("age").agg(pl.len()).collect(engine=engine)
            assert dict(grouped.rows()) == collections.Counter(first["age"].to_pylist())


def test_joins_and_groups(con, source):
    paths, whole = source
    frame = iac.scan_iac(paths, as_="text")
    ages = pa.table({"age": pa.array(range(20, 60), pa.int16()), "group": ["g"] * 40})
    con.register("ages", ages)
    expected = sorted(
        (row["record"]["pack"], row["record"]["row"], row["payload"])
        for row in whole.to_pylist()
        if row["age"] is not None and 20 <= row["age"] < 60
    )
    query = f"SELECT record.pack, record.row, iac_text(record) FROM iac_scan({paths}) JOIN ages"
    assert sorted(con.sql(f"{query} USING (age)").fetchall()) == expected
    others = pl.LazyFrame(pl.from_arrow(ages))
    for how in ("inner", "semi"):
        joined = frame.select("age", "record").join(others, on="age", how=how)
        for engine in ("in-memory", "streaming"):
            rows = joined.select(
                pl.col("record").struct.field("pack"),
                pl.col("record").struct.field("row"),
                pl.col("record").iac.text(),
            ).collect(engine=engine)
            assert sorted(rows.rows()) == expected
    counted = con.sql(f"SELECT age, count(*) FROM iac_scan({paths}) GROUP BY ALL").fetchall()
    assert dict(frame.group_by("age").len().collect().rows()) == dict(counted)


def test_arrow_in_a_connection_without_the_extension(source):
    duckdb = pytest.importorskip("duckdb")
    paths, whole = source
    with duckdb.connect() as con:
        con.register("notes", iac.scan_arrow(paths, ["age", "payload"], as_="text"))
        found = con.sql("SELECT payload FROM notes WHERE age > 40").fetchall()
    expected = whole.filter(pc.field("age") > 40)["payload"].to_pylist()
    assert [text for (text,) in found] == expected


def test_pandas_reads_what_arrow_gives(source):
    pandas = pytest.importorskip("pandas")
    paths, whole = source
    frame = iac.scan_arrow(paths, ["age", "payload"], as_="text").read_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["payload"].tolist() == whole["payload"].to_pylist()


@pytest.mark.parametrize(
    "condition",
    [
        Condition("true", pl.lit(True), pc.scalar(True)),
        Condition("false", pl.lit(False), pc.scalar(False)),
        Condition(
            "(true AND NULL)",
            pl.lit(True) & pl.lit(None, pl.Boolean),
            pc.scalar(pa.scalar(None, pa.bool_())),
        ),
    ],
    ids=lambda condition: condition.sql,
)
def test_conditions_without_columns(con, source, condition: Condition):
    paths, _ = source
    query = f"SELECT record.row FROM iac_scan({paths}) WHERE {condition.sql}"
    expected = [row for (row,) in con.sql(query).fetchall()]
    row = pl.col("record").struct.field("row")
    assert (
        iac.scan_iac(paths).filter(condition.polars).select(row).collect().to_series().to_list()
        == expected
    )
    table = iac.scan_arrow(paths, ["record"], condition.arrow).read_all()
    assert [record["row"] for record in table["record"].to_pylist()] == expected
