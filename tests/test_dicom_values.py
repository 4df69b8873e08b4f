"""Stored values as what they stand for."""

import re

import numpy as np
import pytest
from dicoms import BUNDLED, file_of, pack_of, pixels_of, read, slice_of
from iac_query.adapters.dicom.values import ValueOptions
from pydicom.dataset import Dataset
from pydicom.pixels import apply_color_lut, apply_modality_lut, apply_voi_lut


def lut(first: int, entries: list[int], bits: int = 16) -> Dataset:
    item = Dataset()
    item.LUTDescriptor = [len(entries), first, bits]
    item["LUTDescriptor"].VR = "US"
    item.LUTData = entries
    item["LUTData"].VR = "US"
    item.ModalityLUTType = "HU"
    return item


@pytest.mark.parametrize("name", ["CT_small", "MR_small", "examples_overlay", "rtdose"])
@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
def test_as_pydicom_computes_them(tmp_path, name, storage):
    path = BUNDLED / "test_files" / f"{name}.dcm"
    pack, ds = pack_of(tmp_path / "x.iac", path, storage=storage), read(path)
    stored = ds.pixel_array if name != "rtdose" else ds.pixel_array[3]
    row = 3 if name == "rtdose" else 0
    rescaled = apply_modality_lut(stored, ds)
    found = pack.read_pixel_array(row, modality_lut=True)
    assert found.dtype == rescaled.dtype
    assert np.array_equal(found, rescaled)
    windowed = apply_voi_lut(rescaled, ds)
    assert np.array_equal(pack.read_pixel_array(row, voi_lut=True), windowed)
    tensor = pack.read_tensor([row, row], modality_lut=True)
    expected = rescaled.astype(np.float32) if rescaled.dtype == np.float64 else rescaled
    assert np.array_equal(tensor[1], expected)


def test_hounsfield_units(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1, RescaleIntercept="-10.5"))
    tensor = pack.read_tensor([1, 0], modality_lut=True)
    assert tensor.dtype == np.float32
    assert np.array_equal(tensor[0], pixels_of(1, (12, 16)) * 2.0 - 10.5)
    assert np.array_equal(tensor[1], pixels_of(0, (12, 16)) * 2.0 - 1000)


def test_a_window_of_ones_own(tmp_path):
    ds = slice_of(0, BitsStored=12, HighBit=11, WindowCenter=0, WindowWidth=10)
    pack = pack_of(tmp_path / "x.iac", ds)
    ds.WindowCenter, ds.WindowWidth = 40, 400
    expected = apply_voi_lut(apply_modality_lut(pixels_of(0, (12, 16)), ds), ds)
    assert np.array_equal(pack.read_pixel_array(0, window=(40, 400)), expected)
    assert np.array_equal(pack.read_pixel_arrays([0], window=(40, 400))[0], expected)


def test_tables(tmp_path):
    stored = (pixels_of(0, (6, 6), "uint16") % 64).astype(np.uint16)
    modality = slice_of(0, pixels=stored)
    del modality.RescaleSlope, modality.RescaleIntercept
    modality.ModalityLUTSequence = [lut(0, [(i * 37) % 4096 for i in range(64)])]
    voi = slice_of(1, pixels=stored)
    del voi.RescaleSlope, voi.RescaleIntercept
    voi.VOILUTSequence = [lut(10, [1023 - i for i in range(40)], 10)]
    pack = pack_of(tmp_path / "x.iac", modality, voi)
    first = pack.read_pixel_array(0, modality_lut=True)
    assert np.array_equal(first, (stored.astype(int) * 37) % 4096)
    second = pack.read_pixel_array(1, voi_lut=True)
    assert np.array_equal(second, 1023 - np.clip(stored.astype(int) - 10, 0, 39))


@pytest.mark.parametrize(
    ("dtype", "bits", "both_ends"), [("uint16", 12, 4095), ("int16", 12, -1), ("uint8", 8, 255)]
)
def test_monochrome1_inverted(tmp_path, dtype, bits, both_ends):
    stored = pixels_of(0, (12, 16), dtype)
    stored = stored // 2 if dtype == "int16" else stored
    ds = slice_of(pixels=stored, PhotometricInterpretation="MONOCHROME1", BitsStored=bits)
    ds.HighBit = bits - 1
    other = slice_of(1, pixels=stored)
    pack = pack_of(tmp_path / "x.iac", ds, other)
    inverted = pack.read_pixel_array(0, invert=True)
    assert inverted.dtype == stored.dtype
    assert np.array_equal(inverted, both_ends - stored.astype(int))
    assert np.array_equal(pack.read_pixel_array(1, invert=True), stored)
    rescaled = pack.read_pixel_array(0, modality_lut=True, invert=True)
    ends = 2 * both_ends - 2000
    assert np.array_equal(rescaled, ends - (stored * 2.0 - 1000))
    plain = pack.read_pixel_array(0, window=(40, 400))
    inverted = pack.read_pixel_array(0, window=(40, 400), invert=True)
    assert np.allclose(plain + inverted, ends)


def test_monochrome1_inverted_behind_a_table(tmp_path):
    stored = (pixels_of(0, (6, 6), "uint16") % 64).astype(np.uint16)
    ds = slice_of(0, pixels=stored, PhotometricInterpretation="MONOCHROME1")
    ds.ModalityLUTSequence = [lut(0, list(range(64)), 8)]
    del ds.RescaleSlope, ds.RescaleIntercept
    pack = pack_of(tmp_path / "x.iac", ds)
    assert np.array_equal(pack.read_pixel_array(0, modality_lut=True, invert=True), 255 - stored)


def test_palettes_stay_indices_unless_asked_for(tmp_path):
    path = BUNDLED / "test_files" / "examples_palette.dcm"
    pack, ds = pack_of(tmp_path / "x.iac", path), read(path)
    assert np.array_equal(pack.read_pixel_array(0), ds.pixel_array)
    assert np.array_equal(pack.read_pixel_array(0, modality_lut=True), ds.pixel_array)
    colours = pack.read_pixel_array(0, palette=True)
    assert np.array_equal(colours, apply_color_lut(ds.pixel_array, ds))
    assert pack.read_tensor([0, 0], palette=True).shape == (2, *colours.shape)


def test_colours_have_no_such_values(tmp_path):
    array = pixels_of(0, (4, 4, 3), "uint8")
    pack = pack_of(tmp_path / "x.iac", slice_of(pixels=array))
    found = pack.read_pixel_array(0, modality_lut=True, window=(1, 2), invert=True, palette=True)
    assert np.array_equal(found, array)


@pytest.mark.parametrize("window", [(0, 0), (0, -1), (float("nan"), 1), (0, float("inf"))])
def test_impossible_windows(window):
    with pytest.raises(ValueError, match="window"):
        ValueOptions(window=window)


def test_two_windows():
    with pytest.raises(ValueError, match="not both"):
        ValueOptions(voi_lut=True, window=(1, 2))


def test_a_header_that_does_not_say_how(tmp_path):
    ds = slice_of(0)
    del ds.RescaleSlope
    ds.RescaleIntercept = "5"
    ds.VOILUTSequence = [Dataset()]
    pack = pack_of(tmp_path / "x.iac", slice_of(1), ds)
    with pytest.raises(ValueError, match=r"x\.iac: row 0: its values cannot be had"):
        pack.read_pixel_array(0, voi_lut=True)


def broken(ds: Dataset, good: bytes, bad: bytes) -> bytes:
    file = file_of(ds)
    assert file.count(good) == 1
    assert len(good) == len(bad)
    return file.replace(good, bad)


@pytest.mark.parametrize(
    ("keyword", "tag", "options"),
    [
        ("RescaleSlope", "0028,1053", {"modality_lut": True}),
        ("RescaleIntercept", "0028,1052", {"window": (1, 2)}),
        ("WindowCenter", "0028,1050", {"voi_lut": True}),
        ("WindowWidth", "0028,1051", {"voi_lut": True}),
    ],
)
def test_an_element_that_is_no_number(tmp_path, keyword, tag, options):
    said = {"WindowCenter": "1", "WindowWidth": "2", keyword: "8.75"}
    file = broken(slice_of(1, **said), b"8.75", b"8,75")
    pack = pack_of(tmp_path / "x.iac", slice_of(0, **said), file)
    message = rf"x\.iac: row 1: its .* {re.escape(f'({tag})')} is not what its VR says"
    for read_one in (
        lambda: pack.read_pixel_array(1, **options),
        lambda: pack.read_pixel_arrays([0, 1], **options),
        lambda: pack.read_tensor([0, 1], **options),
    ):
        with pytest.raises(ValueError, match=message):
            read_one()
    assert np.array_equal(pack.read_pixel_array(1), pixels_of(1, (12, 16)))
    if "modality_lut" in options:
        with pytest.raises(ValueError, match=message):
            pack.read_volume(0, modality_lut=True)
    elif "voi_lut" in options:  # which a rescale does without
        assert pack.read_pixel_array(1, modality_lut=True)[0, 0] == 311 * 2 - 2048 - 1000


def in_groups(shared: str | None, own: list[str], top: str = "3") -> Dataset:
    """Frames with slopes in their functional groups."""

    def group(slope: str) -> Dataset:
        macro, outer = Dataset(), Dataset()
        macro.RescaleSlope, macro.RescaleIntercept = slope, "0"
        outer.PixelValueTransformationSequence = [macro]
        return outer

    frames = np.stack([pixels_of(number, (12, 16)) for number in range(2)])
    ds = slice_of(0, pixels=frames[0], NumberOfFrames=2, RescaleSlope=top)
    ds.PixelData = frames.tobytes()
    if shared:
        ds.SharedFunctionalGroupsSequence = [group(shared)]
    ds.PerFrameFunctionalGroupsSequence = [group(slope) for slope in own]
    return ds


@pytest.mark.parametrize(
    ("ds", "bad_rows"),
    [
        (in_groups(None, ["2", "8.75"]), [1]),
        (in_groups("8.75", ["2"]), [1]),  # the other frame says so itself
        (in_groups("8.75", []), [0, 1]),
        (in_groups(None, ["2", "4"], top="8.75"), []),
        (in_groups(None, ["2"], top="8.75"), [1]),
    ],
)
def test_functional_groups_that_are_no_numbers(tmp_path, ds, bad_rows):
    pack = pack_of(tmp_path / "x.iac", broken(ds, b"8.75", b"8,75"))
    for row in range(2):
        if row in bad_rows:
            with pytest.raises(ValueError, match=rf"row {row}: its Rescale Slope \(0028,1053\)"):
                pack.read_pixel_array(row, modality_lut=True)
        else:
            pack.read_pixel_array(row, modality_lut=True)
