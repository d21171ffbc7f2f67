"""Tables of devices, clocks and measured ceilings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING, Protocol

from pytest_perfgate.core.analysis.work import typed_rate
from pytest_perfgate.core.render.words import display_width
from pytest_perfgate.model.device import Availability, Ceilings, Device, DeviceSpec, Peak
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Cell, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.ports import Call

_SHOWN = ("fp64", "fp32", "tf32", "bf16", "fp8", "int8", "fp4")

_LEAST_NEEDED = ("confidence", "units", "fp64", "int8", "tf32", "fp4", "fp32")
"""Columns that a narrow terminal drops, in this order."""


def catalogue_document(specs: Sequence[DeviceSpec], width: int = 0) -> Document:
    """Return one row for each device, with dense rates as in the data sheet, in the columns that fit the width."""
    from pytest_perfgate.core.render.text import table_lines

    table = _catalogue(specs, ())
    for count in range(1, len(_LEAST_NEEDED) + 1) if width else ():
        if all(display_width(line) <= width for line in table_lines(table)):
            break
        table = _catalogue(specs, _LEAST_NEEDED[:count])
    return Document(title="Devices", blocks=(table,))


def _catalogue(specs: Sequence[DeviceSpec], left_out: Sequence[str]) -> Table:
    columns = (
        *Column.header("device | arch"),
        *Column.header("units: count | bandwidth: bandwidth", absent="-"),
        *(Column(name=dtype, dimension=Dimension.FLOPS, absent="-") for dtype in _SHOWN),
        *Column.header("confidence"),
    )
    rows = []
    for spec in specs:
        peaks = ((dtype, spec.peak(dtype)) for dtype in _SHOWN)
        rates = [typed_rate(peak.datasheet, dtype) if peak else None for dtype, peak in peaks]
        rows.append((spec.name, spec.arch, spec.multiprocessors, spec.bandwidth, *rates, spec.confidence))
    places = [at for at, column in enumerate(columns) if column.name not in left_out]
    note = "Dense rates as printed. `perfgate devices NAME` shows clocks, limits and sources."
    note += f" Not shown for want of room: {', '.join(left_out)}." if left_out else ""
    shown = tuple(tuple(row[at] for at in places) for row in rows)
    return Table(columns=tuple(columns[at] for at in places), rows=shown, note=note)


def sheet_document(specs: Sequence[DeviceSpec]) -> Document:
    """Return every figure of one or a few devices."""
    return Document(title="Data sheets", blocks=tuple(_sheet(spec) for spec in specs))


def _sheet(spec: DeviceSpec) -> Section:
    figures = "data sheet: flops | at: clock | a clock and unit: count | at boost: flops | reached: flops"
    columns = (*Column.header("dtype"), *Column.header(figures, absent="-"))
    peaks = Table(columns=columns, rows=tuple(_peak_row(spec, peak) for peak in spec.peaks))
    facts = Table(columns=Column.header("what | figure"), rows=tuple(_facts(spec)))
    source = f"Source: {spec.source}; confidence {spec.confidence or 'unstated'}."
    words = (Paragraph(text=text) for text in (source, spec.note) if text)
    return Section(title=spec.name, blocks=(facts, peaks, *words))


def _peak_row(spec: DeviceSpec, peak: Peak) -> tuple[str | float | None, ...]:
    boost = spec.multiprocessors * (peak.per_clock_per_sm or 0.0) * (spec.boost_hz or 0.0) or None
    reached = next((p.datasheet for p in spec.achievable if p.dtype == peak.dtype), None)
    printed, *more = (typed_rate(rate, peak.dtype) for rate in (peak.datasheet, boost, reached))
    return (peak.dtype, printed, peak.implied_hz, peak.per_clock_per_sm, *more)


def _facts(spec: DeviceSpec) -> list[tuple[str, str]]:
    """Return texts with units, since each line has another unit."""
    facts = (
        ("architecture", spec.arch),
        ("multiprocessors", spec.multiprocessors),
        ("base clock", spec.base_hz and f"{spec.base_hz / 1e6:.0f} MHz"),
        ("boost clock", spec.boost_hz and f"{spec.boost_hz / 1e6:.0f} MHz"),
        ("clock to lock at", f"{spec.lock_hz / 1e6:.0f} MHz" if spec.lock_hz else "base"),
        ("memory", spec.memory_bytes and f"{spec.memory_bytes / 2**30:.0f} GiB"),
        ("bandwidth", spec.bandwidth and f"{spec.bandwidth / 1e9:.0f} GB/s"),
        ("L2", spec.l2_bytes and f"{spec.l2_bytes / 2**20:g} MiB"),
        ("last cache", spec.cache_bytes and f"{spec.cache_bytes / 2**20:g} MiB"),
        ("power", spec.tdp_watts and f"{spec.tdp_watts:.0f} W"),
    )
    return [(name, str(figure)) for name, figure in facts if figure]


def ceilings_document(device: Device, ceilings: Ceilings | None, where: str) -> Document:
    """Return the measured ceilings, their basis and where they are stored."""
    if ceilings is None:
        text = f"none measured for {device.key}: `perfgate ceilings`"
        return Document(title="Ceilings", blocks=(Paragraph(text=text),))
    products = tuple((dtype, typed_rate(rate, dtype)) for dtype, rate in ceilings.compute)
    columns = (*Column.header("product"), *Column.header("rate: flops", absent="-"))
    rates = Table(columns=columns, rows=products)
    copied = (("read and written", ceilings.bandwidth),)
    copy = Table(columns=Column.header("copy | rate: bandwidth"), rows=copied)
    basis = Table(columns=Column.header("load | measured"), rows=tuple(ceilings.facts))
    text = f"Kept in {where}." if where else "Not kept by this command."
    head = Paragraph(text=f"{device.key}, {ceilings.when}, {ceilings.method}. {text}")
    return Document(title="Ceilings", blocks=(head, rates, copy, basis))


class Sample(Protocol):
    sm_hz: float
    memory_hz: float
    temperature: float
    watts: float | None


class Card(Protocol):
    """A device that reports its clocks."""

    def described(self) -> Device: ...

    def sample(self) -> Sample: ...

    def uuid(self) -> str: ...


class Lock(Protocol):
    """A recorded lock on clocks."""

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
    """Return one row for each card; locks of absent cards have rows of their own."""
    rows: list[Row] = []
    uuids = set()
    for card in cards:
        device, (sample, silent) = card.described(), _read(card)
        uuids.add(card.uuid())
        own = [lock for lock in locks if lock.device == card.uuid()]
        text = "; ".join(lock_words(lock) for lock in own) or "not locked by perfgate"
        rows.append((device.name, card.uuid(), *sample, f"{text}; {silent}" if silent else text))
    rows += [
        (None, lock.device, None, None, None, None, lock_words(lock)) for lock in locks if lock.device not in uuids
    ]
    return tuple(rows)


def _read(card: Card) -> tuple[tuple[float | None, ...], str]:
    """Return clocks, temperature and power, or why a card does not report them, as some MIG instances."""
    try:
        sample = card.sample()
    except PerfgateError as error:
        if error.code.name != "clocks-unsupported":
            raise
        return (None,) * 4, error.what
    return (sample.sm_hz, sample.memory_hz, sample.temperature, sample.watts), ""


def lock_words(lock: Lock) -> str:
    """Return the owner of a lock and whether it runs; for a lock by hand, the clock if the driver still holds it."""
    if lock.by_hand:
        at = f"at {lock.sm_hz / 1e6:.0f} MHz" if lock.sm_hz else "at base"
        return f"locked by hand {at}"
    return f"left locked by process {lock.pid}, which is gone" if lock.stale else f"locked by process {lock.pid}"


def clocks_document(rows: Sequence[Row], availability: Availability) -> Document:
    """Return the table of rows, or the reason why there are none."""
    if not rows:
        why = availability.why if not availability.usable else "the driver sees no device"
        text = f"No clocks to show: {why}" + (f"; next: {availability.fix}" if availability.fix else "")
        return Document(title="Clocks", blocks=(Paragraph(text=text),))
    columns = Column.header("device | id | sm: clock | memory: clock | temperature: temperature | power: power | lock")
    return Document(title="Clocks", blocks=(Table(columns=columns, rows=tuple(rows)),))


def reset(cards: Iterable[Card], locks: Sequence[Lock], lift: Callable[[Card], None]) -> None:
    """Reset every card's clocks, except those that a living process has locked."""
    for card in cards:
        own_locks = [lock for lock in locks if lock.device == card.uuid() and not lock.stale and not lock.by_hand]
        if own_locks:
            raise PerfgateError("clocks-held", f"process {own_locks[0].pid} holds the clocks of {card.uuid()}")
        lift(card)


class Load(Protocol):
    """Work of a known size."""

    name: str
    dtype: str
    flops: float
    bytes: float
    call: Call


PLAN = Plan(cache=Cache.WARM, min_samples=5, max_samples=50, budget_ns=1e9, warmup_ns=100e6)
"""Warm, since every load is larger than the last cache."""

HOST_PLAN = replace(PLAN, max_samples=500, budget_ns=150e6, warmup_ns=20e6)
TURNS = 4
"""On the host each load has short turns, seconds apart: a busy neighbour leaves some of them undisturbed."""

OF_THE_CARD = frozenset(
    {"clocks-denied", "clocks-unsupported", "clocks-held", "driver-silent", "lease-held", "locks-unusable"}
)
"""Errors that would keep every other load from being measured too."""

FEW, WIDE = 5, 1.25
"""The least samples of a ceiling, and by how much its median may exceed the fastest without doubt."""


def why_too_low(durations: Sequence[float]) -> str:
    """Return why a ceiling may be too low: on a busy machine no sample runs undisturbed."""
    spread = median(durations) / min(durations)
    slower = f"half of them {(spread - 1) * 100:.0f} % slower than the fastest: measure again on a quiet machine"
    return f"; WARNING: {slower}" if spread > WIDE else ""


def measured_ceilings(
    device: Device, library: str, take: Callable[[Call], Samples], loads: Iterable[Load], today: str
) -> Ceilings:
    """Return the fastest sample of each load, over all its turns; one that failed is listed with the reason."""
    from pytest_perfgate.core.judge.samples import busy_processors

    rates: dict[str, float] = {}
    facts: dict[str, str] = {}
    samples_by_load: dict[str, list[Samples]] = {}
    bandwidth: float | None = None
    for load in loads:
        try:
            samples = enough_samples(
                take, load.call, sum(len(run.durations) for run in samples_by_load.get(load.name, ()))
            )
        except (PerfgateError, RuntimeError, TypeError) as error:
            if isinstance(error, PerfgateError) and error.code.name in OF_THE_CARD:
                raise
            facts.setdefault(load.name, f"not measured: {str(error).splitlines()[0]}")
            continue
        samples_by_load.setdefault(load.name, []).append(samples)
        seconds = min(samples.durations) / 1e9
        if load.dtype:
            rates[load.dtype] = max(rates.get(load.dtype, 0.0), load.flops / seconds)
        else:
            bandwidth = max(bandwidth or 0.0, load.bytes / seconds)
        durations = [time for run in samples_by_load[load.name] for time in run.durations]
        facts[load.name] = f"{len(durations)} samples by {samples.timer}{why_too_low(durations)}"
    if not rates and bandwidth is None:
        what = "; ".join(f"{name}: {why}" for name, why in facts.items())
        raise PerfgateError("ceilings-none", what or "there are no loads")
    runs = list(chain(*samples_by_load.values()))
    if busy := busy_processors(runs):
        facts["other programs"] = f"WARNING: used {busy:.1f} processors meanwhile: measure again on a quiet machine"
    clocks = [clock for run in runs for clock in run.clock_hz]
    return Ceilings(
        device=device.key,
        compute=tuple(rates.items()),
        bandwidth=bandwidth,
        cache_bytes=device.cache_bytes,
        clock_hz=median(clocks) if clocks else None,
        method=f"fastest sample on {library}",
        when=today,
        facts=tuple(facts.items()),
    )


def enough_samples(take: Callable[[Call], Samples], call: Call, before: int) -> Samples:
    """Return enough samples beside earlier ones; raise at a fault, since a low ceiling would flatter later runs."""
    runs: list[Samples] = []
    while not runs or len(runs) < FEW > before + sum(len(run.durations) for run in runs):
        runs.append(take(call))
        if problem := next(iter(runs[-1].problems), None):
            raise PerfgateError(problem.code, problem.what)
    durations = tuple(chain.from_iterable(run.durations for run in runs))
    clock_hz = tuple(chain.from_iterable(run.clock_hz for run in runs))
    return replace(runs[0], durations=durations, clock_hz=clock_hz)
