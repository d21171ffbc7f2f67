"""Explains the machine in one screen: what works here, what does not and why, how finely it can see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

from pytest_perfgate.app.devices import availability_table, machine_document
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.document import Block, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import Call, Runtime, Timer
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import array_value

ROUNDS = 8
"""Pairs of an A/A."""


class StaleLock(Protocol):
    """A lock on clocks that is on file."""

    @property
    def device(self) -> str: ...

    @property
    def pid(self) -> int: ...

    @property
    def stale(self) -> bool: ...


@array_value
class Ward:
    """What the doctor looks at."""

    devices: Sequence[Device]
    libraries: Sequence[Availability]
    runtimes: Sequence[Runtime]
    """Those that work here."""
    timers: Sequence[Timer]
    others: Sequence[Availability]
    """Profilers, clocks, permissions."""
    locks: Sequence[StaleLock]
    visible: str
    resolution: Callable[[Runtime, str], tuple[float | None, float | None]]
    """Overhead and resolution of a timer with a library."""


def diagnosis(ward: Ward, same: tuple[float, float] | None) -> Document:
    """Everything on one screen; ``same`` is the A/A's shift and scatter."""
    blocks: tuple[Block, ...] = (
        *machine_document((ward.devices, ward.libraries)).blocks,
        Paragraph(text=f"Visible to libraries: {ward.visible}."),
        timers_table(ward),
        availability_table("Clocks, profilers, permissions", ward.others),
        *_locks(ward.locks),
        *_same(same),
    )
    return Document(title="Doctor", blocks=(Section(title="This machine", blocks=blocks),))


def timers_table(ward: Ward) -> Table:
    """Each timer with each library that works here."""
    rows = []
    for runtime in ward.runtimes:
        for timer in ward.timers:
            found = timer.availability(runtime)
            said = found.why or (f"chooses of {found.version}" if timer.name == "auto" else "")
            figures = _figures(ward, runtime, timer.name) if found.usable else (None, None)
            rows.append((runtime.name, timer.name, "yes" if found.usable else "no", *figures, said))
    columns = (
        Column(name="library"),
        Column(name="timer"),
        Column(name="works"),
        Column(name="overhead", dimension=Dimension.TIME),
        Column(name="resolution", dimension=Dimension.TIME),
        Column(name="why not"),
    )
    return Table(columns=columns, rows=tuple(rows), title="Timers")


def same_against_same(call: Call, runtime: Runtime, timer: Timer, seconds: float) -> tuple[float, float]:
    """The same call in two roles, in turns: their shift, and the scatter of its pairs; both should be small."""
    plan = replace(Plan(), budget_ns=seconds * 1e9 / (2 * ROUNDS), warmup_ns=20e6, min_samples=5)
    shifts = []
    for number in range(ROUNDS):
        first, second = (median(timer.measure(call, plan, runtime).durations) for _ in range(2))
        shifts.append((second / first - 1) * (1 if number % 2 else -1))
    middle = median(shifts)
    return middle, median(abs(shift - middle) for shift in shifts)


def _figures(ward: Ward, runtime: Runtime, timer: str) -> tuple[float | None, float | None]:
    try:
        return ward.resolution(runtime, timer)
    except PerfgateError:
        return None, None


def _locks(locks: Iterable[StaleLock]) -> tuple[Block, ...]:
    return tuple(
        Paragraph(
            text=f"Clocks of {lock.device} were left locked by process {lock.pid}, now gone: `perfgate clocks reset`."
        )
        for lock in locks
        if lock.stale
    )


def _same(same: tuple[float, float] | None) -> tuple[Block, ...]:
    if same is None:
        return ()
    shift, scatter = same
    columns = (
        Column(name="the same call against itself"),
        Column(name="shift", dimension=Dimension.FRACTION),
        Column(name="scatter of a pair", dimension=Dimension.FRACTION),
    )
    return (Table(columns=columns, rows=(("host", shift, scatter),)),)
