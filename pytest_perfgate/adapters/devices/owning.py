"""A lock on a card's clocks: taken, put back, and in the name of whoever has it."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from pytest_perfgate.adapters.devices.locks import ClockLock, keep_lock, read_lock, remove_lock, write_lock
from pytest_perfgate.adapters.devices.restoring import Restoration
from pytest_perfgate.adapters.devices.sight import Watched
from pytest_perfgate.model.errors import PerfgateError


class Card(Watched, Protocol):
    """A device of a management library."""

    def uuid(self) -> str: ...

    def slowdown_temperature(self) -> float | None: ...

    def lock(self, sm_hz: float | None) -> None: ...

    def lock_memory(self) -> float: ...

    def unlock(self, *, memory: bool = False) -> None: ...


class Held:
    """A lock that this process owns."""

    def __init__(self, sm_hz: float | None, restoration: Restoration, memory: str | float = "by hand") -> None:
        self.sm_hz = sm_hz
        self.restoration = restoration
        self.memory_hz = memory if isinstance(memory, float) else None
        self.memory = f"at {memory / 1e6:.0f} MHz" if isinstance(memory, float) else memory
        """Its clock, or why there is none."""


def take_lock(card: Card, sm_hz: float | None) -> Held:
    """Name the owner, lock, read back; whatever fails leaves the card as it was."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and other.by_hand:
        return Held(other.sm_hz, Restoration(_nothing))
    if other and not other.stale and not other.mine:
        raise PerfgateError("clocks-held", f"process {other.pid} holds the clocks of {uuid}")
    restoration = Restoration(lambda: put_back(card))
    restoration.arm()
    with restoration.undisturbed():
        try:
            write_lock(uuid, sm_hz)
            card.lock(sm_hz)
        except BaseException as error:
            restoration.cancel()
            _forget(uuid, error, other)
            raise
        memory = _memory_locked(card, uuid, sm_hz)
    return Held(sm_hz, restoration, memory)


def _forget(uuid: str, error: BaseException, before: ClockLock | None) -> None:
    """Of a lock that was not taken only what was there before stays on file; of one that may be yet, its owner."""
    if _unanswered(error):
        return
    with suppress(PerfgateError):
        keep_lock(before) if before else remove_lock(uuid)


def _unanswered(error: BaseException) -> bool:
    """Whether the driver may do after all what it was asked for: nobody knows."""
    return isinstance(error, PerfgateError) and error.code.name == "driver-silent"


def _memory_locked(card: Card, uuid: str, sm_hz: float | None, *, by_hand: bool = False) -> str | float:
    """The clock at which the memory is held, or why it is not; the lock of the SMs stays either way."""
    try:
        write_lock(uuid, sm_hz, memory=True, by_hand=by_hand)
        return card.lock_memory()
    except PerfgateError as error:
        with suppress(PerfgateError):
            write_lock(uuid, sm_hz, memory=_unanswered(error), by_hand=by_hand)
        return f"not available: {error.what}"


def _nothing() -> None:
    """A lock that a person put on stays."""


def lock_for_good(card: Card, sm_hz: float | None) -> None:
    """Lock until somebody resets: what a person asks for."""
    uuid = card.uuid()
    other = read_lock(uuid)
    if other and not other.stale and not other.by_hand:
        raise PerfgateError("clocks-held", f"process {other.pid} holds the clocks of {uuid}")
    write_lock(uuid, sm_hz, by_hand=True)
    try:
        card.lock(sm_hz)
    except PerfgateError as error:
        _forget(uuid, error, other)
        raise
    _memory_locked(card, uuid, sm_hz, by_hand=True)


def put_back(card: Card) -> None:
    """Unlock and strike out the owner; a failure is said loudly and stays on file."""
    uuid = card.uuid()
    lock = read_lock(uuid)
    try:
        card.unlock(memory=bool(lock and lock.memory))
    except PerfgateError as error:
        raise PerfgateError("clocks-not-restored", f"{uuid}: {error.what}") from error
    remove_lock(uuid)
