"""Cases on several devices at once, a lane a device; the next round's processes, started while a device measures."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.app.instrument import begins, lease_name
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import ChildSpec, Job
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.app.lockstep import OwnFiles, Stage
    from pytest_perfgate.app.measure import Rounds
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import Answer, Child, Command
    from pytest_perfgate.model.verdict import Arm, PairedRound

HOST = frozenset({"auto", "host", "fake"})
"""Runtimes of which nobody can say beforehand that they use a device."""


@array_value
class Fleet:
    """The devices that this run may use."""

    devices: tuple[Device, ...]
    """As the libraries number them; none where nobody can tell."""
    surroundings: Callable[[Sequence[Device]], Mapping[str, str]]
    """The variables that make a process see these devices and no others."""
    hold: Callable[[Sequence[str]], AbstractContextManager[object]]
    """Leases on all of these, for the children to inherit."""
    near: Callable[[Sequence[Device]], Mapping[str, str]] = lambda _: {}
    """The variables that put a process on the cores next to these devices, where the system tells which those are."""

    @property
    def alike(self) -> tuple[Device, ...]:
        """Those that are like the first: cases on another kind of device would have another key."""
        first = self.devices[:1]
        return tuple(d for d in self.devices if (d.name, d.memory_bytes) == (first[0].name, first[0].memory_bytes))

    def few(self, wanted: int) -> str:
        """Why there are not so many to be had; empty where there are."""
        if len(self.alike) >= wanted:
            return ""
        text = f"{len(self.alike)} of one kind are visible" if self.devices else "none is visible"
        return f"it asks for {plural(wanted, 'device')}, and {text}"


def run_spread(rounds: Rounds, cases: Sequence[Case], fleet: Fleet, numbers: range | None = None) -> None:
    """Measure all cases, those of devices on all devices at once; ``numbers`` are the rounds, all of them without.

    A case whose library is not named shows in its first round whether it uses a device. What the host
    measures runs alone: a neighbour would be in its time.
    """
    numbers = range(rounds.most) if numbers is None else numbers
    several = [case for case in cases if case.plan.devices > 1]
    single = [case for case in cases if case.plan.devices <= 1]
    if not fleet.alike:
        for number in numbers:
            rounds.round(number, single)
    else:
        known = [case for case in single if case.plan.runtime not in HOST]
        host_cases = [case for case in single if case.plan.runtime in HOST]
        if 0 in numbers:
            rounds.round(0, host_cases)
        gpu_cases = [case for case in host_cases if rounds.kind(case.nodeid) == "gpu"]
        _in_lanes(rounds, fleet, (known, gpu_cases), numbers)
        alone = [case for case in host_cases if case not in gpu_cases]
        for number in filter(None, numbers):
            rounds.round(number, alone)
    for case in several:
        _with_several(rounds, fleet, case, numbers)


def lane_of(nodeid: str, count: int) -> int:
    """The lane of a case: the same one each time, whatever else is selected."""
    return zlib.crc32(nodeid.encode()) % count


def _in_lanes(rounds: Rounds, fleet: Fleet, cases: tuple[Sequence[Case], Sequence[Case]], numbers: range) -> None:
    """Every round of the known, and all but the first of those that were found out by it.

    The leases are the run's own until all are through: a child between two cases has a context on its card, and would
    be a foreign process to whoever measured there meanwhile.
    """
    known, found = cases
    if not known and not found:
        return
    devices = fleet.alike
    late = {case.nodeid for case in found}

    def lane(at: int) -> None:
        mine = [case for case in (*known, *found) if lane_of(case.nodeid, len(devices)) == at]
        own = devices[at : at + 1]
        env = {**(fleet.surroundings(own) if len(devices) > 1 else {}), **fleet.near(own)}
        for number in numbers:
            now = [case for case in mine if number or case.nodeid not in late]
            rounds.round(number, now, env)

    with fleet.hold([lease_name(device) for device in devices]):
        at_once([partial(lane, at) for at in range(len(devices))], rounds.stop)


def _with_several(rounds: Rounds, fleet: Fleet, case: Case, numbers: range) -> None:
    few = fleet.few(case.plan.devices)
    if few:
        rounds.give_up(case.nodeid, few)
        return
    devices = fleet.alike[: case.plan.devices]
    with fleet.hold([lease_name(device) for device in devices]):
        for number in numbers:
            rounds.round(number, [case], {**fleet.surroundings(devices), **fleet.near(devices)})


def at_once(works: Iterable[Callable[[], None]], stop: Callable[[], None]) -> None:
    """All of these in threads; the first failure, or an interrupt, stops them all and is raised."""
    faults: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - raised again by the thread that waits
            faults.append(fault)
            stop()

    threads = [threading.Thread(target=guarded, args=(work,), name="perfgate-lane") for work in works]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        for thread in threads:
            thread.join()
        raise
    if faults:
        raise faults[0]


def picked(devices: Sequence[Device], asked: str) -> Device:
    """The device that ``--perfgate-device`` means: its number, UUID, name, or the key of its baselines.

    A UUID may be cut short, as in ``CUDA_VISIBLE_DEVICES``.
    """
    plain = asked.removeprefix("GPU-")
    for at, device in enumerate(devices):
        names = {str(at), device.uuid, device.pci, device.name, device.key}
        if (
            asked in names
            or plain == device.uuid.removeprefix("GPU-")
            or (device.key and asked.startswith(f"{device.key}-"))
        ):
            return device
    begun = [device for device in devices if begins(device, asked)]
    if len(begun) == 1:
        return begun[0]
    known = "; ".join(f"{at}: {device.name} {device.uuid}" for at, device in enumerate(devices))
    what = f"{plural(len(begun), 'device')} begin with {asked!r}" if begun else f"no device {asked!r} is visible here"
    why = "what is measured must be the device that was asked for"
    raise PerfgateError("device-unknown", what, why=why, mend=f"one of {known}")


@value
class Start:
    """What a process is started with."""

    spec: ChildSpec
    job: Job

    def serves(self, other: Start) -> bool:
        """Whether a process that was started so stands for another: same arm and seed, and its tests among these."""
        mine, theirs = ({case.nodeid for case in one.job.cases} for one in (self, other))
        return mine >= theirs and self._surroundings() == other._surroundings()

    def _surroundings(self) -> tuple[ChildSpec, Job]:
        return replace(self.spec, argv=()), replace(self.job, cases=())


def on_devices(cases: Iterable[Case], rounds: Iterable[PairedRound]) -> bool:
    """Whether all of these were timed by a device's own clock in the rounds before."""
    seen: dict[str, set[bool]] = {case.nodeid: set() for case in cases}
    for one in rounds:
        by_device = (c.device.kind == "gpu" and c.identity.timer != "host" for c in (*one.base, *one.head))
        seen.get(one.nodeid, set()).update(by_device)
    return all(clocks == {True} for clocks in seen.values())


def leases(rounds: Iterable[PairedRound]) -> list[str]:
    """Of all devices that these were measured on."""
    captures = (capture for one in rounds for capture in (*one.base, *one.head))
    return sorted({lease_name(capture.device) for capture in captures if capture.device.kind == "gpu"})


class EarlyChild:
    """A child that has had its job: it collects, and waits before its first test."""

    def __init__(self, child: Child, job: Job) -> None:
        self.label, self._child = child.label, child
        self._fault: PerfgateError | None = None
        self._sending = threading.Thread(target=self._sent, args=(job,), name="perfgate-next", daemon=True)
        self._sending.start()

    def send(self, command: Command) -> None:
        if not isinstance(command, Job):
            self._child.send(command)
            return
        self._sending.join()
        if self._fault is not None:
            raise self._fault

    def receive(self, timeout_s: float) -> Answer:
        return self._child.receive(timeout_s)

    def close(self) -> None:
        self._child.close()
        self._sending.join()

    def tail(self) -> str:
        return self._child.tail()

    def _sent(self, job: Job) -> None:
        """A child takes its job once it has started, which is what nobody waits for here."""
        try:
            self._child.send(job)
        except PerfgateError as fault:
            self._fault = fault


class NextRound:
    """Every round has fresh processes; importing what they need is what overlaps."""

    def __init__(self, stage: Stage, arms: Sequence[Arm], own: OwnFiles) -> None:
        self._stage, self._arms, self._own = stage, arms, own
        self._early: list[tuple[Start, EarlyChild]] = []

    def starts(self, cases: Sequence[Case], seed: int) -> list[Start]:
        """What the sides of a round are started with: the base's files may be its own."""
        sides = [
            (arm, replace(self._stage.job, cases=tuple(cases), modules=arm.modules, beside=True, files=files))
            for arm, files in zip(self._arms, (self._own.files(cases), ()))
        ]
        return [Start(spec=self._stage.spec(arm, cases, seed), job=job) for arm, job in sides]

    def begin(self, cases: Sequence[Case], seed: int, rounds: Iterable[PairedRound]) -> None:
        """Starts them where no clock of the host measures; one that fails is complained of when its round begins."""
        self.close()
        if not self._stage.early or not on_devices(cases, rounds):
            return
        with suppress(PerfgateError):
            for start in self.starts(cases, seed):
                self._early.append((start, EarlyChild(self._stage.spawner.spawn(start.spec), start.job)))

    def take(self, starts: Sequence[Start]) -> list[Child]:
        """Those that wait for these, or none: both sides of a pair are started alike."""
        early, self._early = self._early, []
        if len(early) == len(starts) and all(start.serves(other) for (start, _), other in zip(early, starts)):
            return [child for _, child in early]
        for _, child in early:
            child.close()
        return []

    def close(self) -> None:
        self.take(())
