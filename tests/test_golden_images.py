"""Image packs written by the package that the format comes from."""

import hashlib

import numpy as np
import pytest
from packs import DATA, IMAGES, MANIFEST

import iac_query as iac

pytestmark = pytest.mark.asan

LOSSY = sorted(
    path.stem for path in (DATA / "decoded").glob("*.npz") if not path.stem.startswith("wsi_")
)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored_and_decoded(name: str) -> tuple[list[bytes], list[np.ndarray]]:
    """Every record of a pack, read in each way there is."""
    rows = [record["row"] for record in MANIFEST[name]["records"]]
    with iac.VariableRecordPack(DATA / name) as pack:
        images = pack.read_many(rows, workers=2)
        batch = pack.read_many_contiguous(rows, workers=1)
        for at, row in enumerate(rows):
            np.testing.assert_array_equal(batch[at], images[at])
            np.testing.assert_array_equal(pack.read(row), images[at])
        return pack.reader.read_payloads(rows), images


def test_all_image_packs_are_here():
    assert len(IMAGES) == 12
    assert set(LOSSY) == {"j2k_lossy.iac", "jpeg_444_prog.iac", "jpeg_default.iac", "jxl_lossy.iac"}
    assert set(LOSSY) < set(IMAGES)


@pytest.mark.parametrize("name", IMAGES)
def test_images_are_those_of_the_manifest(name: str):
    stored, images = stored_and_decoded(name)
    records = MANIFEST[name]["records"]
    assert len(images) == len(records) == MANIFEST[name]["num_records"]
    for record, payload, array in zip(records, stored, images, strict=True):
        assert len(payload) == record["stored_length"]
        assert digest(payload) == record["stored_sha256"]
        assert array.dtype.name == record["decoded"]["dtype"]
        assert list(array.shape) == record["decoded"]["shape"]
        if name not in LOSSY:
            assert digest(array.tobytes()) == record["decoded"]["sha256"]


@pytest.mark.parametrize("name", LOSSY)
def test_lossy_images_are_within_two_of_what_was_decoded_then(name: str):
    _, images = stored_and_decoded(name)
    with np.load(DATA / "decoded" / f"{name}.npz") as decoded:
        for record, array in zip(MANIFEST[name]["records"], images, strict=True):
            expected = decoded[f"r{record['row']}"]
            assert digest(expected.tobytes()) == record["decoded"]["sha256"]
            most = 2 if array.dtype.kind == "u" else 2 / 255
            assert np.abs(array.astype(float) - expected.astype(float)).max() <= most
