"""Notes on the suite as reports of their own, beside those of tests that pytest counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.ending import announce
from pytest_perfgate.plugin.summary import said_of


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
    assert said_of(failed, "auto") == "perfgate::dropped, above"
    assert said_of(failed, "no") == "1 accepted case\n  t.py::test_gone"
    assert said_of(warned, "auto") == "1 accepted case"
