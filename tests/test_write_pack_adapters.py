"""A cohort out of an adapter's packs is such a pack, or an error that says why not."""

from pathlib import Path

import dicoms as dicom_files
import numpy as np
import pyarrow as pa
import pytest
from iac_query.adapters.dicom import DicomPatientReader, build_dicom_patient_package_from_files
from iatro.iac.adapters import dicom, features, text, text_pair, tiles, validate
from packs import DATA, assemble, layout_index, slide_table
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

import iac_query as iac

PACKS = ("tiles_lossless", "features_f32", "clinical_text", "clinical_text_pair")


@pytest.mark.parametrize("name", PACKS)
def test_all_of_a_pack_is_that_pack(con, tmp_path: Path, name: str):
    source = DATA / f"{name}.iac"
    for number, rows in enumerate((con.sql(f"FROM '{source}'"), con.sql(f"FROM '{source}'").pl())):
        iac.write_pack(rows, tmp_path / f"{number}.iac")
        assert (tmp_path / f"{number}.iac").read_bytes() == source.read_bytes()


def tile_pack(path: Path, slide: str, ids: list[str], size: int = 8, **header) -> Path:
    """Tiles of one slide, by the peer."""
    chance = np.random.default_rng(len(ids))
    pixels = [chance.integers(0, 255, (size, size, 3), np.uint8) for _ in ids]
    codec = iac.Codec.create("jxl", lossless=True)
    records = [
        tiles.TileRecord(id, f"patient-{slide}", slide, Path("x"), size * i, 0, "train")
        for i, id in enumerate(ids)
    ]
    tiles.build_tile_package_from_records(
        records,
        codec.encode_many(pixels),
        path,
        tile_width=size,
        tile_height=size,
        lossless=True,
        stride_x=size,
        stride_y=size,
        extra_header=header,
    )
    return path


def test_tiles_of_several_packs(con, tmp_path: Path):
    one = tile_pack(tmp_path / "one.iac", "s1", ["a", "b", "c"])
    two = tile_pack(tmp_path / "two.iac", "s2", ["d", "e"])
    out = tmp_path / "out.iac"
    query = f"FROM '{tmp_path}/*.iac' WHERE tile_id IN ('b', 'd') ORDER BY tile_id DESC"
    iac.write_pack(con.sql(f"SELECT *, 'mine' AS label {query}"), out)
    peer = tiles.TilePackageReader(out)
    assert np.array_equal(peer.read_image("d"), tiles.TilePackageReader(two).read_image("d"))
    assert np.array_equal(peer.read_image("b"), tiles.TilePackageReader(one).read_image("b"))
    assert validate.validate_package(out, max_crc=10)["records"] == 2
    manifest = [
        (r.tile_id, r.slide_id, r.patient_id, r.x) for r in tiles.read_package_manifest(out)
    ]
    assert manifest == [("d", "s2", "patient-s2", 0), ("b", "s1", "patient-s1", 8)]
    pack = iac.PackReader(out)
    assert pack.slide_table["slide_idx"].to_pylist() == [0, 1]
    assert pack.index_table["label"].to_pylist() == ["mine"] * 2


@pytest.mark.parametrize(
    ("select", "options", "reason"),
    [
        ("* EXCLUDE (tile_x, patient_id)", {}, r"columns \['patient_id'\] are not among"),
        ("* EXCLUDE (tile_x, flags)", {}, r"columns \['tile_x', 'flags'\] are not among"),
        ("* REPLACE ('t' AS tile_id)", {}, "values of the column 'tile_id' repeat"),
        ("* REPLACE (-1 AS tile_x)", {}, "'tile_x' does not fit into uint16"),
        ("* REPLACE (NULL AS split)", {}, "'split' has NULLs"),
        ("*", {"codec": "jpegls"}, "codec must be 'jxl'"),
    ],
)
def test_what_is_no_pack_of_tiles(con, tmp_path: Path, select: str, options, reason: str):
    rows = con.sql(f"SELECT {select} FROM '{DATA / 'tiles_lossless.iac'}'")
    out = tmp_path / "out.iac"
    with pytest.raises(ValueError, match=f"{reason}.*payload_type='records'"):
        iac.write_pack(rows, out, **options)
    assert list(tmp_path.iterdir()) == []
    iac.write_pack(rows, out, **options, payload_type="records")
    header = iac.PackReader(out).header
    assert header["payload_type"] == "records" and "tile_width" not in header
    assert len(iac.VariableRecordPack(out).read_many(range(7))) == 7


def test_tiles_of_unlike_packs_make_no_pack(con, tmp_path: Path):
    tile_pack(tmp_path / "one.iac", "s1", ["a"], size=8)
    tile_pack(tmp_path / "two.iac", "s2", ["b"], size=16)
    with pytest.raises(ValueError, match="no 'tile_width', or that of the packs differs"):
        iac.write_pack(con.sql(f"FROM '{tmp_path}/*.iac'"), tmp_path / "out.iac")


def test_too_many_slides_for_tiles(con, tmp_path: Path):
    rows = f"FROM '{DATA / 'tiles_lossless.iac'}' LIMIT 1"
    many = con.sql(
        f"SELECT * EXCLUDE slide_idx REPLACE (i::VARCHAR AS slide_id, i::VARCHAR AS tile_id) "
        f"FROM ({rows}), range(256) r(i)"
    )
    with pytest.raises(ValueError, match=r"256 slides|does not fit into uint8"):
        iac.write_pack(many.df().drop(columns="i"), tmp_path / "out.iac")


def test_what_a_query_left_out_or_changed_stays_so(con, tmp_path: Path):
    source = DATA / "tiles_lossless.iac"
    out = tmp_path / "out.iac"
    query = f"SELECT * REPLACE ('p' || md5(patient_id) AS patient_id) FROM '{source}'"
    iac.write_pack(con.sql(query), out)
    raw = out.read_bytes()
    for patient in iac.PackReader(source).slide_table["patient_id"].to_pylist():
        assert patient.encode() not in raw
    assert validate.validate_package(out)["records"] == 7


def test_features(con, tmp_path: Path):
    source = DATA / "features_f32.iac"
    out = tmp_path / "out.iac"
    iac.write_pack(con.sql(f"FROM '{source}' ORDER BY tile_id DESC LIMIT 3"), out)
    ours, theirs = features.FeatureCacheReader(out), features.FeatureCacheReader(source)
    for row in range(3):
        id = ours.tile_id_at(row)
        assert np.array_equal(ours.read_feature(id), theirs.read_feature(id))
    assert validate.validate_package(out)["records"] == 3


@pytest.mark.parametrize("name", ["clinical_text", "clinical_text_pair"])
def test_texts(con, tmp_path: Path, name: str):
    source = DATA / f"{name}.iac"
    out = tmp_path / "out.iac"
    iac.write_pack(con.sql(f"FROM '{source}' ORDER BY patient_id DESC LIMIT 2"), out)
    module = text if name == "clinical_text" else text_pair
    reader = next(
        value
        for key, value in vars(module).items()
        if key.startswith("Clinical") and "Reader" in key
    )
    ours, theirs = reader(out), reader(source)
    for patient in iac.PackReader(out).index_table["patient_id"].to_pylist():
        assert ours.read_patient(patient) == theirs.read_patient(patient)
    assert iac.PackReader(out).slide_table["slide_id"].to_pylist() == [name]


@pytest.mark.parametrize("payload_type", ["wsi_image"])
def test_packs_that_are_one_whole(con, tmp_path: Path, payload_type: str):
    codecs = [{"id": 0, "name": "none", "params": {}}, {"id": 1, "name": "zstd", "params": {}}]
    zstd = iac.Codec.create("zstd").encode(b"y" * 50)
    index = layout_index([0, 3], [3, len(zstd)], codec_id=pa.array([0, 1], pa.uint8()))
    source = tmp_path / "s.iac"
    assemble(
        source,
        index,
        b"xxx" + zstd,
        slide_table(),
        (1, 2),
        payload_type=payload_type,
        record_codecs=codecs,
        raster_codec="none",
    )
    rows = con.sql(f"FROM '{source}'").pl()
    out = tmp_path / "out.iac"
    with pytest.raises(ValueError, match=f"no pack of '{payload_type}'.*payload_type='records'"):
        iac.write_pack(rows, out)
    iac.write_pack(rows, out, payload_type="regions")
    pack = iac.VariableRecordPack(out)
    assert pack.read_many([0, 1]) == [b"xxx", b"y" * 50]
    assert "raster_codec" not in pack.header


@pytest.fixture
def dicoms(tmp_path: Path) -> Path:
    """Two series of three instances, by the peer."""
    folder = tmp_path / "dicom"
    folder.mkdir()
    for number in range(6):
        write_dicom(folder / f"{number}.dcm", f"1.2.3.{number // 3}", number)
    dicom.build_dicom_patient_package(folder, tmp_path / "patient.iac", effort=1)
    return tmp_path / "patient.iac"


def write_dicom(path: Path, series: str, number: int) -> None:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    meta.MediaStorageSOPInstanceUID = f"1.2.3.9.{number}"
    data = Dataset()
    data.file_meta = meta
    data.SOPClassUID = meta.MediaStorageSOPClassUID
    data.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    data.PatientID, data.Modality, data.InstanceNumber = "p1", "CT", number
    data.StudyInstanceUID, data.SeriesInstanceUID = "1.2.3", series
    data.SeriesDescription = f"series {series}"
    data.Rows, data.Columns, data.SamplesPerPixel = 8, 6, 1
    data.PhotometricInterpretation = "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit = 16, 12, 11
    data.PixelRepresentation = 0
    data.PixelData = np.random.default_rng(number).integers(0, 4096, 48).astype("<u2").tobytes()
    data.save_as(path, enforce_file_format=True)


def test_some_instances_of_a_patient(con, tmp_path: Path, dicoms: Path):
    out = tmp_path / "out.iac"
    query = f"FROM '{dicoms}' WHERE series_uid = '1.2.3.1' ORDER BY instance_number DESC LIMIT 2"
    iac.write_pack(con.sql(query), out)
    result = validate.validate_package(out, max_crc=10)
    assert (result["records"], result["series"]) == (2, 1)
    ours, theirs = dicom.DicomPatientReader(out), dicom.DicomPatientReader(dicoms)
    for row, source in enumerate((5, 4)):
        assert ours.read_dicom(row, verify=True) == theirs.read_dicom(source)
        assert np.array_equal(ours.read_pixel_array(row), theirs.read_pixel_array(source))
        with DicomPatientReader(out) as reader:
            assert np.array_equal(reader.read_pixel_array(row), ours.read_pixel_array(row))
            assert reader.read_tags(row)["00080060"]["Value"] == ["CT"]
            assert reader.rows_of_series("1.2.3.1").tolist() == [0, 1]
    pack = iac.PackReader(out)
    assert pack.slide_table["instance_count"].to_pylist() == [2]
    assert pack.header["metadata_length"] == pack.slide_table["template_length"][0].as_py()
    assert np.array_equal(iac.VariableRecordPack(out).read(0), ours.read_pixel_array(0))


def test_all_of_a_patient(con, tmp_path: Path, dicoms: Path):
    for number, rows in enumerate((con.sql(f"FROM '{dicoms}'"), con.sql(f"FROM '{dicoms}'").pl())):
        out = tmp_path / f"{number}.iac"
        iac.write_pack(rows, out)
        assert validate.validate_package(out, max_crc=10)["records"] == 6
        ours, theirs = dicom.DicomPatientReader(out), dicom.DicomPatientReader(dicoms)
        assert all(ours.read_dicom(row) == theirs.read_dicom(row) for row in range(6))


def test_what_is_no_patient(con, tmp_path: Path, dicoms: Path):
    other = tmp_path / "other.iac"
    other.write_bytes(dicoms.read_bytes())
    out = tmp_path / "out.iac"
    for query, options, reason in (
        (f"FROM iac_scan(['{dicoms}', '{other}'])", {}, "one patient"),
        (f"SELECT * EXCLUDE dicom_delta FROM '{dicoms}'", {}, r"\['dicom_delta'\]"),
        (f"SELECT * EXCLUDE template_offset FROM '{dicoms}'", {}, r"\['template_offset'\]"),
        (f"FROM '{dicoms}'", {"codec": "jxl"}, "lossless JPEG XL in containers"),
        (f"FROM '{dicoms}'", {"codec": "jpegls"}, "must be|must be 'jxl'"),
        (f"SELECT * REPLACE (5 AS template_length) FROM '{dicoms}'", {}, "crc32 is another one"),
    ):
        with pytest.raises(ValueError, match=reason):
            iac.write_pack(con.sql(query), out, **options)
        assert not out.exists()
    iac.write_pack(con.sql(f"FROM '{dicoms}'"), out, "jpegls", payload_type="slices")
    slices = iac.VariableRecordPack(out).read_many(range(6))
    assert all(map(np.array_equal, slices, iac.VariableRecordPack(dicoms).read_many(range(6))))
    with pytest.raises(ValueError, match="header has no"):
        payloads = con.sql(f"SELECT * EXCLUDE record, iac_image(record) AS payload FROM '{dicoms}'")
        jxl = iac.Codec.create("jxl", lossless=True, usecontainer=True)
        iac.write_pack(payloads, out, jxl, overwrite=True, payload_type="dicom_patient")


def test_some_frames_of_an_instance_are_no_patient(con, tmp_path: Path):
    files = []
    for number in range(2):
        ds = dicom_files.slice_of(number)
        if number == 0:
            dicom_files.set_pixels(ds, dicom_files.pixels_of(0, (4, 12, 16)), frames=True)
        files.append(tmp_path / f"{number}.dcm")
        ds.save_as(files[-1], enforce_file_format=True)
    path, out = tmp_path / "x.iac", tmp_path / "out.iac"
    build_dicom_patient_package_from_files(files, path)
    for frame in (0, 2):
        chosen = con.sql(f"FROM '{path}' WHERE frame_index = {frame} OR number_of_frames = 1")
        with pytest.raises(iac.PackError, match="rows are not all frames of each instance"):
            iac.write_pack(chosen, out)
    assert not out.exists()
