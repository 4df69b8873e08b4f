"""Repair: a pack without its damaged rows, or none at all."""

from pathlib import Path

import pyarrow as pa
import pytest
from damaged_packs import (
    COUNT,
    SCHEMAS,
    VARIABLE,
    changed,
    errors_of,
    features,
    text,
    tiles,
    with_payload,
)
from iatro.iac.adapters.validate import validate_package as peer_validate
from packs import (
    DATA,
    assemble,
    assert_same_table,
    flip_payload,
    layout_index,
    payloads_of,
    replaced,
    segments_of,
    write_encoded,
)

import iac_query as iac

pytestmark = pytest.mark.asan

LAYOUT = ("offset", "length", "crc32")


def without_layout(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in LAYOUT if name in table.column_names])


def fields_of(header: dict) -> dict:
    """Without what a writer sets."""
    set_by_writer = ("_offset", "_length", "num_records")
    return {k: v for k, v in header.items() if not k.endswith(set_by_writer)}


def repaired(path: Path, dropped: list[int]) -> iac.PackReader:
    """The repaired pack, which has all rows but these as they were, and no errors."""
    out = path.parent / "out.iac"
    report = iac.repair(path, out, overwrite=True)
    was, now = iac.PackReader(path), iac.PackReader(out)
    kept = [row for row in range(len(was)) if row not in dropped]
    assert (report.kept, report.dropped) == (len(kept), len(dropped))
    assert sorted({f.row for f in report.source.findings if f.severity == "error"}) == dropped
    assert report.to_table()["row"].to_pylist() == [f.row for f in report.source.findings]
    assert now.read_payloads(range(len(now))) == was.read_payloads(kept)
    assert fields_of(now.header) == fields_of(was.header)
    assert_same_table(now.slide_table, was.slide_table)
    assert_same_table(without_layout(now.index_table), without_layout(was.index_table).take(kept))
    assert now.index_table.schema == was.index_table.schema
    assert errors_of(out) == []
    return now


@pytest.mark.parametrize("path", sorted(DATA.glob("*.iac")), ids=lambda path: path.stem)
def test_a_whole_pack_comes_out_equal(tmp_path, path):
    report = iac.repair(path, tmp_path / "out.iac")
    assert (report.kept, report.dropped) == (len(iac.PackReader(path)), 0)
    header, *parts = segments_of(path)
    other, *others = segments_of(tmp_path / "out.iac")
    assert fields_of(other) == fields_of(header)
    assert others[-1] == parts[-1]
    for name in ("slide_table", "index_table"):
        old, new = (getattr(iac.PackReader(p), name) for p in (path, tmp_path / "out.iac"))
        assert_same_table(new, old)


def test_records_in_any_place_stay_there_in_a_whole_pack(tmp_path):
    index = layout_index(pa.array([5, 0, 2], pa.int64()), pa.array([2, 2, 1], pa.int32()))
    path = assemble(tmp_path / "x.iac", index, b"aa.b.cc..")
    iac.repair(path, tmp_path / "out.iac")
    assert segments_of(tmp_path / "out.iac")[1:] == segments_of(path)[1:]


@pytest.mark.parametrize("name", VARIABLE)
def test_damaged_bytes_and_places_outside(tmp_path, name):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=replaced("offset", 4, 1 << 50))
    flip_payload(path, 1)
    repaired(path, [1, 4])


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in VARIABLE])
def test_a_matrix_that_was_cut(tmp_path, name):
    path = SCHEMAS[name](tmp_path / "x.iac")
    changed(path, data=segments_of(path)[3][:-1])
    repaired(path, [COUNT - 1])


def test_tiles_that_are_none(tmp_path):
    path = with_payload(tiles(tmp_path / "x.iac"), 3, b"no image")
    changed(path, index=replaced("slide_idx", 5, 8))
    out = repaired(path, [3, 5])
    assert peer_validate(out.package_path, 0, 0)["records"] == COUNT - 2


def test_features_of_no_slide(tmp_path):
    path = changed(features(tmp_path / "x.iac"), index=replaced("slide_idx", 0, 8))
    out = repaired(path, [0])
    assert peer_validate(out.package_path, 0, 0)["records"] == COUNT - 1


def test_records_that_are_no_documents(tmp_path):
    stored = iac.Codec.create("brotli", quality=1).encode(b"none")
    repaired(with_payload(text(tmp_path / "x.iac"), 0, stored), [0])


def test_a_slide_without_rows_stays(tmp_path):
    path = tiles(tmp_path / "x.iac")
    for row in (1, 3, 5):
        flip_payload(path, row)
    assert repaired(path, [1, 3, 5]).slide_table.num_rows == 2


def test_records_without_crc32_get_one(tmp_path):
    index = layout_index([0, 99, 3], [3, 3, 4], name=pa.array(["a", "b", "c"]))
    path = assemble(tmp_path / "x.iac", index, b"abcdefgh")
    iac.repair(path, tmp_path / "out.iac")
    with iac.PackReader(tmp_path / "out.iac") as reader:
        assert reader.read_payloads([0, 1]) == [b"abc", b"defg"]
        assert reader.index_table.column_names == ["name", *LAYOUT]


def test_many_rows_apart(tmp_path):
    rows = 20_000
    path = write_encoded(tmp_path / "x.iac", payloads_of(rows), "zstd", level=1)
    wrong = set(range(0, rows, 2))

    def halved(table: pa.Table) -> pa.Table:
        offsets = [
            1 << 40 if row in wrong else o for row, o in enumerate(table["offset"].to_pylist())
        ]
        at = table.schema.get_field_index("offset")
        return table.set_column(at, "offset", pa.array(offsets, pa.uint64()))

    changed(path, index=halved)
    report = iac.repair(path, tmp_path / "out.iac")
    assert (report.kept, report.dropped) == (rows // 2, rows // 2)
    assert len(report.source.findings) == 102  # bounded
    with iac.VariableRecordPack(tmp_path / "out.iac") as pack:
        assert pack.read_many(range(len(pack))) == payloads_of(rows)[1::2]
        assert pack.index_table["item_id"].num_chunks == 1


def test_a_bar_is_shown_where_asked(tmp_path, pack, capsys):
    iac.repair(pack, tmp_path / "out.iac", progress=True)
    assert "repair: 100%" in capsys.readouterr().err
