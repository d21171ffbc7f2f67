"""Tests of core/judge/against_revision: demanded improvements, accepted slowdowns, and whose files an arm loaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.against_revision import (
    arm_facts,
    foreign_modules,
    same_code,
    tuning_facts,
)
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.render.words import figure_note
from pytest_perfgate.model.measurement import Baseline, Samples
from pytest_perfgate.model.metric import Interval
from pytest_perfgate.model.plan import Decision, Outcome
from pytest_perfgate.model.verdict import Arm, Paired
from tests.unit.core.judge.bench import (
    GPU,
    accepted,
    limit,
    measured,
    samples,
)
from tests.unit.core.judge.paired_builds import (
    NOT_SLOWER,
    OPEN,
    PAIRED_CONTEXT,
    SLOWER,
    judged_arms,
    paired,
    paired_verdict,
)
from tests.unit.core.judge.paired_builds import paired_verdict as beside


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (SLOWER, Outcome.REGRESSED),
        (replace(SLOWER, shift=0.02, interval=Interval(low=0.015, high=0.025)), Outcome.PASSED),
        (NOT_SLOWER, Outcome.PASSED),
        (OPEN, Outcome.UNDECIDED),
        (paired(Decision.NOT_SLOWER, -0.2, -0.21, -0.19, faster=True), Outcome.IMPROVED),
        (paired(Decision.NOT_SLOWER, -0.2, -0.21, -0.19), Outcome.PASSED),
        (paired(Decision.NOT_SLOWER, -0.02, -0.03, -0.01), Outcome.PASSED),
    ],
)
def test_against_a_revision_no_baseline_is_asked(evidence: Paired, expected: Outcome) -> None:
    by_name = replace(evidence, revision=True)
    for baseline in (None, accepted(1e6), accepted(1e3)):
        verdict = paired_verdict(1e6, by_name, baseline=baseline, context=replace(PAIRED_CONTEXT, policy=CI))
        assert verdict.outcome is expected
        assert ("faster" in verdict.sentence) is (expected is Outcome.IMPROVED)
        assert verdict.baseline is None
        assert (verdict.rounds, verdict.visible) == (10, 0.02)
        assert verdict.metric.value == evidence.shift


SAME_CODE = Paired(decision=Decision.NOT_SLOWER, differences=(), shift=0.0, base="a1b2c3d", same=True)


@pytest.mark.parametrize(
    ("time", "text", "line", "expected"),
    [
        pytest.param(1.02e6, "slowdown <= 3%", accepted(1e6), Outcome.PASSED, id="as accepted"),
        pytest.param(1.4e6, "slowdown <= 3%", accepted(1e6), Outcome.MOVED, id="far slower than a line of one run"),
        pytest.param(0.5e6, "slowdown <= 3%", accepted(1e6), Outcome.PASSED, id="faster: nothing made it so"),
        pytest.param(1e6, "slowdown <= 3%", None, Outcome.PASSED, id="no line"),
        pytest.param(1e6, "slowdown <= -10%", None, Outcome.UNBASELINED, id="a speed-up that nothing shows"),
        pytest.param(
            1.4e6, "slowdown <= 3%", accepted(1e6, runs=5, scatter=0.004), Outcome.MOVED, id="slower since accepted"
        ),
    ],
)
def test_what_is_one_code_with_its_base_is_never_a_regression(
    time: float, text: str, line: Baseline | None, expected: Outcome
) -> None:
    verdict = beside(time, SAME_CODE, text, baseline=line, context=replace(PAIRED_CONTEXT, policy=CI))
    assert verdict.outcome is expected
    assert "rounds" not in verdict.sentence
    assert ("which has the same code" in verdict.sentence) is (expected is not Outcome.UNBASELINED)
    package = beside(time, replace(SAME_CODE, shared=("conftest.py",)), text, baseline=line, context=PAIRED_CONTEXT)
    assert ("which has the same package" in package.sentence) is (expected is not Outcome.UNBASELINED)
    if expected is Outcome.PASSED:
        assert (verdict.visible, verdict.metric) == (None, None), "nothing was compared, so nothing can be detected"
        named = beside(time, replace(SAME_CODE, revision=True), text, baseline=line, context=PAIRED_CONTEXT)
        assert named.baseline == verdict.baseline == line
        assert figure_note(verdict) == " (not compared: same code)"


@pytest.mark.parametrize(("paired", "note"), [(SAME_CODE, " (not compared: same package)"), (NOT_SLOWER, "")])
def test_without_an_accepted_time_files_that_both_builds_share_are_named(paired: Paired, note: str) -> None:
    """Base and head read one helper, so that they do not show what an edit of it costs."""
    verdict = beside(1e6, replace(paired, shared=("tests/helpers.py",)), baseline=None)
    (text,) = (text for name, text in verdict.evidence if name == "builds")
    assert text == "tests/helpers.py changed since a1b2c3d, and both builds read the head's version"
    assert "same code" not in verdict.sentence
    assert (verdict.outcome, figure_note(verdict)) == (Outcome.PASSED, note)


@pytest.mark.parametrize("revision", [True, False])
def test_a_case_whose_test_differs_in_the_base_says_so_wherever_it_is_listed(revision: bool) -> None:
    evidence = paired(Decision.NOT_SLOWER, -0.4, -0.5, -0.3, revision=revision)
    for own, note in ((True, " (test or fixture differs in the base)"), (False, "")):
        verdict = beside(1e6, replace(evidence, own_file="it fails", own_test=own), baseline=accepted(1e6))
        assert (verdict.outcome, figure_note(verdict)) == (Outcome.PASSED, note)


@pytest.mark.parametrize(
    ("shift", "low", "high", "expected", "sentence"),
    [
        (-0.25, -0.26, -0.24, Outcome.PASSED, "the whole interval of 10 rounds against a1b2c3d keeps the limit"),
        (-0.05, -0.06, -0.04, Outcome.BROKEN, "the whole interval of 10 rounds against a1b2c3d misses the limit"),
        (0.001, -0.01, 0.01, Outcome.BROKEN, "the whole interval of 10 rounds against a1b2c3d misses the limit"),
        (-0.2, -0.25, -0.15, Outcome.UNDECIDED, "the interval of 10 rounds against a1b2c3d spans the limit"),
    ],
)
def test_an_improvement_demanded_against_a_revision_is_held_against_the_pairs(
    shift: float, low: float, high: float, expected: Outcome, sentence: str
) -> None:
    evidence = paired(Decision.NOT_SLOWER, shift, low, high, revision=True)
    verdict = paired_verdict(95.0, evidence, "slowdown <= -20%", baseline=None)
    assert (verdict.outcome, verdict.sentence, verdict.raised) == (expected, sentence, None)
    on_gpu = judged_arms("slowdown <= -20%", paired=evidence, context=PAIRED_CONTEXT, device=GPU)
    assert any("perfgate profile" in command for command in on_gpu.next) is (expected is Outcome.BROKEN)
    assert verdict.metric is not None
    assert verdict.metric.value == shift
    slower = paired(Decision.SLOWER, 0.05, 0.04, 0.06, revision=True)
    assert paired_verdict(1e6, slower, "slowdown <= -20%").outcome is Outcome.BROKEN


def test_what_keeps_a_demanded_improvement_from_being_judged() -> None:
    faster = paired(Decision.NOT_SLOWER, -0.25, -0.26, -0.24, revision=True)
    spans = paired(Decision.NOT_SLOWER, -0.2, -0.25, -0.15, revision=True, unstable=True)
    verdict = paired_verdict(1e6, replace(faster, same=True), "slowdown <= -20%")
    assert (verdict.outcome, verdict.next) == (Outcome.MOVED, ("perfgate doctor",))
    assert paired_verdict(1e6, replace(faster, edited=("a.py",)), "slowdown <= -20%").outcome is Outcome.SUSPECT
    assert paired_verdict(1e6, spans, "slowdown <= -20%").outcome is Outcome.UNSTABLE
    assert paired_verdict(1e6, replace(faster, unstable=True), "slowdown <= -20%").outcome is Outcome.PASSED
    assert paired_verdict(1e6, replace(faster, differences=(-0.25,) * 7), "slowdown <= -20%").outcome is Outcome.PASSED
    slow = replace(SLOWER, revision=True)
    assert paired_verdict(1e6, replace(slow, same=True), "slowdown <= -20%").outcome is Outcome.BROKEN
    assert paired_verdict(1e6, slow, "slowdown <= 0%").outcome is Outcome.REGRESSED, "that demands no improvement"
    few = paired_verdict(1e6, replace(faster, differences=(-0.25,) * 6), "slowdown <= -20%")
    assert few.outcome is Outcome.UNDECIDED
    assert "6 of at least 7 rounds" in few.sentence
    assert few.next == ("pytest 'tests/bench.py::test_gemm[4096-bf16]' --perfgate-against a1b2c3d",)


def test_the_shift_against_a_revision_is_the_metric_that_is_reported() -> None:
    report = judge(
        measured(1e6),
        [limit("slowdown <= 3%")],
        baseline=None,
        context=PAIRED_CONTEXT,
        paired=replace(OPEN, revision=True),
    )
    (metric,) = report.measurement.metrics.find("slowdown")
    assert (metric.value, metric.source) == (0.04, "paired, against a1b2c3d")
    assert not report.measurement.metrics.missing("slowdown")
    assert report.verdicts[0].next[0].endswith("--perfgate-against a1b2c3d")


@pytest.mark.parametrize(
    ("new", "outcome"), [(1.08e6, Outcome.ACCEPTED), (1.11e6, Outcome.ACCEPTED), (1.3e6, Outcome.REGRESSED)]
)
def test_a_slowdown_that_was_accepted_is_found_again_beside_the_old_commit(new: float, outcome: Outcome) -> None:
    """The run as a whole lies 40 % off: only the two arms can tell that it is the slowdown that was accepted."""
    edited = accepted(new, why="in double precision", when="2026-11-20")
    verdict = paired_verdict(1.5e6, SLOWER, context=replace(PAIRED_CONTEXT, edited=edited))
    assert verdict.outcome is outcome


def test_two_arms_without_an_interval_find_no_acceptance() -> None:
    edited = accepted(1.08e6, why="in double precision", when="2026-11-20")
    verdict = paired_verdict(1.5e6, replace(SLOWER, interval=None), context=replace(PAIRED_CONTEXT, edited=edited))
    assert verdict.outcome is not Outcome.ACCEPTED


def test_the_same_code_in_both_arms_is_no_matter_where_neither_is_slower() -> None:
    same = replace(NOT_SLOWER, same=True)
    assert beside(1e6, replace(same, revision=True)).outcome is Outcome.PASSED
    assert beside(1.1e6, same).sentence.startswith("slower than accepted, but not slower than base a1b2c3d")
    assert beside(1.1e6, replace(OPEN, same=True)).outcome is Outcome.UNDECIDED
    assert beside(1.1e6, replace(SLOWER, same=True)).outcome is Outcome.MOVED


def test_files_that_both_arms_share_leave_undecided_what_is_undecided() -> None:
    assert beside(1.1e6, replace(OPEN, shared=("tuning.txt",))).outcome is Outcome.UNDECIDED


def test_two_arms_of_one_test_tree_have_nothing_to_tell() -> None:
    assert list(arm_facts(replace(SLOWER, revision=True))) == []
    assert list(arm_facts(replace(SLOWER, shared=("tuning.txt",)))) == [], "by_arms says it where it decides"


def test_an_arm_without_a_name_is_the_base() -> None:
    for arms in (SLOWER, NOT_SLOWER, OPEN, replace(NOT_SLOWER, shared=("tuning.txt",))):
        assert "the base in 10 rounds" in beside(1.1e6, replace(arms, base="")).sentence
    shared = beside(1.1e6, replace(NOT_SLOWER, base="", shared=("tuning.txt",))).sentence
    assert "tuning.txt changed since the base," in shared


ARM = Arm(
    name="base",
    revision="abc",
    tree="def",
    dirty=False,
    mode="overlay",
    python="python",
    launch=(),
    environment=(),
    cwd="/",
    digest="0",
    root="/arms/base",
    modules=("pkg",),
)
OWN, OTHER = ("/arms/base/pkg/a.py", "1"), ("/home/pkg/a.py", "2")


def test_an_arm_loads_its_own_files_and_some_of_them() -> None:
    assert foreign_modules(ARM, [OWN]) is None
    strange = foreign_modules(ARM, [OWN, *[OTHER] * 7])
    assert strange is not None
    assert (strange.code, strange.retry) == ("arm-foreign-module", False)
    sentence = "the base build loaded files of the package under test from elsewhere: /home/pkg/a.py"
    assert strange.what == f"{sentence} and 6 more"
    alone = foreign_modules(ARM, [OTHER])
    assert alone is not None
    assert alone.what == sentence
    assert strange.evidence == (("arm", "base"), ("belongs below", "/arms/base"), *[("loaded", OTHER[0])] * 5)
    spoilt = foreign_modules(replace(ARM, sources=((OWN[0], "what was built"),)), [OWN])
    assert (spoilt.code, spoilt.retry, OWN[0] in spoilt.what) == ("arm-foreign-module", False, True)
    assert foreign_modules(replace(ARM, sources=(OWN, ("/arms/base/pkg/b.py", "2"))), [OWN]) is None
    assert foreign_modules(ARM, [], own=True) is None
    assert foreign_modules(replace(ARM, modules=()), []) is None
    nothing = foreign_modules(ARM, [])
    assert nothing is not None
    assert (nothing.what, nothing.retry) == ("the base build loaded no module of the package under test (pkg)", False)
    assert foreign_modules(ARM, [("/arms/base2/pkg/a.py", "1")]) is not None


def test_the_same_contents_are_the_same_code() -> None:
    assert same_code([("a", "1"), ("b", "2")], [("x", "2"), ("y", "1")])
    assert not same_code([("a", "1")], [("a", "2")])
    assert not same_code([], [])


def tuned(*choices: str) -> list[Samples]:
    return [samples(1e6, notes=(("tuning matmul", choice), ("timer", "events"))) for choice in choices]


TUNINGS = (
    ({"": tuned("warps: 4", "warps: 4")}, None),
    ({"": [samples(1e6)] * 3}, None),
    (
        {"base": [samples(1e6), *tuned("warps: 4")], "head": tuned("warps: 8")},
        "matmul ran as (warps: 4) in 1 process of the base, (warps: 8) in 1 process of the head",
    ),
    (
        {"": tuned("warps: 4", "warps: 8", "warps: 4")},
        "matmul ran as (warps: 4) in 2 processes, (warps: 8) in 1 process",
    ),
    ({"base": tuned("warps: 4"), "head": tuned("warps: 4")}, None),
    (
        {"base": tuned("warps: 4"), "head": tuned("warps: 8")},
        "matmul ran as (warps: 4) in 1 process of the base, (warps: 8) in 1 process of the head",
    ),
)


@pytest.mark.parametrize(("sides", "text"), TUNINGS)
def test_kernels_that_were_tuned_otherwise_are_named_with_the_processes(sides, text) -> None:
    assert tuning_facts(sides) == (() if text is None else (("tuning", text),))


def test_of_two_strange_files_one_is_shown_and_one_counted() -> None:
    assert foreign_modules(ARM, [OTHER, OTHER]).what.endswith(": /home/pkg/a.py and 1 more")
