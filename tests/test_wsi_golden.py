"""Slides written by iatro-iac-adapters, read with the pixels that it reads."""

import hashlib

import numpy as np
import pytest
from iac_query.adapters.wsi import WsiImageReader
from iatro.iac.adapters.wsi import WsiImageReader as PeerReader
from packs import DATA, MANIFEST

SLIDES = sorted(
    name for name, entry in MANIFEST.items() if entry["header"]["payload_type"] == "wsi_image"
)
LOSSY = [name for name in SLIDES if (DATA / "decoded" / f"{name}.npz").exists()]


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def regions(reader, entry: dict) -> list[tuple[np.ndarray, dict]]:
    """Each region of the manifest: its pixels, and what it says of them."""
    facts = entry["adapter"]
    width, height = reader.dimensions
    return [
        (reader.read_native_region(0, 0, width, height), facts["read_native_region(0,0,W,H)"]),
        (reader.read_native_region(-7, -9, 40, 30), facts["read_native_region(-7,-9,40,30)"]),
        *(
            (
                reader.read_region(
                    r["x_um"], r["y_um"], r["width"], r["height"], mpp=tuple(r["mpp"])
                ),
                r["array"],
            )
            for r in facts["regions"]
        ),
    ]


def test_all_slides_are_here():
    assert len(SLIDES) == 5
    assert LOSSY == ["wsi_jpeg_passthrough.iac", "wsi_jxl_lossy.iac"]


@pytest.mark.parametrize("name", SLIDES)
def test_facts_are_those_of_the_manifest(name: str):
    facts = MANIFEST[name]["adapter"]
    with WsiImageReader(DATA / name) as reader:
        assert list(reader.dimensions) == facts["dimensions"]
        assert list(reader.native_mpp) == facts["native_mpp"]
        assert list(reader.physical_dimensions) == facts["physical_dimensions"]
        assert reader.slide_id == facts["slide_id"]
        assert reader.patient_id == facts["patient_id"]
        assert reader.specimen_id == facts["specimen_id"]
        assert reader.scanner_metadata == facts["scanner_metadata"]
        assert list(reader.associated_image_names) == facts["associated"]
        profile = reader.icc_profile
        found = None if profile is None else hashlib.sha256(profile).hexdigest()
        assert found == facts["icc_sha256"]


@pytest.mark.parametrize("name", SLIDES)
def test_regions_are_those_of_the_manifest(name: str):
    with WsiImageReader(DATA / name) as reader:
        for pixels, expected in regions(reader, MANIFEST[name]):
            assert (list(pixels.shape), pixels.dtype.name) == (expected["shape"], "uint8")
            if name not in LOSSY:
                assert digest(pixels) == expected["sha256"]


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_regions_are_within_two_of_the_peers(name: str):
    theirs = PeerReader(DATA / name)
    with WsiImageReader(DATA / name) as reader:
        pairs = zip(regions(reader, MANIFEST[name]), regions(theirs, MANIFEST[name]), strict=True)
        for (ours, _), (pixels, _) in pairs:
            assert np.abs(ours.astype(int) - pixels).max() <= 2


@pytest.mark.parametrize("name", SLIDES)
def test_random_regions_are_the_peers(name: str):
    random = np.random.default_rng(5)
    theirs = PeerReader(DATA / name)
    with WsiImageReader(DATA / name) as reader:
        width, height = reader.dimensions
        for _ in range(60):
            x, y = (int(random.integers(-20, side + 10)) for side in (width, height))
            size = [int(side) for side in random.integers(1, 60, 2)]
            most = 2 if name in LOSSY else 0
            ours = reader.read_native_region(x, y, *size).astype(int)
            assert np.abs(ours - theirs.read_native_region(x, y, *size)).max() <= most
            place = [float(at) for at in random.uniform(-20, 60, 2)]
            mpp = tuple(
                own * factor
                for own, factor in zip(reader.native_mpp, random.uniform(1, 9, 2), strict=True)
            )
            ours = reader.read_region(*place, *size, mpp=mpp).astype(int)
            assert np.abs(ours - theirs.read_region(*place, *size, mpp=mpp)).max() <= most
