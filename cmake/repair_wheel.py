"""Bundle the shared libraries that a wheel needs: repair_wheel.py WHEEL DIST_FOLDER.

auditwheel rewrites every binary, which leaves DuckDB's footer in the middle of the extension.
It is appended once more, because DuckDB looks for it at the end.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from footer import FOOTER_BYTES

EXTENSION = "iac_query/iac.duckdb_extension"


def run(module: str, *args: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *args], check=True)


def main() -> None:
    wheel, dist = map(Path, sys.argv[1:])
    dist.mkdir(exist_ok=True)
    with ZipFile(wheel) as archive:
        footer = archive.read(EXTENSION)[-FOOTER_BYTES:]
    with tempfile.TemporaryDirectory() as scratch:
        run("auditwheel", "repair", "--wheel-dir", scratch, wheel)
        [repaired] = Path(scratch).glob("*.whl")
        run("wheel", "unpack", "--dest", scratch, repaired)
        [extension] = Path(scratch).glob(f"*/{EXTENSION}")
        with extension.open("ab") as file:
            file.write(footer)
        run("wheel", "pack", "--dest-dir", dist, extension.parents[1])


if __name__ == "__main__":
    main()
