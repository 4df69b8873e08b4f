"""Validation: what all packs have in common, folders, and the report."""

import shutil

import numpy as np
import pyarrow as pa
import pytest
from damaged_packs import COUNT, SCHEMAS, VARIABLE, changed, errors_of
from packs import (
    DATA,
    MANIFEST,
    assemble,
    flip_payload,
    layout_index,
    patch,
    payloads_of,
    replaced,
    segments_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_clean_pack_has_no_errors(tmp_path, name):
    report = iac.validate(SCHEMAS[name](tmp_path / "x.iac"), max_decode=0)
    assert report.ok and report.counts["errors"] == 0
    assert report.counts["records"] == report.counts["decoded"] == COUNT
    assert report.counts["crc_checked"] == (COUNT if name in VARIABLE else 0)
    notes = [finding.reason for finding in report.findings]
    unknown = ["payload type bytes has no rules here: its schema is not checked"]
    assert notes == (unknown if name == "bytes" else [])


def test_the_packs_of_the_other_package_have_no_errors():
    report = iac.validate(DATA, max_decode=0)
    assert report.ok
    assert {*MANIFEST, "notes.iac"} <= {pack.pack.rsplit("/", 1)[1] for pack in report.packs}


@pytest.mark.parametrize("name", VARIABLE)
@pytest.mark.parametrize("max_decode", [0, 1])
def test_a_flipped_byte_is_found_in_its_row(tmp_path, name, max_decode):
    path = SCHEMAS[name](tmp_path / "x.iac")
    flip_payload(path, 3)
    ((row, check, reason),) = errors_of(path, max_decode=max_decode)
    assert (row, check) == (3, "checksum")
    assert "crc32" in reason and "x.iac" not in reason and "row" not in reason


@pytest.mark.parametrize("name", VARIABLE)
def test_a_place_outside_is_found_in_its_row(tmp_path, name):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=replaced("offset", 2, 1 << 40))
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (2, "container")
    assert reason.startswith(f"payload span outside the data segment: offset {1 << 40} + length ")


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in VARIABLE])
def test_a_matrix_that_is_too_short_or_too_long(tmp_path, name):
    path = SCHEMAS[name](tmp_path / "x.iac")
    data = segments_of(path)[3]
    changed(path, data=data[:-5])
    reason = "lies behind the end of the data segment"
    assert errors_of(path) == [(COUNT - 1, "container", reason)]
    changed(path, data=data + b"more")
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "container")
    assert reason.startswith(f"the data segment has {len(data) + 4} bytes, {COUNT} records of ")


def test_records_that_do_not_decode(tmp_path):
    stored = write_encoded(tmp_path / "x.iac", payloads_of(5), "zstd")
    with iac.PackReader(stored) as reader:
        payloads = reader.read_payloads(range(5))
    payloads[1], payloads[4] = b"no zstd", payloads[4][:-3]
    path = write_pack(tmp_path / "y.iac", payloads, codec="zstd")
    assert [(row, check) for row, check, _ in errors_of(path)] == [(1, "codec"), (4, "codec")]
    assert iac.validate(path, max_decode=1).ok  # row 0 alone


def test_a_table_that_cannot_be_read(tmp_path):
    index = layout_index([0], [3], text=pa.array(["some words"]), other=pa.array([7]))
    path = assemble(tmp_path / "x.iac", index, b"abc")
    raw = path.read_bytes()
    patch(path, raw.index(b"some words"), b"\xff\xfe")
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "container")
    assert reason.startswith("index table: ") and "text" in reason
    assert "some" not in reason and "words" not in reason


def test_what_is_no_pack_is_reported(tmp_path):
    (tmp_path / "a.iac").write_bytes(b"short")
    write_pack(tmp_path / "b.iac", payloads_of(3))
    (tmp_path / "c.iac").write_bytes(bytes(70_000))
    report = iac.validate(tmp_path)
    assert [pack.ok for pack in report.packs] == [False, True, False]
    assert not report.ok
    assert [f.reason[:8] for f in report.findings if f.severity == "error"] == [
        "file of ",
        "bad magi",
    ]


def test_folders_patterns_and_lists(tmp_path, pack):
    folder = tmp_path / "odd [name]*"
    (folder / "deeper").mkdir(parents=True)
    for name in ("b.iac", "deeper/a.iac", "other.txt"):
        shutil.copy(pack, folder / name)
    names = [str(folder / "b.iac"), str(folder / "deeper/a.iac")]

    def found(path) -> list[str]:
        return [report.pack for report in iac.validate(path).packs]

    assert found(folder) == names
    assert found([folder, pack]) == [*names, str(pack)]
    assert found(tmp_path / "*/*.iac") == names[:1]
    assert found([str(folder / "b.iac")] * 2) == names[:1] * 2


def test_what_is_not_there_is_an_error(tmp_path, pack):
    for path in (tmp_path / "no.iac", [pack, tmp_path / "no.iac"], tmp_path / "*.no", pack / "x"):
        with pytest.raises(iac.PackNotFoundError, match="no"):
            iac.validate(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(iac.PackNotFoundError, match="no file matches"):
        iac.validate(tmp_path / "empty")


@pytest.mark.parametrize("name", ["max_decode", "max_crc"])
def test_impossible_arguments(pack, name):
    for value in (True, 1.5, "1"):
        with pytest.raises(TypeError, match=name):
            iac.validate(pack, **{name: value})
    with pytest.raises(ValueError, match=f"{name} is -1"):
        iac.validate(pack, **{name: -1})
    with pytest.raises(ValueError, match="workers is 0"):
        iac.validate(pack, workers=0)


def test_limits_are_spread_over_the_pack(tmp_path):
    path = write_encoded(tmp_path / "x.iac", payloads_of(100), "zstd")
    report = iac.validate(path, max_decode=3, max_crc=10)
    assert report.counts["decoded"] == 3
    assert 10 <= report.counts["crc_checked"] <= 13
    for row in (0, 50, 99):
        shutil.copy(path, tmp_path / "y.iac")
        flip_payload(tmp_path / "y.iac", row)
        assert [row for row, *_ in errors_of(tmp_path / "y.iac", max_decode=3, max_crc=1)] == [row]


def test_a_report_is_bounded_and_counts_all(tmp_path):
    rows = 30_000
    index = layout_index([1 << 30] * rows, [9] * rows, [0] * rows)
    path = assemble(tmp_path / "x.iac", index, b"", payload_type="bytes")
    (report,) = iac.validate(path).packs
    assert report.errors == rows and report.counts["records"] == rows
    assert len(report.findings) == 102
    assert [finding.row for finding in report.findings[:100]] == list(range(100))
    assert report.findings[-1].reason == "and 29,900 more of container"
    assert len(str(report)) < 20_000


def test_what_a_report_shows(tmp_path):
    path = SCHEMAS["bytes"](tmp_path / "x.iac")
    flip_payload(path, 2)
    report = iac.validate([path, DATA / "clinical_text.iac"])
    (first, second) = str(report).splitlines()[:2]
    assert first.startswith(f"{path}: 1 error (bytes, codec zstd, 6 records, ")
    assert second.startswith("  note: payload type bytes")
    assert "\n  row 2: " in str(report)
    assert repr(report) == ("<ValidationReport 2 packs, 1 with errors, 9 records, 1 error, 1 note>")
    assert "1 with errors" in report._repr_html_() and "row 2" in report._repr_html_()
    table = report.to_table()
    assert table.column_names == ["pack", "row", "severity", "check", "reason"]
    assert table["row"].to_pylist() == [None, 2]
    assert table["check"].to_pylist() == ["schema", "checksum"]
    assert iac.validate(DATA / "clinical_text.iac").to_table().schema == table.schema


def test_what_cannot_be_checked_is_said(tmp_path):
    def notes(path) -> list[str]:
        return [f.reason for f in iac.validate(path).findings if f.check != "schema"]

    path = write_pack(tmp_path / "x.iac", payloads_of(3), codec="of the future")
    (note,) = notes(path)
    assert note.startswith("no record was decoded: unknown codec: 'of the future'")
    index = layout_index([0, 1, 5], [3, 4, 2])
    path = assemble(tmp_path / "y.iac", index, b"abcdefgh")
    shared, unchecked = notes(path)
    assert shared == "shares bytes with another record, the first of 1"
    assert unchecked == "the index has no crc32, so nothing tells damage"


def test_parameters_that_no_codec_takes_are_errors(tmp_path):
    path = write_pack(
        tmp_path / "x.iac", payloads_of(3), codec="jpeg2000", codec_params={"profile": "new"}
    )
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "codec") and "profile" in reason


def test_codec_ids_that_the_header_does_not_list(tmp_path):
    codecs = [{"id": 0, "name": "none", "params": {}}, {"id": 7, "name": "none", "params": {}}]
    index = pa.table({"codec_id": pa.array([0, 7, 5, 0], pa.uint8())})
    path = write_pack(tmp_path / "x.iac", payloads_of(4), index, record_codecs=codecs)
    reason = "its codec_id is not in the header's record_codecs"
    assert errors_of(path) == [(2, "container", reason)]


def test_a_registered_codec_decodes(tmp_path, monkeypatch):
    class Upper(iac.Codec):
        name = "upper"

        def decode(self, payload):
            return payload.decode("ascii").upper()

    monkeypatch.setattr(iac.Codec, "_registered", {"upper": Upper})
    path = write_pack(tmp_path / "x.iac", [b"abc", b"\xff", b"def"], codec="upper")
    assert errors_of(path) == [(1, "codec", "codec upper: UnicodeDecodeError")]


def test_records_that_are_too_large_together(tmp_path, monkeypatch):
    monkeypatch.setattr("iac_query.validation.records._DECODED_BYTES", 1 << 20)
    sizes = [400_000] * 9 + [3 << 20] * 2
    path = write_encoded(tmp_path / "x.iac", [bytes(size) for size in sizes], "zstd", level=1)
    with iac.PackReader(path) as reader:
        payloads = reader.read_payloads(range(len(sizes)))
    for row in (3, 10):
        payloads[row] = payloads[row][:-1]
    write_pack(path, payloads, codec="zstd")
    found = errors_of(path, workers=1)
    assert [(row, check) for row, check, _ in found] == [(3, "codec"), (10, "codec")]
    assert iac.validate(path, max_decode=0).counts["decoded"] == len(sizes)


def test_columns_of_one_name(tmp_path):
    columns = [pa.array(["first", "words"]), pa.array(["second", "wordz"])]
    index = pa.table(
        [*columns, *layout_index([0, 1], [1, 1]).columns], ["a", "a", "offset", "length"]
    )
    path = assemble(tmp_path / "x.iac", index, b"ab")
    (note, _, _) = iac.validate(path).findings
    assert note.reason == "index table: two columns are called 'a', names find the first"
    assert errors_of(path) == []
    patch(path, path.read_bytes().index(b"wordz"), b"\xff")
    assert [(row, check) for row, check, _ in errors_of(path)] == [(None, "container")]


def test_the_checks_of_sql_find_the_same_rows(tmp_path):
    con = iac.connect()
    path = write_encoded(tmp_path / "x.iac", payloads_of(50), "brotli", quality=1)
    for row in (7, 8, 31):
        flip_payload(path, row)
    changed(path, index=replaced("length", 20, 1 << 30))
    rows = con.execute(f"SELECT row FROM iac_check('{path}') ORDER BY row").fetchall()
    assert rows == sorted((row,) for row, *_ in errors_of(path)) and len(rows) == 4


def test_a_matrix_without_values(tmp_path):
    write_matrix(tmp_path / "x.iac", np.zeros((3, 0), np.float32))
    assert iac.validate(tmp_path / "x.iac").ok
    assert iac.validate(DATA / "fixed_zero_rows.iac").ok
    iac.build_pack(tmp_path / "z.iac", {}, slide_table(), pa.table({}), [])
    assert iac.validate(tmp_path / "z.iac").ok


def test_a_bar_is_shown_where_asked(pack, capsys):
    iac.validate(pack)
    assert capsys.readouterr().err == ""
    iac.validate(pack, progress=True)
    assert "validate: 100%" in capsys.readouterr().err


def test_a_url(pack):
    import fsspec

    fsspec.filesystem("memory").pipe_file("/folder/x.iac", pack.read_bytes())
    report = iac.validate(["memory://folder/x.iac", "memory://folder/no.iac"])
    assert [found.pack for found in report.packs] == [
        "memory://folder/x.iac",
        "memory://folder/no.iac",
    ]
    assert [found.ok for found in report.packs] == [True, False]
    assert report.counts["records"] == 10


def test_a_server_that_does_not_answer(tmp_path):
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Failing(MemoryFileSystem):
        protocol = "failing"
        first_bad = 0

        def cat_file(self, path, start=None, end=None, **options):
            if start is not None and end > self.first_bad:
                raise PermissionError(13, "Forbidden", path)
            return super().cat_file(path, start, end, **options)

    fsspec.register_implementation("failing", Failing, clobber=True)
    path = write_pack(tmp_path / "x.iac", payloads_of(300, 5000))
    fsspec.filesystem("failing").pipe_file("failing://x.iac", path.read_bytes())
    Failing.first_bad = path.stat().st_size - 10_000
    found = errors_of("failing://x.iac")
    assert found and {check for _, check, _ in found} == {"container"}
    Failing.first_bad = 100
    assert [row for row, *_ in errors_of("failing://x.iac")] == [None]
