"""Importing is cheap, and what is public is documented."""

import inspect
import subprocess
import sys

import pytest

import iac_query as iac


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_loads_no_engine():
    loaded = run(
        "import sys, iac_query\n"
        "print([n for n in ('duckdb', 'polars', 'pandas', 'torch') if n in sys.modules])"
    )
    assert loaded.strip() == "[]"


def test_reading_and_decoding_load_no_engine(pack):
    loaded = run(
        "import sys, iac_query, pyarrow as pa\n"
        f"table = pa.table({{'record': [{{'pack': {str(pack)!r}, 'row': 3}}]}})\n"
        "assert iac_query.decode(table)['payload'][0].as_py().startswith(b'record 3')\n"
        f"assert iac_query.PackReader({str(pack)!r}).index_table.num_rows == 10\n"
        "print([n for n in ('duckdb', 'polars', 'torch') if n in sys.modules])"
    )
    assert loaded.strip() == "[]"


def test_adapters_of_dicom_leave_pydicom_as_it_is():
    changed = run(
        "from pydicom.pixels import get_decoder\n"
        "from pydicom.uid import JPEGLSLossless, UID, UID_dictionary\n"
        "before = dict(UID_dictionary), get_decoder(JPEGLSLossless).available_plugins\n"
        "from iac_query.adapters import dicom\n"
        "after = dict(UID_dictionary), get_decoder(JPEGLSLossless).available_plugins\n"
        "print(before != after)"
    )
    assert changed.strip() == "False"


def test_all_is_sorted_and_exists():
    assert list(iac.__all__) == sorted(iac.__all__, key=lambda name: (not name.isupper(), name))
    for name in iac.__all__:
        assert hasattr(iac, name), name


@pytest.mark.parametrize("name", iac.__all__)
def test_every_public_name_is_documented(name):
    value = getattr(iac, name)
    if inspect.isclass(value) or callable(value):
        assert value.__doc__ and value.__doc__.strip(), name


@pytest.mark.parametrize(
    "kind",
    [
        iac.PackReader,
        iac.VariableRecordPack,
        iac.FixedRecordPack,
        iac.ContiguousRecordBatch,
        iac.Codec,
    ],
)
def test_every_public_member_is_documented(kind):
    for name, member in vars(kind).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert member.__doc__, f"{kind.__name__}.{name}"


def test_the_package_says_that_it_is_typed():
    from importlib.resources import files

    assert (files("iac_query") / "py.typed").is_file()
    assert (files("iac_query") / "_native.pyi").is_file()


def test_validating_loads_no_engine(pack):
    loaded = run(
        "import sys, iac_query\n"
        f"assert iac_query.validate({str(pack)!r}).ok\n"
        "print([n for n in ('duckdb', 'polars', 'pandas', 'torch') if n in sys.modules])"
    )
    assert loaded.strip() == "[]"
