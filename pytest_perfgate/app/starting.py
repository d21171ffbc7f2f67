"""How the two processes of a round start, and those of the next one while this one measures on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.app.lockstep import Texts, TurnTiming
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import ChildSpawner, ChildSpec, Job
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import Answer, Child, Command
    from pytest_perfgate.model.verdict import Arm, PairedRound


@array_value
class Stage:
    """What a comparison needs of the world."""

    spawner: ChildSpawner
    spec: Callable[[Arm, Sequence[Case], int], ChildSpec]
    """A child of an arm; the number of the round is the seed that both sides share."""
    job: Job
    timeout_s: float
    say: Callable[[str], None]
    keep: Callable[[Sequence[PairedRound]], None]
    """Called after every round: an interrupted comparison goes on where it stopped."""
    clock: Callable[[], float]
    beat: TurnTiming = TurnTiming()
    budget_s: float = 0.0
    """Zero spends what the design asks for."""
    texts: Texts | None = None
    """Test files at the base and here: for those of the head that the base arm cannot collect."""
    show: Callable[[str, int, str], None] | None = None
    """Told of each test that both sides went through: the round, which of its tests this is, the test."""
    early: bool = False
    """Whether there are cores on which the next round's processes start meanwhile."""
    hold: Callable[[Sequence[str]], AbstractContextManager[object]] = nullcontext
    """Leases on all of these devices, for the children to inherit."""


@value
class Start:
    """What a process is started with."""

    spec: ChildSpec
    job: Job

    def serves(self, other: Start) -> bool:
        """Whether a process that was started so stands for another: same arm and seed, and its tests among these."""
        mine, theirs = ({case.nodeid for case in one.job.cases} for one in (self, other))
        return mine >= theirs and self._beside() == other._beside()

    def _beside(self) -> tuple[ChildSpec, Job]:
        return replace(self.spec, argv=()), replace(self.job, cases=())


def starts(
    stage: Stage, arms: Iterable[tuple[Arm, tuple[tuple[str, str], ...]]], cases: Sequence[Case], seed: int
) -> list[Start]:
    """Of each arm, with the test files that it has in place of the head's."""
    named = [(arm, replace(stage.job, modules=arm.modules, beside=True, files=files)) for arm, files in arms]
    return [Start(spec=stage.spec(arm, cases, seed), job=replace(job, cases=tuple(cases))) for arm, job in named]


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

    def __init__(self, spawner: ChildSpawner) -> None:
        self._spawner = spawner
        self._early: list[tuple[Start, EarlyChild]] = []

    def begin(self, starts: Sequence[Start]) -> None:
        """One that does not start now is started, and complained of, when its round begins."""
        self.close()
        with suppress(PerfgateError):
            for start in starts:
                self._early.append((start, EarlyChild(self._spawner.spawn(start.spec), start.job)))

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
