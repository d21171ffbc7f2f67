"""Clocks of this machine for a person: what they are, who locked them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.document import Cell, Column, Document, Paragraph, Table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import Dimension


class Sample(Protocol):
    sm_hz: float
    memory_hz: float
    temperature: float
    watts: float | None


class Card(Protocol):
    """A device that tells its clocks."""

    def described(self) -> Device: ...

    def sample(self) -> Sample: ...

    def uuid(self) -> str: ...


class Lock(Protocol):
    """A lock on file."""

    device: str
    pid: int
    path: str
    sm_hz: float | None

    @property
    def stale(self) -> bool: ...

    @property
    def by_hand(self) -> bool: ...


Row = tuple[Cell, ...]


def shown(cards: Iterable[Card], locks: Sequence[Lock]) -> tuple[Row, ...]:
    """One row a card; locks of cards that are not here have rows of their own."""
    rows: list[Row] = []
    known = set()
    for card in cards:
        device, (sample, silent) = card.described(), _read(card)
        known.add(card.uuid())
        own = [lock for lock in locks if lock.device == card.uuid()]
        said = "; ".join(lock_words(lock) for lock in own) or "not locked by perfgate"
        rows.append((device.name, card.uuid(), *sample, f"{said}; {silent}" if silent else said))
    rows += [
        (None, lock.device, None, None, None, None, lock_words(lock)) for lock in locks if lock.device not in known
    ]
    return tuple(rows)


def _read(card: Card) -> tuple[tuple[float | None, ...], str]:
    """Clocks, temperature and power; nothing of a card that does not tell them, as some instances of MIG, and why."""
    try:
        seen = card.sample()
    except PerfgateError as error:
        if error.code.name != "clocks-unsupported":
            raise
        return (None,) * 4, error.what
    return (seen.sm_hz, seen.memory_hz, seen.temperature, seen.watts), ""


def lock_words(lock: Lock) -> str:
    """Who, and whether that one is still there; by hand also where, which a driver that started anew does not keep."""
    if lock.by_hand:
        at = f"at {lock.sm_hz / 1e6:.0f} MHz" if lock.sm_hz else "at base"
        return f"locked by hand {at}"
    return f"left locked by process {lock.pid}, which is gone" if lock.stale else f"locked by process {lock.pid}"


def clocks_document(rows: Sequence[Row], found: Availability) -> Document:
    """The rows, or why there are none."""
    if not rows:
        why = found.why if not found.usable else "the driver sees no device"
        return Document(title="Clocks", blocks=(Paragraph(text=f"No clocks to show: {why}."),))
    columns = (
        Column(name="device"),
        Column(name="id"),
        Column(name="sm", dimension=Dimension.CLOCK),
        Column(name="memory", dimension=Dimension.CLOCK),
        Column(name="temperature", dimension=Dimension.TEMPERATURE),
        Column(name="power", dimension=Dimension.POWER),
        Column(name="lock"),
    )
    return Document(title="Clocks", blocks=(Table(columns=columns, rows=tuple(rows)),))


def reset(cards: Iterable[Card], locks: Sequence[Lock], lift: Callable[[Card], None]) -> None:
    """Put every card's clocks back, but none that a living process holds."""
    for card in cards:
        held = [lock for lock in locks if lock.device == card.uuid() and not lock.stale and not lock.by_hand]
        if held:
            raise PerfgateError("clocks-held", f"process {held[0].pid} holds the clocks of {card.uuid()}")
        lift(card)
