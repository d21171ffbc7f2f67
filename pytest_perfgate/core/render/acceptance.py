"""What accepting did, as lines and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_perfgate.core.gate.acceptance import Change, Decision
from pytest_perfgate.core.render.block import printable
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.quantity import Dimension

_WHOLE = "a full run sees more, and takes its place"
_AGAIN = "run again on a quieter machine, or keep it"
_SAID = (Change.UNTRUSTED, Change.UNTIMED, Change.COUNTED, Change.MOVED, Change.PINNED)


def acceptance_lines(found: Sequence[Decision], *, dry: bool = False) -> Iterator[str]:
    """One line for each case that changes or cannot; the rest is counted, and each warning stands once."""
    for decision in found:
        if decision.writes or decision.change in _SAID:
            blind = "" if decision.blind is None else f"  blind below {signed(decision.blind)}"
            yield f"{_line(decision)}{blind}"
    written = sum(d.writes for d in found)
    counts = Counter(d.change for d in found if not d.writes)
    rest = ", ".join(f"{count} {change.value}" for change, count in counts.items())
    verb = "would be accepted" if dry else "accepted"
    yield f"{written} {verb}" + (f"; {rest}" if rest else "") if found else "nothing to accept"
    yield from _warnings([d for d in found if d.writes or d.change in _SAID])


def _warnings(shown: Sequence[Decision]) -> Iterator[str]:
    """What is to be known of several decisions at once, with how many."""
    few = Counter(d.scanty for d in shown if d.scanty)
    for scanty, count in few.items():
        yield f"warning  {count} of {plural(len(shown), 'case')}, {scanty}; {_WHOLE}"
    if blind := sum(d.blind is not None for d in shown):
        share = f"{blind} of {plural(len(shown), 'case')}"
        yield f"warning  {share} could not have seen a slowdown as small as the limit; {_AGAIN}"


def _warning(decision: Decision) -> str:
    """What a sitting is worth that is too wide for its limit, or of too few processes; empty where it is neither."""
    told = [f"{decision.scanty}; {_WHOLE}"] if decision.scanty else []
    if decision.blind is not None:
        seen = f"the smallest slowdown this sitting could have seen is {signed(decision.blind)}"
        told.append(f"{seen}; {_AGAIN}")
    return "; ".join(told)


def decision_lines(decision: Decision) -> Iterator[str]:
    """The case, then and now, and what is to be known before it is accepted."""
    yield _line(decision)
    if warning := _warning(decision):
        yield f"  warning  {warning}"


def _line(decision: Decision) -> str:
    name = printable(str(decision.report.key))
    if decision.after is None:
        return f"{decision.change.value:<9}  {name}  {decision.why}"
    now = quantity(decision.after.time, Dimension.TIME)
    if decision.before is None:
        return f"{decision.change.value:<9}  {name}  {now}{_heritage(decision)}"
    then = quantity(decision.before.time, Dimension.TIME)
    shift = signed(decision.after.time / decision.before.time - 1)
    return f"{decision.change.value:<9}  {name}  {then} -> {now}  {shift}"


def _heritage(decision: Decision) -> str:
    """Whose place a new line takes, where that was faster."""
    if decision.twin is None or decision.after is None:
        return ""
    shift = signed(decision.after.time / decision.twin.time - 1)
    then = quantity(decision.twin.time, Dimension.TIME)
    return f"  {shift} after {printable(str(decision.twin.key))}, which is gone ({then})"


def acceptance_json(found: Sequence[Decision]) -> list[dict[str, Any]]:
    return [
        {
            "case": str(d.report.key),
            "change": d.change.value,
            "before_ns": d.before.time if d.before else None,
            "twin": str(d.twin.key) if d.twin else "",
            "after_ns": d.after.time if d.after else None,
            "why": d.why,
            "warning": _warning(d),
        }
        for d in found
    ]
