"""Validation and repair of packs with random damage: reported, and repaired or refused."""

import json

import pytest
from damaged_packs import SCHEMAS, errors_of
from hypothesis import given
from hypothesis import strategies as st
from imaged_packs import DICOM, SLIDES
from packs import DATA, HEADER_BYTES

import iac_query as iac

pytestmark = pytest.mark.asan


@pytest.fixture(scope="module")
def whole_packs(tmp_path_factory, imaged_bytes) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    packs = {name: build(folder / "x.iac").read_bytes() for name, build in SCHEMAS.items()}
    packs |= imaged_bytes
    packs["many types"] = (DATA / "index_many_types.iac").read_bytes()
    return packs


@given(data=st.data())
def test_flipped_bytes_are_reported_and_repaired_or_refused(whole_packs, tmp_path, data):
    raw = bytearray(whole_packs[data.draw(st.sampled_from(sorted(whole_packs)))])
    length = int.from_bytes(raw[8:12], "little")
    places = st.one_of(st.integers(0, 16 + length), st.integers(HEADER_BYTES, len(raw) - 1))
    for at in data.draw(st.lists(places, min_size=1, max_size=4)):
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    path, out = tmp_path / "x.iac", tmp_path / "out.iac"
    path.write_bytes(raw)
    found = errors_of(path)
    try:
        report = iac.repair(path, out, overwrite=True)
    except ValueError:
        return
    assert {row for row, *_ in found} == {
        f.row for f in report.source.findings if f.severity == "error"
    }
    assert report.kept > 0
    assert errors_of(out) == []


@given(
    fields=st.dictionaries(
        st.sampled_from(
            [
                "payload_type",
                "codec",
                "codec_params",
                "record_codecs",
                "tile_width",
                "stride_x",
                "coordinate_mode",
                "tile_shape",
                "tile_dtype",
                "teacher",
                "dtype",
                "feature_dim",
                "feature_record_bytes",
                "text_schema_version",
                "metadata_length",
                "dicom_schema_version",
                "wsi_schema_version",
                "width",
                "stored_tile_count",
                "background_rgb",
                "levels",
                "raster_codec_params",
                "raster_profile_selection",
            ]
        ),
        st.recursive(
            st.one_of(
                st.none(),
                st.booleans(),
                st.integers(-2, 2**64 - 1),
                st.floats(allow_nan=False),
                st.sampled_from([*SCHEMAS, "dicom_patient", "jxl", "zstd", "uint8", "float32"]),
            ),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["id", "name", "params", "level"]), inner),
            max_leaves=5,
        ),
    ),
    name=st.sampled_from([*SCHEMAS, *DICOM, *SLIDES]),
)
def test_any_header_is_reported(whole_packs, tmp_path, fields, name):
    raw = whole_packs[name]
    length = int.from_bytes(raw[8:12], "little")
    header = json.dumps({**json.loads(raw[16 : 16 + length]), **fields}).encode()
    path = tmp_path / "x.iac"
    head = raw[:8] + len(header).to_bytes(4, "little") + raw[12:16] + header
    path.write_bytes(head.ljust(HEADER_BYTES, b"\0") + raw[HEADER_BYTES:])
    (report,) = iac.validate(path, max_decode=0).packs
    try:
        iac.repair(path, tmp_path / "out.iac", overwrite=True)
    except ValueError:
        assert not report.ok
