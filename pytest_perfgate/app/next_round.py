"""The processes of the round to come, started while this one measures on a device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Job
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.protocol import Answer, Child, ChildSpawner, ChildSpec, Command


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
