"""Extended features: their dtype has a name of its own, in every reader and writer."""

from pathlib import Path

import numpy as np
import pytest
from damaged_packs import changed
from iac_query.adapters.features import EXTENDED_PAYLOAD_TYPE, build_teacher_feature_package
from iatro.iac.adapters.features import FeatureCacheReader as PeersReader
from packs import replaced
from tile_data import records_of

import iac_query as iac

MATRIX = np.array([[1e300, -0.5], [2.0, 16777217.0], [3.0, 4.0]])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.iac"
    build_teacher_feature_package(records_of(3), MATRIX, path, "teacher", None, extended=True)
    return path


def is_extended(path: Path, matrix: np.ndarray) -> None:
    header = iac.read_header(path)
    assert header["payload_type"] == EXTENDED_PAYLOAD_TYPE
    assert header["feature_dtype"] == "float64" and "dtype" not in header
    with iac.FixedRecordPack(path) as pack:
        np.testing.assert_array_equal(pack.read_matrix(range(len(pack))), matrix)
    with pytest.raises(KeyError, match="'dtype'"):
        PeersReader(path).read_feature_at(0)
    assert iac.validate(path).ok


def test_builders(tmp_path: Path, path: Path):
    is_extended(path, MATRIX)
    with iac.PackReader(path) as pack:
        assert "2 float64" in pack._repr_html_()
        slides, index, header = pack.slide_table, pack.index_table, pack.header
    more = {name: header[name] for name in ("feature_dtype", "teacher")}
    grid = {name: header[name] for name in header if name.startswith(("tile", "stride", "coord"))}
    iac.FixedRecordPack.build(
        tmp_path / "g.iac",
        payload_type=EXTENDED_PAYLOAD_TYPE,
        slide_table=slides,
        index_table=index,
        matrix=MATRIX,
        extra_header={**more, **grid},
    )
    is_extended(tmp_path / "g.iac", MATRIX)


def test_queries(con, tmp_path: Path, path: Path):
    vectors = con.sql(f"SELECT iac_vector_double(record) AS v FROM '{path}'").fetchall()
    assert [v for (v,) in vectors] == MATRIX.tolist()
    iac.write_pack(con.sql(f"FROM '{path}'"), tmp_path / "all.iac")
    assert (tmp_path / "all.iac").read_bytes() == path.read_bytes()
    iac.write_pack(con.sql(f"FROM '{path}' WHERE tile_x = 1"), tmp_path / "some.iac")
    is_extended(tmp_path / "some.iac", MATRIX[1:2])
    # Under another type the dtype has the name that it has in all other packs.
    iac.write_pack(con.sql(f"FROM '{path}'"), tmp_path / "x.iac", payload_type="records")
    header = iac.read_header(tmp_path / "x.iac")
    assert header["dtype"] == "float64" and "feature_dtype" not in header


def test_repair(tmp_path: Path, path: Path):
    changed(path, index=replaced("slide_idx", 1, 7))
    iac.repair(path, tmp_path / "repaired.iac")
    is_extended(tmp_path / "repaired.iac", MATRIX[[0, 2]])


def test_plain_features_have_a_plain_dtype(path: Path):
    changed(path, payload_type="teacher_features")
    (report,) = iac.validate(path).packs
    assert any("'feature_dtype'" in finding.reason for finding in report.findings)
