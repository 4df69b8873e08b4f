from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from packs import payloads_of, write_encoded, write_pack
from references import ROWS

import iac_query as iac

# Examples are the same in every run, and a slow machine is not an error.
settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("suite")


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack of ten raw records."""
    return write_pack(tmp_path / "ten.iac", payloads_of(10))


@pytest.fixture
def packs(tmp_path):
    """Three packs of bytes by three codecs, and their records."""
    found = {}
    for codec in ("zstd", "brotli", "none"):
        objects = [f"{codec} {i} é日本".encode() * (i + 1) for i in range(ROWS)]
        found[str(write_encoded(tmp_path / f"{codec}.iac", objects, codec))] = objects
    return found


@pytest.fixture
def con():
    """A DuckDB connection in which packs can be queried."""
    with iac.connect() as con:
        yield con


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with nothing in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def imaged_bytes(tmp_path_factory) -> dict[str, bytes]:
    """Sound packs of DICOM instances and of whole slides, by name."""
    from imaged_packs import DICOM, SLIDES

    path = tmp_path_factory.mktemp("imaged") / "x.iac"
    return {name: build(path).read_bytes() for name, build in {**DICOM, **SLIDES}.items()}


@pytest.fixture
def imaged(imaged_bytes, tmp_path):
    """Writes a fresh copy of one of them, or of a pack in tests/data."""
    from packs import DATA

    def copy(name: str) -> Path:
        path = tmp_path / "imaged.iac"
        raw = imaged_bytes.get(name)
        path.write_bytes((DATA / name).read_bytes() if raw is None else raw)
        return path

    return copy
