"""References that cannot be followed, and packs that may not be opened."""

import os

import pyarrow as pa
import pytest
from packs import (
    assemble,
    flip_payload,
    ipc_stream,
    item_table,
    slide_table,
    write_pack,
)
from references import ROWS, references, table_of

import iac_query as iac

# Failures


@pytest.mark.parametrize("row", [ROWS, -1, 2**62, -(2**63)])
def test_a_row_outside_is_an_error_and_never_counted_from_the_end(packs, row):
    path = next(iter(packs))
    with pytest.raises(iac.PackIndexError, match="out of range"):
        iac.decode(table_of(references([path], [row])))
    decoded = iac.decode(table_of(references([path, path], [row, 0])), on_error="null")
    assert decoded["payload"].is_valid().to_pylist() == [False, True]


def test_an_unsigned_row_beyond_63_bits_is_an_error_of_its_row(packs):
    path, objects = next(iter(packs.items()))
    record = references([path] * 2, [2**64 - 1, 1], types=(pa.string(), pa.uint64()))
    with pytest.raises(iac.PackIndexError):
        iac.decode(table_of(record))
    decoded = iac.decode(table_of(record), on_error="null")
    assert decoded["payload"].to_pylist() == [None, objects[1]]


def test_every_failure_is_reported_with_pack_row_and_reason(packs, tmp_path):
    (a, first), (b, _), (c, third) = packs.items()
    flip_payload(b, 3)
    missing = str(tmp_path / "missing.iac")
    broken = tmp_path / "broken.iac"
    broken.write_bytes(b"no pack")
    paths = [a, missing, b, str(broken), c, a, None]
    rows = [1, 2, 3, 4, 5, 99, 0]
    table = table_of(references(paths, rows), n=range(7))

    report = []
    decoded = iac.decode(table, on_error="null", report=report)
    assert decoded.column_names == ["n", "record", "payload", "payload_error"]
    assert decoded["payload"].to_pylist() == [first[1], None, None, None, third[5], None, None]
    reasons = decoded["payload_error"].to_pylist()
    assert [reason is None for reason in reasons] == [True, False, False, False, True, False, True]
    assert [(f.position, f.pack, f.row, type(f.error)) for f in report] == [
        (1, missing, 2, iac.PackNotFoundError),
        (2, b, 3, iac.ChecksumError),
        (3, str(broken), 4, iac.PackError),
        (5, a, 99, iac.PackIndexError),
    ]
    for failure, reason in zip(report, [r for r in reasons if r], strict=True):
        assert failure.pack in reason == str(failure.error)

    report = []
    decoded = iac.decode(table, on_error="skip", report=report)
    assert decoded["n"].to_pylist() == [0, 4, 6]
    assert decoded["payload"].to_pylist() == [first[1], third[5], None]
    assert len(report) == 4


def test_a_missing_pack_is_raised(tmp_path):
    with pytest.raises(iac.PackNotFoundError, match=r"missing\.iac"):
        iac.decode(table_of(references([str(tmp_path / "missing.iac")], [0])))


def test_an_index_that_cannot_be_read_fails_its_packs_rows_only(packs, tmp_path):
    good, objects = next(iter(packs.items()))
    bad = tmp_path / "bad.iac"
    columns = {"offset": pa.array([0] * 3, pa.uint64()), "length": pa.array([0] * 3, pa.uint32())}
    stream = bytearray(ipc_stream(pa.table(columns), compression="zstd"))
    magic = stream.find(b"\x28\xb5\x2f\xfd")
    stream[magic : magic + 4] = b"\0\0\0\0"
    assemble(bad, bytes(stream), rows=(1, 3))
    table = table_of(references([str(bad), good, str(bad)], [0, 1, 2]))
    with pytest.raises(iac.PackError, match=r"bad\.iac"):
        iac.decode(table)
    report = []
    decoded = iac.decode(table, on_error="null", report=report)
    assert decoded["payload"].to_pylist() == [None, objects[1], None]
    assert [failure.row for failure in report] == [0, 2]


def test_damage_is_found_unless_told_not_to_verify(packs):
    path = next(iter(packs))
    raw = str(list(packs)[-1])
    flip_payload(raw, 0)
    table = table_of(references([raw, path], [0, 0]))
    with pytest.raises(iac.ChecksumError, match="row 0"):
        iac.decode(table)
    assert iac.decode(table, verify=False)["payload"][0].as_py()[1:] == packs[raw][0][1:]


@pytest.mark.parametrize(
    "options",
    [{"on_error": "ignore"}, {"on_error": None}, {"workers": 0}, {"workers": -1}],
    ids=str,
)
def test_wrong_options_are_value_errors(packs, options):
    with pytest.raises(ValueError):
        iac.decode(table_of(references([next(iter(packs))], [0])), **options)
    with pytest.raises(TypeError):
        iac.decode(table_of(references([next(iter(packs))], [0])), workers=True)


def test_a_pack_of_a_registered_codec_is_left_to_its_reader(tmp_path):
    class Reverse(iac.Codec):
        name = "reverse"

        def encode(self, obj):
            return obj[::-1]

        def decode(self, payload):
            return payload[::-1]

    iac.Codec.register("reverse", Reverse)
    try:
        iac.VariableRecordPack.build(
            tmp_path / "x.iac",
            payload_type="t",
            slide_table=slide_table(),
            index_table=item_table(1),
            objects=[b"abc"],
            codec=Reverse(),
        )
        table = table_of(references([str(tmp_path / "x.iac")], [0]))
        with pytest.raises(iac.CodecError, match="as_='stored'"):
            iac.decode(table)
        assert iac.decode(table, as_="stored")["payload"].to_pylist() == [b"cba"]
    finally:
        del iac.Codec._registered["reverse"]


# What may be opened


def test_only_the_packs_allowed_are_opened(packs, tmp_path):
    path, objects = next(iter(packs.items()))
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside-not").mkdir()
    inside = str(write_pack(tmp_path / "inside" / "x.iac", [b"inside"]))
    beside = str(write_pack(tmp_path / "inside-not" / "x.iac", [b"beside"]))
    root = tmp_path / "inside"
    for allowed in (root, str(root), [root], [os.fsencode(root)], f"{root}/", [inside], inside):
        decoded = iac.decode(
            table_of(references([inside, path, beside], [0, 0, 0])), packs=allowed, on_error="null"
        )
        assert decoded["payload"].to_pylist() == [b"inside", None, None]
        assert "not among the packs that were allowed" in decoded["payload_error"][1].as_py()
    both = iac.decode(table_of(references([inside, path], [0, 0])), packs=[root, path])
    assert both["payload"].to_pylist() == [b"inside", objects[0]]
    with pytest.raises(iac.PackError, match="not among"):
        iac.decode(table_of(references([path], [0])), packs=[])


def test_links_and_dots_do_not_lead_out_of_what_is_allowed(packs, tmp_path):
    outside = next(iter(packs))
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.iac").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    write_pack(root / "real.iac", [b"real"])
    (tmp_path / "to-root.iac").symlink_to(root / "real.iac")
    name = os.path.basename(outside)
    for path in (root / "link.iac", f"{root}/../{name}", root / "folder" / name):
        with pytest.raises(iac.PackError, match="not among") as raised:
            iac.decode(table_of(references([str(path)], [0])), packs=[root])
        assert raised.value.pack == str(path)
    # A link from elsewhere to what is allowed is fine, and so is a root that is a link.
    for path in (tmp_path / "to-root.iac", f"{root}/x/../real.iac", f"{root}/./real.iac"):
        os.makedirs(root / "x", exist_ok=True)
        table = table_of(references([str(path)], [0]))
        assert iac.decode(table, packs=[root])["payload"].to_pylist() == [b"real"]
    (tmp_path / "root-link").symlink_to(root)
    table = table_of(references([str(tmp_path / "root-link" / "real.iac")], [0]))
    assert iac.decode(table, packs=[tmp_path / "root-link"])["payload"].to_pylist() == [b"real"]


@pytest.mark.parametrize("url", ["https://example.org/x.iac", "s3://bucket/x.iac", "://"])
def test_urls_are_refused(url):
    with pytest.raises(iac.PackError, match="is not a local file"):
        iac.decode(table_of(references([url], [0])))
    with pytest.raises(iac.PackError):
        iac.decode(table_of(references([url], [0])), packs=["/"])


@pytest.mark.parametrize("path", ["", "/", "/etc/passwd", "/dev/zero", "\0", "x\0y", "a" * 5000])
@pytest.mark.parametrize("packs", [None, ["/"]], ids=["any", "listed"])
def test_odd_paths_are_errors_of_their_rows(path, packs):
    table = table_of(references([path, None], [0, 0]))
    with pytest.raises((iac.PackError, OSError)):
        iac.decode(table, packs=packs)
    decoded = iac.decode(table, packs=packs, on_error="null")
    assert decoded["payload"].to_pylist() == [None, None]
    assert decoded["payload_error"][0].as_py()


def test_a_path_with_a_nul_does_not_open_the_file_before_it(packs):
    path = next(iter(packs))
    with pytest.raises((iac.PackError, OSError)):
        iac.decode(table_of(references([f"{path}\0.txt"], [0])))


@pytest.mark.parametrize("row", [-1, -(2**63), 10])
def test_rows_that_are_none_name_row_and_absolute_path(pack, monkeypatch, row):
    monkeypatch.chdir(pack.parent)
    table = table_of(references([pack.name], [row]))
    with pytest.raises(iac.PackIndexError, match="out of range") as error:
        iac.decode(table)
    assert str(error.value).startswith(f"{pack}: row {row}: ")
    assert (error.value.pack, error.value.row) == (str(pack), row)
    decoded = iac.decode(table, on_error="null")
    assert decoded["payload_error"].to_pylist() == [str(error.value)]
