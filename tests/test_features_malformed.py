"""Bad input of features is an error that names tile or file, and leaves nothing."""

import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from iac_query.adapters.features import (
    FeatureCacheReader,
    build_teacher_feature_package,
    build_teacher_feature_package_from_tile_package,
)
from packs import write_matrix
from safetensors.numpy import save_file
from test_features import COUNT, DIM, matrix_of
from tile_data import files_in, records_of

import iac_query as iac


def refused(folder: Path, source, reason: str, error=ValueError, records=None, **options) -> None:
    """Building fails and leaves nothing, and an old file as it was."""
    records = records_of(COUNT) if records is None else records
    out = folder / "out" / "f.iac"
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(b"old")
    options = {"teacher_name": "teacher", **options}
    with pytest.raises(error, match=reason):
        build_teacher_feature_package(records, source, out, overwrite=True, **options)
    assert files_in(out.parent) == {"f.iac"}
    assert out.read_bytes() == b"old"


def replaced(value: float, dtype: str = "float32") -> np.ndarray:
    """Ones, but for one value of the fifth row."""
    matrix = np.ones((COUNT, DIM), dtype)
    matrix[4, 2] = value
    return matrix


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_source", [np.asarray, list, iter])
def test_nan_is_refused_unless_allowed(tmp_path: Path, value: float, as_source):
    reason = r"tile 'tile-é-4' \(row 4\): its feature has NaN or infinity, allow_nan=True takes it"
    refused(tmp_path, as_source(replaced(value)), reason)
    build_teacher_feature_package(
        records_of(COUNT),
        as_source(replaced(value)),
        tmp_path / "f.iac",
        "teacher",
        "float16",
        allow_nan=True,
    )
    with FeatureCacheReader(tmp_path / "f.iac") as reader:
        np.testing.assert_equal(reader.read_matrix([4])[0, 2], np.float16(value))


@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        (replaced(1e6), "float16"),
        (replaced(1e300, "float64"), "float32"),
        (replaced(0.5), "uint8"),
        (replaced(256, "int64"), "uint8"),
        (replaced(-1, "int64"), "uint16"),
        (replaced((1 << 24) + 1, "int64"), "float32"),
        (replaced((1 << 63) - 1, "int64"), "float32"),
        (replaced(2, "int64"), "bool"),
    ],
)
def test_values_that_the_dtype_does_not_hold(tmp_path: Path, source, dtype: str):
    reason = rf"tile 'tile-é-4' \(row 4\): its feature has a value that {dtype} does not hold"
    refused(tmp_path, source, reason, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint32", "int64", "uint64"])
def test_dtypes_beyond_float32_need_the_extended_schema(tmp_path: Path, dtype: str):
    refused(tmp_path, matrix_of(), f"dtype is {dtype}, which .*extended=True", dtype=dtype)
    refused(tmp_path, matrix_of(dtype), f"dtype is {dtype}, .*extended=True", dtype=None)


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "object", "S4", "longdouble", "nope"])
def test_dtypes_that_are_none_of_features(tmp_path: Path, dtype: str):
    refused(tmp_path, matrix_of(), "dtype is ", dtype=dtype, extended=True)


@pytest.mark.parametrize("count", [COUNT - 1, COUNT + 1])
@pytest.mark.parametrize("as_source", [np.asarray, list, iter])
def test_counts_that_differ(tmp_path: Path, count: int, as_source):
    source = as_source(matrix_of(rows=count))
    refused(tmp_path, source, rf"{min(count, COUNT)} (features|matrix rows) for {COUNT} r|{count}")


@pytest.mark.parametrize(
    ("source", "reason", "error"),
    [
        ([], "features are empty", ValueError),
        (np.empty((0, 4)), f"0 features for {COUNT} records", ValueError),
        (np.empty((COUNT, 0)), "features have no values", ValueError),
        (np.zeros(COUNT), "have 1 dimensions, expected 2", ValueError),
        (np.zeros((COUNT, 1, 4)), "have 3 dimensions, expected 2", ValueError),
        ([np.zeros((1, 4))] * COUNT, "feature 0: has 2 dimensions, expected 1", ValueError),
        ([np.zeros(4), np.zeros(3)], "feature 1: has 3 values, the first has 4", ValueError),
        ([np.zeros(4), np.zeros(4, "f4")], "feature 1: is float32, the first is", ValueError),
        (np.zeros((COUNT, 4), complex), "features of complex128 cannot", TypeError),
        (np.zeros((COUNT, 4), "U3"), "features of <U3 cannot", TypeError),
        (["a"] * COUNT, "features of <U1 cannot", TypeError),
        ({"a": np.zeros(4)}, "features are a mapping, use .*_from_feature_map", TypeError),
    ],
)
def test_sources_that_are_no_features(tmp_path: Path, source, reason: str, error):
    refused(tmp_path, source, reason, error)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"teacher_name": ""}, "teacher_name is required"),
        ({"feature_dim": 5}, "features have 6 values, feature_dim is 5"),
        ({"tile_width": 0}, "tile_width is 0, expected 1 or more"),
        ({"stride_x": 7}, "x is 16, which does not divide by the stride 7"),
        ({"feature_key": "x"}, "feature_key is for files"),
        ({"records": []}, f"{COUNT} features for 0 records"),
    ],
)
def test_arguments_that_cannot_be(tmp_path: Path, options: dict, reason: str):
    refused(tmp_path, matrix_of(), reason, **options)


def test_records_are_checked_as_those_of_tiles(tmp_path: Path):
    records = records_of(COUNT)
    records[3] = replace(records[3], tile_id="tile-é-0")
    refused(tmp_path, matrix_of(), "duplicate tile_id values: 1", records=records)
    records[3] = replace(records[3], tile_id="x", patient_id="other")
    refused(
        tmp_path, matrix_of(), "tile 'x': slide 'slide-1' is of another patient", records=records
    )
    many = records_of(256, slides=256)
    refused(tmp_path, np.zeros((256, 2)), "256 slides, a pack holds 255", records=many)


def test_files_that_hold_no_features(tmp_path: Path):
    def bad(name: str, reason: str, **options) -> None:
        refused(tmp_path, tmp_path / name, rf"{name}: {reason}", **options)

    (tmp_path / "x.csv").touch()
    bad("x.csv", r"expected a name that ends in \.npy, \.h5")
    for suffix in ("npy", "h5", "hdf5", "safetensors"):
        (tmp_path / f"bad.{suffix}").write_bytes(b"nothing of the sort" * 9)
        bad(f"bad.{suffix}", "holds no matrix that can be read: ")
        refused(tmp_path, tmp_path / f"no.{suffix}", rf"no\.{suffix}", FileNotFoundError)
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    bad("cube.npy", "holds no matrix that can be read: has 3 dimensions")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    bad("objects.npy", "holds no matrix")
    np.save(tmp_path / "f.npy", matrix_of())
    bad("f.npy", "holds no matrix .*feature_key is for", feature_key="x")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "f.npy").read_bytes()[:-9])
    bad("cut.npy", "holds no matrix that can be read")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b/c"], file["n"] = np.zeros((2, 2)), np.zeros(3), "text"
    bad("two.h5", r".*feature_key is None, expected one of \['a', 'b/c', 'n'\]")
    bad("two.h5", ".*feature_key is 'b', expected", feature_key="b")
    bad("two.h5", ".*has 1 dimensions", feature_key="b/c")
    save_file({"a": np.zeros(3)}, tmp_path / "one.safetensors")
    bad("one.safetensors", ".*has 1 dimensions, expected 2")


def test_packs_that_are_none_of_features(tmp_path: Path):
    write_matrix(tmp_path / "m.iac", matrix_of())
    with pytest.raises(iac.PackError, match=r"m\.iac: is a pack of 'embeddings', expected"):
        FeatureCacheReader(tmp_path / "m.iac")
    with pytest.raises(iac.PackError, match=r"m\.iac: is not a pack of variable"):
        build_teacher_feature_package_from_tile_package(
            tmp_path / "m.iac", matrix_of(), tmp_path / "f.iac", "t"
        )
    write_matrix(tmp_path / "c.iac", matrix_of() + 1j, payload_type="teacher_features")
    with FeatureCacheReader(tmp_path / "c.iac") as reader:
        assert reader.read_matrix([0]).dtype.kind == "c"
        with pytest.raises(ValueError, match=r"c\.iac: features of complex64 have no float32"):
            reader.read_feature_at(0)


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("h5py", "features.build_teacher_feature_package(R, 'x.h5', 'o.iac', 't')"),
        ("safetensors", "features.build_teacher_feature_package(R, 'x.safetensors', 'o.iac', 't')"),
        ("PIL", "tiles.build_tile_package('m.csv', 'o.iac')"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(tmp_path: Path, module: str, call: str):
    code = f"""
import sys
sys.modules[{module!r}] = None
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from iac_query.adapters import features, manifests, tiles
R = [manifests.TileRecord("t", "p", "s", Path("x.png"), 0, 0, "")]
manifests.write_tile_manifest("m.csv", R)
for name in ("x.h5", "x.safetensors", "x.png"):
    Path(name).touch()
try:
    {call}
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    extra = "adapters" if module == "PIL" else "features"
    assert f"pip install iac-query[{extra}]" in run.stdout


def test_masked_features(tmp_path):
    masked = np.ma.masked_array(matrix_of("float32"), mask=False)
    masked[COUNT - 1, 2] = np.ma.masked
    refused(tmp_path, masked, "features are masked")
    refused(tmp_path, list(masked), "features are masked")


def test_a_safetensors_file_of_8_bit_floats(tmp_path):
    head = json.dumps({"f": {"dtype": "F8_E4M3", "shape": [4, 3], "data_offsets": [0, 12]}})
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head.encode() + bytes(12))
    refused(tmp_path, path, r"x\.safetensors: .*features of F8_E4M3 cannot be stored")
