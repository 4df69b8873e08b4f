"""DICOM images of slides that wsidicom would pass over, or put together wrongly."""

import numpy as np
import pytest
import slide_dicoms
from iac_query.adapters.wsi import SourceError
from pydicom.uid import ExplicitVRBigEndian, RLELossless
from slide_dicoms import image_of
from slides import assert_same_regions, build, cut_tiles, tissue

PIXELS = tissue(200, 150)
PLACES = [(column, row) for row in range(3) for column in range(4)]


def gray(dtype) -> np.ndarray:
    return tissue(200, 150, 1, dtype)[:, :, np.newaxis]


def refused(folder, match: str, name: str = "") -> None:
    with pytest.raises(SourceError, match=match) as raised:
        build(folder, lossless=True)
    assert str(raised.value).startswith(f"{folder / name}: ")
    assert not folder.with_suffix(".iac").exists()


def sparse(**elements):
    return slide_dicoms.sparse(image_of(PIXELS, **elements), PLACES)


def position_of(image, frame: int):
    return image.PerFrameFunctionalGroupsSequence[frame].PlanePositionSlideSequence[0]


@pytest.mark.parametrize("axis", ["Column", "Row"])
@pytest.mark.parametrize("by", [-1, 1, 32])
def test_frames_between_the_tiles(tmp_path, axis, by):
    image = sparse()
    position = position_of(image, 5)
    keyword = f"{axis}PositionInTotalImagePixelMatrix"
    position[keyword].value += by
    where = [position[f"{a}PositionInTotalImagePixelMatrix"].value for a in ("Column", "Row")]
    folder = slide_dicoms.write(tmp_path / "slide", image)
    match = f"frame 5 lies at column {where[0]}, row {where[1]}, between the tiles of 64 x 64"
    refused(folder, match, "0.dcm")


def test_frames_in_one_place(tmp_path):
    image = sparse()
    position_of(image, 11).ColumnPositionInTotalImagePixelMatrix = 1
    position_of(image, 11).RowPositionInTotalImagePixelMatrix = 1
    folder = slide_dicoms.write(tmp_path / "slide", image)
    refused(folder, "frame 11 lies at column 1, row 1, where another one does", "0.dcm")
    # A plane of its own is another place: the slide is refused for it alone.
    position_of(image, 11).ZOffsetInSlideCoordinateSystem = 0.002
    refused(slide_dicoms.write(tmp_path / "two", image), "2 focal planes")


def test_frames_without_a_place(tmp_path):
    image = sparse()
    del image.PerFrameFunctionalGroupsSequence[7:]
    folder = slide_dicoms.write(tmp_path / "slide", image)
    refused(folder, "says of 7 frames where they lie, has 12", "0.dcm")


def test_frames_of_an_image_beside_the_raster(tmp_path):
    label = slide_dicoms.sparse(image_of(PIXELS, 1, kind="LABEL"), PLACES)
    position_of(label, 3).RowPositionInTotalImagePixelMatrix = 9
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS), label)
    refused(folder, "frame 3 lies at column 193, row 9, between", "1.dcm")


def test_two_images_of_the_finest_level(tmp_path):
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS), image_of(PIXELS, 1))
    refused(folder, "its finest level is of 2 images")


@pytest.mark.parametrize("side", [1 << 30, (1 << 32) - 1])
@pytest.mark.parametrize("axis", ["Columns", "Rows"])
def test_a_matrix_larger_than_any_slide(tmp_path, side, axis):
    image = sparse(**{f"TotalPixelMatrix{axis}": side})
    folder = slide_dicoms.write(tmp_path / "slide", image)
    refused(folder, f"claims .*{side}.* tiles of 64 x 64, at most", "0.dcm")


def test_a_row_of_tiles_larger_than_any_memory(tmp_path):
    side = 65535  # of frames, so that there are few
    pixels = np.zeros((1, 1, 3), np.uint8)
    image = image_of(pixels, TotalPixelMatrixColumns=(1 << 32) - 1, TotalPixelMatrixRows=1000)
    image.Rows = image.Columns = side
    folder = slide_dicoms.write(tmp_path / "slide", slide_dicoms.sparse(image, [(0, 0)]))
    refused(folder, r"a row of tiles of 4294967295 x 512 pixels needs \d+ MiB of memory, there are")


def test_a_label_larger_than_any_slide(tmp_path):
    label = slide_dicoms.sparse(image_of(PIXELS, 1, kind="LABEL"), PLACES)
    label.TotalPixelMatrixColumns = label.TotalPixelMatrixRows = 20_000
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS), label)
    refused(folder, "label is of 20000 x 20000 pixels, expected some, at most 1024 MiB")


@pytest.mark.parametrize(
    ("elements", "match"),
    [
        ({"PlanarConfiguration": 1}, "PlanarConfiguration 1, Explicit VR Little Endian"),
        ({"PixelRepresentation": 1}, "PixelRepresentation 1"),
        ({"PhotometricInterpretation": "YBR_FULL"}, "PhotometricInterpretation YBR_FULL"),
    ],
)
def test_images_that_wsidicom_passes_over(tmp_path, elements, match):
    image = image_of(PIXELS, 1, **elements)
    for name, others in (("1.dcm", [image_of(PIXELS)]), ("0.dcm", [])):
        folder = slide_dicoms.write(tmp_path / f"slide-{len(others)}", *others, image)
        refused(folder, f"wsidicom does not read .*{match}", name)


def test_gray_that_wsidicom_passes_over(tmp_path):
    inverted = image_of(gray(np.uint16), PhotometricInterpretation="MONOCHROME1")
    folder = slide_dicoms.write(tmp_path / "inverted", inverted)
    refused(folder, "PhotometricInterpretation MONOCHROME1", "0.dcm")
    rle = image_of(gray(np.uint16), payloads=[b"\0" * 70] * 12, syntax=RLELossless)
    folder = slide_dicoms.write(tmp_path / "rle", rle)
    refused(folder, "BitsStored 16, .*RLE Lossless", "0.dcm")


def test_big_endian(tmp_path):
    pixels = gray(np.uint16)
    image = image_of(pixels, syntax=ExplicitVRBigEndian)
    image.PixelData = b"".join(tile.byteswap().tobytes() for tile in cut_tiles(pixels, 64))
    folder = slide_dicoms.write(tmp_path / "slide", image)
    assert_same_regions(build(folder, lossless=True), pixels)
    for number, eight in enumerate((PIXELS, gray(np.uint8))):
        image = image_of(eight, syntax=ExplicitVRBigEndian)
        folder = slide_dicoms.write(tmp_path / f"{number}", image)
        refused(folder, "pixels are of 8 bits, .* in Explicit VR Big Endian")
