"""Packs of image tiles: what is built is what is read, in each of the ways there are."""

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from iac_query.adapters import tiles
from iac_query.adapters.tiles import (
    TileNotFoundError,
    TilePackageReader,
    build_tile_package,
    build_tile_package_from_arrays,
    build_tile_package_from_folder,
    build_tile_package_from_records,
    iter_package_tiles,
    read_package_manifest,
    read_package_metadata,
)
from packs import flip_payload
from PIL import Image
from tile_data import SIZE, files_in, images_of, records_of, write_images

import iac_query as iac
from iac_query import Codec

LOSSLESS = {"lossless": True, "effort": 1}
COUNT = 7


@pytest.fixture
def images() -> np.ndarray:
    return images_of(COUNT)


@pytest.fixture
def pack(tmp_path: Path, images: np.ndarray) -> Path:
    build_tile_package_from_arrays(records_of(COUNT), images, tmp_path / "t.iac", **LOSSLESS)
    return tmp_path / "t.iac"


def listed(records, suffix: str = "jxl") -> list[tuple]:
    """Records as a pack lists them."""
    return [
        (
            r.tile_id,
            r.patient_id,
            r.slide_id,
            Path(f"tiles/{r.tile_id}.{suffix}"),
            r.x,
            r.y,
            r.split,
        )
        for r in records
    ]


def fields(path: Path) -> list[tuple]:
    return [tuple(vars(record).values()) for record in read_package_manifest(path)]


def test_every_way_to_read_gives_the_images(pack: Path, images: np.ndarray):
    with TilePackageReader(pack) as reader:
        rows = [3, 0, 3, 6]
        ids = [f"tile-é-{row}" for row in rows]
        assert [reader.tile_id_at(row) for row in rows] == ids
        assert reader.tile_id_at(-1) == "tile-é-6"
        assert reader.rows_of(ids).tolist() == rows
        batch = reader.read_batch(rows, workers=2)
        assert (batch.shape, batch.dtype) == ((4, SIZE, SIZE, 3), np.uint8)
        np.testing.assert_array_equal(batch, images[rows])
        np.testing.assert_array_equal(reader.read_batch_of(ids), batch)
        np.testing.assert_array_equal(reader.read_batch(np.array(rows), workers=1), batch)
        np.testing.assert_array_equal(reader.read_arrays_at(iter(rows), workers=2), batch)
        np.testing.assert_array_equal(reader.read_array_at(-1), images[-1])
        np.testing.assert_array_equal(reader.read_image("tile-é-2"), images[2])
        np.testing.assert_array_equal(np.array(reader.read_images_at(rows)), batch)
        assert reader.read_image_at(0).mode == "RGB"
        assert len(reader) == reader.record_count == COUNT
        batch[:] = 0  # it is the caller's own
    walked = list(iter_package_tiles(pack))
    assert [record for record, _ in walked] == read_package_manifest(pack)
    np.testing.assert_array_equal(np.array([np.array(image) for _, image in walked]), images)
    assert read_package_metadata(pack)["tile_width"] == SIZE


def test_no_rows_are_a_batch_of_none(pack: Path):
    with TilePackageReader(pack) as reader:
        assert reader.read_batch([]).shape == (0, SIZE, SIZE, 3)
        assert reader.read_arrays_at([]) == []


def test_records_come_back(pack: Path):
    assert fields(pack) == listed(records_of(COUNT))
    header = iac.read_header(pack)
    assert (header["stride_x"], header["stride_y"]) == (SIZE, SIZE)
    with TilePackageReader(pack) as reader:
        assert reader.slide_table["patient_id"].to_pylist() == ["patient-0", "patient-1"]
        assert reader.index_table.column_names == [
            *("slide_idx", "tile_x", "tile_y", "tile_id", "split"),
            *("offset", "length", "crc32", "flags"),
        ]


def test_an_id_or_a_row_that_is_not_there(pack: Path):
    with TilePackageReader(pack) as reader:
        for read in (reader.read_image, lambda id: reader.rows_of([id])):
            with pytest.raises(TileNotFoundError, match=r"'nobody' in .*t\.iac") as caught:
                read("nobody")
        assert isinstance(caught.value, FileNotFoundError) and isinstance(caught.value, KeyError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        for read in (reader.read_array_at, reader.tile_id_at, lambda row: reader.read_batch([row])):
            with pytest.raises(IndexError, match=r"t\.iac: row 7"):
                read(COUNT)


def test_readers_pickle_and_survive_a_fork(pack: Path, images: np.ndarray):
    with TilePackageReader(pack) as reader:
        reader.read_image("tile-é-0")
        again = pickle.loads(pickle.dumps(reader))
        np.testing.assert_array_equal(again.read_batch([1]), images[[1]])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for row, found in enumerate(pool.map(reader.read_array_at, range(COUNT))):
                np.testing.assert_array_equal(found, images[row])
    with pytest.raises(ValueError, match="closed"):
        reader.read_array_at(0)


def test_a_damaged_tile_is_named(pack: Path):
    flip_payload(pack, 2)
    with TilePackageReader(pack) as reader:
        with pytest.raises(iac.ChecksumError, match=r"t\.iac: row 2"):
            reader.read_batch(range(COUNT))
        assert len(reader.read_batch([0, 1, 3])) == 3


@pytest.mark.parametrize("workers", [1, 2, None])
def test_files_of_a_manifest(tmp_path: Path, images: np.ndarray, workers: int | None, capfd):
    manifest = write_images(tmp_path / "in", records_of(COUNT), images)
    out = tmp_path / "new" / "t.iac"
    build_tile_package(
        manifest, out, manifest.parent, **LOSSLESS, workers=workers, show_progress=True
    )
    assert "7/7" in capfd.readouterr().err
    with TilePackageReader(out) as reader:
        np.testing.assert_array_equal(reader.read_batch(range(COUNT)), images)
    assert fields(out) == listed(records_of(COUNT))


def test_relative_paths_start_from_the_current_folder(
    tmp_path: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    manifest = write_images(tmp_path / "in", records_of(COUNT), images)
    monkeypatch.chdir(manifest.parent)
    build_tile_package("manifest.csv", "t.iac", **LOSSLESS)
    with TilePackageReader("t.iac") as reader:
        np.testing.assert_array_equal(reader.read_array_at(4), images[4])


def test_files_of_a_folder(tmp_path: Path, images: np.ndarray):
    for i, image in enumerate(images):
        path = tmp_path / "in" / f"p{i % 2}" / f"s{i % 2}" / f"{SIZE * i}_0.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    pattern = "{patient_id}/{slide_id}/{x}_{y}.png"
    build_tile_package_from_folder(tmp_path / "in", tmp_path / "t.iac", pattern, **LOSSLESS)
    with TilePackageReader(tmp_path / "t.iac") as reader:
        for record in read_package_manifest(tmp_path / "t.iac"):
            i = record.x // SIZE
            assert (record.patient_id, record.slide_id) == (f"p{i % 2}", f"s{i % 2}")
            np.testing.assert_array_equal(np.array(reader.read_image(record.tile_id)), images[i])


def test_images_become_rgb(tmp_path: Path):
    gray, rgba = images_of(1, 0)[0], images_of(1, 4)[0]
    manifest = write_images(tmp_path, records_of(3), [gray, rgba, rgba[:, :, :3]])
    build_tile_package(manifest, tmp_path / "t.iac", tmp_path, **LOSSLESS)
    with TilePackageReader(tmp_path / "t.iac") as reader:
        batch = reader.read_batch(range(3))
    np.testing.assert_array_equal(batch[0], np.repeat(gray[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(batch[1], rgba[:, :, :3])


def test_an_iterator_may_use_its_array_again(tmp_path: Path, images: np.ndarray):
    def arrays():
        memory = np.empty_like(images[0])
        for image in images:
            memory[:] = image
            yield memory

    out = tmp_path / "t.iac"
    build_tile_package_from_arrays(records_of(COUNT), arrays(), out, **LOSSLESS, workers=2)
    with TilePackageReader(out) as reader:
        np.testing.assert_array_equal(reader.read_batch(range(COUNT)), images)


def test_a_memory_mapped_array(tmp_path: Path, images: np.ndarray):
    np.save(tmp_path / "x.npy", images)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    build_tile_package_from_arrays(records_of(COUNT), mapped, tmp_path / "t.iac", **LOSSLESS)
    with TilePackageReader(tmp_path / "t.iac") as reader:
        np.testing.assert_array_equal(reader.read_batch(range(COUNT)), images)


@pytest.mark.parametrize("check", ["header", "decode"])
def test_payloads_are_stored_as_they_are(tmp_path: Path, images: np.ndarray, check):
    payloads = Codec.create("jxl", **LOSSLESS).encode_many(images)
    build_tile_package_from_records(
        records_of(COUNT),
        iter(payloads),
        tmp_path / "t.iac",
        tile_width=SIZE,
        tile_height=SIZE,
        lossless=True,
        extra_header={"magnification": 20},
        check=check,
    )
    with TilePackageReader(tmp_path / "t.iac") as reader:
        assert reader.pack.reader.read_payloads(range(COUNT)) == payloads
        assert reader.header["magnification"] == 20
        assert reader.header["codec_params"]["mode"] == "lossless"


def test_workers_do_not_change_the_bytes(tmp_path: Path, images: np.ndarray):
    for workers in (1, 2):
        build_tile_package_from_arrays(
            records_of(COUNT), images, tmp_path / f"{workers}.iac", effort=2, workers=workers
        )
    assert (tmp_path / "1.iac").read_bytes() == (tmp_path / "2.iac").read_bytes()
    assert files_in(tmp_path) == {"1.iac", "2.iac"}


EXTENDED = [
    (0, np.uint8, Codec.create("jpegls")),
    (0, np.uint16, None),
    (0, np.uint16, Codec.create("jpeg2000", profile="ht")),
    (2, np.uint8, None),
    (3, np.uint8, Codec.create("jpeg", quality=100, subsampling="444")),
    (3, np.uint8, Codec.create("jpeg2000")),
    (3, np.uint16, None),
    (4, np.uint16, Codec.create("jpegls")),
]


@pytest.mark.parametrize(("channels", "dtype", "codec"), EXTENDED)
def test_extended_packs_hold_exactly_what_they_were_given(tmp_path: Path, channels, dtype, codec):
    images = images_of(3, channels, dtype)
    out = tmp_path / "t.iac"
    jxl = {} if codec else LOSSLESS
    build_tile_package_from_arrays(records_of(3), images, out, codec=codec, extended=True, **jxl)
    header = iac.read_header(out)
    assert header["payload_type"] == tiles.EXTENDED_PAYLOAD_TYPE
    assert header["codec"] == (codec.name if codec else "jxl")
    with TilePackageReader(out) as reader:
        assert reader.tile_shape == (SIZE, SIZE, channels or 1)
        assert reader.tile_dtype == dtype
        batch = reader.read_batch([2, 0])
        assert (batch.shape, batch.dtype) == ((2, *reader.tile_shape), dtype)
        assert reader.read_batch([]).shape == (0, *reader.tile_shape)
        if header["codec"] != "jpeg":
            np.testing.assert_array_equal(batch.reshape(images[[2, 0]].shape), images[[2, 0]])
        rgb = reader.read_array_at(2)
        assert rgb.shape == (SIZE, SIZE, 3)
        np.testing.assert_array_equal(rgb[:, :, 0], batch[0, :, :, 0])
        if dtype == np.uint8:
            np.testing.assert_array_equal(np.array(reader.read_image_at(2)), rgb)
        else:
            with pytest.raises(TypeError, match=r"t\.iac: tiles of uint16 are no 8-bit RGB"):
                reader.read_image_at(2)
    assert fields(out) == listed(records_of(3), header["codec"])


@pytest.mark.parametrize(
    ("channels", "dtype", "suffix"),
    [(0, np.uint8, "png"), (0, np.uint16, "png"), (0, np.uint16, "tiff"), (4, np.uint8, "png")],
)
def test_extended_packs_take_images_as_files_have_them(tmp_path: Path, channels, dtype, suffix):
    images = images_of(3, channels, dtype)
    records = [
        type(r)(**{**vars(r), "tile_path": r.tile_path.with_suffix(f".{suffix}")})
        for r in records_of(3)
    ]
    manifest = write_images(tmp_path, records, images)
    build_tile_package(manifest, tmp_path / "t.iac", tmp_path, **LOSSLESS, extended=True)
    with TilePackageReader(tmp_path / "t.iac") as reader:
        batch = reader.read_batch(range(3))
        np.testing.assert_array_equal(batch.reshape(images.shape), images)


def test_extended_packs_hold_many_slides_and_far_tiles(tmp_path: Path):
    records = records_of(300, slides=300, step=70_000)
    images = images_of(300, size=(4, 4))
    build_tile_package_from_arrays(
        records, images, tmp_path / "t.iac", **LOSSLESS, stride_x=1, stride_y=1, extended=True
    )
    assert fields(tmp_path / "t.iac") == listed(records)


def test_decode_and_encode_by_themselves(tmp_path: Path):
    gray = images_of(1, 0)[0]
    payload = tiles.encode_jxl_array(gray, True, None, 1)
    np.testing.assert_array_equal(
        tiles.decode_jxl_array(payload), np.repeat(gray[:, :, None], 3, axis=2)
    )
    Image.fromarray(gray).save(tmp_path / "x.png")
    image = tiles.decode_jxl(tiles.encode_jxl(tmp_path / "x.png", True, 1.0, 1))
    np.testing.assert_array_equal(np.array(image)[:, :, 1], gray)
