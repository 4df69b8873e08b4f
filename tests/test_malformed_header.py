"""Files whose size or header is not what the format says: an error that names what is wrong, or
one of the deviations that every reader accepts."""

import json
import re

import pytest
from packs import (
    HEADER_BYTES,
    fixed_header,
    payloads_of,
    reads,
    refuses,
    segments_of,
)

import iac_query as iac

pytestmark = pytest.mark.asan

LAYOUT_FIELDS = [
    "header_bytes",
    "slide_table_offset",
    "slide_table_length",
    "index_table_offset",
    "index_table_length",
    "data_offset",
    "data_length",
    "num_slides",
    "num_records",
]


def with_header(pack, change=None, text=None, **binary):
    """Rewrites the header of a pack: its fields by ``change``, or its whole JSON text."""
    raw = pack.read_bytes()
    fields = segments_of(pack)[0]
    if change is not None:
        change(fields)
    text = json.dumps(fields).encode() if text is None else text
    pack.write_bytes(fixed_header(text, **binary) + raw[HEADER_BYTES:])
    return pack


def set_field(name, value):
    return lambda fields: fields.update({name: value})


# Size of the file


@pytest.mark.parametrize("size", [0, 1, 10, 65535])
def test_a_file_shorter_than_a_header_is_refused(tmp_path, size):
    (tmp_path / "x.iac").write_bytes(b"IATROC\0\2".ljust(size, b"\0")[:size])
    refuses(tmp_path / "x.iac", f"file of {size} bytes is too small")


def test_a_header_alone_is_refused(pack):
    pack.write_bytes(pack.read_bytes()[:HEADER_BYTES])
    refuses(pack, r"slide_table segment, .* outside the file")


def test_a_file_without_its_last_byte_is_refused(pack):
    pack.write_bytes(pack.read_bytes()[:-1])
    refuses(pack, r"data segment, .* outside the file")


@pytest.mark.parametrize("extra", [1, 4096])
def test_bytes_behind_the_data_are_accepted(pack, extra):
    pack.write_bytes(pack.read_bytes() + b"\xff" * extra)
    reads(pack)


# The fixed header


@pytest.mark.parametrize(
    ("magic", "message"),
    [
        (b"IATROC\0\1", "format version 1 of the pack is not supported"),
        (b"IATROC\0\3", "format version 3 of the pack is not supported"),
        (b"IATROC\1\2", "bad magic"),
        (b"PARQUET1", "bad magic"),
        (b"\0" * 8, "bad magic"),
        (b"iatroc\0\2", "bad magic"),
    ],
)
def test_another_magic_is_refused(pack, magic, message):
    refuses(with_header(pack, magic=magic), message)


@pytest.mark.parametrize("version", [0, 1, 3, 0x02000000, 2**32 - 1])
def test_another_binary_version_is_refused(pack, version):
    refuses(with_header(pack, version=version), f"header version is {version}, expected 2")


@pytest.mark.parametrize(
    "change",
    [
        *[set_field("version", value) for value in (1, 3, "2", None, 2.0)],
        lambda fields: fields.pop("version"),
        *[set_field("format", value) for value in ("Other", 5, None)],
        lambda fields: fields.pop("format"),
    ],
)
def test_version_and_format_in_the_json_are_not_looked_at(pack, change):
    reads(with_header(pack, change))


@pytest.mark.parametrize("length", [65521, 65536, 2**31, 2**32 - 1])
def test_an_impossible_json_length_is_refused(pack, length):
    refuses(with_header(pack, length=length), f"header JSON length is {length}")


def test_a_json_length_that_is_off_is_refused(pack):
    raw, text = pack.read_bytes(), json.dumps(segments_of(pack)[0]).encode()
    for length in (0, len(text) - 1, len(text) + 1, 65520):
        pack.write_bytes(fixed_header(text, length=length) + raw[HEADER_BYTES:])
        refuses(pack, "header JSON")


def test_padding_is_not_looked_at(pack):
    reads(with_header(pack, padding=b"\xff"))


def test_white_space_and_escapes_in_the_json_are_accepted(pack):
    fields = segments_of(pack)[0]
    for text in (
        b" \n\t\r" + json.dumps(fields).encode() + b"  \r\n",
        json.dumps(fields, separators=(",", ":")).encode(),
        json.dumps(fields, indent=7).encode(),
        json.dumps(fields).replace("raw_bytes", "raw\\u005fbytes").encode(),
    ):
        reads(with_header(pack, text=text))


def test_a_json_that_fills_the_header_is_accepted(pack):
    text = json.dumps(segments_of(pack)[0]).encode().ljust(65520)
    reads(with_header(pack, text=text))


@pytest.mark.parametrize(
    ("mangle", "message"),
    [
        (lambda text: text[:-1], "invalid"),
        (lambda text: text + b"x", "invalid"),
        (lambda text: b"[" + text + b"]", "not an object"),
        (lambda text: b"5", "not an object"),
        (lambda text: b"null", "not an object"),
        (lambda text: b"   ", "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"raw\xffbytes"), "not UTF-8"),
        (lambda text: text.replace(b"raw_bytes", b"raw\xed\xa0\x80"), "not UTF-8"),
        (lambda text: b"\xef\xbb\xbf" + text, "byte order mark"),
        (lambda text: text.replace(b'"raw_bytes"', b"NaN"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"Infinity"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"1e999"), "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"\\ud800"), "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"raw\nbytes"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"'raw_bytes'"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"[" * 200 + b"]" * 200), "nested deeper"),
        (lambda text: text.replace(b'"raw_bytes"', b"[" * 30000), "nested deeper"),
        (lambda text: text.replace(b'"raw_bytes"', b"01"), "invalid"),
        (lambda text: text[:-1] + b",}", "invalid"),
        (lambda text: text + b"\0", "NUL"),
        (lambda text: text[:-1] + b"/* note */}", "invalid"),
    ],
)
def test_what_is_not_a_json_object_is_refused(pack, mangle, message):
    text = json.dumps(segments_of(pack)[0]).encode()
    refuses(with_header(pack, text=mangle(text)), f"header JSON.*{message}")


@pytest.mark.parametrize("name", LAYOUT_FIELDS)
def test_a_missing_layout_field_is_refused(pack, name):
    refuses(with_header(pack, lambda fields: fields.pop(name)), f"header field {name} is missing")


@pytest.mark.parametrize("value", ["3", 3.0, True, None, -1, [3], {"a": 1}, -(2**63)], ids=repr)
@pytest.mark.parametrize("name", LAYOUT_FIELDS)
def test_a_layout_field_that_is_no_unsigned_integer_is_refused(pack, name, value):
    # Also the counts, which some readers take as text, float or bool.
    expected = f"header field {name} is {re.escape(json.dumps(value))[:5]}"
    refuses(with_header(pack, set_field(name, value)), expected)


@pytest.mark.parametrize("name", LAYOUT_FIELDS)
@pytest.mark.parametrize("change", [-1, 1, 8, 2**32, 2**63])
def test_a_layout_field_that_is_off_is_refused(pack, name, change):
    value = (segments_of(pack)[0][name] + change) % 2**64
    if (name, change) != ("data_length", -1):
        refuses(with_header(pack, set_field(name, value)))


def test_a_data_segment_that_is_too_short_spoils_the_rows_behind_its_end(pack):
    length = segments_of(pack)[0]["data_length"]
    with iac.PackReader(with_header(pack, set_field("data_length", length - 1))) as reader:
        assert reader.read_payloads(range(9)) == payloads_of(10)[:9]
        with pytest.raises(iac.PackError, match="row 9: payload span outside"):
            reader.read_payload(9)


def test_a_layout_field_beyond_64_bits_is_refused(pack):
    refuses(with_header(pack, set_field("data_length", 2**64)), "data_length")


def test_lengths_whose_sum_overflows_are_refused(pack):
    def change(fields):
        fields["slide_table_length"] = 2**64 - HEADER_BYTES
        fields["index_table_offset"] = 0

    refuses(with_header(pack, change), "slide_table segment")


def test_of_a_key_that_is_there_twice_the_last_counts(pack):
    text = json.dumps(segments_of(pack)[0]).encode()
    reads(with_header(pack, text=b'{"num_records": 77, ' + text[1:]))
    refuses(with_header(pack, text=text[:-1] + b', "num_records": 77}'), "the header says 77")


@pytest.mark.parametrize("name", ["num_records", "num_slides"])
@pytest.mark.parametrize("change", [-1, 1, 2**40])
def test_counts_that_differ_from_the_tables_are_refused(pack, name, change):
    count = segments_of(pack)[0][name] + change
    table = {"num_records": "index", "num_slides": "slide"}[name]
    expected = f"{table} table: has .* rows, the header says {count}"
    refuses(with_header(pack, set_field(name, count)), expected)
