"""Whose frames a failing test shows: the user's, and not those of the code that called it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pytest

_HOME = f"{Path(__file__).parent.parent}/".replace("\\", "/")
_CALLING = ("adapters/timers/", "plugin/asked.py", "core/analysis/ops/", "compat.py")
"""Where the user's callables are called, and what the user gave is refused: a fault that ends here is in the user's."""
_THEIRS = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""A test that fails or skips by pytest's own words raises what is no ``Exception``."""


class UsersFrames:
    """What the user's code raises leaves without our frames; ``--full-trace`` keeps every one.

    No generator: ``contextlib`` puts the traceback back that it was given.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._all = bool(config.option.fulltrace)

    def __enter__(self) -> None:
        """Nothing to do yet."""

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> None:
        __tracebackhide__ = True  # a fault with no frame of the user's at all is shown as if we were not here
        if isinstance(fault, _THEIRS) and not self._all:
            raise fault.with_traceback(without_ours(fault.__traceback__))


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this package; the last one stays, if the fault may be its own."""
    links: list[TracebackType] = []
    while trace is not None:
        links.append(trace)
        trace = trace.tb_next
    kept = [link for link in links if not _ours(link)]
    if links and _ours(links[-1]) and not (kept and _place(links[-1]).startswith(_CALLING)):
        kept.append(links[-1])
    rebuilt = None
    for link in reversed(kept):
        rebuilt = TracebackType(rebuilt, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return rebuilt


def _ours(link: TracebackType) -> bool:
    return _file(link).startswith(_HOME)


def _place(link: TracebackType) -> str:
    return _file(link).removeprefix(_HOME)


def _file(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename.replace("\\", "/")
