"""What objects show of themselves in a notebook."""

import html
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from packs import DATA, item_table, payloads_of, slide_table, write_matrix
from references import references, table_of
from test_images import image, mixed_images, write_images

import iac_query as iac
from iac_query import _html

HOSTILE = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """The tags of a text, each of which must be closed where it should."""

    VOID = ("img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        assert all(name in ("style", "src", "title", "alt") for name, _ in attrs)
        self.names.append(tag)
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag


def shown(thing) -> str:
    """The HTML of a thing, which is well formed, has only harmless tags and is small."""
    text = thing if isinstance(thing, str) else thing._repr_html_()
    allowed = {"div", "b", "i", "small", "table", "tr", "th", "td", "details", "summary", "pre"}
    assert set(Tags(text).names) <= allowed | {"img", "br", "p"}
    assert len(text) < 1_000_000
    text.encode("utf-8")
    return text


@pytest.fixture
def ipython():
    shell = InteractiveShell.instance()
    yield shell
    shell.extension_manager.unload_extension("iac_query")
    InteractiveShell.clear_instance()


def displayed(shell, thing) -> str | None:
    return shell.display_formatter.format(thing)[0].get("text/html")


def test_a_pack_shows_counts_schema_and_header(tmp_path):
    path = DATA / "notes.iac"
    for pack in (iac.PackReader(path), iac.VariableRecordPack(path)):
        text = shown(pack)
        for word in ("notes.iac", "clinical_notes", "zstd", "40", "note_id", "site", "date32"):
            assert word in text
        assert type(pack).__name__ in text
    matrix = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", np.zeros((3, 17), np.float16)))
    assert "17 float16" in shown(matrix)


def test_a_closed_pack_shows_its_plain_form(pack):
    reader = iac.PackReader(pack)
    reader.close()
    assert reader._repr_html_() is None


def test_hostile_names_and_values_are_escaped(tmp_path):
    path = tmp_path / "<b>.iac"
    index = item_table(2).append_column(HOSTILE, pa.array([HOSTILE, HOSTILE]))
    header = {"payload_type": HOSTILE, HOSTILE: HOSTILE, "codec": HOSTILE}
    iac.build_pack(path, header, slide_table(), index, payloads_of(2))
    for text in (
        shown(iac.PackReader(path)),
        shown(_html.table_html(index.append_column("payload", index[HOSTILE]))),
    ):
        assert HOSTILE not in text and html.escape(HOSTILE) in text


def test_batches_of_images_show_thumbnails(tmp_path):
    images = mixed_images()
    pack = iac.VariableRecordPack(write_images(tmp_path / "x.iac", images))
    batch = pack.read_many_contiguous(range(len(images)))
    text = shown(batch)
    assert text.count("<img") == min(len(images), 12)
    assert str(images[0].shape) in text
    empty = pack.read_many_contiguous([])
    assert "<img" not in shown(empty)
    missing = pack.read_many_contiguous([0, 999], on_error="null")
    assert shown(missing).count("<img") == 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 4, 3), (5, 4, 2), (5, 4, 4), (9000, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "float16", "float32"])
def test_every_kind_of_image_has_a_thumbnail(shape, dtype):
    values = (np.arange(np.prod(shape)).reshape(shape) % 99).astype(dtype)
    if dtype.startswith("float"):
        values[0, 0] = np.nan
        values[-1, -1] = np.inf
    text = shown(_html.thumbnail(values, HOSTILE))
    assert text.startswith("<img") and HOSTILE not in text and len(text) < 50_000


def test_without_pillow_there_are_facts(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    path = write_images(tmp_path / "x.iac", [image((8, 6, 3), "uint8", 1)])
    text = shown(iac.VariableRecordPack(path).read_many_contiguous([0]))
    assert "<img" not in text and "(8, 6, 3) uint8" in text
    decoded = iac.decode(table_of(references([str(path)], [0])))
    assert "(8, 6, 3) uint8" in shown(_html.table_html(decoded))


def test_batches_of_records_show_their_sizes(pack):
    batch = iac.PackReader(pack).read_payloads_contiguous(range(10))
    text = shown(batch)
    assert "10" in text and f"{len(batch.buffer):,}" in text
    assert "record 1" not in text
    assert shown(iac.PackReader(pack).read_payloads_contiguous([]))


def test_tables_with_payloads_show_themselves_once_asked(ipython, tmp_path):
    notes = table_of(references([str(DATA / "notes.iac")] * 40, range(40)), n=range(40))
    decoded = iac.decode(notes, as_="text")
    assert displayed(ipython, decoded) is None
    ipython.run_line_magic("load_ext", "iac_query")
    text = shown(displayed(ipython, decoded))
    assert "40 rows" in text and "Resection" in text
    assert text.count("<tr>") == 7
    assert displayed(ipython, notes) is None
    path = write_images(tmp_path / "x.iac", mixed_images())
    images = iac.decode(table_of(references([str(path)] * 4, range(4))))
    assert shown(displayed(ipython, images)).count("<img") == 4
    ipython.run_line_magic("unload_ext", "iac_query")
    assert displayed(ipython, decoded) is None


def test_values_of_every_type_are_shown_and_clipped():
    columns = {
        "payload": pa.array(["x" * 10**6, None]),
        "binary": pa.array([b"y" * 5000, b""]),
        "surrogate": pa.array([b"\xed\xa0\x80", b"\xff"]).cast(pa.binary()).view(pa.binary()),
        "list": pa.array([list(range(10**5)), None]),
        "fixed": pa.array([[1.5] * 1000] * 2, pa.list_(pa.float32(), 1000)),
        "nested": pa.array([{"a": {"b": ["z" * 10**5]}}, None]),
        "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())),
        "dictionary": pa.array(["u", "v"]).dictionary_encode(),
        "time": pa.array([1, 2], pa.timestamp("ns")),
        "view": pa.array(["v" * 10**5, "w"], pa.string_view()),
        "looks like an image": pa.array(
            [
                {"height": 10**9, "width": 10**9, "channels": 3, "dtype": HOSTILE, "data": b""},
                {"height": None, "width": 1, "channels": 1, "dtype": "O", "data": None},
            ]
        ),
        **{f"column {i}": pa.array([i, i]) for i in range(500)},
    }
    text = shown(_html.table_html(pa.table(columns)))
    assert len(text) < 30_000
    assert "5,000 bytes" in text and "(100,000)" in text and "column 400" not in text
    assert not re.search("x{200}|z{200}|v{200}", text)


def test_huge_headers_and_schemas_are_clipped(tmp_path):
    index = pa.table({f"{'c' * 300}{i}": [1] for i in range(2000)})
    iac.build_pack(tmp_path / "x.iac", {"note": "n" * 60_000}, slide_table(), index, [b""])
    assert len(shown(iac.PackReader(tmp_path / "x.iac"))) < 80_000
