"""The machine beside a measurement: the device's key and roofs, its clocks while it is measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.roofs import ceiling_roof, roofs
from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Basis, Device
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.model.ports import Clocks
from pytest_perfgate.model.samples import Discard, Samples

REFUSED = "clocks refused"
"""The note of samples whose clocks were to be locked and could not be."""
TRIES = 2
"""Times that a measurement which an instrument found invalid is taken."""


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


def watched(take: Callable[[], Samples], device: Device, plan: Plan, clocks: Clocks | None) -> Samples:
    """Samples with what the clocks did meanwhile; taken again where that made them invalid."""
    if clocks is None or device.kind != "gpu":
        return take()
    discarded: list[Discard] = []
    while True:
        with clocks.hold(device, plan) as watch:
            samples = take()
        problems = watch.problems()
        if not problems or len(discarded) + 1 >= TRIES or not all(problem.retry for problem in problems):
            return replace(
                samples,
                problems=(*samples.problems, *problems),
                clock_hz=watch.clock_hz(),
                discarded=(*samples.discarded, *discarded),
                notes=(*samples.notes, *watch.facts()),
            )
        discarded.append(Discard(reason=problems[0].what, count=len(samples.durations)))
