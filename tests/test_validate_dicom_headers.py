"""Validation of the headers of DICOM instances: templates, deltas, patients, original bytes."""

import zlib

import pytest
from damaged_packs import changed, errors_of, several
from dicom_packs import with_delta, with_template
from packs import replaced

import iac_query as iac


@pytest.fixture
def pack(imaged):
    return lambda name="patient": imaged(name)


@pytest.mark.parametrize(
    ("delta", "check", "reason"),
    [
        (b"{", "container", "dicom_delta: "),
        (b"[]", "container", "dicom_delta: its text is not a JSON object"),
        ({"dataset": {}}, "container", "dicom_delta: it does not have its dataset and its file_"),
        (
            {"dataset": {}, "file_meta": {}, "errors": [{"path": ["00280010", 0, "00280011"]}]},
            "container",
            "dicom_delta: ",
        ),
        (
            {
                "dataset": {"00080018": {"vr": "UI", "Value": ["1.2.3"]}},
                "file_meta": {},
                "preamble": None,
            },
            "payload",
            "sop_instance_uid is another one in its header",
        ),
    ],
)
def test_deltas_that_are_whole_and_wrong(pack, delta, check, reason):
    found = errors_of(changed(pack(), index=with_delta(1, delta)))
    assert [one[:2] for one in found] == [(1, check)]
    assert found[0][2].startswith(reason)


def test_a_template_that_is_whole_and_wrong(pack, tmp_path):
    for value in (b"no json", {"dataset": {}}, b'{"dataset":' * 5000):
        path = with_template(pack(), tmp_path / "y.iac", value)
        found = errors_of(path)
        assert [one[:2] for one in found] == [(row, "container") for row in range(4)]
        assert all(reason.startswith("template of its series: ") for *_, reason in found)


def test_a_pack_is_of_one_patient(pack, tmp_path):
    model = {
        "dataset": {"00100020": {"vr": "LO", "Value": ["P-secret"]}},
        "file_meta": {},
        "preamble": None,
    }
    path = changed(pack(), index=with_delta(2, model))
    assert (2, "ids", "is of another patient than row 0") in errors_of(path)
    assert "secret" not in str(iac.validate(path, max_decode=0))
    model["dataset"]["00100020"]["Value"] = [" p-\uff11 "]  # the same, wide
    assert errors_of(changed(pack(), index=with_delta(2, model))) == []
    # Of several patients each series is of one.
    model["dataset"]["00100020"]["Value"] = ["P-3"]
    found = errors_of(changed(pack("patients"), index=with_delta(1, model)))
    assert found == [(1, "ids", "is of another patient than row 0")]
    found = errors_of(changed(pack("patients"), slides=replaced("patient_id", 1, None)))
    reason = "slide table: row 1: patient_id is another one in the headers of its instances"
    assert found == [(None, "payload", reason)]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", "payload"),
        (b"\1\0\0\0" + b"\0" * 15, "payload"),
        (b"\1\0\0\0" + (9).to_bytes(8, "little") + b"\0" * 8, "payload"),
        (b"\xff\xff\xff\xff" + b"\0" * 40, "payload"),
        (None, "codec"),
    ],
)
def test_original_headers_that_are_none(pack, header, reason):
    stored = b"no zstd" if header is None else iac.Codec.create("zstd").encode(header)
    cells = several(("dicom_header", 4, stored), ("dicom_header_crc32", 4, zlib.crc32(stored)))
    ((row, check, text),) = errors_of(changed(pack("frames"), index=cells))
    assert (row, check) == (4, reason)
    assert "dicom_header" in text


def test_headers_that_are_too_large_together(pack, monkeypatch):
    """Some are read at a time, however few bytes they are stored in."""
    model = {
        "dataset": {"00091001": {"vr": "LT", "Value": ["x" * (1 << 20)]}},
        "file_meta": {},
        "preamble": None,
    }
    found = []
    for bound in (64 << 20, 1 << 20, 100):
        monkeypatch.setattr("iac_query.adapters._dicom_header_rules._PIECE_BYTES", bound)
        path = pack()
        for row in (1, 2):
            changed(path, index=with_delta(row, model))
        changed(path, index=replaced("instance_number", 3, 70))
        found.append(errors_of(path))
    assert found == [[(3, "payload", "instance_number is another one in its header")]] * 3
