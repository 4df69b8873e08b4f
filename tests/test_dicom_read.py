"""Rows and batches of frames; damage; threads and processes."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from dicoms import build, pack_of, pixels_of, read, slice_of
from iac_query.adapters import dicom
from packs import DATA, flip_payload, patch, write_pack

import iac_query as iac

COUNT = 12


@pytest.fixture(params=["jxl", "original"])
def pack(request, tmp_path):
    slices = [slice_of(number) for number in range(COUNT)]
    return pack_of(tmp_path / "x.iac", *slices, storage=request.param)


def stacked(rows):
    return np.stack([pixels_of(row, (12, 16)) for row in rows])


# Batches


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_tensors_keep_order_and_duplicates(pack, workers):
    rows = [5, 0, -1, 5, 3]
    tensor = pack.read_tensor(rows, workers=workers)
    assert tensor.dtype == np.int16
    assert np.array_equal(tensor, stacked([5, 0, 11, 5, 3]))
    assert tensor.flags.writeable
    tensor[0] = 0
    assert np.array_equal(pack.read_tensor(np.array(rows))[0], pixels_of(5, (12, 16)))
    arrays = pack.read_pixel_arrays(rows, workers=workers)
    assert np.array_equal(np.stack(arrays), stacked([5, 0, 11, 5, 3]))


def test_tensors_are_arrow_tensors_too(pack):
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(pack.read_tensor([1, 2]))
    assert np.array_equal(tensor.to_numpy_ndarray(), stacked([1, 2]))


def test_rows_that_are_not_there(pack):
    for row in (COUNT, -COUNT - 1):
        for call in (pack.read_pixel_array, pack.read_dicom, pack.read_tags):
            with pytest.raises(iac.PackIndexError, match=r"x\.iac"):
                call(row)
        with pytest.raises(iac.PackIndexError):
            pack.read_tensor([0, row])
    with pytest.raises(TypeError):
        pack.read_pixel_array(True)
    assert pack.read_pixel_arrays([]) == []
    with pytest.raises(ValueError, match="no rows"):
        pack.read_tensor([])
    report = []
    arrays = pack.read_pixel_arrays([0, COUNT], on_error="null", report=report)
    assert arrays[1] is None
    assert [failure.position for failure in report] == [1]


def test_by_id(pack):
    uid = pack.instance_table["sop_instance_uid"][7].as_py()
    assert pack.row_of(uid) == 7
    for arguments in (("1.2.3",), (uid, 1)):
        with pytest.raises(KeyError, match=r"x\.iac"):
            pack.row_of(*arguments)


def test_frames_that_differ_make_no_tensor(tmp_path):
    kinds = [slice_of(0), slice_of(1, pixels=pixels_of(1, (12, 16), "uint16"))]
    kinds.append(slice_of(2, pixels=pixels_of(2, (12, 16), "uint32")))
    pack = pack_of(tmp_path / "x.iac", *kinds)
    for rows in ([0, 1], [1, 2], [2, 0]):
        with pytest.raises(ValueError, match="frames differ"):
            pack.read_tensor(rows)
    arrays = pack.read_pixel_arrays([2, 1, 0, 2])
    assert [array.dtype.name for array in arrays] == ["uint32", "uint16", "int16", "uint32"]
    for array, number in zip(arrays, [2, 1, 0, 2], strict=True):
        assert np.array_equal(array, pixels_of(number, (12, 16), array.dtype.name))


# Damage


def test_a_damaged_frame_among_good_ones(pack, tmp_path):
    flip_payload(tmp_path / "x.iac", 3)
    damaged = dicom.DicomPatientReader(tmp_path / "x.iac")
    for call in (damaged.read_pixel_array, damaged.read_dicom):
        with pytest.raises(iac.ChecksumError, match=r"x\.iac: row 3"):
            call(3)
    with pytest.raises(iac.ChecksumError):
        damaged.read_tensor([2, 3])
    report = []
    arrays = damaged.read_pixel_arrays([2, 3, 4], on_error="null", report=report)
    assert arrays[1] is None
    assert np.array_equal(arrays[2], pixels_of(4, (12, 16)))
    assert [(f.position, f.row, type(f.error)) for f in report] == [(1, 3, iac.ChecksumError)]
    arrays = damaged.read_pixel_arrays([2, 3, 4], on_error="skip", modality_lut=True)
    assert np.array_equal(arrays[1], pixels_of(4, (12, 16)) * 2.0 - 1000)
    with pytest.raises(ValueError, match="on_error"):
        damaged.read_pixel_arrays([0], on_error="ignore")


def rewritten(pack, path, **changes):
    """The pack with columns of its index replaced."""
    index = pack.instance_table
    for name, values in changes.items():
        place = index.schema.get_field_index(name)
        index = index.set_column(place, name, pa.array(values, index.schema.field(name).type))
    header = pack.header
    start, length = header["data_offset"], header["data_length"]
    data = pack._pack.reader.package_path.read_bytes()[start : start + length]
    drop = ("data_", "slide_table", "index_table", "num_")
    header = {key: value for key, value in header.items() if not key.startswith(drop)}
    iac.build_pack_data_segment(path, header, pack.series_table, index, data)
    return dicom.DicomPatientReader(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 11),
        ("columns", 1 << 31),
        ("samples_per_pixel", 3),
        ("samples_per_pixel", 0),
        ("pixel_dtype", "uint8"),
        ("pixel_dtype", "int64"),
        ("pixel_dtype", "object"),
        ("pixel_dtype", ""),
        ("has_pixel_data", False),
        ("pixel_dtype", "float16"),
    ],
)
def test_an_index_that_does_not_fit_its_frames(pack, tmp_path, name, value):
    values = pack.instance_table[name].to_pylist()
    values[1] = value
    wrong = rewritten(pack, tmp_path / "y.iac", **{name: values})
    for rows in ([1], [0, 1], [1, 1]):
        with pytest.raises(iac.PackError, match=r"y\.iac: row 1"):
            wrong.read_pixel_arrays(rows)
    arrays = wrong.read_pixel_arrays([0, 1, 2], on_error="null")
    assert [array is None for array in arrays] == [False, True, False]


def test_frames_that_are_not_there(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0), slice_of(1), exact=True)
    for name in ("number_of_frames", "frame_index"):
        (tmp_path / "y.iac").unlink(missing_ok=True)
        wrong = rewritten(pack, tmp_path / "y.iac", **{name: [1 << 31, 1 << 31]})
        with pytest.raises(iac.PackError, match=rf"y\.iac: row 1: its {name}"):
            wrong.read_dicom(1)


def test_damaged_headers(pack, tmp_path):
    deltas = pack.instance_table["dicom_delta"].to_pylist()
    encode = iac.Codec.create("zstd").encode
    for delta in (b"", deltas[1][:-1], encode(b"{}"), encode(b"[1]"), encode(b'{"dataset":1')):
        (tmp_path / "y.iac").unlink(missing_ok=True)
        wrong = rewritten(pack, tmp_path / "y.iac", dicom_delta=[deltas[0], delta, *deltas[2:]])
        with pytest.raises(iac.ChecksumError, match=r"y\.iac: row 1: its dicom_delta"):
            wrong.read_tags(1)
        with pytest.raises(iac.PackError, match=r"y\.iac: row 1"):
            wrong.read_tags(1, verify=False)
        with pytest.raises(iac.PackError, match=r"y\.iac: row 1"):
            wrong.read_dataset(1, verify=False)
        assert wrong.read_tags(0)["00080060"]["Value"] == ["CT"]
    no_element = encode(b'{"dataset":{"00080060":7},"file_meta":{},"preamble":null}')
    (tmp_path / "y.iac").unlink()
    wrong = rewritten(pack, tmp_path / "y.iac", dicom_delta=[deltas[0], no_element, *deltas[2:]])
    with pytest.raises(iac.PackError, match=r"y\.iac: row 1: its header is damaged"):
        wrong.read_dataset(1, verify=False)
    patch(tmp_path / "x.iac", pack.header["data_offset"] + 20, b"\xff\xff")
    with pytest.raises(iac.ChecksumError, match=r"x\.iac: series 0: its template"):
        dicom.DicomPatientReader(tmp_path / "x.iac").read_dataset(0)


def test_other_packs(tmp_path, pack):
    with pytest.raises(iac.PackError, match="is not a pack of DICOM instances"):
        dicom.DicomPatientReader(write_pack(tmp_path / "y.iac", [b"x"]))
    with pytest.raises(iac.PackNotFoundError):
        dicom.DicomPatientReader(tmp_path / "missing.iac")
    table = pack.instance_table.select(["offset", "length", "crc32"])
    for version in (3, "2", None):
        header = {"payload_type": "dicom_patient", "dicom_schema_version": version}
        (tmp_path / "z.iac").unlink(missing_ok=True)
        iac.build_pack_data_segment(tmp_path / "z.iac", header, table, table.slice(0, 0), b"")
        with pytest.raises(iac.PackError, match="dicom_schema_version"):
            dicom.DicomPatientReader(tmp_path / "z.iac")


# Processes and threads


def test_readers_travel(pack):
    again = pickle.loads(pickle.dumps(pack))
    assert np.array_equal(again.read_pixel_array(2), pixels_of(2, (12, 16)))
    assert np.array_equal(copy.copy(pack).read_pixel_array(2), pixels_of(2, (12, 16)))
    with again:
        assert len(again) == again.record_count == COUNT
    with pytest.raises(ValueError, match="closed"):
        again.read_pixel_array(0)
    assert "DicomPatientReader" in repr(pack)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("pack", ["jxl"], indirect=True)
def test_readers_work_in_other_processes(pack, method):
    pack.read_tensor(range(COUNT))
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        futures = [workers.submit(pack.read_tensor, [row, 0]) for row in (1, 4)]
        for future, row in zip(futures, (1, 4), strict=True):
            assert np.array_equal(future.result(), stacked([row, 0]))


def test_threads_share_a_reader(pack):
    def work(row):
        return pack.read_pixel_array(row, modality_lut=True), pack.read_dicom(row)

    with ThreadPoolExecutor(8) as threads:
        for row, (array, file) in zip(range(COUNT), threads.map(work, range(COUNT)), strict=True):
            assert np.array_equal(array, pixels_of(row, (12, 16)) * 2.0 - 1000)
            assert read(file).InstanceNumber == row + 1


def test_the_query_layer_reads_such_packs(tmp_path):
    movie = slice_of(3, series=2, NumberOfFrames=2)
    movie.PixelData = stacked([3, 4]).tobytes()
    for version, files in ((1, []), (2, [movie])):
        files += [slice_of(number) for number in range(3)]
        assert build(tmp_path / "x.iac", *files).schema_version == version
        with iac.connect() as con:
            relation = con.sql(f"SELECT record FROM '{tmp_path / 'x.iac'}'")
            images = iac.decode(relation, as_="tensor")["payload"].chunk(0).to_numpy_ndarray()
        assert np.array_equal(images.view(np.int16), stacked(range(3 if version == 1 else 5)))
    assert len(dicom.DicomPatientReader(DATA / "dicom_patient.iac")) == 6
