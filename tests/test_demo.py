"""The demo that the README promises."""

import runpy
from pathlib import Path

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


def test_the_demo_runs_to_its_end(capsys):
    runpy.run_path(str(DEMO), run_name="__main__")
    shown = capsys.readouterr().out
    assert "payload: large_string" in shown
    assert "iatro-base-iac does, too" in shown
    assert "tumour_at_margin" in shown
    assert "as_='tensor': (7, 32, 48, 3) uint8" in shown
