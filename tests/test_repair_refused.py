"""Repair: what it refuses leaves nothing behind."""

import os

import pyarrow as pa
import pytest
from damaged_packs import changed, errors_of, features, refused, tiles
from packs import (
    HEADER_BYTES,
    assemble,
    flip_payload,
    layout_index,
    payloads_of,
    replaced,
    segments_of,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan


def test_what_rows_do_not_mend_is_refused(tmp_path):
    path = changed(tiles(tmp_path / "x.iac"), index=replaced("tile_id", 5, "tile-é-1"))
    refused(path, "x.iac: cannot be repaired: row 5: tile_id is that of row 1 as well")
    flip_payload(path, 5)
    assert iac.repair(path, tmp_path / "out.iac").dropped == 1  # now one of them is damaged
    path = changed(tiles(tmp_path / "x.iac"), index=lambda table: table.drop_columns(["flags"]))
    refused(path, "cannot be repaired: the index table has no column 'flags'")
    path = features(tmp_path / "x.iac")
    refused(changed(path, data=segments_of(path)[3] + b"more"), "the data segment has")
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + 3])
    refused(path, "outside the file|ends")


def test_a_type_that_no_library_knows_is_reported_and_refused(tmp_path):
    index = layout_index([0], [3], price=pa.array([1], pa.decimal128(5, 0)))
    path = assemble(tmp_path / "x.iac", index, b"abc")
    raw = path.read_bytes()
    # The precision of the type is one of them.
    fives = [at for at in range(HEADER_BYTES, len(raw)) if raw[at:].startswith(b"\5\0\0\0")]
    for at in fives:
        path.write_bytes(raw[:at] + b"\0" + raw[at + 1 :])
        assert [(row, check) for row, check, _ in errors_of(path)] == [(None, "container")]
        refused(path, "x.iac: ")
    assert fives


def test_a_pack_that_would_be_empty_is_refused(tmp_path):
    path = write_pack(tmp_path / "x.iac", payloads_of(2))
    flip_payload(path, 0)
    flip_payload(path, 1)
    refused(path, "no record is whole")
    path = write_pack(tmp_path / "y.iac", [])
    assert iac.repair(path, tmp_path / "out.iac").kept == 0


def test_arguments(tmp_path, pack):
    out = tmp_path / "out.iac"
    with pytest.raises(ValueError, match="only local packs"):
        iac.repair("s3://bucket/x.iac", out)
    with pytest.raises(iac.PackNotFoundError):
        iac.repair(tmp_path / "no.iac", out)
    with pytest.raises(ValueError, match="out is the pack itself"):
        iac.repair(pack, pack, overwrite=True)
    os.symlink(pack, tmp_path / "link.iac")
    with pytest.raises(ValueError, match="out is the pack itself"):
        iac.repair(pack, tmp_path / "link.iac", overwrite=True)
    with pytest.raises(ValueError, match="workers is 0"):
        iac.repair(pack, out, workers=0)
    assert not out.exists()
    out.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        iac.repair(pack, out)
    assert out.read_bytes() == b"old"
    assert str(iac.repair(pack, out, overwrite=True)) == f"{out}: 10 records, 0 dropped"
    assert out.read_bytes() == pack.read_bytes()
