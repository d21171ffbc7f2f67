"""What trying suspects costs, said before anything is measured: nobody knows yet whether there will be any."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.core.gate.rounds import Design, confirming_rounds
from pytest_perfgate.model.plan import Case
from pytest_perfgate.plugin.spans import about, span

START_S, TEST_S = 2.5, 0.6
"""What starting two processes takes, and one test in both."""


def hearing_s(suspects: int, design: Design) -> float:
    """Seconds of the fresh rounds that so many suspects are tried in, beside the building of two arms."""
    return confirming_rounds(suspects, design) * (START_S + suspects * TEST_S)


def trying_line(suspects: int, design: Design) -> str:
    """``; if one is suspected, about 31 s more; if all 38 are, 4 min 13 s``."""
    if not suspects:
        return ""
    one = f"; if one is suspected, {about(hearing_s(1, design))} more"
    return one if suspects == 1 else f"{one}; if all {suspects} are, {span(hearing_s(suspects, design))}"


def triable(cases: Iterable[Case]) -> int:
    """Cases that a slowdown could make suspects."""
    return sum(any(limit.metric == "slowdown" for limit in case.limits) for case in cases)
