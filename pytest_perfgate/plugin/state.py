"""What a session knows: its settings, its cases, their results, and the notes on the run."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.app.judge import GateJudge, with_excuse
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
"""The variable that makes Triton keep its autotuner's choices for each version of a kernel's source."""


class SessionState:
    """The data of a session that all its parts read and extend."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cases: dict[str, Case] = {}
        self.faults: dict[str, PerfgateError] = {}
        self.reports: dict[str, Reports] = {}
        self.died: set[str] = set()
        """Tests whose child process died while it ran them."""
        self.judged: set[str] = set()
        """Tests that were given the verdict of their call phase."""
        self.heard: set[str] = set()
        """Tests of which pytest reported a call, a failure or a skip."""
        self.skipped: dict[str, str] = {}
        """Tests that pytest skipped, with its reason."""
        self.started = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc)
        self.clock = seconds()
        self.complete = False
        self.notes: tuple[SuiteNote, ...] = ()
        self.excused: list[str] = []
        """Failing verdicts of tests that are expected to fail."""
        self.written: tuple[Path, ...] = ()
        self.recorded = False
        self.told: dict[str, str] = {}
        """The first test that failed with each error text; later ones show only its first line."""
        self.lost: list[PerfgateError] = []
        """What could not be kept, with the reason."""
        self.measured_ahead = False
        """Whether cases are measured before the first test; otherwise each test measures itself."""
        self.resumable = False
        """Whether finished rounds of two arms are stored for the same command."""
        self.interrupted = False  # in the rounds of two arms: what they decided is judged, then the run ends
        self.confirmer: Callable[[SessionState, GateTools], Confirm | None] | None = None
        """Creates the confirmation of suspects; without it no verdict is confirmed by two arms."""
        self.run = os.urandom(16).hex()
        """The id of this run among all records."""
        self.costs: dict[str, float] = {}
        """Seconds that measuring each test took."""

    @property
    def mode(self) -> Mode:
        return Mode.OFF if self.settings.debugging else self.settings.mode

    @cached_property
    def gate_judge(self) -> GateJudge:
        settings, root = self.settings, self.settings.pytest.rootpath
        environment = child_environment(settings.pytest)
        watched = self.mode is Mode.FULL  # a quick run measures in its tests, and names the tree of the first
        tools = gate_tools(root, settings.project, settings.kinds, environment, watched=watched)
        confirm = self.confirmer(self, tools) if self.confirmer is not None else None
        gate_judge = GateJudge(replace(tools, confirm=confirm), self._context())
        gate_judge.merged = self.settings.collector.merged
        return gate_judge

    def collect(self, items: Sequence[pytest.Item]) -> None:
        """Build the cases of gated tests; a wrong marker is kept as the fault of its test alone."""
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
        """Return why a test cannot be gated, or None."""
        return self._outside(item) or self.faults.get(item.nodeid)

    def _outside(self, item: pytest.Item) -> PerfgateError | None:
        """Return why a test lies outside the project, or None; in off mode it does not matter."""
        return outside(item) if self.mode is not Mode.OFF else None

    def all_reports(self) -> list[CaseReport]:
        """Return every report so far, in the order of collection."""
        return [
            report if nodeid in self.judged else with_excuse(report)
            for nodeid in self.cases
            for report in self.reports.get(nodeid, ())
        ]

    def recorded_reports(self) -> list[CaseReport]:
        """Return every report for the record, with expected failures marked, so that they do not fail the run there."""
        return [
            replace(report, excuse=Excuse.EXPECTED_TO_FAIL)
            if f"{report.worst.value}: {report.key}" in self.excused
            else report
            for report in self.all_reports()
        ]

    def left_s(self) -> float:
        """Return the seconds left of ``--perfgate-budget``; infinite without one."""
        return self.settings.budget_s - (seconds() - self.clock)

    def _context(self) -> JudgeContext:
        """Return what every judge of this session needs."""
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
    """Return the part of the suite that this shard is, which is also its part of the false-alarm rate."""
    if not config.option.perfgate_shard:
        return 1.0
    from pytest_perfgate.plugin.selection import division

    shard = division(config)
    return shard.share if shard is not None and shard.chosen else 1.0


COMPAT = "pytest_perfgate.compat"

CI_BUDGET_S = 600.0
"""The default budget of a run in CI."""


class Settings:
    """The settings of a session, read when the first gated test is found."""

    def __init__(self, config: pytest.Config) -> None:
        self.pytest = config
        self.options: Any = config.option
        self.ci = bool(child_environment(config).get("CI"))

    def read(self) -> tuple[Policy, float]:
        """Read the policy and the budget, so that an unreadable setting ends the run once, before its first test."""
        if self.project.tables:
            from pytest_perfgate.core.render.families import parse_pivot

            typed, settings = self.options.perfgate_table, f"{self.project.source}: tool.perfgate.tables"
            [parse_pivot(text, "--perfgate-table" if text in typed else settings) for text in self.project.tables]
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
        """Return the seconds of measuring for the whole run: ten minutes by default in CI, unlimited elsewhere."""
        from pytest_perfgate.plugin.options import seconds

        budget = self.options.perfgate_budget
        if budget is not None:
            return seconds(budget, "--perfgate-budget")
        return CI_BUDGET_S if self.ci else math.inf

    @property
    def command(self) -> str:
        """Return the command that starts these tests again, with the plugin that was named by hand."""
        by_hand = any(word.endswith(COMPAT) for word in self.pytest.invocation_params.args)
        return f"pytest -p {COMPAT}" if by_hand else "pytest"

    @property
    def debugging(self) -> bool:
        """Return whether a person is debugging the test with ``--pdb`` or ``--trace``."""
        return bool(getattr(self.options, "usepdb", False) or getattr(self.options, "trace", False))

    @cached_property
    def policy(self) -> Policy:
        from pytest_perfgate.core.judge.policy import parse_policy
        from pytest_perfgate.model.project import targets

        pairs = (*(f"{key}={choice}" for key, choice in self.project.policy), *self.options.perfgate_policy)
        return parse_policy(pairs, ci=self.ci, place="policy", request=bool(targets(child_environment(self.pytest))))

    @cached_property
    def kinds(self) -> Mapping[str, MetricKind]:
        from pytest_perfgate.core.metric_kinds import by_name

        answers = self.pytest.hook.pytest_perfgate_metrics()
        return by_name(kind for answer in answers for kind in answer)

    @cached_property
    def collector(self) -> Collector:
        from pytest_perfgate.plugin.collect import Collector

        if self.project.device:  # an unknown key is an error, even if no such device is used
            from pytest_perfgate.wiring.devices import catalogue

            catalogue(self.project)
        return Collector(self.project, self.options, self.kinds, self._brought)

    def _brought(self, family: str) -> list[str]:
        """Return the names of the timers, runtimes or profilers that hooks bring."""
        return [one.name for answer in getattr(self.pytest.hook, f"pytest_perfgate_{family}")() for one in answer]


def outside(item: pytest.Item) -> PerfgateError | None:
    """Return the error of a test outside the rootdir, whose node id could be that of another test; else None."""
    top, path = item.config.rootpath, item.path
    if path.is_relative_to(top) or _is_same(top / item.nodeid.partition("::")[0], path):
        return None
    here = item.config.invocation_params.dir
    return PerfgateError("test-outside", f"{_relative(here, path)} lies outside the rootdir, {_relative(here, top)}")


def _is_same(path: Path, other: Path) -> bool:
    """Return whether both paths lead to the same file, for example by a link."""
    try:
        return path.samefile(other)
    except OSError:
        return False


def _relative(here: Path, path: Path) -> str:
    try:
        return os.path.relpath(path, here)
    except ValueError:  # another drive
        return str(path)


class ReadablePhases:
    """Hooks of any role that runs tests."""

    def died(self) -> Container[str]:
        """Return the tests whose child process died while it ran them."""
        raise NotImplementedError

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        skip_rest(item, self.died())
        with readable(), UsersFrames(item.config):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        with readable(), UsersFrames(item.config):
            return (yield)


def skip_rest(item: pytest.Item, died: Container[str]) -> None:
    """Skip fixtures and body of a test that killed its child; its phases still run, and its verdict is reported."""
    if item.nodeid in died:
        vars(item).update(setup=lambda: None, runtest=lambda: None)
