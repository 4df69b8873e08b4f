"""The packs that the records of a cohort come from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._matrix_header import MATRIX_FIELDS
from .._opening import PackOpener
from .._tables import table_schema
from ..build import CODEC_FIELDS
from ..decoding.references import References
from ..decoding.resolve import Resolver
from ..fixed import fixed_shape
from .stored_codecs import StoredCodecs

#: Fields of a header that follow from what is written.
_LAYOUT_FIELDS = {"format", "version", "header_bytes", "num_slides", "num_records"} | {
    f"{part}_{field}"
    for part in ("slide_table", "index_table", "data")
    for field in ("offset", "length")
}


class Sources:
    """The packs that records are copied from."""

    def __init__(self, references: References, opener: PackOpener) -> None:
        missing = np.flatnonzero(references.pack < 0)
        if len(missing):
            raise ValueError(f"row {missing[0]}: the record is NULL, every row must have one")
        self.source = references.pack
        # What is kept of each pack, of which there may be more than a process may have open.
        self.paths: list[str] = []
        self.headers: list[dict[str, Any]] = []
        self._kinds: dict[str, str] = {}  # a pack of each
        self._slide_names: set[str] = set()
        self._index_names: set[str] = set()
        self.codecs = StoredCodecs(len(references))
        self.images = np.zeros(len(references), dtype=bool)
        self.have_codec_ids = False  # whether a codec_id among the columns is a pack's
        for pack, positions in Resolver(references, opener, "raise").packs():
            rows = references.row[positions]
            pack.locate(rows)  # raises for a row that is not there
            header = json.loads(pack.header_json)
            self.paths.append(pack.path)
            self.headers.append(header)
            self._kinds.setdefault(pack.kind, pack.path)
            self._slide_names.update(table_schema(pack, "slide").names)
            self._index_names.update(table_schema(pack, "index").names)
            self.images[positions] = pack.decodes_to_images
            self.have_codec_ids |= "record_codecs" in header
            if pack.kind == "variable":
                self.codecs.add(pack, header, rows, positions)

    @property
    def matrices(self) -> bool:
        """Whether all packs are matrices. Raises ValueError where only some are."""
        if len(self._kinds) > 1:
            raise ValueError(
                f"{self._kinds['fixed']} is a matrix, {self._kinds['variable']} has records of any "
                "length: write them apart"
            )
        return "fixed" in self._kinds

    def shape(self) -> tuple[int, np.dtype[Any]]:
        """Length and dtype of all matrices' rows. Raises ValueError where they differ."""
        packs = zip(self.paths, self.headers, strict=True)
        shapes = {fixed_shape(header, path): path for path, header in packs}
        if len(shapes) > 1:
            (one, first), (two, second) = list(shapes.items())[:2]
            raise ValueError(
                f"rows of {first} are {one[0]} {one[1].name}, those of {second} {two[0]} "
                f"{two[1].name}: write them apart"
            )
        return next(iter(shapes))

    def header(self) -> dict[str, Any]:
        """What all headers say alike, but for what follows from what is written."""
        if not self.headers:
            return {}
        first, *others = self.headers
        made = _LAYOUT_FIELDS | CODEC_FIELDS | MATRIX_FIELDS
        kinds = {json.dumps(header.get("payload_type")) for header in self.headers}
        if len(kinds) > 1:
            return {}
        return {
            name: value
            for name, value in first.items()
            if name not in made and all(name in other and other[name] == value for other in others)
        }

    def slide_names(self) -> set[str]:
        """Columns of slide tables that no index table has."""
        return self._slide_names - self._index_names
