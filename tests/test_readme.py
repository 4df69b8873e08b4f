"""The README's examples run, in the order they stand in, and give what it says."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def after_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as that of the sources is after ``./dev demo``."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    from hospital import build_hospital

    folder = tmp_path / "build" / "demo"
    folder.mkdir(parents=True)
    build_hospital(folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code: str, names: dict) -> object:
    """Runs code as a notebook does: the value of its last expression, in a block as well."""
    tree = ast.parse(code)
    body = tree.body
    while isinstance(body[-1], ast.With):
        body = body[-1].body
    assert isinstance(body[-1], ast.Expr)
    last = body[-1].value
    name = ast.Name("last", ast.Store())
    body[-1] = ast.copy_location(ast.Assign([name], last), last)
    exec(compile(ast.fix_missing_locations(tree), "README.md", "exec"), names)
    return names["last"]


def test_the_examples(after_the_demo: Path):
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    tensor, reports, _, text = [run(block, names) for block in blocks]
    assert f"# {tensor.shape} {tensor.dtype}, without" in README
    assert len(reports) == 24 and reports.columns == ["patient_id", "text"]
    invaded = reports.filter(reports["text"].str.contains("invasion is present"))
    assert len(invaded) * 12 == len(tensor)
    with names["PackReader"]("build/demo/invasion.iac") as cohort:
        assert len(cohort) == len(tensor)
    assert f"bytes(batch[0])  # {text!r}" in README


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []
