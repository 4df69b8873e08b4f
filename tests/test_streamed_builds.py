"""Builders take what they are given as it comes: of an iterator few things are held at a time."""

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iac_query.adapters import _feature_blocks, tiles
from iac_query.adapters.features import build_teacher_feature_package
from iac_query.adapters.tiles import (
    build_tile_package_from_arrays,
    build_tile_package_from_records,
)
from patients import SCHEMAS, TEXT, make, some_patients
from tile_data import SIZE, images_of, records_of

import iac_query as iac

COUNT = 1000


class Held:
    """Makes things one after the other, and counts how many of them anyone still holds."""

    def __init__(self, make: Callable[[int], Any], count: int = COUNT) -> None:
        self._make, self._count = make, count
        self.most = 0

    def __iter__(self) -> Iterator[Any]:
        living: list[weakref.ref[Any]] = []
        for number in range(self._count):
            made = self._make(number)
            living = [*(ref for ref in living if ref() is not None), weakref.ref(made)]
            self.most = max(self.most, len(living))
            yield made
            del made


def test_what_is_held_is_counted():
    held = Held(lambda number: np.zeros(number))
    list(held)
    assert held.most == COUNT
    held = Held(lambda number: np.zeros(number))
    for _ in held:
        pass
    assert held.most <= 2


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("workers", [1, 2])
def test_patients(schema, tmp_path: Path, workers: int):
    (fields,) = some_patients(schema, 1)
    held = Held(lambda number: make(schema, [{**fields, "patient_id": str(number)}])[0], 300)
    schema.build(tmp_path / "x.iac", iter(held), quality=0, workers=workers)
    with schema.reader(tmp_path / "x.iac") as reader:
        assert len(reader) == 300
    assert held.most <= 3


class Counting(iac.Codec):
    """Stores bytes as they are."""

    name = "counting"
    encoded = 0

    def encode(self, obj):
        self.encoded += 1
        return bytes(obj)

    def decode(self, payload):
        return payload


def test_records_of_patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(iac.Codec, "_registered", {})
    iac.Codec.register("counting", Counting)
    codec, ahead = Counting(), []

    def patients():
        for number in range(COUNT):
            ahead.append(number - codec.encoded)
            yield TEXT.patient(str(number), "", [TEXT.doc("d", "text")])

    TEXT.build(tmp_path / "x.iac", patients(), codec=codec)
    assert len(ahead) == COUNT and max(ahead) <= 2


@pytest.mark.parametrize("workers", [1, 2])
def test_arrays_of_tiles(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch):
    (image,) = images_of(1)
    encode, encoded, ahead = tiles.TileEncoding.encode, [], []

    def counted(self, record, array):
        payload = encode(self, record, array)
        encoded.append(record.tile_id)
        return payload

    def arrays():
        for number in range(COUNT):
            ahead.append(number - len(encoded))
            yield image

    monkeypatch.setattr(tiles.TileEncoding, "encode", counted)
    build_tile_package_from_arrays(
        records_of(COUNT), arrays(), tmp_path / "t.iac", effort=1, workers=workers
    )
    assert len(ahead) == len(encoded) == COUNT
    assert max(ahead) <= 8


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("check", ["header", "decode"])
def test_payloads_of_tiles(tmp_path: Path, workers: int, check):
    stored = np.frombuffer(iac.Codec.create("jxl", effort=1).encode(images_of(1)[0]), np.uint8)
    held = Held(lambda number: stored.copy())
    build_tile_package_from_records(
        records_of(COUNT),
        iter(held),
        tmp_path / "t.iac",
        tile_width=SIZE,
        tile_height=SIZE,
        effort=1,
        check=check,
        workers=workers,
    )
    # The writer takes 256 at a time.
    assert held.most <= 300


def test_vectors_of_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_feature_blocks, "_BLOCK_BYTES", 100)
    held = Held(lambda number: np.full(4, number, np.float32))
    build_teacher_feature_package(records_of(COUNT), iter(held), tmp_path / "f.iac", "teacher")
    with iac.FixedRecordPack(tmp_path / "f.iac") as pack:
        assert pack.read(COUNT - 1)[0] == COUNT - 1
    assert held.most <= 4
