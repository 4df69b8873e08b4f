"""DICOM packs go both ways between us and the peer, as far as the peer's limits reach."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from dicoms import BUNDLED, build, file_of, pack_of, pixels_of, read, slice_of
from iac_query.adapters import dicom
from iatro.iac.adapters import dicom as peer
from iatro.iac.adapters.validate import validate_package
from packs import DATA, assert_same_table
from pydicom.dataset import Dataset

from iac_query import Codec

GOLDEN = json.loads((DATA / "dicom_patient.json").read_text(encoding="utf-8"))
#: What depends on the encoders, and what only we have.
ENCODED = ["offset", "length", "crc32", "dicom_delta", "dicom_delta_crc32"]
ENCODED_SERIES = ["template_offset", "template_length", "template_crc32"]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")


def odd_slice(number: int) -> Dataset:
    """A slice with something of all that a header can hold."""
    ds = slice_of(
        number, series=3, PatientName="Ünlü^Ä=山田^太郎", SpecificCharacterSet="ISO_IR 192"
    )
    ds.add_new(0x00090010, "LO", "ACME")
    ds.add_new(0x00091001, "UN", b"\x01\x02\xff\x00")
    ds.add_new(0x00091002, "FD", [float("nan"), float("inf"), -float("inf"), 1.5])
    ds.add_new(0x00091003, "OW", b"\x01\x02\x03\x04")
    item = Dataset()
    item.CodeValue, item.CodeMeaning = "T-1", "mé"
    item.add_new(0x00091004, "SQ", [])
    ds.ProcedureCodeSequence = [item, Dataset()]
    ds.FrameIncrementPointer = 0x00181063
    ds.WindowCenter = [40, 400]
    ds.StudyDate, ds.StudyTime = "", "101112.5"
    return ds


def report() -> Dataset:
    ds = slice_of(7, series=4, Modality="SR")
    for keyword in ("PixelData", "Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit"):
        delattr(ds, keyword)
    del ds.SamplesPerPixel, ds.PixelRepresentation, ds.PhotometricInterpretation
    return ds


def within_limits() -> list:
    colour = slice_of(1, series=2, pixels=pixels_of(1, (9, 11, 3), "uint8"))
    gray = slice_of(2, series=2, pixels=pixels_of(2, (8, 8), "uint16"), InstanceNumber=1)
    signed = slice_of(3, series=2, pixels=pixels_of(3, (8, 8), "int8"), InstanceNumber=None)
    bundled = ("CT_small", "MR_small_implicit", "image_dfl", "JPEG2000", "reportsi")
    return [
        [slice_of(2), slice_of(0), slice_of(1)],
        [odd_slice(1), odd_slice(0), slice_of(0), report(), colour, gray, signed],
        *[[BUNDLED / "test_files" / f"{name}.dcm"] for name in bundled],
    ]


CASES = within_limits()


@pytest.fixture(params=range(len(CASES)))
def both(request, tmp_path):
    """The same files as packs of ours and of the peer's."""
    files = [file_of(f) if isinstance(f, Dataset) else f.read_bytes() for f in CASES[request.param]]
    assert build(tmp_path / "ours.iac", *files, strict=True).schema_version == 1
    peer.build_dicom_patient_package_from_files(files, tmp_path / "theirs.iac", effort=1)
    return tmp_path / "ours.iac", tmp_path / "theirs.iac"


def as_json(data: bytes) -> str:
    """All of a file but what its writer says of itself; JSON, since NaN is not equal to itself."""
    ds = read(data)
    for keyword in ("GroupLength", "Version"):
        assert f"FileMetaInformation{keyword}" in ds.file_meta
    for keyword in ("FileMetaInformationGroupLength", "ImplementationClassUID"):
        ds.file_meta.pop(keyword, None)
    ds.file_meta.pop("ImplementationVersionName", None)
    return ds.to_json() + ds.file_meta.to_json()


def models(path) -> list:
    """Templates and deltas as JSON text."""
    with dicom.DicomPatientReader(path) as pack:
        spans = pack.series_table.select(ENCODED_SERIES[:2]).to_pylist()
        reader = pack._pack.reader
        stored = [reader.read_data_span(*span.values()) for span in spans]
        stored += pack.instance_table["dicom_delta"].to_pylist()
    return [Codec.create("zstd").decode(each).decode() for each in stored]


def test_the_same_tables_and_headers(both):
    ours, theirs = (dicom.DicomPatientReader(path) for path in both)
    assert_same_table(
        ours.instance_table.drop_columns(ENCODED), theirs.instance_table.drop_columns(ENCODED)
    )
    series = ours.series_table.drop_columns([*ENCODED_SERIES, "patient_id"])
    assert_same_table(series, theirs.series_table.drop_columns(ENCODED_SERIES))
    assert "" not in ours.series_table["patient_id"].to_pylist()  # NULL where there is none
    assert models(both[0]) == models(both[1])
    layout = [f"{t}_table_{f}" for t in ("slide", "index") for f in ("offset", "length")]
    drop = {*layout, "data_offset", "data_length", "metadata_length", "created_by"}
    left = [{k: v for k, v in r.header.items() if k not in drop} for r in (ours, theirs)]
    assert left[0] == left[1]


def test_each_reads_the_others(both):
    for path in both:
        ours, theirs = dicom.DicomPatientReader(path), peer.DicomPatientReader(str(path))
        assert validate_package(path, max_decode=0, max_crc=0)["records"] == len(ours)
        for row in range(len(ours)):
            data = theirs.read_dicom(row, verify=True)
            assert as_json(ours.read_dicom(row)) == as_json(data)
            if ours.instance_table["has_pixel_data"][row].as_py():
                array = theirs.read_pixel_array(row, verify=True)
                found = ours.read_pixel_array(row)
                assert found.dtype == array.dtype
                assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({}, {"storage": "original"}),
        ({}, {"exact": True}),
        ({}, {"patients": "many"}),
        ({"pixels": pixels_of(0, (4, 4), "uint32")}, {}),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, {}),
        ({"PhotometricInterpretation": "YBR_FULL", "pixels": pixels_of(0, (4, 4, 3), "uint8")}, {}),
    ],
    ids=lambda v: " ".join(map(str, v))[:30] if v else "as it is",
)
def test_what_is_beyond_its_limits_the_peer_refuses(tmp_path, change, options):
    result = build(tmp_path / "x.iac", slice_of(**change), strict=True, **options)
    assert_refused(tmp_path / "x.iac", result)


@pytest.mark.parametrize(
    "name",
    ["MR_small_bigendian", "rtdose", "liver_1frame", "examples_ybr_color", "SC_rgb_rle_2frame"],
)
def test_bundled_files_beyond_its_limits(tmp_path, name):
    result = build(tmp_path / "x.iac", BUNDLED / "test_files" / f"{name}.dcm", strict=True)
    assert_refused(tmp_path / "x.iac", result)


def assert_refused(path, result):
    assert result.schema_version == 2
    with pytest.raises(ValueError, match="version"):
        peer.DicomPatientReader(str(path)).read_pixel_array(0)
    with pytest.raises((KeyError, ValueError)):  # it looks for no version
        validate_package(path)


def test_columns_of_tags_and_patients_do_not_keep_the_peer_away(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1), tags=["SliceThickness"])
    assert pack.header["dicom_schema_version"] == 1
    theirs = peer.DicomPatientReader(str(tmp_path / "x.iac"))
    assert "patient_id" in theirs.series_table.column_names
    assert np.array_equal(theirs.read_pixel_array(1), pixels_of(1, (12, 16)))
    validate_package(tmp_path / "x.iac")


def test_the_pack_of_the_vectors():
    pack = dicom.DicomPatientReader(DATA / "dicom_patient.iac")
    templates = [pack._headers.template(i, True) for i in range(len(pack.series_table))]
    assert templates == [entry.get("template", entry) for entry in GOLDEN["templates"]]
    assert len(GOLDEN["instances"]) == len(pack)
    for entry in GOLDEN["instances"]:
        row, pixels = entry["row"], entry.get("pixels")
        model = pack._headers.model(row, True)
        assert {**model["dataset"], **entry["delta"]["dataset"]} == model["dataset"]
        if pixels:
            array = pack.read_pixel_array(row)
            assert (array.dtype.name, list(array.shape)) == (pixels["dtype"], pixels["shape"])
            assert hashlib.sha256(array.tobytes()).hexdigest() == pixels["sha256"]
        digest = hashlib.sha256(pack.read_dicom(row)).hexdigest()
        assert digest == entry["read_dicom_sha256"]


def test_a_patient_is_known_where_the_peer_had_no_column(both):
    pack = dicom.DicomPatientReader(both[1])
    assert "patient_id" not in pack.series_table.column_names
    assert isinstance(pack.series_table, pa.Table)
    assert "00100020" in pack.read_tags(0)
