"""The codecs that records of several packs are stored with, as one header says it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from ..codec import Codec
from ..errors import CodecError, row_error

#: The column of the index, and what the header calls the codec of a pack whose records differ:
#: readers that know of one codec only refuse it.
CODEC_ID = "codec_id"
PER_RECORD = "per_record"

_MOST_CODECS = 254


class StoredCodecs:
    """The codec of each of ``count`` records, packs added one by one."""

    def __init__(self, count: int) -> None:
        self._specs: list[tuple[str, dict[str, Any]]] = []  # name and parameters
        self._spec = np.zeros(count, dtype=np.int64)  # of each record

    def add(
        self,
        pack: _native.Pack,
        header: dict[str, Any],
        rows: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
    ) -> None:
        """Says of ``rows`` of a pack, the records at ``positions``, how they are stored.

        Raises CodecError for a record whose codec the header does not list.
        """
        ids = codec_ids(pack, header)
        if ids is None:
            spec = (header.get("codec", "none"), header.get("codec_params") or {})
            self._spec[positions] = self._number(*spec)
            return
        listed = {entry["id"]: entry for entry in header["record_codecs"]}
        found = ids[rows]
        for id in np.unique(found).tolist():
            at = found == id
            if id not in listed:
                reason = "its codec_id is not in the header's record_codecs"
                raise row_error(CodecError, pack.path, int(rows[at][0]), reason)
            entry = listed[id]
            self._spec[positions[at]] = self._number(entry["name"], entry.get("params") or {})

    def _number(self, name: str, params: dict[str, Any]) -> int:
        if (name, params) not in self._specs:
            self._specs.append((name, params))
        return self._specs.index((name, params))

    def stored_by(self, codec: Codec) -> npt.NDArray[np.bool_]:
        """Which records are stored with a codec, its parameters included."""
        same = [
            name == codec.name and _complete(name, params) == dict(codec.parameters())
            for name, params in self._specs
        ]
        return np.array([*same, False])[self._spec]

    def header(self) -> tuple[dict[str, Any], npt.NDArray[np.int64] | None]:
        """The header's fields and, where records differ, the ``codec_id`` of each.

        Codecs that decode alike count as one, with the parameters they share.
        """
        groups: dict[tuple[str, str], int] = {}
        codecs: list[dict[str, Any]] = []
        group_of = np.zeros(max(len(self._specs), 1), dtype=np.int64)
        for number, (name, params) in enumerate(self._specs):
            group = groups.setdefault((name, _decoding_parameters(name, params)), len(groups))
            if group == len(codecs):
                codecs.append({"id": group, "name": name, "params": params})
            shared = codecs[group]["params"].items()
            codecs[group]["params"] = {k: v for k, v in shared if k in params and params[k] == v}
            group_of[number] = group
        if len(codecs) > _MOST_CODECS:
            raise ValueError(
                f"records are stored with {len(codecs)} codecs, a pack has at most {_MOST_CODECS}: "
                "name one codec to encode them with"
            )
        if len(codecs) > 1:
            return {"codec": PER_RECORD, "record_codecs": codecs}, group_of[self._spec]
        codec = codecs[0] if codecs else {"name": "none", "params": {}}
        header = {"codec": codec["name"]}
        if codec["params"]:
            header["codec_params"] = codec["params"]
        return header, None


def codec_ids(pack: _native.Pack, header: dict[str, Any]) -> npt.NDArray[np.int64] | None:
    """Each row's codec_id; None for a pack whose records have no codecs of their own."""
    if not header.get("record_codecs"):
        return None
    try:
        capsule = pack.table("index", [CODEC_ID])
    except KeyError:
        return None
    table = pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
    return table[CODEC_ID].to_numpy().astype(np.int64)


def _decoding_parameters(name: str, params: dict[str, Any]) -> str:
    """What decoding needs of the parameters; all of them for a codec that is not built in."""
    text = json.dumps(params, sort_keys=True)
    try:
        return _native.make_decoder(name, text).parameters
    except (CodecError, ValueError, TypeError):
        return text


def _complete(name: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """All parameters of a codec, None where some are not its own."""
    try:
        return dict(Codec.create(name, **params).parameters())
    except (CodecError, ValueError, TypeError):
        return None
