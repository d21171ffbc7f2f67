"""Clocks of NVIDIA's and AMD's devices: locked, watched, or ignored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.bindings.border import why_disabled
from pytest_perfgate.adapters.bindings.nvml import CardHealth, Nvml, XidListener
from pytest_perfgate.adapters.devices.clock_locks import Card, OwnLock, read_back, run_head, take_lock
from pytest_perfgate.adapters.devices.clock_watch import UNLOCKED, DeviceWatch, LockedClocks
from pytest_perfgate.adapters.system.processes import OtherProcesses, other_processes_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import ClockPolicy, Plan

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Availability, Device
    from pytest_perfgate.model.ports import ClockWatch

CLOSE, FAR, PATIENCE_S = 10.0, 20.0, 180.0
"""Degrees below the slowdown temperature at which to wait and to go on, and the longest wait."""


@runtime_checkable
class SupportsHealth(Protocol):
    """A card that counts memory errors of its own, and reports those that its driver records."""

    def health(self) -> CardHealth: ...

    def listener(self) -> XidListener | None: ...


class CardClocks:
    """``lock`` holds the clocks for a time, ``observe`` only reads the card, ``off`` does nothing."""

    def __init__(self, library: Any, name: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self._library = library
        self._sleep = sleep
        self._refused: dict[str, str] = {}
        self._listeners: dict[str, XidListener | None] = {}
        """The listener for errors of each card, from its first measurement in this process."""
        self.tell: Callable[[str], None] | None = None
        """Called when a hot device is waited for."""

    def availability(self) -> Availability:
        availability: Availability = self._library.availability()
        return availability

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """Return the plan with ``try-lock`` decided, and why it is not ``lock``; each card is tried once a process."""
        if plan.clocks is not ClockPolicy.TRY:
            return plan, ""
        name = device.uuid or device.pci or device.name
        if name not in self._refused:
            self._refused[name] = self._refusal(device)
        why = self._refused[name]
        return replace(plan, clocks=ClockPolicy.OBSERVE if why else ClockPolicy.LOCK), why

    @contextmanager
    def hold(self, device: Device, plan: Plan) -> Iterator[ClockWatch]:
        plan = self.settled(device, plan)[0]
        if plan.clocks is ClockPolicy.OFF:
            yield NoWatch("clocks=off")
            return
        reached = self._reach(device)
        if not reached.usable:
            if plan.clocks is ClockPolicy.LOCK:
                raise PerfgateError("clocks-unsupported", reached.why, fix=reached.fix)
            yield NoWatch(reached.why)
            return
        card = self._library.device(device)
        silent = "" if plan.clocks is ClockPolicy.LOCK else _why_unreadable(card)
        if silent:
            yield NoWatch(silent)
            return
        cool = self._await_cooling(card, device.name)
        locked = take_lock(card, lock_frequency(device)) if plan.clocks is ClockPolicy.LOCK else None
        lock = self._lock_of(locked) if locked else UNLOCKED
        watch = DeviceWatch(card, lock=lock, other_processes=other_processes)
        watch.note("clocks", "locked" if locked else "observed")
        if cores := os.environ.get("PERFGATE_CORES", ""):
            watch.note("cores", f"{cores}, next to the card")
        if locked:
            watch.note("memory clock lock", locked.memory)
        for problem in cool:
            watch.add(problem)
        try:
            if locked:
                watch.note("clock lock", read_back(card, lock, self._sleep))
            with self._errors(card, device, watch):
                watch.begin()
                try:
                    yield watch
                finally:
                    watch.end()
        finally:
            if locked:
                locked.restoration.run()

    @contextmanager
    def _errors(self, card: Card, device: Device, watch: DeviceWatch) -> Iterator[None]:
        """Invalidate figures of a card that counts errors, or whose driver records some, during the measurement."""
        device_card: object = card
        if not isinstance(device_card, SupportsHealth):
            yield
            return
        name = device.uuid or device.pci
        if name not in self._listeners:
            self._listeners[name] = device_card.listener()
        listener = self._listeners[name]
        before = device_card.health()
        if listener is not None:
            listener.new_errors()  # earlier events have other causes
        yield
        after = device_card.health()
        xids = listener.new_errors() if listener is not None else ()
        for text in faults_of(before, after, xids):
            watch.add(Problem(code="device-faulty", what=text, retry=False))
        if health := health_text(after):
            watch.note("memory errors", health)

    def _lock_of(self, lock: OwnLock) -> LockedClocks:
        """Return a lock for the watch; some libraries lock only an upper bound."""
        cap = bool(getattr(self._library, "cap", False))
        return LockedClocks(lock.sm_hz, lock.memory_hz, base=lock.sm_hz is None, cap=cap)

    def _reach(self, device: Device) -> Availability:
        """Return whether the library can query this card; one that hangs is an error, not a missing library."""
        availability = self.availability()
        if why := why_disabled(str(getattr(self._library, "maker", ""))):
            raise PerfgateError("driver-silent", why)
        if availability.usable and not (device.uuid or device.pci):
            why = f"{device.name} cannot be matched to a card: its library gives neither UUID nor bus"
            return replace(availability, usable=False, why=why)
        return availability

    def _refusal(self, device: Device) -> str:
        """Return why this process may not lock, found by locking and resetting the card; "" if it may."""
        card = self._reach(device)
        if not card.usable:
            return card.why
        try:
            take_lock(self._library.device(device), lock_frequency(device)).restoration.run()
        except PerfgateError as error:
            if error.code.name not in {"clocks-denied", "clocks-unsupported"}:
                raise
            return error.what
        return ""

    def _await_cooling(self, card: Card, name: str) -> tuple[Problem, ...]:
        """Wait while the device is within ten degrees of its slowdown temperature."""
        limit = card.slowdown_temperature()
        if limit is None or limit - (heat := card.sample().temperature) >= CLOSE:
            return ()
        waited = 0.0
        if self.tell:
            at = f"{name} has {heat:.0f} degrees C and slows down at {limit:.0f}"
            self.tell(f"{at}; this run waits until it has {limit - FAR:.0f}, {PATIENCE_S:.0f} s at most")
        while waited < PATIENCE_S:
            self._sleep(1.0)
            waited += 1.0
            if limit - card.sample().temperature >= FAR:
                return ()
        text = f"{card.sample().temperature:.0f} of {limit:.0f} degrees C"
        return (Problem(code="hot", what="the device did not cool down", evidence=(("temperature", text),)),)


def faults_of(before: CardHealth, after: CardHealth, xids: Sequence[int] = ()) -> Iterator[str]:
    """Yield why a card's measurement between two states of its health is unreliable."""
    grown = (after.uncorrected or 0) - (before.uncorrected or 0)
    if grown > 0:
        yield f"{_plural(grown, 'error')} of its memory not corrected while measuring"
    if xids:
        yield f"its driver logged an error while measuring: Xid {', '.join(map(str, dict.fromkeys(xids)))}"
    if (after.remapped or 0) > (before.remapped or 0):
        yield "a row of its memory was replaced while measuring"
    if after.failed:
        yield "a row of its memory is bad, and no spare one is left for it"
    elif after.pending:
        yield "a bad row of its memory waits for a reset of the card"


def health_text(health: CardHealth) -> str:
    """Return ``2 corrected, 0 not, 1 row replaced``; "" for a card that counts nothing."""
    parts = [
        f"{health.corrected} corrected" if health.corrected is not None else "",
        f"{health.uncorrected} not" if health.uncorrected is not None else "",
        f"{_plural(health.remapped, 'row')} replaced" if health.remapped else "",
    ]
    return ", ".join(filter(None, parts))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _why_unreadable(card: Card) -> str:
    """Return why a card does not report its clocks, as some instances and virtual cards; "" if it does."""
    try:
        card.sample()
    except PerfgateError as error:
        if error.code.name == "clocks-unsupported":
            return error.what
    return ""


class NvmlClocks(CardClocks):
    """Clocks through NVML."""

    def __init__(self, nvml: Nvml | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(nvml or Nvml(), "nvml", sleep=sleep)


class AmdClocks(CardClocks):
    """Clocks through amdsmi."""

    def __init__(self, amd: Amd | None = None, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(amd or Amd(), "amdsmi", sleep=sleep)


class MachineClocks:
    """Clocks of devices of either maker."""

    name = "clocks"

    def __init__(self, nvidia: CardClocks | None = None, amd: CardClocks | None = None) -> None:
        self._nvidia, self._amd = nvidia or NvmlClocks(), amd or AmdClocks()

    def tell_waits(self, tell: Callable[[str], None] | None) -> None:
        """Set the function that is called when a hot device is waited for."""
        self._nvidia.tell = self._amd.tell = tell

    def availability(self) -> Availability:
        nvidia = self._nvidia.availability()
        if nvidia.usable:
            return nvidia
        amd = self._amd.availability()
        return amd if amd.usable else nvidia

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        return self._of(device).settled(device, plan)

    def hold(self, device: Device, plan: Plan) -> AbstractContextManager[ClockWatch]:
        return self._of(device).hold(device, plan)

    def _of(self, device: Device) -> CardClocks:
        return self._amd if device.arch.startswith("gfx") else self._nvidia


def lock_frequency(device: Device) -> float | None:
    """Return the clock that the card holds under any load, by the catalogue; None to request the base clock."""
    return device.spec.lock_hz if device.spec else None


def other_processes(pids: tuple[int, ...]) -> OtherProcesses:
    return other_processes_of(pids, run_head())


class NoWatch:
    """A watch that observed nothing, with the reason."""

    def __init__(self, why: str) -> None:
        self._why = why

    def problems(self) -> tuple[Problem, ...]:
        return ()

    def clock_hz(self) -> tuple[float, ...]:
        return ()

    def watts(self) -> float | None:
        return None

    def capped(self) -> float | None:
        return None

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("clocks", f"not observed: {self._why}"),)


def answering_cards(library: Any) -> tuple[list[Any], list[str]]:
    """Return each card with its name, or why one of them does not answer."""
    try:
        return [(card, card.described().name) for card in library.every()], []
    except PerfgateError as lost:
        return [], [f"{lost.what}: {lost.fix}"]
