"""Headers of packs that are written: every value comes back, or it is refused."""

import os
from decimal import Decimal

import numpy as np
import pytest
from iatro import iac as peer
from packs import (
    EVERY_HEADER_VALUE,
    build,
    item_table,
)

import iac_query as iac


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": float("nan")}, "nan|NaN|JSON compliant"),
        ({"x": [float("inf")]}, "inf|JSON compliant"),
        ({"x": 2**64}, "18446744073709551616 does not fit in 64 bits"),
        ({"x": {"y": [-(2**63) - 1]}}, "does not fit in 64 bits"),
        ({"x": "\ud800"}, "header JSON"),
        ({"\udfff": 1}, "header JSON"),
        ({"x": "y" * 65520}, "at most 65520 fit"),
    ],
    ids=["nan", "infinity", "large", "small", "surrogate", "surrogate key", "too long"],
)
def test_a_header_that_cannot_be_stored_exactly_is_refused(tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "x.iac", header=fields)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [b"x", {1}, Decimal("1.5"), np.float32(1), object()], ids=repr)
def test_a_header_value_that_json_has_not_is_a_type_error(tmp_path, value):
    with pytest.raises(TypeError):
        build(tmp_path / "x.iac", header={"x": value})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("header", [[], "{}", 5])
def test_a_header_is_a_mapping(tmp_path, header):
    with pytest.raises(TypeError, match="header_json"):
        build(tmp_path / "x.iac", header=header)


def test_a_header_that_is_nested_too_deep_is_refused(tmp_path):
    def nested(depth: int):
        return {"x": nested(depth - 1)} if depth else 1

    build(tmp_path / "x.iac", header=nested(120))
    with pytest.raises(ValueError, match="nested deeper"):
        build(tmp_path / "y.iac", header=nested(128))


def test_the_longest_header_that_fits_is_stored(tmp_path):
    # Just below the limit, where the number of data bytes decides.
    room = 65520 - 700
    path = build(tmp_path / "x.iac", header={"x": "y" * room})
    assert len(iac.read_header(path)["x"]) == room
    assert peer.read_header(path) == iac.read_header(path)


def test_a_readers_header_can_be_passed_on(tmp_path):
    first = iac.PackReader(build(tmp_path / "a.iac", header={"payload_type": "t", "mine": [1]}))
    build(
        tmp_path / "b.iac",
        header=first.header,
        index=item_table(2),
        payloads=[b"longer than before " * 10] * 2,
    )
    header = iac.read_header(tmp_path / "b.iac")
    assert header["num_records"] == 2
    assert header["data_length"] == 380
    assert (header["payload_type"], header["mine"]) == ("t", [1])


def test_the_callers_header_is_not_changed(tmp_path):
    header = {"payload_type": "t", "num_records": 77}
    build(tmp_path / "x.iac", header=header)
    assert header == {"payload_type": "t", "num_records": 77}


def test_every_header_value_comes_back_as_it_was(tmp_path):
    header = iac.read_header(build(tmp_path / "x.iac", header=EVERY_HEADER_VALUE))
    assert {key: header[key] for key in EVERY_HEADER_VALUE} == EVERY_HEADER_VALUE
    assert str(header["numbers"]) == str(EVERY_HEADER_VALUE["numbers"])
