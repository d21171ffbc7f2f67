"""Measures cases on several devices at once, one lane a device, and starts the next processes early."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import FORK, ChildJob, ChildSpec, Collected, SupportsFork
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.app.lockstep import Stage
    from pytest_perfgate.app.measure import Rounds
    from pytest_perfgate.core.changes.own_files import OwnFiles
    from pytest_perfgate.core.judge.rounds import Pairs
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.plan import Case, CaseKey
    from pytest_perfgate.model.protocol import Answer, Capture, Child, ChildSpawner, Command
    from pytest_perfgate.model.verdict import Arm, PairedRound

HOST = frozenset({"auto", "host", "fake"})
"""Runtimes that do not show in advance whether they use a device."""


@array_value
class RunDevices:
    """The devices that this run may use."""

    devices: tuple[Device, ...]
    """Devices by the libraries' numbers; empty if unknown."""
    surroundings: Callable[[Sequence[Device]], Mapping[str, str]]
    """Returns the variables that make only these devices visible to a process."""
    hold: Callable[[Sequence[str]], AbstractContextManager[object]]
    """Holds leases on all of these devices, for the children to inherit."""
    near: Callable[[Sequence[Device]], Mapping[str, str]] = lambda _: {}
    """Returns the variables that pin a process to cores near these devices, if the system names them."""

    @property
    def of_same_kind(self) -> tuple[Device, ...]:
        """Return the devices of the first one's kind: cases on another kind would have another key."""
        first = self.devices[:1]
        return tuple(d for d in self.devices if (d.name, d.memory_bytes) == (first[0].name, first[0].memory_bytes))

    def few(self, wanted: int) -> str:
        """Return why fewer devices are available; "" if there are enough."""
        if len(self.of_same_kind) >= wanted:
            return ""
        text = f"{len(self.of_same_kind)} of one kind are visible" if self.devices else "none is visible"
        return f"it asks for {plural(wanted, 'device')}, and {text}"


def run_spread(rounds: Rounds, cases: Sequence[Case], fleet: RunDevices, numbers: range | None = None) -> None:
    """Measure all cases, those of devices on all devices at once; ``numbers`` are the rounds, by default all.

    A case whose library is not named shows in its first round whether it uses a device. Cases of the host run alone,
    because others at the same time would slow them.
    """
    numbers = range(rounds.most) if numbers is None else numbers
    several = [case for case in cases if case.plan.devices > 1]
    single = [case for case in cases if case.plan.devices <= 1]
    if not fleet.of_same_kind:
        for number in numbers:
            rounds.round(number, single)
    else:
        gpu_planned = [case for case in single if case.plan.runtime not in HOST]
        host_cases = [case for case in single if case.plan.runtime in HOST]
        if 0 in numbers:
            rounds.round(0, host_cases)
        gpu_cases = [case for case in host_cases if rounds.kind(case.nodeid) == "gpu"]
        _in_lanes(rounds, fleet, (gpu_planned, gpu_cases), numbers)
        alone = [case for case in host_cases if case not in gpu_cases]
        for number in filter(None, numbers):
            rounds.round(number, alone)
    for case in several:
        _with_several(rounds, fleet, case, numbers)


def lane_of(nodeid: str, count: int) -> int:
    """Return the lane of a case, the same each time, whatever else is selected."""
    return zlib.crc32(nodeid.encode()) % count


def _in_lanes(rounds: Rounds, fleet: RunDevices, cases: tuple[Sequence[Case], Sequence[Case]], numbers: range) -> None:
    """Run every round of cases planned for a GPU, and all but the first of those found to use one.

    The run holds the leases until the end, because a child between two cases keeps a context on its card, which would
    be a foreign process to another run.
    """
    planned, detected = cases
    if not planned and not detected:
        return
    devices = fleet.of_same_kind
    late = {case.nodeid for case in detected}

    def lane(at: int) -> None:
        mine = [case for case in (*planned, *detected) if lane_of(case.nodeid, len(devices)) == at]
        own = devices[at : at + 1]
        env = {**(fleet.surroundings(own) if len(devices) > 1 else {}), **fleet.near(own)}
        for number in numbers:
            rounds.round(number, [case for case in mine if number or case.nodeid not in late], env)

    with fleet.hold([lease_name(device) for device in devices]):
        at_once([partial(lane, at) for at in range(len(devices))], rounds.stop)


def _with_several(rounds: Rounds, fleet: RunDevices, case: Case, numbers: range) -> None:
    few = fleet.few(case.plan.devices)
    if few:
        rounds.give_up(case.nodeid, few)
        return
    devices = fleet.of_same_kind[: case.plan.devices]
    with fleet.hold([lease_name(device) for device in devices]):
        for number in numbers:
            rounds.round(number, [case], {**fleet.surroundings(devices), **fleet.near(devices)})


def at_once(works: Iterable[Callable[[], None]], stop: Callable[[], None]) -> None:
    """Run all of these in threads; the first failure, or an interrupt, stops them all and is raised."""
    faults: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - raised again by the waiting thread
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


@value
class Start:
    """The arguments with which a process is started."""

    spec: ChildSpec
    job: ChildJob

    def serves(self, other: Start) -> bool:
        """Return whether a process started with these can serve for the other: same arm and seed, and its tests too."""
        mine, theirs = ({case.nodeid for case in start.job.cases} for start in (self, other))
        return mine >= theirs and self._surroundings() == other._surroundings()

    def _surroundings(self) -> tuple[ChildSpec, ChildJob]:
        return replace(self.spec, argv=()), replace(self.job, cases=())


def on_devices(cases: Iterable[Case], rounds: Iterable[PairedRound]) -> bool:
    """Return whether the earlier rounds timed all of these cases by a device's own clock."""
    clocks_of: dict[str, set[bool]] = {case.nodeid: set() for case in cases}
    for round_ in rounds:
        by_device = (c.device.kind == "gpu" and c.identity.timer != "host" for c in (*round_.base, *round_.head))
        clocks_of.get(round_.nodeid, set()).update(by_device)
    return all(clocks == {True} for clocks in clocks_of.values())


def leases(rounds: Iterable[PairedRound]) -> list[str]:
    """Return the devices that these rounds were measured on."""
    captures = (capture for round_ in rounds for capture in (*round_.base, *round_.head))
    return sorted({lease_name(capture.device) for capture in captures if capture.device.kind == "gpu"})


class EarlyChild:
    """A child that has received its job: it collects, and waits before its first test."""

    def __init__(self, child: Child, job: ChildJob) -> None:
        self.label, self._child = child.label, child
        self._fault: PerfgateError | None = None
        self._sending = threading.Thread(target=self._sent, args=(job,), name="perfgate-next", daemon=True)
        self._sending.start()

    def send(self, command: Command) -> None:
        if not isinstance(command, ChildJob):
            self._child.send(command)
            return
        self._sending.join()
        if self._fault is not None:
            raise self._fault

    def receive(self, timeout_s: float) -> Answer:
        return self._child.receive(timeout_s)

    def fork(self) -> Child:
        if not isinstance(self._child, SupportsFork):
            raise PerfgateError("child-start", f"{self.label} is of a kind that is not forked")
        return self._child.fork()

    def close(self) -> None:
        self._child.close()
        self._sending.join()

    def tail(self) -> str:
        return self._child.tail()

    def _sent(self, job: ChildJob) -> None:
        """Send a child its job once it has started, without waiting for the start."""
        try:
            self._child.send(job)
        except PerfgateError as fault:
            self._fault = fault


class WaitingChildren:
    """Children that were started for a later round."""

    def __init__(self, spawner: ChildSpawner) -> None:
        self._spawner = spawner
        self._early: list[tuple[Start, EarlyChild]] = []

    def begin(self, start: Start) -> None:
        self._early.append((start, EarlyChild(self._spawner.spawn(start.spec), start.job)))

    def take(self, starts: Sequence[Start]) -> list[Child]:
        """Return the children that wait for these arguments, or none, and end them: all must be started alike."""
        early, self._early = self._early, []
        if len(early) == len(starts) and all(start.serves(other) for (start, _), other in zip(early, starts)):
            return [child for _, child in early]
        for _, child in early:
            child.close()
        return []


PRELOADED = {
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # torch finds devices without initialising CUDA
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
"""Variables of a preload: neither a driver nor a second thread survives a fork."""


def widen_scatter(pairs: Pairs, capture: Capture, forks: Callable[[CaseKey, str], float | None] | None) -> Pairs:
    """Widen the scatter of forked pairs to at least that of fresh ones."""
    floor = forks(capture.key, capture.device.key) if pairs.preloads and forks else None
    return pairs if floor is None else replace(pairs, floor=floor)


def one_a_draw(rounds: Sequence[PairedRound], phase: str, nodeid: str) -> list[tuple[int, PairedRound]]:
    """Return the rounds of a test with their positions; of rounds forked from one preload only the first."""
    from pytest_perfgate.core.judge.samples import preloads_of

    mine = [(at, round_) for at, round_ in enumerate(rounds) if round_.phase == phase and round_.nodeid == nodeid]
    preloads = preloads_of(round_.head for _, round_ in mine) or (0,) * len(mine)
    return [placed for placed, own, last in zip(mine, preloads, (0, *preloads)) if not own or own != last]


class Preload:
    """Both sides' processes of a few rounds, which have imported and collected, and wait to be forked."""

    def __init__(self, stage: Stage, starts: Sequence[Start], seed: int) -> None:
        self.stage, self.starts, self.seed, self.rounds = stage, starts, seed, 0
        self._sides: list[EarlyChild] = []
        try:
            for start in starts:
                self._sides.append(EarlyChild(stage.spawner.spawn(start.spec), start.job))
        except PerfgateError:
            self.close()
            raise

    def forked(self) -> list[Child]:
        """Return the two sides of one round, or none if one of them cannot be forked."""
        forks: list[Child] = []
        try:
            for start, side in zip(self.starts, self._sides):
                if not self.rounds:
                    side.send(start.job)
                    while not isinstance(side.receive(self.stage.timeout_s), Collected):
                        """Ignores the messages of a side that waits for another process."""
                forks.append(side.fork())
        except PerfgateError:
            for fork in forks:
                fork.close()
            raise
        self.rounds += 1
        return forks

    @property
    def spent(self) -> bool:
        from pytest_perfgate.core.judge.rounds import FORKS

        return self.rounds >= FORKS

    def close(self) -> None:
        for side in self._sides:
            side.close()


class NextRound:
    """Decides how the sides of a round start: as fresh processes, possibly during other rounds, or as forks."""

    def __init__(self, stage: Stage, arms: Sequence[Arm], own: OwnFiles) -> None:
        self._stage, self._arms, self._own = stage, arms, own
        self.waiting = WaitingChildren(stage.spawner)
        self._preloads: list[Preload] = []
        """The preload of the current rounds, and the next one."""
        self.refused = ""
        """The reason why forking has ended."""

    def starts(self, cases: Sequence[Case], seed: int, start: str = "") -> list[Start]:
        """Return the arguments for the sides of a round; the base may run files of its own revision."""
        job = replace(self._stage.job, cases=tuple(cases), beside=True, start=start)
        return [
            Start(spec=self._stage.spec(arm, cases, seed), job=replace(job, modules=arm.modules, files=files))
            for arm, files in zip(self._arms, (self._own.files(cases), ()))
        ]

    def open(self, cases: Sequence[Case], seed: int, rounds: Sequence[PairedRound]) -> tuple[list[Start], list[Child]]:
        """Return the arguments for a round, and its processes if both are ready, else none."""
        why = self._why_fresh(cases, rounds)
        if why == "":
            try:
                preload = self._preload(cases, seed)
                forks, how = preload.forked(), ", ".join(f"{name}={text}" for name, text in PRELOADED.items())
            except PerfgateError as fault:
                self.refused = why = fault.what.splitlines()[0]
                self.close()
            else:
                return self.starts(cases, seed, f"{FORK}{preload.seed}: {how}"), forks
        wanted = self.starts(cases, seed, f"fresh interpreter: {why}" if why else "")
        return wanted, self.waiting.take(wanted)

    def begin(self, cases: Sequence[Case], seed: int, rounds: Sequence[PairedRound]) -> None:
        """Start the processes early if no host clock is measuring; a failure is raised when their round begins."""
        self.waiting.take(())
        if not self._stage.early or not on_devices(cases, rounds):
            return
        why = self._why_fresh(cases, rounds)
        with suppress(PerfgateError):
            if why == "":
                if [preload.spent for preload in self._preloads] == [True]:
                    self._preloads.append(self._preloaded(cases, seed))
                return
            for start in self.starts(cases, seed, f"fresh interpreter: {why}" if why else ""):
                self.waiting.begin(start)

    def close(self) -> None:
        self.waiting.take(())
        while self._preloads:
            self._preloads.pop().close()

    def refuse(self, fault: PerfgateError, cases: list[Case]) -> list[Case]:
        """Stop forking, because waiting processes died before their first test."""
        self.refused = fault.what.splitlines()[0]
        return cases

    def _why_fresh(self, cases: Sequence[Case], rounds: Sequence[PairedRound]) -> str | None:
        """Return why these cases are not forked: "" if they are, ``None`` if forking was not requested."""
        forks = self._stage.forks
        if forks is None or not on_devices(cases, rounds):
            return None
        if any("compile_time" in case.plan.figures for case in cases):
            return "a first call needs a process that has compiled nothing else"
        if self._stage.spec(self._arms[0], cases, 1).prefix:
            return "a launcher starts the processes"
        mine = {case.nodeid for case in cases}
        calls = [c for round_ in rounds if round_.nodeid in mine for c in (*round_.base, *round_.head)]
        unshown = next((c.key for c in calls if forks(c.key, c.device.key) is None), None)
        unknown = f"no A/A pairs on this machine show that forks of {unshown} scatter no more"
        return unknown if unshown else self.refused

    def _preload(self, cases: Sequence[Case], seed: int) -> Preload:
        """Return the preload with rounds left: the current, the next, or a new one."""
        while self._preloads:
            first = self._preloads[0]
            starts = zip(first.starts, self._waiting(cases, first.seed))
            if not first.spent and all(start.serves(wanted) for start, wanted in starts):
                return first
            self._preloads.pop(0).close()
        self._preloads.append(self._preloaded(cases, seed))
        return self._preloads[0]

    def _preloaded(self, cases: Sequence[Case], seed: int) -> Preload:
        return Preload(self._stage, self._waiting(cases, seed), seed)

    def _waiting(self, cases: Sequence[Case], seed: int) -> list[Start]:
        """Return the arguments of a preload's sides; the seed is that of the first round."""
        return [
            Start(
                spec=replace(start.spec, env=tuple(sorted({**dict(start.spec.env), **PRELOADED}.items()))),
                job=replace(start.job, preload=True),
            )
            for start in self.starts(cases, seed)
        ]
