"""Packs in S3, as moto's server has it."""

from __future__ import annotations

import threading
import uuid

import fsspec
import pytest
from packs import payloads_of, write_pack
from references import references, stamps_of, table_of

import iac_query as iac

pytest.importorskip("s3fs")
server = pytest.importorskip("moto.server")

COUNT = 2000


@pytest.fixture(scope="module")
def options():
    found = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    yield {
        "key": "hush1",
        "secret": "hush2",
        "endpoint_url": f"http://{host}:{port}",
    }
    found.stop()


@pytest.fixture
def stored(options, tmp_path):
    """A pack in a bucket of its own, and the same as a file."""
    path = write_pack(tmp_path / "p.iac", payloads_of(COUNT, 500))
    storage = fsspec.filesystem("s3", **options)
    bucket = f"packs-{uuid.uuid4().hex}"
    storage.mkdir(bucket)
    url = f"s3://{bucket}/p.iac"
    storage.pipe(url, path.read_bytes())
    return url, path


ROWS = [1999, 3, 1000, 3]


def test_a_pack_in_s3(stored, options):
    url, path = stored
    reader = iac.PackReader(url, options)
    assert reader.index_table == iac.PackReader(path).index_table
    assert reader.read_payloads(ROWS) == iac.PackReader(path).read_payloads(ROWS)
    assert "hush" not in repr(reader)
    assert reader.stats["requests"] <= 5


def test_references_into_s3(stored, options):
    url, path = stored
    storage = fsspec.filesystem("s3", **options)
    table = table_of(references([url] * 4, ROWS, stamps_of(path, ROWS)))
    decoded = iac.decode(table, storage=storage, packs=[url.rpartition("/")[0]])
    assert decoded["payload"].to_pylist() == iac.PackReader(path).read_payloads(ROWS)


def test_an_object_that_is_replaced_is_an_error(stored, options, tmp_path):
    url, _ = stored
    reader = iac.PackReader(url, options)
    other = write_pack(tmp_path / "o.iac", payloads_of(COUNT, 501))
    fsspec.filesystem("s3", **options).pipe(url, other.read_bytes())
    with pytest.raises(iac.PackError, match="has changed since it was opened"):
        reader.read_payloads([1999], verify=False)
    assert iac.PackReader(url, options).read_payloads([1999]) == payloads_of(COUNT, 501)[-1:]


def test_what_s3_refuses_names_the_object_alone(stored, options):
    url, _ = stored
    with pytest.raises(iac.PackNotFoundError, match="there is no such file") as raised:
        iac.PackReader(url + "x", options)
    assert "hush" not in str(raised.value)


def test_eight_threads_read_from_s3(stored, options):
    url, path = stored
    reader = iac.PackReader(url, options)
    expected = iac.PackReader(path).read_payloads(range(COUNT))
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(reader.read_payloads(range(COUNT))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_no_credentials(stored, options, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(PermissionError, match="give the credentials as storage_options"):
        iac.PackReader(stored[0], {"endpoint_url": options["endpoint_url"]})
