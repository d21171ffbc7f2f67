"""The gate of one session: cases, what they came to, and the door for each test."""

from __future__ import annotations

import datetime as dt
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.app.agree import agreed
from pytest_perfgate.app.gate import Court, hushed, off_reason
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.children import CaseResult
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.plan import Case, CaseKey, Mode
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from pytest_perfgate.plugin.benches import Bench, JudgedBench, MeasuringBench, QuickBench
from pytest_perfgate.plugin.conviction import convictor
from pytest_perfgate.plugin.fixture import Gate
from pytest_perfgate.plugin.measuring import measuring_tools
from pytest_perfgate.plugin.properties import SEEN, properties
from pytest_perfgate.wiring import gate_tools
from pytest_perfgate.wiring.devices import pick_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_perfgate.plugin.settings import Settings

Reports = tuple[CaseReport, ...]


class GateSession:
    """Everything a controller or a worker knows of its gated tests."""

    def __init__(self, settings: Settings, *, ahead: bool = False) -> None:
        self.settings = settings
        self._ahead = ahead
        """Workers: whatever the mode, the controller has measured."""
        self.cases: dict[str, Case] = {}
        self.faults: dict[str, PerfgateError] = {}
        self.reports: dict[str, Reports] = {}
        self.judged: set[str] = set()
        """Tests whose call phase was given its verdict."""
        self.started = dt.datetime.now(dt.timezone.utc)
        self.clock = time.monotonic()
        self.complete = False
        self.notes: tuple[SuiteNote, ...] = ()
        self.excused: list[str] = []
        """Failing verdicts of tests that are expected to fail."""
        self.written: tuple[Path, ...] = ()
        self._benches: dict[str, Bench] = {}
        self._court: Court | None = None

    @property
    def mode(self) -> Mode:
        return Mode.OFF if self.settings.debugging else self.settings.mode

    @property
    def court(self) -> Court:
        if self._court is None:
            tools = gate_tools(self.settings.pytest.rootpath, self.settings.project, self.settings.kinds)
            self._court = Court(replace(tools, convict=convictor(self, tools)), context_of(self))
        return self._court

    def collect(self, items: Sequence[pytest.Item]) -> None:
        """Cases of gated tests; a wrong marker is kept as the fault of its test alone."""
        collector = self.settings.collector
        for item in items:
            try:
                self.cases[item.nodeid] = collector.case(item)
            except PerfgateError as fault:  # noqa: PERF203 - a wrong marker is the fault of its test alone
                self.faults[item.nodeid] = fault

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Measure before the first test, where the mode says so."""
        with usage_errors():
            pick_device(self.settings.options)
            self.collect(items)
        if self.mode is Mode.FULL:
            self.measure()

    def measure(self) -> None:
        """Measure all cases in children and judge them, unless nothing is to be measured."""
        from pytest_perfgate.plugin.ahead import measure_ahead

        self._ahead = True
        with usage_errors():
            if self.cases and self.mode is not Mode.OFF:
                measure_ahead(self)

    def gate(self, item: pytest.Item) -> Gate:
        """The fixture of one test."""
        with usage_errors():
            if item.nodeid not in self.cases and item.nodeid not in self.faults:
                self.collect([item])
        if item.nodeid in self.faults:
            pytest.fail(self.faults[item.nodeid].text(), pytrace=False)
        case = self.cases[item.nodeid]
        bench = self._bench(case)
        self._benches[item.nodeid] = bench
        return Gate(case, bench)

    def judge(self, item: pytest.Item) -> None:
        """Give a test that ran its verdict, in its own call phase."""
        if item.nodeid in self.faults:
            pytest.fail(self.faults[item.nodeid].text(), pytrace=False)
        case = self.cases.get(item.nodeid)
        if case is None:
            return
        bench = self._benches.get(item.nodeid)
        with readable():
            reports = self._verdicts(case, bench)
        self.reports[item.nodeid] = reports
        self.judged.add(item.nodeid)
        item.user_properties.extend(properties(reports))
        failing = [render_block(report) for report in reports if report.effect is Effect.FAIL]
        if failing:
            pytest.fail("\n\n".join(failing), pytrace=False)

    def seen(self, nodeid: str) -> list[str]:
        """Names of the calls that a test made."""
        bench = self._benches.get(nodeid)
        return [key.name for key in bench.seen] if bench is not None else []

    def store(self, report: CaseReport) -> None:
        """A verdict that another process reached."""
        self.reports[report.key.nodeid] = (*self.reports.get(report.key.nodeid, ()), report)

    def known(self, key: CaseKey) -> Measurement | None:
        """What was measured of a key before the tests."""
        found = (r.measurement for r in self.reports.get(key.nodeid, ()) if r.key == key)
        return next((measurement for measurement in found if measurement is not None), None)

    def _bench(self, case: Case) -> Bench:
        if self.mode is Mode.OFF:
            return Bench(case)
        if self._ahead or case.nodeid in self.judged:
            return JudgedBench(case, self.known)
        return QuickBench(case, measuring_tools(self.settings.pytest))

    def _verdicts(self, case: Case, bench: Bench | None) -> Reports:
        """A rerun reads the verdict of the first run; only quick mode measures here."""
        seen = bench.seen if bench is not None else []
        if isinstance(bench, MeasuringBench):
            return self.court.judge_result(CaseResult(case=case, captures=(bench.captures(),)))
        if self._ahead or self.mode is Mode.OFF or case.nodeid in self.judged:
            return self._settled(case, seen)
        return self.court.judge_result(CaseResult(case=case, captures=((),)))

    def _settled(self, case: Case, seen: Sequence[CaseKey]) -> Reports:
        if self.mode is Mode.OFF:
            why = off_reason(self.settings.mode, self.settings.debugging)
            return tuple(self.court.unmeasured(case, key, why) for key in seen or [CaseKey(nodeid=case.nodeid)])
        stored = self.reports.get(case.nodeid)
        return (
            self.court.judge_result(CaseResult(case=case)) if stored is None else agreed(self.court, case, stored, seen)
        )

    def note(self, report: pytest.TestReport) -> None:
        """What a worker's test called, held against what was measured."""
        if report.when == "call" and hasattr(report, "wasxfail") and report.skipped:
            found = self.reports.get(report.nodeid, ())
            self.excused += [f"{r.worst.value}: {r.key}" for r in found if r.effect is Effect.FAIL]
        names = getattr(report, SEEN, None)
        case = self.cases.get(report.nodeid)
        if names is not None and case is not None and report.nodeid not in self._benches:
            self.reports[report.nodeid] = self._settled(case, [CaseKey(nodeid=case.nodeid, name=n) for n in names])
            self.judged.add(report.nodeid)

    def all_reports(self) -> list[CaseReport]:
        """Every report so far, in the order of collection."""
        return [
            report if nodeid in self.judged else hushed(report)
            for nodeid in self.cases
            for report in self.reports.get(nodeid, ())
        ]


@contextmanager
def usage_errors() -> Iterator[None]:
    """Our own errors leave pytest as usage errors: the sentence, no trace."""
    try:
        yield
    except PerfgateError as fault:
        raise pytest.UsageError(fault.text()) from None


@contextmanager
def readable() -> Iterator[None]:
    """Our own errors fail the test with their sentence, without the trace of our code."""
    try:
        yield
    except PerfgateError as fault:
        raise pytest.fail.Exception(fault.text(), pytrace=False) from None


def context_of(session: GateSession) -> JudgeContext:
    """What every judge of this session knows."""
    return JudgeContext(
        policy=session.settings.policy,
        mode=session.mode,
        kinds=session.settings.kinds,
        gates=max(1, len(session.cases)),
        today=session.started.date().isoformat(),
        facts=session.settings.project.facts or "shown",
    )
