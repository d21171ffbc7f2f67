"""The end of a session: exit status, outputs, tests that were not reported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_perfgate.app.conclude import RECORD, Ending, capture_notes, keep, run_report, suite_notes
from pytest_perfgate.clock import seconds
from pytest_perfgate.core.judge.suite import own_gate_note
from pytest_perfgate.core.limits.grammar import FAMILY_MEAN
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError, fault_error
from pytest_perfgate.model.plan import Effect, Mode
from pytest_perfgate.model.verdict import RunReport, SuiteNote
from pytest_perfgate.plugin.measure_ahead import take_back
from pytest_perfgate.plugin.measuring import built_ins
from pytest_perfgate.plugin.options import child_environment
from pytest_perfgate.plugin.reporting import StartFolder, columns, complain, fail, folded, usage_errors, write_painted
from pytest_perfgate.plugin.selection import (
    deselected,
    division,
    is_filtered,
    left_out,
    pattern_notes,
    reach_of,
    shard_of,
    skipped_files,
    unread_notes,
    unreported_notes,
)

if TYPE_CHECKING:
    from pytest_perfgate.plugin.state import SessionState

_NAMED = 20
"""How many names a note shows."""


def close_session(session: SessionState, *, complete: bool) -> None:
    """Judge the suite after the last test, and report failing notes as tests of their own."""
    with usage_errors(session.errors):
        session.complete = complete
        reports = session.all_reports()
        session.notes = suite_notes(session.gate_judge, session.cases, reports, ending_of(session))
        session.notes += capture_notes(reports, session.gate_judge.context.policy)
        session.notes += (*commanded_notes(session), *unread_notes(session), *unreported_notes(session))
        session.notes += pattern_notes(session, filtered=is_filtered(session.settings.pytest))
        session.notes += own_gate_note(session.notes, session.gate_judge.context.policy)
    announce(session.settings.pytest, session.notes)


def write_session(session: SessionState, status: int) -> None:
    """Write the record, also for an interrupted run; a run that measured nothing keeps the last record."""
    config = session.settings.pytest
    if session.reports or session.notes or division(config) is not None:
        try:
            report = run_report(
                session.gate_judge, session.recorded_reports(), session.notes, ending_of(session, status)
            )
            session.written = write_outputs(config, report)
            record = keep(session.gate_judge, report)
            session.written = (*record.written, *session.written)
            session.lost = not_kept(record.lost)
            session.recorded = not any(name == RECORD for name, _ in record.lost)
            if session.lost:
                fail(config)
        except PerfgateError as fault:
            complain(config, fault)
    elif status != pytest.ExitCode.INTERNAL_ERROR and not session.resumable:
        take_back(session)


def close_records(config: pytest.Config, exitstatus: int, *, reported: bool) -> None:
    """Mark that this run left no record, so that a later delivery does not take an earlier run's."""
    from pytest_perfgate.wiring.stores import record_store

    try:
        record_store(config.rootpath).close(f"the last run left no record: pytest ended with {int(exitstatus)}")
    except PerfgateError as fault:
        if not reported:  # otherwise a folder that cannot be written was reported
            what = "the last record here is of an earlier run, and cannot be marked as old"
            complain(config, PerfgateError(fault.code.name, what, why=fault.what, fix=fault.fix, place=fault.place))


def not_kept(lost: Iterable[tuple[str, PerfgateError]]) -> list[PerfgateError]:
    """Return one error for each cause of what this run could not keep, with all that was lost."""
    causes: dict[tuple[str, str, str], list[tuple[str, PerfgateError]]] = {}
    for name, fault in lost:
        causes.setdefault((fault.code.name, fault.what, fault.fix), []).append((name, fault))
    of_causes = (zip(*cause) for cause in causes.values())
    return [_not_kept(list(names), faults[0]) for names, faults in of_causes]


def _not_kept(names: list[str], fault: PerfgateError) -> PerfgateError:
    text = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    why = f"{fault.place}: {fault.what}" if fault.place else fault.what
    return PerfgateError(fault.code.name, f"not kept: {text}", why=why, fix=fault.fix)


def ending_of(session: SessionState, status: int = 0) -> Ending:
    config = session.settings.pytest
    return Ending(
        mode=session.mode,
        started=session.started.isoformat(timespec="seconds"),
        seconds=seconds() - session.clock,
        complete=session.complete,
        filtered=is_filtered(config),
        root=str(config.rootpath),
        status=int(status),
        reach=reach_of(config),
        deselected=frozenset({*deselected(config), *session.faults}),
        skipped={**session.skipped, **skipped_files(config)},
        left_out=left_out(config),
        shard=shard_of(session),
        tables=session.settings.project.tables,
    )


def announce(config: pytest.Config, notes: Iterable[SuiteNote]) -> None:
    """Report a failing note as a failed test, so that JUnit and the exit code show it."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    for note in notes:
        if note.effect is Effect.FAIL:
            if reporter is not None and reporter._tw.width_of_current_line:  # noqa: SLF001 - as pytest's own plugins do
                reporter._tw.line()  # noqa: SLF001 - pytest has said [100%]
            _expected(config)
            _report(config, name_of(note), note)


def _expected(config: pytest.Config) -> None:
    """Count one report more than was collected, or pytest's progress would pass 100 %."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None:
        session.testscollected += 1


class FailedNote(NamedTuple):
    """A failed note as pytest shows failures: in full in the list, by its first words in the summary."""

    note: SuiteNote

    @property
    def reprcrash(self) -> SimpleNamespace:
        words = self.note.text.partition("\n")[0].partition(";")[0]
        return SimpleNamespace(path="perfgate", lineno=0, message=words)

    def toterminal(self, out: Any) -> None:
        out.line(str(self))

    def __str__(self) -> str:
        return text_of(self.note)


def name_of(note: SuiteNote) -> str:
    """Return the name of a failed note among the tests."""
    return f"perfgate::{note.kind}"


def text_of(note: SuiteNote) -> str:
    """Return the text of a note with the names that it is about."""
    more = [f"  ... and {len(note.unstated) - _NAMED} more"] if len(note.unstated) > _NAMED else []
    steps = ["  next  perfgate report"] if note.kind == FAMILY_MEAN and note.effect is Effect.FAIL else []
    return "\n".join([note.text, *(f"  {name}" for name in note.unstated[:_NAMED]), *more, *steps])


def _report(config: pytest.Config, nodeid: str, note: SuiteNote) -> None:
    for when, outcome in (("setup", "passed"), ("call", "failed"), ("teardown", "passed")):
        longrepr = FailedNote(note) if outcome == "failed" else None
        report: Any = pytest.TestReport(nodeid, ("perfgate", None, nodeid), {}, outcome, longrepr, when)  # type: ignore[arg-type]
        config.hook.pytest_runtest_logreport(report=report)
    remembered = getattr(config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
    if isinstance(remembered, dict):
        remembered.pop(nodeid, None)


_FILES = ("json", "html", "markdown")


def write_outputs(config: pytest.Config, report: RunReport) -> tuple[Path, ...]:
    """Write the outputs and return their paths, relative to where pytest was started."""
    outputs = {name: getattr(config.option, f"perfgate_{name}") for name in _FILES}
    paths = {name: config.invocation_params.dir / path for name, path in outputs.items() if path}
    if not paths:
        return ()
    built_ins(config)
    last_first = config.hook.pytest_perfgate_deliveries()  # reversed, those of plugins replace ours of the same name
    deliveries = {delivery.name: delivery for one in reversed(last_first) for delivery in one}
    return tuple(path for name, path in paths.items() if _delivered(config, deliveries[name], report, path))


def _delivered(config: pytest.Config, delivery: Any, report: RunReport, path: Path) -> bool:
    """Deliver one output; an error fails the run and is reported, and the record is still written."""
    try:
        delivery.deliver(report, str(path))
    except Exception as fault:  # noqa: BLE001 - a plugin may raise anything, and the record must still be written
        complain(config, fault_error(fault, f"wrote {delivery.name}", str(path)))
        return False
    return True


_OPTIONS = {"--perfgate-limit": "perfgate_limit", "--perfgate-policy": "perfgate_policy"}


def commanded_notes(session: SessionState) -> tuple[SuiteNote, ...]:
    """Return one note in CI that names the limits and policies of options, which replace those of the project."""
    names = tuple(_option_sources(session.settings.pytest)) if session.gate_judge.context.policy.ci else ()
    if not names:
        return ()
    text = "limits and policies from options, instead of those of the tests and the project"
    return (SuiteNote(kind="commanded", effect=Effect.WARN, text=text, names=names),)


def _option_sources(config: pytest.Config) -> Iterator[str]:
    for option, field in _OPTIONS.items():
        for text in getattr(config.option, field, None) or ():
            yield f"{option} {text!r}, by {_author(config, text)}"


def _author(config: pytest.Config, text: str) -> str:
    if any(str(word).endswith(text) for word in config.invocation_params.args):
        return "the command"
    return "PYTEST_ADDOPTS" if text in os.environ.get("PYTEST_ADDOPTS", "") else "addopts or a conftest"


def receive_reports(session: SessionState, report: pytest.TestReport) -> None:
    """Remember a test that ran, or whose setup or skip was reported."""
    if report.when == "call" or not report.passed:
        session.reported_tests.add(report.nodeid)


def keep_failing(state: SessionState, config: pytest.Config) -> None:
    """In CI, fail the job if a verdict failed but ``pytest.exit`` or a conftest set the exit status to 0."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is None or session.exitstatus != pytest.ExitCode.OK or not child_environment(config).get("CI"):
        return
    what, fix = "", ""
    if failed := _failed(state):
        what = f"{plural(failed, 'verdict')} of this run failed, and a conftest or a plugin ended it with 0"
    elif unrun := _unrun(state):
        what = f"{plural(unrun, 'gated test')} did not run: something ended this run early with 0"
        fix = "remove the code that ends it, such as pytest.exit(returncode=0) in a conftest"
    if what:
        complain(config, PerfgateError("run-overruled", what, fix=fix))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _unrun(state: SessionState) -> int:
    """Count the gated tests that a run which ended early did not reach."""
    if state.complete or state.mode is Mode.OFF:
        return 0
    return sum(nodeid not in state.reported_tests for nodeid in state.cases)


def _failed(state: SessionState) -> int:
    """Count the verdicts that failed a test of this run, or the suite, without tests that are expected to fail."""
    tests = [report for nodeid in state.judged for report in state.reports.get(nodeid, ())]
    failed = [f"{report.worst.value}: {report.key}" for report in tests if report.effect is Effect.FAIL]
    notes = sum(note.effect is Effect.FAIL for note in state.notes)
    return notes + sum(text not in state.excused for text in failed)


REPORT, MERGE = "perfgate report", "perfgate merge FOLDER"

FROM = "--from RECORD "
"""Accepting is refused in CI: the record of the run is accepted elsewhere."""


def write_next(out: Any, session: SessionState, commands: Sequence[str]) -> None:
    """Write the next commands; the shards of a run have one report, made from their merged records."""
    shard, start = division(session.settings.pytest), StartFolder(session.settings.pytest)
    divided = shard is not None and shard.count > 1
    for command in commands:
        write_painted(out, f"next  {start.command(MERGE if divided and command == REPORT else command)}")
    if shard and divided and commands:
        out.write_line(f"FOLDER holds the records of all {shard.count} shards: --perfgate-json FOLDER/K.json")
    blocks = (step for report in session.all_reports() for verdict in report.verdicts for step in verdict.next)
    notes = (note.text for note in session.notes)
    if any(FROM in command for command in (*commands, *blocks, *notes)):
        own = next((f", {start.path(path)}" for path in session.written if path.parent.name == "records"), "")
        text = (
            f"RECORD is the record of this run{own}. Keep it and its .samples as an artifact: any clone can accept it"
        )
        for line in folded(text, columns(session.settings.pytest)):
            out.write_line(line)
