"""Frames in space."""

import numpy as np
import pytest
from dicoms import ROOT, pack_of, pixels_of, slice_of
from pydicom.dataset import Dataset

SHAPE = (12, 16)


def volume_of(tmp_path, slices, series=0, **options):
    return pack_of(tmp_path / "x.iac", *slices).read_volume(series, **options)


def expected(numbers):
    return np.stack([pixels_of(number, SHAPE) for number in numbers])


def test_shuffled_slices_come_in_order(tmp_path):
    order = [3, 0, 4, 1, 2]
    slices = [slice_of(number, InstanceNumber=99 - i) for i, number in enumerate(order)]
    volume = volume_of(tmp_path, slices, f"{ROOT}.1.1")
    assert np.array_equal(volume.array, expected(range(5)))
    assert volume.array.dtype == np.int16
    assert volume.spacing == (2.5, 0.5, 0.25)
    assert (volume.gaps, volume.duplicates, volume.tilt) == ((), (), 0.0)
    assert [volume.affine @ [k, 0, 0, 1] for k in (0, 4)] == [
        pytest.approx([-4, -3, 0, 1]),
        pytest.approx([-4, -3, 10, 1]),
    ]
    # A row further is half a millimetre to the back, a column a quarter to the left.
    assert volume.affine @ [1, 2, 4, 1] == pytest.approx([-3, -2, 2.5, 1])
    assert sorted(volume.rows) == list(range(5))


def test_values_of_a_volume(tmp_path):
    volume = volume_of(tmp_path, [slice_of(1), slice_of(0)], modality_lut=True)
    assert volume.array.dtype == np.float32
    assert np.array_equal(volume.array, expected([0, 1]) * 2.0 - 1000)


@pytest.mark.parametrize("cosines", [[0, 1, 0, 0, 0, -1], [-1, 0, 0, 0, 0.6, 0.8]])
def test_oblique_planes(tmp_path, cosines):
    across = np.cross(cosines[:3], cosines[3:])
    slices = [
        slice_of(
            number,
            ImageOrientationPatient=cosines,
            ImagePositionPatient=(np.array([10, 20, 30]) + 3 * number * across).round(6).tolist(),
        )
        for number in (2, 0, 1)
    ]
    volume = volume_of(tmp_path, slices)
    assert np.array_equal(volume.array, expected(range(3)))
    assert volume.spacing == pytest.approx((3, 0.5, 0.25))
    corner = np.array([10, 20, 30]) + 6 * across + 4 * 0.5 * np.array(cosines[3:])
    corner = corner + 8 * 0.25 * np.array(cosines[:3])
    assert volume.affine @ [2, 4, 8, 1] == pytest.approx([*corner, 1])
    assert volume.tilt == pytest.approx(0, abs=1e-3)


def test_a_tilted_gantry(tmp_path):
    slices = [
        slice_of(number, ImagePositionPatient=[-4, -3 + 1.5 * number, 2.5 * number])
        for number in range(4)
    ]
    volume = volume_of(tmp_path, slices)
    assert volume.spacing[0] == pytest.approx(2.5)
    assert volume.tilt == pytest.approx(np.degrees(np.arctan2(1.5, 2.5)))
    assert volume.affine @ [3, 0, 0, 1] == pytest.approx([-4, 1.5, 7.5, 1])


def test_missing_and_double_slices_are_reported(tmp_path):
    again = slice_of(2, SOPInstanceUID="1.2.3", InstanceNumber=50)
    slices = [slice_of(number) for number in (0, 1, 2, 5, 6, 8)]
    pack = pack_of(tmp_path / "x.iac", again, *slices)
    volume = pack.read_volume(0)
    assert np.array_equal(volume.array, expected([0, 1, 2, 5, 6, 8]))
    assert [(gap.after, gap.missing, gap.length) for gap in volume.gaps] == [(2, 2, 7.5), (4, 1, 5)]
    assert volume.duplicates == (pack.row_of("1.2.3"),)
    assert volume.spacing[0] == 2.5


def test_one_orientation_at_a_time(tmp_path):
    scout = slice_of(9, ImageOrientationPatient=[0, 1, 0, 0, 0, -1], InstanceNumber=0)
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1), scout)
    with pytest.raises(ValueError, match="rows 0 and 1 are of different orientations, pass rows="):
        pack.read_volume(0)
    assert np.array_equal(pack.read_volume(rows=[-1, 1]).array, expected([0, 1]))
    with pytest.raises(TypeError):
        pack.read_volume()
    with pytest.raises(TypeError):
        pack.read_volume(0, rows=[0])


def test_one_spacing_and_shape_at_a_time(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1, PixelSpacing=[0.5, 0.5]))
    with pytest.raises(ValueError, match="different pixel spacing"):
        pack.read_volume(0)
    small = slice_of(1, pixels=pixels_of(1, (6, 6)))
    with pytest.raises(ValueError, match="frames differ"):
        volume_of(tmp_path, [slice_of(0), small])


def test_a_single_slice_is_as_thick_as_it_says(tmp_path):
    volume = volume_of(tmp_path, [slice_of(3)])
    assert volume.spacing == (2.5, 0.5, 0.25)
    assert volume.affine @ [1, 0, 0, 1] == pytest.approx([-4, -3, 10, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ImagePositionPatient": None}, "no Image Position"),
        ({"PixelSpacing": [1]}, "no Pixel Spacing"),
        ({"PixelSpacing": [0, 1]}, "above 0"),
        ({"ImageOrientationPatient": [1, 0, 0, 1, 0, 0]}, "right angles"),
        ({"ImageOrientationPatient": [0, 0, 0, 0, 1, 0]}, "unit vectors"),
        ({"ImagePositionPatient": ["NaN", 0, 0]}, "no Image Position"),
        ({"GridFrameOffsetVector": ["NaN"]}, "no number"),
    ],
)
def test_headers_that_do_not_say_where(tmp_path, change, message):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1, **change))
    with pytest.raises(ValueError, match=f"x\\.iac: row 1: .*{message}"):
        pack.read_volume(0)


def enhanced(order) -> Dataset:
    """All slices as frames of one instance, geometry and rescale in functional groups."""
    frames = np.stack([pixels_of(number, SHAPE) for number in order])
    ds = slice_of(0, pixels=frames[0], NumberOfFrames=len(order))
    ds.PixelData = frames.tobytes()
    for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"):
        delattr(ds, keyword)
    del ds.RescaleSlope, ds.RescaleIntercept, ds.SliceThickness
    shared, orientation, measures = Dataset(), Dataset(), Dataset()
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    measures.PixelSpacing, measures.SliceThickness = [0.5, 0.25], 2.5
    shared.PlaneOrientationSequence = [orientation]
    shared.PixelMeasuresSequence = [measures]
    ds.SharedFunctionalGroupsSequence = [shared]
    groups = []
    for number in order:
        group, position, values = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [-4, -3, 2.5 * number]
        values.RescaleSlope, values.RescaleIntercept = 2, -1000 - number
        group.PlanePositionSequence = [position]
        group.PixelValueTransformationSequence = [values]
        groups.append(group)
    ds.PerFrameFunctionalGroupsSequence = groups
    return ds


def test_enhanced_multi_frame(tmp_path):
    order = [2, 0, 3, 1]
    pack = pack_of(tmp_path / "x.iac", enhanced(order))
    volume = pack.read_volume(0)
    assert np.array_equal(volume.array, expected(range(4)))
    assert volume.rows == (1, 3, 0, 2)
    assert volume.spacing == (2.5, 0.5, 0.25)
    rescaled = pack.read_volume(0, modality_lut=True).array
    for number in range(4):
        assert np.array_equal(rescaled[number], pixels_of(number, SHAPE) * 2.0 - 1000 - number)
    assert np.array_equal(pack.read_pixel_array(2, modality_lut=True), rescaled[3])


def test_dose_grids(tmp_path):
    frames = np.stack([pixels_of(number, SHAPE, "uint32") for number in range(3)])
    ds = slice_of(0, pixels=frames[0], NumberOfFrames=3, GridFrameOffsetVector=[0, 4, 8])
    ds.PixelData = frames.tobytes()
    volume = volume_of(tmp_path, [ds])
    assert volume.spacing[0] == 4
    assert volume.array.dtype == np.uint32
    assert volume.affine @ [2, 0, 0, 1] == pytest.approx([-4, -3, 8, 1])


def test_series_by_number_and_uid(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1, series=2), slice_of(2, series=2))
    assert pack.rows_of_series(1).tolist() == [1, 2]
    assert pack.rows_of_series(f"{ROOT}.1.2").tolist() == [1, 2]
    for unknown in (2, -1, "1.2.3"):
        with pytest.raises(KeyError, match=r"x\.iac"):
            pack.read_volume(unknown)


def positioned(*positions, **elements):
    return [
        slice_of(number, ImagePositionPatient=list(position), **elements)
        for number, position in enumerate(positions)
    ]


@pytest.mark.parametrize(
    "positions",
    [
        [(0, 0, z) for z in (0, 5, 10, 15, 20, 21, 22, 25, 30, 35)],
        [(0 if z != 3 else 50, 0, z) for z in range(6)],
        [(10 * (z % 2), 0, z) for z in range(6)],
        [(0, 0, z) for z in (0, 1, 2, 3, 5.8, 6.8)],
        [(0, 0, 0), (40, 0, 0), (0, 0, 1), (0, 0, 2)],
    ],
    ids=["uneven", "one moved", "zigzag", "gap of no whole number", "side by side"],
)
def test_positions_that_no_affine_fits(tmp_path, positions):
    pack = pack_of(tmp_path / "x.iac", *positioned(*positions))
    with pytest.raises(ValueError, match=r"row \d lies .* mm from where even steps") as error:
        pack.read_volume(0, max_deviation=0.1)
    volume = pack.read_volume(0, max_deviation=float("inf"))
    assert f"{volume.deviation:.4g} mm" in str(error.value)
    assert volume.deviation > 0.1
    if not volume.gaps and not volume.duplicates:
        found = [(volume.affine @ [k, 0, 0, 1])[:3] for k in range(len(volume.rows))]
        true = np.array([positions[row] for row in volume.rows])
        assert volume.deviation == pytest.approx(np.linalg.norm(true - found, axis=1).max())
    assert pack.read_volume(0, max_deviation=volume.deviation).deviation == volume.deviation


def test_rounded_positions_are_even_steps(tmp_path):
    slices = positioned(*((0, 0, round(z * 2 / 3, 1)) for z in range(61)))
    volume = volume_of(tmp_path, slices)
    assert volume.spacing[0] == pytest.approx(2 / 3, rel=1e-6)
    assert volume.deviation < 0.06


def test_one_frame_of_reference_at_a_time(tmp_path):
    slices = [slice_of(number, FrameOfReferenceUID=f"1.2.{number // 2}") for number in range(4)]
    pack = pack_of(tmp_path / "x.iac", *slices)
    with pytest.raises(ValueError, match="rows 0 and 2 are of different frames of reference"):
        pack.read_volume(0)
    assert pack.read_volume(rows=[0, 1]).deviation == 0
