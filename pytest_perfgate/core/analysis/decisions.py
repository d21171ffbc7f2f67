"""Decision rows: when to do what, what it may bring, what it may cost. The rows are data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Union

from pytest_perfgate.core.analysis.decision_rows import ROWS, Row, Test
from pytest_perfgate.model.problem import Finding, Severity
from pytest_perfgate.model.quantity import Interval

Fact = Union[str, float]
Situation = Mapping[str, Fact]
"""What is known of a kernel, by the names that the rows ask for; what is not known is not in it."""

NO_ROW = "no other row applies"
_ASKS = {
    "<": lambda have, want: have < want,
    "<=": lambda have, want: have <= want,
    ">": lambda have, want: have > want,
    ">=": lambda have, want: have >= want,
    "==": lambda have, want: have == want,
}


def recommendations(situation: Situation, rows: Sequence[Row] = ROWS) -> tuple[Finding, ...]:
    """Advice whose conditions all hold, best expected gain first; each names what triggered it."""
    told = [_finding(row, situation) for row in rows if not row.last and _applies(row, situation)]
    if not told:
        told = [_finding(row, situation) for row in rows if row.last and _applies(row, situation)]
    return tuple(sorted(told, key=_promise, reverse=True))


def _applies(row: Row, situation: Situation) -> bool:
    return all(_holds(test, situation) for test in row.when)


def _holds(test: Test, situation: Situation) -> bool:
    name, sign, wanted = test
    have = situation.get(name)
    if have is None or isinstance(have, str) is not isinstance(wanted, str):
        return False
    if isinstance(have, float) and math.isnan(have):
        return False
    return bool(_ASKS[sign](have, wanted))


def _promise(finding: Finding) -> float:
    return (finding.gain.low + finding.gain.high) / 2 if finding.gain else -1.0


def _finding(row: Row, situation: Situation) -> Finding:
    gain, doubt = _gain(row, situation)
    return Finding(
        title=row.name,
        detail=row.why,
        trigger=", ".join(f"{name}={_written(situation[name])}" for name, _, _ in row.when) or NO_ROW,
        advice=row.advice,
        gain=gain,
        doubt=doubt,
        conflicts=tuple(row.conflicts),
        severity=Severity.NOTE,
    )


def _gain(row: Row, situation: Situation) -> tuple[Interval | None, str]:
    """What was measured elsewhere, capped by the room that the nearest roof leaves."""
    room = situation.get("room")
    if row.gain is None:
        if row.up_to_roof and isinstance(room, (int, float)):
            return Interval(low=0.0, high=float(room)), "at most the room under the nearest roof"
        return None, row.doubt
    low, high = row.gain
    if row.up_to_roof and isinstance(room, (int, float)):
        low, high = min(low, float(room)), min(high, float(room))
    return Interval(low=low, high=high), row.doubt


def _written(fact: Fact) -> str:
    return fact if isinstance(fact, str) else f"{fact:.4g}"
