"""Deflated files (PS3.5 A.5), of which a few bytes may stand for more than memory holds."""

from __future__ import annotations

import io
import zlib

from pydicom.filereader import read_dataset, read_preamble
from pydicom.uid import DeflatedExplicitVRLittleEndian

#: What a dataset may be inflated to, whatever its size, and how many times its size beyond that.
_ALWAYS, _TIMES = 64 << 20, 100
_PIECE = 1 << 16


def require_bounded(data: bytes) -> None:
    """Raises ValueError for a file whose dataset is deflated and many times larger."""
    if DeflatedExplicitVRLittleEndian.encode() not in data[:4096]:
        return
    stream = io.BytesIO(data)
    read_preamble(stream, force=False)
    meta = read_dataset(stream, False, True, stop_when=lambda tag, *_: tag.group != 2)
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    size, most = 0, max(_ALWAYS, _TIMES * len(data))
    for piece in iter(lambda: stream.read(_PIECE), b""):
        while piece and not inflater.eof:
            try:
                size += len(inflater.decompress(piece, _PIECE))
            except zlib.error:
                return  # pydicom says so
            if size > most:
                raise ValueError(f"its {len(data)} bytes are inflated to more than {most}")
            piece = inflater.unconsumed_tail
