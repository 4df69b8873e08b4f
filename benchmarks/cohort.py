"""A cohort's payloads as Arrow: one in twenty of 20,000 records of 8 to 32 KB, picked by a filter.

A pack queried with SQL and decoded, against the bare gather of the same rows, the payloads as BLOBs
in Parquet queried by DuckDB, and Lance's filter. Payloads are stored as they are in all of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import iac_query

from ._measure import print_in_pairs

RECORDS = 20_000
TARGETS = {"bare gather": 1.5, "Parquet BLOBs in DuckDB": 1 / 8, "Lance filter": 1 / 3}


def make_table(records: int) -> pa.Table:
    random = np.random.default_rng(5)
    lengths = random.integers(8 << 10, 32 << 10, records)
    return pa.table(
        {
            "id": pa.array(range(records), pa.int32()),
            "g": pa.array(random.integers(0, 100, records), pa.uint8()),
            "payload": pa.array([random.bytes(length) for length in lengths], pa.large_binary()),
        }
    )


def write(folder: Path, table: pa.Table) -> tuple[Path, Path, Path]:
    pack, parquet, lance = (folder / f"cohort.{ending}" for ending in ("iac", "parquet", "lance"))
    slides = pa.table({"slide_id": ["slide-001"]})
    header = {"payload_type": "benchmark", "codec": "none"}
    payloads = table["payload"].to_pylist()
    iac_query.build_pack(pack, header, slides, table.select(["id", "g"]), payloads)
    with iac_query.connect() as con:
        con.register("source", table)
        con.execute(f"COPY source TO '{parquet}'")
    return pack, parquet, lance


def main(records: int = RECORDS, rounds: int = 15) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(records)
        pack, parquet, lance = write(Path(folder), table)
        chosen = np.flatnonzero(table["g"].to_numpy() < 5)
        expected = table.take(chosen)["payload"].combine_chunks()
        con, reader = iac_query.connect(), iac_query.VariableRecordPack(pack)

        def query() -> pa.Table:
            return iac_query.decode(con.sql(f"SELECT id, record FROM '{pack}' WHERE g < 5"))

        contestants = {
            "query and decode": lambda: query()["payload"],
            "iac_payload in SQL": lambda: con.sql(
                f"SELECT id, iac_payload(record) AS payload FROM '{pack}' WHERE g < 5"
            ).to_arrow_table()["payload"],
            "bare gather": lambda: pa.chunked_array(
                [reader.read_many_contiguous(chosen).to_arrow()]
            ),
            "Parquet BLOBs in DuckDB": lambda: con.sql(
                f"SELECT id, payload FROM '{parquet}' WHERE g < 5"
            ).to_arrow_table()["payload"],
        }
        try:
            import lance as lance_package
        except ImportError:
            print("Lance is not installed: pip install pylance\n")
        else:
            dataset = lance_package.write_dataset(table, str(lance))
            contestants["Lance filter"] = lambda: dataset.to_table(
                columns=["id", "payload"], filter="g < 5"
            )["payload"]
        for name, run in contestants.items():
            if not pc.all(pc.equal(run().cast(pa.large_binary()), expected)).as_py():
                raise AssertionError(f"{name}: other payloads")

        title = f"{len(chosen):,} of {records:,} records, {expected.nbytes >> 20} MiB; milliseconds"
        first = contestants.pop("query and decode")
        print_in_pairs(title, "query and decode", first, contestants, TARGETS, rounds)
        con.close()


if __name__ == "__main__":
    main()
