"""Tests of core/judge/suite."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import Unpaired
from pytest_perfgate.core.judge.family import family_limits, geometric_mean
from pytest_perfgate.core.judge.judge import judge, not_measured, unmatched_limits
from pytest_perfgate.core.judge.policy import CI, exit_code, parse_policy
from pytest_perfgate.core.judge.suite import unbuilt
from pytest_perfgate.core.render.words import BUILDS, IN_TURNS, NO_LINE
from pytest_perfgate.model.measurement import Reference
from pytest_perfgate.model.plan import Case, Effect, Mode, Outcome, Plan, Reach
from tests.unit.core.judge.bench import (
    GPU,
    accepted,
    limit,
    measured,
    samples,
)
from tests.unit.core.judge.suites import COLLECTED, FAMILY, PLAIN_CONTEXT, key, notes


def reports(times: dict[str, float], *texts: str, **fields):
    limits = [limit(text) for text in texts or ("slowdown <= 300%",)]
    return [
        judge(
            measured(time, key=key(name), **fields),
            limits,
            baseline=accepted(1e6, key=key(name)),
            context=PLAIN_CONTEXT,
        )
        for name, time in times.items()
    ]


def mean_notes(times: dict[str, float], text: str = "geomean(slowdown) <= 1%", context=PLAIN_CONTEXT):
    return notes(reports(times), families={FAMILY: [limit(text)]}, context=context)


def test_a_test_that_is_gone_is_named() -> None:
    lines = [accepted(1e6, key=key(n)) for n in ("1", "2", "3")]
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=lines)
    assert (note.kind, note.effect, note.names) == ("dropped", Effect.WARN, (f"{FAMILY}[3]",))
    assert "1 accepted case no longer collected" in note.text
    assert note.text.endswith("perfgate prune removes its line"), "nothing has its name"
    ci = replace(PLAIN_CONTEXT, policy=CI)
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=lines, context=ci)
    assert note.effect is Effect.FAIL
    assert note.text.endswith("perfgate prune --from RECORD removes its line")
    ignored = replace(PLAIN_CONTEXT, policy=parse_policy(["unused=ignore"], ci=True))
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=lines, context=ignored)
    assert note.effect is Effect.PASS


def test_a_renamed_parameter_is_guessed() -> None:
    lines = [accepted(1e6, key=key("n1")), accepted(1e6, key=key("2"))]
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=lines)
    assert note.names == (f"{FAMILY}[n1] (renamed to {FAMILY}[1]?)",)
    assert f"first perfgate accept '{FAMILY}[1]' --reason \"...\"" in note.text
    ci = replace(PLAIN_CONTEXT, policy=CI)
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=lines, context=ci)
    assert f"first perfgate accept --from RECORD '{FAMILY}[1]'" in note.text
    several = [accepted(1e6, key=key(name)) for name in ("n1", "n2")]
    (note,) = notes(reports({"1": 1e6, "2": 1e6}), collected=COLLECTED, baselines=several)
    assert "first perfgate accept NEW-NAME" in note.text, "one sentence, however many"


def test_a_case_without_a_line_that_base_and_head_decided_is_named() -> None:
    decided = [
        replace(report, verdicts=(replace(one, evidence=((NO_LINE, "base and head decided"),)),))
        for report in reports({"1": 1e6, "2": 9e6})
        for one in report.verdicts
    ]
    (note,) = notes(decided, NO_LINE)
    assert (note.effect, note.names) == (Effect.WARN, (f"{FAMILY}[1]",)), "a slower one has a block that says it"
    assert note.text.endswith(', decided by base and head; next: perfgate accept --from RECORD --new --reason "..."')
    alike = [replace(report, verdicts=(replace(report.verdicts[0], metric=None),)) for report in decided]
    (note,) = notes(alike, NO_LINE)
    assert ", not compared: base and head have the same code; next: " in note.text
    mixed = [decided[0], replace(alike[0], key=key("3"))]
    assert [(one.text.partition(";")[0], one.names) for one in notes(mixed, NO_LINE)] == [
        ("1 case without an accepted time, decided by base and head", (f"{FAMILY}[1]",)),
        ("1 case without an accepted time, not compared: base and head have the same code", (f"{FAMILY}[3]",)),
    ]
    why = "table.json changed since c0ffee, and both builds read the head's version"
    own = (BUILDS, "the base has another kernel in t.py, and ran its own test file")
    shared = own, (BUILDS, why), (NO_LINE, "base and head decided"), own
    reading = replace(decided[0], verdicts=(replace(decided[0].verdicts[0], evidence=shared),))
    assert notes([reading], NO_LINE)[0].names == (f"{FAMILY}[1]: {own[1]}; {why}",), "nothing shows that file's cost"


def test_a_case_that_both_builds_ran_far_slower_than_this_run_is_named() -> None:
    """A build without the compiled part may run a fallback, and compares that with itself."""
    (report,) = reports({"1": 1e6})
    (one,) = report.verdicts
    times = (IN_TURNS, "9 ms in both builds, 1 ms in this run")
    (note,) = notes([replace(report, verdicts=(replace(one, evidence=(times,)),))], IN_TURNS)
    assert (note.effect, note.names) == (Effect.WARN, (f"{FAMILY}[1]: {times[1]}",))


def test_the_two_times_of_a_speed_up_are_not_two_slow_builds() -> None:
    reference = Reference(over="eager", ours=(1e6, 1e6), theirs=(2e6, 2e6))
    case = measured(1e6, key=key("1"), references=(reference,))
    report = judge(case, [limit("speedup(over=eager) >= 1.2x")], baseline=None, context=PLAIN_CONTEXT)
    assert report.verdicts[0].outcome is Outcome.PASSED
    assert notes([report], IN_TURNS) == []


def test_a_case_that_became_ten_times_faster_is_named() -> None:
    """A call that hands its work to something later returns at once."""
    faster = [
        replace(report, verdicts=(replace(one, outcome=Outcome.IMPROVED, metric=replace(one.metric, value=change)),))
        for report, change in zip(reports({"1": 1e6, "2": 1e6}), (-0.95, -0.8))
        for one in report.verdicts
        if one.metric is not None
    ]
    (note,) = notes(faster, "doubtful")
    assert (note.effect, note.names) == (Effect.WARN, (f"{FAMILY}[1]: -95.0 %",))
    (one,) = faster[0].verdicts
    for other in (
        replace(one, outcome=Outcome.PASSED),
        replace(one, metric=None),
        replace(one, metric=replace(one.metric, name="loss")),
    ):
        assert notes([replace(faster[0], verdicts=(other,))], "doubtful") == []


def test_a_baseline_that_no_limit_asks_for_is_named() -> None:
    lines = [accepted(1e6, key=key("1")), accepted(1e6, key=key("2")), accepted(1e6, key=key("2", name="bwd"))]
    cases = [*reports({"1": 1e6}), *reports({"2": 1e6}, "time <= 1s")]
    (note,) = notes(cases, collected=COLLECTED, baselines=lines)
    assert (note.kind, note.names) == ("unused", (f"{FAMILY}[2]", f"{FAMILY}[2]#bwd"))
    assert note.text.startswith("2 baselines")
    assert note.text.endswith("; perfgate prune removes them")
    ci = replace(PLAIN_CONTEXT, policy=CI)
    (note,) = notes(cases, "unused", collected=COLLECTED, baselines=lines, context=ci)
    assert note.text.endswith("; perfgate prune --from RECORD removes them")
    for text, expected in (("geomean(slowdown) <= 1%", True), ("geomean(mfu) >= 1%", False)):
        families = {FAMILY: [limit(text)]}
        assert bool(notes(cases, "unused", collected=COLLECTED, baselines=lines, families=families)) != expected


@pytest.mark.parametrize(
    "fields",
    [
        {"complete": False},
        {"deselected": frozenset({f"{FAMILY}[3]"}), "filtered": True},
        {"reach": Reach(beneath=("tests/other",))},
        {"reach": Reach(without=("tests/b.py",))},
        {"reach": Reach(unknown="--lf")},
    ],
)
def test_nothing_is_said_of_what_the_run_left_out(fields: dict) -> None:
    lines = [accepted(1e6, key=key("3"))]
    assert notes(reports({"1": 1e6}), collected=COLLECTED, baselines=lines, **fields) == []


def test_what_went_from_the_part_that_was_asked_for_is_named() -> None:
    lines = [accepted(1e6, key=key("3"))]
    part = {"filtered": True, "deselected": frozenset({f"{FAMILY}[2]"}), "reach": Reach(beneath=("tests",))}
    (note,) = notes(reports({"1": 1e6}), collected=frozenset({f"{FAMILY}[1]"}), baselines=lines, **part)
    assert (note.kind, note.names) == ("dropped", (f"{FAMILY}[3] (renamed to {FAMILY}[2]?)",))


def test_where_nobody_can_say_what_went_a_note_in_ci_says_that() -> None:
    ci = replace(PLAIN_CONTEXT, policy=CI)
    lost = {"reach": Reach(unknown="--lf"), "collected": COLLECTED, "context": ci}
    (note,) = notes(reports({"1": 1e6}), baselines=[accepted(1e6, key=key("3"))], **lost)
    assert (note.kind, note.effect) == ("not looked for", Effect.WARN)
    assert note.text == "perfgate did not look for dropped tests: --lf"
    assert notes(reports({"1": 1e6}), **lost) == []


def test_a_skipped_test_with_a_line_of_this_machine_was_not_measured() -> None:
    lines = [accepted(1e6, key=key("1")), accepted(1e6, key=key("2")), accepted(1e6, key=key("2", name="bwd"))]
    why = {f"{FAMILY}[2]": "no --run-bench", f"{FAMILY}[9]": "no device"}
    settings = {"collected": COLLECTED, "skipped": why, "expected": lines, "baselines": lines}
    (note,) = notes(reports({"1": 1e6}), context=replace(PLAIN_CONTEXT, policy=CI), filtered=True, **settings)
    assert (note.kind, note.effect, note.names) == ("skipped", Effect.FAIL, (f"{FAMILY}[2]: no --run-bench",))
    assert "1 gated test skipped that has " in note.text
    assert exit_code([], [note]) == 4
    warned = replace(PLAIN_CONTEXT, policy=parse_policy(["unmeasured=warn"], ci=True))
    assert [n.effect for n in notes([], context=warned, **settings) if n.kind == "skipped"] == [Effect.WARN]
    assert notes([], **(settings | {"skipped": {f"{FAMILY}[9]": "no device"}, "baselines": []})) == []
    whole = {"skipped": {lines[0].key.path: "could not import 'fast'"}, "collected": frozenset()}
    (note,) = notes([], **(settings | whole))
    assert note.kind == "skipped", "a file that skipped itself is not gone, and its lines are not to be pruned"
    assert note.names == tuple(f"{FAMILY}[{n}]: could not import 'fast'" for n in "12")
    assert "2 gated tests skipped that have " in note.text


def test_all_there_is_nothing_to_say() -> None:
    lines = [accepted(1e6, key=key("1"))]
    assert notes(reports({"1": 1e6}), collected=COLLECTED, baselines=lines) == []


def test_a_limit_that_applies_nowhere_is_said() -> None:
    hopper = limit("mfu >= 55%", on=("H200*",))
    cases = [judge(measured(1e6, key=key(n)), [hopper], baseline=None, context=PLAIN_CONTEXT) for n in "12"]
    (note,) = notes(cases)
    assert (note.kind, note.effect, note.names) == ("nowhere", Effect.WARN, (f"{FAMILY}[1]", f"{FAMILY}[2]"))
    assert note.text.startswith("mfu >= 55% (on H200*) ")
    there = judge(measured(1e6, key=key("3"), device=GPU), [hopper], baseline=None, context=PLAIN_CONTEXT)
    assert notes([*cases, there]) == []


def test_a_call_that_nobody_makes_is_a_mistake_in_the_whole_suite_only() -> None:
    named = limit("time(case=bwd) <= 1s", source="configuration")
    ci = replace(PLAIN_CONTEXT, policy=CI)
    (lost,) = unmatched_limits(reports({"1": 1e6}), [named], ci)
    (note,) = notes([lost], context=ci)
    assert (note.kind, note.effect) == ("nowhere", Effect.FAIL)
    assert note.text.startswith("time(case=bwd) <= 1s ")
    assert note.names == (f"{FAMILY}[1]",)
    assert [n.effect for n in notes([lost])] == [Effect.WARN]
    for part in ({"filtered": True}, {"complete": False}):
        assert [n.effect for n in notes([lost], context=ci, **part)] == [Effect.WARN]
    called = judge(measured(1e6, key=key("2", name="bwd")), [named], baseline=None, context=ci)
    assert notes([lost, called], context=ci) == []


def test_quick_mode_in_ci_is_said() -> None:
    quick = replace(PLAIN_CONTEXT, policy=CI, mode=Mode.QUICK)
    (note,) = notes([], context=quick)
    assert (note.kind, note.effect) == ("quick", Effect.WARN)
    assert notes([], context=replace(quick, policy=PLAIN_CONTEXT.policy)) == []


@pytest.mark.parametrize(
    ("times", "outcome", "effect"),
    [
        ({"1": 1.05e6, "2": 0.96e6}, "passed", Effect.PASS),
        ({"1": 1.05e6, "2": 1.03e6}, "suspect", Effect.WARN),
        ({"1": 2.05e6, "2": 2.03e6}, "regressed", Effect.FAIL),
        ({"1": 1.01e6, "2": 1.0102e6}, "undecided", Effect.WARN),
    ],
)
def test_a_mean_is_judged_like_one_case(times: dict, outcome: str, effect: Effect) -> None:
    (note,) = mean_notes(times)
    assert (note.kind, note.effect) == ("geomean", effect)
    assert note.text.startswith(f"{outcome}: {FAMILY}: geomean(slowdown) <= 1%: ")
    assert "over 2 cases" in note.text


@pytest.mark.parametrize(
    ("unqueued", "outcome"),
    [((2.05e6, 1.1e6), "suspect"), ((1.1e6, 1.1e6), "suspect"), ((2.05e6, 2.03e6), "regressed")],
)
def test_a_mean_over_calls_that_queued_confirms_nothing(unqueued: tuple[float, float], outcome: str) -> None:
    cases = []
    for name, time, own in zip("12", (2.05e6, 2.03e6), unqueued):
        processes = tuple(samples(time, unqueued=own) for _ in range(3))
        cases += reports({name: time}, processes=processes)
    (note,) = notes(cases, families={FAMILY: [limit("geomean(slowdown) <= 1%")]})
    assert note.text.startswith(outcome)
    assert ("without the wait for a processor it is +10.0 %: the machine was busy" in note.text) == (
        outcome == "suspect"
    )


def test_how_many_cases_excuse_a_mean_is_said_where_there_are_several() -> None:
    def note_on(*unqueued: float) -> str:
        cases = []
        for name, own in zip("12", unqueued):
            cases += reports({name: 2e6}, processes=tuple(samples(2e6, unqueued=own) for _ in range(3)))
        return notes(cases, families={FAMILY: [limit("geomean(slowdown) <= 1%")]})[0].text

    assert note_on(1.1e6).endswith("it is +10.0 %: the machine was busy")
    assert note_on(1.1e6, 2e6).endswith("it is +10.0 %: the machine was busy (1 of 2 cases)")


def test_a_case_within_chance_excuses_no_family() -> None:
    far = reports({"1": 9e6})
    near = reports({"2": 1.05e6}, processes=tuple(samples(1.05e6, unqueued=None) for _ in range(3)))
    (note,) = notes([*far, *near], families={FAMILY: [limit("geomean(slowdown) <= 1%")]})
    assert note.text.startswith("regressed")


def test_a_mean_of_times_is_held_against_its_number() -> None:
    (note,) = mean_notes({"1": 1e6, "2": 4e6}, "geomean(time) <= 3ms")
    assert note.text.startswith("passed")
    assert "2 ms [" in note.text
    (note,) = mean_notes({"1": 1e6, "2": 4e6}, "geomean(time) <= 1ms")
    assert (note.effect, note.text.split(":")[0]) == (Effect.FAIL, "broken")


def test_a_mean_over_what_was_not_measured_is_none() -> None:
    cases = [*reports({"1": 1e6}), not_measured(key("2"), [], "skipped", PLAIN_CONTEXT)]
    (note,) = notes(cases, families={FAMILY: [limit("geomean(slowdown) <= 1%")]})
    assert (note.kind, note.effect) == ("unmeasured", Effect.WARN)
    assert "slowdown of 1 of 2 cases was not measured" in note.text
    (note,) = notes([], families={FAMILY: [limit("geomean(mfu) >= 1%")]}, context=replace(PLAIN_CONTEXT, policy=CI))
    assert (note.effect, "no case was measured" in note.text) == (Effect.FAIL, True)


def test_a_mean_may_be_meant_for_one_family_or_one_device() -> None:
    one = limit("geomean(slowdown, family=test_other*) <= 1%")
    assert notes(reports({"1": 1e6}), families={FAMILY: [one]}) == []
    mine = limit("geomean(slowdown, family=test_mm) <= 1%")
    assert len(notes(reports({"1": 1e6}), families={FAMILY: [mine]})) == 1
    elsewhere = limit("geomean(slowdown) <= 1%", on=("H200*",))
    assert notes(reports({"1": 1e6}), families={FAMILY: [elsewhere]}) == []


def test_the_mean_of_ratios_and_its_interval() -> None:
    metrics = [r.measurement.metrics.find("slowdown")[0] for r in reports({"1": 1.1e6, "2": 1e6 / 1.1})]
    mean = geometric_mean(metrics, change=True)
    assert mean.value == pytest.approx(0, abs=1e-9)
    error = math.log1p(metrics[0].high) - math.log1p(metrics[0].value)
    assert math.log1p(mean.high) == pytest.approx(error / math.sqrt(2), rel=1e-6)


def test_families_are_collected_from_cases() -> None:
    mean, other = limit("geomean(slowdown) <= 1%"), limit("slowdown <= 3%")
    cases = [
        Case(nodeid=f"{FAMILY}[1]", limits=(mean, other), plan=Plan()),
        Case(nodeid=f"{FAMILY}[2]", limits=(mean,), plan=Plan(), family=FAMILY),
        Case(nodeid="t.py::x", limits=(other,), plan=Plan()),
    ]
    assert family_limits(cases) == {FAMILY: (mean,)}
    assert key("1").family == FAMILY
    assert key("1", name="bwd").family == f"{FAMILY}#bwd"


def test_a_build_that_failed_is_said_once_for_all_its_cases() -> None:
    why = "the base build (9927da1f93): pip: exit 1\nerror: no package\nall of it: build.log"
    context = replace(PLAIN_CONTEXT, unpaired=Unpaired(why=why, step="fix the build"))
    judged = [
        judge(measured(1e6, key=key(n)), [limit("slowdown <= 3%")], baseline=accepted(1e6, key=key(n)), context=context)
        for n in "ab"
    ]
    (note,) = unbuilt(judged)
    assert (note.kind, note.effect) == ("no verdict by base and head", Effect.WARN)
    assert (
        note.text == "2 cases not decided by base and head: the base build (9927da1f93): pip: exit 1; error: no package"
    )
    other = replace(context, unpaired=Unpaired(why="its tree is in no commit"))
    alone = judge(
        measured(1e6, key=key("a")), [limit("slowdown <= 3%")], baseline=accepted(1e6, key=key("a")), context=other
    )
    assert list(unbuilt([alone])) == []
