"""What happens to clocks, each in a process of its own; run by test_clocks.py on drivers of our own making."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import replace

from pytest_perfgate.adapters.bindings.nvml import Nvml
from pytest_perfgate.adapters.devices.clock_locks import read_lock, read_locks, write_lock
from pytest_perfgate.adapters.devices.clocks import NvmlClocks
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import SAMPLING
from pytest_perfgate.model.plan import ClockPolicy, Plan
from tests.waits import until

LOCK, TRY, OBSERVE, OFF = (replace(Plan(), clocks=policy) for policy in ClockPolicy)


def scenario(function):
    function.__scenario__ = True
    return function


class Library:
    """The exported integers of the made library."""

    def __init__(self) -> None:
        object.__setattr__(self, "_library", ctypes.CDLL("libnvidia-ml.so.1"))

    def __getattr__(self, name: str) -> int:
        return ctypes.c_int.in_dll(self._library, f"fake_{name}").value

    def __setattr__(self, name: str, number: int) -> None:
        ctypes.c_int.in_dll(self._library, f"fake_{name}").value = number


def card():
    device = Nvml().every()[0].described()
    return replace(device, spec=lookup_spec(device.name))


def facts_of(watch) -> dict:
    return {
        "codes": [problem.code for problem in watch.problems()],
        "evidence": [list(map(list, problem.evidence)) for problem in watch.problems()],
        "facts": dict(watch.facts()),
        "clocks": sorted(set(watch.clock_hz())),
        "capped": watch.capped(),
        "watts": watch.watts(),
    }


def region(plan, clocks=None, during=lambda: None, least=4) -> dict:
    library = Library()
    with (clocks or NvmlClocks()).hold(card(), plan) as watch:
        locked = library.locked
        owner = read_lock(card().uuid)
        during()
        wanted = library.looks + least
        while library.looks < wanted and not watch.problems():
            time.sleep(0.01)
    return {
        **facts_of(watch), "locked": locked, "after": library.locked, "sets": library.sets, "resets": library.resets,
        "owner": owner.pid == os.getpid() if owner else None, "left": len(read_locks()),
    }  # fmt: skip


@scenario
def lock_permitted() -> dict:
    return region(LOCK)


@scenario
def memory_is_locked_too() -> dict:
    """At its highest clock; of a card that cannot, said; of one whose clock moves, invalid."""
    library = Library()
    locks = []
    locked = region(LOCK, during=lambda: locks.append((library.memory_locked, read_lock(card().uuid).memory)))
    after = library.memory_locked
    moved = region(LOCK, during=lambda: setattr(library, "memory_clock", 2600))
    library.memory_clock, library.memory_status = 3201, 3
    return {"locked": locked, "seen": locks, "after": after, "moved": moved["codes"], "refused": region(LOCK)}


@scenario
def lock_denied() -> dict:
    Library().permission = 4
    try:
        region(LOCK)
    except PerfgateError as error:
        return {"code": error.code.name, "left": len(read_locks()), "text": str(error)}
    return {}


@scenario
def try_lock_denied() -> dict:
    Library().permission = 4
    clocks = NvmlClocks()
    plan, why = clocks.settled(card(), TRY)
    again = clocks.settled(card(), TRY)[1]
    return {**region(TRY, clocks), "policy": plan.clocks.value, "why": why, "same": again == why}


@scenario
def try_lock_permitted() -> dict:
    clocks = NvmlClocks()
    plan, why = clocks.settled(card(), TRY)
    after_trial = Library().locked
    return {**region(TRY, clocks), "policy": plan.clocks.value, "why": why, "after_trial": after_trial}


@scenario
def lock_unsupported() -> dict:
    Library().permission = 3
    try:
        region(LOCK)
    except PerfgateError as error:
        return {"code": error.code.name}
    return {}


@scenario
def observed() -> dict:
    return region(OBSERVE)


@scenario
def errors_of_the_card() -> dict:
    """Before, while and after it is measured; of a card that tells none, nothing."""
    library = Library()
    library.ecc, library.xid, library.remapped = 3, 2, 1
    clocks = NvmlClocks()
    regions = {"before": region(OBSERVE, clocks)}
    regions["memory"] = region(OBSERVE, clocks, during=lambda: setattr(library, "ecc", 4))
    regions["xid"] = region(OBSERVE, clocks, during=lambda: setattr(library, "xid", 1))
    regions["replaced"] = region(OBSERVE, clocks, during=lambda: setattr(library, "remapped", 2))
    library.remap_pending = 1
    regions["waiting"] = region(OBSERVE, clocks)
    library.remap_failed = 1
    regions["failed"] = region(OBSERVE, clocks)
    library.no_health = 1
    regions["silent"] = region(OBSERVE)
    return {name: (one["codes"], one["facts"].get("memory errors", "")) for name, one in regions.items()}


@scenario
def off() -> dict:
    library = Library()
    before = library.looks
    with NvmlClocks().hold(card(), OFF) as watch:
        pass
    return {**facts_of(watch), "looks": library.looks - before, "sets": library.sets}


def half_way(reason: int) -> dict:
    library = Library()
    library.held_by, library.throttle_after = reason, library.looks + 3
    return region(OBSERVE, least=8)


@scenario
def throttled_half_way() -> dict:
    return half_way(0x20)


@scenario
def held_before_and_while_sampling() -> dict:
    """A second of it before the samples is no matter; while they are taken it is."""
    Library().held_by = 0x20
    seconds = ctypes.c_ulonglong.in_dll(ctypes.CDLL("libnvidia-ml.so.1"), "fake_violation")

    def sampled(before: int, within: int) -> list:
        with NvmlClocks().hold(card(), OBSERVE) as watch:
            seconds.value += before
            looks = Library().looks
            until(lambda: Library().looks > looks + 1)
            with SAMPLING.region():
                looks = Library().looks
                until(lambda: Library().looks > looks + 1)
                seconds.value += within
        return facts_of(watch)["codes"], facts_of(watch)["evidence"]

    return {"before": sampled(10**9, 0), "within": sampled(0, 10**9)}


@scenario
def lock_lost() -> dict:
    library = Library()
    library.drop_lock_after = library.looks + 3
    return region(LOCK, least=8)


@scenario
def device_lost() -> dict:
    library = Library()
    library.lost_after = library.looks + 3
    return region(OBSERVE, least=8)


@scenario
def foreign_process() -> dict:
    Library().pid = int(os.environ["STRANGER"])
    return region(OBSERVE)


@scenario
def foreign_process_on_an_instance() -> dict:
    """Of MIG: the first instance has it, the second has not, and both have the clocks of their card."""
    library = Library()
    library.mig, library.pid = 1, int(os.environ["STRANGER"])
    codes = []
    for instance in Nvml().every()[3].parts():
        with NvmlClocks().hold(replace(instance.described(), pci=""), OBSERVE) as watch:
            wanted = library.looks + 2
            until(lambda wanted=wanted: library.looks >= wanted)
        codes.append([problem.code for problem in watch.problems()])
    return {"codes": codes}


@scenario
def own_process() -> dict:
    Library().pid = os.getpid()
    return region(OBSERVE)


@scenario
def hot_then_cool() -> dict:
    library = Library()
    library.temperature, library.cooling = 85, 2
    waits: list[float] = []
    result = region(OBSERVE, NvmlClocks(sleep=waits.append))
    return {**result, "waited": len(waits)}


@scenario
def hot_and_stays() -> dict:
    Library().temperature = 85
    return region(OBSERVE, NvmlClocks(sleep=lambda seconds: None))


@scenario
def reset_fails() -> dict:
    Library().reset_status = 4
    try:
        region(LOCK)
    except PerfgateError as error:
        return {"code": error.code.name, "left": len(read_locks())}
    return {}


@scenario
def the_test_raises() -> dict:
    def fail() -> None:
        raise ZeroDivisionError

    try:
        region(LOCK, during=fail)
    except ZeroDivisionError:
        return {"after": Library().locked, "left": len(read_locks()), "resets": Library().resets}
    return {}


@scenario
def terminated() -> dict:
    return region(LOCK, during=lambda: os.kill(os.getpid(), signal.SIGTERM))


@scenario
def killed() -> dict:
    return region(LOCK, during=lambda: os.kill(os.getpid(), signal.SIGKILL))


@scenario
def stale_is_found() -> dict:
    (lock,) = read_locks()
    facts = {"stale": lock.stale, "device": lock.device, "pid": lock.pid}
    return {**facts, **region(LOCK)}


@scenario
def held_by_another() -> dict:
    lock = write_lock(card().uuid, 1.5e9, memory=False)
    from pathlib import Path

    from pytest_perfgate.adapters.system.processes import started

    path = Path(lock.path)
    path.write_text(path.read_text().replace(str(os.getpid()), str(os.getppid())).replace(
        started(os.getpid()), started(os.getppid())))  # fmt: skip
    try:
        region(LOCK)
    except PerfgateError as error:
        return {"code": error.code.name, "sets": Library().sets, "left": len(read_locks())}
    return {}


@scenario
def driver_missing() -> dict:
    availability = NvmlClocks().availability()
    from pytest_perfgate.model.device import Device

    device = Device(key="", name="NVIDIA H200", kind="gpu")
    with NvmlClocks().hold(device, OBSERVE) as watch:
        facts = dict(watch.facts())
    try:
        with NvmlClocks().hold(device, LOCK):
            pass
    except PerfgateError as error:
        return {"usable": availability.usable, "why": availability.why, "facts": facts, "code": error.code.name}
    return {}


@scenario
def unmapped() -> dict:
    try:
        with NvmlClocks().hold(replace(card(), uuid="GPU-other", pci=""), OBSERVE):
            pass
    except PerfgateError as error:
        return {"code": error.code.name}
    return {}
