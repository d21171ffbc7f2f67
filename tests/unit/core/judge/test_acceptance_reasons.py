"""Tests of core/judge/acceptance: which decisions need a reason, and which steps fail in CI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Proposal
from pytest_perfgate.core.judge.accepted_line import FigureStep
from pytest_perfgate.model.measurement import Baseline
from tests.reports import case
from tests.unit.core.judge.bench import accepted
from tests.unit.core.judge.figures import figure

REPORT = case("test_a", 1e6)
LINE, LOCAL = accepted(1e6), replace(accepted(1e6), local=True)
WORSE = FigureStep(before=figure("registers", 128), after=figure("registers", 130), asks=True)
BETTER = FigureStep(before=figure("registers", 128), after=figure("registers", 120), better=True)


def decision(change: Change, before: Baseline | None = LINE, **fields) -> Proposal:
    return Proposal(report=REPORT, change=change, before=before, **fields)


@pytest.mark.parametrize(
    ("made", "asks"),
    [
        (decision(Change.NEW, None), False),
        (decision(Change.FASTER), False),
        (decision(Change.SLOWER), True),
        (decision(Change.SLOWER, LOCAL), True),
        (decision(Change.RENEWED), True),
        (decision(Change.ANCHORED), True),
        (decision(Change.OTHER), True),
        (decision(Change.OTHER, LOCAL), False),
        (decision(Change.OTHER, None), False),
        (decision(Change.OTHER, LOCAL, ends=True), True),
        (decision(Change.FASTER, ends=True), True),
        (decision(Change.NEW, None, predecessor=LINE), True),
        (decision(Change.KEPT, figures=(WORSE,)), True),
        (decision(Change.KEPT, figures=(BETTER, WORSE)), True),
        (decision(Change.KEPT, figures=(BETTER,)), False),
        (decision(Change.KEPT, LOCAL, figures=(WORSE,)), False),
        (decision(Change.NEW, None, figures=(WORSE,)), True),
    ],
)
def test_what_gets_worse_or_outlives_its_end_needs_a_reason(made: Proposal, *, asks: bool) -> None:
    """Lines that only this checkout has may get worse, or be measured differently, without one."""
    assert made.asks is asks


@pytest.mark.parametrize(
    ("before", "time", "anchor", "allowed", "drifts_too_far"),
    [
        (LINE, 1.2e6, 1e6, 0.1, True),
        (LINE, 1.05e6, 1e6, 0.1, False),
        (LINE, 1.5e6, 1e6, 0.5, False),
        (LINE, 0.9e6, 0.5e6, 0.1, False),
        (LINE, 1e6, 0.5e6, 0.1, False),
        (LINE, 1.2e6, 0.0, 0.1, False),
        (LINE, 1.2e6, 1e6, 0.3, False),
        (LOCAL, 1.2e6, 1e6, 0.1, False),
        (None, 1.2e6, 1e6, 0.1, False),
    ],
)
def test_a_slower_step_far_from_the_anchor_fails_in_ci(
    before: Baseline | None, time: float, anchor: float, allowed: float, *, drifts_too_far: bool
) -> None:
    after = accepted(time, anchor=anchor, anchored="2026-05-01" if anchor else "")
    assert decision(Change.SLOWER, before, after=after, anchor=allowed).drifts_too_far is drifts_too_far
    assert not decision(Change.SLOWER, before, anchor=allowed).drifts_too_far, "nothing is written"
