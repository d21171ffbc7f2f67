"""The session's state."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.app.judge import GateJudge, hushed
from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Mode
from pytest_perfgate.model.verdict import CaseReport, Excuse, SuiteNote
from pytest_perfgate.plugin.options import child_environment
from pytest_perfgate.plugin.reporting import UsersFrames, readable
from pytest_perfgate.wiring import gate_tools

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_perfgate.model.metric import MetricKind
    from pytest_perfgate.model.plan import Policy
    from pytest_perfgate.model.ports import Confirm, GateTools
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.plugin.collect import Collector


Reports = tuple[CaseReport, ...]


PINNED = "TRITON_CACHE_AUTOTUNING"
"""The variable by which Triton keeps what its autotuner chose, for each version of a kernel's source."""


class SessionState:
    """What everybody in a session may know and add to; how it comes about is theirs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cases: dict[str, Case] = {}
        self.faults: dict[str, PerfgateError] = {}
        self.reports: dict[str, Reports] = {}
        self.died: set[str] = set()
        """Tests whose child process died while it ran them."""
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
        self.confirmer: Callable[[SessionState, GateTools], Confirm | None] | None = None
        """Makes what tries suspects; without it nothing is confirmed by two arms."""
        self.run = os.urandom(16).hex()
        """The id of this run among all records."""
        self.costs: dict[str, float] = {}
        """Seconds that measuring each test took."""
        self._gate_judge: GateJudge | None = None

    @property
    def mode(self) -> Mode:
        return Mode.OFF if self.settings.debugging else self.settings.mode

    @property
    def gate_judge(self) -> GateJudge:
        if self._gate_judge is None:
            settings = self.settings
            environment = child_environment(settings.pytest)
            tools = gate_tools(settings.pytest.rootpath, settings.project, settings.kinds, environment)
            confirm = self.confirmer(self, tools) if self.confirmer is not None else None
            self._gate_judge = GateJudge(replace(tools, confirm=confirm), self._context())
            self._gate_judge.merged = self.settings.collector.merged
        return self._gate_judge

    def collect(self, items: Sequence[pytest.Item]) -> None:
        """Cases of gated tests; a wrong marker is kept as the fault of its test alone."""
        collector = self.settings.collector
        if self.settings.project.tuning == "pinned":
            os.environ.setdefault(PINNED, "1")
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
        """Seconds left of ``--perfgate-budget``; infinite without one."""
        return self.settings.budget_s - (seconds() - self.clock)

    def _context(self) -> JudgeContext:
        """What every judge of this session knows."""
        return JudgeContext(
            policy=self.settings.policy,
            mode=self.mode,
            kinds=self.settings.kinds,
            gates=max(1, len(self.cases)),
            share=share_of(self.settings.pytest),
            today=self.started.date().isoformat(),
            facts=self.settings.project.facts or "shown",
            anchor=self.settings.project.anchor,
            pytest=self.settings.command,
        )


def share_of(config: pytest.Config) -> float:
    """The part of a divided run that this one is: so much of the chance of a false alarm is its own."""
    if not config.option.perfgate_shard:
        return 1.0
    from pytest_perfgate.plugin.selection import division

    shard = division(config)
    return shard.share if shard is not None and shard.chosen else 1.0


COMPAT = "pytest_perfgate.compat"

CI_BUDGET_S = 600.0
"""The default budget of a run in CI."""


class Settings:
    """Read when the first gated test is met, not before."""

    def __init__(self, config: pytest.Config) -> None:
        self.pytest = config
        self.options: Any = config.option
        self.ci = bool(child_environment(config).get("CI"))

    def read(self) -> tuple[Policy, float]:
        """What does not read ends the run before its first test, and is said once."""
        if self.project.tables:
            from pytest_perfgate.core.render.families import parse_pivot

            [parse_pivot(text) for text in self.project.tables]
        return self.policy, self.budget_s

    @cached_property
    def project(self) -> Config:
        from pytest_perfgate.wiring import configuration

        config = configuration(self.pytest.rootpath)
        tables = (*config.tables, *self.options.perfgate_table)
        return replace(config, history=self.options.perfgate_history or config.history, tables=tables)

    @cached_property
    def mode(self) -> Mode:
        mode = self.options.perfgate_mode or self.project.mode or ("full" if self.ci else "quick")
        return Mode.FULL if self.options.perfgate_against and mode != "off" else Mode(mode)

    @cached_property
    def budget_s(self) -> float:
        """Seconds of measuring for the whole run: ten minutes by default in CI, unlimited elsewhere."""
        from pytest_perfgate.plugin.options import seconds

        budget = self.options.perfgate_budget
        if budget is not None:
            return seconds(budget, "--perfgate-budget")
        return CI_BUDGET_S if self.ci else math.inf

    @property
    def command(self) -> str:
        """How pytest must be started to run these tests again: with the plugin that was asked for by hand."""
        by_hand = any(word.endswith(COMPAT) for word in self.pytest.invocation_params.args)
        return f"pytest -p {COMPAT}" if by_hand else "pytest"

    @property
    def debugging(self) -> bool:
        """``--pdb`` and ``--trace``: a person is debugging the test."""
        return bool(self.options.usepdb or self.options.trace)

    @cached_property
    def policy(self) -> Policy:
        from pytest_perfgate.core.judge.policy import parse_policy
        from pytest_perfgate.wiring.stores import merge_request

        pairs = (*(f"{key}={choice}" for key, choice in self.project.policy), *self.options.perfgate_policy)
        return parse_policy(pairs, ci=self.ci, place="policy", request=merge_request(child_environment(self.pytest)))

    @cached_property
    def kinds(self) -> Mapping[str, MetricKind]:
        from pytest_perfgate.core.metric_kinds import by_name

        answers = self.pytest.hook.pytest_perfgate_metrics()
        return by_name(kind for answer in answers for kind in answer)

    @cached_property
    def collector(self) -> Collector:
        from pytest_perfgate.plugin.collect import Collector

        if self.project.device:  # a key that nothing reads is an error, also where no such device is at work
            from pytest_perfgate.wiring.devices import catalogue

            catalogue(self.project)
        return Collector(self.project, self.options, self.kinds, self._captures)

    def _captures(self) -> list[str]:
        """Names of the profilers that plugins bring."""
        return [one.name for answer in self.pytest.hook.pytest_perfgate_profilers() for one in answer]


def outside(item: pytest.Item) -> PerfgateError | None:
    """What is wrong with a test that no path below the rootdir leads to; its node id may be that of another one."""
    top, path = item.config.rootpath, item.path
    if path.is_relative_to(top) or _is_same(top / item.nodeid.partition("::")[0], path):
        return None
    here = item.config.invocation_params.dir
    return PerfgateError("test-outside", f"{_from(here, path)} lies outside the rootdir, {_from(here, top)}")


def _is_same(one: Path, other: Path) -> bool:
    """Whether the node id leads there all the same, by a link."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _from(here: Path, path: Path) -> str:
    try:
        return os.path.relpath(path, here)
    except ValueError:  # another drive
        return str(path)


class ReadablePhases:
    """Hooks of whoever runs tests."""

    def died(self) -> Container[str]:
        """Tests whose child process died while it ran them."""
        raise NotImplementedError

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        spare(item, self.died())
        with readable(), UsersFrames(item.config):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        with readable(), UsersFrames(item.config):
            return (yield)


def spare(item: pytest.Item, died: Container[str]) -> None:
    """Neither the fixtures nor the body of such a test run; its phases do, and the gate says its verdict."""
    if item.nodeid in died:
        vars(item).update(setup=lambda: None, runtest=lambda: None)
