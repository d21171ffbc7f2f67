"""The machine beside a measurement: the device's key and roofs, its clocks while it is measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.roofs import ceiling_roof, roofs
from pytest_perfgate.core.gate.retry import exhausted, left_of
from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Basis, Device
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.model.ports import Clocks, ClockWatch
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.samples import Discard, Samples

REFUSED = "clocks refused"
"""The note of samples whose clocks were to be locked and could not be."""


def keyed(device: Device, plan: Plan, clocks_hz: Sequence[float] = ()) -> Device:
    """The device as this plan measures it: another clock policy is another folder of baselines."""
    if device.kind != "gpu":
        return device
    return replace(device, key=f"{device.key}-{plan.clocks.value}", roofs=roofs(device, clocks_hz))


def settled(device: Device, plan: Plan, clocks: Clocks | None) -> tuple[Plan, str]:
    """The plan as it will be measured, and why clocks that were to be locked are only observed."""
    decide = getattr(clocks, "settled", None)
    if plan.clocks is not ClockPolicy.TRY or device.kind != "gpu" or decide is None:
        return plan, ""
    found: tuple[Plan, str] = decide(device, plan)
    return found


def lease_name(device: Device) -> str:
    """What a lease is on: the card itself, whatever it is called or numbered here.

    Libraries write one UUID with and without ``GPU-`` before it.
    """
    return device.uuid.removeprefix("GPU-") or device.pci.lower() or f"{device.name}-{device.index}"


def begins(device: Device, asked: str) -> bool:
    """Whether a UUID that was cut short, as CUDA takes it, is of this device."""
    return asked.startswith(("GPU-", "MIG-")) and len(asked) > len("GPU-") and _prefixed(device).startswith(asked)


def _prefixed(device: Device) -> str:
    """The UUID as the driver writes it."""
    return device.uuid if device.uuid.startswith(("GPU-", "MIG-")) else f"GPU-{device.uuid}"


def key_patterns(host: Device, cards: Iterable[Device]) -> tuple[str, ...]:
    """What the keys of a machine's devices look like, before a library has been asked for their memory."""
    names = dict.fromkeys(re.sub(r"[^A-Za-z0-9.]+", "-", card.name).strip("-.") for card in cards)
    return (host.key, *(f"{name}-[0-9]*GiB*" for name in names))


def ceiled(read: Callable[[str], Ceilings | None], device: Device) -> Device:
    """The device with its measured ceilings, where somebody measured them."""
    found = read(device.key)
    if found is None:
        return device
    others = tuple(roof for roof in device.roofs if roof.basis is not Basis.CEILING)
    return replace(device, roofs=(*others, ceiling_roof(device, found)))


def watched(
    take: Callable[[Plan], Samples],
    device: Device,
    plan: Plan,
    clocks: Clocks | None,
    clock: Callable[[], float],
) -> Samples:
    """Samples with what the clocks did meanwhile; what that made invalid is taken again out of what is left."""
    if clocks is None or device.kind != "gpu":
        return take(plan)
    samples, watch, spent = _seen(take, device, plan, clocks, clock)
    problems = watch.problems()
    if not problems or not all(problem.retry for problem in problems):
        return _told(samples, watch, problems)
    left = left_of(plan, spent, len(samples.durations))
    if left is None:
        why = exhausted(plan, spent)
        return _told(samples, watch, tuple(replace(p, evidence=(*p.evidence, why)) for p in problems))
    lost = Discard(reason=problems[0].what, count=len(samples.durations))
    samples, watch, _ = _seen(take, device, left, clocks, clock)
    return _told(replace(samples, discarded=(lost, *samples.discarded)), watch, watch.problems())


def _seen(
    take: Callable[[Plan], Samples], device: Device, plan: Plan, clocks: Clocks, clock: Callable[[], float]
) -> tuple[Samples, ClockWatch, float]:
    """Samples, what was seen meanwhile, and the nanoseconds it took; waiting for a hot device is none of them."""
    with clocks.hold(device, plan) as watch:
        begun = clock()
        samples = take(plan)
        spent = clock() - begun
    return samples, watch, spent


def _told(samples: Samples, watch: ClockWatch, problems: tuple[Problem, ...]) -> Samples:
    return replace(
        samples,
        problems=(*samples.problems, *problems),
        clock_hz=watch.clock_hz(),
        watts=watch.watts(),
        capped=watch.capped(),
        notes=(*samples.notes, *watch.facts()),
    )
