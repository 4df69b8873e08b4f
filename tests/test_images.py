"""Packs of images: arrays in, arrays, batches, Arrow columns and tensors out."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from packs import slide_table

import iac_query as iac
from iac_query.images import ImageBatch

pytestmark = pytest.mark.asan

SHAPES = [(5, 7), (1, 1), (16, 3, 3), (9, 2), (4, 6, 4), (2, 2)]
DTYPES = ["uint8", "uint16"]


def image(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def mixed_images() -> list[np.ndarray]:
    return [image(shape, dtype, i) for i, shape in enumerate(SHAPES) for dtype in DTYPES]


def write_images(path: Path, images, codec: str = "jpegls", **options) -> Path:
    iac.VariableRecordPack.build(
        path,
        payload_type="tile",
        slide_table=slide_table(),
        index_table=pa.table({"tile": range(len(images))}),
        objects=images,
        codec=codec,
        **options,
    )
    return path


def damage(path: Path, row: int) -> None:
    with iac.PackReader(path) as reader:
        table = reader.index_table.select(["offset", "length"]).to_pylist()
        at = reader.header["data_offset"] + table[row]["offset"] + table[row]["length"] // 2
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def references(path: Path, rows) -> pa.Table:
    record = [None if row is None else {"pack": str(path), "row": row} for row in rows]
    type = pa.struct({"pack": pa.string(), "row": pa.int64()})
    return pa.table({"n": range(len(rows)), "record": pa.array(record, type)})


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return write_images(tmp_path / "mixed.iac", mixed_images())


@pytest.fixture
def tiles(tmp_path: Path) -> Path:
    return write_images(tmp_path / "tiles.iac", [image((8, 6, 3), "uint16", i) for i in range(20)])


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize("workers", [1, 2, None])
def test_images_come_back_in_the_order_asked_for(mixed: Path, workers):
    images = mixed_images()
    rows = [3, 0, 3, *range(len(images))][::-1]
    pack = iac.VariableRecordPack(mixed)
    assert_equal([pack.read(row) for row in rows], [images[row] for row in rows])
    assert_equal(pack.read_many(rows, workers=workers), [images[row] for row in rows])
    batch = pack.read_many_contiguous(rows, workers=workers)
    assert isinstance(batch, ImageBatch)
    assert_equal(list(batch), [images[row] for row in rows])
    assert batch.shapes == [images[row].shape for row in rows]
    assert batch.dtypes == [images[row].dtype for row in rows]
    assert batch.records.lengths == tuple(images[row].nbytes for row in rows)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_pack_is_built_in_parallel_with_the_same_bytes(tmp_path: Path, workers, streaming):
    images = [image((30, 20), "uint8", i) for i in range(300)]
    plain = write_images(tmp_path / "plain.iac", images, workers=1)
    given = iter(images) if streaming else images
    built = tmp_path / "built.iac"
    iac.VariableRecordPack.build(
        built,
        payload_type="tile",
        slide_table=slide_table(),
        index_table=pa.table({"tile": range(300)}),
        objects=given,
        codec="jpegls",
        workers=workers,
        streaming=streaming,
    )
    assert built.read_bytes() == plain.read_bytes()


def test_what_read_gives_is_the_callers_own(tiles: Path):
    pack = iac.VariableRecordPack(tiles)
    for array in (pack.read(0), pack.read_many([0, 1])[0]):
        array[:] = 0
        assert array.flags.c_contiguous and array.flags.aligned
    assert pack.read(0).any()


def test_images_of_one_shape_are_one_array_without_a_copy(tiles: Path):
    batch = iac.VariableRecordPack(tiles).read_many_contiguous(range(20))
    array = batch.to_numpy()
    assert array.shape == (20, 8, 6, 3) and array.dtype == np.uint16
    assert np.shares_memory(array, np.frombuffer(batch.records.buffer, np.uint8))
    assert not array.flags.writeable
    tensor = batch.to_tensor()
    assert tensor.type == pa.fixed_shape_tensor(pa.uint16(), [8, 6, 3])
    assert np.shares_memory(tensor.to_numpy_ndarray(), array)
    assert np.array_equal(batch[-1], image((8, 6, 3), "uint16", 19))


def test_images_that_differ_are_no_array(mixed: Path):
    pack = iac.VariableRecordPack(mixed)
    with pytest.raises(ValueError, match=r"images differ: \(5, 7\) uint8 and \(5, 7\) uint16"):
        pack.read_many_contiguous([0, 1]).to_numpy()
    with pytest.raises(ValueError, match="there are no images"):
        pack.read_many_contiguous([]).to_numpy()
    assert list(pack.read_many_contiguous([])) == []


def test_a_batch_survives_pickling(mixed: Path):
    batch = iac.VariableRecordPack(mixed).read_many_contiguous([0, 5, 11])
    again = pickle.loads(pickle.dumps(batch))
    assert_equal(list(again), list(batch))
    assert again.shapes == batch.shapes


def test_as_arrow_struct(mixed: Path):
    images = mixed_images()
    batch = iac.VariableRecordPack(mixed).read_many_contiguous(range(len(images)))
    for row, expected in zip(batch.to_arrow().to_pylist(), images, strict=True):
        shape = (*expected.shape, 1)[:3]
        assert (row["height"], row["width"], row["channels"]) == shape
        assert row["dtype"] == expected.dtype.name
        assert row["data"] == expected.tobytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_survives_a_damaged_image(tiles: Path, workers):
    images = [image((8, 6, 3), "uint16", i) for i in range(20)]
    damage(tiles, 7)
    pack = iac.VariableRecordPack(tiles)
    with pytest.raises(iac.ChecksumError) as raised:
        pack.read_many_contiguous(range(20), workers=workers)
    assert raised.value.row == 7 and raised.value.pack == str(tiles)

    report: list[iac.RecordFailure] = []
    batch = pack.read_many_contiguous(range(20), workers=workers, on_error="null", report=report)
    assert [failure.row for failure in report] == [7]
    assert batch[7] is None and batch.shapes[7] is None and batch.dtypes[7] is None
    assert batch.validity.tolist() == [i != 7 for i in range(20)]
    assert_equal([one for one in batch if one is not None], images[:7] + images[8:])
    assert batch.to_arrow().to_pylist()[7] is None
    with pytest.raises(ValueError, match="1 of 20 images are missing"):
        batch.to_numpy()

    batch = pack.read_many_contiguous(range(20), workers=workers, on_error="skip")
    assert batch.positions.tolist() == [*range(7), *range(8, 20)]
    assert_equal(list(batch), images[:7] + images[8:])
    assert batch.to_numpy().shape == (19, 8, 6, 3)
    assert pack.read_many(range(6, 9), on_error="null")[1] is None


def test_damage_that_only_the_codec_sees_is_named(tiles: Path):
    damage(tiles, 7)
    payload = iac.PackReader(tiles).read_payload(7, verify=False)
    cut = payload[: len(payload) // 2]
    with pytest.raises(iac.CodecError, match="jpegls"):
        iac.Codec.create("jpegls").decode(cut)


def test_the_limit_on_samples(tiles: Path):
    pack = iac.VariableRecordPack(tiles)
    samples = 8 * 6 * 3
    assert pack.read(0, max_samples=samples).shape == (8, 6, 3)
    refused = r"row 0: image of 8x6x3 uint16 is larger than the limit of 143 samples"
    for read in (
        lambda: pack.read(0, max_samples=samples - 1),
        lambda: pack.read_many([0], max_samples=samples - 1),
        lambda: pack.read_many_contiguous([0], max_samples=samples - 1),
    ):
        with pytest.raises(iac.CodecError, match=refused):
            read()
    payload = pack.read_bytes(0)
    with pytest.raises(iac.CodecError, match="143 samples"):
        pack.codec.decode(payload, max_samples=samples - 1)


def test_a_header_that_claims_a_giant_image_allocates_nothing():
    payload = bytearray(iac.Codec.create("jpegls").encode(image((4, 4), "uint8")))
    at = payload.index(b"\xff\xf7") + 5
    payload[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(iac.CodecError, match="65535x65535"):
        iac.Codec.create("jpegls").decode(bytes(payload))


@pytest.mark.parametrize(
    "wrong",
    [b"bytes", [[1, 2], [3, 4]], None, "text", 5],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_array_is_refused(wrong):
    with pytest.raises(TypeError, match="NumPy array"):
        iac.Codec.create("jpegls").encode(wrong)


@pytest.mark.parametrize("codec", ["jpegls", "jpeg2000"])
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(4, np.uint8),
        np.zeros((2, 2, 3, 1), np.uint8),
        np.zeros((0, 4), np.uint8),
        np.zeros((4, 0, 3), np.uint8),
        np.zeros((4, 4, 5), np.uint8),
        np.zeros((4, 4), np.int8),
        np.zeros((4, 4), np.int32),
        np.zeros((4, 4), np.float64),
        np.zeros((4, 4), bool),
        np.zeros((4, 4), complex),
        np.zeros((4, 4), "S1"),
        np.zeros((4, 4), object),
    ],
    ids=lambda wrong: f"{wrong.dtype}-{wrong.shape}",
)
def test_what_is_no_image_is_refused(codec, wrong):
    with pytest.raises(ValueError):
        iac.Codec.create(codec).encode(wrong)


@pytest.mark.parametrize("codec", ["jpegls", "jpeg2000"])
def test_byte_order_and_memory_layout_do_not_matter(codec):
    codec = iac.Codec.create(codec)
    plain = image((12, 10, 3), "uint16")
    for same in (
        plain.astype(">u2"),
        np.asfortranarray(plain),
        np.flip(np.flip(plain, 0).copy(), 0),
        np.repeat(plain, 2, axis=1)[:, ::2],
    ):
        assert codec.encode(same) == codec.encode(plain)
    assert codec.decode(codec.encode(plain[:, :, :1])).shape == (12, 10)


def test_a_bad_image_among_many_is_named(tmp_path: Path):
    images = [image((4, 4), "uint8")] * 5 + [np.zeros((4, 4), np.int16)]
    with pytest.raises(ValueError, match="int16"):
        iac.Codec.create("jpegls").encode_many(images)
    with pytest.raises(ValueError, match="int16"):
        write_images(tmp_path / "x.iac", images)
    assert list(tmp_path.iterdir()) == []


def test_decode_gives_images_of_image_packs(mixed: Path):
    images = mixed_images()
    rows = [5, None, 0, 5]
    table = iac.decode(references(mixed, rows))
    for row, found in zip(rows, table["payload"].to_pylist(), strict=True):
        if row is None:
            assert found is None
        else:
            assert found["data"] == images[row].tobytes()
            assert (found["height"], found["width"]) == images[row].shape[:2]
    assert iac.decode(references(mixed, rows), as_="bytes")["payload"].to_pylist() == [
        None if row is None else images[row].tobytes() for row in rows
    ]
    stored = iac.decode(references(mixed, [5]), as_="stored")["payload"][0].as_py()
    assert stored == iac.VariableRecordPack(mixed).read_bytes(5)


def test_decode_gives_tensors(tiles: Path, tmp_path: Path):
    more = write_images(tmp_path / "more.iac", [image((8, 6, 3), "uint16", 50)])
    table = pa.concat_tables([references(tiles, [4, 2, None]), references(more, [0])])
    tensors = iac.decode(table, as_="tensor")["payload"].combine_chunks()
    assert tensors.type == pa.fixed_shape_tensor(pa.uint16(), [8, 6, 3])
    assert tensors.is_valid().to_pylist() == [True, True, False, True]
    found = tensors.drop_null().to_numpy_ndarray()
    for at, seed in enumerate([4, 2, 50]):
        assert np.array_equal(found[at], image((8, 6, 3), "uint16", seed))
    plain = iac.decode(references(tiles, [0, 1]), as_="tensor")["payload"].chunk(0)
    assert plain.to_numpy_ndarray().shape == (2, 8, 6, 3)


def test_decode_of_images_that_are_no_tensor(mixed: Path, tiles: Path, tmp_path: Path):
    with pytest.raises(iac.CodecError, match=r"mixed.iac: images differ: .* use as_='image'"):
        iac.decode(references(mixed, [0, 1]), as_="tensor")
    table = pa.concat_tables([references(mixed, [0]), references(tiles, [0])])
    with pytest.raises(iac.CodecError, match="decode them apart"):
        iac.decode(table, as_="tensor")
    with pytest.raises(iac.CodecError, match="images, not text"):
        iac.decode(references(tiles, [0]), as_="text")
    with pytest.raises(iac.CodecError, match="no fixed shape"):
        iac.decode(references(tiles, [0]), as_="vector")


def test_decode_with_damaged_images(tiles: Path):
    damage(tiles, 7)
    rows = references(tiles, [6, 7, 8])
    for as_ in ("image", "tensor", "bytes"):
        table = iac.decode(rows, as_=as_, on_error="null")
        assert table["payload"].is_valid().to_pylist() == [True, False, True]
        assert "tiles.iac: row 7" in table["payload_error"][1].as_py()
        assert iac.decode(rows, as_=as_, on_error="skip")["n"].to_pylist() == [0, 2]
    nothing = iac.decode(references(tiles, [7]), as_="tensor", on_error="null")
    assert nothing["payload"].null_count == 1


def test_byte_packs_are_no_images(tmp_path: Path):
    write_images(tmp_path / "x.iac", [b"a", b"b"], codec="zstd")
    with pytest.raises(iac.CodecError, match="does not decode to images"):
        iac.decode(references(tmp_path / "x.iac", [0]), as_="image")
    with (
        iac.VariableRecordPack(tmp_path / "x.iac") as pack,
        pytest.raises(iac.CodecError, match=r"x\.iac: its codec does not decode to images"),
    ):
        pack.read_tensor([0])


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3)])
def test_images_as_one_writable_array(tmp_path: Path, shape: tuple[int, ...]):
    images = [image(shape, "uint16", i) for i in range(4)]
    path = write_images(tmp_path / "x.iac", images)
    with iac.VariableRecordPack(path) as pack:
        found = pack.read_tensor([3, 1, -1], workers=2)
        expected = np.array([images[3], images[1], images[3]])
        np.testing.assert_array_equal(found, expected.reshape(3, 5, 4, -1))
        found[:] = 0
        np.testing.assert_array_equal(pack.read(3), images[3])
        with pytest.raises(ValueError, match="no rows"):
            pack.read_tensor([])
    write_images(tmp_path / "y.iac", mixed_images())
    with (
        iac.VariableRecordPack(tmp_path / "y.iac") as pack,
        pytest.raises(iac.CodecError, match=r"y\.iac: images differ"),
    ):
        pack.read_tensor([0, 1])


@pytest.mark.parametrize(
    "codec", [iac.Codec.create(name) for name in ("jxl", "jpeg", "jpeg2000", "jpegls")], ids=repr
)
@pytest.mark.parametrize("shape", [(9, 8), (9, 8, 3)])
def test_the_shape_is_told_without_decoding(codec: iac.Codec, shape: tuple[int, ...]):
    payload = codec.encode(image(shape, "uint8"))
    assert codec.shape_and_dtype(payload) == (shape, np.dtype("uint8"))
    for bad in (b"", b"nothing of the sort"):
        with pytest.raises(iac.CodecError, match=codec.name):
            codec.shape_and_dtype(bad)
