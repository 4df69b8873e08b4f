"""A cohort out of an adapter's packs is such a pack, or an error that says why not."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from iatro.iac.adapters import features, text, text_pair, tiles, validate
from packs import DATA, assemble, layout_index, slide_table
from references import references, table_of

import iac_query as iac

PACKS = ("tiles_lossless", "features_f32", "clinical_text", "clinical_text_pair")


@pytest.fixture
def con():
    with iac.connect() as con:
        yield con


@pytest.mark.parametrize("name", PACKS)
def test_all_of_a_pack_is_that_pack(con, tmp_path: Path, name: str):
    source = DATA / f"{name}.iac"
    for number, rows in enumerate((con.sql(f"FROM '{source}'"), con.sql(f"FROM '{source}'").pl())):
        iac.write_pack(rows, tmp_path / f"{number}.iac")
        assert (tmp_path / f"{number}.iac").read_bytes() == source.read_bytes()
