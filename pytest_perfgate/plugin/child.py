"""The pytest process that measures: it answers its parent, and stands in for plugins that are off."""

from __future__ import annotations

import ast
import gc
import json
import linecache
import os
import sys
import types
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

from pytest_perfgate.clock import seconds, wait_for_threads
from pytest_perfgate.model.protocol import (
    START,
    Bye,
    Capture,
    ChildJob,
    Collected,
    Entered,
    Finish,
    Finished,
    Go,
    Measure,
    Parent,
    Ready,
    Taken,
    Waits,
)
from pytest_perfgate.plugin.benches import MeasuringBench
from pytest_perfgate.plugin.fixture import Perfgate
from pytest_perfgate.plugin.measuring import Measuring, figures_for, measuring_tools
from pytest_perfgate.wiring import parent_channel
from pytest_perfgate.wiring.devices import settle_near, unforkable, untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.calls import MeasuredCall


_OURS = ("pytest_perfgate.model.errors.PerfgateError: ", "pytest_perfgate.plugin.calls.MetricMissing: ")

_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")


class ChildBench(MeasuringBench):
    """Waits for the parent at every call, and measures as often as the parent asks."""

    def __init__(
        self, case: Case, measuring: Measuring, parent: Parent, keep_to: Callable[..., object], start: str = ""
    ) -> None:
        super().__init__(case, measuring)
        self._parent, self._run_on_cores, self._start = parent, keep_to, start
        self._compares = False

    def _capture(self, call: MeasuredCall) -> Capture:
        self._parent.send(Entered(key=call.key, samples=call.schedule.samples, figures=figures_for(call)))
        samples_so_far: list[Samples] = []
        wait_for_threads()
        while not isinstance(command := self._parent.receive(), Finish):
            if isinstance(command, Measure):
                self._run_on_cores(one_core=command.plan.one_core)
                samples = self._measuring.samples(call, command.plan)
                samples_so_far.append(
                    replace(samples, notes=(*samples.notes, (START, self._start))) if self._start else samples
                )
                if samples.threaded:
                    wait_for_threads()  # it is the other side's turn
                self._parent.send(Taken(key=call.key, samples=samples_so_far[-1]))
        self._compares = command.references
        try:
            return self._measuring.packed(call, self.case.plan, samples_so_far)
        finally:
            self._run_on_cores(one_core=False)  # whatever else the test does sees the cores that any run of it sees


class ChildRole:
    """Hooks of a child."""

    def __init__(self, config: pytest.Config, parent: Parent, job: ChildJob) -> None:
        self._parent, self._job = parent, job
        self._cases = {case.nodeid: case for case in job.cases}
        self._measuring = measuring_tools(config, job.root)
        self._measuring.tell_waits(lambda text: self._parent.send(Waits(text=text)))
        self._bench: ChildBench | None = None
        self._reports: list[pytest.TestReport] = []
        self._raised: set[str] = set()  # phases: pytest reports a strict xfail as failed although nothing raised
        self._errors: list[str] = []
        self._cores: set[int] = set()  # those that the process had before it kept to one of them
        config.pluginmanager.register(IdleFixtures(), "perfgate-idle-fixtures")
        for line in job.markers:
            config.addinivalue_line("markers", line)
        for name, text in job.options:
            setattr(config.option, name, json.loads(text))

    def before(self, session: pytest.Session, gated: list[pytest.Item]) -> None:
        """Do nothing: the parent leads."""

    def after(self, session: pytest.Session) -> None:
        """Do nothing: the parent reports."""

    def gate(self, item: pytest.Item) -> Perfgate:
        bench = ChildBench(self._cases[item.nodeid], self._measuring, self._parent, self._run_on_cores, self._job.start)
        self._bench = bench
        return Perfgate(self._cases[item.nodeid], bench)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select exactly the cases of the job, in its order, whatever other plugins did."""
        by_nodeid = {item.nodeid: item for item in items}
        items[:] = [by_nodeid[nodeid] for nodeid in self._cases if nodeid in by_nodeid]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:  # a module may skip itself
            self._errors.append(f"{report.nodeid}: {_reason(report)}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._collected(session.items)
        if self._job.preload:
            self._forked(session)
            self._collected(session.items)
        if self._job.cpus:
            self._cores = os.sched_getaffinity(0)
        elif "PERFGATE_CORES" in os.environ:
            settle_near()
        for item, behind in zip(session.items, [*session.items[1:], None]):
            self._parent.send(Ready(nodeid=item.nodeid))
            if isinstance(self._parent.receive(), Go):
                self._run(item, behind)
            else:  # it shares fixtures with the test before it, which left them; the one behind may not
                with suppress(Exception, pytest.fail.Exception, pytest.skip.Exception):  # pytest's own run reports it
                    session._setupstate.teardown_exact(behind)  # noqa: SLF001 - as pytest between two tests
        from pytest_perfgate.wiring.stores import loaded_modules, neighbour_modules

        neighbours = neighbour_modules(session.config.rootpath, self._job.modules) if self._job.list_loaded else ()
        self._parent.send(Bye(modules=loaded_modules(self._job.modules), loaded=neighbours))
        return True

    def _run_on_cores(self, *, one_core: bool) -> None:
        """Run on the job's one core, if it has one; or on all cores, with the threads that started on that one."""
        if not self._job.cpus:
            return
        os.sched_setaffinity(0, self._job.cpus if one_core else self._cores)
        for thread in () if one_core else Path("/proc/self/task").iterdir():
            with suppress(OSError):  # it may have ended
                if os.sched_getaffinity(int(thread.name)) == set(self._job.cpus):
                    os.sched_setaffinity(int(thread.name), self._cores)

    def _collected(self, items: list[pytest.Item]) -> None:
        nodeids = tuple(item.nodeid for item in items)
        self._parent.send(Collected(nodeids=nodeids, errors=tuple(self._errors), untouched=untouched()))

    def _forked(self, session: pytest.Session) -> None:
        """Wait to be forked, and return only in a fork, which is the child of one round."""
        gc.collect()
        gc.freeze()  # without this, each fork's collections would touch, and so copy, all that was imported
        sys.stdout.flush()
        sys.stderr.flush()
        channel: Any = self._parent
        self._parent, output = channel.forked(unforkable)
        capture: Any = session.config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()
        with open(output, "ab") as own:  # noqa: PTH123 - not a path of ours: two descriptors
            os.dup2(own.fileno(), 1)
            os.dup2(own.fileno(), 2)
        capture.start_global_capturing()
        capture.suspend_global_capture()
        self._job = _next_job(self._parent)
        self._cases = {case.nodeid: case for case in self._job.cases}
        self.pytest_collection_modifyitems(session.items)

    def _run(self, item: pytest.Item, behind: pytest.Item | None) -> None:
        self._bench, self._reports[:], self._raised = None, [], set()
        begun = seconds()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=behind)
        outcome, text = _outcome([r for r in self._reports if r.when in self._raised])
        bench = self._bench if outcome == "passed" else None
        captures, raised = (bench.captures(), tuple(bench.raised.items())) if bench is not None else ((), ())
        took = seconds() - begun
        self._parent.send(
            Finished(nodeid=item.nodeid, outcome=outcome, text=text, captures=captures, seconds=took, raised=raised)
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield  # only now does a test of unittest show what it raised
        if call.excinfo is not None:
            self._raised.add(call.when)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not (report.skipped and hasattr(report, "context")):  # a subtest that is skipped leaves the rest of its test
            self._reports.append(report)


class IdleFixtures:
    """Fixtures of plugins that a child does not load, with the values that they have when idle."""

    @pytest.fixture(scope="session")
    def worker_id(self) -> str:
        return "master"

    @pytest.fixture(scope="session")
    def testrun_uid(self) -> str:
        return "perfgate"

    @pytest.fixture
    def no_cover(self) -> None: ...

    @pytest.fixture
    def cov(self) -> None: ...


def _outcome(reports: list[pytest.TestReport]) -> tuple[str, str]:
    """Return how a test ended, by its phases, and the reason in one line."""
    for report in reports:
        if report.skipped:
            outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            return outcome, str(getattr(report, "wasxfail", _reason(report))).removeprefix("Skipped: ")
        if report.failed:
            return "failed", _reason(report) if report.when == "call" else f"{report.when}: {_reason(report)}"
    return "passed", ""


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else _last_line(report.longreprtext)


def _last_line(text: str) -> str:
    """Return the message of the last error in a chain; for one of ours, also its next step."""
    lines = [line for line in text.splitlines() if line.strip()]
    begins = max((at for at, line in enumerate(lines) if line.startswith(_CHAINED)), default=0)
    errors = [line[1:].strip() for line in lines[begins:] if line.startswith("E ")]
    lines_of_error = (errors or lines or ["no reason given"])[0 if errors else -1]
    if not lines_of_error.startswith(_OURS):
        return lines_of_error
    fix = [line.split(maxsplit=1)[1] for line in errors if line.startswith("next  ")]
    return "; next: ".join((lines_of_error.partition(": ")[2], *fix[:1]))


def receive_job(address: str, config: pytest.Config) -> tuple[Parent, ChildJob]:
    """Return the parent and its job; files that this arm takes from its own revision load from then on."""
    job = _next_job(parent := parent_channel(address))
    sys.argv[1:] = job.argv  # a test or a conftest may look for a word of the command line
    if job.files:
        texts = {os.path.realpath(config.rootpath / path): text for path, text in job.files}
        sys.meta_path.insert(0, OwnFileFinder(texts, config))
    return parent, job


def _next_job(parent: Parent) -> ChildJob:
    if isinstance(job := parent.receive(), ChildJob):
        return job
    raise pytest.UsageError("PERFGATE_CHANNEL leads to no perfgate")


class OwnFileFinder:
    """Finds files whose text differs from that of this arm."""

    def __init__(self, texts: Mapping[str, str], config: pytest.Config) -> None:
        self._texts, self._config = texts, config
        if cache := os.environ.get("NUMBA_CACHE_DIR"):  # Numba tells versions apart by the file's time and size alone
            os.environ["NUMBA_CACHE_DIR"] = f"{cache}/own-{crc32(repr(sorted(texts.items())).encode()):08x}"
        self._names = {Path(p).parent.name if p.endswith("/__init__.py") else Path(p).stem for p in texts}

    def find_spec(self, name: str, path: Sequence[str] | None = None, *_: object) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.rpartition(".")[2] in self._names else None
        place = (spec.origin if spec is not None else "") or ""
        if spec is not None and (text := self._texts.get(os.path.realpath(place))) is not None:
            spec.loader = OwnText(name, place, text, self._config)
            return spec
        return None


class OwnText(SourceFileLoader):
    """Loads a text in place of a file, with asserts rewritten as pytest does; it uses no bytecode."""

    def __init__(self, name: str, place: str, text: str, config: pytest.Config) -> None:
        super().__init__(name, place)
        self._text, self._config = text, config

    def exec_module(self, module: types.ModuleType) -> None:
        linecache.cache[self.path] = (len(self._text), None, self._text.splitlines(keepends=True), self.path)
        tree = ast.parse(self._text, self.path)
        rewrite_asserts(tree, self._text.encode(), self.path, self._config)
        exec(compile(tree, self.path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a file of the project
