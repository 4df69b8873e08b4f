"""iac_payload, iac_stored and iac_text: what they give, and for which rows they do any work."""

import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from packs import DATA, MANIFEST, flip_payload, item_table, write_encoded, write_matrix, write_pack

import iac_query as iac

pytestmark = pytest.mark.asan

NAMES = sorted(name for name in MANIFEST if MANIFEST[name]["records"])
SIZES = [1, 2047, 2048, 2049, 5000]


@pytest.mark.parametrize("name", NAMES)
def test_payloads_are_those_of_the_reader(con, name: str):
    path = DATA / name
    rows = con.sql(f"SELECT iac_payload(record), iac_stored(record) FROM '{path}'").fetchall()
    with iac.PackReader(path) as reader:
        if "feature_dim" in reader.header:
            matrix = iac.FixedRecordPack(path).read_many(range(len(reader)))
            expected = [(np.ascontiguousarray(row).tobytes(),) * 2 for row in matrix]
        else:
            stored = reader.read_payloads(range(len(reader)))
            objects = iac.VariableRecordPack(path).read_many(range(len(reader)))
            # None is a DICOM instance without pixels.
            payloads = [b"" if item is None else bytes(item) for item in objects]
            expected = list(zip(payloads, map(bytes, stored), strict=True))
    assert rows == expected


@pytest.mark.parametrize("codec", ["none", "zstd", "brotli"])
@pytest.mark.parametrize("rows", SIZES)
def test_every_number_of_rows(con, tmp_path: Path, codec: str, rows: int):
    objects = [f"{i}:{'x' * (i % 40)}".encode() for i in range(rows)]
    path = write_encoded(tmp_path / "x.iac", objects, codec)
    con.execute("SET threads = 2")
    found = con.sql(f"SELECT iac_payload(record), iac_text(record) FROM '{path}'").fetchall()
    assert found == [(data, data.decode()) for data in objects]
    backwards = con.sql(
        f"SELECT iac_text(record) FROM (FROM '{path}' ORDER BY record.row DESC LIMIT 3)"
    ).fetchall()
    assert backwards == [(data.decode(),) for data in objects[::-1][:3]]


def test_a_matrix(con, tmp_path: Path):
    matrix = np.arange(30, dtype="<f4").reshape(6, 5)
    path = write_matrix(tmp_path / "x.iac", matrix)
    rows = con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
    assert [np.frombuffer(row, "<f4").tolist() for (row,) in rows] == matrix.tolist()


def test_short_long_and_empty_payloads_in_one_vector(con, tmp_path: Path):
    payloads = [bytes([i % 250]) * (i % 30) for i in range(2048)]
    path = write_pack(tmp_path / "x.iac", payloads)
    rows = con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
    assert [row for (row,) in rows] == payloads


def test_nulls_between_references_of_two_packs(con, tmp_path: Path):
    a = write_pack(tmp_path / "a.iac", [b"a%d" % i * 9 for i in range(3000)])
    b = write_pack(tmp_path / "b.iac", [b"b%d" % i for i in range(3000)])
    rows = con.sql(
        f"""
        SELECT i, iac_text(CASE i % 3 WHEN 0 THEN a.record WHEN 1 THEN b.record END)
        FROM range(3000) AS r(i)
        JOIN '{a}' AS a ON a.record.row = i JOIN '{b}' AS b ON b.record.row = 2999 - i
        """
    ).fetchall()
    assert len(rows) == 3000
    for i, text in rows:
        assert text == [f"a{i}" * 9, f"b{2999 - i}", None][i % 3]


def test_references_of_any_integer_type_from_arrow(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"zero", b"one", b"two"])
    for rows in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64()):
        for packs in (
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int8(), pa.string()),
        ):
            paths = pa.array([str(path)] * 3).cast(packs)
            table = pa.table(
                {
                    "r": pa.StructArray.from_arrays(
                        [pa.array([2, 0, None], rows), paths], ["row", "pack"]
                    )
                }
            )
            con.register("refs", table)
            texts = con.sql("SELECT iac_text(r) FROM refs").fetchall()
            assert texts == [("two",), ("zero",), (None,)]


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A pack whose records are damaged, except rows 100 to 109: reading any other fails."""
    index = item_table(1000).append_column(
        "k", pa.array([i // 10 for i in range(1000)], pa.int32())
    )
    index = index.append_column("name", pa.array([f"name-{i // 10:03}" for i in range(1000)]))
    path = write_pack(tmp_path / "x.iac", [b"record %03d" % i for i in range(1000)], index)
    with iac.PackReader(path) as reader:
        start = reader.header["data_offset"]
    data = bytearray(path.read_bytes())
    for row in range(1000):
        if not 100 <= row < 110:
            data[start + 10 * row] ^= 1
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "condition",
    [
        "k = 10",
        "k > 9 AND k < 11",
        "k IN (10)",
        "k BETWEEN 10 AND 10",
        "name = 'name-010'",
        "name LIKE 'name-010%'",
        "k = (SELECT 10)",
        "k IN (SELECT * FROM range(10, 11))",
        "CASE WHEN k = 10 THEN iac_text(record) LIKE 'record 1%' END",
        "CASE WHEN name = 'name-010' THEN octet_length(iac_payload(record)) = 10 END",
        "iac_text_where(k = 10, record) LIKE 'record 1%'",
        "octet_length(iac_payload_where(name = 'name-010', record)) = 10",
    ],
)
def test_only_the_rows_that_are_left_are_read(con, poisoned: Path, condition: str):
    query = f"SELECT iac_text(record) FROM '{poisoned}' WHERE {condition} ORDER BY record.row"
    assert con.sql(query).fetchall() == [(f"record {i}",) for i in range(100, 110)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT iac_text(p.record) FROM '{}' AS p JOIN (SELECT 10 AS k) AS t USING (k)",
        "SELECT iac_text(record) FROM (FROM '{}' ORDER BY abs(k - 10), record.row LIMIT 10)",
        "SELECT iac_text(record) FROM (FROM '{}' LIMIT 10 OFFSET 100)",
        "SELECT iac_text(record) FROM (SELECT record FROM '{}' WHERE k = 10 LIMIT 10)",
        "SELECT unnest(list(iac_text(record) ORDER BY record.row)) FROM '{}' WHERE k = 10",
    ],
)
def test_joins_and_limits_read_what_they_keep(con, poisoned: Path, query: str):
    assert con.sql(query.format(poisoned)).fetchall() == [(f"record {i}",) for i in range(100, 110)]


def test_a_damaged_record_is_named_and_try_leaves_the_others(con, tmp_path: Path):
    good = write_pack(tmp_path / "good.iac", [b"good %d" % i for i in range(100)])
    bad = write_pack(tmp_path / "bad.iac", [b"bad %d" % i for i in range(100)])
    flip_payload(bad, 42)
    union = f"(SELECT record FROM '{good}' UNION ALL SELECT record FROM '{bad}')"
    with pytest.raises(duckdb.Error, match=r"bad\.iac: row 42: .*crc32"):
        con.sql(f"SELECT iac_payload(record) FROM {union}").fetchall()
    rows = con.sql(f"SELECT record.pack, record.row, TRY(iac_text(record)) FROM {union}").fetchall()
    assert [(Path(pack).name, row) for pack, row, text in rows if text is None] == [("bad.iac", 42)]
    assert len(rows) == 200


def test_a_payload_that_does_not_decode_is_named(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"no frame"] * 3, codec="zstd")
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 0: .*zstd"):
        con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
    assert con.sql(f"SELECT iac_stored(record) FROM '{path}' LIMIT 1").fetchall() == [
        (b"no frame",)
    ]
    path = write_pack(tmp_path / "y.iac", [b"no frame"] * 3, codec="unheard-of")
    with pytest.raises(duckdb.Error, match=r"y\.iac: row 0: .*unheard-of"):
        con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()


def test_the_limit_of_a_vector_counts_all_packs_in_it(con, tmp_path: Path):
    paths = [write_pack(tmp_path / f"{i}.iac", [b"x" * 600]) for i in range(2)]
    union = " UNION ALL ".join(f"SELECT record FROM '{path}'" for path in paths)
    con.execute(f"CREATE TABLE refs AS {union}")
    con.execute("SET iac_max_batch_bytes = 1000")
    with pytest.raises(duckdb.Error, match=r"larger than iac_max_batch_bytes = 1000; .*decode\(\)"):
        con.sql("SELECT iac_payload(record) FROM refs").fetchall()
    con.execute("SET iac_max_batch_bytes = 1200")
    assert con.sql("SELECT octet_length(iac_payload(record)) FROM refs").fetchall() == [(600,)] * 2
    one = write_pack(tmp_path / "one.iac", [b"x", b""])
    con.execute(f"CREATE TABLE more AS FROM refs UNION ALL SELECT record FROM '{one}'")
    with pytest.raises(duckdb.Error, match=r"one\.iac: .* larger than iac_max_batch_bytes = 1200"):
        con.sql("SELECT iac_payload(record) FROM more").fetchall()  # a byte more
    con.execute(f"CREATE TABLE exact AS FROM more WHERE record.pack <> '{one}' OR record.row = 1")
    assert len(con.sql("SELECT iac_payload(record) FROM exact").fetchall()) == 3


def test_a_decoded_record_counts_by_its_decoded_size(con, tmp_path: Path):
    path = write_encoded(tmp_path / "x.iac", [bytes(10**6)], "zstd")
    con.execute("SET iac_max_batch_bytes = 100_000")
    with pytest.raises(duckdb.Error, match="iac_max_batch_bytes"):
        con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
    assert con.sql(f"SELECT octet_length(iac_stored(record)) < 1000 FROM '{path}'").fetchall() == [
        (True,)
    ]


def test_many_connections_at_once(tmp_path: Path):
    path = write_encoded(tmp_path / "x.iac", [b"%d" % i * 50 for i in range(5000)], "zstd")
    failures = []

    def work(con):
        try:
            for _ in range(5):
                total = con.sql(f"SELECT sum(octet_length(iac_payload(record))) FROM '{path}'")
                assert total.fetchall() == [(sum(len(b"%d" % i * 50) for i in range(5000)),)]
        except BaseException as error:
            failures.append(error)

    with iac.connect() as con:
        threads = [threading.Thread(target=work, args=(con.cursor(),)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_an_interrupt_ends_a_long_query(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"x" * 100] * 5000)
    threading.Timer(0.5, con.interrupt).start()
    with pytest.raises(duckdb.InterruptException):
        con.execute(
            f"SELECT count(iac_payload(a.record)) FROM '{path}' AS a, range(100_000) AS r(i)"
            " WHERE a.record.row + i >= 0"
        ).fetchall()
