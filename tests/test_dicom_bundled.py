"""Every file that comes with pydicom: built, or refused for a reason that is known."""

import numpy as np
import pytest
from dicoms import BUNDLED, JPEG_XL, build, pack_of, read
from iac_query.adapters import dicom
from pydicom.uid import JPEGTransferSyntaxes

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")

NOT_DICOM = {".gz", ".icc", ".json", ".md", ".py", ".pyc", ".dump", ".txt"}
FILES = sorted(
    path for path in BUNDLED.rglob("*") if path.is_file() and path.suffix not in NOT_DICOM
)
#: What keeps a file out, in pydicom's own words but for the first.
REFUSED = {
    "no SOP Instance UID": ["empty_charset_LEI", "meta_missing_tsyntax", "nested_priv_SQ"],
    "DICM": ["ExplVR_BigEndNoMeta", "ExplVR_LitEndNoMeta", "no_meta", "rtstruct", "README"],
    "exceeds limit": ["JPEG2000-embedded-sequence-delimiter"],  # a damaged size
    "less than expected": ["MR_truncated"],
    "invalid literal": ["badVR"],  # Number of Frames is 1A
}
REASONS = {name: reason for reason, names in REFUSED.items() for name in names}


def expected(path):
    """pydicom's pixel_array as frames, None where it has no decoder, or there are no pixels."""
    ds = read(path)
    try:
        array = ds.pixel_array
    except (AttributeError, RuntimeError):
        return None
    return array if int(ds.get("NumberOfFrames", 1) or 1) > 1 else array[None]


def test_there_are_over_a_hundred():
    assert len(FILES) > 150
    assert sum(path.stem in REASONS for path in FILES) == len(REASONS)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem in REASONS], ids=lambda p: p.stem)
def test_refused(tmp_path, path):
    with pytest.raises(ValueError, match=f"(?s)none of 1 files.*{REASONS[path.stem]}"):
        build(tmp_path / "x.iac", path)
    with pytest.raises(ValueError, match=REASONS[path.stem]) as raised:
        build(tmp_path / "x.iac", path, strict=True)
    assert str(path) in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [p for p in FILES if p.stem not in REASONS], ids=lambda p: p.stem)
def test_built(tmp_path, path):
    packs = {
        storage: pack_of(tmp_path / f"{storage}.iac", path, storage=storage)
        for storage in ("jxl", "original")
    }
    for storage, pack in packs.items():
        if pack.instance_table["has_pixel_data"][0].as_py():
            check_pixels(path, pack)
        else:
            assert len(pack) == 1
            with pytest.raises(ValueError, match="row 0: its instance has no pixels"):
                pack.read_pixel_array(0)
        written = pack.read_dicom(0, exact=storage == "original")
        if storage == "original":
            assert written == path.read_bytes()
        else:
            check_rewritten(tmp_path, path, pack, written)


def uid_of(path):
    ds = read(path)
    return str(ds.get("SOPInstanceUID", ds.file_meta.MediaStorageSOPInstanceUID))


def check_pixels(path, pack):
    frames = pack.read_tensor(range(len(pack)), workers=2)
    wanted = expected(path)
    if wanted is None:
        return
    assert frames.dtype == wanted.dtype.newbyteorder("=")
    assert frames.shape == wanted.shape
    if read(path).file_meta.TransferSyntaxUID in JPEGTransferSyntaxes:
        # Colours are converted by libjpeg in integers and by pydicom in floats.
        assert abs(frames.astype(int) - wanted).max() <= 1
    else:
        assert np.array_equal(frames, wanted)
    assert np.array_equal(pack.read_pixel_array(-1), frames[-1])


def check_rewritten(tmp_path, path, pack, written):
    """What was rebuilt from JSON is the source but for what describes its pixels."""
    source, back = read(path), read(written)
    for elem in source:
        # pydicom writes no group lengths.
        if elem.tag.group in (0x0028, 0x7FE0) or elem.tag.element == 0:
            continue
        assert back[elem.tag].to_json_dict(None, 0) == elem.to_json_dict(None, 0)
    again = pack_of(tmp_path / "again.iac", written)
    assert len(again) == len(pack)
    if pack.instance_table["has_pixel_data"][0].as_py():
        rows = range(len(pack))
        assert np.array_equal(again.read_tensor(rows), pack.read_tensor(rows))
        in_jxl = pack.instance_table["bits_allocated"][0].as_py() <= 16
        assert (back.file_meta.TransferSyntaxUID == JPEG_XL) == in_jxl


def test_all_of_them_in_one_pack(tmp_path):
    """Those of different instances, of many patients, and a report of the rest."""
    chosen, seen = [], set()
    for path in FILES:
        if path.stem not in REASONS:
            uid = uid_of(path)
            if uid not in seen:
                chosen.append(path)
            seen.add(uid)
    refused = [path for path in FILES if path.stem in REASONS]
    result = build(tmp_path / "x.iac", *refused, *chosen, patients="many", storage="original")
    assert result.instances == len(chosen)
    assert sorted(f.source for f in result.failures) == sorted(map(str, refused))
    pack = dicom.DicomPatientReader(tmp_path / "x.iac")
    assert pack.header["errors"][-1] == {"code": "unreadable_file", "count": len(refused)}
    table = pack.instance_table
    assert result.frames == sum(table["has_pixel_data"].to_pylist())
    for path in chosen[::7]:
        row = pack.row_of(uid_of(path))
        assert pack.read_dicom(row, exact=True) == path.read_bytes()
    arrays = pack.read_pixel_arrays(range(len(pack)), on_error="null")
    for row, array in enumerate(arrays):
        assert (array is not None) == table["has_pixel_data"][row].as_py()
