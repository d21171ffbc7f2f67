"""Tests of app/changed_tests: lines that go on under another name, and tests whose bodies differ."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.accepted import Accepted
from pytest_perfgate.app.changed_tests import renamed_cases
from pytest_perfgate.core.changes.tests import renamed_nodes, same_bodies
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Base, Effect, Outcome, Policy
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
from tests.reports import baseline, case
from tests.unit.app.checks import notes_on
from tests.unit.core.judge.bench import KEY, accepted, limit, measured

EARLIER_LINES = [baseline("test_one", 1e6), baseline("test_same", 1e6)]


def lines(*baselines: Baseline) -> dict[str, Baseline]:
    return {str(line.key): line for line in baselines}


def gate_judge_of(
    *now: Baseline,
    then: list[Baseline] = EARLIER_LINES,
    ci: bool = True,
    base: str = "c0ffee",
    texts: tuple[str, ...] = (),
) -> Any:
    shown = dict(zip((base, "HEAD"), texts))
    repository = SimpleNamespace(base=lambda: Base(commit=base), show=lambda revision, _path: shown.get(revision))
    tools = SimpleNamespace(
        repository=repository,
        baselines=SimpleNamespace(read=lambda _device, _path, revision="": lines(*(then if revision else now))),
    )
    return SimpleNamespace(context=SimpleNamespace(policy=Policy(ci=ci)), accepted=Accepted(tools))


REPORTS = [case("test_uno", 2e6), case("test_same", 1e6, 1e6)]


def rename_notes(*now: Baseline, **fields: Any) -> list[SuiteNote]:
    return notes_on("renamed", gate_judge_of(*now, **fields), REPORTS)


@pytest.mark.parametrize(
    ("time", "why", "effect", "message"),
    [
        (2e6, "", Effect.WARN, "1 ms -> 2 ms, +100.0 %, no reason"),
        (2e6, "exact", Effect.WARN, '1 ms -> 2 ms, +100.0 %, "exact"'),
        (1.01e6, "", Effect.PASS, "1 ms -> 1.01 ms, +1.0 %, no reason"),
    ],
)
def test_a_new_line_where_another_went_is_said(time: float, why: str, effect: Effect, message: str) -> None:
    (note,) = rename_notes(baseline("test_uno", time, why=why), EARLIER_LINES[1])
    names = f"tests/test_k.py::test_one to tests/test_k.py::test_uno: {message}"
    assert (note.kind, note.effect, note.names) == ("renamed", effect, (names,))


ONE = "def test_one(perfgate, n):\n    'old words'\n    perfgate(kernel, n)\n"
SHARP = "@slow\ndef completely_different(perfgate, n):\n    perfgate( kernel, n)  # as before\n"


@pytest.mark.parametrize(
    ("then", "now", "named"),
    [
        (ONE, SHARP, True),
        (ONE, SHARP.replace("n)", "m)"), False),
        (ONE, SHARP + SHARP.replace("completely", "partly"), False),
        (ONE, "def (", False),
        (ONE, None, False),
    ],
    ids=["same body", "other body", "two with it", "no Python", "no such file"],
)
def test_a_name_wholly_unlike_the_old_one_is_told_by_what_the_test_does(then: str, now: str, *, named: bool) -> None:
    notes = rename_notes(baseline("completely_different", 2e6, why=""), EARLIER_LINES[1], texts=(then, now))
    names = [name for note in notes for name in note.names]
    expected = "tests/test_k.py::test_one to tests/test_k.py::completely_different: 1 ms -> 2 ms, +100.0 %, no reason"
    assert names == ([expected] if named else [])


@pytest.mark.parametrize(
    ("texts", "new", "named"),
    [
        ((ONE, SHARP), "completely_different", True),
        ((ONE, SHARP.replace("n)", "m)")), "completely_different", False),
        ((ONE, ONE), "test_one[2]", True),
        ((ONE, ONE.replace("kernel", "other")), "test_one[2]", False),
        ((), "test_uno", False),
    ],
    ids=["same body", "other body", "other parameter", "other parameter and body", "no file"],
)
def test_only_what_does_the_same_goes_on_under_another_name(texts: tuple[str, ...], new: str, *, named: bool) -> None:
    renamed = renamed_cases(gate_judge_of(baseline(new, 2e6), EARLIER_LINES[1], texts=texts), REPORTS)
    assert renamed == (frozenset({"tests/test_k.py::test_one"}) if named else frozenset())


def test_parameters_and_calls_go_with_the_name_of_the_function() -> None:
    then, now = "class A:\n def test_a(self): f()\n", "class B:\n async def no(self): f()\n def uno(self): f()\n"
    assert same_bodies(then, now) == {}, "two do the same"
    names = same_bodies(then, now.replace(" async def no(self): f()\n", ""))
    assert names == {"A::test_a": "B::uno"}
    old, new = ["t.py::A::test_a[1]#x", "t.py::A::test_a[2]"], ["t.py::B::uno[1]#x", "t.py::B::other[2]"]
    assert list(renamed_nodes(old, new, names)) == [(old[0], new[0])]


def test_a_change_that_only_adds_or_only_removes_says_nothing() -> None:
    uno = baseline("test_uno", 2e6)
    assert (
        rename_notes(uno, *EARLIER_LINES)
        == rename_notes(EARLIER_LINES[1])
        == rename_notes(uno, EARLIER_LINES[1], ci=False)
        == []
    )
    assert rename_notes(uno, EARLIER_LINES[1], then=[]) == rename_notes(uno, EARLIER_LINES[1], base="") == []
    assert rename_notes(baseline("test_uno", 2e6, local=True), EARLIER_LINES[1]) == []


def test_a_line_that_was_there_is_told_from_one_that_came_with_the_change() -> None:
    gate_judge = gate_judge_of(baseline("test_uno", 2e6), EARLIER_LINES[1])
    new, same = (report.measurement for report in REPORTS)
    assert (gate_judge.accepted.is_new_line(new), gate_judge.accepted.is_new_line(same)) == (True, False)
    assert not gate_judge_of(baseline("test_uno", 2e6), base="").accepted.is_new_line(new)


OLD_BODY = "import pk\n\n\ndef test_gemm(perfgate):\n    perfgate(pk.gemm)\n"
NEW_BODY = OLD_BODY.replace("import pk", "import old as pk")
TEXTS = {KEY.path: (OLD_BODY, NEW_BODY)}
LINE = accepted(1e6)


def body_notes(texts: Any, edited: Baseline | None = None, **fields: Any) -> list[SuiteNote]:
    lines = SimpleNamespace(
        base=Base(commit=fields.get("base", "c0ffee")),
        moved=fields.get("moved", {}),
        judging=lambda _measurement: (fields.get("line", LINE), edited),
        then_and_now=lambda _device, _path: (
            {str(KEY): fields.get("line", LINE)},
            {str(KEY): edited} if edited else {},
        ),
        is_new_line=lambda _measurement: fields.get("came", False),
    )
    gate_judge: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=fields.get("ci", True))),
        accepted=lines,
        tools=SimpleNamespace(
            repository=SimpleNamespace(touched=lambda _revision, _words: texts),
            baselines=SimpleNamespace(devices=lambda: fields.get("devices", ("host-x",))),
        ),
        paired=fields.get("paired", {}),
        revision=fields.get("revision", ""),
    )
    lines.is_unexplained, lines._tools = lambda key: Accepted.is_unexplained(lines, key), gate_judge.tools
    limits = map(limit, fields.get("limits", ()))
    verdicts = tuple(Verdict(limit=one, outcome=Outcome.PASSED, effect=Effect.PASS) for one in limits)
    report = CaseReport(key=KEY, verdicts=verdicts, measurement=measured(1e6) if fields.get("ran", True) else None)
    return notes_on("reworked", gate_judge, [report, report])


def test_an_edited_test_whose_line_stays_is_named_once_with_what_differs() -> None:
    (note,) = body_notes(TEXTS)
    assert (note.kind, note.effect, note.names) == ("reworked", Effect.WARN, (f"{KEY.path}::test_gemm: pk",))
    assert note.text.startswith("1 gated test ")
    assert "c0ffee" in note.text


@pytest.mark.parametrize("line", [None, replace(LINE, local=True)])
def test_an_edited_test_without_a_line_is_named_where_a_limit_on_the_figure_judges_it(line: Baseline | None) -> None:
    """A change that measures a smaller input keeps a limit on the time with slower code."""
    (note,) = body_notes(TEXTS, line=line, limits=("time <= 1s", "slowdown <= 3%"))
    assert note.names == (f"{KEY.path}::test_gemm: pk",)
    assert body_notes(TEXTS, line=line, limits=("slowdown <= 3%",)) == []
    new = {KEY.path: (None, NEW_BODY)}
    assert body_notes(new, line=line, limits=("time <= 1s",)) == []


@pytest.mark.parametrize(("own", "named"), [("", True), ("the change edits its kernels", False)])
def test_an_edited_test_without_a_line_is_named_where_both_builds_ran_it(own: str, *, named: bool) -> None:
    """As against a revision: the new test may measure a part of what the old one did."""
    paired = {KEY: SimpleNamespace(revision=False, own_file=own)}
    assert bool(body_notes(TEXTS, line=None, limits=("slowdown <= 3%",), paired=paired)) is named


def test_a_test_that_moved_is_held_against_the_file_it_came_from() -> None:
    texts = {"tests/old.py": (OLD_BODY, None), KEY.path: (None, NEW_BODY)}
    old = str(KEY).replace(KEY.path, "tests/old.py")
    assert body_notes(texts, moved={old: str(KEY)})[0].names == (f"{KEY.path}::test_gemm: pk",)
    assert body_notes(texts) == []


def test_against_a_revision_an_edit_that_both_arms_ran_is_named_too() -> None:
    (note,) = body_notes(
        TEXTS, revision="d00d" * 10, paired={KEY: SimpleNamespace(revision=True, own_test=False)}, base=""
    )
    message = "1 gated test edited since d00dd00dd0, and both builds ran the new ones: they may measure something else"
    assert (note.text, note.names) == (message, (f"{KEY.path}::test_gemm: pk",))


@pytest.mark.parametrize(
    "fields",
    [
        {"ci": False},
        {"base": ""},
        {"line": None},
        {"line": replace(LINE, local=True)},
        {"edited": replace(LINE, time=2e6, why="it now reads the file as well")},
        {"texts": {}},
        {"texts": {KEY.path: (OLD_BODY, OLD_BODY + "\n# more\n")}},
        {"came": True},
        {"paired": {KEY: SimpleNamespace(revision=True, own_test=True)}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_judged_by_no_line_of_before_or_says_why_is_not_named(fields: dict[str, Any]) -> None:
    assert body_notes(**{"texts": TEXTS, **fields}) == []


def test_an_edit_without_a_reason_of_its_own_explains_nothing() -> None:
    assert body_notes(TEXTS, replace(LINE, time=2e6))


@pytest.mark.parametrize(
    ("why", "when", "new"), [("a", "2026-05-03", True), ("b", "", True), ("a", "2026-05-01", False)]
)
def test_a_reason_of_an_earlier_day_is_not_new(why: str, when: str, new: bool) -> None:
    """A revert brings it back with its line."""
    before = replace(LINE, why="", when="2026-05-02")
    assert replace(LINE, why=why, when=when).explains(before) is new


def test_where_git_does_not_answer_for_bodies_that_is_said() -> None:
    (note,) = body_notes(None)
    assert "gated tests" in note.text
    assert "c0ffee" in note.text


def test_an_edited_test_that_was_not_measured_is_named_too() -> None:
    """As one that says ``pytest.xfail("later")`` before its call."""
    excused = {KEY.path: (OLD_BODY, OLD_BODY.replace("    perfgate(", "    pytest.xfail('later')\n    perfgate("))}
    (note,) = body_notes(excused, ran=False)
    assert note.names == (f"{KEY.path}::test_gemm: the test itself",)
    for lineless in ({"devices": ()}, {"line": replace(LINE, local=True)}):
        assert body_notes(excused, ran=False, **lineless) == [note], "a limit on the time itself needs no line"
    assert body_notes({KEY.path: (None, NEW_BODY)}, ran=False, devices=()) == [], "a new test has no earlier limit"
    line = replace(LINE, time=2e6, why="it is expected to fail until the driver is repaired")
    assert body_notes(excused, line, ran=False) == []
    assert body_notes(excused, ran=False, devices=(), revision="d00d" * 10)
