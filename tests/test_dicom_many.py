"""A patient of ten thousand instances: built in the memory of a few, and read like any other."""

import itertools
import multiprocessing
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dicoms import ROOT, file_of, slice_of
from iac_query.adapters import dicom

COUNT, SHAPE = 10_000, (128, 128)
FIRST = 100_000  # an Instance Number, and the end of a UID, of as many digits as all others
_LEFT_OUT = (
    "PatientName ImagePositionPatient ImageOrientationPatient PixelSpacing SliceThickness "
    "RescaleSlope RescaleIntercept"
)


def files() -> Iterator[bytes]:
    noise = np.random.default_rng(5).integers(0, 256, SHAPE, np.uint8)
    ds = slice_of(pixels=noise, SOPInstanceUID=f"{ROOT}.{FIRST}", InstanceNumber=FIRST)
    for keyword in _LEFT_OUT.split():  # each costs time
        delattr(ds, keyword)
    one = file_of(ds)
    head, pixels = one[: -noise.size], one[-noise.size :]
    assert head.count(b"%d" % FIRST) == 3  # in the file meta information as well
    for number in range(FIRST, FIRST + COUNT):
        yield head.replace(b"%d" % FIRST, b"%d" % number) + pixels[:-6] + b"%d" % number


def most_memory() -> int:
    """The most that this process has had, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def build(path: Path, growth) -> None:
    """A pack of all files, and by how much it needs more memory than one of a few."""
    build_pack = dicom.build_dicom_patient_package_from_files
    build_pack(itertools.islice(files(), 100), path)
    before = most_memory()
    result = build_pack(files(), path, storage="original", overwrite=True)
    assert (result.instances, result.failures, result.duplicates) == (COUNT, (), 0)
    growth.value = most_memory() - before


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, int]:
    """The pack, and by how much building it took more memory than that of a few files."""
    path = tmp_path_factory.mktemp("many") / "x.iac"
    context = multiprocessing.get_context("spawn")  # whose memory is that of the build alone
    growth = context.Value("q", -1)
    process = context.Process(target=build, args=(path, growth))
    process.start()
    process.join()
    assert process.exitcode == 0
    return path, growth.value


def test_memory_is_that_of_a_block_and_of_headers(built):
    path, growth = built
    assert path.stat().st_size > COUNT * np.prod(SHAPE)  # 164 MB
    assert 0 <= growth < COUNT * 10_000, f"{growth / COUNT:.0f} bytes an instance"


def test_all_are_there(built, con):
    path, _ = built
    with dicom.DicomPatientReader(path) as pack:
        assert pack.series_table["instance_count"].to_pylist() == [COUNT]
        rows = [0, COUNT // 2, COUNT - 1]
        for row, pixels in zip(rows, pack.read_tensor(rows), strict=True):
            assert pixels.tobytes()[-6:] == b"%d" % (FIRST + row)
        assert pack.row_of(f"{ROOT}.{FIRST + 4321}") == 4321
    query = f"SELECT record.row, iac_tag(record, 'InstanceNumber')::INTEGER FROM '{path}'"
    rows, numbers = con.sql(query).fetchnumpy().values()
    assert np.array_equal(numbers, FIRST + rows)
    assert len(rows) == COUNT
