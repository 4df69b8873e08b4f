"""Validation of packs of DICOM instances: tables, headers and pixels, against each other."""

import pytest
from damaged_packs import changed, errors_of
from dicoms import slice_of
from iatro.iac.adapters.validate import validate_package as peer_validate
from imaged_packs import DICOM
from packs import DATA, replaced

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")

UIDS = [f"1.2.826.0.1.3680043.8.498.1.1.{number}" for number in range(4)]


@pytest.fixture
def pack(imaged):
    return lambda name="patient": imaged(name)


@pytest.mark.parametrize("name", DICOM)
def test_a_sound_pack_has_no_findings(pack, name):
    report = iac.validate(pack(name), max_decode=0)
    assert report.findings == ()
    assert report.counts["decoded"] == report.counts["records"] > 2


@pytest.mark.parametrize("name", ["dicom_patient", "series"])
def test_packs_of_the_other_package_are_sound_for_both(name):
    report = iac.validate(DATA / f"{name}.iac", max_decode=0)
    assert report.findings == ()
    assert peer_validate(DATA / f"{name}.iac", 0, 0)["records"] == report.counts["records"]


def test_the_other_package_agrees_on_ours(pack):
    assert peer_validate(pack("patient"), 0, 0)["records"] == 6
    with pytest.raises((KeyError, ValueError, RuntimeError)):
        peer_validate(pack("frames"), 0, 0)


# Of each column: row, value, what is found in the row, and whether the other package finds it.
CELLS = [
    ("series_idx", 1, 9, ["schema: series_idx is not in the slide table", None], True),
    ("sop_instance_uid", 1, "", ["schema: sop_instance_uid is empty", "payload: sop_i"], False),
    ("sop_instance_uid", 1, "1.2.3", ["payload: sop_instance_uid is another one in its"], False),
    ("instance_number", 1, 7, ["payload: instance_number is another one in its header"], False),
    (
        "rows",
        1,
        11,
        [
            "payload: rows is another one in its header",
            "codec: jxl: record is an image of 12x16 uint16, the index table says 11x16 int16",
        ],
        True,
    ),
    (
        "columns",
        1,
        0,
        [
            "schema: its frame has no pixels by rows, columns and samples_per_pixel",
            "payload: columns is another one in its header",
            "container: columns is 0",
        ],
        True,
    ),
    (
        "samples_per_pixel",
        4,
        1,
        [
            "payload: samples_per_pixel is another one in its header",
            "codec: jxl: record is an image of 9x11x3 uint8, the index table says 9x11 uint8",
        ],
        True,
    ),
    (
        "pixel_dtype",
        1,
        "uint16",
        [
            "schema: pixel_dtype is uint16, pixel_representation 1",
            "container: pixel_representation is 1, pixel_dtype says uint16",
        ],
        False,
    ),
    (
        "pixel_dtype",
        1,
        "",
        [
            "schema: pixel_dtype is no dtype of pixels",
            "container: pixel_dtype says no type of pixels",
        ],
        True,
    ),
    (
        "pixel_dtype",
        1,
        "int8",
        [
            "schema: pixel_dtype is int8, bits_allocated 16",
            "container: bits_allocated is 16, pixel_dtype says int8",
        ],
        True,
    ),
    (
        "pixel_representation",
        1,
        2,
        [
            "schema: pixel_representation is 2, expected 0 or 1",
            "payload: pixel_representation is another one in its header",
            "container: pixel_representation is 2, pixel_dtype says int16",
        ],
        False,
    ),
    (
        "bits_allocated",
        1,
        32,
        [
            "schema: pixel_dtype is int16, bits_allocated 32",
            "payload: bits_allocated is another one in its header",
            "container: bits_allocated is 32, pixel_dtype says int16",
        ],
        False,
    ),
    (
        "bits_stored",
        1,
        17,
        ["schema: bits_stored is 17, bits_allocated 16", "payload: bits_stored is another"],
        False,
    ),
    ("high_bit", 1, 3, ["payload: high_bit is another one in its header"], False),
    (
        "photometric_interpretation",
        4,
        "MONOCHROME1",
        [
            "payload: photometric_interpretation is another one",
        ],
        False,
    ),
    (
        "has_pixel_data",
        1,
        False,
        [
            "schema: has no pixels by the index, and a record",
            "container: has_pixel_data says none, its record has 384 bytes",
        ],
        False,
    ),
    (
        "has_pixel_data",
        5,
        True,
        [
            "schema: has pixels by the index, and an empty record",
            "schema: its frame has no pixels by rows, columns and samples_per_pixel",
            "schema: bits_stored is 0, bits_allocated 0",
            "schema: pixel_dtype is no dtype of pixels",
            "container: pixel_dtype says no type of pixels",
        ],
        True,
    ),
    ("source_transfer_syntax", 1, "1.2.3", ["payload: source_transfer_syntax is another"], False),
    ("dicom_delta", 1, b"no zstd", ["checksum: dicom_delta: its stored bytes are damaged"], True),
    ("dicom_delta_crc32", 1, 1, ["checksum: dicom_delta: its stored bytes are damaged"], True),
    ("crc32", 1, 1, ["checksum: stored bytes are damaged"], True),
]


@pytest.mark.parametrize(
    ("column", "row", "value", "expected", "refused"),
    CELLS,
    ids=[f"{column} {value}" for column, _, value, *_ in CELLS],
)
def test_a_cell_that_is_wrong(pack, column, row, value, expected, refused):
    path = changed(pack(), index=replaced(column, row, value))
    found = errors_of(path)
    of_row = [f"{check}: {reason}" for number, check, reason in found if number == row]
    starts = [start for start in expected if start]
    assert len(of_row) == len(starts), of_row
    assert all(map(str.startswith, of_row, starts)), of_row
    others = [check for number, check, _ in found if number != row]
    assert others == (["counts"] if None in expected else [])
    if refused:
        with pytest.raises((ValueError, TypeError)):
            peer_validate(path, 0, 0)
    else:
        assert peer_validate(path, 0, 0)["records"] == 6


@pytest.mark.parametrize("name", DICOM)
def test_every_column_is_needed(pack, name):
    with iac.PackReader(pack(name)) as reader:
        optional = {"has_pixel_data", "samples_per_pixel", "patient_id"}
        columns = [{*t.column_names} - optional for t in (reader.slide_table, reader.index_table)]
    for table, names in zip(("slide", "index"), columns, strict=True):
        for column in names - {"offset", "length", "crc32"}:
            argument = {f"{table}s" if table == "slide" else table: lambda t: t.drop([column])}  # noqa: B023
            found = errors_of(changed(pack(name), **argument))
            assert (None, "schema", f"the {table} table has no column {column!r}") in found


def test_what_readers_do_without(pack):
    path = changed(pack(), index=lambda table: table.slice(0, 4).drop(["samples_per_pixel"]))
    changed(path, slides=lambda table: table.slice(0, 1))
    assert errors_of(path) == []
    assert errors_of(changed(path, index=lambda table: table.drop(["has_pixel_data"]))) == []


def test_records_need_a_place(pack):
    path = changed(pack(), index=lambda table: table.drop(["offset", "length"]))
    found = errors_of(path)
    assert (None, "schema", "the index does not say where records are stored") in found
    path = changed(pack("patients"), drop=("record_codecs",))
    assert (None, "schema", "the header has no 'record_codecs'") in errors_of(path)


def test_a_series_without_instances_is_noted(pack):
    path = changed(pack(), index=lambda table: table.slice(0, 5))
    changed(path, slides=replaced("instance_count", 2, 0))
    report = iac.validate(path, max_decode=0)
    assert report.ok
    assert [note.reason for note in report.findings] == ["slide table: row 2: has no instances"]


def test_rows_without_a_value(pack):
    for column in ("series_idx", "dicom_delta", "rows", "pixel_dtype", "has_pixel_data"):
        path = changed(pack(), index=replaced(column, 2, None))
        found = errors_of(path)
        assert (2, "schema", f"{column} is NULL") in found
        assert {row for row, check, _ in found if check != "counts"} == {2}


SERIES = [
    ("series_idx", 1, 0, [(None, "ids", "slide table: row 1: series_idx is that of row 0 as w")]),
    ("instance_count", 0, 9, [(None, "counts", "slide table: row 0: instance_count is 9, the ")]),
    ("template_crc32", 1, 1, [(4, "checksum", "template of its series: its stored bytes are d")]),
    ("template_offset", 1, 1, [(4, "checksum", "template of its series: its stored bytes are ")]),
    ("template_length", 1, 1 << 31, [(4, "container", "template of its series: it lies outsid")]),
    ("study_uid", 1, "1.2", [(4, "payload", "study_uid of its series is another one in its")]),
    ("series_uid", 1, "1.2", [(4, "payload", "series_uid of its series is another one in i")]),
    ("patient_id", 1, "P-9", [(None, "payload", "slide table: row 1: patient_id is another ")]),
]


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"), SERIES, ids=[column for column, *_ in SERIES]
)
def test_a_series_that_is_wrong(pack, column, row, value, expected):
    found = errors_of(changed(pack(), slides=replaced(column, row, value)))
    assert [one[:2] for one in found[: len(expected)]] == [one[:2] for one in expected]
    for (*_, reason), (*_, start) in zip(found, expected, strict=False):
        assert reason.startswith(start)
    if column != "series_idx":  # then rows are of no series
        assert len(found) == len(expected)


def test_series_and_instances_are_there_once(pack):
    path = changed(pack(), index=replaced("sop_instance_uid", 3, UIDS[1]))
    assert (3, "ids", "sop_instance_uid is that of row 1 as well") in errors_of(path)
    with iac.PackReader(pack()) as reader:
        uid = reader.slide_table["series_uid"][0].as_py()
    path = changed(pack(), slides=replaced("series_uid", 1, uid))
    reason = "slide table: row 1: study_uid and series_uid are those of row 0 as well"
    assert errors_of(path)[0] == (None, "ids", reason)


@pytest.mark.parametrize("uid", ["1.02.3", "1..2", "1.2.", "1.2.x", "1." + "2" * 63, "x"])
def test_uids_that_are_none_are_noted(tmp_path, uid):
    """Files have such, and lose nothing by being in a pack."""
    from dicoms import build

    build(tmp_path / "x.iac", slice_of(0), slice_of(1, SOPInstanceUID=uid), strict=True)
    report = iac.validate(tmp_path / "x.iac", max_decode=0)
    assert report.ok
    rows = iac.PackReader(tmp_path / "x.iac").index_table["sop_instance_uid"].to_pylist()
    (note,) = report.findings
    assert (note.row, note.reason) == (
        rows.index(uid),
        "sop_instance_uid is no UID (PS3.5 9.1)",
    )


def test_a_high_bit_below_the_others_is_noted(tmp_path):
    from dicoms import build

    build(tmp_path / "x.iac", slice_of(0, HighBit=11, BitsStored=12), slice_of(1, HighBit=14))
    report = iac.validate(tmp_path / "x.iac", max_decode=0)
    assert report.ok
    assert [(f.row, f.reason) for f in report.findings] == [(1, "high_bit is 14, bits_stored 16")]


HEADERS = [
    ({"dicom_schema_version": 3}, "header field dicom_schema_version is not 1 or 2"),
    ({"dicom_schema_version": True}, "header field dicom_schema_version is not 1 or 2"),
    ({"metadata_codec": "brotli"}, "header field metadata_codec is not 'zstd'"),
    ({"metadata_length": -1}, "the header does not say where templates are stored"),
    ({"metadata_length": None}, "the header does not say where templates are stored"),
    ({"metadata_length": 1 << 40}, "the header's place of templates is outside the data segment"),
    ({"codec": "jpegls"}, "its codec is not 'jxl'"),
    ({"codec_params": {"lossless": True}}, "its records are no lossless JPEG XL in containers"),
    ({"codec_params": 7}, "its records are no lossless JPEG XL in containers"),
]


@pytest.mark.parametrize(("fields", "reason"), HEADERS, ids=[str(fields) for fields, _ in HEADERS])
def test_headers_that_are_wrong(pack, fields, reason):
    assert (None, "schema", reason) in errors_of(changed(pack(), **fields))


def test_packs_that_are_not_local(pack):
    import fsspec

    for name in DICOM:
        raw = pack(name).read_bytes()
        fsspec.filesystem("memory").pipe_file("/dicom/x.iac", raw)
        assert iac.validate("memory://dicom/x.iac", max_decode=0).findings == ()


def test_nothing_of_a_patient_is_in_a_report(pack):
    """Each of them breaks some rule."""
    secrets = ["P-1", "Made^Up", *UIDS, "2.50"]
    for column in ("sop_instance_uid", "pixel_dtype", "photometric_interpretation"):
        path = changed(pack(), index=replaced(column, 1, "Made^Up"))
        assert not iac.validate(path, max_decode=0).ok
        text = str(iac.validate(path, max_decode=0))
        assert not [secret for secret in secrets if secret in text]
