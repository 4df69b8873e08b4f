"""iac_vector and iac_vector_double: what they give, and what they refuse."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from packs import item_table, slide_table, write_encoded, write_matrix, write_pack

import iac_query as iac

pytestmark = pytest.mark.asan

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES = ["float16", "float32", "float64", "bool", *INTEGERS]


def matrix_of(dtype: str, rows: int, dim: int) -> np.ndarray:
    """Values that FLOAT holds."""
    values = np.arange(rows * dim).reshape(rows, dim)
    if dtype == "bool":
        return values % 3 == 1
    if dtype.startswith("float"):
        return ((values % 2001 - 1000) / 8).astype(dtype)
    return (values * 5).astype(dtype) if dtype.endswith("8") else (values % 32768).astype(dtype)


def vectors(con, path: Path, function: str = "iac_vector", of: str = "record") -> list:
    return [row for (row,) in con.sql(f"SELECT {function}({of}) FROM '{path}'").fetchall()]


@pytest.mark.parametrize("function", ["iac_vector", "iac_vector_double"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(con, tmp_path: Path, dtype: str, function: str):
    matrix = matrix_of(dtype, 50, 7)
    path = write_matrix(tmp_path / "x.iac", matrix)
    assert vectors(con, path, function) == matrix.astype(float).tolist()


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 5000])
def test_every_number_of_rows(con, tmp_path: Path, rows: int):
    matrix = matrix_of("int16", rows, 3)
    path = write_matrix(tmp_path / "x.iac", matrix)
    assert vectors(con, path) == matrix.tolist()
    picked = vectors(con, path, of="CASE WHEN record.row % 3 = 1 THEN record END")
    assert picked == [row if i % 3 == 1 else None for i, row in enumerate(matrix.tolist())]


def test_vectors_of_several_packs_in_one_vector_of_rows(con, tmp_path: Path):
    matrices = [matrix_of("int16", 40, 3), matrix_of("float64", 40, 5), matrix_of("bool", 40, 1)]
    packs = [write_matrix(tmp_path / f"{i}.iac", m) for i, m in enumerate(matrices)]
    union = " UNION ALL ".join(f"SELECT {i} AS n, record FROM '{p}'" for i, p in enumerate(packs))
    con.execute(f"CREATE TABLE refs AS SELECT * FROM ({union}) ORDER BY hash(record.row * 3 + n)")
    found = con.sql("SELECT n, record.row, iac_vector(record) FROM refs").fetchall()
    assert len(found) == 120
    for n, row, vector in found:
        assert vector == matrices[n][row].tolist()


def test_special_values_survive(con, tmp_path: Path):
    special = [np.nan, np.inf, -np.inf, -0.0, 6e-8]
    for dtype in ("float16", "float32", "float64"):
        path = write_matrix(tmp_path / f"{dtype}.iac", np.array([special], dtype))
        for function, out in (("iac_vector", "f4"), ("iac_vector_double", "f8")):
            (found,) = vectors(con, path, function)
            expected = np.array(special, dtype).astype(out)
            assert np.array_equal(np.array(found, out), expected, equal_nan=True)
            assert np.signbit(found[3])


def test_doubles_are_rounded_to_float_as_a_cast_does(con, tmp_path: Path):
    values = np.random.default_rng(0).standard_normal((20, 4))
    values[3] = [1e-46, 3.4028234e38, -1e-300, 0.1]
    path = write_matrix(tmp_path / "x.iac", values)
    assert vectors(con, path) == values.astype("f4").tolist()
    cast = con.sql(f"SELECT iac_vector_double(record)::FLOAT[] FROM '{path}'").fetchall()
    assert [row for (row,) in cast] == vectors(con, path)


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("float64", 3.4e38, 3.5e38),
        ("float64", -3.4e38, -1e300),
        ("int32", 2**24, 2**24 + 1),
        ("int32", -(2**24) - 2, -(2**24) - 1),
        ("int64", 2**62, 2**63 - 1),
        ("uint32", 2**31, 2**32 - 1),
        ("uint64", 2**63, 2**64 - 1),
    ],
)
def test_what_float_cannot_hold_is_an_error_with_the_way_out(
    con, tmp_path: Path, dtype: str, good, bad
):
    matrix = np.array([[1, 2, 3], [good, 2, 3], [1, 2, bad]], dtype)
    path = write_matrix(tmp_path / "x.iac", matrix)
    with pytest.raises(duckdb.Error) as refused:
        vectors(con, path)
    text = "x.iac: row 2: FLOAT cannot hold element 2 of the vector, use iac_vector_double"
    assert text in str(refused.value)
    assert str(bad)[:6] not in str(refused.value)
    found = con.sql(f"SELECT TRY(iac_vector(record)) FROM '{path}'").fetchall()
    assert found == [([1, 2, 3],), ([float(np.float32(good)), 2, 3],), (None,)]


def test_what_double_cannot_hold_is_an_error(con, tmp_path: Path):
    path = write_matrix(tmp_path / "x.iac", np.array([[2**53 + 2], [2**53 + 1]]))
    with pytest.raises(duckdb.Error, match=r"row 1: DOUBLE cannot hold element 0 .*iac_payload"):
        vectors(con, path, "iac_vector_double")
    assert vectors(con, path, "iac_vector_double", "CASE record.row WHEN 0 THEN record END") == [
        [2**53 + 2],
        None,
    ]


@pytest.mark.parametrize("function", ["iac_vector", "iac_vector_double"])
def test_records_that_are_no_vectors(con, tmp_path: Path, function: str):
    for path in (
        write_pack(tmp_path / "raw.iac", [b"1234"]),
        write_encoded(tmp_path / "zstd.iac", [b"1234"], "zstd"),
    ):
        with pytest.raises(duckdb.Error, match=rf"{path.name}: its records are not the rows"):
            vectors(con, path, function)
    path = write_matrix(tmp_path / "complex.iac", np.zeros((2, 2), "complex64"))
    with pytest.raises(duckdb.Error, match=r"complex.iac: its dtype 'complex64' .*iac_payload"):
        vectors(con, path, function)


@pytest.mark.parametrize(
    "fields",
    [
        {"feature_dim": 3},
        {"feature_dim": 2**63},
        {"feature_dim": 2**62, "feature_record_bytes": 2**64 - 4},
        {"feature_dim": 0, "feature_record_bytes": 0},
        {"feature_record_bytes": 2**40},
        {"dtype": "float64"},
        {"dtype": "<f4"},
        {"dtype": ""},
    ],
)
def test_headers_that_do_not_agree_with_themselves(con, tmp_path: Path, fields: dict):
    header = {"payload_type": "x", "feature_dim": 2, "dtype": "float32", "feature_record_bytes": 8}
    path = tmp_path / "x.iac"
    iac.build_pack_data_segment(path, {**header, **fields}, slide_table(), item_table(3), bytes(24))
    try:
        found = vectors(con, path)
    except duckdb.Error as error:
        assert "x.iac" in str(error)
        assert fields.get("feature_dim") != 0
    else:
        assert found == [[]] * 3


def test_the_limit_counts_what_comes_out(con, tmp_path: Path):
    path = write_matrix(tmp_path / "x.iac", np.ones((100, 100), bool))
    con.execute("SET iac_max_batch_bytes = 39_999")
    with pytest.raises(duckdb.Error, match=r"iac_vector: .* larger than iac_max_batch_bytes"):
        vectors(con, path)
    con.execute("SET iac_max_batch_bytes = 40_000")
    assert len(vectors(con, path)) == 100
    with pytest.raises(duckdb.Error, match="iac_max_batch_bytes"):
        vectors(con, path, "iac_vector_double")


@pytest.mark.parametrize("function", ["iac_vector", "iac_vector_double"])
def test_nearest_neighbours_are_those_of_numpy(con, tmp_path: Path, function: str):
    matrix = np.random.default_rng(1).standard_normal((3000, 16)).astype("f4")
    path = write_matrix(tmp_path / "x.iac", matrix)
    type = "FLOAT" if function == "iac_vector" else "DOUBLE"
    query = matrix[5].tolist()
    distance = np.linalg.norm(matrix.astype(float) - matrix[5], axis=1)
    found = con.sql(
        f"""SELECT record.row FROM '{path}'
        ORDER BY list_distance({function}(record), {query}::{type}[]) LIMIT 10"""
    ).fetchall()
    assert [row for (row,) in found] == np.argsort(distance)[:10].tolist()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    found = con.sql(
        f"SELECT record.row, similarity FROM iac_neighbours({query}, '{path}', 10)"
    ).fetchall()
    assert [row for row, _ in found] == np.argsort(-(unit @ unit[5]))[:10].tolist()
    assert np.allclose([similarity for _, similarity in found], np.sort(unit @ unit[5])[::-1][:10])
