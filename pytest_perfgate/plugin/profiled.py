"""The pytest process under a profiler: it runs the one call that is profiled, and reports its work."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Case, CaseKey, ClockPolicy, Plan
from pytest_perfgate.model.protocol import FIRST_FAILURE, TIMED, TOLD, Assignment, parse_assignment
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import Brought, MeasuredCall, View
from pytest_perfgate.plugin.fixture import Perfgate

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.values import Work
    from pytest_perfgate.plugin.measuring import Measuring


Region = Callable[[], AbstractContextManager[None]]


class ProfiledBench(Bench):
    """Runs every call once under the profiler; the warm-up run before it is not watched."""

    def __init__(self, case: Case, region: Region, watch: Watch) -> None:
        super().__init__(case)
        self._region, self._watch = region, watch
        self.artifacts: list[Artifact] = CopiedFiles(watch.folder)

    def take(self, call: MeasuredCall) -> View:
        self.calls.append(call.key)
        if not self._watch.watches(call.key):
            result = call.once()
        else:
            result = self._timed(call) if self._watch.mode == TIMED else self._call_profiled(call)
        return View(call.key, result, metrics=self.metrics)

    def _call_profiled(self, call: MeasuredCall) -> Any:
        """Run the call under the profiler; ``setup`` and ``check`` run outside of it."""
        call.prepare()
        with self._watch.over(call.timed(), self.case.plan, call.work), self._region():
            result = call.timed()()
        call.judge(result)
        return result

    def _timed(self, call: MeasuredCall) -> Any:
        self._watch.times(call, self.case.plan)
        return call.once()

    @contextmanager
    def around(self, brought: Brought) -> Iterator[None]:
        if not self._watch.watches(brought.key):
            yield
            return
        if self._watch.mode == TIMED:
            what = "a region runs once, and events time a call that can be repeated"
            raise PerfgateError("profile-tool", what, fix="perfgate(fn), or --mode torch, cupti or nsys")
        with self._watch.over(None, self.case.plan, brought.work), self._region():
            yield


class CopiedFiles(list[Artifact]):
    """A list that copies each file that a test attaches beside the profile, under its name."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def append(self, artifact: Artifact) -> None:
        super().append(artifact)
        name = dict(artifact.parameters).get("name", "") or Path(artifact.path).name
        parts = [part for part in Path(name).parts if part not in {"..", "/", "."}]
        target = self._folder.joinpath(*parts)
        if target.suffix != Path(artifact.path).suffix:
            target = target.with_name(target.name + Path(artifact.path).suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artifact.path, target)
        sidecar = Path(artifact.path).with_suffix(".json")
        if sidecar.is_file() and sidecar != Path(artifact.path):
            shutil.copyfile(sidecar, target.with_suffix(".json"))


class ProfiledRole:
    """Hooks of a child under a profiler."""

    def __init__(self, config: pytest.Config, text: str) -> None:
        self._config = config
        self._assigned = parse_assignment(text)
        self._benches: list[Bench] = []
        self._outcome, self._said = "passed", ""
        self._error: tuple[str, str, str] = ("", "", "")
        self._watch: Watch | None = None
        self._warm = False
        """Whether this is the warm-up run, in which nothing is watched and errors are only noted."""
        self._first = ""
        """What the warm-up run failed with."""
        _switch_off(config, self._assigned)

    def before(self, session: pytest.Session, gated: list[pytest.Item]) -> None:
        """Do nothing: nothing is measured ahead."""

    def after(self, session: pytest.Session) -> None:
        """Write the results at the end of the session."""

    def gate(self, item: pytest.Item) -> Perfgate:
        from pytest_perfgate.plugin.measuring import measuring_tools
        from pytest_perfgate.plugin.state import Settings
        from pytest_perfgate.wiring.profiling import profiler_region

        case = Settings(self._config).collector.case(item)
        assigned, hooks = self._assigned, self._config.hook
        measuring: Measuring = measuring_tools(self._config)
        watch = self._watch = Watch(assigned, measuring, case.params, awake=not self._warm)
        bench = ProfiledBench(case, lambda: profiler_region(assigned.mode, watch.folder, hooks), watch)
        self._benches[:] = [bench]
        return Perfgate(case, bench)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Run the test once without the profiler, which would otherwise see mostly compilers and tuners."""
        self._warm = True
        reports = runtestprotocol(item, log=False, nextitem=NextItem(item))  # type: ignore[arg-type]
        self._first = next((_failure(report) for report in reports if report.failed), "")
        self._warm, self._error = False, ("", "", "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Keep our own errors with code and fix for the parent."""
        raised = call.excinfo.value if call.excinfo is not None else None
        if isinstance(raised, PerfgateError):
            self._error = (raised.code.name, raised.what, raised.fix)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._outcome, self._said = "failed", _failure(report)
        elif report.skipped and self._outcome == "passed":
            self._outcome = "skipped"
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self._said = reason.removeprefix("Skipped: ")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        facts = self._watch.facts() if self._watch is not None else {}
        facts |= {FIRST_FAILURE: self._first} if self._first else {}
        notes = {name: text for bench in self._benches for name, text in bench.notes.items()}
        result = {
            "outcome": self._outcome,
            "text": self._said,
            "error": list(self._error),
            "entered": self._watch.entered if self._watch is not None else 0,
            "calls": [key.name for bench in self._benches for key in bench.call_keys],
            "facts": list({**facts, "notes": notes}.items()),
        }
        path = Path(self._assigned.out) / TOLD
        path.write_text(json.dumps(result, default=str), encoding="utf-8")


def _failure(report: pytest.TestReport) -> str:
    """Return the message of the error; of what has none, the last line."""
    message = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", "")).strip()
    return message.partition("\n")[0] or (report.longreprtext.strip().splitlines() or ["it failed"])[-1]


class NextItem:
    """Stands for a next test of the same module, so that only the fixtures of the test itself are torn down."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def listchain(self) -> list[Any]:
        return self._item.listchain()[:-1]


def _switch_off(config: pytest.Config, assigned: Assignment) -> None:
    """Switch off the options that select, distribute or report, since the parent has applied them."""
    for name, calm in (("dist", "no"), ("numprocesses", None), ("tx", []), ("xmlpath", None), ("reruns", 0)):
        if hasattr(config.option, name):
            setattr(config.option, name, calm)
    for line in assigned.markers:
        config.addinivalue_line("markers", line)
    for name, text in assigned.options:
        setattr(config.option, name, json.loads(text))
    if assigned.plain:
        from pytest_perfgate.plugin.child import IdleFixtures

        config.pluginmanager.register(IdleFixtures(), "perfgate-idle-fixtures")
    os.environ.pop("PERFGATE_CHANNEL", None)


ESCAPED = "work-escaped"


def work_amounts(work: Work) -> Iterator[tuple[str, str]]:
    """Yield the amounts of the call's work with their units, as an inspector of kernels reads them."""
    if work.flops:
        yield "flops", f"{work.flops:.17g}FLOP"
    if work.bytes:
        yield "bytes", f"{work.bytes:.17g}B"
    if work.items:
        yield "items", f"{work.items:.17g} {work.unit}"
    if work.dtype:
        yield "dtype", work.dtype


class Watch:
    """Watches one profiled process."""

    def __init__(
        self, assigned: Assignment, measuring: Measuring, params: tuple[tuple[str, str], ...], *, awake: bool = True
    ) -> None:
        self.mode, self.folder = assigned.mode, Path(assigned.out)
        self.entered = 0
        self._awake = awake
        self._call, self._clocks = assigned.call, assigned.clocks
        self._measuring = measuring
        self._facts: dict[str, Any] = {"parameters": dict(params)}

    def watches(self, key: CaseKey) -> bool:
        """Return whether this call is to be watched."""
        return self._awake and (self._call is None or self._call == key.name)

    @contextmanager
    def over(self, call: Any, plan: Plan, work: Work | None) -> Iterator[None]:
        """Hold the device's lease and lock or watch its clocks while the profiler runs."""
        plan = self._planned(plan)
        device = self._measuring.device(plan, call)
        self.entered += 1
        self._note(device, plan, work)
        instruments = self._measuring.instruments
        gpu = device.kind == "gpu"
        with instruments.leases.hold(lease_name(device)) if instruments.leases and gpu else nullcontext():
            if instruments.clocks is None or not gpu:
                yield
                return
            with instruments.clocks.hold(device, plan) as watch:
                yield
            clocks = {"hz": list(watch.clock_hz()), "problems": [p.what for p in watch.problems()]}
            self._facts["clocks"] = {"policy": plan.clocks.value, **clocks, **dict(watch.facts())}

    def times(self, call: MeasuredCall, plan: Plan) -> None:
        """Time the call by the device's own events (event mode), which do not see work on a second stream."""
        from pytest_perfgate.wiring.profiling import write_times

        plan = replace(self._planned(plan), timer="events")
        self.entered += 1
        device = self._measuring.device(plan, call.timed())
        if device.kind != "gpu":
            what = f"this mode needs a GPU: {device.name or device.key} has no events of its own"
            raise PerfgateError("profile-tool", what, fix="run it on a machine with a GPU, or --mode torch")
        capture = self._measuring.capture(call, plan)
        self._note(capture.device, plan, call.work)
        escaped = [p for samples in capture.samples for p in samples.problems if p.code == ESCAPED]
        if escaped:
            what = f"refused: {escaped[0].what}"
            raise PerfgateError("profile-tool", what, fix="--mode nsys, torch or cupti see every stream")
        write_times(self.folder, capture)

    def facts(self) -> dict[str, Any]:
        """Return the conditions under which the profile was taken."""
        return self._facts

    def _planned(self, plan: Plan) -> Plan:
        return replace(plan, clocks=ClockPolicy(self._clocks)) if self._clocks else plan

    def _note(self, device: Device, plan: Plan, work: Work | None) -> None:
        self._facts["clocks"] = {"policy": plan.clocks.value}
        self._facts["device"] = {"name": device.name, "key": device.key, "kind": device.kind, "index": device.index}
        if work is not None and work.dtype:
            self._facts["dtype"] = work.dtype
        if work is not None:
            self._facts["work"] = dict(work_amounts(work))
