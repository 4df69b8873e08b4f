"""Packs of features: what is built is what is read, from every source there is."""

import json
import multiprocessing
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from iac_query.adapters import _feature_blocks, features, tiles
from iac_query.adapters.features import (
    FeatureCacheReader,
    TileNotFoundError,
    build_teacher_feature_package,
    build_teacher_feature_package_from_feature_map,
    build_teacher_feature_package_from_tile_package,
    read_feature_package_records,
)
from safetensors.numpy import save_file
from tile_data import files_in, images_of, records_of

import iac_query as iac

COUNT, DIM = 11, 6
NARROW = ["float16", "float32", "bool", "int8", "uint8", "int16", "uint16"]
WIDE = ["float64", "int32", "uint32", "int64", "uint64"]


def matrix_of(dtype: str = "float32", rows: int = COUNT, dim: int = DIM) -> np.ndarray:
    values = np.random.default_rng(5).normal(0, 60, (rows, dim))
    return values > 0 if dtype == "bool" else np.abs(values).astype(dtype)


def build(path: Path, source, count: int = COUNT, **options) -> Path:
    build_teacher_feature_package(records_of(count), source, path, "teacher", **options)
    return path


def stored(path: Path) -> np.ndarray:
    with FeatureCacheReader(path) as reader:
        return reader.read_matrix(range(len(reader)))


def test_every_way_to_read_gives_the_features(tmp_path: Path):
    matrix = matrix_of()
    with FeatureCacheReader(build(tmp_path / "f.iac", matrix)) as reader:
        rows = [3, 0, 3, -1]
        ids = [reader.tile_id_at(row) for row in rows]
        assert ids == ["tile-é-3", "tile-é-0", "tile-é-3", "tile-é-10"]
        for found in (
            reader.read_matrix(rows, workers=2),
            reader.read_matrix_of(ids),
            reader.read_features_at(np.array(rows)),
        ):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, matrix[rows])
            found[:] = 0  # it is the caller's own
        np.testing.assert_array_equal(reader.read_feature_at(-1), matrix[-1])
        np.testing.assert_array_equal(reader.read_feature("tile-é-2"), matrix[2])
        assert reader.read_features_at([]).shape == (0, DIM)
        assert (len(reader), reader.record_count, reader.dim) == (COUNT, COUNT, DIM)
        assert reader.record_table.column_names == [
            *("slide_idx", "tile_x", "tile_y", "tile_id", "flags")
        ]
        assert reader.header["teacher"] == "teacher"
        assert "codec" not in reader.header
    assert [
        (r.tile_id, r.x, r.tile_path) for r in read_feature_package_records(tmp_path / "f.iac")
    ] == [(r.tile_id, r.x, Path(f"features/{r.tile_id}.bin")) for r in records_of(COUNT)]


def test_an_id_or_a_row_that_is_not_there(tmp_path: Path):
    with FeatureCacheReader(build(tmp_path / "f.iac", matrix_of())) as reader:
        for error in (TileNotFoundError, FileNotFoundError, KeyError):
            with pytest.raises(error, match=r"'nobody' in .*f\.iac"):
                reader.read_feature("nobody")
        for read in (
            reader.read_feature_at,
            reader.tile_id_at,
            lambda row: reader.read_matrix([row]),
        ):
            with pytest.raises(IndexError, match=r"f\.iac: row 11"):
                read(COUNT)


def test_readers_pickle_and_survive_a_fork(tmp_path: Path):
    matrix = matrix_of()
    with FeatureCacheReader(build(tmp_path / "f.iac", matrix)) as reader:
        again = pickle.loads(pickle.dumps(reader))
        np.testing.assert_array_equal(again.read_feature_at(1), matrix[1])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = np.array(pool.map(reader.read_feature_at, range(COUNT)))
        np.testing.assert_array_equal(found, matrix)


@pytest.mark.parametrize("dtype", NARROW + WIDE)
def test_dtypes_are_kept(tmp_path: Path, dtype: str):
    matrix = matrix_of(dtype)
    path = build(tmp_path / "f.iac", matrix, dtype=None, extended=dtype in WIDE)
    type = features.EXTENDED_PAYLOAD_TYPE if dtype in WIDE else features.PAYLOAD_TYPE
    assert iac.read_header(path)["payload_type"] == type
    assert stored(path).dtype == dtype
    np.testing.assert_array_equal(stored(path), matrix)
    with FeatureCacheReader(path) as reader:
        np.testing.assert_array_equal(
            reader.read_features_at(range(COUNT)), matrix.astype(np.float32)
        )


def test_values_beyond_float32_have_no_such_view(tmp_path: Path):
    path = build(tmp_path / "f.iac", np.full((2, 3), 1e300), 2, dtype="float64", extended=True)
    with FeatureCacheReader(path) as reader:
        assert reader.read_matrix([0])[0, 0] == 1e300
        with pytest.raises(ValueError, match=r"f\.iac: features are beyond float32, use read_mat"):
            reader.read_feature_at(0)


def test_floats_are_rounded_and_integers_are_not(tmp_path: Path):
    matrix = matrix_of("float64")
    found = stored(build(tmp_path / "a.iac", matrix, dtype="float16"))
    np.testing.assert_array_equal(found, matrix.astype(np.float16))
    found = stored(build(tmp_path / "b.iac", matrix_of("int64"), dtype="uint8"))
    np.testing.assert_array_equal(found, matrix_of("int64"))


def npy(path: Path, matrix: np.ndarray) -> dict:
    np.save(path / "x.npy", matrix)
    return {"source": path / "x.npy"}


def npy_by_columns(path: Path, matrix: np.ndarray) -> dict:
    return npy(path, np.asfortranarray(matrix))


def npy_big_endian(path: Path, matrix: np.ndarray) -> dict:
    return npy(path, matrix.astype(matrix.dtype.newbyteorder(">")))


def hdf5(path: Path, matrix: np.ndarray) -> dict:
    with h5py.File(path / "x.h5", "w") as file:
        file.create_dataset("deep/features", data=matrix, chunks=(2, 2), compression="gzip")
    return {"source": path / "x.h5"}


def hdf5_by_name(path: Path, matrix: np.ndarray) -> dict:
    with h5py.File(path / "x.hdf5", "w") as file:
        file["coords"] = np.zeros((COUNT, 2))
        file["features"] = matrix
    return {"source": str(path / "x.hdf5"), "feature_key": "features"}


def safetensors(path: Path, matrix: np.ndarray) -> dict:
    save_file({"a": np.zeros(3), "features": matrix}, path / "x.safetensors")
    return {"source": path / "x.safetensors", "feature_key": "features"}


SOURCES = {
    "matrix": lambda path, matrix: {"source": matrix},
    "columns": lambda path, matrix: {"source": np.asfortranarray(matrix)},
    "list": lambda path, matrix: {"source": list(matrix)},
    "lists": lambda path, matrix: {"source": matrix.tolist()},
    "iterator": lambda path, matrix: {"source": iter(matrix)},
    **{f.__name__: f for f in (npy, npy_by_columns, npy_big_endian)},
    **{f.__name__: f for f in (hdf5, hdf5_by_name, safetensors)},
}


def test_progress_counts_features(tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_feature_blocks, "_BLOCK_BYTES", 1)
    build(tmp_path / "f.iac", matrix_of(), show_progress=True)
    assert f"{COUNT}/{COUNT}" in capfd.readouterr().err
    build(tmp_path / "g.iac", matrix_of())
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("block_bytes", [1, 100, 8 << 20])
@pytest.mark.parametrize("name", SOURCES)
def test_sources(tmp_path: Path, name: str, block_bytes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_feature_blocks, "_BLOCK_BYTES", block_bytes)
    matrix = matrix_of()
    np.testing.assert_array_equal(
        stored(build(tmp_path / "f.iac", **SOURCES[name](tmp_path, matrix))), matrix
    )


def write_bfloat16(path: Path, matrix: np.ndarray) -> None:
    halves = (matrix.view(np.uint32) >> 16).astype("<u2")
    pad = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    entry = {"dtype": "BF16", "shape": list(matrix.shape), "data_offsets": [8, 8 + halves.nbytes]}
    header = json.dumps({"pad": pad, "f": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8) + halves.tobytes())


@pytest.mark.parametrize("block_bytes", [1, 8 << 20])
def test_bfloat16_becomes_float32_exactly(tmp_path: Path, block_bytes, monkeypatch):
    monkeypatch.setattr(_feature_blocks, "_BLOCK_BYTES", block_bytes)
    matrix = (matrix_of().view(np.uint32) & 0xFFFF0000).view(np.float32)
    write_bfloat16(tmp_path / "x.safetensors", matrix)
    for dtype in (None, "float32"):
        path = build(
            tmp_path / f"{dtype}.iac", tmp_path / "x.safetensors", feature_key="f", dtype=dtype
        )
        np.testing.assert_array_equal(stored(path), matrix)


def test_a_feature_map(tmp_path: Path):
    matrix, records = matrix_of(), records_of(COUNT)
    by_id = {r.tile_id: v for r, v in zip(records, matrix, strict=True)} | {"more": matrix[0]}
    shuffled = dict(sorted(by_id.items()))
    path = tmp_path / "f.iac"
    build_teacher_feature_package_from_feature_map(records, shuffled, path, "teacher")
    np.testing.assert_array_equal(stored(path), matrix)
    del shuffled["tile-é-7"]
    with pytest.raises(TileNotFoundError, match="missing teacher feature: tile-é-7"):
        build_teacher_feature_package_from_feature_map(
            records, shuffled, tmp_path / "g.iac", "teacher"
        )
    assert files_in(tmp_path) == {"f.iac"}


@pytest.mark.parametrize("as_map", [False, True])
@pytest.mark.parametrize("extended", [False, True])
def test_the_tiles_of_a_pack(tmp_path: Path, as_map: bool, extended: bool):
    records, matrix = records_of(COUNT, step=48), matrix_of()
    tiles.build_tile_package_from_arrays(
        records, images_of(COUNT), tmp_path / "t.iac", effort=1, stride_x=24, extended=extended
    )
    source = {r.tile_id: v for r, v in zip(records, matrix, strict=True)} if as_map else matrix
    build_teacher_feature_package_from_tile_package(
        tmp_path / "t.iac", source, tmp_path / "f.iac", "teacher", extended=extended
    )
    found = [
        (r.tile_id, r.slide_id, r.x, r.y) for r in read_feature_package_records(tmp_path / "f.iac")
    ]
    assert found == [(r.tile_id, r.slide_id, r.x, r.y) for r in records]
    header = iac.read_header(tmp_path / "f.iac")
    assert [header[k] for k in ("tile_width", "tile_height", "stride_x", "stride_y")] == [
        *(16, 16, 24, 48)
    ]
    np.testing.assert_array_equal(stored(tmp_path / "f.iac"), matrix)


MEASURED = """
import sys, threading
from tile_data import records_of
from iac_query.adapters.features import build_teacher_feature_package

def number(path, name):
    return int(open(path).read().split(name + ":")[1].split()[0])

def watch():
    while not done.wait(0.002):
        peaks.append(number("/proc/self/status", "RssAnon"))

records, done, peaks = records_of(2000), threading.Event(), []
watcher = threading.Thread(target=watch)
watcher.start()
before = number("/proc/self/io", "wchar")
build_teacher_feature_package(records, sys.argv[1], sys.argv[2], "t", dtype="float16")
print(number("/proc/self/io", "wchar") - before)
done.set()
watcher.join()
print(max(peaks) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc of Linux")
def test_a_matrix_is_written_once_and_never_held(tmp_path: Path):
    rows, dim = 2000, 16384  # 125 MiB, of which half is stored
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (rows, dim))
    mapped[:, 0] = np.arange(rows)
    del mapped
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, tmp_path / "x.npy", tmp_path / "f.iac"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    written, anonymous = map(int, run.stdout.split())
    assert 1 <= written / (rows * dim * 2) < 1.01
    assert anonymous < 110 << 20
    with FeatureCacheReader(tmp_path / "f.iac") as reader:
        assert reader.read_feature_at(1999)[0] == 1999
