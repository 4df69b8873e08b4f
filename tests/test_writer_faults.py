"""Builds that are killed or run out of space: the target is absent, old or new, always whole."""

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from packs import payloads_of, slide_table, write_pack

import iac_query as iac

ROWS = 500
SIZE = 3000


def build(path: Path, marker: str) -> None:
    index = pa.table({"i": range(ROWS)})
    iac.build_pack(path, {}, slide_table(), index, [marker.encode() * SIZE] * ROWS, overwrite=True)


def build_killed(path: Path, marker: str, after: float) -> None:
    """A build in a process of its own that is killed after so many seconds, done or not."""
    child = multiprocessing.get_context("fork").Process(target=build, args=(path, marker))
    child.start()
    time.sleep(after)
    child.kill()
    child.join()


def assert_is_whole(path: Path, markers: str) -> None:
    """Every record is there and is of one and the same build."""
    with iac.PackReader(path) as reader:
        data = bytes(reader.read_payloads_contiguous(range(ROWS)).buffer)
    assert data[:1].decode() in markers
    assert data == data[:1] * (SIZE * ROWS)


@pytest.fixture
def moments(tmp_path):
    """Random moments of a build, and some just behind its end."""
    started = time.perf_counter()
    build(tmp_path / "timed.iac", "a")
    seconds = min(time.perf_counter() - started, 0.25)
    os.unlink(tmp_path / "timed.iac")
    chance = random.Random(0)
    return [chance.uniform(0, 1.3) * seconds for _ in range(25)]


def test_a_killed_build_leaves_no_pack_or_a_whole_one(tmp_path, moments):
    for i, moment in enumerate(moments):
        path = tmp_path / f"x{i}.iac"
        build_killed(path, "a", moment)
        if path.exists():
            assert_is_whole(path, "a")
    # What else is there is hidden, and only for the owner to read until it is whole.
    for path in tmp_path.iterdir():
        if path.suffix != ".iac":
            assert path.name.startswith(".")
            if path.stat().st_mode & 0o077 != 0:
                assert_is_whole(path, "a")


def test_a_killed_build_leaves_the_old_pack_or_the_new_one(tmp_path, moments):
    path = tmp_path / "x.iac"
    build(path, "a")
    for i, moment in enumerate(moments):
        build_killed(path, "bcd"[i % 3], moment)
        assert_is_whole(path, "abcd")
    assert [path.name for path in tmp_path.glob("*.iac")] == ["x.iac"]


CTRL_C = """
import sys
sys.path.insert(0, sys.argv[2])
from test_writer_faults import build
print("ready", flush=True)
for i in range(100_000):
    build(f"{sys.argv[1]}/x{i}.iac", "a")
"""


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, str(tmp_path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    for path in tmp_path.iterdir():
        assert_is_whole(path, "a")


# No space left


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a small file system here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("size", [30_000, 300_000, 2_000_000])
def test_a_full_disk_is_an_error_that_leaves_nothing_behind(small_disk, size):
    path = small_disk / "x.iac"
    with pytest.raises(OSError, match="No space left") as raised:
        write_pack(path, [b"x" * size] * 60)
    assert raised.value.errno == 28
    assert raised.value.filename == str(path)
    assert os.listdir(small_disk) == []
    write_pack(path, payloads_of(5))
    assert iac.PackReader(path).read_payloads(range(5)) == payloads_of(5)


def test_a_full_disk_keeps_the_old_pack(small_disk):
    path = write_pack(small_disk / "x.iac", payloads_of(5))
    before = path.read_bytes()
    with pytest.raises(OSError, match="No space left"):
        write_pack(path, [b"x" * 100_000] * 60)
    assert os.listdir(small_disk) == ["x.iac"]
    assert path.read_bytes() == before


LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from packs import write_pack
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    write_pack(sys.argv[1], [b"x" * 50_000] * 20)
except OSError as error:
    print(error.errno, error.filename)
"""


def test_a_file_that_may_not_grow_is_an_error_that_keeps_the_old_pack(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    path = write_pack(tmp_path / "x.iac", payloads_of(5))
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"27 {path}\n", done.stderr
    assert os.listdir(tmp_path) == ["x.iac"]
    assert path.read_bytes() == before


def test_a_folder_that_is_read_only_is_an_error(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        write_pack(tmp_path / "x.iac", [b"x"])
    tmp_path.chmod(0o700)
