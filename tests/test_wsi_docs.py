"""The examples of docs/wsi.md run, in the order they stand in."""

import re
from pathlib import Path

import numpy as np
from slides import tissue, write_svs

GUIDE = Path(__file__).parent.parent / "docs" / "wsi.md"


def test_the_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.full((600, 800, 3), 243, np.uint8)
    pixels[100:300, 200:450] = tissue(250, 200)
    write_svs(Path("case.svs"), pixels, compressionargs={"level": 60})
    building, joining = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(building, names)
    assert 0 < len(names["grid"]) < len(names["cells"]) * 64
    exec(joining, names)
    stained = names["stained"].to_arrow_table()
    tissues = [share for share in names["cells"]["tissue"].to_pylist() if share >= 0.5]
    assert sorted(stained["tissue"].to_pylist()) == sorted(tissues) != []
    assert names["iac_query"].decode(names["stained"])["payload"].null_count == 0
