"""Where files come from, and what is left where a build ends early."""

import os

import pytest
from dicoms import build, file_of, slice_of
from iac_query.adapters import dicom

import iac_query as iac


def folder_of(path, count: int = 3):
    path.mkdir(parents=True)
    for number in range(count):
        (path / f"{number}.dcm").write_bytes(file_of(slice_of(number)))
    return path


def test_links(tmp_path):
    """To files they are followed, to folders they are not: those may be circles."""
    source = folder_of(tmp_path / "in")
    elsewhere = folder_of(tmp_path / "elsewhere", 5)
    (source / "other.dcm").symlink_to(elsewhere / "4.dcm")
    (source / "copy.dcm").symlink_to(source / "0.dcm")
    (source / "circle").symlink_to(source)
    (source / "more").symlink_to(elsewhere)
    (source / "dangling.dcm").symlink_to(tmp_path / "nowhere")
    (source / "folder.dcm").mkdir()
    result = dicom.build_dicom_patient_package(source, tmp_path / "x.iac", effort=1)
    assert (result.instances, result.duplicates) == (4, 1)
    assert [failure.source for failure in result.failures] == [str(source / "dangling.dcm")]
    linked = dicom.build_dicom_patient_package(source / "more", tmp_path / "y.iac", effort=1)
    assert linked.instances == 5


def test_pipes_are_not_waited_for(tmp_path):
    source = folder_of(tmp_path / "in")
    os.mkfifo(source / "pipe.dcm")
    result = dicom.build_dicom_patient_package(source, tmp_path / "x.iac", effort=1)
    assert result.instances == 3
    (failure,) = result.failures
    assert "is a pipe or device, pass it as an open stream" in str(failure.error)


@pytest.mark.parametrize(
    ("target", "error", "reason"),
    [
        ("in", IsADirectoryError, "in: is a folder"),
        ("in/0.dcm", FileExistsError, "pass overwrite=True"),
    ],
)
def test_impossible_targets(tmp_path, target, error, reason):
    """Which are refused before anything is read."""
    source = folder_of(tmp_path / "in")

    def files():
        raise AssertionError("a file was asked for")
        yield

    overwrite = error is not FileExistsError
    with pytest.raises(error, match=reason):
        dicom.build_dicom_patient_package_from_files(
            files(), tmp_path / target, overwrite=overwrite
        )
    build(tmp_path / "x.iac", slice_of(0))
    with dicom.DicomPatientReader(tmp_path / "x.iac") as pack, pytest.raises(error, match=reason):
        pack.write_dicom(0, tmp_path / target, overwrite=overwrite)
    assert sorted(path.name for path in source.iterdir()) == ["0.dcm", "1.dcm", "2.dcm"]


def test_folders_are_made(tmp_path):
    target = tmp_path / "new" / "folder" / "x.iac"
    dicom.build_dicom_patient_package_from_files([file_of(slice_of(0))], target)
    with dicom.DicomPatientReader(target) as pack:
        pack.write_dicom(0, tmp_path / "other" / "x.dcm")
    assert target.is_file() and (tmp_path / "other" / "x.dcm").is_file()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, GeneratorExit, OSError])
@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_left_of_a_build_that_was_stopped(tmp_path, stop, storage, workers):
    old = tmp_path / "x.iac"
    build(old, slice_of(0))
    before = old.read_bytes()

    def files():
        for number in range(100):
            yield file_of(slice_of(number))
        raise stop

    with pytest.raises(stop):
        dicom.build_dicom_patient_package_from_files(
            files(), old, effort=1, storage=storage, workers=workers, overwrite=True
        )
    assert old.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.iac"]
    assert iac.validate(old).ok
