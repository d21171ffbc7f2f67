"""What a call raises is told again where nothing was measured for it: a test may have caught it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from types import FrameType

    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.plugin.benches import Bench

_LONGEST = 200
_WRONG = frozenset({"call-wrong", "timer-unknown", "timer-unsuited", "runtime-unknown"})
_OURS = (f"{Path(__file__).parent.parent}{os.sep}", contextlib.__file__)


@contextmanager
def noted(bench: Bench, key: CaseKey, noun: str) -> Iterator[None]:
    """Around a call, a region or a reading: what it raises goes on, and is kept."""
    try:
        yield
    except Exception as fault:
        if isinstance(fault, PerfgateError) and not fault.place and fault.code.name in _WRONG:
            fault.place_at(_called(key.path))
        bench.raised[key] = f"{noun} raised {told(fault)}"
        raise


def _called(path: str) -> str:
    """Where the user's own code called us: ``tests/test_k.py:12``."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads every source file
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return ""
    file = Path(frame.f_code.co_filename)
    own = file.as_posix().endswith(f"/{path}")
    return f"{path if path and own else file}:{frame.f_lineno}"


def told(fault: Exception) -> str:
    """``ValueError: odd``: the first line, and the type alone where it says nothing or cannot."""
    name, said = type(fault).__name__, ""
    with suppress(Exception):  # an error of the user's that does not even print
        said = fault.what if isinstance(fault, PerfgateError) else str(fault)
    first = (said.strip().splitlines() or [""])[0]
    shown = f"{first[:_LONGEST]}…" if len(first) > _LONGEST else first
    return f"{name}: {shown}" if shown else name
