"""A cohort's payloads in Polars and Arrow: one in twenty of 20,000 records of 8 to 32 KB.

A filtered lazy frame over a pack against the bare gather of the same rows, and against Polars on
the payloads as BLOBs in Parquet. Payloads are stored as they are in all of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import iac_query

from ._measure import print_in_pairs
from .cohort import RECORDS, make_table, write

TARGETS = {"bare gather": 2.0, "Polars on Parquet BLOBs": 1 / 5}


def main(records: int = RECORDS, rounds: int = 15) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(records)
        pack, parquet, _ = write(Path(folder), table)
        chosen = np.flatnonzero(table["g"].to_numpy() < 5)
        expected = table.take(chosen)["payload"].combine_chunks()
        reader = iac_query.VariableRecordPack(pack)

        def polars(frame: pl.LazyFrame, engine: str = "in-memory") -> pl.Series:
            picked = frame.filter(pl.col("g") < 5).select("id", "payload")
            return picked.collect(engine=engine)["payload"]

        def after_a_sort() -> pl.Series:
            frame = iac_query.scan_iac(pack).select("id", "g", "record").filter(pl.col("g") < 5)
            payload = pl.col("record").iac.payload()
            return frame.sort("id").select(payload).collect().to_series()

        contestants = {
            "Polars filter": lambda: polars(iac_query.scan_iac(pack)),
            "the same, streaming": lambda: polars(iac_query.scan_iac(pack), "streaming"),
            "record.iac.payload() after a sort": after_a_sort,
            "scan_arrow": lambda: iac_query.scan_arrow(
                pack, ["id", "payload"], pc.field("g") < 5
            ).read_all()["payload"],
            "bare gather": lambda: pa.chunked_array(
                [reader.read_many_contiguous(chosen).to_arrow()]
            ),
            "Polars on Parquet BLOBs": lambda: polars(pl.scan_parquet(parquet)),
        }
        for name, run in contestants.items():
            found = run()
            found = found.to_arrow() if isinstance(found, pl.Series) else found
            if not pc.all(pc.equal(found.cast(pa.large_binary()), expected)).as_py():
                raise AssertionError(f"{name}: other payloads")

        title = f"{len(chosen):,} of {records:,} records, {expected.nbytes >> 20} MiB; milliseconds"
        first = contestants.pop("Polars filter")
        print_in_pairs(title, "Polars filter", first, contestants, TARGETS, rounds)


if __name__ == "__main__":
    main()
