"""Measures one call in this process: picks the runtime and the timer, and says under which identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from pytest_perfgate.app.machine import keyed
from pytest_perfgate.model.capabilities import SupportsAdopt, SupportsTouches
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import Runtime, Timer
from pytest_perfgate.model.samples import Samples
from pytest_perfgate.model.tools import Instruments


class _Named(Protocol):
    name: str


N = TypeVar("N", bound=_Named)

_UNUSABLE = {"runtime": "runtime-unavailable", "timer": "timer-unsuited"}


def choose_runtime(plan: Plan, runtimes: Sequence[Runtime], modules: frozenset[str], call: object = None) -> Runtime:
    """The runtime that was asked for, else the first that modules and call speak for, else the host.

    It has taken the queue that the call uses: on which device, and what timers can do there, depends on that.
    """
    runtime = _chosen(plan, runtimes, modules, call)
    if call is not None and isinstance(runtime, SupportsAdopt):
        runtime.adopt(call)
    return runtime


def _chosen(plan: Plan, runtimes: Sequence[Runtime], modules: frozenset[str], call: object) -> Runtime:
    """A library that the call uses and that does not work is an error: the host would see launches alone."""
    if plan.runtime != "auto":
        runtime = _asked(plan.runtime, runtimes, "runtime")
        _insist(runtime.availability(), "runtime")
        return runtime
    for runtime in runtimes:
        if runtime.recognises(modules) and _touches(runtime, call):
            found = runtime.availability()
            if found.usable:
                return runtime
            if call is not None and isinstance(runtime, SupportsTouches):
                _insist(found, "runtime")
    return runtimes[-1]


def choose_timer(plan: Plan, timers: Sequence[Timer], runtime: Runtime) -> Timer:
    """The timer that was asked for, never another in silence; under ``auto`` the first that works here."""
    if plan.timer != "auto":
        timer = _asked(plan.timer, timers, "timer")
        _insist(timer.availability(runtime), "timer")
        return timer
    found = next((t for t in timers if t.availability(runtime).usable), None)
    if found is None:
        why = "; ".join(f"{t.name}: {t.availability(runtime).why}" for t in timers)
        raise PerfgateError("timer-unsuited", f"no timer works with {runtime.name}", why=why)
    return found


def _touches(runtime: Runtime, call: object) -> bool:
    """Whether a call has anything of the library within reach; a library that cannot tell is believed."""
    return call is None or not isinstance(runtime, SupportsTouches) or runtime.touches(call)


def per_call(samples: Samples, calls: int) -> Samples:
    """Samples of a function that makes several calls, per call; overhead and resolution are those of a sample."""
    if calls == 1:
        return samples
    return replace(
        samples,
        durations=tuple(duration / calls for duration in samples.durations),
        cpu=tuple(busy / calls for busy in samples.cpu),
        span=tuple(span / calls for span in samples.span),
        launch_gap=None if samples.launch_gap is None else samples.launch_gap / calls,
        unqueued=None if samples.unqueued is None else samples.unqueued / calls,
        blocked=None if samples.blocked is None else samples.blocked / calls,
        batch=samples.batch * calls,
    )


def at_least(plan: Plan, samples: int) -> Plan:
    """The plan with so many samples, whatever its budget."""
    if not samples:
        return plan
    least, most = max(plan.min_samples, samples), max(plan.max_samples, samples)
    return replace(plan, least_samples=samples, min_samples=least, max_samples=most)


def identity(instruments: Instruments, plan: Plan, runtime: Runtime, timer: str, call: object = None) -> Identity:
    """Everything that must agree before this measurement may be compared with another."""
    device = keyed(runtime.device(), plan)
    host = device.kind == "host"
    return Identity(
        device=device.key,
        clocks="off" if host else plan.clocks.value,
        timer=timer,
        cache=plan.cache.value,
        data=plan.data,
        threads=" ".join(filter(None, (instruments.threads(), instruments.pools(call)))),
        affinity=instruments.affinity(),
    )


def _asked(name: str, members: Iterable[N], family: str) -> N:
    members = tuple(members)
    found = next((member for member in members if member.name == name), None)
    if found is None:
        known = ", ".join(dict.fromkeys(("auto", *(member.name for member in members))))
        raise PerfgateError(f"{family}-unknown", f"there is no {family} {name!r}", mend=f"known: {known}")
    return found


def _insist(availability: Availability, family: str) -> None:
    if not availability.usable:
        what = f"the {family} {availability.name} does not work here: {availability.why}"
        raise PerfgateError(_UNUSABLE[family], what, mend=availability.mend)
