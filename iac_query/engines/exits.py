"""Generators that threads of another library run, which go on while the interpreter ends."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from typing import TypeVar

_Item = TypeVar("_Item")

#: How long those that are not asked for more are waited for, in seconds.
_PATIENCE = 0.1


class _Exits:
    """Such generators, which are ended when the interpreter is about to.

    A thread that comes back to an interpreter that has ended is ended by it, and native code is not
    prepared for that: the process would abort.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self._at_work = 0
        self._is_exit = False

    def safe(self, items: Iterator[_Item]) -> Iterator[_Item]:
        """The items, of which none is None; in threads an error once the interpreter ends."""
        self._count(open=1)
        try:
            while (item := self._next(items)) is not None:
                yield item
        finally:
            self._count(open=-1)

    def _next(self, items: Iterator[_Item]) -> _Item | None:
        if threading.get_ident() == threading.main_thread().ident:
            return next(items, None)  # here an interrupt may come anywhere, also between counts
        self._count(at_work=1)
        try:
            if self._is_exit:
                raise RuntimeError("the interpreter ends")
            return next(items, None)
        finally:
            self._count(at_work=-1)

    def _count(self, open: int = 0, at_work: int = 0) -> None:
        with self._changed:
            self._open += open
            self._at_work += at_work
            self._changed.notify_all()

    def end(self) -> None:
        """Waits for those at work."""
        with self._changed:
            self._is_exit = True
            self._changed.wait_for(lambda: self._at_work == 0)
            self._changed.wait_for(lambda: self._open == 0, _PATIENCE)


_exits = _Exits()


def _forget() -> None:
    global _exits
    _exits = _Exits()  # the threads are the parent's


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _exits.end())


def exit_safe(items: Iterator[_Item]) -> Iterator[_Item]:
    """The items, of which none is None, without an abort when the interpreter ends while a thread
    asks for one.
    """
    return _exits.safe(items)
