"""Servers that break, lie and change, and secrets that must not get about."""

from __future__ import annotations

import pickle
import re
import traceback

import fsspec
import pyarrow as pa
import pytest
from http_files import HttpFiles
from packs import item_table, payloads_of, write_pack
from references import references, table_of

import iac_query as iac
from iac_query._urls import public_url

#: Long enough that the records are not in the head of the file.
COUNT, SIZE = 400, 2000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return write_pack(tmp_path_factory.mktemp("large") / "l.iac", payloads_of(COUNT, SIZE))


@pytest.fixture
def server(large):
    with HttpFiles() as files:
        files.files["l.iac"] = large.read_bytes()
        yield files


@pytest.fixture
def quick(monkeypatch):
    """Pauses as they would be, without the waiting."""
    pauses = []
    monkeypatch.setattr("iac_query.remote._pause", pauses.append)
    return pauses


def open_reader(server, **options):
    return iac.PackReader(server.url("l.iac"), remote=iac.RemoteOptions(**options))


FAR = [COUNT - 2, COUNT - 3]


def times(count, fault):
    """Faults for that many requests: aiohttp itself tries a broken connection once more."""
    return [fault] * (2 * count if fault == "drop" else count)


@pytest.mark.parametrize("fault", ["drop", "cut", "short", 500, 502, 503, 429, 408])
def test_what_may_pass_is_asked_again(server, large, quick, fault):
    reader = open_reader(server)
    server.faults.extend(times(2, fault))
    assert reader.read_payloads(FAR) == iac.PackReader(large).read_payloads(FAR)
    assert reader.stats["retries"] == len(quick) == 2
    assert 0.05 <= quick[0] <= 0.1 <= quick[1] <= 0.2


@pytest.mark.parametrize("fault", ["drop", 503])
def test_questions_are_asked_again_too(server, quick, fault):
    server.head_faults.append(fault)
    server.faults.append(fault)  # fsspec tries a GET where a HEAD fails
    assert len(open_reader(server)) == COUNT


@pytest.mark.parametrize(
    ("fault", "error", "reason"),
    [
        (404, iac.PackNotFoundError, "there is no such file"),
        (403, PermissionError, "access denied"),
        (400, OSError, "HTTP status 400"),
        ("long", iac.PackError, "does the server ignore ranges"),
    ],
)
def test_what_will_not_pass_is_not(server, fault, error, reason):
    reader = open_reader(server)
    server.faults.append(fault)
    with pytest.raises(error, match=reason):
        reader.read_payloads(FAR)
    assert reader.stats["retries"] == 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("drop", "tried 3 times"),
        (500, "status 500, tried 3 times"),
        ("short", "the answer has"),
    ],
)
def test_what_does_not_pass_is_an_error_in_the_end(server, quick, fault, reason):
    reader = open_reader(server, retries=2)
    server.faults.extend(times(3, fault))
    with pytest.raises((OSError, iac.PackError), match=reason) as raised:
        reader.read_payloads(FAR)
    assert server.url("l.iac") in str(raised.value)
    assert reader.read_payloads(FAR)  # the reader is still good


def test_a_dead_server_ends_a_batch_soon(server, quick):
    reader = open_reader(server, retries=1, gap=0, requests=2)
    reader.native.locate([0])
    server.faults.extend([500] * 10_000)
    server.forget()
    failures = []
    batch = reader.read_payloads_contiguous(range(200, COUNT), on_error="null", report=failures)
    assert batch.validity is not None
    assert len(failures) == 200
    assert "HTTP status 500" in str(failures[0].error)
    assert len(server.gets()) <= 8


def test_no_server_at_all(quick):
    with pytest.raises(OSError, match="cannot be opened"):
        iac.PackReader("http://127.0.0.1:9/x.iac", remote=iac.RemoteOptions(retries=1))


def test_a_missing_pack(server):
    with pytest.raises(iac.PackNotFoundError, match="there is no such file") as raised:
        iac.PackReader(server.url("none.iac"))
    assert raised.value.pack == server.url("none.iac")
    assert len(server.requests) <= 2


def test_a_file_that_is_no_pack(server):
    server.files["x.iac"] = b"<html>" * 20_000
    with pytest.raises(iac.PackError, match=r"x\.iac: bad magic"):
        iac.PackReader(server.url("x.iac"))


def test_a_server_that_ignores_ranges(server, pack):
    server.ranges = False
    server.files["ten.iac"] = pack.read_bytes()
    small = iac.PackReader(server.url("ten.iac"))  # all of it is asked for anyway
    assert small.read_payload(9) == iac.PackReader(pack).read_payload(9)
    reader = open_reader(server)
    with pytest.raises(OSError, match="ignores ranges"):
        reader.read_payloads(FAR)


@pytest.mark.parametrize("tells_version", [True, False])
def test_a_pack_that_changes_is_an_error(server, tmp_path, tells_version):
    server.tells_version = tells_version
    reader = open_reader(server)
    assert reader.read_payloads(FAR)
    other = write_pack(tmp_path / "o.iac", [b"x" * len(p) for p in payloads_of(COUNT, SIZE)], n=1)
    server.files["l.iac"] = other.read_bytes()
    for read in (
        lambda: reader.read_payloads(FAR),
        lambda: reader.read_payloads(FAR, verify=False),
        lambda: reader.read_payload(FAR[0]),
        lambda: reader.read_data_span(COUNT * SIZE - 100, 10),
    ):
        with pytest.raises(iac.PackError, match=r"l\.iac.*has changed since it was opened"):
            read()


def test_a_pack_that_shrinks_is_an_error(server, quick):
    reader = open_reader(server)
    server.files["l.iac"] = server.files["l.iac"][:300_000]
    with pytest.raises(iac.PackError, match="has changed since it was opened"):
        reader.read_payloads(FAR)


def test_a_pack_that_goes_is_an_error(server):
    reader = open_reader(server)
    server.files.clear()
    with pytest.raises(iac.PackNotFoundError):
        reader.read_payloads(FAR)


#: None of them stands in the source, which tracebacks show.
TOKEN, USER, PASSWORD, SIGNATURE, FRAGMENT = (f"hush{number}" for number in range(5))


def test_secrets_stay_out_of_names_errors_and_references(server, quick):
    server.token = TOKEN
    plain = server.url("l.iac")
    signed = f"{plain}?signature={SIGNATURE}"
    options = {"headers": {"Authorization": TOKEN}}
    texts = []

    def refused(read):
        with pytest.raises((OSError, ValueError)) as raised:
            read()
        texts.append("".join(traceback.format_exception(raised.value)))

    refused(lambda: iac.PackReader(signed))
    with_user = signed.replace("http://", f"http://{USER}:{PASSWORD}@") + f"#{FRAGMENT}"
    refused(lambda: iac.PackReader(with_user, remote=iac.RemoteOptions(retries=0)))

    reader = iac.PackReader(signed, options)
    assert SIGNATURE in server.requests[-1].path
    assert str(reader.package_path) == reader.native.path == plain
    texts.append(repr(reader))
    for fault in ("drop", 404, 403, 500, "short", "long", "cut"):
        server.faults.extend(times(5, fault))
        refused(lambda: reader.read_payloads(FAR))
        server.faults.clear()
    assert len(texts) == 10
    assert not [text for text in texts if "hush" in text]
    assert TOKEN.encode() in pickle.dumps(reader)  # and it has to be
    assert pickle.loads(pickle.dumps(reader)).read_payloads(FAR) == reader.read_payloads(FAR)


def test_decode_reports_failures_of_the_network_by_row(server, quick):
    storage = fsspec.filesystem("http")
    table = table_of(references([server.url("l.iac")] * 2, FAR))
    iac.decode(table_of(references([server.url("l.iac")], [0])), storage=storage)
    server.faults.extend([500] * 5)
    decoded = iac.decode(table, storage=storage, on_error="null")
    assert decoded["payload"].to_pylist() == [None, None]
    assert all("HTTP status 500" in reason for reason in decoded["payload_error"].to_pylist())


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("http://bob:hun/hunter2@host/x", "http://host/x"),
        ("http://bob:hun?hunter2@host/x", "http://host/x"),
        ("http://bob:hun#hunter2@host/x?hunter3", "http://host/x"),
        ("http://bob:hun::hunter2@host/x", "http://host/x"),
        ("zip://a.iac::http://bob:hun/hunter2@host/x", "zip://a.iac::http://host/x"),
        ("http://bob:hunter2@host:80/x", "http://host:80/x"),
        ("http://[::1]:80/a@b.iac", "http://[::1]:80/a@b.iac"),
        ("s3://bucket/a@b:c.iac", "s3://bucket/a@b:c.iac"),
    ],
)
def test_public_urls(url, public):
    assert public_url(url) == public


def test_scans_that_do_not_go_together_keep_secrets(server, tmp_path):
    for name, values in (("a", [1, 2]), ("b", [{"x": 1}, None])):
        index = item_table(2).append_column("odd", pa.array(values))
        path = write_pack(tmp_path / name, payloads_of(2), index)
        server.files[f"{name}.iac"] = path.read_bytes()
    urls = [server.url(f"{name}.iac") for name in "ab"]
    with pytest.raises(iac.PackError, match="do not go together") as raised:
        iac.scan_arrow([f"{url}?key={SIGNATURE}" for url in urls], ["odd"])
    assert all(url in str(raised.value) for url in urls)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("zip://a.iac::http://USER:PASSWORD@SERVER/l.iac", "cannot be opened: BadZipFile"),
        ("zip://a.iac::http://USER:PASSWORD@SERVER/none", "there is no such file"),
        ("github://USER:PASSWORD@127.0.0.1:9/x.iac", "cannot be opened"),
        ("HTTP://USER:PASSWORD@SERVER/l.iac", "no such scheme, they are lower-case"),
        ("reference://USER:PASSWORD@x/y.iac", "storage_options"),
        ("http://USER:PASSWORD@host:99999/x", "is the URL right"),
        ("http://", "is the URL right"),
        ("http://USER:PASSWORD@[::1/x", "cannot be opened"),
    ],
)
def test_file_systems_that_cannot_be_made(server, quick, monkeypatch, url, reason):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url = url.replace("SERVER", server.url("").split("/")[2])
    url = url.replace("USER", USER).replace("PASSWORD", PASSWORD)
    with pytest.raises(OSError, match=re.escape(reason)) as raised:
        iac.PackReader(url, remote=iac.RemoteOptions(retries=1))
    error = raised.value
    assert public_url(url) in str(error)
    assert error.__cause__ is error.__context__ is None
    assert "hush" not in "".join(traceback.format_exception(error)) + repr(error.args)


def test_redirects_without_an_end(server):
    server.redirects["x.iac"] = "/x.iac"
    with pytest.raises(OSError, match="too many redirects"):
        iac.PackReader(server.url("x.iac"))


def test_a_refusal_says_its_reason_once(server, quick):
    reader = open_reader(server)
    for fault, reason in ((400, "HTTP status 400"), (404, "there is no such file")):
        server.faults.append(fault)
        with pytest.raises((OSError, iac.PackError)) as raised:
            reader.read_payloads(FAR)
        text = str(raised.value)
        assert text.count(server.url("l.iac")) == text.count(reason) == 1, text
        assert text.count("Errno") <= 1
