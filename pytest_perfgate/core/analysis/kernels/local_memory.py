"""What a profiler's instruction counts say of spills where it did not collect the bytes themselves."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.core.analysis.sass.mix import LOCAL, Mix
from pytest_perfgate.model.kernel import Counter

_TOUCHES = ("sass__inst_executed_local_loads", "sass__inst_executed_local_stores")


def unspilled(ran: Mix | None, counters: Mapping[str, Counter]) -> str:
    """Why a kernel spills nothing; empty where that does not follow: instructions that ran tell of no bytes."""
    if ran is not None:
        return "" if _touched(ran) else "no LDL or STL was executed"
    seen = [counters[name].value for name in _TOUCHES if name in counters]
    return " and ".join(f"{name} is 0" for name in _TOUCHES) if seen == [0, 0] else ""


def why_no_bytes(ran: Mix | None) -> str:
    """What is known of spills whose bytes were not collected."""
    touched = _touched(ran) if ran is not None else 0
    return (
        f"{touched:,} LDL and STL were executed, and how many bytes a thread has was not collected" if touched else ""
    )


def depth_unknown(whole: Mix) -> str:
    """Why code that uses its stack tells no size of it."""
    return f"{_touched(whole):,} LDL and STL use a stack of no fixed size: a function calls itself"


def _touched(ran: Mix) -> int:
    return sum(ran.counts.get(name, 0) for name in LOCAL)
