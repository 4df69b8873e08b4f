"""Where a pack is written: what may be replaced, with which mode, and what is left on errors."""

import os
import stat
from pathlib import Path

import pytest
from packs import (
    build,
    item_table,
    payloads_of,
    slide_table,
)

import iac_query as iac

ROWS = 5


# Targets


def test_an_existing_pack_is_replaced_only_with_overwrite(tmp_path):
    path = build(tmp_path / "x.iac")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True") as raised:
        build(path, payloads=[b"other"] * 3)
    assert raised.value.filename == str(path)
    assert path.read_bytes() == before
    build(path, payloads=[b"other"] * 3, overwrite=True)
    assert iac.PackReader(path).read_payload(0) == b"other"
    assert os.listdir(tmp_path) == ["x.iac"]


def test_a_pack_that_appears_meanwhile_is_not_replaced(tmp_path):
    def payloads():
        (tmp_path / "x.iac").write_bytes(b"somebody else's")
        yield from payloads_of(3)

    with pytest.raises(FileExistsError):
        iac.build_pack_streaming(tmp_path / "x.iac", {}, slide_table(), item_table(3), payloads())
    assert (tmp_path / "x.iac").read_bytes() == b"somebody else's"
    assert os.listdir(tmp_path) == ["x.iac"]


def test_a_dangling_symlink_is_something_that_exists(tmp_path):
    (tmp_path / "link.iac").symlink_to(tmp_path / "nowhere.iac")
    with pytest.raises(FileExistsError):
        build(tmp_path / "link.iac")
    assert os.listdir(tmp_path) == ["link.iac"]
    build(tmp_path / "link.iac", overwrite=True)
    assert iac.PackReader(tmp_path / "link.iac").read_payload(0) == payloads_of(3)[0]


def test_overwriting_a_symlink_replaces_the_file_behind_it(tmp_path):
    (tmp_path / "store").mkdir()
    real = build(tmp_path / "store" / "real.iac")
    (tmp_path / "link.iac").symlink_to(real)
    build(tmp_path / "link.iac", payloads=[b"new"] * 3, overwrite=True)
    assert (tmp_path / "link.iac").is_symlink()
    assert iac.PackReader(real).read_payload(0) == b"new"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_is_never_replaced(tmp_path, overwrite):
    (tmp_path / "x.iac").mkdir()
    with pytest.raises((IsADirectoryError, FileExistsError)):
        build(tmp_path / "x.iac", overwrite=overwrite)
    assert os.listdir(tmp_path) == ["x.iac"]


def test_a_fifo_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "x.iac")
    with pytest.raises(OSError, match="not a file that can be replaced"):
        build(tmp_path / "x.iac", overwrite=True)


def test_missing_parents_are_created(tmp_path):
    build(tmp_path / "a" / "b" / "x.iac")
    assert os.listdir(tmp_path / "a" / "b") == ["x.iac"]


def test_a_parent_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="cannot create"):
        build(tmp_path / "a" / "x.iac")


def test_a_name_of_255_bytes_is_possible(tmp_path):
    build(tmp_path / ("é" * 125 + ".iac"))
    assert len(os.listdir(tmp_path)) == 1


def test_names_too_long_are_refused_before_the_data_is_written(tmp_path):
    def payloads():
        pytest.fail("data was asked for")
        yield b""

    for path in (tmp_path / ("x" * 256), tmp_path / ("x/" * 3000) / "x.iac"):
        with pytest.raises(OSError, match="File name too long"):
            iac.build_pack_streaming(
                path, {"codec": "none"}, slide_table(), item_table(ROWS), payloads()
            )
    assert os.listdir(tmp_path) == []


def test_a_path_with_a_nul_is_refused(tmp_path):
    with pytest.raises((ValueError, OSError)):
        build(Path(f"{tmp_path}/x.iac\0.txt"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_pack_has_the_mode_that_the_umask_says(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        path = build(tmp_path / "x.iac")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o400])
def test_a_replaced_pack_keeps_its_mode(tmp_path, mode):
    path = build(tmp_path / "x.iac")
    path.chmod(mode)
    build(path, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_nobody_else_can_read_the_temporary_file(tmp_path):
    modes = []

    def payloads():
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())
        yield from payloads_of(3)

    iac.build_pack_streaming(tmp_path / "x.iac", {}, slide_table(), item_table(3), payloads())
    assert modes == [0o600]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("after", [0, 2, 700])
def test_nothing_is_left_behind_when_the_payloads_fail(tmp_path, error, after):
    path = build(tmp_path / "x.iac")
    before = path.read_bytes()

    def payloads():
        for _ in range(after):
            yield b"x" * 10_000
        raise error("in the generator")

    with pytest.raises(error, match="in the generator"):
        iac.build_pack_streaming(
            path, {}, slide_table(), item_table(1000), payloads(), overwrite=True
        )
    assert os.listdir(tmp_path) == ["x.iac"]
    assert path.read_bytes() == before
