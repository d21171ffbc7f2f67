"""Tests of core/judge/suite: lines that go, limits that meet nothing, and cards behind their siblings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge, not_measured
from pytest_perfgate.core.judge.policy import CI, parse_policy
from pytest_perfgate.core.judge.suite import LeftOut, Suite, common_moves, floored, judge_suite, slow_cards
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey, Effect, Outcome, Reach
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
from tests.unit.core.judge.bench import (
    CONTEXT,
    FLOORED,
    GPU,
    KEY,
    KINDS,
    SLOWDOWN,
    accepted,
    limit,
    measured,
    verdict,
)
from tests.unit.core.judge.suites import COLLECTED, FAMILY, PLAIN_CONTEXT, key, notes


def test_a_case_that_went_with_its_line_is_named_in_ci() -> None:
    lines = [accepted(1e6, key=key(n)) for n in ("1", "3")]
    settings = {"gone": lines, "collected": COLLECTED, "context": replace(PLAIN_CONTEXT, policy=CI)}
    (note,) = notes([], "removed", **settings)
    assert (note.effect, note.names) == (Effect.WARN, (f"{FAMILY}[3]",))
    assert note.text.startswith("1 accepted case removed ")
    (note,) = notes([], "removed", **settings, moved={f"{FAMILY}[3]": "slow/t.py::test_x[3]"})
    assert note.names == (f"{FAMILY}[3] -> slow/t.py::test_x[3], where this run did not look",)
    assert note.text.startswith("1 accepted case moved ")
    assert notes([], "removed", **settings, reach=Reach(beneath=("tests/other.py",))) == []
    assert notes([], "removed", **settings, followed=frozenset({f"{FAMILY}[3]"})) == [], (
        "the note on its new name tells"
    )
    assert notes([], "removed", **settings, reach=Reach(unknown="--lf")) == []
    assert (
        notes([], "removed", **settings, complete=False)
        == notes([], "removed", **{**settings, "context": PLAIN_CONTEXT})
        == []
    )


def test_what_the_project_s_own_settings_leave_out_is_named_in_ci() -> None:
    lines = [accepted(1e6, key=key(n)) for n in ("1", "2")]
    settings = {"baselines": lines, "context": replace(PLAIN_CONTEXT, policy=CI)}
    (note,) = notes([], "left out", **settings, left_out=LeftOut(deselected=frozenset({f"{FAMILY}[2]"})))
    assert (note.effect, note.names) == (Effect.WARN, (f"{FAMILY}[2]",))
    (note,) = notes(
        [], "left out", **settings, left_out=LeftOut(deselected=frozenset({f"{FAMILY}[2]"}), commanded=True)
    )
    assert (note.text, note.names) == ("1 accepted case not measured, deselected", ())
    ignored = LeftOut(reach=Reach(without=("tests/b.py",)))
    (note,) = notes([], "left out", **settings, left_out=ignored)
    assert note.names == (f"{FAMILY}[1]", f"{FAMILY}[2]")
    assert notes([], "left out", **settings, left_out=ignored, collected=COLLECTED) == []
    assert notes([], "left out", **settings, left_out=LeftOut(reach=Reach(beneath=("tests/other.py",)))) == []


def test_a_floor_that_lets_a_slower_case_pass_is_said() -> None:
    line = accepted(10e3)
    slower, quiet = (judge(measured(time), SLOWDOWN, baseline=line, context=FLOORED) for time in (11e3, 10e3))
    (result,) = slower.verdicts
    assert (result.outcome, result.raised) == (Outcome.PASSED, pytest.approx(0.2))
    assert result.sentence.endswith("keeps the limit (the floor raised it to +20 %)")
    assert "limit +3 % (the floor raised it to +20 %)" in render_block(slower)
    (note,) = judge_suite([slower, quiet], Suite(context=CONTEXT))
    assert (note.kind, note.effect) == ("floor", Effect.WARN)
    assert note.names == (f"{slower.key}: slowdown <= 3% (the floor raised it to +20 %): +10.0 %",)
    assert note.text.startswith("the floor raised limits of 2 of 2 cases; 1 limit kept only by the floor")
    (note,) = judge_suite([quiet], Suite(context=CONTEXT))
    assert (note.text.partition(":")[0], note.names) == ("the floor raised limits of 1 of 1 case", ())
    exactly = replace(
        slower, verdicts=(replace(result, limit=limit("slowdown <= 10%"), metric=replace(result.metric, value=0.1)),)
    )
    (note,) = judge_suite([exactly], Suite(context=CONTEXT))
    assert note.names == (), "the limit as it stands allows that"


def test_only_what_passes_by_the_floor_is_told_to_do_so() -> None:
    slower = judge(measured(11e3), SLOWDOWN, baseline=accepted(10e3), context=FLOORED)
    far = judge(measured(12.5e3), SLOWDOWN, baseline=accepted(10e3), context=FLOORED)
    within = judge(measured(1e6), [limit("time >= 1us")], baseline=None, context=FLOORED)
    assert far.verdicts[0].raised is not None
    (note,), (alone,) = floored([slower, far, within]), floored([slower])
    assert note.names == alone.names != ()
    assert note.text.startswith("the floor raised limits of 2 of 3 cases; 1 limit kept only by the floor")
    assert [one.names for one in floored([far, within])] == [()]
    assert list(floored([within])) == []


def test_of_a_case_with_several_limits_the_floor_only_keeps_those_that_it_raised() -> None:
    limits = [*SLOWDOWN, limit("time >= 1us")]
    case = judge(measured(11e3), limits, baseline=accepted(10e3), context=FLOORED)
    assert [one.raised is None for one in case.verdicts] == [False, True]
    (note,) = floored([case])
    assert note.names == (f"{case.key}: slowdown <= 3% (the floor raised it to +20 %): +10.0 %",)
    unbuilt = replace(case, verdicts=tuple(replace(one, metric=None) for one in case.verdicts))
    assert [one.names for one in floored([unbuilt])] == [()], "two builds of the same code show no slowdown"


def test_a_case_that_was_not_measured_is_none_that_could_have_moved() -> None:
    unmeasured = CaseReport(key=KEY, verdicts=(), baseline=accepted(1e6))
    shifted = CaseReport(
        key=KEY,
        verdicts=(replace(verdict(), outcome=Outcome.MOVED),),
        measurement=measured(1e6),
        baseline=accepted(1e6),
    )
    assert len(list(common_moves([shifted] * 3 + [unmeasured] * 9))) == 1


def test_a_limit_of_no_call_that_applied_nowhere_is_only_warned_of() -> None:
    nowhere = replace(verdict(), limit=limit("time <= 1s"), outcome=Outcome.NOT_APPLICABLE)
    (note,) = judge_suite([CaseReport(key=KEY, verdicts=(nowhere,))], Suite(context=replace(CONTEXT, policy=CI)))
    assert (note.kind, note.effect) == ("nowhere", Effect.WARN)


def suite_of(collected: set[str], baselines: tuple[str, ...]) -> tuple[SuiteNote, ...]:
    lines = tuple(replace(accepted(1e6), key=CaseKey(nodeid=name)) for name in baselines)
    return judge_suite((), Suite(context=PLAIN_CONTEXT, collected=frozenset(collected), baselines=lines))


def test_a_renamed_test_is_of_the_same_family_or_of_nearly_the_same_name() -> None:
    (family,) = suite_of({"t.py::test_mm[new]", "t.py::test_mn[old]"}, ("t.py::test_mm[old]",))
    assert family.names == ("t.py::test_mm[old] (renamed to t.py::test_mm[new]?)",)
    (two,) = suite_of({"t.py::test_mm[new]"}, ("t.py::test_mm[one]", "t.py::test_mm[two]"))
    assert str(two.names).count("renamed to") == 1, "a new test was one of them at most"
    (own,) = suite_of({"t.py::test_sized[two]"}, ("t.py::test_gone", "t.py::test_sized[2]"))
    renamed = "t.py::test_sized[2] (renamed to t.py::test_sized[two]?)"
    assert own.names == (renamed, "t.py::test_gone"), (
        "its own family; what is renamed stands first, as long lists are cut"
    )
    (name,) = suite_of({"t.py::test_gemm_fast", "t.py::nothing_alike"}, ("t.py::test_gemm_past",))
    assert "(renamed to t.py::test_gemm_fast?)" in str(name.names)


def test_a_baseline_is_asked_for_by_any_slowdown_limit() -> None:
    report = judge(
        measured(1e6), [limit("time <= 1s"), limit("slowdown <= 3%")], baseline=accepted(1e6), context=PLAIN_CONTEXT
    )
    suite = Suite(context=PLAIN_CONTEXT, collected=frozenset({report.key.nodeid}), baselines=(accepted(1e6),))
    assert judge_suite([report], suite) == ()


@pytest.mark.parametrize(("text", "unused"), [("speedup(over=eager) >= 1.2x", False), ("time <= 1s", True)])
def test_a_baseline_is_used_by_a_speed_up_which_needs_none(text: str, *, unused: bool) -> None:
    report = judge(measured(1e6), [limit(text)], baseline=accepted(1e6), context=PLAIN_CONTEXT)
    suite = {"collected": frozenset({KEY.nodeid}), "baselines": (accepted(1e6),)}
    assert [note.kind for note in notes([report], "unused", **suite)] == ["unused"] * unused


def test_a_baseline_of_a_test_that_failed_before_its_call_is_used() -> None:
    """A wrong result ends the test before its named call is measured; its line must not be removed for that."""
    report = not_measured(KEY, [limit("slowdown <= 3%")], "the test failed while it was measured", PLAIN_CONTEXT)
    lines = [accepted(1e6, key=replace(KEY, name="train"))]
    assert notes([report], collected=frozenset({KEY.nodeid}), baselines=lines) == []


def test_a_line_of_a_file_is_no_test_that_was_not_collected() -> None:
    line = accepted(0.0, key=CaseKey(nodeid="model.onnx::file"))
    assert notes([], "dropped", baselines=[line]) == []


def test_a_scope_that_meets_no_call_is_only_warned_of_where_other_devices_were_meant() -> None:
    for on, effect in (((), Effect.FAIL), (("B200",), Effect.WARN)):
        scoped = replace(limit("time(case=bwd) <= 1s"), on=on)
        verdict = Verdict(limit=scoped, outcome=Outcome.NOT_APPLICABLE, effect=Effect.PASS)
        report = CaseReport(key=CaseKey(nodeid="t.py::test_a"), verdicts=(verdict,))
        (note,) = judge_suite([report], Suite(context=replace(PLAIN_CONTEXT, policy=CI)))
        assert (note.kind, note.effect) == ("nowhere", effect)


def deleted_notes(text: str, *policy: str):
    context = JudgeContext(kinds=KINDS, policy=parse_policy(policy, ci=True))
    report = judge(measured(1e6), [limit(text), limit("time <= 2s")], baseline=accepted(1e6), context=context)
    suite = Suite(context=context, gone=(accepted(1e6),), collected=frozenset({KEY.nodeid}))
    return [note for note in judge_suite([report], suite) if note.kind == "taken away"]


def test_a_line_may_not_go_while_its_limit_stays() -> None:
    (note,) = deleted_notes("slowdown <= 3%")
    assert (note.effect, note.names) == (Effect.FAIL, (str(KEY),))
    assert "restore them, or accept" in note.text
    assert deleted_notes("slowdown <= 3%", "missing=warn")[0].effect is Effect.WARN
    assert deleted_notes("change(registers) <= 0") == [note], "the change of a figure needs its line too"


def test_a_line_that_no_limit_asks_for_may_go() -> None:
    assert deleted_notes("time <= 1s") == []


def report(outcome: Outcome, *, line: bool = True) -> CaseReport:

    ruled = replace(verdict(), outcome=outcome)
    return CaseReport(key=KEY, verdicts=(ruled,), measurement=measured(1e6), baseline=accepted(1e6) if line else None)


def test_a_case_moved_though_another_limit_of_it_is_kept() -> None:
    both = (replace(verdict(), outcome=Outcome.MOVED), verdict())
    assert len(list(common_moves([replace(report(Outcome.MOVED), verdicts=both)] * 3))) == 1


def test_references_that_moved_are_no_machine_that_did() -> None:
    ratio = replace(verdict(), outcome=Outcome.MOVED, limit=limit("change(speedup(over=eager)) >= -5%"))
    assert not list(common_moves([replace(report(Outcome.MOVED), verdicts=(ratio,))] * 3))


@pytest.mark.parametrize(
    ("moved", "passed", "bare", "expected"),
    [(3, 3, 0, True), (3, 0, 9, True), (3, 4, 0, False), (2, 0, 0, False), (0, 4, 0, False)],
)
def test_many_that_moved_at_once_are_said_once(moved: int, passed: int, bare: int, *, expected: bool) -> None:
    cases = [report(Outcome.MOVED)] * moved + [report(Outcome.PASSED)] * passed
    notes = list(common_moves([*cases, *[report(Outcome.PASSED, line=False)] * bare]))
    assert [(note.kind, note.effect) for note in notes] == ([("together", Effect.WARN)] if expected else [])
    assert all(note.text.startswith(f"{moved} of {moved + passed} cases") for note in notes)


def of_card(name: str, ratios: list[float], device: str = "NVIDIA-H200"):
    return [
        judge(
            measured(1e6 * ratio, key=key(f"{name}{at}"), device=replace(GPU, key=device, uuid=f"GPU-{name}")),
            [limit("slowdown <= 300%")],
            baseline=accepted(1e6, key=key(f"{name}{at}"), device=replace(GPU, key=device)),
            context=PLAIN_CONTEXT,
        )
        for at, ratio in enumerate(ratios)
    ]


@pytest.mark.parametrize(
    ("cards", "slow"),
    [
        ({"a": [1.0] * 4, "b": [1.0] * 4, "c": [1.08] * 4}, ["GPU-c"]),
        ({"a": [1.0, 1.01, 0.99, 1.0], "b": [1.04] * 4}, []),
        ({"a": [1.0] * 4, "b": [1.0, 1.0, 1.0, 1.4]}, []),
        ({"a": [1.0] * 4, "b": [1.2] * 2}, []),
        ({"a": [1.0] * 3, "b": [1.2] * 3}, ["GPU-b"]),
        ({"a": [1.2] * 4}, []),
        ({"a": [1.3] * 4, "b": [1.3] * 4}, []),
        ({"a": [0.9] * 4, "b": [1.0] * 4}, ["GPU-b"]),
    ],
    ids=[
        "behind",
        "within 5 %",
        "one slow case",
        "too few cases",
        "just enough cases",
        "alone",
        "all slower",
        "others are faster",
    ],
)
def test_a_card_behind_its_siblings_is_named(cards: dict[str, list[float]], slow: list[str]) -> None:
    reports = [report for name, ratios in cards.items() for report in of_card(name, ratios)]
    assert [card.card for card in slow_cards(reports)] == slow
    text = "1 card more than 5 % slower than others of the kind: check the cards before the code"
    assert [(note.effect, note.text) for note in notes(reports, "slow card")] == [(Effect.WARN, text)] * bool(slow)


def test_cards_of_other_kinds_are_no_siblings() -> None:
    assert slow_cards([*of_card("a", [1.0] * 4), *of_card("b", [1.5] * 4, "NVIDIA-L4")]) == ()


def test_a_card_without_a_uuid_is_known_by_its_slot_and_one_without_either_is_none() -> None:
    def of_slot(name: str, ratios: list[float]) -> list[CaseReport]:
        reports = of_card(name, ratios)
        slots = [replace(one.measurement.device, uuid="", pci=name and f"0000:{name}") for one in reports]
        return [replace(one, measurement=replace(one.measurement, device=slot)) for one, slot in zip(reports, slots)]

    (slow,) = slow_cards([*of_slot("a", [1.0] * 4), *of_slot("b", [1.8] * 4)])
    assert slow.text == "0000:b: 80 % slower than others of NVIDIA-H200, over 4 cases"
    assert slow_cards([*of_slot("a", [1.0] * 4), *of_slot("", [1.08] * 4)]) == ()


def test_cases_without_a_measurement_or_an_accepted_time_say_nothing_of_a_card() -> None:
    reports = [*of_card("a", [1.0] * 4), *of_card("b", [1.08] * 4)]
    assert slow_cards([replace(one, measurement=None) for one in reports]) == ()
    assert slow_cards([replace(one, baseline=None) for one in reports]) == ()
    untimed = [replace(one, baseline=replace(one.baseline, time=0.0)) for one in reports]
    assert slow_cards(untimed) == ()
    assert [card.card for card in slow_cards([*untimed, *reports])] == ["GPU-b"]
    timeless = [replace(one, measurement=replace(one.measurement, metrics=MetricSet())) for one in reports]
    assert [card.card for card in slow_cards([*timeless, *reports])] == ["GPU-b"]


def test_a_card_is_as_fast_as_its_times_against_the_accepted_ones() -> None:
    """However long its cases take: twice as long as accepted for twice as long is as fast."""
    slower = [replace(one, baseline=replace(one.baseline, time=2e6)) for one in of_card("b", [2.0] * 4)]
    assert slow_cards([*of_card("a", [1.0] * 4), *slower]) == ()
    shortest = [
        replace(one, baseline=replace(one.baseline, time=1.0))
        for one in (*of_card("a", [1.0] * 4), *of_card("b", [1.08] * 4))
    ]
    assert [card.card for card in slow_cards(shortest)] == ["GPU-b"]
