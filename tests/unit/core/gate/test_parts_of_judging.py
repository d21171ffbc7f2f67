"""Each part of a condition on judging decides something: ci/mutate took it away, and nobody noticed."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.judge.against_limit import beside as lacking
from pytest_perfgate.core.judge.against_revision import arm_facts
from pytest_perfgate.core.judge.context import UNKNOWN, accepted_clock, moved, named, paired_clocks
from pytest_perfgate.core.judge.family import family_limits, family_notes
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.suite import Suite, floored, judge_suite, moved_together
from pytest_perfgate.core.judge.suspects import suspects
from pytest_perfgate.model.measurement import DIRTY, Baseline, Identity, Sitting
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, Problem, labels
from pytest_perfgate.model.plan import Case, CaseKey, Effect, Outcome, Plan
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.values import Dimension, Interval
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.gate.bench import (
    CONTEXT,
    FLOORED,
    GPU,
    HOST,
    KEY,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    outcome,
    samples,
    verdict,
)
from tests.unit.core.gate.test_cycles import CONTEXT as CLOCKED
from tests.unit.core.gate.test_cycles import verdict as clocked
from tests.unit.core.gate.test_paired import NOT_SLOWER, OPEN, SLOWER
from tests.unit.core.gate.test_paired import verdict as beside

GROUPS = (1.0, 1.001, 1.2, 1.201)


def share(name: str, low: float, value: float, high: float) -> Metric:
    return Metric(name=name, value=value, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))


# groups of processes


def test_processes_in_groups_calm_a_suspicion_only_where_some_are_no_slower() -> None:
    both = verdict(1.15e6, shape=(0.85, 0.851, 1.0, 1.15, 1.151))
    assert both.outcome is Outcome.UNSTABLE
    assert outcome(1.2e6, shape=GROUPS) is Outcome.SUSPECT, "each of them is slower than the limit"
    arms = replace(SLOWER, interval=Interval(low=0.05, high=0.3), shift=0.15)
    assert outcome(1.15e6, shape=(0.85, 0.851, 1.0, 1.15, 1.151), paired=arms) is Outcome.REGRESSED


def test_groups_of_times_say_nothing_of_what_a_capture_counted() -> None:
    seen = MetricSet(metrics=(share("overlap", 0.5, 0.6, 0.7),))
    found = verdict(1e6, [limit("overlap >= 60%")], shape=GROUPS, metrics=seen)
    assert (found.outcome, found.next) == (Outcome.UNDECIDED, ())


# what was not collected


def test_what_nobody_collected_names_its_source() -> None:
    (found,) = judge(measured(1e6), [limit("overlap >= 60%")], baseline=None, context=CONTEXT).verdicts
    assert found.next == ("capture it: it comes from capture='torch'",)
    gap = MetricSet(absent=(Absent(name="overlap", why="one rank alone"),))
    found = verdict(1e6, [limit("overlap >= 60%")], metrics=gap)
    assert (found.sentence, found.next) == ("overlap: one rank alone", ("capture it: it comes from capture='torch'",))
    counter = verdict(1e6, [replace(limit("ncu(lts) <= 5"), labels=(("metric", "lts"),))])
    assert counter.sentence == "ncu: nothing here produces ncu", "no report lacks it: there is none"
    untimed = verdict(1e6, [limit("time <= 1ms")], processes=())
    assert not any("capture it" in step for step in untimed.next), "time is no capture"


# two arms


def test_the_same_code_in_both_arms_is_no_matter_where_neither_is_slower() -> None:
    same = replace(NOT_SLOWER, same=True)
    assert beside(1e6, replace(same, revision=True)).outcome is Outcome.PASSED
    assert beside(1.1e6, same).sentence.startswith("slower than accepted, but not than a1b2c3d")
    assert beside(1.1e6, replace(OPEN, same=True)).outcome is Outcome.UNDECIDED
    assert beside(1.1e6, replace(SLOWER, same=True)).outcome is Outcome.MOVED


def test_files_that_both_arms_share_leave_undecided_what_is_undecided() -> None:
    assert beside(1.1e6, replace(OPEN, shared=("tuning.txt",))).outcome is Outcome.UNDECIDED


def test_two_arms_of_one_test_tree_have_nothing_to_tell() -> None:
    assert list(arm_facts(replace(SLOWER, revision=True))) == []
    assert list(arm_facts(replace(SLOWER, shared=("tuning.txt",)))) == [], "by_arms says it where it decides"


def test_an_arm_without_a_name_is_the_base() -> None:
    for arms in (SLOWER, NOT_SLOWER, OPEN, replace(NOT_SLOWER, shared=("tuning.txt",))):
        assert "the base beside it" in beside(1.1e6, replace(arms, base="")).sentence
    shared = beside(1.1e6, replace(NOT_SLOWER, base="", shared=("tuning.txt",))).sentence
    assert "tuning.txt changed since the base," in shared


def test_of_other_limits_two_arms_decide_nothing() -> None:
    slow = verdict(1.1e6)
    other = replace(slow, limit=limit("time <= 1s"))
    assert suspects([slow, other]) == (slow,)


# clocks


def test_two_arms_at_two_clocks_are_an_event_of_the_clock() -> None:
    arms = replace(SLOWER, shift=0.25, interval=Interval(low=0.2, high=0.3), clocks_hz=(1.5e9, 1.2e9))
    available = replace(CLOCKED, paired_available=True)
    assert clocked(1.25e6, (1.2e9,), available, arms).outcome is Outcome.INVALID
    assert "in the base beside it" in clocked(1.25e6, (1.2e9,), available, replace(arms, base="")).sentence
    less = replace(arms, shift=0.02, interval=Interval(low=0.015, high=0.025))
    assert clocked(1.25e6, (1.2e9,), available, less).outcome is not Outcome.INVALID, "no slower by what counts"


def test_a_clock_is_of_the_line_s_own_commit_clean_or_not() -> None:
    def at(commit: str, line: str) -> float | None:
        sitting = Sitting(key=KEY, device="d", time=1.0, when="", commit=commit, clock_hz=1.5e9)
        return accepted_clock(accepted(1e6, commit=line), [sitting])

    assert at("a1b2c3d", "a1b2c3d4e5") == at("a1b2c3d4e5", "a1b2c3d") == 1.5e9
    assert at(f"a1b2c3d{DIRTY}", f"a1b2c3d4e5{DIRTY}") == 1.5e9
    assert at(f"a1b2c3d{DIRTY}", "a1b2c3d4e5") is at("a1b2c3d", f"a1b2c3d4e5{DIRTY}") is at("bbbbbbb", "a1b2") is None


def test_the_clocks_of_two_arms_are_told_where_both_are_known() -> None:
    known, unknown = (
        Capture(key=KEY, device=GPU, identity=Identity(device=GPU.key), samples=(samples(1e6, clock_hz=hz),))
        for hz in ((1.5e9,), ())
    )
    assert paired_clocks([(known, known)]) == (1.5e9, 1.5e9)
    assert paired_clocks([(unknown, known)]) is paired_clocks([(known, unknown)]) is paired_clocks([]) is None


def test_an_unknown_clock_did_not_move() -> None:
    taken = measured(1e6, device=GPU, processes=(samples(1e6, clock_hz=(1.5e9,)),))
    assert moved(accepted(1e6), taken, ()) == ()
    assert named(None, ()) == UNKNOWN


# means


def report(time: float, param: str = "1", name: str = "", **fields) -> CaseReport:
    key = CaseKey(nodeid=f"t.py::test_mm[{param}]", name=name)
    held = accepted(1e6, key=key, **fields)
    return judge(measured(time, key=key, shape=(1.0,) * 3), [], baseline=held, context=CONTEXT)


def mean(text: str, *members: CaseReport, family: str = "t.py::test_mm") -> str:
    found = [note.text for note in family_notes(members, {family: [limit(text)]}, CONTEXT)]
    return found[0].partition(":")[0] if found else ""


def test_a_mean_takes_the_named_calls_of_its_family_too() -> None:
    (note,) = family_notes([report(1e6), report(1e6, name="bwd")], {"t.py::test_mm": [limit("geomean(time) <= 2ms")]}, CONTEXT)  # fmt: skip
    assert "over 2 cases" in note.text


def test_a_family_is_known_by_its_whole_name_and_by_that_of_its_function() -> None:
    for pattern, meant in (("t.py::test_*", True), ("test_m?", True), ("test_x*", False)):
        assert bool(mean(f"geomean(time, family={pattern}) <= 2ms", report(1e6))) is meant


def test_a_case_may_say_itself_of_which_family_it_is() -> None:
    bound = limit("geomean(time) <= 2ms")
    assert family_limits([Case(nodeid="t.py::test_a[1]", plan=Plan(), limits=(bound,))]) == {"t.py::test_a": (bound,)}
    named_so = Case(nodeid="t.py::test_a[1]", plan=Plan(), family="t.py::kernels", limits=(bound,))
    assert family_limits([named_so]) == {"t.py::kernels": (bound,)}


def test_a_case_that_is_not_to_be_trusted_is_in_no_mean() -> None:
    wrong = replace(report(1e6), problems=(Problem(code="foreign", what="process 77 used the device"),))
    assert mean("geomean(time) <= 2ms", wrong, report(1e6, "2")) == "not measured"


def test_a_mean_whose_interval_spans_its_limit_from_either_side_is_undecided() -> None:
    key = CaseKey(nodeid="t.py::test_mm[1]")
    seen = measured(1e6, key=key, metrics=MetricSet(metrics=(share("overlap", 0.4, 0.5, 0.6),)))
    case = CaseReport(key=key, verdicts=(), measurement=seen)
    for text in ("geomean(overlap) >= 50%", "geomean(overlap) <= 50%"):
        assert mean(text, case) == "undecided"
    assert mean("geomean(overlap) >= 30%", case) == mean("geomean(overlap) <= 70%", case) == "passed"
    assert mean("geomean(overlap) >= 70%", case) == mean("geomean(overlap) <= 30%", case) == "broken"


def test_lines_of_noisy_sittings_are_no_matter_to_a_mean_of_times() -> None:
    assert mean("geomean(time) <= 2ms", report(1e6, blind=3.0)) == "passed"
    known = report(1e6, blind=3.0)
    shared = known.measurement.with_metrics(MetricSet(metrics=(share("overlap", 0.4, 0.5, 0.6),)))
    assert mean("geomean(overlap) <= 70%", replace(known, measurement=shared)) == "passed"


# notes on a run


def test_only_what_passes_by_the_floor_is_told_to_do_so() -> None:
    slower = judge(measured(11e3), SLOWDOWN, baseline=accepted(10e3), context=FLOORED)
    far = judge(measured(12.5e3), SLOWDOWN, baseline=accepted(10e3), context=FLOORED)
    kept = judge(measured(1e6), [limit("time >= 1us")], baseline=None, context=FLOORED)
    assert far.verdicts[0].raised is not None
    (note,), (alone,) = floored([slower, far, kept]), floored([slower])
    assert note.names == alone.names != ()
    assert note.text.startswith("the floor raised limits of 2 of 3 cases; 1 limit kept by that alone")
    assert [one.names for one in floored([far, kept])] == [()]
    assert list(floored([kept])) == []


def test_a_case_that_was_not_measured_is_none_that_could_have_moved() -> None:
    gone = CaseReport(key=KEY, verdicts=(), baseline=accepted(1e6))
    shifted = CaseReport(
        key=KEY,
        verdicts=(replace(verdict(), outcome=Outcome.MOVED),),
        measurement=measured(1e6),
        baseline=accepted(1e6),
    )
    assert len(list(moved_together([shifted] * 3 + [gone] * 9))) == 1


def test_a_limit_of_no_call_that_applied_nowhere_is_only_warned_of() -> None:
    nowhere = replace(verdict(), limit=limit("time <= 1s"), outcome=Outcome.NOT_APPLICABLE)
    (note,) = judge_suite([CaseReport(key=KEY, verdicts=(nowhere,))], Suite(context=replace(CONTEXT, policy=CI)))
    assert (note.kind, note.effect) == ("nowhere", Effect.WARN)


# what a case is held against


def test_two_arms_beside_a_line_leave_the_line_what_it_is() -> None:
    def of(revision: bool, line: Baseline) -> CaseReport:
        edited = accepted(1.1e6, why="exact softmax", when="2026-06-01")
        arms, context = replace(SLOWER, revision=revision), replace(CONTEXT, edited=edited)
        return judge(measured(1.1e6), SLOWDOWN, baseline=line, context=context, paired=arms)

    line = accepted(1e6)
    apart = replace(line, identity=replace(line.identity, timer="cupti"))
    assert "timer cupti ->" in of(False, apart).unheld
    assert (of(True, apart).unheld, of(True, line).accepts) == ("", None)
    assert of(False, line).accepts is not None
    assert of(False, line).arms is None
    assert of(True, line).arms is not None


def test_every_number_between_two_bounds_equals_one() -> None:
    counted = Metric(name="count", value=5.0, dimension=Dimension.COUNT, interval=Interval(low=4.0, high=5.0))
    for interval, expected in ((counted.interval, Outcome.BROKEN), (Interval(low=5.0, high=5.0), Outcome.PASSED)):
        seen = MetricSet(metrics=(replace(counted, interval=interval),))
        assert outcome(1e6, [limit("count == 5")], metrics=seen) is expected


def test_only_a_measured_ceiling_may_be_passed() -> None:
    seen = MetricSet(metrics=(share("mfu", 1.06, 1.06, 1.06),))
    for device, expected in ((GPU, Outcome.PASSED), (HOST, Outcome.UNDECIDED)):
        assert outcome(1e6, [limit("mfu >= 50%")], processes=(), device=device, metrics=seen) is expected


def test_a_part_of_a_call_may_be_above_the_peak_of_the_whole() -> None:
    part = replace(share("sol", 1.2, 1.2, 1.2), labels=(("part", "gemm"),))
    assert judge(measured(1e6, device=GPU, metrics=MetricSet(metrics=(part,))), [], baseline=None, context=CONTEXT).problems == ()  # fmt: skip


def test_a_device_without_a_name_is_called_by_its_key() -> None:
    nameless = replace(HOST, name="")
    found = verdict(1e6, [limit("time <= 1s", on=("H200*",))], device=nameless, baseline=None)
    assert found.sentence.endswith("this is host-epyc-2")


def test_bounds_that_something_may_keep_are_bounds() -> None:
    assert [limit(text).bound for text in ("mfu <= 120%", "count(HMMA) <= -5", "time >= 0")] == [1.2, -5, 0]


def test_what_lacks_beside_a_figure_is_of_the_same_level() -> None:
    whole, of_rank = share("overlap", 0.5, 0.5, 0.5), replace(share("overlap", 0.5, 0.5, 0.5), labels=labels(rank=0))
    gaps = tuple(Absent(name="overlap", why="", labels=one) for one in ((), labels(rank=1), labels(stage="fwd")))
    held = MetricSet(absent=gaps)
    assert lacking("overlap", (), [whole], held) == ()
    assert lacking("overlap", (), [of_rank], held) == gaps[1:2]
    assert lacking("overlap", labels(rank=0), [of_rank], held) == ()
