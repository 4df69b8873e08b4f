"""Packs behind URLs: what they give, and what it costs."""

from __future__ import annotations

import zipfile

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from http_files import HttpFiles
from packs import item_table, payloads_of, write_encoded, write_matrix, write_pack
from references import references, stamps_of, table_of

import iac_query as iac


@pytest.fixture
def server():
    with HttpFiles() as files:
        yield files


@pytest.fixture
def served(server, pack):
    """The URL of the pack of ten records."""
    server.files["ten.iac"] = pack.read_bytes()
    return server.url("ten.iac")


def large_pack(path, count=40_000, size=300):
    """Tables of 5 MB, which nobody wants to fetch whole, and 12 MB of records."""
    labels = {f"label_{i}": pa.array(np.arange(count) * i) for i in range(12)}
    index = item_table(count)
    for name, column in labels.items():
        index = index.append_column(name, column)
    return write_pack(path, payloads_of(count, size), index)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return large_pack(tmp_path_factory.mktemp("large") / "large.iac")


def test_a_pack_behind_a_url_gives_what_the_file_gives(served, pack):
    local, remote = iac.PackReader(pack), iac.PackReader(served)
    assert remote.package_path == served
    assert remote.header == local.header
    assert remote.index_table == local.index_table
    assert remote.slide_table == local.slide_table
    assert remote.read_payload(3) == local.read_payload(3)
    assert remote.read_payloads([9, 0, 9]) == local.read_payloads([9, 0, 9])
    assert remote.read_data_span(5, 20) == local.read_data_span(5, 20)
    assert iac.read_header(served) == local.header
    assert iac.read_tables(served)[2] == local.index_table
    assert list(iac.iter_payloads(served)) == list(iac.iter_payloads(pack))
    assert served in repr(remote)


def test_records_of_every_kind(server, tmp_path):
    objects = payloads_of(50)
    matrix = np.arange(200, dtype=np.float32).reshape(50, 4)
    server.files["z.iac"] = write_encoded(tmp_path / "z.iac", objects, "zstd").read_bytes()
    server.files["m.iac"] = write_matrix(tmp_path / "m.iac", matrix).read_bytes()
    with iac.VariableRecordPack(server.url("z.iac")) as variable:
        assert variable.read(7) == objects[7]
        assert variable.read_many([49, 0]) == [objects[49], objects[0]]
        assert variable.stats["requests"] == 2
    with iac.FixedRecordPack(server.url("m.iac")) as fixed:
        assert (fixed.read_matrix(range(50)) == matrix).all()


def test_a_small_pack_costs_two_requests(server, served):
    reader = iac.PackReader(served)
    assert reader.index_table.num_rows == 10
    assert len(reader.read_payloads(range(10))) == 10
    assert [request.method for request in server.requests] == ["HEAD", "GET"]
    assert reader.stats == {"requests": 2, "retries": 0, "bytes": server.bytes_sent}
    assert reader.stats["bytes"] == len(server.files["ten.iac"])


def test_local_packs_cost_nothing(pack):
    assert iac.PackReader(pack).stats == {"requests": 0, "retries": 0, "bytes": 0}


def test_a_middling_pack_costs_three_requests_and_the_question_whether_it_changed(server, tmp_path):
    path = write_pack(tmp_path / "m.iac", payloads_of(10_000, 300))
    server.files["m.iac"] = path.read_bytes()
    reader = iac.PackReader(server.url("m.iac"))
    assert reader.index_table == iac.PackReader(path).index_table
    assert [request.method for request in server.requests] == ["HEAD", "GET", "GET", "HEAD"]
    assert reader.stats["bytes"] == reader.header["data_offset"]


def test_only_the_needed_columns_of_a_large_index_are_fetched(server, large):
    server.files["large.iac"] = large.read_bytes()
    reader = iac.PackReader(server.url("large.iac"))
    opened = reader.stats
    assert opened["bytes"] < 600_000
    columns = ["label_3", "label_4"]
    server.forget()
    table = reader.read_index_table(columns)
    assert table == iac.PackReader(large).read_index_table(columns)
    assert len(server.gets()) == 1  # they are neighbours
    assert reader.stats["bytes"] - opened["bytes"] < 2 * 40_000 * 8 + 1000


def test_shuffled_records_are_few_requests(server, large):
    server.files["large.iac"] = large.read_bytes()
    rows = np.random.default_rng(1).permutation(40_000)[:100]
    expected = iac.PackReader(large).read_payloads(rows)
    reader = iac.PackReader(server.url("large.iac"))
    assert reader.read_payloads([0]) == iac.PackReader(large).read_payloads([0])
    server.forget()
    assert reader.read_payloads(rows) == expected
    assert len(server.requests) < 60
    narrow = iac.PackReader(server.url("large.iac"), remote=iac.RemoteOptions(gap=0))
    narrow.read_payloads(rows)
    server.forget()
    assert narrow.read_payloads(rows) == expected
    assert len(server.requests) == 100
    assert server.bytes_sent == sum(map(len, expected))


def test_neighbours_are_one_request_up_to_a_group(server, large):
    server.files["large.iac"] = large.read_bytes()
    options = iac.RemoteOptions(group=1 << 20)
    reader = iac.PackReader(server.url("large.iac"), remote=options)
    rows = range(10_000, 20_000)
    reader.native.locate(np.arange(10_000, 20_000))
    server.forget()
    assert reader.read_payloads(rows) == iac.PackReader(large).read_payloads(rows)
    assert len(server.gets()) == 3
    assert all(request.stop - request.start <= 1 << 20 for request in server.gets())


def test_requests_are_under_way_together(server, large):
    server.files["large.iac"] = large.read_bytes()
    server.latency = 0.05
    reader = iac.PackReader(server.url("large.iac"), remote=iac.RemoteOptions(gap=0))
    rows = list(range(0, 40_000, 500))
    assert reader.read_payloads(rows) == iac.PackReader(large).read_payloads(rows)
    assert reader.stats["requests"] > 80


@pytest.mark.parametrize("name", ["memory://cohort/{}.iac", "zip://{}.iac::{}"])
def test_other_file_systems(name, pack, tmp_path):
    if name.startswith("memory"):
        url = name.format("ten")
        fsspec.filesystem("memory").pipe(url, pack.read_bytes())
    else:
        with zipfile.ZipFile(tmp_path / "packs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(pack, "ten.iac")
        url = name.format("ten", tmp_path / "packs.zip")
    reader = iac.PackReader(url)
    assert reader.read_payloads(range(10)) == iac.PackReader(pack).read_payloads(range(10))
    assert str(reader.package_path) == url
    with pytest.raises(iac.PackNotFoundError, match="no such file"):
        iac.PackReader(url.replace("ten", "eleven"))


def test_file_urls_are_local_paths(pack, tmp_path):
    spaced = (tmp_path / "a b.iac").resolve()
    spaced.write_bytes(pack.read_bytes())
    for url in (f"file://{pack}", spaced.as_uri(), f"file://localhost{pack}"):
        reader = iac.PackReader(url)
        assert reader.package_path in (pack, spaced)
        assert len(reader.read_payload_views([1])) == 1
        record = references([url], [1])
        assert iac.decode(table_of(record))["payload"].to_pylist() == reader.read_payloads([1])
        with pytest.raises(iac.PackError, match="not among the packs"):
            iac.decode(table_of(record), packs=[tmp_path / "elsewhere"])


def test_views_are_of_local_files_only(served):
    reader = iac.PackReader(served)
    assert not reader.mmap_enabled
    with pytest.raises(RuntimeError, match="only local files can be mapped"):
        reader.read_payload_views([0])


def test_references_are_decoded_by_the_storage_given(server, served, pack):
    storage = fsspec.filesystem("http", skip_instance_cache=True)
    stamps = stamps_of(pack, [4, 2])
    table = table_of(references([served] * 2, [4, 2], stamps))
    expected = iac.PackReader(pack).read_payloads([4, 2])
    for _ in range(3):
        assert iac.decode(table, storage=storage)["payload"].to_pylist() == expected
    # Opened once, then asked whether it is still the same.
    assert [request.method for request in server.requests] == ["HEAD", "GET", "HEAD", "HEAD"]
    with pytest.raises(iac.PackError, match="pass storage= to open it"):
        iac.decode(table)


@pytest.mark.parametrize("tells_version", [True, False])
def test_another_pack_at_the_same_url_is_stale(server, served, pack, tmp_path, tells_version):
    server.tells_version = tells_version
    storage = fsspec.filesystem("http")
    table = table_of(references([served], [4], stamps_of(pack, [4])))
    iac.decode(table, storage=storage)
    others = [payload[::-1] for payload in payloads_of(10)]
    other = write_pack(tmp_path / "other.iac", others)
    assert len(other.read_bytes()) == len(pack.read_bytes())
    server.files["ten.iac"] = other.read_bytes()
    with pytest.raises(iac.StaleReferenceError, match="row 4"):
        iac.decode(table, storage=storage)
    table = table_of(references([served], [4], stamps_of(other, [4])))
    assert iac.decode(table, storage=storage)["payload"].to_pylist() == [others[4]]


def test_refused_references_show_no_secrets():
    url = "https://user:hush@host/x.iac?signature=hush"
    for storage in (None, fsspec.filesystem("memory")):
        with pytest.raises(iac.PackError, match=r"https://host/x\.iac: is not") as raised:
            iac.decode(table_of(references([url], [0])), storage=storage)
        assert "hush" not in f"{raised.value} {raised.value.pack}"


@pytest.mark.parametrize(
    "url",
    ["zip://ten.iac::http://127.0.0.1/x.zip", "simplecache::http://127.0.0.1/ten.iac"],
)
def test_chained_urls_are_refused_in_references(url):
    table = table_of(references([url], [0]))
    for storage in (None, fsspec.filesystem("http"), fsspec.filesystem("memory")):
        with pytest.raises(iac.PackError, match="a chained URL, which references do not open"):
            iac.decode(table, storage=storage)


@pytest.mark.parametrize("storage", ["s3", {"secret": "hush"}, fsspec])
def test_a_storage_that_is_none(pack, storage):
    table = table_of(references([str(pack)], [0]))
    for read in (
        iac.decode,
        iac.iter_decode,
        lambda table, storage: iac.write_pack(table, pack.parent / "out.iac", storage=storage),
    ):
        with pytest.raises(TypeError, match="expected a file system") as raised:
            read(table, storage=storage)
        assert "hush" not in str(raised.value)


def test_encoded_dots_do_not_leave_a_folder(server, served):
    server.files["open/ten.iac"] = server.files["ten.iac"]
    url = server.url("open/%2e%2e/ten.iac")
    with pytest.raises(iac.PackError, match="goes up"):
        iac.decode(
            table_of(references([url], [0])),
            storage=fsspec.filesystem("http"),
            packs=[server.url("open")],
        )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"gap": -1}, "gap is -1"),
        ({"group": 0}, "group is 0"),
        ({"requests": 0}, "requests is 0"),
        ({"retries": -1}, "retries is -1"),
    ],
)
def test_options_out_of_range(options, error):
    with pytest.raises(ValueError, match=error):
        iac.RemoteOptions(**options)


def test_options_of_another_type():
    with pytest.raises(TypeError, match="gap is '1 MiB'"):
        iac.RemoteOptions(gap="1 MiB")
