"""Tests of core/judge/rounds: rules that two of them decide together, with rounds written out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.rounds import Design, all_looks, figure_finding, more_slow, one_look
from pytest_perfgate.model.metric import FigurePairs
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import limit, pairs

SLOWER, NOT_SLOWER, UNDECIDED = Decision.SLOWER, Decision.NOT_SLOWER, Decision.UNDECIDED
DESIGN = Design()


def test_the_looks_that_these_rounds_are_written_for() -> None:
    assert DESIGN.looks == (9, 17, 30)


@pytest.mark.parametrize(
    ("preloads", "decision"),
    [((1,) * 6 + (2,) * 3, UNDECIDED), ((1,) * 3 + (2,) * 3 + (3,) * 3, SLOWER), ((1,) * 5 + (2, 3, 3, 3), SLOWER)],
)
def test_two_preloads_show_nothing_however_clear_they_are(preloads: tuple[int, ...], decision: Decision) -> None:
    rounds = replace(pairs(*[2.0] * 9), preloads=preloads, floor=1e-9)
    assert one_look(rounds, 0.05).decision is decision


@pytest.mark.parametrize(("ratio", "faster"), [(0.97, False), (0.93, True)])
def test_faster_by_less_than_the_limit_is_not_announced(ratio: float, *, faster: bool) -> None:
    """Although it is surely more than the third of the limit that the test excludes."""
    assert one_look(pairs(*[ratio] * 9), 0.05).faster is faster


@pytest.mark.parametrize(("rounds", "settled"), [(8, False), (9, True)])
def test_a_cleared_case_that_seems_faster_is_settled_by_the_look_that_could_show_it(
    rounds: int, *, settled: bool
) -> None:
    result = one_look(pairs(*[0.8] * rounds), 0.05)
    assert (result.decision, result.settled) == (NOT_SLOWER, settled)


def test_a_cleared_case_stays_cleared_where_its_speed_up_was_a_passing_one() -> None:
    """Rounds end at the look for speed-ups, though the last two of them would leave it open."""
    rounds = pairs(*[0.8] * 7, 2.0, 2.0, 2.0, 2.0)
    assert one_look(rounds.first(9), 0.05).decision is UNDECIDED
    result = all_looks(None, rounds, 0.05, DESIGN)
    assert (result.decision, result.rounds, result.settled) == (NOT_SLOWER, 9, True)


@pytest.mark.parametrize(("threshold", "decision"), [(0.03, UNDECIDED), (0.01, SLOWER)])
def test_slow_processes_on_one_side_count_if_they_are_slower_than_the_limit(
    threshold: float, decision: Decision
) -> None:
    rounds = pairs(*[1.02] * 10, spread=0.0001)
    before = replace(one_look(rounds, threshold), decision=UNDECIDED)
    (result,) = more_slow({"a": before}, {"a": rounds}, {"a": threshold}, 0.01).values()
    assert result.decision is decision


def figures(base: list[float], head: list[float], dimension: Dimension = Dimension.PLAIN) -> FigurePairs:
    return FigurePairs(name="x", labels=(), dimension=dimension, base=tuple(base), head=tuple(head))


BETTER_AT_FIRST = [100.0 - 10 - at for at in range(9)] + [100.0 + at for at in range(21)]


@pytest.mark.parametrize(
    ("text", "pairs_of_figures", "gates", "decision", "better"),
    [
        # better in the rounds of the first look; those after it are not asked
        ("change(metric(x)) <= 25%", figures([100.0] * 30, BETTER_AT_FIRST), 1, NOT_SLOWER, True),
        # surely 5 % better, where 10 % are demanded
        ("change(metric(x)) <= -10%", figures([100.0] * 9, [95.0 + 0.01 * at for at in range(9)]), 1, UNDECIDED, False),
        # worse by exactly what is allowed
        ("change(overlap) >= -25pp", figures([0.5, 0.75] * 5, [0.25, 0.5] * 5, Dimension.FRACTION), 1, SLOWER, False),
        # shares change by points, whatever they were
        ("change(overlap) >= -15pp", figures([0.25, 0.75] * 5, [0.15, 0.65] * 5, Dimension.FRACTION), 1, NOT_SLOWER,
         False),
        # figures below 1 change by ratios too
        ("change(metric(x)) <= 15%", figures([0.25, 1.0] * 5, [0.275, 1.1] * 5), 1, NOT_SLOWER, False),
        # nothing may get worse; most rounds did, though not enough for forty figures
        ("change(metric(x)) <= 0", figures([100.0] * 21, [96.5, 95.5, 94.5, *(101.0 + at for at in range(18))]), 40,
         UNDECIDED, False),
    ],
)  # fmt: skip
def test_figures_of_two_builds(
    text: str, pairs_of_figures: FigurePairs, gates: int, decision: Decision, *, better: bool
) -> None:
    result = figure_finding(pairs_of_figures, limit(text), gates)
    assert (result.decision, result.better) == (decision, better)


def test_a_figure_can_be_found_worse_in_the_last_round_whatever_their_number() -> None:
    """In CI sixty rounds are played: those after the thirtieth could only clear."""
    noisy = figures([100.0] * 60, [103.0 + 12 * (-1) ** at + 0.01 * at for at in range(60)])
    bound = limit("change(metric(x)) <= 2%")
    assert figure_finding(noisy, bound, 1).decision is UNDECIDED
    assert figure_finding(noisy, bound, 1, most=60).rounds == 60


def test_a_figure_clears_after_the_thirtieth_round_only_at_every_tenth() -> None:
    """The error of clearing is counted over these looks."""
    heads = [100 + 5 * (-1) ** at * (1 + at % 4) + 0.01 * at for at in range(40)]  # below the limit from round 32 on
    bound = limit("change(metric(x)) <= 5%")
    decisions = [figure_finding(figures([100.0] * n, heads[:n]), bound, 1, most=60).decision for n in (32, 39, 40)]
    assert decisions == [UNDECIDED, UNDECIDED, NOT_SLOWER]


@pytest.mark.parametrize("by", [1.1, 0.9])
def test_a_figure_that_may_not_change_is_judged_in_both_directions(by: float) -> None:
    heads = [100.0 * by + 0.01 * at for at in range(30)]
    assert figure_finding(figures([100.0] * 30, heads), limit("change(metric(x)) == 0"), 1).decision is SLOWER
    same = [100.0 + 0.01 * (-1) ** at * (at + 1) for at in range(30)]
    assert figure_finding(figures([100.0] * 30, same), limit("change(metric(x)) == 0"), 1).decision is NOT_SLOWER
