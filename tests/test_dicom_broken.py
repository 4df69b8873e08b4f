"""Broken and hostile files: reported or built, never a crash, and never half a pack."""

import io
import random
import struct
import weakref

import iac_query.adapters.dicom.spool as spool_module
import numpy as np
import pydicom
import pytest
from dicom_packs import rewritten, with_delta
from dicoms import BUNDLED, build, encapsulated, file_of, pack_of, pixels_of, read, slice_of
from hypothesis import given, settings
from hypothesis import strategies as st
from iac_query.adapters import dicom
from iac_query.adapters.dicom import exact
from iac_query.adapters.dicom.instance import read_dataset
from iac_query.adapters.dicom.template import Template, merged
from packs import replaced
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.pixels import get_encoder
from pydicom.uid import RLELossless

import iac_query as iac

NAMES = ["CT_small", "MR_small_RLE", "SC_rgb_jpeg_gdcm", "JPEGLSNearLossless_08", "reportsi"]


def check(path, result):
    """What was built can be read, all of it."""
    with dicom.DicomPatientReader(path) as pack:
        assert len(pack) == pack.record_count
        pack.read_pixel_arrays(range(len(pack)), on_error="null", modality_lut=False)
        for row in range(min(len(pack), 3)):
            pack.read_tags(row)
            pack.read_dicom(row)
    assert result.instances + len(result.failures) + result.duplicates > 0


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("name", NAMES)
def test_flipped_bytes_and_cut_files(tmp_path, name, storage):
    whole = (BUNDLED / "test_files" / f"{name}.dcm").read_bytes()
    dice = random.Random(7)
    for _ in range(25):
        file = bytearray(whole)
        for _ in range(dice.choice([1, 3, 30])):
            end = len(file) if dice.random() < 0.3 else min(len(file), 2000)
            file[dice.randrange(end)] = dice.randrange(256)
        if dice.random() < 0.3:
            del file[dice.randrange(len(file)) :]
        try:
            result = build(tmp_path / "x.iac", bytes(file), storage=storage)
        except dicom.DicomConflictError:
            raise
        except ValueError as error:
            assert "none of 1 files can be read" in str(error)
            continue
        check(tmp_path / "x.iac", result)


@pytest.mark.parametrize("cut", [1, 7, 200, 384])
@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_truncated_pixels_are_no_pixels(tmp_path, cut, storage):
    result = build(tmp_path / "x.iac", file_of(slice_of(0))[:-cut], slice_of(1), storage=storage)
    assert (result.instances, len(result.failures)) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"Rows": 0},
        {"Rows": 65535, "Columns": 65535},
        {"NumberOfFrames": 2},
        {"NumberOfFrames": -1},
        {"NumberOfFrames": 10**9},
        {"SamplesPerPixel": 200},
        {"BitsAllocated": 7},
        {"BitsStored": 17},
        {"BitsStored": 0},
        {"PixelRepresentation": 7},
        {"PhotometricInterpretation": "NO SUCH COLOUR"},
        {"PhotometricInterpretation": ""},
        {"PixelData": b""},
        {"Rows": None},
        {"HighBit": 65535},
        {"PlanarConfiguration": 65535},
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_impossible_pixel_modules(tmp_path, change, storage):
    result = build(tmp_path / "x.iac", slice_of(0, **change), slice_of(1), storage=storage)
    assert (result.instances, len(result.failures)) == (1, 1)
    assert str(result.failures[0].error)


def test_an_image_that_claims_to_be_huge(tmp_path):
    """A few bytes of JPEG-LS with a header of 65,535 pixels squared."""
    frame = bytearray(iac.Codec.create("jpegls").encode(pixels_of(0, (8, 8), "uint16")))
    at = frame.index(b"\xff\xf7")
    struct.pack_into(">HH", frame, at + 5, 65535, 65535)
    ds = slice_of(0, pixels=pixels_of(0, (8, 8), "uint16"), Rows=65535, Columns=65535)
    ds = encapsulated(ds, "1.2.840.10008.1.2.4.80", [bytes(frame)])
    result = build(tmp_path / "x.iac", ds, slice_of(1))
    assert (result.instances, len(result.failures)) == (1, 1)


def test_nested_private_and_empty_things(tmp_path):
    ds = slice_of(0)
    inner = Dataset()
    inner.add_new(0x00110010, "LO", "INNER")
    inner.add_new(0x00111001, "UN", b"\0" * 9 + b"\xff")
    for _ in range(40):
        outer = Dataset()
        outer.add_new(0x00110010, "LO", "OUTER")
        outer.add_new(0x00111002, "SQ", [inner, Dataset()])
        inner = outer
    ds.add_new(0x00110010, "LO", "DEEP")
    ds.add_new(0x00111002, "SQ", [inner])
    ds.add_new(0x00111003, "OB", b"")
    ds.add_new(0x00111004, "FL", [])
    for storage in ("jxl", "original"):
        pack = pack_of(tmp_path / "x.iac", ds, storage=storage)
        again = pack_of(tmp_path / "y.iac", pack.read_dicom(0))
        assert again.read_tags(0)["00111002"] == pack.read_tags(0)["00111002"]


class Stream(io.BytesIO):
    """A stream whose life can be watched."""


def test_memory_holds_a_block_and_not_the_patient(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_module, "_BLOCK_FRAMES", 4)
    alive: weakref.WeakSet = weakref.WeakSet()
    most = 0

    def streams():
        nonlocal most
        for number in range(60):
            stream = Stream(file_of(slice_of(number)))
            alive.add(stream)
            most = max(most, len(alive))
            yield stream

    result = dicom.build_dicom_patient_package_from_files(
        streams(), tmp_path / "x.iac", effort=1, workers=2
    )
    assert result.instances == 60
    assert most <= 3


# Properties

TAGS = st.sampled_from(["00080060", "00100010", "00200013", "00281052"])
ELEMENTS = st.fixed_dictionaries(
    {"vr": st.just("LO"), "Value": st.lists(st.sampled_from([1, 1.0, "1", "ä\n", None]))}
)
MODELS = st.fixed_dictionaries(
    {
        "dataset": st.dictionaries(TAGS, ELEMENTS),
        "file_meta": st.dictionaries(TAGS, ELEMENTS),
        "preamble": st.sampled_from([None, "AAAA", "AAAB"]),
    }
)


@settings(max_examples=20)
@given(st.lists(MODELS, min_size=1, max_size=5))
def test_models_are_what_template_and_deltas_say(models):
    import json

    template = Template(models[0])
    for model in models[1:]:
        template.add(model)
    shared = json.loads(template.to_json())
    for model in models:
        again = merged(shared, json.loads(template.delta(model)))
        assert json.dumps(again, sort_keys=True) == json.dumps(model, sort_keys=True)


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=2, max_size=40), min_size=1, max_size=4), st.booleans())
def test_files_are_put_together_again(frames, native):
    frames = [frame + b"\0" * (len(frame) % 2) for frame in frames]
    array = np.zeros((2, 2), np.uint8)
    ds = slice_of(0, pixels=array, NumberOfFrames=len(frames))
    if native:
        ds.PixelData = b"".join(frames)
    else:
        ds = encapsulated(ds, "1.2.840.10008.1.2.4.80", frames)
    file = file_of(ds)
    source = read_dataset(file)
    header = exact.cut(file, source, frames, encapsulated=not native)
    assert exact.restore(header, frames) == file
    sizes = sum(map(len, frames))
    assert len(header) <= len(file) - sizes + 4 + 16 * max(len(frames), 1)


def test_headers_that_were_tampered_with(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), storage="original")
    header = pack._headers.exact(0, True)
    count = struct.unpack_from("<I", header)[0]
    assert count == 1
    for wrong in (b"", b"\xff\xff\xff\xff", header[:10], b"\xff" * 40):
        with pytest.raises(ValueError, match="damaged"):
            exact.restore(wrong, [b"x"])


def in_frames(count: int, said: int | None, shape=(12, 16), dtype="int16", **elements) -> Dataset:
    """So many frames of which the header says another number."""
    frames = np.stack([pixels_of(number, shape, dtype) for number in range(count)])
    ds = slice_of(0, pixels=frames[0], **elements)
    ds.PixelData = frames.tobytes() + b"\0" * (frames.nbytes % 2)
    if said is not None:
        ds.NumberOfFrames = said
    return ds


def compressed(codec: str, syntax: str, said: int | None, table: bool) -> Dataset:
    """Four compressed frames, with offset table or without."""
    frames = [pixels_of(number, (12, 16), "uint16") for number in range(4)]
    ds = slice_of(0, pixels=frames[0], NumberOfFrames=len(frames))
    ds.PixelData = np.stack(frames).tobytes()
    if codec == "rle":
        encoded = [get_encoder(RLELossless).encode(ds, index=i) for i in range(len(frames))]
    else:
        encoded = [iac.Codec.create(codec).encode(frame) for frame in frames]
    encapsulated(ds, syntax, encoded)
    ds.PixelData = encapsulate(encoded, has_bot=table)
    del ds.NumberOfFrames
    if said is not None:
        ds.NumberOfFrames = said
    return ds


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("said", [None, 2, 3])
def test_more_frames_than_the_header_says_are_not_dropped(tmp_path, said, storage):
    files = [in_frames(4, said)]
    for table in (False, True):
        files.append(compressed("rle", "1.2.840.10008.1.2.5", said, table))
        files.append(compressed("jpegls", "1.2.840.10008.1.2.4.80", said, table))
    for file in files:
        result = build(tmp_path / "x.iac", file, slice_of(1), storage=storage)
        assert (result.instances, len(result.failures)) == (1, 1)
        assert f"Number of Frames says {said or 1}" in str(result.failures[0].error)
        with pytest.raises(ValueError, match="Number of Frames says"):
            build(tmp_path / "x.iac", file, slice_of(1), storage=storage, strict=True)


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_frames_that_are_all_there(tmp_path, storage):
    odd = in_frames(3, 3, (3, 5), "uint8")  # 45 bytes and one of padding
    assert len(odd.PixelData) == 46
    fragments = compressed("jpegls", "1.2.840.10008.1.2.4.80", None, False)
    whole = iac.Codec.create("jpegls").encode(pixels_of(0, (12, 16), "uint16"))
    fragments.PixelData = encapsulate([whole], fragments_per_frame=3, has_bot=False)
    for file, count in (
        (odd, 3),
        (fragments, 1),
        (compressed("rle", "1.2.840.10008.1.2.5", 4, False), 4),
        (compressed("jpegls", "1.2.840.10008.1.2.4.80", 4, True), 4),
    ):
        with pack_of(tmp_path / "x.iac", file, storage=storage) as pack:
            assert len(pack.read_pixel_arrays(range(len(pack)))) == count


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_frames_of_subsampled_colours(tmp_path, storage):
    ds = slice_of(0, pixels=pixels_of(0, (4, 6, 3), "uint8"), NumberOfFrames=3)
    ds.PhotometricInterpretation = "YBR_FULL_422"
    ds.PixelData = bytes(range(144))
    with pack_of(tmp_path / "x.iac", ds, storage=storage) as pack:
        assert np.array_equal(pack.read_tensor(range(3)), read(file_of(ds)).pixel_array)


@pytest.mark.parametrize("text", ["1.5", "99999999999999999999", "1_0", "1e-3"])
def test_integers_as_text_that_are_another_number(tmp_path, text):
    size = len(text) + len(text) % 2
    file = file_of(slice_of(0, SeriesNumber="7" * size))
    bad = file.replace(b"7" * size, text.ljust(size).encode())
    assert bad != file
    with pack_of(tmp_path / "x.iac", bad) as pack:
        assert "00200011" not in pack.read_tags(0)
        assert pack.header["errors"] == [{"code": "invalid_numeric_value", "count": 1}]
        again = pydicom.dcmread(io.BytesIO(pack.read_dicom(0)))
        assert again.get_item("SeriesNumber").value.strip() == text.encode()


@pytest.mark.parametrize("name", ["template_offset", "template_length"])
def test_a_template_outside_of_the_data(tmp_path, name):
    pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1)).close()
    rewritten(tmp_path / "x.iac", tmp_path / "y.iac", series=replaced(name, 0, 1 << 30))
    with dicom.DicomPatientReader(tmp_path / "y.iac") as pack:
        for read_one in (pack.read_tags, pack.read_dataset, pack.read_dicom):
            with pytest.raises(iac.PackError, match=r"y\.iac: row 1: series 0: its template"):
                read_one(1)


@pytest.mark.parametrize("version", [1.0, True])
def test_versions_are_integers(tmp_path, version):
    pack_of(tmp_path / "x.iac", slice_of(0)).close()
    header = {"dicom_schema_version": version}
    rewritten(tmp_path / "x.iac", tmp_path / "y.iac", header=header)
    with pytest.raises(iac.PackError, match=r"y\.iac: dicom_schema_version is"):
        dicom.DicomPatientReader(tmp_path / "y.iac")


def test_headers_nested_without_end(tmp_path):
    pack_of(tmp_path / "x.iac", slice_of(0)).close()
    for depth in (400, 100_000):
        item = '{"00400275":{"vr":"SQ","Value":['
        deep = item * depth + "]}}" * depth
        delta = f'{{"dataset":{deep},"file_meta":{{}},"preamble":null}}'.encode()
        path = tmp_path / f"{depth}.iac"
        rewritten(tmp_path / "x.iac", path, index=with_delta(0, delta))
        pack = dicom.DicomPatientReader(path)
        with pytest.raises(iac.PackError, match="row 0: its"):
            pack.read_tags(0)
