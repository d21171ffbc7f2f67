"""The clocks of several devices at once: a case on four of them is spoiled by any one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pytest_perfgate.app.machine import settled
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import Clocks, ClockWatch
from pytest_perfgate.model.problem import Problem


class Together:
    """Holds the clocks of a device and of its companions."""

    def __init__(self, clocks: Clocks, companions: Sequence[Device]) -> None:
        self.name = clocks.name
        self._clocks, self._companions = clocks, companions

    def availability(self) -> Availability:
        return self._clocks.availability()

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """Locked where all of them may be, else observed, and why."""
        found = plan, ""
        for card in self._like(device):
            found = settled(card, plan, self._clocks)
            if found[1]:
                break
        return found

    @contextmanager
    def hold(self, device: Device, plan: Plan) -> Iterator[ClockWatch]:
        with ExitStack() as stack:
            cards = self._like(device)
            yield Watches(cards, [stack.enter_context(self._clocks.hold(card, plan)) for card in cards])

    def _like(self, device: Device) -> tuple[Device, ...]:
        """Companions are of the same kind, and so have its data sheet."""
        return (device, *(replace(card, spec=device.spec, arch=device.arch) for card in self._companions))


class Watches:
    """What several watches saw; clocks, watts and facts are those of the first."""

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
        """Of the device that was held down the longest: the others wait for it."""
        return max((share for watch in self._watches if (share := watch.capped()) is not None), default=None)

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (*self._watches[0].facts(), ("devices watched", str(len(self._watches))))
