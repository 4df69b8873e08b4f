"""Slides of DICOM, against what wsidicom itself reads of them."""

import contextlib
import json
import os
import sys

import numpy as np
import pytest
import slide_dicoms
from iac_query.adapters.wsi import SourceError, WsiImageReader
from slide_dicoms import JPEG, JPEG2000, JPEG2000_LOSSLESS, image_of
from slides import ICC, assert_same_rectangles, assert_same_regions, build, cut_tiles, tissue
from wsidicom import WsiDicom

import iac_query as iac

PIXELS = tissue(200, 150)
imagecodecs = pytest.importorskip("imagecodecs")


def jpegs(space: str = "ycbcr", pixels: np.ndarray = PIXELS) -> list[bytes]:
    return [
        imagecodecs.jpeg8_encode(tile, level=90, colorspace="rgb", outcolorspace=space)
        for tile in cut_tiles(pixels, 64)
    ]


def jpegs2000(**options) -> list[bytes]:
    return iac.Codec.create("jpeg2000", **options).encode_many(cut_tiles(PIXELS, 64))


def gray(dtype) -> np.ndarray:
    return tissue(200, 150, 1, dtype)[:, :, np.newaxis]


IMAGES = {
    "jpeg": lambda: image_of(
        PIXELS, payloads=jpegs(), syntax=JPEG, PhotometricInterpretation="YBR_FULL_422"
    ),
    "jpeg-rgb": lambda: image_of(PIXELS, payloads=jpegs("rgb"), syntax=JPEG),
    "jpeg2000-lossless": lambda: image_of(
        PIXELS,
        payloads=jpegs2000(),
        syntax=JPEG2000_LOSSLESS,
        PhotometricInterpretation="YBR_RCT",
    ),
    "jpeg2000": lambda: image_of(
        PIXELS,
        payloads=jpegs2000(),
        syntax=JPEG2000,
        PhotometricInterpretation="YBR_ICT",
        LossyImageCompression="01",
    ),
    "plain": lambda: image_of(PIXELS),
    "gray-8": lambda: image_of(gray(np.uint8)),
    "gray-16": lambda: image_of(gray(np.uint16)),
}


@pytest.fixture(params=IMAGES)
def kind(request):
    return request.param


def test_the_pixels_are_those_of_wsidicom(tmp_path, kind):
    folder = slide_dicoms.write(tmp_path / "slide", IMAGES[kind]())
    with WsiDicom.open(folder) as slide:

        def expected(x, y, width, height):
            region = np.asarray(slide.read_region((x, y), 0, (width, height), as_array=True))
            return region.reshape(height, width, -1)

        for options in ({}, {"lossless": True, "tile_size": (80, 48)}):
            path = build(folder, **options)
            assert_same_rectangles(path, (200, 150), expected, most=2 if "jpeg" in kind else 0)


@pytest.mark.parametrize(
    ("codec", "is_sparse"), [("jpeg", False), ("jpeg", True), ("jpeg2000", False)]
)
def test_frames_are_kept_as_they_are(tmp_path, codec, is_sparse):
    pixels = np.full((600, 640, 3), 243, np.uint8)
    pixels[100:200, 100:300] = PIXELS[:100, :200]
    if codec == "jpeg":
        payloads, syntax, space = jpegs(pixels=pixels), JPEG, "YBR_FULL_422"
    else:
        payloads = iac.Codec.create("jpeg2000").encode_many(cut_tiles(pixels, 64))
        syntax, space = JPEG2000_LOSSLESS, "YBR_RCT"
    kept = payloads[7:] if is_sparse else payloads
    image = image_of(pixels, payloads=kept, syntax=syntax, PhotometricInterpretation=space)
    if is_sparse:
        image = slide_dicoms.sparse(image, [(n % 10, n // 10) for n in range(7, len(payloads))])
    path = build(slide_dicoms.write(tmp_path / "slide", image))
    with iac.PackReader(path) as pack:
        for row, payload in enumerate(kept):
            assert pack.read_payload(row) in (payload, payload + b"\0")  # frames are of even length
        assert pack.header["raster_codec"] == codec
        assert pack.header["stored_tile_count"] == len(kept)
        assert pack.header["wsi_schema_version"] == 1
        assert pack.header["raster_profile_selection"]["strategy"] == "native_passthrough_v1"
    with WsiImageReader(path) as reader:
        expected = 255 if is_sparse else 243
        assert np.abs(reader.read_native_region(0, 0, 448, 64).astype(int) - expected).max() <= 1


def test_levels_and_images_beside_the_raster(tmp_path):
    folder = slide_dicoms.write(
        tmp_path / "slide",
        image_of(np.ascontiguousarray(PIXELS[::2, ::2]), 3, spacing=0.001, side=32),
        image_of(PIXELS),
        image_of(tissue(41, 30), 1, kind="LABEL"),
        image_of(tissue(130, 70), 2, kind="OVERVIEW"),
        image_of(np.ascontiguousarray(PIXELS[::4, ::4]), 4, kind="THUMBNAIL", spacing=0.002),
    )
    (folder / "readme.txt").write_text("of another kind")
    path = build(folder)
    assert_same_regions(path, PIXELS)
    with WsiImageReader(path) as reader:
        assert reader.native_mpp == (0.5, 0.5)
        assert reader.icc_profile == ICC
        assert reader.associated_image_names == ("label", "macro", "thumbnail")
        np.testing.assert_array_equal(reader.read_associated_image("macro"), tissue(130, 70))
        facts = reader.scanner_metadata
    assert facts["backend"] == "wsidicom"
    assert facts["source_format"] == "dicom"
    assert facts["source_storage"]["lossy"] is False
    assert facts["source_info"]["dicom.ObjectiveLensPower"] == 20
    assert facts["source_info"]["dicom.SoftwareVersions"] == ["1", "2"]
    assert "Made^Up" not in json.dumps(facts)


def test_frames_that_a_sparse_image_lacks_are_white(tmp_path):
    places = [(3, 2), (0, 0), (1, 1), (2, 0)]
    tiles, expected = [], np.full_like(PIXELS, 255)
    for column, row in places:
        window = slice(64 * row, 64 * row + 64), slice(64 * column, 64 * column + 64)
        expected[window] = PIXELS[window]
        tiles.append(cut_tiles(PIXELS, 64)[4 * row + column])
    payloads = iac.Codec.create("jpeg2000").encode_many(tiles)
    image = image_of(
        PIXELS, payloads=payloads, syntax=JPEG2000_LOSSLESS, PhotometricInterpretation="YBR_RCT"
    )
    folder = slide_dicoms.write(tmp_path / "slide", slide_dicoms.sparse(image, places))
    for size in (64, 80):
        assert_same_regions(build(folder, tile_size=size), expected)


def test_an_image_in_several_files(tmp_path):
    payloads = jpegs2000()
    parts = []
    for number, frames in enumerate((payloads[:5], payloads[5:])):
        part = image_of(
            PIXELS,
            number,
            payloads=frames,
            syntax=JPEG2000_LOSSLESS,
            PhotometricInterpretation="YBR_RCT",
            NumberOfFrames=len(frames),
            ConcatenationUID="1.2.3",
            SOPInstanceUIDOfConcatenationSource="1.2.4",
            InConcatenationNumber=number + 1,
            InConcatenationTotalNumber=2,
            ConcatenationFrameOffsetNumber=5 * number,
        )
        parts.append(part)
    path = build(slide_dicoms.write(tmp_path / "slide", *parts), lossless=True)
    assert_same_regions(path, PIXELS)
    refused(slide_dicoms.write(tmp_path / "half", parts[0]), "half")


def test_one_file_is_a_slide(tmp_path):
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS))
    assert_same_regions(build(folder / "0.dcm"), PIXELS)


def refused(folder, match: str, **options) -> None:
    """The slide is not built, no file stays open, and nothing is left of the attempt."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SourceError, match=match) as raised:
        build(folder, **options)
    assert str(raised.value).startswith(str(folder))
    assert not folder.with_suffix(".iac").exists()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_finest_level_that_cannot_be_read_is_no_coarser_slide(tmp_path):
    coarse = image_of(np.ascontiguousarray(PIXELS[::2, ::2]), 1, spacing=0.001)
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS), coarse)
    fine = folder / "0.dcm"
    data = fine.read_bytes()
    fine.write_bytes(data[:700])
    refused(folder, r"0\.dcm: is an image that wsidicom does not read")
    fine.write_bytes(data)
    other = image_of(PIXELS, 2, StudyInstanceUID="1.2.3", FrameOfReferenceUID="1.2.4")
    slide_dicoms.write(tmp_path / "two", image_of(PIXELS), other)
    refused(tmp_path / "two", "passes over, or of another slide|no slide|2 rasters")


def test_broken_frames_are_errors_that_name_them(tmp_path):
    payloads = jpegs()
    payloads[5] = payloads[5][: len(payloads[5]) // 2]
    image = image_of(
        PIXELS, payloads=payloads, syntax=JPEG, PhotometricInterpretation="YBR_FULL_422"
    )
    folder = slide_dicoms.write(tmp_path / "slide", image)
    for options in ({}, {"lossless": True}):
        refused(folder, "tile 1, 1 cannot be decoded", **options)
    few = image_of(PIXELS, payloads=jpegs()[:7], syntax=JPEG)
    refused(slide_dicoms.write(tmp_path / "few", few), "tile")
    few = image_of(PIXELS, payloads=jpegs()[:7], syntax=JPEG, NumberOfFrames=7)
    refused(slide_dicoms.write(tmp_path / "few", few), "number of frames 7")
    for kind in ("plain", "jpeg"):
        folder = slide_dicoms.write(tmp_path / kind, IMAGES[kind]())
        data = (folder / "0.dcm").read_bytes()
        (folder / "0.dcm").write_bytes(data[: len(data) - 3000])
        refused(folder, r"tile \d, \d|no slide that wsidicom reads")


def test_colours_and_depths_that_cannot_be_stored(tmp_path):
    j2k = image_of(
        PIXELS, payloads=jpegs2000(), syntax=JPEG2000, PhotometricInterpretation="YBR_FULL"
    )
    refused(slide_dicoms.write(tmp_path / "j2k", j2k), "8 bits, YBR_FULL, in JPEG 2000")
    twelve = image_of(gray(np.uint16) >> 4, BitsStored=12, HighBit=11)
    refused(slide_dicoms.write(tmp_path / "twelve", twelve), "12 bits, MONOCHROME2, in Explicit")


@pytest.mark.parametrize(
    ("elements", "match"),
    [
        ({"BitsStored": 7, "HighBit": 6}, "BitsStored 7"),
        ({"ImageType": ["DERIVED", "PRIMARY", "VOLUME", "RESAMPLED"]}, "finest one is missing"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "Interpretation PALETTE COLOR"),
        ({"ImageType": ["DERIVED", "PRIMARY", "LABEL", "NONE"]}, "no slide"),
        ({"TotalPixelMatrixFocalPlanes": 2, "NumberOfFrames": 24}, "focal planes|no slide"),
        ({"SharedFunctionalGroupsSequence": []}, "no slide"),
    ],
)
def test_slides_that_cannot_be_stored(tmp_path, elements, match):
    refused(slide_dicoms.write(tmp_path / "slide", image_of(PIXELS, **elements)), match)


def test_files_cut_anywhere_say_so_and_tell_no_values(tmp_path, capfd):
    folder = slide_dicoms.write(tmp_path / "slide", IMAGES["jpeg2000-lossless"]())
    file = folder / "0.dcm"
    data = file.read_bytes()
    pixels = data.index(b"\xff\x4f\xff\x51")
    for end in (0, 100, 131, 140, *range(150, pixels, 149), pixels + 9, len(data) - 30):
        file.write_bytes(data[:end])
        refused(folder, "does not read|holds no|no DICOM|no slide|tile ")
    for at in range(200, pixels, 97):
        file.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        with contextlib.suppress(ValueError):
            build(folder)
    assert "Made^Up" not in "".join(capfd.readouterr())


def test_pixels_of_no_length(tmp_path):
    folder = slide_dicoms.write(tmp_path / "slide", image_of(PIXELS, spacing=0))
    with pytest.raises(ValueError, match=f"{folder}: "):
        build(folder)
    assert not folder.with_suffix(".iac").exists()


def test_folders_without_a_slide(tmp_path):
    folder = tmp_path / "slide"
    folder.mkdir()
    refused(folder, "holds no DICOM image of a slide")
    (folder / "a.dcm").write_bytes(b"\0" * 128 + b"DICM" + b"\xff" * 40)
    refused(folder, "no")


def test_without_wsidicom_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wsidicom", None)
    monkeypatch.delitem(sys.modules, "iac_query.adapters.wsi.wsidicom_source", raising=False)
    with pytest.raises(ImportError, match=r"pip install iac-query\[wsidicom\]"):
        build(tmp_path, lossless=True)
