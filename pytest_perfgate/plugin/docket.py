"""The docket of a session: its gated tests, and what became of each so far."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.gate import Court, hushed
from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Mode
from pytest_perfgate.model.verdict import CaseReport, Excuse, SuiteNote
from pytest_perfgate.plugin.outside import outside
from pytest_perfgate.plugin.told import told
from pytest_perfgate.wiring import gate_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest

    from pytest_perfgate.model.tools import Convict, GateTools
    from pytest_perfgate.plugin.settings import Settings

Reports = tuple[CaseReport, ...]


class Docket:
    """What everybody in a session may know and add to; how it comes about is theirs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cases: dict[str, Case] = {}
        self.faults: dict[str, PerfgateError] = {}
        self.reports: dict[str, Reports] = {}
        self.died: set[str] = set()
        """Tests whose child did not survive them."""
        self.judged: set[str] = set()
        """Tests whose call phase was given its verdict."""
        self.heard: set[str] = set()
        """Tests that pytest reported to have run, or why not."""
        self.skipped: dict[str, str] = {}
        """Tests that pytest skipped, and its reason."""
        self.started = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc)
        self.clock = seconds()
        self.complete = False
        self.notes: tuple[SuiteNote, ...] = ()
        self.excused: list[str] = []
        """Failing verdicts of tests that are expected to fail."""
        self.written: tuple[Path, ...] = ()
        self.recorded = False
        self.told: dict[str, str] = {}
        """Faults that a test was failed with, and that test: others of the same say so and no more."""
        self.lost: list[PerfgateError] = []
        """What could not be kept, and why."""
        self.measured_ahead = False
        """Measured before the first test, or about to be; else each test measures itself."""
        self.resumable = False
        """Whether finished rounds of two arms lie ready for the same command."""
        self.convictor: Callable[[Docket, GateTools], Convict | None] | None = None
        """Makes what tries suspects; without it nothing is convicted by two arms."""
        self._court: Court | None = None

    @property
    def mode(self) -> Mode:
        return Mode.OFF if self.settings.debugging else self.settings.mode

    @property
    def court(self) -> Court:
        if self._court is None:
            settings = self.settings
            tools = gate_tools(settings.pytest.rootpath, settings.project, settings.kinds, told(settings.pytest))
            convict = self.convictor(self, tools) if self.convictor is not None else None
            self._court = Court(replace(tools, convict=convict), self._context())
            self._court.merged = self.settings.collector.merged
        return self._court

    def collect(self, items: Sequence[pytest.Item]) -> None:
        """Cases of gated tests; a wrong marker is kept as the fault of its test alone."""
        collector = self.settings.collector
        for item in items:
            if self._outside(item) is not None:
                continue
            try:
                self.cases[item.nodeid] = collector.case(item)
            except PerfgateError as fault:
                self.faults[item.nodeid] = fault

    def fault_of(self, item: pytest.Item) -> PerfgateError | None:
        """Why a test cannot be gated."""
        return self._outside(item) or self.faults.get(item.nodeid)

    def _outside(self, item: pytest.Item) -> PerfgateError | None:
        """Where nothing is measured, a test of another project does no harm."""
        return outside(item) if self.mode is not Mode.OFF else None

    def all_reports(self) -> list[CaseReport]:
        """Every report so far, in the order of collection."""
        return [
            report if nodeid in self.judged else hushed(report)
            for nodeid in self.cases
            for report in self.reports.get(nodeid, ())
        ]

    def recorded_reports(self) -> list[CaseReport]:
        """Every report as the record has it: what is expected to fail does not fail the run there either."""
        return [
            replace(report, excuse=Excuse.EXPECTED_TO_FAIL)
            if f"{report.worst.value}: {report.key}" in self.excused
            else report
            for report in self.all_reports()
        ]

    def left_s(self) -> float:
        """What is left of ``--perfgate-budget``; without one there is no end."""
        return self.settings.budget_s - (seconds() - self.clock)

    def _context(self) -> JudgeContext:
        """What every judge of this session knows."""
        return JudgeContext(
            policy=self.settings.policy,
            mode=self.mode,
            kinds=self.settings.kinds,
            gates=max(1, len(self.cases)),
            today=self.started.date().isoformat(),
            facts=self.settings.project.facts or "shown",
            pytest=self.settings.command,
        )
