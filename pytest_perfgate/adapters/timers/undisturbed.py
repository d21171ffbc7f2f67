"""What of Python's own would run between two calls and be measured with them: it waits, and is left as it was found."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

_MONITORING: Any = getattr(sys, "monitoring", None)
"""Since Python 3.12 cProfile and others watch through it."""
_TOOLS = range(6)


class Undisturbed:
    """No garbage collection, and whatever watches lines or calls (coverage, a profiler, a debugger) looks away.

    A class, since a generator's switches cost as much as a call.
    """

    __slots__ = ("_collecting", "_go_on")

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()
        self._go_on = [] if _unwatched() else [_profiling(), _tracing(), *_monitored()]

    def __exit__(self, *_: object) -> None:
        for go_on in self._go_on:
            go_on()
        if self._collecting:
            gc.enable()


def _unwatched() -> bool:
    """As a rule nobody watches, and this is asked between two samples."""
    return sys.gettrace() is None and sys.getprofile() is None and (_MONITORING is None or not _tools())


def _tools() -> list[int]:
    return [tool for tool in _TOOLS if _MONITORING.get_tool(tool) is not None]


def _tracing() -> Callable[[], object]:
    """Stop it; what sets it going again."""
    tracer = sys.gettrace()
    sys.settrace(None)
    return lambda: sys.settrace(tracer)


def _profiling() -> Callable[[], object]:
    """Before Python 3.12 cProfile stands in the profiler's place with an object that is no function."""
    profiler: Any = sys.getprofile()
    if profiler is None or callable(profiler):
        sys.setprofile(None)
        return lambda: sys.setprofile(profiler)
    profiler.disable()
    go_on: Callable[[], object] = profiler.enable
    return go_on


def _monitored() -> list[Callable[[], object]]:
    if _MONITORING is None:
        return []
    events = {tool: _MONITORING.get_events(tool) for tool in _tools()}
    for tool in events:
        _MONITORING.set_events(tool, 0)
    return [partial(_MONITORING.set_events, tool, asked) for tool, asked in events.items()]
