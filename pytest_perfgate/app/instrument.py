"""Chooses the runtime, the timer and the device of a call, states its identity, and watches the clocks meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pytest_perfgate.core.analysis.roofline import ceiling_roof, roofs
from pytest_perfgate.core.stats.summary import exhausted, left_of
from pytest_perfgate.model.device import (
    Availability,
    Basis,
    Ceilings,
    Device,
    SupportsAdopt,
    SupportsSettled,
    SupportsTouches,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Discard, Identity, Samples
from pytest_perfgate.model.plan import ClockPolicy, Plan

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Problem
    from pytest_perfgate.model.ports import Clocks, ClockWatch, Instruments, Runtime, Timer


N = TypeVar("N", "Runtime", "Timer")

_UNUSABLE = {"runtime": "runtime-unavailable", "timer": "timer-unsuited"}


def choose_runtime(plan: Plan, runtimes: Sequence[Runtime], modules: frozenset[str], call: object = None) -> Runtime:
    """Return the requested runtime, else the first that modules and call indicate, else the host.

    The runtime adopts the call's queue, because the device and the available timers depend on it.
    """
    runtime = _choose_runtime(plan, runtimes, modules, call)
    if call is not None and isinstance(runtime, SupportsAdopt):
        runtime.adopt(call)
    return runtime


def _choose_runtime(plan: Plan, runtimes: Sequence[Runtime], modules: frozenset[str], call: object) -> Runtime:
    """Choose the runtime; raise if the call's library does not work, since the host would time launches only."""
    if plan.runtime != "auto":
        runtime = _find_member(plan.runtime, runtimes, "runtime")
        _require(runtime.availability(), "runtime")
        return runtime
    for runtime in (one for one in runtimes if one.recognises(modules)):
        precise = runtime if call is not None and isinstance(runtime, SupportsTouches) else None
        if precise is None or precise.touches(call):  # one that cannot tell what a call touches is accepted
            availability = runtime.availability()
            if availability.usable:
                return runtime
            if precise is not None:
                _require(availability, "runtime")
    return runtimes[-1]


def choose_timer(plan: Plan, timers: Sequence[Timer], runtime: Runtime) -> Timer:
    """Return the requested timer, or raise if it does not work here; under ``auto``, the first that works."""
    if plan.timer != "auto":
        timer = _find_member(plan.timer, timers, "timer")
        _require(timer.availability(runtime), "timer")
        return timer
    usable = next((t for t in timers if t.availability(runtime).usable), None)
    if usable is None:
        why = "; ".join(f"{t.name}: {t.availability(runtime).why}" for t in timers)
        raise PerfgateError("timer-unsuited", f"no timer works with {runtime.name}", why=why)
    return usable


def per_call(samples: Samples, calls: int) -> Samples:
    """Return the samples of a function that makes several calls, per call; overhead and resolution stay per sample."""
    if calls == 1:
        return samples
    return replace(
        samples,
        durations=tuple(duration / calls for duration in samples.durations),
        cpu=tuple(time / calls for time in samples.cpu),
        waits=tuple(waited / calls for waited in samples.waits),
        busy=tuple(busy / calls for busy in samples.busy),
        launch_gap=None if samples.launch_gap is None else samples.launch_gap / calls,
        unqueued=None if samples.unqueued is None else samples.unqueued / calls,
        blocked=None if samples.blocked is None else samples.blocked / calls,
        batch=samples.batch * calls,
    )


def at_least(plan: Plan, samples: int) -> Plan:
    """Return the plan with at least so many samples, whatever its budget."""
    if not samples:
        return plan
    least, most = max(plan.min_samples, samples), max(plan.max_samples, samples)
    return replace(plan, least_samples=samples, min_samples=least, max_samples=most)


def identity(instruments: Instruments, plan: Plan, runtime: Runtime, timer: str, call: object = None) -> Identity:
    """Return everything that must be equal before this measurement may be compared with another."""
    device = keyed(runtime.device(), plan)
    return Identity(
        device=device.key,
        clocks="off" if device.kind == "host" else plan.clocks.value,
        timer=timer,
        cache=plan.cache.value,
        data=plan.data,
        threads=" ".join(filter(None, (instruments.threads(), instruments.pools(call)))),
        affinity=instruments.affinity(),
    )


def _find_member(name: str, members: Sequence[N], family: str) -> N:
    match = next((member for member in members if member.name == name), None)
    if match is None:
        names = ", ".join(dict.fromkeys(("auto", *(member.name for member in members))))
        raise PerfgateError(f"{family}-unknown", f"there is no {family} {name!r}", fix=f"name one of: {names}")
    return match


def _require(availability: Availability, family: str) -> None:
    if not availability.usable:
        what = f"the {family} {availability.name} does not work here: {availability.why}"
        raise PerfgateError(_UNUSABLE[family], what, fix=availability.fix)


REFUSED = "clocks refused"
"""The note of samples whose clocks could not be locked as planned."""


def keyed(device: Device, plan: Plan, clocks_hz: Sequence[float] = ()) -> Device:
    """Return the device as this plan measures it; each clock policy has its own folder of baselines."""
    if device.kind != "gpu":
        return device
    return replace(device, key=f"{device.key}-{plan.clocks.value}", roofs=roofs(device, clocks_hz))


def settled(device: Device, plan: Plan, clocks: Clocks | None) -> tuple[Plan, str]:
    """Return the plan with its effective clock policy, and why clocks are only observed instead of locked."""
    watch: object = clocks
    if plan.clocks is ClockPolicy.TRY and device.kind == "gpu" and isinstance(watch, SupportsSettled):
        return watch.settled(device, plan)
    return plan, ""


def lease_name(device: Device) -> str:
    """Return the name of a card's lease, the same under every name and number of the card.

    Libraries write one UUID with and without ``GPU-`` or ``MIG-`` before it.
    """
    plain = device.uuid.removeprefix("GPU-").removeprefix("MIG-")
    return plain or device.pci.lower() or f"{device.name}-{device.index}"


def has_uuid(device: Device, uuid: str) -> bool:
    """Return whether a shortened UUID, as CUDA accepts it, is of this device."""
    prefixes = ("GPU-", "MIG-")
    as_driver_writes = device.uuid if device.uuid.startswith(prefixes) else f"GPU-{device.uuid}"
    return uuid.startswith(prefixes) and len(uuid) > len("GPU-") and as_driver_writes.startswith(uuid)


def key_patterns(host: Device, cards: Iterable[Device]) -> tuple[str, ...]:
    """Return patterns of the keys of a machine's devices, whose memory is unknown until a library reports it."""
    names = dict.fromkeys(re.sub(r"[^A-Za-z0-9.]+", "-", card.name).strip("-.") for card in cards)
    return (host.key, *(f"{name}-[0-9]*GiB*" for name in names))


def ceiled(read: Callable[[str], Ceilings | None], device: Device) -> Device:
    """Return the device with its measured ceilings, if there are any."""
    ceilings = read(device.key)
    if ceilings is None:
        return device
    others = tuple(roof for roof in device.roofs if roof.basis is not Basis.CEILING)
    return replace(device, roofs=(*others, ceiling_roof(device, ceilings)))


def watched(
    take: Callable[[Plan], Samples], device: Device, plan: Plan, clocks: Clocks | None, clock: Callable[[], float]
) -> Samples:
    """Take samples while the clocks are watched; invalid ones are taken again with the remaining budget."""
    if clocks is None or device.kind != "gpu":
        return take(plan)
    samples, watch, spent = _watched_samples(take, device, plan, clocks, clock)
    problems = watch.problems()
    if not problems or not all(problem.retry for problem in problems):
        return _with_clocks(samples, watch, problems)
    remaining = left_of(plan, spent, len(samples.durations))
    if remaining is None:
        why = exhausted(plan, spent)
        return _with_clocks(samples, watch, tuple(replace(p, evidence=(*p.evidence, why)) for p in problems))
    lost = Discard(reason=problems[0].what, count=len(samples.durations))
    samples, watch, _ = _watched_samples(take, device, remaining, clocks, clock)
    return _with_clocks(replace(samples, discarded=(lost, *samples.discarded)), watch, watch.problems())


def _watched_samples(
    take: Callable[[Plan], Samples], device: Device, plan: Plan, clocks: Clocks, clock: Callable[[], float]
) -> tuple[Samples, ClockWatch, float]:
    """Return samples, the watch's observations and the nanoseconds spent, without the wait for a hot device."""
    with clocks.hold(device, plan) as watch:
        begun = clock()
        samples = take(plan)
        spent = clock() - begun
    return samples, watch, spent


def _with_clocks(samples: Samples, watch: ClockWatch, problems: tuple[Problem, ...]) -> Samples:
    return replace(
        samples,
        problems=(*samples.problems, *problems),
        clock_hz=watch.clock_hz(),
        watts=watch.watts(),
        capped=watch.capped(),
        notes=(*samples.notes, *watch.facts()),
    )


class SharedClocks:
    """Locks or watches the clocks of a device and of its companions."""

    def __init__(self, clocks: Clocks, companions: Sequence[Device]) -> None:
        self.name = clocks.name
        self._clocks, self._companions = clocks, companions

    def availability(self) -> Availability:
        return self._clocks.availability()

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """Return the plan with locked clocks if all cards allow it, else observed, with the reason."""
        plan_and_note = plan, ""
        for card in self._same_kind(device):
            plan_and_note = settled(card, plan, self._clocks)
            if plan_and_note[1]:
                break
        return plan_and_note

    @contextmanager
    def hold(self, device: Device, plan: Plan) -> Iterator[ClockWatch]:
        with ExitStack() as stack:
            cards = self._same_kind(device)
            yield Watches(cards, [stack.enter_context(self._clocks.hold(card, plan)) for card in cards])

    def _same_kind(self, device: Device) -> tuple[Device, ...]:
        """Return the device and its companions, which are of the same kind and so have its data sheet."""
        return (device, *(replace(card, spec=device.spec, arch=device.arch) for card in self._companions))


class Watches:
    """The observations of several watches; clocks, watts and facts are those of the first."""

    def __init__(self, cards: Sequence[Device], watches: Sequence[ClockWatch]) -> None:
        self._cards, self._watches = cards, watches

    def problems(self) -> tuple[Problem, ...]:
        return tuple(
            replace(problem, what=f"{card.uuid or card.index}: {problem.what}")
            for card, watch in zip(self._cards, self._watches, strict=True)
            for problem in watch.problems()
        )

    def clock_hz(self) -> tuple[float, ...]:
        return self._watches[0].clock_hz()

    def watts(self) -> float | None:
        return self._watches[0].watts()

    def capped(self) -> float | None:
        """Return the share of time of the most throttled device, since the others wait for it."""
        return max((share for watch in self._watches if (share := watch.capped()) is not None), default=None)

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._watches[0].facts(), ("devices watched", str(len(self._watches))))


def named_device(devices: Sequence[Device], name: str) -> Device:
    """Return the device that ``--perfgate-device`` names by its number, UUID, name, or baseline key.

    A UUID may be shortened, as in ``CUDA_VISIBLE_DEVICES``.
    """
    plain = name.removeprefix("GPU-")
    for at, device in enumerate(devices):
        names = {str(at), device.uuid, device.pci, device.name, device.key}
        same = name in names or plain == device.uuid.removeprefix("GPU-")
        if same or (device.key and name.startswith(f"{device.key}-")):
            return device
    begun = [device for device in devices if has_uuid(device, name)]
    if len(begun) == 1:
        return begun[0]
    visible = "; ".join(f"{at}: {device.name} {device.uuid}" for at, device in enumerate(devices))
    what = f"{len(begun)} devices begin with {name!r}" if begun else f"no device {name!r} is visible here"
    why = "the measured device must be the requested one"
    raise PerfgateError("device-unknown", what, why=why, fix=f"one of {visible}")
