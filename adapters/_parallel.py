"""Work on many items at once, its results in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .._options import worker_count


def in_order(
    function: Callable[[Any], Any], items: Iterable[Any], workers: int | None
) -> Iterator[Any]:
    """``function`` of each item, by ``workers`` threads, in order; few items are held at a time.

    For functions that let go of the GIL. One worker is the caller's own thread.
    """
    processors = usable_processors()
    threads = min(worker_count(workers) or processors, processors)
    if threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    running: deque[Future[Any]] = deque()
    try:
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > 2 * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def usable_processors() -> int:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
