"""Measures the calls of one test in this process: first call, samples, passes for figures, references."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.app.instrument import (
    REFUSED,
    SharedClocks,
    at_least,
    choose_runtime,
    choose_timer,
    identity,
    keyed,
    lease_name,
    per_call,
    settled,
    watched,
)
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import SupportsTellWaits, SupportsWait
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity, Reading
from pytest_perfgate.model.metric import Absent, MetricSet
from pytest_perfgate.model.protocol import Capture

if TYPE_CHECKING:
    from pytest_perfgate.app.output_check import OutputCheck
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.measurement import Artifact, Samples
    from pytest_perfgate.model.metric import Finding
    from pytest_perfgate.model.plan import CaseKey, Plan
    from pytest_perfgate.model.ports import Call as PortsCall
    from pytest_perfgate.model.ports import Contents, Inspector, Instruments, Profiler, Runtime, Timer
    from pytest_perfgate.plugin.calls import Brought, MeasuredCall


class RuntimeAndTimer(NamedTuple):
    """A runtime and the timer that suits it."""

    runtime: Runtime
    timer: Timer


class Figures(NamedTuple):
    """Figures beside the time of a call, and the absent ones with the reason."""

    readings: tuple[Reading, ...]
    absent: tuple[Absent, ...]


SLOWER = "PERFGATE_SLOWER"
"""The part by which the host's calls of a calibration's process are slowed; 0 where they are only wrapped."""

COLD = "PERFGATE_COLD"
"""The folder of the empty caches of compilers, in a child that runs one case with them."""

CACHES = (
    *("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH"),
    *("AMD_COMGR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUTE_DSL_CACHE_DIR"),
    *("WARP_CACHE_PATH", "TILELANG_CACHE_DIR", "TI_OFFLINE_CACHE_FILE_PATH", "TVM_FFI_CACHE_DIR"),
    *("POCL_CACHE_DIR", "NEO_CACHE_DIR", "MESA_SHADER_CACHE_DIR"),
)
"""Folders in which compilers that work at the first call keep their output."""


def figures_for(call: MeasuredCall, plan: Plan | None = None) -> tuple[str, ...]:
    """Return the figures beside time that the call's limits and its plan ask for."""
    planned = plan.figures if plan is not None else ()
    if not call.limits:
        return planned
    from pytest_perfgate.core.limits.merge import asked_figures

    return tuple(dict.fromkeys((*planned, *asked_figures(call.limits))))


class Passes:
    """Runs of a call that are not samples: the first, requested warm-ups, and those for figures beside its time."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._first: dict[CaseKey, float] = {}
        """The time of the first call, with empty caches of compilers."""
        self._moved: tuple[str, ...] = ()
        """Variables by which the project itself chose a cache that is not empty."""
        self._warmed: set[CaseKey] = set()
        self._waits: dict[CaseKey, tuple[PortsCall | None, bool]] = {}
        """What ``device_wait`` returns, once it is certain."""

    def call_first(self, call: MeasuredCall, plan: Plan, runtime: Runtime) -> None:
        """Time the first call of this process, without waits for a processor, if caches of compilers are empty."""
        cold = os.environ.get(COLD, "")
        if not cold or call.key in self._first or "compile_time" not in figures_for(call, plan):
            return
        self._moved = tuple(name for name in CACHES if _holds(os.environ.get(name, ""), cold))
        call.prepare()
        runtime.synchronize()
        busy, queued, begun = HOST_CLOCK.thread(), self._instruments.queued(), HOST_CLOCK.wall()
        call.timed()()
        runtime.synchronize()
        took = HOST_CLOCK.wall() - begun - (self._instruments.queued() - queued)
        self._first[call.key] = float(max(took, HOST_CLOCK.thread() - busy))

    def warm_up(self, call: MeasuredCall) -> None:
        """Run the warm-up that the call requests, when this process first measures it."""
        if call.key not in self._warmed:
            self._warmed.add(call.key)
            call.warm_up()

    def device_wait(self, call: MeasuredCall) -> tuple[PortsCall | None, bool]:
        """Return a wait for the devices in use, and whether the call leaves work to them, decided once by trials."""
        if call.key not in self._waits and (wait := device_wait()) is not None:
            from pytest_perfgate.app.passes import PassedCall, leaves_work

            passed = PassedCall(call.timed(), call.prepare, self._instruments.runtimes[-1])
            self._waits[call.key] = wait, leaves_work(passed, wait, HOST_CLOCK.wall)
        return self._waits.get(call.key, (None, False))

    def first_used_device(self, call: MeasuredCall) -> bool:
        """Return whether a device is in use only since these samples, the first of the call."""
        if call.key not in self._waits and device_wait() is None:
            self._waits[call.key] = None, False
        return call.key not in self._waits

    def figures(self, call: MeasuredCall, plan: Plan, runtime: Runtime, samples: Sequence[Samples]) -> Figures:
        """Return the figures of a timed call; empty if none is requested."""
        wanted = figures_for(call, plan)
        if not wanted or not samples:
            return Figures((), ())
        from pytest_perfgate.app.passes import PassedCall, readings_of

        passed = PassedCall(call.timed(), call.prepare, runtime, call.calls, self._first.get(call.key), self._moved)
        figures = tuple(readings_of(wanted, passed, samples, self._instruments, HOST_CLOCK.wall))
        return Figures(
            readings=tuple(figure for figure in figures if isinstance(figure, Reading)),
            absent=tuple(figure for figure in figures if isinstance(figure, Absent)),
        )


def followed(run: PortsCall, wait: PortsCall) -> PortsCall:
    """Return the run with a wait at its end."""
    return lambda: (run(), wait())[0]


def _holds(folder: str, cold: str) -> bool:
    """Return whether a compiler may find earlier output there; without a folder it takes its usual one."""
    return not folder or (not folder.startswith(cold) and Path(folder).is_dir() and any(Path(folder).iterdir()))


class Measuring:
    """The instruments of this process."""

    def __init__(self, instruments: Instruments, metrics: Callable[[Capture], MetricSet]) -> None:
        self._instruments = instruments
        self.metrics = metrics
        self._scrutinised: dict[CaseKey, list[Finding]] = {}
        self._passes = Passes(instruments)
        self._inputs = Inputs(instruments.contents)

    @property
    def instruments(self) -> Instruments:
        return self._instruments

    def tell_waits(self, tell: Callable[[str], None]) -> None:
        """Set the function that is told when another process has the device, or the device is too hot."""
        if self._instruments.leases is not None:
            self._instruments.leases.tell = tell
        clocks: object = self._instruments.clocks
        if isinstance(clocks, SupportsTellWaits):
            clocks.tell_waits(tell)

    def device(self, plan: Plan, call: Any = None) -> Device:
        return choose_runtime(plan, self._instruments.runtimes, frozenset(sys.modules), call).device()

    def runtime_and_timer(self, plan: Plan, call: Any) -> RuntimeAndTimer:
        runtime = choose_runtime(plan, self._instruments.runtimes, frozenset(sys.modules), call)
        return RuntimeAndTimer(runtime, choose_timer(plan, self._instruments.timers, runtime))

    def samples(self, measured: MeasuredCall, plan: Plan) -> Samples:
        if plan.devices > 1:
            require_devices(plan.devices)
        call = measured.with_last_result() if measured.check is not None else measured.timed()
        pair = self.runtime_and_timer(plan, call)
        self._passes.call_first(measured, plan, pair.runtime)
        setup = self._inputs.prepared(measured, pair.runtime)
        scrutiny = self._output_check_of(measured, call, pair.runtime)
        by_host = pair.timer.name == "host" and not isinstance(pair.runtime, SupportsWait)
        wait, leaves = self._passes.device_wait(measured) if by_host else (None, False)
        if wait is not None:
            leaves = leaves or plan.waits
            call, setup = (followed(call, wait) if leaves else call), (setup and followed(setup, wait))
        call, by = measured.sample(call), os.environ.get(SLOWER)
        if by and by_host:
            from pytest_perfgate.plugin.calibrating import slowed

            call = slowed(call, float(by))

        def take(plan: Plan) -> Samples:
            self._passes.warm_up(measured)
            measure = partial(pair.timer.measure, call, plan, pair.runtime, setup)
            return scrutiny.scrutinised(measure) if scrutiny is not None else measure()

        samples = self._sampled(pair, plan, take)
        if wait is not None and not leaves:
            wait()  # which raises where the call's work failed: each launch after that returns at once
        if by_host and self._passes.first_used_device(measured):
            return self.samples(measured, plan)
        if leaves:
            from pytest_perfgate.app.passes import WAITED

            samples = replace(samples, notes=(*samples.notes, WAITED))
        return per_call(samples, measured.calls * measured.schedule.iterations)

    def _sampled(self, pair: RuntimeAndTimer, plan: Plan, take: Callable[[Plan], Samples]) -> Samples:
        """Take samples under a lease, with the clock readings of that time."""
        device, leases, clocks = pair.runtime.device(), self._instruments.leases, self._instruments.clocks
        others = companions(plan.devices, device) if plan.devices > 1 and device.kind == "gpu" else ()
        if others and clocks is not None:
            clocks = SharedClocks(clocks, others)
        with ExitStack() as stack:
            if leases and device.kind == "gpu":
                for name in sorted(lease_name(card) for card in (device, *others)):
                    stack.enter_context(leases.hold(name))
            plan, refused = settled(device, plan, clocks)
            samples = watched(take, device, plan, clocks, HOST_CLOCK.wall)
        return replace(samples, notes=(*samples.notes, (REFUSED, refused))) if refused else samples

    def _output_check_of(self, measured: MeasuredCall, call: Any, runtime: Runtime) -> OutputCheck | None:
        """Return the output check of a call with ``check=`` when this process first measures it, else None."""
        contents = self._instruments.contents
        if measured.check is None or contents is None or measured.key in self._scrutinised:
            return None
        from pytest_perfgate.app.output_check import OutputCheck, Subject

        subject = Subject(
            once=measured.called, last=lambda: call.last, check=measured.judge,
            reach=(measured.fn, measured.args), prepared=(measured.setup,), synchronize=runtime.synchronize,
        )  # fmt: skip
        return OutputCheck(subject, contents, self._scrutinised.setdefault(measured.key, []))

    def capture(self, call: MeasuredCall, plan: Plan) -> Capture:
        return self.packed(call, plan, (self.samples(call, _with_enough_samples(call, plan)),))

    def packed(self, measured: MeasuredCall, plan: Plan, samples: Iterable[Samples]) -> Capture:
        call, taken = measured.timed(), tuple(samples)
        pair = self.runtime_and_timer(plan, call)
        plan = settled(pair.runtime.device(), plan, self._instruments.clocks)[0]
        timer = taken[-1].timer if taken else pair.timer.name
        figures = self._passes.figures(measured, plan, pair.runtime, taken)
        return Capture(
            key=measured.key,
            samples=taken,
            device=keyed(pair.runtime.device(), plan, tuple(hz for process in taken for hz in process.clock_hz)),
            identity=replace(identity(self._instruments, plan, pair.runtime, timer, call), calls=str(measured.calls)),
            work=measured.work,
            limits=measured.limits,
            findings=(*self._inputs.findings(measured.key), *self._scrutinised.get(measured.key, ())),
            metrics=MetricSet(absent=figures.absent),
            problems=self._instruments.elsewhere(),
            readings=figures.readings,
        )

    def capture_brought(self, plan: Plan, brought: Brought) -> Capture:
        """Return what the test took itself as a capture with its identity."""
        runtime = choose_runtime(plan, self._instruments.runtimes, frozenset(sys.modules))
        plan = settled(runtime.device(), plan, self._instruments.clocks)[0]
        how, device = identity(self._instruments, plan, runtime, brought.kind), brought.device
        how = Identity(device=device.key, timer=brought.kind) if device else how  # a file has the device that it names
        return Capture(
            key=brought.key,
            samples=brought.samples(),
            device=device or keyed(runtime.device(), plan),
            identity=how,
            work=brought.work,
            limits=brought.limits,
            metrics=brought.metrics,
            findings=brought.findings,
            problems=(*brought.problems, *(self._instruments.elsewhere() if brought.durations else ())),
            readings=brought.readings,
        )

    def profilers(self, plan: Plan) -> tuple[Profiler, ...]:
        """Return the profilers that this process can run itself."""
        from pytest_perfgate.plugin.captures import profilers_of

        return profilers_of(plan, self._instruments.profilers) if plan.captures else ()

    def profiled(self, plan: Plan, key: CaseKey, limits: str = "") -> tuple[MetricSet, tuple[Artifact, ...]]:
        """Return the metrics and artifacts of a profiled measurement, for these limits."""
        from pytest_perfgate.plugin.captures import profile_metrics

        return profile_metrics(key, self.profilers(plan), self._instruments.inspectors, limits)

    def inspector(self, name: str) -> Inspector:
        return next(inspector for inspector in self._instruments.inspectors if inspector.name == name)


def _with_enough_samples(call: MeasuredCall, plan: Plan) -> Plan:
    """Return the plan with the samples that the call and the quantiles of its limits need in one process."""
    from pytest_perfgate.app.passes import one_by_one

    return one_by_one(at_least(plan, call.schedule.samples), figures_for(call, plan), 1)


def device_wait() -> PortsCall | None:
    """Return a wait for the work that libraries gave to devices; None if this process uses no device."""
    from pytest_perfgate.wiring.devices import wait_for_all

    return wait_for_all()


def require_devices(wanted: int) -> None:
    """Raise if this process sees fewer devices of one kind than the case asks for."""
    from pytest_perfgate.wiring.devices import fleet

    few = fleet().few(wanted)
    if few:
        raise PerfgateError("devices-few", few)


def companions(wanted: int, device: Device) -> tuple[Device, ...]:
    """Return the other devices of a case that uses several: the first ones that this process sees."""
    from pytest_perfgate.wiring.devices import fleet

    own = lease_name(device)
    return tuple(card for card in fleet().of_same_kind[:wanted] if lease_name(card) != own)


def measuring_tools(config: Any, root: str = "") -> Measuring:
    """Return the instruments of this pytest, with the project's measured ceilings."""
    from pytest_perfgate.wiring import instruments
    from pytest_perfgate.wiring.stores import ceilings_at

    project, top = built_ins(config).project, Path(root) if root else config.rootpath
    return Measuring(instruments(config.hook, top, project), partial(_metrics, ceilings_at(top)))


def _metrics(ceiled: Callable[[Device], Device], capture: Capture) -> MetricSet:
    """Return the metrics of a test's own samples, against the measured ceilings of its device, as in its limits."""
    from pytest_perfgate.app.measure import metrics_of_capture

    return metrics_of_capture(replace(capture, device=ceiled(capture.device)))


def built_ins(config: Any) -> Any:
    """Register our own instruments once, through the same hooks as a plugin's, and return them."""
    from pytest_perfgate.wiring import configuration
    from pytest_perfgate.wiring.built_ins import BuiltIns

    if not config.pluginmanager.has_plugin("perfgate-built-ins"):
        config.pluginmanager.register(BuiltIns(configuration(config.rootpath)), "perfgate-built-ins")
    return config.pluginmanager.get_plugin("perfgate-built-ins")


class Inputs:
    """Findings on the inputs of each case in this process."""

    def __init__(self, contents: Contents | None) -> None:
        self._contents = contents
        self._seen: dict[CaseKey, Finding | None] = {}

    def findings(self, key: CaseKey) -> tuple[Finding, ...]:
        names = self._seen.get(key)
        return (names,) if names else ()

    def prepared(self, call: MeasuredCall, runtime: Runtime) -> PortsCall | None:
        """Return the set-up of the call; inputs of a GPU are examined before a call overwrites them."""
        unseen = self._contents is not None and call.key not in self._seen and runtime.device().kind == "gpu"
        if call.setup is None:
            if unseen:
                self._examine(call)
            return None
        return self._first(call) if unseen else call.prepare

    def _first(self, call: MeasuredCall) -> PortsCall:
        """Return the set-up; what it makes the first time is examined."""

        def prepare() -> Any:
            inputs = call.prepare()
            if call.key not in self._seen:
                self._examine(call, inputs)
            return inputs

        return prepare

    def _examine(self, call: MeasuredCall, inputs: Any = ()) -> None:
        if self._contents is not None:
            from pytest_perfgate.app.output_check import constant_inputs

            self._seen[call.key] = constant_inputs(self._contents, (call.fn, call.args, inputs))
