"""Frames on their way to disk: encoded in blocks, and kept in a temporary file until the tables,
which come before them in a pack, are known.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

from . import schema
from .instance import Frame, StoredFrame

#: Frames encoded at a time: so many, or so many bytes of them.
_BLOCK_FRAMES = 64
_BLOCK_BYTES = 16 << 20


class Spool:
    """A temporary file of encoded frames.

    ``workers`` encode a block; unless there is only 1, the next is read meanwhile.
    """

    def __init__(self, file: BinaryIO, *, effort: int, workers: int | None, verify: bool) -> None:
        self._file = file
        self._effort = effort
        self._workers = workers
        self._verify = verify
        self._size = 0

    def take(self, frames: Iterable[Frame]) -> None:
        """Encodes all frames; each one's instance gets to know where it is."""
        if self._workers == 1:
            for block in _blocks(frames):
                self._store(block, self._encoded(block))
            return
        with ThreadPoolExecutor(1) as encoder:
            waiting: tuple[list[Frame], Future[list[bytes]]] | None = None
            for block in _blocks(frames):
                future = encoder.submit(self._encoded, block)
                if waiting:
                    self._store(waiting[0], waiting[1].result())
                waiting = block, future
            if waiting:
                self._store(waiting[0], waiting[1].result())

    def payload(self, frame: StoredFrame) -> bytes:
        """An encoded frame."""
        self._file.seek(frame.spooled)
        payload = self._file.read(frame.length)
        if len(payload) != frame.length:
            raise OSError("the temporary file of frames was truncated meanwhile")
        return payload

    def _encoded(self, block: list[Frame]) -> list[bytes]:
        """What is stored of a block's frames."""
        payloads: list[Any] = [frame.data for frame in block]
        for codec_id in {frame.codec_id for frame in block}.intersection(schema.ENCODED):
            places = [i for i, frame in enumerate(block) if frame.codec_id == codec_id]
            codec = schema.codec_of(codec_id, self._effort)
            encoded = codec.encode_many([payloads[i] for i in places], self._workers)
            if self._verify:
                self._check([block[i] for i in places], codec.decode_many(encoded, self._workers))
            for i, payload in zip(places, encoded, strict=True):
                payloads[i] = payload
        return payloads

    def _check(self, frames: list[Frame], decoded: list[Any]) -> None:
        for frame, found in zip(frames, decoded, strict=True):
            image = isinstance(frame.data, np.ndarray)
            if not (np.array_equal(found, frame.data) if image else found == frame.data):
                raise ValueError(f"{frame.instance.source}: a frame decodes to other pixels")

    def _store(self, block: list[Frame], payloads: list[bytes]) -> None:
        for frame, payload in zip(block, payloads, strict=True):
            self._file.write(payload)
            stored = StoredFrame(frame.codec_id, self._size, len(payload), zlib.crc32(payload))
            frame.instance.frames.append(stored)
            self._size += len(payload)


def _blocks(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    block: list[Frame] = []
    size = 0
    for frame in frames:
        block.append(frame)
        size += memoryview(frame.data).nbytes
        if len(block) == _BLOCK_FRAMES or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
