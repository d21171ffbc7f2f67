"""Tests of figures in two builds, in core/judge/rounds."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.rounds import FigureFinding, figure_finding
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval, Metric, MetricSet
from pytest_perfgate.model.plan import Decision, Mode, Outcome
from pytest_perfgate.model.values import Better, Dimension
from pytest_perfgate.model.verdict import Paired, Verdict
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

BYTES, PART = Dimension.BYTES, Dimension.FRACTION


def pairs(factor: float, *, rounds: int = 20, scatter: float = 0.01, dimension=BYTES, base: float = 1e6) -> FigurePairs:
    source = random.Random(7)
    return FigurePairs(
        name="memory",
        labels=(),
        dimension=dimension,
        base=tuple(base * source.gauss(1, scatter) for _ in range(rounds)),
        head=tuple(base * factor * source.gauss(1, scatter) for _ in range(rounds)),
    )


@pytest.mark.parametrize(
    ("text", "figures", "decision"),
    [
        ("change(metric(memory)) <= 5%", pairs(1.10), Decision.SLOWER),
        ("change(metric(memory)) <= 5%", pairs(1.00), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 5%", pairs(0.80), Decision.NOT_SLOWER),
        ("change(metric(memory)) >= -5%", pairs(0.90), Decision.SLOWER),
        ("change(metric(memory)) >= -5%", pairs(1.10), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 100 kB", pairs(1.20), Decision.SLOWER),
        ("change(metric(memory)) <= 100 kB", pairs(1.01), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 5%", pairs(1.10, rounds=4), Decision.UNDECIDED),
        ("change(metric(memory)) <= 5%", pairs(1.04, scatter=0.2), Decision.UNDECIDED),
        ("change(metric(memory)) <= 0", pairs(1.00, rounds=30), Decision.NOT_SLOWER),
        ("change(overlap) >= -2pp", pairs(0.9, dimension=PART, base=0.8, scatter=0.005), Decision.SLOWER),
        ("change(overlap) >= -2pp", pairs(0.999, dimension=PART, base=0.8, scatter=0.005), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 0", pairs(1.0, scatter=0.0), Decision.NOT_SLOWER),
        ("change(metric(memory)) <= 0", pairs(1.001, scatter=0.0), Decision.SLOWER),
        ("change(metric(memory)) == 0", pairs(0.999, scatter=0.0), Decision.SLOWER),
        ("change(metric(memory)) < 1%", pairs(1.01, scatter=0.0), Decision.SLOWER),
    ],
)
def test_rounds_decide(text: str, figures: FigurePairs, decision: Decision) -> None:
    assert figure_finding(figures, limit(text), gates=1).decision is decision


def apart(base: float, by: float, text: str, dimension=BYTES, rounds: int = 12) -> FigureFinding:
    """What rounds show of a figure that is by so much larger in the head, and reads a little differently each time."""
    steps = [1e-4 * abs(by) * at for at in range(rounds)]
    figures = FigurePairs(
        name="memory", labels=(), dimension=dimension,
        base=(base,) * rounds, head=tuple(base + by + step for step in steps),
    )  # fmt: skip
    return figure_finding(figures, limit(text), gates=1)


@pytest.mark.parametrize(
    ("text", "dimension", "base", "good", "broken"),
    [
        ("change(metric(memory)) <= 5%", BYTES, 1e6, 0.048e6, 0.052e6),
        ("change(metric(memory)) >= -5%", BYTES, 1e6, -0.048e6, -0.053e6),
        ("change(metric(memory)) <= 100 kB", BYTES, 1e6, 0.09e6, 0.11e6),
        ("change(metric(memory)) <= 100 kB", BYTES, 2e6, 0.09e6, 0.11e6),
        ("change(metric(memory)) >= -100 kB", BYTES, 2e6, -0.09e6, -0.11e6),
        ("change(metric(memory)) >= -200 kB", BYTES, 1e5, -0.098e6, -0.0995e6),
        ("change(metric(memory)) <= 100 kB", BYTES, 0.0, 0.09e6, 0.11e6),
        ("change(metric(memory)) <= 100 kB", BYTES, -3.0, 0.09e6, 0.11e6),
        ("change(metric(memory)) <= 50%", BYTES, 0.0, 0.45, 0.55),
        ("change(metric(memory)) <= 50%", BYTES, -2.0, 0.9, 1.1),
        ("change(metric(memory)) <= 50%", BYTES, -0.5, 0.2, 0.3),
        ("change(overlap) >= -2pp", PART, 0.8, -0.018, -0.022),
    ],
)
def test_a_limit_is_of_the_base_or_plain_and_of_the_difference_where_a_figure_may_be_zero(
    text: str, dimension: Dimension, base: float, good: float, broken: float
) -> None:
    assert apart(base, good, text, dimension).decision is Decision.NOT_SLOWER
    assert apart(base, broken, text, dimension).decision is Decision.SLOWER


@pytest.mark.parametrize(
    ("text", "factor", "decision", "better"),
    [
        ("<= 5%", 1.05, Decision.NOT_SLOWER, False),
        ("<= 5%", 1.051, Decision.SLOWER, False),
        ("<= 5%", 0.999, Decision.NOT_SLOWER, True),
        ("<= 5%", 1.0, Decision.NOT_SLOWER, False),
        ("< 5%", 1.05, Decision.SLOWER, False),
        ("< 5%", 1.049, Decision.NOT_SLOWER, False),
        (">= -5%", 0.95, Decision.NOT_SLOWER, False),
        (">= -5%", 0.949, Decision.SLOWER, False),
        (">= -5%", 1.001, Decision.NOT_SLOWER, True),
        (">= -5%", 1.0, Decision.NOT_SLOWER, False),
        ("> -5%", 0.95, Decision.SLOWER, False),
        ("> -5%", 0.951, Decision.NOT_SLOWER, False),
        ("== 0", 1.0, Decision.NOT_SLOWER, False),
        ("== 0", 1.001, Decision.SLOWER, True),
        ("== 5%", 1.05, Decision.NOT_SLOWER, True),
        ("<= 0", 1 + 1e-12, Decision.SLOWER, False),
    ],
)
def test_a_figure_that_repeats_is_compared_exactly(
    text: str, factor: float, decision: Decision, *, better: bool
) -> None:
    repeated = FigurePairs(name="memory", labels=(), dimension=BYTES, base=(2e6,) * 3, head=(2e6 * factor,) * 3)
    finding = figure_finding(repeated, limit(f"change(metric(memory)) {text}"), gates=1)
    assert (finding.decision, finding.better, finding.rounds, finding.base.value) == (decision, better, 3, 2e6)


@pytest.mark.parametrize(
    ("text", "by", "rounds", "better", "decided_after"),
    [
        ("change(metric(memory)) <= 5%", -0.2e6, 12, True, 7),
        ("change(metric(memory)) <= 5%", -0.2e6, 8, False, 7),
        ("change(metric(memory)) <= 5%", -0.01e6, 12, False, 7),
        ("change(metric(memory)) >= -5%", 0.2e6, 12, True, 7),
        ("change(metric(memory)) >= -5%", -0.2e6, 12, False, 9),
        ("change(metric(memory)) <= 5%", 0.2e6, 12, False, 9),
        ("change(metric(memory)) <= 0", -0.2e6, 12, True, 7),
        ("change(metric(memory)) <= 0", -0.2e6, 6, False, 6),
    ],
)
def test_a_figure_is_better_after_the_rounds_that_could_show_it_worse(
    text: str, by: float, rounds: int, *, better: bool, decided_after: int
) -> None:
    finding = apart(1e6, by, text, rounds=rounds)
    assert (finding.better, finding.rounds) == (better, decided_after)


def test_figures_share_the_chance_of_an_alarm() -> None:
    """Nine rounds of one figure can show it worse; forty need fourteen."""
    figures = FigurePairs(
        name="memory", labels=(), dimension=BYTES, base=(1e6,) * 20, head=tuple(2e6 + at for at in range(20))
    )
    bound = limit("change(metric(memory)) <= 5%")
    assert [figure_finding(figures, bound, gates=gates).rounds for gates in (0, 1, 40)] == [9, 9, 14]
    both_ways = limit("change(metric(memory)) == 0")
    assert figure_finding(figures, both_ways, gates=1).rounds == 10, "two ways to be wrong share it too"


def verdict(
    value: float,
    *heard: FigurePairs,
    revision: bool,
    before: Baseline | None,
    base: str = "a1b2c3d",
    context=CONTEXT,
    better: Better | None = None,
    **what: Any,
) -> Verdict:
    rounds = {"differences": (0.0,) * 12, "interval": Interval(low=-0.01, high=0.01)} | what
    paired = Paired(decision=Decision.NOT_SLOWER, shift=0.0, base=base, revision=revision, figures=heard, **rounds)
    around = Interval(low=value * 0.99, high=value * 1.01)
    labels = [one.labels for one in heard] or [()]
    made = Metric(name="memory", value=value, dimension=BYTES, interval=around, better=better)
    metrics = tuple(replace(made, labels=own) for own in labels)
    (one,) = judge(
        measured(1e6, metrics=MetricSet(metrics=metrics)), [limit("change(metric(memory)) <= 5%")],
        baseline=before, context=context, paired=paired,
    ).verdicts  # fmt: skip
    return one


def outcome(value: float, heard: FigurePairs | None, *, revision: bool, before: Baseline | None) -> Outcome:
    return verdict(value, *([heard] if heard else []), revision=revision, before=before).outcome


LINE = accepted(1e6, figures=(Figure(name="memory", value=1e6, dimension=BYTES),))


@pytest.mark.parametrize(
    ("value", "heard", "revision", "before", "expected"),
    [
        (1.1e6, pairs(1.1), True, None, Outcome.REGRESSED),
        (1e6, pairs(1.0), True, LINE, Outcome.PASSED),
        (1e6, None, True, LINE, Outcome.NOT_MEASURED),
        (1.1e6, pairs(1.1), False, LINE, Outcome.REGRESSED),
        (1.1e6, pairs(1.0, base=1.1e6), False, LINE, Outcome.MOVED),
        (1.1e6, pairs(1.04, scatter=0.2), False, LINE, Outcome.UNDECIDED),
        (1e6, pairs(1.1), False, LINE, Outcome.PASSED),
        (1.1e6, None, False, LINE, Outcome.REGRESSED),
        (1.1e6, pairs(1.0, scatter=0.0), False, LINE, Outcome.SUSPECT),
        (1.05e6, pairs(1.0, base=1.05e6), False, LINE, Outcome.PASSED),
        (1.1e6, pairs(1.0, scatter=0.0, base=1.1e6), False, LINE, Outcome.MOVED),
        (1.1e6, pairs(1.1, scatter=0.0), False, LINE, Outcome.REGRESSED),
        (1.1e6, pairs(1.2, scatter=0.0), False, LINE, Outcome.REGRESSED),
        (1.05e6, pairs(1.1, base=1.05e6), False, LINE, Outcome.REGRESSED),
        (1.05e6, pairs(1.04, scatter=0.2), False, LINE, Outcome.UNDECIDED),
        (1.1e6, pairs(1.0, scatter=0.0), True, None, Outcome.PASSED),
    ],
)
def test_a_revision_takes_the_place_of_the_line_and_else_decides_what_it_leaves_open(
    value: float, heard: FigurePairs | None, revision: bool, before: Baseline | None, expected: Outcome
) -> None:
    assert outcome(value, heard, revision=revision, before=before) is expected


def test_the_worst_of_several_figures_in_both_builds_is_shown() -> None:
    kernels = [(("kernel", name),) for name in "abc"]
    heard = [replace(pairs(factor), labels=own) for factor, own in zip((1.0, 1.3, 0.8), kernels)]
    for order in (heard, heard[::-1]):
        one = verdict(1.1e6, *order, revision=True, before=None)
        assert (one.outcome, one.metric.labels) == (Outcome.REGRESSED, kernels[1])


@pytest.mark.parametrize(
    ("base", "named"), [("a1b2c3d", "worse than base a1b2c3d in "), ("", "worse than the base in ")]
)
def test_the_base_of_the_rounds_is_named(base: str, named: str) -> None:
    sentence = verdict(1.1e6, pairs(1.1), revision=False, before=LINE, base=base).sentence
    assert named in sentence
    assert abs(float(sentence.rpartition(": ")[2].removesuffix(" %")) - 10) < 1, "by how much, whatever was accepted"


@pytest.mark.parametrize(
    ("better", "heard", "named"),
    [(Better.LOWER, (), True), (Better.LOWER, (pairs(1.1),), False), (None, (), False)],
)
def test_a_figure_of_a_test_that_the_base_did_not_give_is_named(
    better: Better | None, heard: tuple[FigurePairs, ...], named: bool
) -> None:
    one = verdict(1.1e6, *heard, revision=False, before=LINE, better=better)
    assert ("the base did not measure it" in one.sentence) is named
    alike = verdict(1.1e6, *heard, revision=False, before=LINE, better=better, same=True, differences=())
    assert "the base did not measure it" not in alike.sentence, "without a round, nobody looked"


def test_after_two_builds_no_other_comparison_is_announced() -> None:
    full = replace(CONTEXT, mode=Mode.FULL, paired_available=True)
    one = verdict(1.1e6, pairs(1.0, scatter=0.0), revision=False, before=LINE, context=full)
    assert "compare with the accepted commit" not in one.sentence


def ratios(*heads: float, text: str = "change(metric(memory)) <= 5%") -> FigureFinding:
    figures = FigurePairs(
        name="memory", labels=(), dimension=BYTES, base=(1e6,) * len(heads), head=tuple(1e6 * ratio for ratio in heads)
    )
    return figure_finding(figures, limit(text), gates=1)


@pytest.mark.parametrize(
    ("heads", "decision", "rounds"),
    [
        ([1.03 + 0.0001 * (at % 3) for at in range(6)], Decision.UNDECIDED, 6),
        ([1.03 + 0.0001 * (at % 3) for at in range(7)], Decision.NOT_SLOWER, 7),
        ([1.03, 1.0301, 1.5, *(1.0302 + 0.0001 * at for at in range(9))], Decision.UNDECIDED, 12),
        ([1.03, 1.0301, 1.5, *(1.0302 + 0.0001 * at for at in range(11))], Decision.NOT_SLOWER, 14),
        ([0.99, *(1.1 + 0.001 * at for at in range(11))], Decision.UNDECIDED, 12),
        ([0.99, *(1.1 + 0.001 * at for at in range(16))], Decision.SLOWER, 17),
        ([1.03] * 6 + [1.06] * 3, Decision.UNDECIDED, 9),
    ],
    ids=[
        "six",
        "seven",
        "one far round of twelve",
        "one far round of fourteen",
        "not a look",
        "a look",
        "below the limit",
    ],
)
def test_a_figure_is_judged_as_a_time_is(heads: list[float], decision: Decision, rounds: int) -> None:
    """Worse at a look, with the whole change beyond the limit; cleared by an interval that leaves out a far round."""
    finding = ratios(*heads)
    assert (finding.decision, finding.rounds) == (decision, rounds)


@pytest.mark.parametrize(("rounds", "decision"), [(16, Decision.UNDECIDED), (17, Decision.NOT_SLOWER)])
def test_where_nothing_is_allowed_a_figure_clears_once_it_could_have_been_found(
    rounds: int, decision: Decision
) -> None:
    heads = [1.0 + 0.0001 * (-1) ** at * (at + 1) for at in range(rounds)]
    assert ratios(*heads, text="change(metric(memory)) <= 0").decision is decision


def test_a_figure_that_falls_to_nothing_is_better() -> None:
    figures = FigurePairs(name="memory", labels=(), dimension=BYTES, base=(2.0,) * 9, head=(0.0, 0.1) * 4 + (0.0,))
    finding = figure_finding(figures, limit("change(metric(memory)) <= 50%"), gates=1)
    assert (finding.decision, finding.better) == (Decision.NOT_SLOWER, True)


@pytest.mark.parametrize(
    ("heard", "what", "expected", "reads"),
    [
        (pairs(1.1), {"same": True}, Outcome.MOVED, ("perfgate doctor",)),
        (pairs(1.0, base=1.1e6), {"same": True}, Outcome.MOVED, ()),
        (pairs(1.0, base=1.1e6), {"shared": ("data.npz",)}, Outcome.SUSPECT, ("git diff --stat a1b2c3d",)),
        (pairs(1.1), {"shared": ("data.npz",)}, Outcome.REGRESSED, ()),
        (pairs(1.04, scatter=0.2), {"same": True}, Outcome.UNDECIDED, ()),
    ],
)
def test_two_builds_that_share_what_may_be_the_cause(
    heard: FigurePairs, what: dict[str, object], expected: Outcome, reads: tuple[str, ...]
) -> None:
    """The same code in both builds cannot have regressed; a file that both read may be the cause."""
    one = verdict(1.1e6, heard, revision=False, before=LINE, **what)
    assert one.outcome is expected
    assert not reads or one.next == reads
    assert ("data.npz" in one.sentence) is (expected is Outcome.SUSPECT)


CAME = replace(LINE, runs=0, why="")
"""A line that came with the change, for a test that the base has."""
LATER = replace(LINE, figures=())
"""A line that was there before, to which the change adds the figure."""
FULL = replace(CONTEXT, mode=Mode.FULL, paired_available=True)


@pytest.mark.parametrize(
    ("heard", "what", "expected"),
    [
        (pairs(1.0), {}, Outcome.PASSED),
        (pairs(0.8), {}, Outcome.PASSED),
        (pairs(1.1), {}, Outcome.REGRESSED),
        (pairs(10.0), {}, Outcome.REGRESSED),
        (pairs(1.0), {"shared": ("data.npz",)}, Outcome.SUSPECT),
        (None, {}, Outcome.UNDECIDED),
    ],
)
@pytest.mark.parametrize("before", [CAME, LATER])
def test_a_value_that_came_with_the_change_clears_nothing_by_itself(
    before: Baseline, heard: FigurePairs | None, what: dict[str, object], expected: Outcome
) -> None:
    """The first line of a figure, written from the worse code, let ten times as much pass."""
    context = replace(FULL, edited=LINE) if before is LATER else FULL
    one = verdict(1e6, *([heard] if heard else []), revision=False, before=before, context=context, **what)
    assert one.outcome is expected
    assert "came with this change" in one.sentence
    if expected is Outcome.REGRESSED:
        assert one.figure.value == pytest.approx(1e6, rel=0.01), "what the base has, and not what the line says"
        assert one.next[0] == "git diff --stat a1b2c3d"
        assert "perfgate accept" in one.next[-1]


@pytest.mark.parametrize("before", [CAME, LATER])
def test_a_worse_value_that_came_with_the_change_is_accepted_by_its_reason(before: Baseline) -> None:
    reasoned = replace(LINE, why="wider tiles", when="2026-07-01")
    context = replace(FULL, edited=reasoned) if before is LATER else FULL
    line = before if before is LATER else replace(reasoned, runs=0)
    one = verdict(1e6, pairs(1.1), revision=False, before=line, context=context)
    assert (one.outcome, one.next) == (Outcome.ACCEPTED, ())
    assert one.sentence.endswith('this change accepts it: "wider tiles"')


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (FULL, Outcome.UNDECIDED),
        (replace(CONTEXT, policy=CI), Outcome.UNDECIDED),
        (CONTEXT, Outcome.PASSED),
        (replace(FULL, paired_available=False), Outcome.PASSED),
        (replace(FULL, mode=Mode.QUICK), Outcome.PASSED),
    ],
)
def test_without_two_builds_such_a_value_is_open_in_ci(context: JudgeContext, expected: Outcome) -> None:
    metrics = MetricSet(metrics=(Metric(name="memory", value=1e6, dimension=BYTES),))
    limits = [limit("change(metric(memory)) <= 5%")]
    (one,) = judge(measured(1e6, metrics=metrics), limits, baseline=CAME, context=context).verdicts
    assert one.outcome is expected
    assert [step.rpartition(" ")[2] for step in one.next] == ["--perfgate-against"] * (expected is Outcome.UNDECIDED)


def test_a_value_of_the_change_that_this_run_misses_is_worse_than_accepted() -> None:
    one = verdict(1.2e6, revision=False, before=CAME, context=FULL)
    assert one.outcome in {Outcome.SUSPECT, Outcome.REGRESSED}
    assert "came with this change" not in one.sentence


def test_a_figure_that_moved_offers_to_accept_it_and_a_regression_does_not_offer_the_doctor() -> None:
    moved = verdict(1.1e6, pairs(1.0, base=1.1e6), revision=False, before=LINE)
    worse = verdict(1.1e6, pairs(1.1), revision=False, before=LINE)
    noisy = accepted(1e6, figures=(Figure(name="memory", value=1e6, dimension=BYTES, scatter=0.1, runs=4),))
    unsure = verdict(1.1e6, revision=False, before=noisy)
    assert unsure.outcome is Outcome.SUSPECT
    assert [step.rpartition(" ")[2] for step in unsure.next] == ["--perfgate=full"]
    cleared = verdict(1.1e6, pairs(1.0, base=1.1e6), revision=False, before=noisy)
    assert cleared.next == moved.next
    assert [step.partition(" ")[2].partition(" ")[0] for step in moved.next] == ["accept"]
    confirmed = verdict(1.1e6, pairs(1.1), revision=False, before=noisy)
    for one in (worse, confirmed):
        assert one.next == ("git diff --stat a1b2c3d", *moved.next), "the code first, then the line"
    assert verdict(1.1e6, pairs(1.1), revision=True, before=None).next == ("git diff --stat a1b2c3d",)
    assert "perfgate doctor" not in worse.next


def test_what_rounds_leave_open_of_a_figure_is_nothing_to_accept() -> None:
    unsure = pairs(1.04, scatter=0.2)
    for one in (verdict(9e6, unsure, revision=False, before=LINE), verdict(9e6, unsure, revision=True, before=None)):
        assert (one.outcome, len(one.next)) == (Outcome.UNDECIDED, 1)
        assert one.next[0].endswith(" --perfgate-against a1b2c3d")


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (pairs(1.1), Outcome.MOVED),
        (pairs(1.04, scatter=0.2), Outcome.UNDECIDED),
        (pairs(1.0), Outcome.PASSED),
        (pairs(0.8), Outcome.PASSED),
    ],
)
def test_the_same_code_on_both_sides_of_a_revision_is_no_regression_and_no_better(
    heard: FigurePairs, expected: Outcome
) -> None:
    assert verdict(1.1e6, heard, revision=True, before=None, same=True).outcome is expected


def test_a_figure_that_fell_since_a_revision_is_improved() -> None:
    assert outcome(0.8e6, pairs(0.8), revision=True, before=None) is Outcome.IMPROVED
