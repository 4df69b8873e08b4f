"""Payloads that are found whole by their structure: what is refused so, and what only decoding
refuses."""

import io

import jpeg2000
import jpegs
import numpy as np
import pytest
from jpegs import gradient
from PIL import Image

from iac_query import Codec, CodecError

pytestmark = pytest.mark.asan

IMAGE = gradient(33, 40, 3)
JPEG, JPEG2000 = Codec.create("jpeg"), Codec.create("jpeg2000")


def pillow(kind: str, **options) -> bytes:
    out = io.BytesIO()
    Image.fromarray(IMAGE).save(out, kind, **options)
    return out.getvalue()


def tile_parts(stream: bytes, *pieces: bytes) -> bytes:
    """A codestream of one tile in another number of parts."""
    header = stream[: stream.index(b"\xff\x90")]
    parts = [jpeg2000.tile_part(0, p, i, len(pieces)) for i, p in enumerate(pieces)]
    return header + b"".join(parts) + b"\xff\xd9"


def split_tile(stream: bytes) -> bytes:
    body = jpeg2000.body(stream)
    return tile_parts(stream, body[:100], body[100:900], body[900:])


JPEGS = {
    "own": JPEG.encode(IMAGE),
    "own_progressive": Codec.create("jpeg", progressive=True).encode(IMAGE),
    "lossless": Codec.create("jpeg", lossless=True).encode(IMAGE),
    "pillow_restart": pillow("JPEG", restart_marker_blocks=1, quality=50),
    "pillow_rows": pillow("JPEG", restart_marker_rows=1, subsampling=0),
    "pillow_progressive": pillow("JPEG", progressive=True, restart_marker_blocks=2),
    **{path.stem: path.read_bytes() for path in jpegs.STREAMS},
}
CODESTREAMS = {
    "own": JPEG2000.encode(IMAGE),
    "lossy": Codec.create("jpeg2000", lossless=False).encode(IMAGE),
    "ht": jpeg2000.HT.encode(IMAGE),
    "imagecodecs": jpeg2000.foreign(IMAGE, mct=True),
    "lengths": pillow("JPEG2000", no_jp2=True, plt=True),
    "tiles": pillow("JPEG2000", no_jp2=True, tile_size=(16, 16), num_resolutions=2),
    "layers": pillow("JPEG2000", no_jp2=True, irreversible=True, quality_layers=[20, 5]),
    "jp2": pillow("JPEG2000"),
    "parts": split_tile(jpeg2000.foreign(IMAGE)),
}
PAYLOADS = [
    *(pytest.param(JPEG, payload, id=f"jpeg-{name}") for name, payload in JPEGS.items()),
    *(pytest.param(JPEG2000, payload, id=f"j2k-{name}") for name, payload in CODESTREAMS.items()),
]


def refusal(function, payload) -> str | None:
    """Why a payload is refused; None where it is not."""
    try:
        function(payload)
    except CodecError as error:
        return str(error)
    return None


def is_whole(codec: Codec, payload: bytes) -> bool:
    return refusal(lambda p: codec.check_whole([p]), payload) is None


def structure_of(stream: bytes) -> list[int]:
    """Where a JPEG stream's bytes stand that are no entropy-coded data."""
    places, at = [0, 1], 2
    while stream[at + 1] != 0xD9:
        end = at + 2 + int.from_bytes(stream[at + 2 : at + 4])
        places += range(at, end)
        if stream[at + 1] == 0xDA:
            while stream[end] != 0xFF or stream[end + 1] in (0, *range(0xD0, 0xD8)):
                end += 1
        at = end
    return [*places, at, at + 1]


@pytest.mark.parametrize(("codec", "payload"), PAYLOADS)
def test_whole_payloads_have_the_shape_that_they_decode_to(codec, payload):
    image = codec.decode(payload)
    padded = [payload + end for end in (b"", b"\0", b"\xff\xff", bytes(37))]
    assert codec.check_whole(padded) == [(image.shape, image.dtype)] * 4


@pytest.mark.parametrize(("codec", "payload"), PAYLOADS)
def test_truncations_anywhere_are_refused(codec, payload):
    assert not any(is_whole(codec, payload[:size]) for size in range(len(payload)))


@pytest.mark.parametrize("payload", JPEGS.values(), ids=JPEGS)
def test_segments_of_jpeg_that_are_missing_or_cut(payload):
    """At each of a stream's segments, as decoding has it but for what that finds in samples."""
    for marker, part in jpegs.split(payload)[:-1]:
        without = payload.replace(part, b"", 1)
        found = refusal(JPEG.decode, without)
        assert is_whole(JPEG, without) == (found is None or "Corrupt JPEG data" in found)
        assert marker >= 0xE0 or marker in (0xC4, 0xCC, 0xDD) or not is_whole(JPEG, without)
        at = payload.index(part)
        for size in range(len(part)):
            assert not is_whole(JPEG, payload[: at + size] + b"\xff\xd9")


@pytest.mark.parametrize("progressive", [False, True])
def test_tables_kept_apart(progressive):
    codec = Codec.create("jpeg", progressive=progressive, subsampling="444")
    payload = codec.encode(IMAGE)
    tables = jpegs.tables_of(payload)
    short = jpegs.without(payload, 0xDB, 0xC4)
    with_tables = Codec.create("jpeg", tables_base64=tables)
    assert with_tables.check_whole([short])[0][0] == IMAGE.shape
    assert not any(is_whole(with_tables, short[:size]) for size in range(len(short)))
    assert refusal(lambda p: JPEG.check_whole([p]), short).endswith("table 0 was not defined")
    for table in (0xDB, 0xC4):
        partial = Codec.create("jpeg", tables_base64=jpegs.tables_of(jpegs.without(payload, table)))
        # libjpeg-turbo knows the usual Huffman tables of sequential streams.
        known = table == 0xC4 and not progressive
        assert is_whole(partial, short) == known == (refusal(partial.decode, short) is None)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (JPEGS["own"] + b"\0junk", "bytes behind its end"),
        (JPEGS["own"] * 2, "bytes behind its end"),
        (CODESTREAMS["own"] + CODESTREAMS["own"], "bytes behind its end"),
        (b"", "payload"),
        (jpegs.join([(0xDB, b"\xff\xdb\0\3\0")]) + JPEGS["own"][2:], "quantization table is dam"),
        (jpegs.with_front(JPEGS["own"], b"\xff\xdd\0\3\0"), "restart interval is damaged"),
        (
            jpegs.with_front(JPEGS["own"], jpegs.segment(0xC4, b"\0\2" + bytes(15) + b"\0\1")),
            "Huffman table is damaged",  # both codes of one bit
        ),
    ],
)
def test_damage_is_named(payload, message):
    codec = JPEG2000 if payload[:2] == b"\xff\x4f" else JPEG
    assert message in refusal(lambda p: codec.check_whole([p]), payload)


@pytest.mark.parametrize(("codec", "payload"), PAYLOADS)
def test_what_decodes_is_never_refused(codec, payload):
    """Mutations of single bytes, all over the headers and here and there in the samples."""
    random = np.random.default_rng(len(payload))
    start = payload.index(b"\xff\x93") if codec is JPEG2000 else 0
    places = [*range(start)] or structure_of(payload)
    places = [*random.choice(places, 120), *random.integers(0, len(payload) - 2, 80)]
    refused = laxer = 0
    for at in places:
        mutated = bytearray(payload)
        mutated[at] ^= int(random.choice([1, 2, 16, 128, 255]))
        by_structure = not is_whole(codec, bytes(mutated))
        by_decoding = refusal(lambda p: codec.decode(p, max_samples=1 << 20), bytes(mutated))
        assert by_decoding or not by_structure
        refused += by_structure
        laxer += bool(by_decoding) and not by_structure
    assert refused > 0
    assert laxer > 0  # damage of samples is for decoding to find


@pytest.mark.parametrize("payload", [JPEGS["own"], JPEGS["pillow_restart"], JPEGS["alone"]])
def test_headers_of_baseline_are_checked_as_decoding_does(payload):
    """Where structure is content, decoding complains of the samples alone, or of versions."""
    samples = ("Corrupt JPEG data", "type 0xf", "JFIF revision", "is larger than")
    for at in structure_of(payload):
        for mask in (1, 0x10, 0x80):
            mutated = payload[:at] + bytes([payload[at] ^ mask]) + payload[at + 1 :]
            if is_whole(JPEG, mutated):
                reason = refusal(lambda p: JPEG.decode(p, max_samples=1 << 22), mutated)
                assert reason is None or any(word in reason for word in samples)


def test_the_first_payload_that_is_not_whole_is_named():
    payloads = [JPEGS["own"]] * 40
    payloads[17] = payloads[17][:-1]
    payloads[30] = b"junk"
    for workers in (1, 2, None):
        with pytest.raises(CodecError, match="row 17: jpeg: payload is cut") as raised:
            JPEG.check_whole(payloads, workers)
        assert raised.value.row == 17
    assert JPEG.check_whole(payloads[:17], 2) == [(IMAGE.shape, np.dtype(np.uint8))] * 17
    assert JPEG.check_whole([]) == []
    with pytest.raises(TypeError):
        JPEG.check_whole(["text"])


def test_other_codecs_read_the_start():
    for name in ("jxl", "jpegls"):
        codec = Codec.create(name)
        payload = codec.encode(IMAGE)
        assert codec.check_whole([payload])[0] == codec.shape_and_dtype(payload)


MIB = 1 << 20


@pytest.mark.parametrize(
    "filling",
    [
        b"\xff" * 16 * MIB,
        b"\xff\x00" * 8 * MIB,
        b"\xff\xd0" * 8 * MIB,
        b"\xff\xfe\x00\x02" * 4 * MIB,
        b"\xff\xc4\x00\x02" * 4 * MIB,
        b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" * MIB,
    ],
    ids=["fill", "stuffed", "restarts", "comments", "tables", "scans"],
)
def test_large_payloads_take_time_as_they_are_long(filling):
    """Any walk that went back would not end."""
    at = JPEGS["own"].index(b"\xff\xda")
    for place in (at, len(JPEGS["own"]) - 2):
        payload = JPEGS["own"][:place] + filling + JPEGS["own"][place:]
        is_whole(JPEG, payload)
        assert not is_whole(JPEG, payload[:-1])


def test_many_tile_parts_take_time_as_they_are_many():
    stream = CODESTREAMS["imagecodecs"]
    empty = [b""] * 254
    assert is_whole(JPEG2000, tile_parts(stream, jpeg2000.body(stream), *empty))
    # Parts are counted in a byte.
    part = jpeg2000.tile_part(0, b"")
    header = stream[: stream.index(b"\xff\x90")]
    assert not is_whole(JPEG2000, header + part * MIB + b"\xff\xd9")
