"""Append the footer by which DuckDB knows a shared library as an extension.

The footer is a WebAssembly custom section: eight fields of 32 bytes, last one first, and room for
a signature. DuckDB reads it from the end of the file.
"""

import argparse
from pathlib import Path

SECTION_HEAD = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
FIELD_BYTES = 32
SIGNATURE_BYTES = 256
FOOTER_BYTES = len(SECTION_HEAD) + 8 * FIELD_BYTES + SIGNATURE_BYTES


def make_footer(duckdb: str, version: str, platform: str) -> bytes:
    """The footer of an extension that uses the stable C API of DuckDB version `duckdb`."""
    fields = ["", "", "", "C_STRUCT", version, duckdb, platform, "4"]
    values = b"".join(field.encode().ljust(FIELD_BYTES, b"\0") for field in fields)
    return SECTION_HEAD + values + bytes(SIGNATURE_BYTES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("extension", type=Path)
    parser.add_argument("--duckdb", required=True, help="oldest DuckDB that can load it: v1.5.6")
    parser.add_argument("--version", required=True, help="version of the extension: v0.1.0")
    parser.add_argument("--platform", required=True, help="linux_amd64, osx_arm64, ...")
    args = parser.parse_args()
    footer = make_footer(args.duckdb, args.version, args.platform)
    args.extension.write_bytes(args.library.read_bytes() + footer)


if __name__ == "__main__":
    main()
