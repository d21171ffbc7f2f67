"""All tables of `perfgate doctor --verbose`, as a document, and what both of its views need from adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Protocol

from pytest_perfgate.core.render.words import quantity, signed
from pytest_perfgate.model.device import SupportsWait
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Block, Bullets, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.protocol import TIMED
from pytest_perfgate.model.values import Dimension, array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Availability, Device
    from pytest_perfgate.model.ports import Call, Runtime, Timer

ROUNDS = 8
"""Pairs of an A/A comparison."""

QUIET = 0.02
"""The largest shift and scatter of a quiet machine."""


class StaleLock(Protocol):
    """A recorded lock on clocks whose owner may be gone."""

    @property
    def device(self) -> str: ...

    @property
    def pid(self) -> int: ...

    @property
    def stale(self) -> bool: ...


@array_value
class DoctorTools:
    """What the doctor examines."""

    devices: Sequence[Device]
    libraries: Sequence[Availability]
    runtimes: Sequence[Runtime]
    """Libraries that work here, each with its device at the same position."""
    timers: Sequence[Timer]
    management: Availability
    """The library that watches and locks clocks."""
    profilers: Sequence[Availability]
    gpu_permissions: Sequence[Availability]
    host_permissions: Sequence[Availability]
    locks: Sequence[StaleLock]
    visible: str
    restricted: bool
    """Whether an environment variable hides devices from libraries."""
    resolution: Callable[[Runtime, str], tuple[float | None, float | None]]
    """Returns overhead and resolution of a timer with a library."""
    driven: Sequence[str] = ()
    """Cards that the driver sees, whether a library can use them or not."""
    faulty: Sequence[str] = ()
    """Faults of the cards, in sentences: errors that they report, or figures behind those of similar cards."""

    @property
    def others(self) -> tuple[Availability, ...]:
        """Return clocks, profilers and permissions."""
        return (self.management, *self.profilers, *self.gpu_permissions, *self.host_permissions)


def diagnosis(doctor_tools: DoctorTools, same: tuple[float, float] | None) -> Document:
    """Return the whole diagnosis; ``same`` is the shift and scatter of the A/A comparison."""
    blocks: tuple[Block, ...] = (
        Bullets(items=tuple(device_words(device) for device in doctor_tools.devices)),
        Paragraph(text=f"Visible to libraries: {doctor_tools.visible}."),
        Section(title="Libraries", blocks=(Bullets(items=tuple(map(words, doctor_tools.libraries))),)),
        Section(title="Timers", blocks=(timers_table(doctor_tools), Bullets(items=tuple(unsuited(doctor_tools))))),
        Section(
            title="Clocks, profilers, permissions", blocks=(Bullets(items=tuple(map(words, doctor_tools.others))),)
        ),
        *(Paragraph(text=text) for text in (*doctor_tools.faulty, *left_locked(doctor_tools.locks))),
        *_same_code_blocks(same),
    )
    return Document(title="Doctor", blocks=(Section(title="This machine", blocks=blocks),))


def device_words(device: Device) -> str:
    """Return ``host-epyc-7763-2: AMD EPYC 7763, 31 GiB, no data sheet``."""
    memory = (quantity(device.memory_bytes, Dimension.BYTES),) if device.memory_bytes else ()
    sheet = f"data sheet {device.spec.name}" if device.spec else "no data sheet"
    return f"{device.key}: {', '.join((device.name, *memory, sheet))}"


def words(availability: Availability) -> str:
    """Return what works, with its version, or why it does not, with the fix."""
    if availability.usable:
        return f"yes  {availability.name}{f': {availability.version}' if availability.version else ''}"
    return f"no   {availability.name}: {availability.why}{f'; next: {availability.fix}' if availability.fix else ''}"


def timers_table(doctor_tools: DoctorTools) -> Table:
    """Return each timer that works with a library here, with its overhead and resolution."""
    pairs = (
        (runtime, timer) for runtime in doctor_tools.runtimes for timer in doctor_tools.timers if timer.name != "auto"
    )
    usable = [(runtime, timer) for runtime, timer in pairs if timer.availability(runtime).usable]
    rows = [(runtime.name, timer.name, *figures(doctor_tools, runtime, timer.name)) for runtime, timer in usable]
    columns = Column.header("library | timer | overhead: time | resolution: time")
    return Table(columns=columns, rows=tuple(rows))


def unsuited(doctor_tools: DoctorTools) -> Iterator[str]:
    """Yield the timers that do not work with a library, grouped by reason."""
    for runtime in doctor_tools.runtimes:
        reasons: dict[str, list[str]] = {}
        for timer in doctor_tools.timers:
            availability = timer.availability(runtime)
            why = tried(doctor_tools, runtime, timer.name)[1] if availability.usable else availability.why
            if timer.name != "auto" and why:
                reasons.setdefault(why, []).append(timer.name)
        yield from (f"{runtime.name} without {', '.join(names)}: {why}" for why, names in reasons.items())


def same_against_same(call: Call, runtime: Runtime, timer: Timer, seconds: float) -> tuple[float, float]:
    """Time one call against itself in turns; return the shift and the scatter of the pairs, ideally small."""
    plan = replace(Plan(), budget_ns=seconds * 1e9 / (2 * ROUNDS), warmup_ns=20e6, min_samples=5)
    shifts = []
    for number in range(ROUNDS):
        first, second = (median(timer.measure(call, plan, runtime).durations) for _ in range(2))
        shifts.append((second / first - 1) * (1 if number % 2 else -1))
    middle = median(shifts)
    return middle, median(abs(shift - middle) for shift in shifts)


def figures(doctor_tools: DoctorTools, runtime: Runtime, timer: str) -> tuple[float | None, float | None]:
    """Return overhead and resolution; None for a timer that fails when tried."""
    return tried(doctor_tools, runtime, timer)[0]


def tried(doctor_tools: DoctorTools, runtime: Runtime, timer: str) -> tuple[tuple[float | None, float | None], str]:
    """Return overhead and resolution of a timer, or why it fails when tried although it is available."""
    try:
        return doctor_tools.resolution(runtime, timer), ""
    except PerfgateError as error:
        return (None, None), error.what
    except (RuntimeError, OSError) as fault:
        return (None, None), f"{type(fault).__name__}: {fault}"


def timed_here(availability: Availability, runtimes: Sequence[Runtime]) -> Availability:
    """Return the availability of event mode, which needs a library with a device that has events."""
    if availability.name != TIMED or any(isinstance(runtime, SupportsWait) for runtime in runtimes):
        return availability
    return replace(availability, usable=False, why="no library here has a device with events")


def left_locked(locks: Iterable[StaleLock]) -> tuple[str, ...]:
    """Return a sentence for each lock whose process is gone."""
    return tuple(
        f"Clocks of {lock.device} were left locked by process {lock.pid}, now gone: `perfgate clocks reset`."
        for lock in locks
        if lock.stale
    )


def same_words(same: tuple[float, float]) -> str:
    """Return shift and scatter in a sentence, with their meaning."""
    shift, scatter = signed(same[0]), quantity(same[1], Dimension.FRACTION)
    return f"The same call against itself: shift {shift}, scatter of a pair {scatter}. {noise_note(same)}"


def noise_note(same: tuple[float, float]) -> str:
    """Return whether small slowdowns can be detected here now."""
    if max(abs(same[0]), same[1]) <= QUIET:
        return "This machine is quiet."
    return "Something else is running, or the clock moves: small slowdowns cannot be detected here now."


def _same_code_blocks(same: tuple[float, float] | None) -> tuple[Block, ...]:
    if same is None:
        return ()
    shift, scatter = same
    columns = Column.header("the same call against itself | shift: fraction | scatter of a pair: fraction")
    return (Table(columns=columns, rows=(("host", shift, scatter),), note=noise_note(same)),)
