"""What a call raises is told again where nothing was measured for it: a test may have caught it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.plugin.benches import Bench

_LONGEST = 200


@contextmanager
def noted(bench: Bench, key: CaseKey, noun: str) -> Iterator[None]:
    """Around a call, a region or a reading: what it raises goes on, and is kept."""
    try:
        yield
    except Exception as fault:
        bench.raised[key] = f"{noun} raised {told(fault)}"
        raise


def told(fault: Exception) -> str:
    """``ValueError: odd``: the first line, and the type alone where it says nothing or cannot."""
    name, said = type(fault).__name__, ""
    with suppress(Exception):  # an error of the user's that does not even print
        said = fault.what if isinstance(fault, PerfgateError) else str(fault)
    first = (said.strip().splitlines() or [""])[0]
    shown = f"{first[:_LONGEST]}…" if len(first) > _LONGEST else first
    return f"{name}: {shown}" if shown else name
