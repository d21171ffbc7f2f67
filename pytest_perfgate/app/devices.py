"""Devices as documents: the catalogue, one data sheet, the devices of this machine."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Availability, Device, DeviceSpec, Peak
from pytest_perfgate.model.document import Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.quantity import Dimension

_SHOWN = ("fp64", "fp32", "tf32", "bf16", "fp8", "int8", "fp4")
_FLOPS = Dimension.FLOPS


def catalogue_document(specs: Sequence[DeviceSpec]) -> Document:
    """One line a device; dense rates as the data sheet prints them."""
    columns = (
        Column(name="device"),
        Column(name="arch"),
        Column(name="units", dimension=Dimension.COUNT, absent="-"),
        Column(name="bandwidth", dimension=Dimension.BANDWIDTH, absent="-"),
        *(Column(name=dtype, dimension=_FLOPS, absent="-") for dtype in _SHOWN),
        Column(name="confidence"),
    )
    rows = tuple(
        (s.name, s.arch, s.multiprocessors, s.bandwidth, *(_rate(s.peak(d)) for d in _SHOWN), s.confidence)
        for s in specs
    )
    note = "Dense rates as printed. `perfgate devices NAME` shows clocks, limits and sources."
    return Document(title="Devices", blocks=(Table(columns=columns, rows=rows, note=note),))


def sheet_document(specs: Sequence[DeviceSpec]) -> Document:
    """Every figure of one or a few devices."""
    return Document(title="Data sheets", blocks=tuple(_sheet(spec) for spec in specs))


def machine_document(here: tuple[Sequence[Device], Sequence[Availability]]) -> Document:
    """What this machine has, and which libraries can use it."""
    devices, libraries = here
    rows = tuple(
        (d.key, d.name, d.kind, d.uuid or d.pci, d.memory_bytes, d.spec.name if d.spec else None) for d in devices
    )
    table = Table(
        columns=(
            Column(name="key"),
            Column(name="device"),
            Column(name="kind"),
            Column(name="id"),
            Column(name="memory", dimension=Dimension.BYTES, absent="-"),
            Column(name="data sheet"),
        ),
        rows=rows,
    )
    return Document(title="This machine", blocks=(table, availability_table("Libraries", libraries)))


def availability_table(title: str, found: Sequence[Availability]) -> Table:
    """What works here, and in a sentence why not."""
    rows = tuple(
        (a.name, "yes" if a.usable else "no", a.version if a.usable else a.why, a.mend if not a.usable else "")
        for a in found
    )
    names = ("name", "works", "version, or why not", "next")
    return Table(columns=tuple(Column(name=name) for name in names), rows=rows, title=title)


def _sheet(spec: DeviceSpec) -> Section:
    clock, flops = Dimension.CLOCK, Dimension.FLOPS
    peaks = Table(
        columns=(
            Column(name="dtype"),
            Column(name="data sheet", dimension=flops, absent="-"),
            Column(name="at", dimension=clock, absent="-"),
            Column(name="a clock and unit", dimension=Dimension.COUNT, absent="-"),
            Column(name="at boost", dimension=flops, absent="-"),
            Column(name="reached", dimension=flops, absent="-"),
        ),
        rows=tuple(_peak_row(spec, peak) for peak in spec.peaks),
    )
    facts = Table(columns=(Column(name="what"), Column(name="figure")), rows=tuple(_facts(spec)))
    words = (Paragraph(text=f"Source: {spec.source}; confidence {spec.confidence or 'unstated'}."),)
    note = (Paragraph(text=spec.note),) if spec.note else ()
    return Section(title=spec.name, blocks=(facts, peaks, *words, *note))


def _peak_row(spec: DeviceSpec, peak: Peak) -> tuple[str | float | None, ...]:
    boost = None
    if peak.per_clock_per_sm and spec.boost_hz:
        boost = spec.multiprocessors * peak.per_clock_per_sm * spec.boost_hz
    reached = next((p.datasheet for p in spec.achievable if p.dtype == peak.dtype), None)
    return (peak.dtype, peak.datasheet, peak.implied_hz, peak.per_clock_per_sm, boost, reached)


def _facts(spec: DeviceSpec) -> list[tuple[str, str]]:
    """Text with units, since each line has its own."""
    asked = (
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
    return [(name, str(figure)) for name, figure in asked if figure]


def _rate(peak: Peak | None) -> float | None:
    return peak.datasheet if peak else None


def ceilings_document(device: Device, ceilings: Ceilings | None, where: str) -> Document:
    """What was measured, on what it rests, where it is kept."""
    if ceilings is None:
        return Document(
            title="Ceilings", blocks=(Paragraph(text=f"none measured for {device.key}: `perfgate ceilings`"),)
        )
    rates = Table(
        columns=(Column(name="product"), Column(name="rate", dimension=_FLOPS, absent="-")),
        rows=tuple(ceilings.compute),
    )
    copy = Table(
        columns=(Column(name="copy"), Column(name="rate", dimension=Dimension.BANDWIDTH)),
        rows=(("read and written", ceilings.bandwidth),),
    )
    basis = Table(columns=(Column(name="load"), Column(name="rests on")), rows=tuple(ceilings.facts))
    kept = f"Kept in {where}." if where else "Not kept by this command."
    said = Paragraph(text=f"{device.key}, {ceilings.when}, {ceilings.method}. {kept}")
    return Document(title="Ceilings", blocks=(said, rates, copy, basis))
