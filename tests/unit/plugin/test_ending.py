"""Tests of plugin/ending."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.model.plan import Effect, Mode, Outcome, Policy
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin import ending
from pytest_perfgate.plugin.ending import (
    announce,
    commanded_notes,
    keep_failing,
    receive_reports,
    text_of,
)
from pytest_perfgate.plugin.options import STARTED_WITH
from pytest_perfgate.plugin.selection import unreported_notes
from pytest_perfgate.plugin.summary import reported_text
from tests.reports import case


@pytest.mark.parametrize("noted", [False, True], ids=["a block", "a note"])
@pytest.mark.parametrize("step", ["perfgate accept --from RECORD t.py::test_a", "perfgate doctor"])
def test_a_step_of_a_block_or_note_from_a_record_is_explained_with_its_path(
    step: str, monkeypatch: Any, *, noted: bool
) -> None:
    monkeypatch.setattr(ending, "division", lambda config: None)
    monkeypatch.setattr(ending, "columns", lambda config: 200)
    monkeypatch.setattr(ending, "StartFolder", lambda config: SimpleNamespace(command=str, path=str))
    verdict = SimpleNamespace(next=() if noted else (step,))
    session: Any = SimpleNamespace(
        settings=SimpleNamespace(pytest=None),
        written=[Path(".perfgate/records/1.json")],
        all_reports=lambda: [SimpleNamespace(verdicts=(verdict,))],
        notes=[SimpleNamespace(text=f"a case; next: {step}")] if noted else [],
    )
    lines: list[str] = []
    ending.write_next(SimpleNamespace(write_line=lines.append), session, [])
    how = "Keep it and its .samples as an artifact: any clone can accept it"
    expected = [f"RECORD is the record of this run, .perfgate/records/1.json. {how}"]
    assert lines == (expected if "RECORD" in step else [])


def test_a_note_that_fails_is_counted_and_progress_ends_at_100_percent() -> None:
    session, reports, lines = SimpleNamespace(testscollected=4), [], []
    terminal = SimpleNamespace(width_of_current_line=80, line=lambda: lines.append(""))

    def heard(report: Any) -> None:
        reports.append(report)

    plugins = {"session": session, "terminalreporter": SimpleNamespace(_tw=terminal)}
    config: Any = SimpleNamespace(
        pluginmanager=SimpleNamespace(get_plugin=plugins.get),
        hook=SimpleNamespace(pytest_runtest_logreport=heard),
    )
    warned = SuiteNote(kind="unused", effect=Effect.WARN, text="one")
    text = "1 accepted case; perfgate prune removes it"
    failed = SuiteNote(kind="dropped", effect=Effect.FAIL, text=text, names=("t.py::test_gone",))
    announce(config, [warned, failed])
    assert session.testscollected == 5
    assert len(lines) == 1
    assert [(report.when, report.outcome) for report in reports] == [
        ("setup", "passed"),
        ("call", "failed"),
        ("teardown", "passed"),
    ]
    assert str(reports[1].longrepr) == reports[1].longreprtext == f"{text}\n  t.py::test_gone"
    assert reports[1].longrepr.reprcrash.message == "1 accepted case", "the short summary and JUnit's message"


def test_a_note_that_stands_among_the_failures_is_only_named_where_notes_are_listed() -> None:
    failed = SuiteNote(kind="dropped", effect=Effect.FAIL, text="1 accepted case", names=("t.py::test_gone",))
    warned = SuiteNote(kind="dropped", effect=Effect.WARN, text="1 accepted case")
    assert reported_text(failed, "auto") == "perfgate::dropped, above"
    assert reported_text(failed, "no") == "1 accepted case\n  t.py::test_gone"
    assert reported_text(warned, "auto") == "1 accepted case"


def session(limits: list[str] | None, args: list[str], *, ci: bool = True) -> Any:
    config = SimpleNamespace(
        option=SimpleNamespace(perfgate_limit=limits, perfgate_policy=["suspect=fail"] if limits else []),
        invocation_params=SimpleNamespace(args=args),
    )
    context = SimpleNamespace(policy=Policy(ci=ci))
    return SimpleNamespace(settings=SimpleNamespace(pytest=config), gate_judge=SimpleNamespace(context=context))


@pytest.mark.parametrize(
    ("args", "environment", "author"),
    [
        (["--perfgate-limit=slowdown <= 90%"], "", "the command"),
        (["--perfgate-limit", "slowdown <= 90%"], "", "the command"),
        ([], "-q --perfgate-limit 'slowdown <= 90%'", "PYTEST_ADDOPTS"),
        ([], "", "addopts or a conftest"),
    ],
)
def test_a_limit_or_a_policy_of_an_option_is_always_shown_in_ci(
    monkeypatch: pytest.MonkeyPatch, args: list[str], environment: str, author: str
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", environment)
    (note,) = commanded_notes(session(["slowdown <= 90%"], args))
    assert (note.kind, note.effect) == ("commanded", Effect.WARN)
    assert note.names[0] == f"--perfgate-limit 'slowdown <= 90%', by {author}"
    assert note.names[1].startswith("--perfgate-policy 'suspect=fail'")
    assert commanded_notes(session(["slowdown <= 90%"], args, ci=False)) == commanded_notes(session(None, args)) == ()


def test_a_note_names_twenty_and_counts_the_rest() -> None:
    few, many = (
        SuiteNote(kind="dropped", effect=Effect.WARN, text="gone", names=tuple(map(str, range(count))))
        for count in (20, 60)
    )
    note = SuiteNote(kind="geomean", effect=Effect.WARN, text="undecided: t.py::test_a: +3 %", names=("t.py::test_a",))
    assert text_of(note) == note.text, "a name once"
    assert text_of(few).splitlines() == ["gone", *(f"  {at}" for at in range(20))]
    assert text_of(many).splitlines() == [*text_of(few).splitlines(), "  ... and 40 more"]


SLOWER = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
NOTE = SuiteNote(kind="dropped", effect=Effect.FAIL, text="gone")


def ended(*, exitstatus: int = 0, ci: str = "true", **fields: Any) -> tuple[int, str]:
    """The exit code after all, and what was said."""
    lines: list[str] = []
    plugins = {
        "session": SimpleNamespace(exitstatus=exitstatus),
        "terminalreporter": SimpleNamespace(write_line=lambda text, **_: lines.append(text)),
    }
    config: Any = SimpleNamespace(
        stash={STARTED_WITH: {"CI": ci}}, pluginmanager=SimpleNamespace(get_plugin=plugins.get)
    )
    defaults = {"judged": {"test_a"}, "reports": {"test_a": (SLOWER,)}, "notes": (), "excused": [],
             "cases": {"test_a": None}, "reported_tests": {"test_a"}, "complete": True, "mode": Mode.FULL}  # fmt: skip
    session_state: Any = SimpleNamespace(**{**defaults, **fields})
    keep_failing(session_state, config)
    return int(plugins["session"].exitstatus), "".join(lines)


def test_a_failed_verdict_outlasts_who_ends_the_run_with_0() -> None:
    code, text = ended()
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 verdict of this run failed, and a conftest or a plugin ended it with 0  [run-overruled]" in text
    assert ended(reports={}, notes=(NOTE,))[0] == pytest.ExitCode.TESTS_FAILED


def test_a_run_that_ends_early_with_0_fails_in_ci() -> None:
    early = {"judged": set(), "reported_tests": set(), "complete": False}
    code, text = ended(**early)
    assert (code, "1 gated test did not run" in text) == (pytest.ExitCode.TESTS_FAILED, True)
    for fine in ({"complete": True}, {"mode": Mode.OFF}, {"reported_tests": {"test_a"}}, {"ci": ""}):
        assert ended(**{**early, **fine}) == (0, "")


@pytest.mark.parametrize(
    "fields",
    [
        {"ci": ""},
        {"exitstatus": 2},
        {"judged": set()},
        {"reports": {"test_a": (case("test_a", 1e6, 1e6),)}},
        {"excused": [f"{SLOWER.worst.value}: {SLOWER.key}"]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_failed_nothing_or_failed_already_is_left_as_it_is(fields: dict[str, Any]) -> None:
    assert ended(**fields) == (fields.get("exitstatus", 0), "")


SLOWER_CASE, KEPT_CASE = case("test_a", 2e6, 1e6, Outcome.REGRESSED), case("test_a", 1e6, 1e6)


def session_state(policy: Policy = CI, **fields: Any) -> Any:
    gate_judge = SimpleNamespace(context=SimpleNamespace(policy=policy))
    defaults = {"cases": {"test_a": None}, "reports": {}, "reported_tests": set(), "complete": True, "mode": Mode.FULL}
    return SimpleNamespace(gate_judge=gate_judge, **{**defaults, **fields})


def notes(*args: Any, **fields: Any) -> tuple[SuiteNote, ...]:
    return unreported_notes(session_state(*args, **fields))


def test_a_verdict_that_no_report_carries_fails_the_run() -> None:
    (note,) = notes(LOCAL, reports={"test_a": (SLOWER_CASE,)})
    assert (note.kind, note.effect) == ("unrun", Effect.FAIL)
    assert note.text.startswith("1 gated test chosen and not run, because a hook")
    assert note.names == (f"{SLOWER_CASE.key}: regressed",)


def test_what_was_not_run_and_would_not_have_failed_goes_by_the_policy() -> None:
    (note,) = notes(reports={"test_a": (KEPT_CASE,)})
    assert note.effect is Effect.FAIL
    (note,) = notes(LOCAL)
    assert (note.effect, note.names) == (Effect.WARN, ("test_a",))


@pytest.mark.parametrize(
    ("when", "passed", "heard"),
    [("call", True, True), ("call", False, True), ("setup", False, True), ("setup", True, False)],
)
def test_a_test_was_run_or_its_setup_says_why_not(when: str, passed: bool, heard: bool) -> None:
    session = session_state()
    report: Any = SimpleNamespace(when=when, passed=passed, nodeid="test_a")
    receive_reports(session, report)
    assert (unreported_notes(session) == ()) == heard


def test_only_of_whole_runs_that_measure() -> None:
    assert notes(complete=False) == notes(mode=Mode.OFF) == notes(cases={}) == ()
