"""Regions, coarser pixels, grids and Deep Zoom tiles of slides."""

import copy
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iac_query.adapters.wsi import DeepZoom, WsiImageReader
from slides import build, plain_average, tissue, write_tiff

PIXELS = tissue(200, 150)
BACKGROUND = [243, 243, 243]


@pytest.fixture(scope="module")
def slide(tmp_path_factory):
    """A slide of half a micrometre, some of whose tiles are background."""
    folder = tmp_path_factory.mktemp("slide")
    return build(write_tiff(folder / "s.tif", PIXELS), lossless=True, tile_size=(48, 32))


@pytest.fixture
def reader(slide):
    with WsiImageReader(slide) as reader:
        yield reader


def padded(x: int, y: int, width: int, height: int) -> np.ndarray:
    out = np.empty((height, width, 3), np.uint8)
    out[:] = BACKGROUND
    for i in range(height):
        for k in range(width):
            if 0 <= y + i < 150 and 0 <= x + k < 200:
                out[i, k] = PIXELS[y + i, x + k]
    return out


def test_facts(reader):
    assert reader.dimensions == (200, 150)
    assert reader.native_mpp == (0.5, 0.5)
    assert reader.physical_dimensions == (100, 75)
    assert (reader.slide_id, reader.patient_id, reader.specimen_id) == ("slide-1", "", "")
    assert (reader.channels, reader.dtype) == (3, np.uint8)
    assert reader.level_dimensions == ((200, 150),)
    assert reader.level_downsamples == (1,)
    assert "200 x 150" in repr(reader)
    assert reader.header["stored_tile_count"] < 25


@pytest.mark.parametrize(
    "place",
    [
        (-5, -7, 60, 50),
        (190, 140, 30, 30),
        (500, 0, 3, 2),
        (47, 31, 2, 2),
        (-(10**12), 10**15, 4, 5),
    ],
)
def test_native_regions(reader, place):
    np.testing.assert_array_equal(reader.read_native_region(*place), padded(*place))


sides = st.integers(1, 40)
scales = st.one_of(st.floats(1, 30), st.integers(1, 12).map(float), st.sampled_from([1.5, 2.25]))
places = st.one_of(st.floats(-40, 220), st.integers(-40, 220).map(float))


@given(st.tuples(places, places), st.tuples(scales, scales), sides, sides)
@settings(max_examples=150)
def test_area_averages_are_those_of_plain_numpy(slide, start, scale, width, height):
    with WsiImageReader(slide) as reader:
        found = reader.average(start, scale, width, height)
        # Halves and doubles of numbers are exact.
        place, mpp = (at / 2 for at in start), tuple(factor / 2 for factor in scale)
        np.testing.assert_array_equal(reader.read_region(*place, width, height, mpp=mpp), found)
    expected = plain_average(PIXELS, BACKGROUND, start, scale, (width, height))
    # Sums of fractions in another order may fall to the other side of a half.
    whole = all(value == int(value) for value in (*start, *scale))
    assert np.abs(found.astype(int) - expected).max() <= (0 if whole else 1)
    assert (found != expected).mean() < 0.01


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
def test_area_averages_of_gray_and_deep_slides(tmp_path, channels, dtype):
    pixels = tissue(90, 70, channels, dtype)
    path = build(write_tiff(tmp_path / "s.tif", pixels), lossless=True, tile_size=32)
    with WsiImageReader(path) as reader:
        found = reader.average((-3, 5), (4, 3), 20, 21)
        expected = plain_average(
            pixels.reshape(70, 90, channels), reader.background, (-3, 5), (4, 3), (20, 21)
        )
        np.testing.assert_array_equal(found, expected)


def test_regions_in_micrometres(reader):
    found = reader.read_region(10, 5, 30, 20, mpp=0.5)
    np.testing.assert_array_equal(found, PIXELS[10:30, 20:50])
    found = reader.read_region(10, 5, 10, 8, mpp=(1, 2))
    expected = plain_average(PIXELS, BACKGROUND, (20, 10), (2, 4), (10, 8))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        reader.read_region(10, 5, 10, 8, mpp=0.5 * (1 - 1e-12)), PIXELS[10:18, 20:30]
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r: r.read_region(0, 0, 5, 5, mpp=0.4), ValueError, "finer"),
        (lambda r: r.read_region(0, 0, 5, 5, mpp=(1, 0.4)), ValueError, "finer"),
        (lambda r: r.read_region(0, 0, 5, 5, mpp=-1), ValueError, "mpp is -1"),
        (lambda r: r.read_region(0, 0, 5, 5, mpp=(1, 2, 3)), ValueError, "mpp is"),
        (lambda r: r.read_region(0, 0, 5, 5, mpp=1e308), ValueError, "too many"),
        (lambda r: r.read_region(0, 0, 5, 5, mpp=(1, 1e15)), ValueError, "too many"),
        (lambda r: r.read_region(float("nan"), 0, 5, 5, mpp=1), ValueError, "x_um is nan"),
        (lambda r: r.read_native_region(0, 0, 0, 5), ValueError, "width is 0"),
        (lambda r: r.read_native_region(0.5, 0, 5, 5), TypeError, "x is 0.5"),
        (lambda r: r.read_native_region(0, 0, 5, 5, workers=0), ValueError, "workers is 0"),
        (lambda r: r.read_level(1, 0, 0, 5, 5), ValueError, "level is 1"),
        (lambda r: r.read_region(1e308, 0, 5, 5, mpp=0.5), ValueError, "place in pixels is inf"),
        (lambda r: r.thumbnail(0), ValueError, "max_size is 0"),
        (lambda r: r.thumbnail(1.5), TypeError, "max_size is 1.5"),
        (lambda r: r.thumbnail((9, 9, 9)), ValueError, "expected an int, or width and height"),
        (lambda r: r.deep_zoom(0), ValueError, "tile_size is 0"),
        (lambda r: r.deep_zoom(1.5), TypeError, "tile_size is 1.5"),
        (lambda r: r.deep_zoom(20, 21), ValueError, "overlap is 21"),
        (lambda r: r.deep_zoom().get_tile(1.0, 0, 0), TypeError, "level is 1.0"),
        (lambda r: r.read_associated_image("label"), KeyError, "no associated image 'label'"),
    ],
)
def test_bad_arguments(reader, call, error, message):
    with pytest.raises(error, match=message):
        call(reader)


def test_workers_and_caches_change_nothing(slide):
    with WsiImageReader(slide) as plain, WsiImageReader(slide, cache_bytes=20_000) as cached:
        random = np.random.default_rng(1)
        for _ in range(30):
            x, y = (int(v) for v in random.integers(-10, 140, 2))
            expected = plain.read_native_region(x, y, 50, 40, workers=1)
            for reader in (plain, cached, cached):
                found = reader.read_native_region(x, y, 50, 40, workers=2)
                np.testing.assert_array_equal(found, expected)
        assert 0 < len(cached._rasters[0]._cache) <= 20_000 // (48 * 32 * 3)


def test_a_reader_is_shared_by_threads_and_pickles(slide):
    with WsiImageReader(slide, cache_bytes=30_000) as reader:
        barrier = threading.Barrier(4)

        def read(number: int) -> np.ndarray:
            barrier.wait()
            return reader.read_native_region(number, number, 60, 60)

        with ThreadPoolExecutor(4) as pool:
            for number, found in enumerate(pool.map(read, range(4))):
                np.testing.assert_array_equal(found, padded(number, number, 60, 60))
        for other in (pickle.loads(pickle.dumps(reader)), copy.copy(reader)):
            np.testing.assert_array_equal(other.read_native_region(0, 0, 9, 9), PIXELS[:9, :9])
            other.close()


def read_of(reader: WsiImageReader, number: int) -> tuple[np.ndarray, np.ndarray]:
    """What a worker of a data loader does with the reader that it was given."""
    place = 0.5 * number, 0.5 * number
    native = reader.read_native_region(number, number, 60, 60, workers=2)
    return native, reader.read_region(*place, 9, 9, mpp=2)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_reader_works_in_child_processes(slide, method):
    with WsiImageReader(slide, cache_bytes=30_000) as reader:
        expected = [read_of(reader, number) for number in range(4)]
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.starmap(read_of, [(reader, number) for number in range(4)])
            bound = pool.starmap(reader.read_native_region, [(i, i, 60, 60) for i in range(4)])
        for number, (native, coarse) in enumerate(found):
            np.testing.assert_array_equal(native, padded(number, number, 60, 60))
            np.testing.assert_array_equal(bound[number], native)
            np.testing.assert_array_equal(coarse, expected[number][1])


def test_children_inherit_an_open_reader(slide):
    """As a loader's workers do that are forked: the reader is not pickled."""
    with WsiImageReader(slide, cache_bytes=30_000) as reader:
        reader.read_native_region(0, 0, 200, 150)
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()

        def work(number: int) -> None:
            queue.put((number, read_of(reader, number)[0]))

        workers = [context.Process(target=work, args=(number,)) for number in range(3)]
        for worker in workers:
            worker.start()
        for _ in workers:
            number, native = queue.get()
            np.testing.assert_array_equal(native, padded(number, number, 60, 60))
        for worker in workers:
            worker.join()


def test_closed_readers_say_so(slide):
    reader = WsiImageReader(slide)
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        reader.read_native_region(0, 0, 5, 5)
    with pytest.raises(ValueError, match="closed"):
        reader.read_region(0, 0, 5, 5, mpp=3)


def test_thumbnails(reader):
    for most in (50, np.int64(50), (50, 50), [50, 50]):
        assert reader.thumbnail(most).shape == (38, 50, 3)
    assert reader.thumbnail((1000, 30)).shape == (30, 40, 3)
    np.testing.assert_array_equal(reader.thumbnail(1000), PIXELS)
    expected = plain_average(PIXELS, BACKGROUND, (0, 0), (2, 2), (100, 75))
    np.testing.assert_array_equal(reader.thumbnail(100), expected)


def test_deep_zoom_tiles_put_together_are_the_levels(reader):
    zoom = reader.deep_zoom(tile_size=30, overlap=2)
    assert isinstance(zoom, DeepZoom)
    assert zoom.level_count == 9
    assert zoom.level_dimensions[-1] == (200, 150)
    assert zoom.level_dimensions[0] == (1, 1)
    assert zoom.tile_count == sum(c * r for c, r in zoom.level_tiles)
    assert 'Width="200" Height="150"' in zoom.get_dzi("png")
    for level in (0, 5, 7, 8):
        factor = 1 << (8 - level)
        size = zoom.level_dimensions[level]
        whole = plain_average(PIXELS, BACKGROUND, (0, 0), (factor, factor), size)
        columns, rows = zoom.level_tiles[level]
        for column in range(columns):
            for row in range(rows):
                x, y = max(30 * column - 2, 0), max(30 * row - 2, 0)
                expected = whole[y : 30 * row + 32, x : 30 * column + 32]
                np.testing.assert_array_equal(zoom.get_tile(level, column, row), expected)
    for bad in ((9, 0, 0), (8, 7, 0), (8, 0, -1)):
        with pytest.raises(ValueError, match="level"):
            zoom.get_tile(*bad)
