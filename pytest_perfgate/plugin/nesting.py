"""Calls within a call that is measured: they would be made as often as that is, and timed in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from pytest_perfgate.model.errors import PerfgateError


class Nesting:
    """Which threads are in a measured call."""

    def __init__(self) -> None:
        self._threads: set[int] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        thread = get_ident()
        self._threads.add(thread)
        try:
            yield
        finally:
            self._threads.discard(thread)

    def refuse(self, nodeid: str) -> None:
        if get_ident() in self._threads:
            what, mend = "called within a call that is measured", "measure each by itself; for a part of it: region()"
            raise PerfgateError("call-wrong", what, mend=mend, place=nodeid)
