"""The notebooks, run from their first cell to their last."""

import base64
import io
import os
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


class Shown:
    """What the cells of a notebook show, once it was run somewhere else than where it lies."""

    def __init__(self, name: str, folder: Path) -> None:
        notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
        resources = {"metadata": {"path": str(folder)}}
        # Without the user's own settings.
        backend = "module://matplotlib_inline.backend_inline"
        env = {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "MPLBACKEND": backend}
        client = NotebookClient(notebook, timeout=120, startup_timeout=120, resources=resources)
        client.execute(env=env)
        self.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]

    def of(self, code: str) -> dict[str, str]:
        """All that the one cell with this code in it shows, by MIME type; what it prints as
        text/plain.
        """
        (cell,) = [cell for cell in self.cells if code in cell.source]
        shown: dict[str, str] = {}
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            for kind, text in data.items():
                shown[kind] = shown.get(kind, "") + text
        return shown


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory):
    """Runs a notebook, each once."""
    made: dict[str, Shown] = {}

    def run(name: str) -> Shown:
        if name not in made:
            made[name] = Shown(name, tmp_path_factory.mktemp("elsewhere"))
        return made[name]

    return run


def images_in(html: str) -> list[np.ndarray]:
    """The thumbnails of an HTML text."""
    found = re.findall(r'src="data:image/png;base64,([^"]*)"', html)
    return [picture(text) for text in found]


def picture(text: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"))


def colours(text: str) -> int:
    """How many different colours there are in a picture."""
    return len(np.unique(picture(text).reshape(-1, 3), axis=0))


def purple(image: np.ndarray) -> float:
    return float((image[..., 1] < 115).mean())


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_says_what_it_needs(name: str):
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    nbformat.validate(notebook)
    assert (NOTEBOOKS / name).stat().st_size < 12_000
    assert all(cell.get("outputs", []) == [] for cell in notebook.cells)
    assert all(cell.get("execution_count") is None for cell in notebook.cells)
    assert "pip install 'iac-query[" in notebook.cells[0].source


def test_the_cohort_in_sql(shown):
    notebook = shown("cohort_sql.ipynb")
    assert "image_tiles" in notebook.of('PackReader("tiles.iac")')["text/html"]
    cohort = notebook.of('con.sql("FROM cohort")')["text/plain"]
    assert re.findall(r"P\d\d", cohort) == ["P01", "P04", "P07", "P10"]  # every third
    table = notebook.of("%load_ext")["text/html"]
    assert "32 rows" in table
    # P01 has tumour in its first two tiles, P04 in its first five: the first rows are of P01.
    assert [purple(tile) > 0.2 for tile in images_in(table)] == [True] * 2 + [False] * 4
    assert notebook.of("tensor.shape, tensor.dtype")["text/plain"].startswith("((32, 48, 48, 3)")
    plot = notebook.of("plt.show()")
    assert colours(plot["image/png"]) > 10
    assert "4 patients, 32 tiles, (32, 48, 48, 3) uint8" in plot["text/plain"]
    batch = notebook.of("write_pack")["text/html"]
    assert "ImageBatch" in batch
    assert [purple(tile) > 0.2 for tile in images_in(batch)] == [True] * 2 + [False] * 6


def test_the_cohort_in_polars_is_that_of_sql(shown):
    notebook, sql = shown("cohort_polars.ipynb"), shown("cohort_sql.ipynb")
    assert notebook.of("build_tile_package") == sql.of("build_tile_package") == {}
    cohort = notebook.of("str.contains")["text/plain"]
    assert re.findall(r"P\d\d", cohort) == ["P01", "P04", "P07", "P10"]
    assert "Array(UInt8, shape=(48, 48, 3))" in notebook.of("decoded.schema")["text/plain"]
    plots = [each.of("plt.show()") for each in (notebook, sql)]
    assert plots[0]["text/plain"].splitlines()[-1] == plots[1]["text/plain"].splitlines()[-1]
    assert (picture(plots[0]["image/png"]) == picture(plots[1]["image/png"])).all()
    assert "image_tiles" in notebook.of("write_pack")["text/html"]


def test_both_cohorts_are_of_the_same_patients():
    first = [nbformat.read(NOTEBOOKS / f"cohort_{kind}.ipynb", 4) for kind in ("sql", "polars")]
    packs = [notebook.cells[2].source for notebook in first]
    assert "build_clinical_text_pack(" in packs[0]
    assert packs[0] == packs[1]


def test_neighbours(shown):
    notebook = shown("neighbours.ipynb")
    assert "teacher_features" in notebook.of("PackReader")["text/html"]
    nearest = notebook.of("SET VARIABLE")["text/plain"]
    assert re.findall(r"P\d-(\w+)-\d+", nearest) == ["tumour"] * 6
    assert re.search(r"P1-tumour-0 .* 1\.0 ", nearest)
    tiles = images_in(notebook.of("%load_ext")["text/html"])
    assert [purple(tile) > 0.2 for tile in tiles] == [True] * 6
    plot = notebook.of("plt.show()")
    assert colours(plot["image/png"]) > 10
    right, of = re.search(r"(\d+) of (\d+) neighbours show the same", plot["text/plain"]).groups()
    assert int(of) == 8 * 12 and int(right) > 90
