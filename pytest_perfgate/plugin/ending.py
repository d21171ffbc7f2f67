"""How a session ended, and the reports that speak for the suite rather than for a test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pytest_perfgate.app.captures import capture_notes
from pytest_perfgate.app.conclude import RECORD, Ending, keep, run_report, suite_notes
from pytest_perfgate.clock import seconds
from pytest_perfgate.core.gate.grammar import FAMILY_MEAN
from pytest_perfgate.core.gate.suite import own_gate_note
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.commanded import commanded_notes
from pytest_perfgate.plugin.complaints import complain, fail, usage_errors
from pytest_perfgate.plugin.docket import Docket
from pytest_perfgate.plugin.keeping import take_back
from pytest_perfgate.plugin.outputs import write_outputs
from pytest_perfgate.plugin.patterns import pattern_notes
from pytest_perfgate.plugin.reaching import deselected, is_filtered, left_out, reach_of
from pytest_perfgate.plugin.skips import skipped_files
from pytest_perfgate.plugin.unreported import unreported_notes

_NAMED = 20
"""Names that a note shows."""


def close_session(session: Docket, *, complete: bool) -> None:
    """After the last test: verdicts on the suite, as reports of their own."""
    with usage_errors(session.told):
        session.complete = complete
        reports = session.all_reports()
        session.notes = suite_notes(session.court, session.cases, reports, ending_of(session))
        session.notes += capture_notes(reports, session.court.context.policy)
        session.notes += (*commanded_notes(session), *unreported_notes(session))
        session.notes += pattern_notes(session, filtered=is_filtered(session.settings.pytest))
        session.notes += own_gate_note(session.notes, session.court.context.policy)
    announce(session.settings.pytest, session.notes)


def write_session(session: Docket, status: int) -> None:
    """The record, also of a run that was interrupted; one that measured nothing leaves the last record what it is."""
    config = session.settings.pytest
    if session.reports or session.notes:
        try:
            report = run_report(session.court, session.recorded_reports(), session.notes, ending_of(session, status))
            session.written = write_outputs(config, report)
            kept = keep(session.court, report)
            session.written = (*kept.written, *session.written)
            session.lost = not_kept(kept.lost)
            session.recorded = not any(name == RECORD for name, _ in kept.lost)
            if session.lost:
                fail(config)
        except PerfgateError as fault:
            complain(config, fault)
        ignored(config.rootpath / ".perfgate")
    elif status != pytest.ExitCode.INTERNAL_ERROR and not session.resumable:
        take_back(session)


def close_records(config: pytest.Config, exitstatus: int, *, told: bool) -> None:
    """A run in CI that left no record: what delivers the last one must not find an earlier run's."""
    from pytest_perfgate.wiring.stores import record_store

    try:
        record_store(config.rootpath).close(f"the last run left no record: pytest ended with {int(exitstatus)}")
    except PerfgateError as fault:
        if not told:  # else a folder that takes nothing has said so
            what = "the last record that lies here is of an earlier run, and cannot be marked so"
            complain(config, PerfgateError(fault.code.name, what, why=fault.what, mend=fault.mend, place=fault.place))


def not_kept(lost: Iterable[tuple[str, PerfgateError]]) -> list[PerfgateError]:
    """What this run could not keep: a sentence for each cause, with all that it cost."""
    causes: dict[tuple[str, str, str], list[tuple[str, PerfgateError]]] = {}
    for name, fault in lost:
        causes.setdefault((fault.code.name, fault.what, fault.mend), []).append((name, fault))
    return [_not_kept([name for name, _ in found], found[0][1]) for found in causes.values()]


def _not_kept(names: list[str], fault: PerfgateError) -> PerfgateError:
    said = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    why = f"{fault.place}: {fault.what}" if fault.place else fault.what
    return PerfgateError(fault.code.name, f"not kept: {said}", why=why, mend=fault.mend)


def ignored(folder: Path) -> None:
    """What lies under ``.perfgate/`` belongs to this checkout alone: git need not be told by hand."""
    note = folder / ".gitignore"
    with contextlib.suppress(OSError):  # whatever else could not be written has said so
        if folder.is_dir() and not note.exists():
            note.write_text("# made by perfgate\n*\n", encoding="utf-8")


def ending_of(session: Docket, status: int = 0) -> Ending:
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
    )


def announce(config: pytest.Config, notes: Iterable[SuiteNote]) -> None:
    """A note that fails is a failed report of its own: JUnit and the exit code tell of it."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    for note in notes:
        if note.effect is Effect.FAIL:
            if reporter is not None and reporter._tw.width_of_current_line:  # noqa: SLF001 - as pytest's own plugins do
                reporter._tw.line()  # noqa: SLF001 - pytest has said [100%]
            _expected(config)
            _report(config, name_of(note), note)


def _expected(config: pytest.Config) -> None:
    """One report more than tests were collected: pytest's progress would count beyond its end."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None:
        session.testscollected += 1


class Told(NamedTuple):
    """A failed note as pytest shows failures: whole where they are listed, its first words where they are counted."""

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
    """What a failed note is called among the tests."""
    return f"perfgate::{note.kind}"


def text_of(note: SuiteNote) -> str:
    """A note with the names it speaks of."""
    more = [f"  ... and {len(note.unsaid) - _NAMED} more"] if len(note.unsaid) > _NAMED else []
    steps = ["  next  perfgate report"] if note.kind == FAMILY_MEAN and note.effect is Effect.FAIL else []
    return "\n".join([note.text, *(f"  {name}" for name in note.unsaid[:_NAMED]), *more, *steps])


def _report(config: pytest.Config, nodeid: str, note: SuiteNote) -> None:
    for when, outcome in (("setup", "passed"), ("call", "failed"), ("teardown", "passed")):
        longrepr = Told(note) if outcome == "failed" else None
        report: Any = pytest.TestReport(nodeid, ("perfgate", None, nodeid), {}, outcome, longrepr, when)  # type: ignore[arg-type]
        config.hook.pytest_runtest_logreport(report=report)
    remembered = getattr(config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
    if isinstance(remembered, dict):
        remembered.pop(nodeid, None)
