"""AMD's cards through amdsmi itself, each in a process of its own; run by test_amdsmi.py on a library of our making."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import time
from dataclasses import replace

from pytest_perfgate.adapters.bindings import amdsmi, border
from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.devices.clock_locks import read_lock, read_locks
from pytest_perfgate.adapters.devices.clocks import AmdClocks
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan
from tests.drivers.patient import patient_until

LOCK, TRY, OBSERVE = (replace(Plan(), clocks=policy) for policy in list(ClockPolicy)[:3])


def scenario(function):
    function.__scenario__ = True
    return function


class Library:
    """The exported integers of the made library."""

    def __init__(self) -> None:
        object.__setattr__(self, "_library", ctypes.CDLL("libamd_smi.so"))

    def __getattr__(self, name: str) -> int:
        return ctypes.c_int.in_dll(self._library, f"fake_{name}").value

    def __setattr__(self, name: str, number: int) -> None:
        ctypes.c_int.in_dll(self._library, f"fake_{name}").value = number


def card(at: int = 1):
    device = Amd().every()[at].described()
    return replace(device, arch="gfx942", spec=replace(lookup_spec(device.name), lock_hz=1.9e9))


def region(plan, clocks=None, least=3, **during: int) -> dict:
    library = Library()
    with (clocks or AmdClocks(sleep=lambda seconds: None)).hold(card(), plan) as watch:
        cap, memory = library.cap, library.memory_least
        owner = read_lock(card().uuid)
        for name, number in during.items():
            setattr(library, name, number)
        wanted = library.looks + least
        while library.looks < wanted and not watch.problems():
            time.sleep(0.01)
    return {
        "codes": [problem.code for problem in watch.problems()],
        "whats": [problem.what for problem in watch.problems()],
        "facts": dict(watch.facts()), "clocks": sorted(set(watch.clock_hz())),
        "capped": watch.capped(),
        "cap": cap, "memory": memory, "after": library.cap, "sets": library.sets, "resets": library.resets,
        "owner": owner.pid == os.getpid() if owner else None, "left": len(read_locks()),
    }  # fmt: skip


def error_of(plan) -> dict:
    try:
        return region(plan)
    except PerfgateError as error:
        return {"code": error.code.name, "what": error.what, "left": len(read_locks())}


@scenario
def described() -> dict:
    device, first = card(), card(0)
    Library().unnumbered = 1
    return {
        "unnumbered": [card(at).index for at in (0, 1)],
        "name": device.name, "index": device.index, "uuid": device.uuid, "pci": device.pci, "facts": dict(device.facts),
        "memory": device.memory_bytes, "availability": Amd().availability().version, "first": first.pci,
        "by_bus": Amd().device(replace(device, uuid="")).uuid(), "by_uuid": Amd().device(replace(first, pci="")).uuid(),
    }  # fmt: skip


@scenario
def locked() -> dict:
    return region(LOCK)


@scenario
def denied() -> dict:
    Library().permission = 10
    return error_of(LOCK)


@scenario
def unsupported() -> dict:
    Library().permission = 2
    return error_of(LOCK)


@scenario
def tried() -> dict:
    Library().permission = 10
    clocks = AmdClocks()
    plan, why = clocks.settled(card(), TRY)
    return {**region(plan, clocks), "why": why}


@scenario
def observed() -> dict:
    return region(OBSERVE)


@scenario
def throttled() -> dict:
    Library().heat = 1
    return region(OBSERVE, throttle_after=Library().looks + 2, least=6)


@scenario
def power_limited() -> dict:
    return region(OBSERVE, throttle_after=Library().looks + 2, least=6)


@scenario
def counted() -> dict:
    """A card that counts: three ticks of a hundred are too many, and the slow way of asking is not taken."""
    library = Library()
    library.metrics_status, library.held_step, library.heat = 0, 30, 1
    counts = region(OBSERVE)
    library.held_step = 5
    little = region(OBSERVE)["codes"]
    library.held_step, library.heat = 500, 0
    return {**counts, "little": little, "power": region(OBSERVE), "reads": library.violation_reads}


@scenario
def out_of_range() -> dict:
    """A clock that the card does not have; while one is set the card tells that as its highest."""
    chip = Amd().every()[1]
    library, refused = Library(), {}
    for megahertz in (100, 2200):
        try:
            chip.lock(megahertz * 1e6)
        except PerfgateError as error:
            refused[megahertz] = [error.code.name, error.what]
    chip.lock(1.5e9)
    chip.lock(1.9e9)
    return {"refused": list(refused.values()), "cap": library.cap, "sets": library.sets}


@scenario
def hangs() -> dict:
    device = hasty()
    Library().hang = 3
    return error_of_holding(device)


@scenario
def start_hangs() -> dict:
    device = hasty()
    Library().hang = 1
    return error_of_holding(device)


def hasty():
    """A card, and from now on a patience of a fifth of a second, counted from when the library hangs."""
    device = card()
    amdsmi.START_S = border.PATIENCE_S = 0.2
    patient_until(lambda: Library().hung)
    return device


def error_of_holding(device) -> dict:
    try:
        AmdClocks().hold(device, OBSERVE).__enter__()
    except PerfgateError as error:
        return {"code": error.code.name, "what": error.what}
    return {}


@scenario
def above_its_cap() -> dict:
    return region(LOCK, above=150)


@scenario
def memory_stays() -> dict:
    Library().memory_status = 2
    return region(LOCK)


@scenario
def gone() -> dict:
    return region(OBSERVE, lost_after=Library().looks + 1)


@scenario
def silent() -> dict:
    Library().clock_status = 2
    with AmdClocks().hold(card(), OBSERVE) as watch:
        pass
    return {"codes": [problem.code for problem in watch.problems()], "facts": dict(watch.facts())}


@scenario
def foreign() -> dict:
    return region(OBSERVE, pid=int(os.environ["STRANGER"]))


@scenario
def own() -> dict:
    return region(OBSERVE, pid=os.getpid())


@scenario
def not_put_back() -> dict:
    Library().reset_status = 7
    return error_of(LOCK)


@scenario
def no_card() -> dict:
    Library().cards = 0
    return {"why": Amd().availability().why}


@scenario
def no_library() -> dict:
    """Run without one: amdsmi then prints, and fails with a KeyError."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        availability = Amd().availability()
    return {"usable": availability.usable, "why": availability.why, "said": output.getvalue()}
