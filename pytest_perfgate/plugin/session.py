"""A session that measures, judges and serves the fixture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.app.judge import agreed, off_reason
from pytest_perfgate.core.render.block import WIDTH, lost_by, render_block
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, CaseKey, Effect, Mode
from pytest_perfgate.model.protocol import CaseResult
from pytest_perfgate.plugin.benches import Bench, JudgedBench, MeasuringBench
from pytest_perfgate.plugin.fixture import Perfgate
from pytest_perfgate.plugin.measure_ahead import begin, cleaned_up, measure_ahead, quick_parts, require_readable_folder
from pytest_perfgate.plugin.measuring import measuring_tools
from pytest_perfgate.plugin.reporting import (
    SEEN,
    StartFolder,
    columns,
    properties,
    refuse,
    shown_once,
    usage_errors,
    without_repeats,
    write_during_test,
)
from pytest_perfgate.plugin.selection import skip_reason
from pytest_perfgate.plugin.state import Reports, SessionState
from pytest_perfgate.wiring.devices import pick_device

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.ports import Confirm, GateTools, Profiler
    from pytest_perfgate.model.protocol import Capture
    from pytest_perfgate.model.verdict import CaseReport
    from pytest_perfgate.plugin.calls import Brought, MeasuredCall
    from pytest_perfgate.plugin.state import Settings


_LATE = "it requested perfgate while it ran, after the measuring: take it as an argument, or mark the test"


class QuickBench(MeasuringBench):
    """``quick``: takes the captures that work in this process, after a call was timed."""

    def _call_again(self, call: MeasuredCall) -> object:
        if not self._profilers():
            return call.once()
        call.prepare()
        with self._profiled(call.key):
            result = call.timed()()
        call.judge(result)
        self._taken[call.key] = self._with_profile(self._taken[call.key])
        return result

    @contextmanager
    def around(self, brought: Brought) -> Iterator[None]:
        """Run a region once under the profiler; it then has no time of its own."""
        if not self._profilers():
            yield
            return
        from pytest_perfgate.plugin.captures import untimed

        with self._profiled(brought.key):
            yield
        metrics, notes = self._measuring.profiled(self.case.plan, brought.key, self._limited(brought.limits))
        brought.metrics, brought.durations = metrics | untimed(self.case), []
        self.artifacts += [artifact for artifact in notes if artifact not in self.artifacts]

    def captures(self) -> tuple[Capture, ...]:
        captures = super().captures()
        if not self.case.plan.captures:
            return captures
        from pytest_perfgate.plugin.captures import absent_captures

        absent, lost = absent_captures(self.case)
        return tuple(
            replace(capture, metrics=capture.metrics | absent, findings=(*capture.findings, *lost))
            for capture in captures
        )

    def _profilers(self) -> tuple[Profiler, ...]:
        return self._measuring.profilers(self.case.plan)

    def _profiled(self, key: CaseKey) -> AbstractContextManager[None]:
        """Run the requested profilers around one call or region."""
        from pytest_perfgate.plugin.captures import profiled

        return profiled(key, self._profilers())

    def _with_profile(self, capture: Capture) -> Capture:
        metrics, notes = self._measuring.profiled(self.case.plan, capture.key, self._limited(capture.limits))
        self.artifacts += notes
        return replace(capture, metrics=capture.metrics | metrics)

    def _limited(self, own: Sequence[str]) -> str:
        """Return the limits that the captured figures will be judged by."""
        return "\n".join((*(limit.text for limit in self.case.limits), *own))


def _failing_blocks(reports: Reports, pytest_config: pytest.Config, first_tests: dict[str, str]) -> list[str]:
    """Return the blocks of the cases that fail their test; a reason that an earlier test has shown is not repeated."""
    from pytest_perfgate.core.judge.judge import unrepeated

    here, width = StartFolder(pytest_config), min(WIDTH, columns(pytest_config))
    failing = [report for report in unrepeated(reports) if report.effect is Effect.FAIL]
    texts = ((report, render_block(report, width, here.command)) for report in failing)
    return [shown_once(text, r.key.nodeid, first_tests) if lost_by(r) else text for r, text in texts]


class GateSession(SessionState):
    """Measures before the first test in full mode, and makes the fixture of each test."""

    def __init__(self, settings: Settings, *, ahead: bool = False) -> None:
        super().__init__(settings)
        self.confirmer = confirmer
        self.measured_ahead = ahead  # workers: in any mode the controller has measured
        self._benches: dict[str, Bench] = {}
        self._late: set[str] = set()
        """Tests found to be gated only while they ran."""

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Read settings and cases, and measure before the first test in full mode."""
        with usage_errors():
            pick_device(self.settings.options)
            self.settings.read()
            self.collect(items)
            if self.cases:
                require_readable_folder(self.settings.pytest.rootpath / ".perfgate")
                from pytest_perfgate.plugin.controller import end_as_interrupted

                end_as_interrupted(self.settings.pytest)
        if self.mode is Mode.FULL:
            self.measure()
            return
        if self.cases and self.mode is Mode.QUICK:
            begin(self)
        if math.isfinite(self.settings.budget_s):
            self.cases = quick_parts(self)

    def measure(self) -> None:
        """Measure all cases in children and judge them, unless nothing is to be measured."""
        from pytest_perfgate.plugin.controller import interrupts_handled
        from pytest_perfgate.plugin.options import child_environment, refuse_ranks

        self.measured_ahead = True
        with usage_errors():
            if self.cases and self.mode is not Mode.OFF:
                refuse_ranks(child_environment(self.settings.pytest))
                begin(self)
                try:
                    with interrupts_handled(), cleaned_up(self.settings.pytest):
                        measure_ahead(self)
                except KeyboardInterrupt:  # pytest reads the source of every frame of it, up to a second's work
                    raise KeyboardInterrupt from None

    def gate(self, item: pytest.Item) -> Perfgate:
        """Return the fixture of one test."""
        with usage_errors():
            if item.nodeid not in self.cases and self.fault_of(item) is None:
                self.collect([item])
                self._late.add(item.nodeid)
        if fault := self.fault_of(item):
            refuse(fault.text())
        case = self.cases[item.nodeid]
        bench = self._bench(case)
        self._benches[item.nodeid] = bench
        return Perfgate(case, bench)

    def judge(self, item: pytest.Item) -> None:
        """Give a test that ran its verdict, in its call phase."""
        if getattr(item, "_excinfo", None):  # a test of unittest failed or was skipped: pytest raises that only later
            return
        if fault := self.fault_of(item):
            refuse(fault.text())
        case = self.cases.get(item.nodeid)
        if case is None:
            return
        bench = self._benches.get(item.nodeid)
        reports = self._read(case, bench)
        if isinstance(reports, PerfgateError):
            refuse(without_repeats(reports, item.nodeid, self.told))
        self.reports[item.nodeid] = reports
        self.judged.add(item.nodeid)
        item.user_properties.extend(properties(reports))
        if failing := _failing_blocks(reports, self.settings.pytest, self.told):
            refuse("\n\n".join(failing))

    def call_names(self, nodeid: str) -> list[str]:
        """Return the names of the calls that a test made."""
        bench = self._benches.get(nodeid)
        return [key.name for key in bench.call_keys] if bench is not None else []

    def store(self, report: CaseReport) -> None:
        """Store a verdict of another process."""
        self.reports[report.key.nodeid] = (*self.reports.get(report.key.nodeid, ()), report)

    def measurement_of(self, key: CaseKey) -> Measurement | None:
        """Return what was measured of a call before the tests, or None."""
        measurements = (r.measurement for r in self.reports.get(key.nodeid, ()) if r.key == key)
        return next((measurement for measurement in measurements if measurement is not None), None)

    def _bench(self, case: Case) -> Bench:
        if self.mode is Mode.OFF:
            return Bench(case)
        if self.measured_ahead or case.nodeid in self.judged:
            return JudgedBench(case, self.measurement_of, partial(missing_reason, self.reports))
        measuring = measuring_tools(self.settings.pytest)
        measuring.tell_waits(partial(write_during_test, self.settings.pytest))
        return QuickBench(case, measuring)

    def _read(self, case: Case, bench: Bench | None) -> Reports | PerfgateError:
        try:
            return self._verdicts(case, bench)
        except PerfgateError as fault:
            return fault

    def _verdicts(self, case: Case, bench: Bench | None) -> Reports:
        """Return the verdicts of a case; a rerun has those of the first run, and only quick mode measures here."""
        calls = bench.call_keys if bench is not None else []
        if isinstance(bench, MeasuringBench):
            return self.gate_judge.judge_result(
                CaseResult(case=case, captures=(bench.captures(),), raised=tuple(bench.raised.items()))
            )
        if self.measured_ahead or self.mode is Mode.OFF or case.nodeid in self.judged:
            return self._settle(case, calls)
        return self.gate_judge.judge_result(CaseResult(case=case, captures=((),)))

    def _settle(self, case: Case, called: Sequence[CaseKey]) -> Reports:
        if self.mode is Mode.OFF:
            why = off_reason(self.settings.mode, self.settings.debugging)
            return tuple(self.gate_judge.unmeasured(case, key, why) for key in called or [CaseKey(nodeid=case.nodeid)])
        stored = self.reports.get(case.nodeid)
        if stored is not None:
            return agreed(self.gate_judge, case, stored, called)
        return self.gate_judge.judge_result(
            CaseResult(case=case, trouble=(_LATE,) if case.nodeid in self._late else ())
        )

    def note(self, report: pytest.TestReport) -> None:
        """Record a test's report; the calls that a worker's test made are compared with the measured ones."""
        if report.when == "call" and hasattr(report, "wasxfail") and report.skipped:
            reports = self.reports.get(report.nodeid, ())
            self.excused += [f"{r.worst.value}: {r.key}" for r in reports if r.effect is Effect.FAIL]
            self.told = {text: first for text, first in self.told.items() if first != report.nodeid}  # nobody saw them
        if report.nodeid in self.cases and not hasattr(report, "context"):  # the report of a subtest
            self._note_skip(report)
        names = getattr(report, SEEN, None)
        case = self.cases.get(report.nodeid)
        if names is not None and case is not None and report.nodeid not in self._benches:
            self.reports[report.nodeid] = self._settle(case, [CaseKey(nodeid=case.nodeid, name=n) for n in names])
            self.judged.add(report.nodeid)

    def _note_skip(self, report: pytest.TestReport) -> None:
        """Record whether a test was skipped in the end: an expected failure was not, and a rerun may run after all."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = skip_reason(report)
        elif report.when == "call":
            self.skipped.pop(report.nodeid, None)


def confirmer(session: SessionState, tools: GateTools) -> Confirm | None:
    """Return the paired confirmation, or None if the project excludes it or git does not know the commits."""
    settings = session.settings
    if session.mode is not Mode.FULL or settings.project.confirmation == "interval":
        return None
    if settings.options.perfgate_against or tools.repository is None or not tools.repository.head():
        return None

    def confirm(reports: Mapping[CaseKey, CaseReport], cases: Mapping[str, Case]) -> Mapping[CaseKey, CaseReport]:
        from pytest_perfgate.plugin.arms import ArmRunner

        return ArmRunner(session).confirm(reports, cases)

    return confirm


_LONGEST = 300


def missing_reason(reports: Mapping[str, Sequence[CaseReport]], key: CaseKey) -> str:
    """Return why a call of a measured test has no measurement; "" if unknown."""
    reports_of_test = reports.get(key.nodeid, ())
    mine = [report for report in reports_of_test if report.key == key] or [
        report for report in reports_of_test if not report.key.name
    ]
    lost = (verdict.sentence for report in mine if report.measurement is None for verdict in report.verdicts)
    reason = " ".join(next(filter(None, lost), "").split())
    if not reason and reports_of_test and not mine:
        names = ", ".join(repr(report.key.name) for report in reports_of_test)
        reason = f"this call did not happen in the measuring process; these did: {names}"
    return f"{reason[:_LONGEST]}…" if len(reason) > _LONGEST else reason
