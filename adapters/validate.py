"""What packs of each schema must hold. :func:`iac_query.validate` checks packs against it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .. import cli
from .._options import PathLike
from ..errors import PackError
from ..validation import validate
from ..validation.checked_pack import Rules
from . import (
    _dicom_pixel_rules,
    _dicom_rules,
    _document_rules,
    _feature_rules,
    _tile_rules,
    features,
    text,
    text_pair,
    tiles,
)
from .wsi import index_rules, record_rules, schema
from .wsi.remains import remains

__all__ = ["RULES", "main", "validate_package"]


#: By payload type; of others only what all packs have in common is checked.
RULES = {
    tiles.PAYLOAD_TYPE: Rules(_tile_rules.check_tables, _tile_rules.check_tiles),
    tiles.EXTENDED_PAYLOAD_TYPE: Rules(_tile_rules.check_tables, _tile_rules.check_tiles),
    features.PAYLOAD_TYPE: Rules(_feature_rules.check_tables, _feature_rules.check_features),
    features.EXTENDED_PAYLOAD_TYPE: Rules(
        _feature_rules.check_tables, _feature_rules.check_features
    ),
    text.PAYLOAD_TYPE: Rules(_document_rules.check_tables, _document_rules.check_documents),
    text_pair.PAYLOAD_TYPE: Rules(_document_rules.check_tables, _document_rules.check_documents),
    _dicom_rules.PAYLOAD_TYPE: Rules(
        _dicom_rules.check_tables, _dicom_pixel_rules.check_pixels, _dicom_rules.remains
    ),
    schema.PAYLOAD_TYPE: Rules(index_rules.check_tables, record_rules.check_records, remains),
}


def validate_package(
    package_path: PathLike, max_decode: int = 8, max_crc: int = 0
) -> dict[str, Any]:
    """Checks one pack as :func:`iac_query.validate` does, and returns what was counted: ``type``,
    ``codec``, ``records``, ``slides``, ``decoded`` and ``crc_checked``.

    Raises PackError with the first thing that is wrong.
    """
    (report,) = validate(package_path, max_decode, max_crc, progress=False).packs
    for finding in report.findings:
        if finding.severity == "error":
            error = PackError(f"{finding.pack}: {finding}")
            error.pack, error.row = finding.pack, finding.row
            raise error
    return {"type": report.payload_type, "codec": report.codec, **report.counts}


def main(arguments: Sequence[str] | None = None) -> None:
    """``python -m iac_query validate`` with the path behind ``--input``, as the published adapters'
    command has it. Takes its other options; of ``sys.argv`` unless ``arguments`` are given.

    Raises SystemExit with its status, except for packs without errors.
    """
    parser = argparse.ArgumentParser(
        "validate",
        description="Reports what is wrong with packs.",
        epilog="Other options are those of python -m iac_query validate.",
        allow_abbrev=False,
    )
    parser.add_argument("--input", required=True, metavar="PATH", help="pack or folder")
    options, others = parser.parse_known_args(arguments)
    status = cli.main(["validate", *others, "--", options.input])
    if status:
        raise SystemExit(status)
