"""What decides only at an edge, or only in one part of a sentence: gaps that ci/mutate found."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest

from pytest_perfgate.core.judge.acceptance import Change, decide
from pytest_perfgate.core.judge.accepted_line import Signature, drift
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import _trial, judge
from pytest_perfgate.core.judge.samples import scatter_of
from pytest_perfgate.core.judge.suspects import prediction
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity, Sitting
from pytest_perfgate.model.metric import Analysis, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension, Interval
from pytest_perfgate.model.verdict import Decision, Paired
from tests import reports
from tests.unit.core.gate.bench import FLOORED, KEY, KINDS, accepted, limit, measured

CONTEXT = JudgeContext(kinds=KINDS, gates=40)


def verdict(time: float, text: str = "slowdown <= 3%", baseline=None, context=CONTEXT, paired=None, **fields):
    held = baseline or accepted(1e6)
    return judge(measured(time, **fields), [limit(text)], baseline=held, context=context, paired=paired).verdicts[0]


# accepting


def test_one_sitting_more_is_the_mean_and_the_deviation_of_all() -> None:
    logs = [-0.01, 0.0, 0.01]
    before = reports.baseline("test_a", 1e6, scatter=stdev(logs), sittings=3, expires="2999-01-01", who="then")
    report = reports.case("test_a", 1.01e6, 1e6)
    found = decide(report, before, (), Signature(when="2026-06-01"), add=True)
    every = [*logs, math.log(1.01)]
    assert found.change is Change.SITTING
    assert found.after.time == pytest.approx(1e6 * math.exp(fmean(every)))
    assert found.after.scatter == pytest.approx(stdev(every))
    assert found.after.sittings == 4
    kept = (found.after.when, found.after.who, found.after.why, found.after.expires)
    assert kept == ("2026-05-02", "then", "TMA loads", "2999-01-01")
    assert found.after.identity == report.measurement.identity
    signed = decide(report, before, (), Signature(who="now", why="again", expires="2999-02-02"), add=True).after
    assert (signed.who, signed.why, signed.expires, signed.when) == ("now", "again", "2999-02-02", "2026-05-02")
    other = replace(before, identity=Identity(device="NVIDIA-H200", threads="9"))
    assert decide(report, other, (), Signature(), add=True).change is Change.OTHER
    own = replace(before, identity=replace(report.measurement.identity))
    assert decide(report, own, (), Signature(), add=True).after.identity is own.identity
    assert decide(report, None, (), Signature(), add=True).change is Change.NEW


@pytest.mark.parametrize(
    ("line", "measured", "change"),
    [
        ("a1b2c3d4e5f6", "c0ffee", Change.SLOWER),
        ("a1b2c3d4e5f6", "a1b2c3d4e5f6" + "0" * 28, Change.SITTING),
        ("a1b2c3d4e5f6", "a1b2c3d4e5f6+dirty", Change.SLOWER),
        ("a1b2c3d4e5f6+dirty", "a1b2c3d4e5f6+dirty", Change.SLOWER),
        ("", "", Change.SLOWER),
    ],
)
def test_only_a_sitting_of_the_same_code_is_added_where_the_time_moved(
    line: str, measured: str, change: Change
) -> None:
    report = reports.case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    before = reports.baseline("test_a", 1e6, commit=line)
    assert decide(report, before, (), Signature(commit=measured), add=True).change is change


def test_a_sitting_is_counted_once() -> None:
    report = reports.case("test_a", 1.01e6, 1e6)
    first, later = Signature(started="2026-06-01T10:00:00+00:00"), Signature(started="2026-06-01T11:00:00+00:00")
    before = reports.baseline("test_a", 1e6)
    once = decide(report, before, (), first, add=True).after
    assert (once.sittings, once.counted) == (2, first.started)
    again = decide(report, once, (), first, add=True)
    assert (again.change, again.after) == (Change.COUNTED, None)
    assert first.started in again.why
    assert decide(report, once, (), later, add=True).after.sittings == 3
    own = decide(report, decide(report, None, (), first).after, (), first, add=True)
    assert (own.change, own.why) == (Change.COUNTED, "the line was made from this time")


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_is_none_is_not_accepted(time: float) -> None:
    found = decide(timed(time), None, (), Signature())
    assert (found.change, found.why) == (Change.UNTRUSTED, f"a time of {time} ns is none")


def timed(time: float):
    report = reports.case("test_a", 1e6)
    metrics = MetricSet(metrics=(Metric(name="time", value=time, dimension=Dimension.TIME),))
    return replace(report, measurement=replace(report.measurement, metrics=metrics))


def test_what_accepting_asks_first() -> None:
    assert decide(timed(0.5), None, (), Signature()).change is Change.NEW
    bare = reports.case("test_a", 1e6)
    bare = replace(bare, measurement=replace(bare.measurement, metrics=MetricSet()))
    assert decide(bare, None, (), Signature()).change is Change.UNTIMED
    first, second = (Problem(code="x", what=what) for what in ("the clock moved", "throttled"))
    found = decide(replace(reports.case("test_a", 1e6), problems=(first, second)), None, (), Signature())
    assert (found.change, found.why) == (Change.UNTRUSTED, "the clock moved")
    moved = reports.case("test_a", 1.004e6, 1e6, Outcome.REGRESSED)
    mixed = replace(moved, verdicts=(*reports.case("test_a", 1e6).verdicts, *moved.verdicts))
    assert decide(mixed, mixed.baseline, (), Signature()).change is Change.SLOWER
    day = reports.baseline("test_a", 1e6, expires="2026-05-31")
    assert decide(reports.case("test_a", 1e6), day, (), Signature(when="2026-05-31T10:00")).change is Change.KEPT


def test_sittings_of_a_new_line() -> None:
    past = [Sitting(key=KEY, device="d", time=t, when="") for t in (1e6, 1.02e6, 1e6)]
    for some, count in ((past, 3), ((), 1)):
        assert decide(reports.case("test_a", 1e6), None, some, Signature()).after.sittings == count
    assert scatter_of(past[:2], 1e6) == (pytest.approx(math.log(1.02) / math.sqrt(2)), 2)
    assert scatter_of([replace(past[0], time=0.5)] * 2, 0.5) == (0.0, 2)


# against a baseline, a revision, a limit


def test_small_and_strict_numbers_are_screened_like_others() -> None:
    assert verdict(1.001e6, "slowdown <= 0%", shape=(1.0, 1.0, 1.0), context=FLOORED).outcome is Outcome.PASSED
    assert verdict(0.5, baseline=accepted(0.5)).outcome is Outcome.PASSED
    renewing = accepted(1e6, expires="2026-09-01", when="2026-05-02", why="not yet")
    context = replace(CONTEXT, today="2026-05-02", edited=renewing)
    again = verdict(1e6, baseline=accepted(1e6, expires="2026-05-01"), context=context)
    assert (again.outcome, again.visible) == (Outcome.ACCEPTED, 0.03)
    tiny = replace(CONTEXT, edited=accepted(0.9, why="now in double precision"))
    assert verdict(0.9, baseline=accepted(0.3), context=tiny).outcome is Outcome.ACCEPTED


def paired(decision: Decision, shift: float, rounds: int = 10, **fields) -> Paired:
    interval = Interval(low=shift - 0.01, high=shift + 0.01)
    given = {"base": "a1b2c3d", "visible": 0.02, "revision": True} | fields
    return Paired(decision=decision, differences=(shift,) * rounds, shift=shift, interval=interval, **given)


@pytest.mark.parametrize(("shift", "outcome"), [(0.18, Outcome.PASSED), (0.22, Outcome.REGRESSED)])
def test_the_floor_of_two_arms_is_of_the_time_before(shift: float, outcome: Outcome) -> None:
    found = verdict(10e3 * (1 + shift), paired=paired(Decision.SLOWER, shift), context=FLOORED)
    assert (found.outcome, found.raised) == (outcome, pytest.approx(0.2))
    assert verdict(1e6, paired=paired(Decision.SLOWER, shift), context=FLOORED).raised is None


def test_more_rounds_are_at_least_fourteen_and_a_clock_event_keeps_what_it_could_see() -> None:
    spanning = replace(paired(Decision.UNDECIDED, 0.04, 2), interval=Interval(low=-0.01, high=0.09))
    assert verdict(1e6, paired=spanning).next[0].endswith("--perfgate-rounds=14")
    clocked = paired(Decision.SLOWER, 0.25, clocks_hz=(1.5e9, 1.2e9))
    assert verdict(1.25e6, paired=clocked).visible == 0.02
    assert verdict(1.25e6, paired=replace(clocked, visible=None)).visible == 0.03


def test_more_processes_are_asked_for_than_there_were() -> None:
    shape = (0.97, 1.0, 1.0, 1.03)
    assert verdict(1e6, shape=shape).next[0].endswith("--perfgate-rounds=8")
    assert verdict(1e6, "time <= 1ms", shape=(1.0,)).next[0].endswith("--perfgate-rounds=6")


def counted(low: float, high: float | None = None) -> Metric:
    interval = None if high is None else Interval(low=low, high=high)
    return Metric(name="count", value=low, dimension=Dimension.COUNT, interval=interval)


def test_an_exact_limit_holds_for_the_whole_interval_or_not_at_all() -> None:
    for metric, outcome, sentence in (
        (counted(5), Outcome.PASSED, "keeps the limit"),
        (counted(5, 5), Outcome.PASSED, "the whole interval keeps the limit"),
        (counted(5, 6), Outcome.BROKEN, "the whole interval misses the limit"),
        (counted(6), Outcome.BROKEN, "misses the limit"),
    ):
        found = verdict(1e6, "count == 5", metrics=MetricSet(metrics=(metric,)))
        assert (found.outcome, found.sentence) == (outcome, sentence)


def test_a_metric_that_no_kind_describes_is_not_measured() -> None:
    found = verdict(1e6, "overlap >= 50%", context=replace(CONTEXT, kinds={}))
    assert (found.outcome, found.next) == (Outcome.NOT_MEASURED, ())


# conviction


def test_what_chance_reaches_comes_from_the_history_or_from_the_line() -> None:
    line = accepted(1e6, scatter=0.01, sittings=7)
    for scatter, sittings, expected in ((0.5, 2, 2), (0.5, 1, 7), (None, 5, 7)):
        context = replace(CONTEXT, scatter=scatter, sittings=sittings)
        found = prediction(_trial(measured(1e6), context, line, None))
        assert found.sittings == expected
        assert (found.scatter > 0.1) is (expected == 2)
    two = replace(CONTEXT, scatter=0.005, sittings=2)
    assert "after 2 runs" in verdict(1.1e6, context=two).sentence
    unstable = replace(paired(Decision.UNDECIDED, 0.04), revision=False, unstable=True)
    assert "beside a1b2c3d" in verdict(1.1e6, paired=unstable).sentence
    nameless = replace(unstable, base="")
    assert "beside the base" in verdict(1.1e6, paired=nameless).sentence


def test_an_anchor_of_less_than_a_nanosecond() -> None:
    past = [Sitting(key=KEY, device="d", time=0.6, when="")]
    assert drift(past, 0.5, 0.1).alarms
    assert drift(past, 0.0, 0.1) is None


# words


@pytest.mark.parametrize(("ranks", "said"), [(12, "8, 9"), (14, "6, 7 and 2 more")])
def test_many_scopes_are_cut_and_the_rest_is_counted(ranks: int, said: str) -> None:
    every = [
        Metric(name="overlap", value=0.9, dimension=Dimension.FRACTION, labels=labels(rank=rank))
        for rank in range(ranks)
    ]
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=tuple(every)), views={})
    with pytest.raises(PerfgateError) as caught:
        judge_artifact(analysis, [limit("overlap(rank=99) >= 1%")])
    assert caught.value.mend.endswith(said)
    assert caught.value.mend.count(",") == 11


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("bandwidth >= 5", " 5 GB/s"),
        ("time <= 5", " 5us"),
        ("time <= 5 parsec", "units that fit: "),
        ("time <= 5 uss", "did you mean 'us'"),
        ("time <= 5 GBB", "units that fit: ns, us, ms, s"),
        ("ncu(x) <= 5 uss", "did you mean 'us'"),
        ("registers <= 128, registers >= 32", "write two limits"),
        ("registers <= 128,", "write 1000 or 1_000"),
        ("slowdown <= 5ms", "units that fit: %"),
        ("slowdown <= 1.03x", "a change is written in percent"),
    ],
)
def test_what_a_wrong_unit_is_told(text: str, mend: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("slowdown <= 0,03", "write slowdown <= 0.03"),
        ("slowdown <= -0,03", "write slowdown <= -0.03"),
        ("slowdown <= 3,5", "write slowdown <= 3.5%"),
        ("time <= 0,5", "write time <= 0.5ns or time <= 0.5us or time <= 0.5ms or time <= 0.5s"),
        ("slowdown <= 0,5%", "write slowdown <= 0.5%"),
    ],
)
def test_a_decimal_comma_below_one_is_a_fraction_and_above_it_a_percentage(text: str, mend: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert caught.value.mend == mend
