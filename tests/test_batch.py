"""Batches of records: memory, validity, failures."""

import gc
import os
import pickle

import numpy as np
import pyarrow as pa
import pytest
from packs import flip_payload, payloads_of, write_encoded, write_pack

import iac_query as iac

pytestmark = pytest.mark.asan

CODECS = ["none", "zstd", "brotli"]


@pytest.fixture(params=CODECS)
def damaged(request, tmp_path):
    """A pack of 20 records of which 3 and 11 are damaged, and the records."""
    objects = payloads_of(20, 3000)
    path = write_encoded(tmp_path / "damaged.iac", objects, request.param)
    for row in (3, 11):
        flip_payload(path, row)
    return iac.VariableRecordPack(path), objects


def batch_of(*records: bytes, **options) -> iac.ContiguousRecordBatch:
    offsets = np.cumsum([0, *map(len, records)])
    return iac.ContiguousRecordBatch(b"".join(records), offsets, **options)


# The published interface


def test_a_batch_is_its_bytes_and_offsets():
    batch = batch_of(b"one", b"", b"three")
    assert bytes(batch.buffer) == b"onethree"
    assert (batch.buffer.format, batch.buffer.readonly) == ("B", True)
    assert batch.offsets_buffer.tolist() == [0, 3, 3, 8]
    assert (batch.offsets_buffer.format, batch.offsets_buffer.readonly) == ("Q", True)
    assert (batch.offsets, batch.lengths) == ((0, 3, 3, 8), (3, 0, 5))
    assert batch.record_count == len(batch) == 3
    assert [bytes(record) for record in batch] == [b"one", b"", b"three"]
    assert bytes(batch.view(2)) == bytes(batch[-1]) == b"three"
    assert repr(batch) == "<ContiguousRecordBatch of 3 records, 8 bytes>"


def test_records_are_read_only_views_of_the_buffer():
    batch = batch_of(b"one", b"two")
    assert batch[1].readonly
    with pytest.raises(TypeError):
        batch[1][0] = 0
    assert np.shares_memory(np.frombuffer(batch[1], np.uint8), np.frombuffer(batch.buffer, "u1"))


@pytest.mark.parametrize("index", [2, -3, 2**70])
def test_an_index_outside_is_an_index_error(index):
    with pytest.raises(IndexError):
        batch_of(b"one", b"two")[index]


@pytest.mark.parametrize("index", [slice(0, 1), 1.0, "0", True, None])
def test_an_index_is_an_int(index):
    with pytest.raises(TypeError):
        batch_of(b"one", b"two")[index]


def test_numpy_integers_are_indices():
    assert bytes(batch_of(b"one", b"two")[np.int64(-1)]) == b"two"


@pytest.mark.parametrize(
    "offsets", [[], [0], [1, 3], [0, 2], [0, 4], [0, 2, 1, 3], np.zeros((2, 2), np.uint64)], ids=str
)
def test_offsets_that_do_not_fit_the_data_are_refused(offsets):
    with pytest.raises((ValueError, TypeError)):
        iac.ContiguousRecordBatch(b"abc", offsets)


def test_an_empty_batch_is_possible(tmp_path):
    pack = iac.VariableRecordPack(write_encoded(tmp_path / "x.iac", [b"a"], "zstd"))
    for batch in (iac.ContiguousRecordBatch(b"", [0]), pack.read_many_contiguous([])):
        assert (len(batch), batch.offsets, batch.lengths, bytes(batch.buffer)) == (0, (0,), (), b"")
        assert batch.to_arrow().to_pylist() == []


# Arrow


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_becomes_arrow_without_a_copy(tmp_path, codec):
    objects = payloads_of(30)
    pack = iac.VariableRecordPack(write_encoded(tmp_path / "x.iac", objects, codec))
    batch = pack.read_many_contiguous(range(30))
    array = batch.to_arrow()
    assert array.type == pa.large_binary()
    assert array.to_pylist() == objects
    _, offsets, data = array.buffers()
    assert data.address == np.frombuffer(batch.buffer, np.uint8).ctypes.data
    assert offsets.address == np.frombuffer(batch.offsets_buffer, np.uint64).ctypes.data
    assert batch.to_arrow(pa.large_string()).to_pylist() == [obj.decode() for obj in objects]
    assert pa.array(batch).to_pylist() == objects


def test_missing_records_are_nulls_in_arrow(damaged):
    pack, objects = damaged
    array = pack.read_many_contiguous(range(20), on_error="null").to_arrow()
    array.validate(full=True)
    assert array.to_pylist() == [None if i in (3, 11) else obj for i, obj in enumerate(objects)]


# Memory


def test_a_batch_outlives_the_reader(tmp_path):
    payloads = [os.urandom(100_000) for _ in range(60)]
    reader = iac.PackReader(write_pack(tmp_path / "x.iac", payloads))
    batch = reader.read_payloads_contiguous(range(60))
    view, array = batch[7], batch.to_arrow()
    reader.close()
    os.unlink(tmp_path / "x.iac")
    del reader, batch
    gc.collect()
    # Memory that was given back would be used again by now.
    others = [np.full(6_000_000, i, np.uint8) for i in range(4)]
    assert bytes(view) == payloads[7]
    assert array.to_pylist() == payloads
    assert len(others) == 4


def test_results_do_not_share_memory_with_each_other(tmp_path):
    payloads = [bytes([i]) * 500_000 for i in range(12)]
    reader = iac.PackReader(write_pack(tmp_path / "x.iac", payloads))
    first = reader.read_payloads_contiguous(range(12))
    second = reader.read_payloads_contiguous(range(11, -1, -1))
    assert [bytes(record) for record in first] == payloads
    assert [bytes(record) for record in second] == payloads[::-1]


# Failures


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_first_failed_row_of_the_request_is_raised(damaged, workers):
    pack, _ = damaged
    for rows, row in [(range(20), 3), (range(19, -1, -1), 11), ([0, 11, 3], 11)]:
        with pytest.raises(iac.ChecksumError, match=f"damaged.iac: row {row}: ") as raised:
            pack.read_many_contiguous(rows, workers=workers)
        assert raised.value.row == row
        assert raised.value.pack == str(pack.reader.package_path)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_null_keeps_the_row_and_says_why(damaged, workers):
    pack, objects = damaged
    rows, report = [5, 3, 11, 3, 0, 99], []
    batch = pack.read_many_contiguous(rows, workers=workers, on_error="null", report=report)
    assert batch.validity.tolist() == [True, False, False, False, True, False]
    assert [None if r is None else bytes(r) for r in batch] == [
        objects[5],
        *[None] * 3,
        objects[0],
        None,
    ]
    assert batch.positions is None
    assert [(f.position, f.row) for f in batch.errors] == [(1, 3), (2, 11), (3, 3), (5, 99)]
    assert report == list(batch.errors)
    assert isinstance(batch.errors[0].error, iac.ChecksumError)
    assert isinstance(batch.errors[3].error, iac.PackIndexError)
    assert {failure.pack for failure in report} == {str(pack.reader.package_path)}
    assert "4 failed" in repr(batch)


def test_skip_leaves_the_row_out(damaged):
    pack, objects = damaged
    batch = pack.read_many_contiguous([5, 3, 99, 0], on_error="skip")
    assert [bytes(record) for record in batch] == [objects[5], objects[0]]
    assert batch.positions.tolist() == [0, 3]
    assert batch.validity.tolist() == [True, True]
    assert [failure.position for failure in batch.errors] == [1, 2]
    assert pack.read_many([5, 3, 0], on_error="skip") == [objects[5], objects[0]]


def test_a_batch_of_only_failures_is_possible(damaged):
    pack, _ = damaged
    batch = pack.read_many_contiguous([3, 11, 99], on_error="null")
    assert (batch.validity.any(), bytes(batch.buffer)) == (np.False_, b"")
    assert len(pack.read_many_contiguous([3, 11, 99], on_error="skip")) == 0


@pytest.mark.parametrize("on_error", ["raise", "null", "skip"])
def test_without_failures_every_rule_gives_the_same(damaged, on_error):
    pack, objects = damaged
    report = []
    batch = pack.read_many_contiguous([1, 0, 1], on_error=on_error, report=report)
    assert [bytes(record) for record in batch] == [objects[1], objects[0], objects[1]]
    assert (batch.errors, report, batch.validity.all()) == ((), [], np.True_)


def test_stored_records_follow_the_same_rules(damaged):
    pack, _ = damaged
    reader = pack.reader
    batch = reader.read_payloads_contiguous([0, 3, 1], on_error="null")
    assert batch.validity.tolist() == [True, False, True]
    assert bytes(batch[2]) == reader.read_payload(1)
    batch = reader.read_payloads_contiguous([0, 3, 1], on_error="skip")
    assert [bytes(r) for r in batch] == [reader.read_payload(0), reader.read_payload(1)]
    with pytest.raises(iac.ChecksumError, match="row 3"):
        reader.read_payloads([0, 3])


@pytest.mark.parametrize("on_error", ["ignore", "", None, "RAISE"])
def test_another_rule_is_an_error(damaged, on_error):
    with pytest.raises((ValueError, TypeError)):
        damaged[0].read_many_contiguous([0], on_error=on_error)


def test_a_report_is_added_to(damaged):
    pack, _ = damaged
    report = []
    pack.read_many([3], on_error="null", report=report)
    pack.read_many([11], on_error="skip", report=report)
    assert [failure.row for failure in report] == [3, 11]


def test_records_that_were_not_checked_are_counted(tmp_path, damaged):
    pack, _ = damaged
    assert pack.read_many_contiguous([0, 1]).unchecked == 0
    assert pack.reader.read_payloads_contiguous([0, 1], verify=False).unchecked == 2


def test_batches_pickle_with_validity_and_errors(damaged):
    pack, objects = damaged
    for on_error in ("null", "skip"):
        batch = pack.read_many_contiguous([0, 3, 1], on_error=on_error)
        again = pickle.loads(pickle.dumps(batch))
        assert again.offsets == batch.offsets
        assert bytes(again.buffer) == bytes(batch.buffer)
        assert again.validity.tolist() == batch.validity.tolist()
        assert bytes(again[-1]) == objects[1]
        assert [f.row for f in again.errors] == [3]
        assert str(again.errors[0].error) == str(batch.errors[0].error)
        assert again.errors[0].error.pack == batch.errors[0].pack
        if on_error == "skip":
            assert again.positions.tolist() == [0, 2]


@pytest.mark.parametrize("type", [pa.string(), pa.int64(), pa.string_view()])
def test_an_arrow_type_of_another_layout_is_refused(type):
    with pytest.raises(TypeError, match="expected large_binary or large_string"):
        iac.ContiguousRecordBatch(b"ab", [0, 1, 2]).to_arrow(type)
