"""What two builds in turns cost, said before anything is measured: nobody knows yet what they are asked to decide."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.core.gate.rounds import LEAST, Design
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.plan import Case
from pytest_perfgate.plugin.spans import about, span

START_S, TEST_S = 2.5, 0.25
"""What starting two processes takes, and one test in both."""


def rounds_s(cases: int, rounds: int) -> float:
    """Seconds of so many rounds of so many cases, beside the making of two builds."""
    return rounds * (START_S + cases * TEST_S)


def trying_line(cases: int) -> str:
    """``; what they do not clear goes to two builds in turns: 1 case about 19 s, all 38 about 1 min 24 s or more``."""
    if not cases:
        return ""
    said = f"; what the accepted times do not clear goes to two builds in turns: 1 case {about(rounds_s(1, LEAST))}"
    return said if cases == 1 else f"{said}, all {cases} {about(rounds_s(cases, LEAST))} or more"


def paired_line(cases: int, design: Design, left_s: float) -> str:
    """``38 cases in two builds, 7 to 30 rounds, about 1 min 24 s or more; 10 min of the budget are left``."""
    said = f"{plural(cases, 'case')} in two builds, {LEAST} to {design.last} rounds"
    said += f", {about(rounds_s(cases, LEAST))} or more"
    return said if left_s == float("inf") else f"{said}; {span(left_s)} of the budget are left, spent where it decides"


def triable(cases: Iterable[Case]) -> int:
    """Cases that a slowdown limit could send there."""
    return sum(any(limit.metric == "slowdown" for limit in case.limits) for case in cases)
