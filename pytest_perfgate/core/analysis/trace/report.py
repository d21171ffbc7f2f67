"""The default report of a trace: where the time went, what took it, what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.survey import Survey, timelines
from pytest_perfgate.core.analysis.trace.tables import (
    brief,
    kernel_table,
    of_host,
    operator_table,
    roofline_table,
    timeline_table,
)
from pytest_perfgate.core.analysis.trace.unseen import UNSEEN
from pytest_perfgate.core.analysis.trace.utilisation import utilised
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Bullets, Document, Paragraph, Section
from pytest_perfgate.model.problem import Finding


def report_document(
    seen: Survey,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    found: Sequence[Finding],
    roof: Roof | None,
) -> Document:
    """The report of one trace in one window."""
    blocks: list[Block] = []
    lines = timelines(seen)
    if not lines:
        blocks.append(Paragraph(text="The trace has no GPU activity: nothing here speaks of kernels or overlap."))
    for device, line in lines.items():
        title = f"Device {device}" if len(lines) > 1 else "Where the time went"
        blocks.append(Section(title=title, blocks=(timeline_table(line, on_host=seen.on_host),)))
    if rows:
        blocks += _tables(seen, rows, kernels, roof)
    blocks.append(Section(title="Findings", blocks=(findings_block(found),)))
    blocks.append(Section(title="Not observable in a trace", blocks=(unseen_block(),)))
    return Document(title=f"Trace {name_of(seen)}", subtitle=subtitle(seen), blocks=tuple(blocks))


def _tables(
    seen: Survey, rows: Sequence[OperatorRow], kernels: Sequence[KernelRow], roof: Roof | None
) -> Iterator[Section]:
    """What took the time; without a GPU there are no kernels."""
    top = 2 * seen.settings.top
    said = utilised(seen, rows, roof)
    for title, table, left_out in (
        ("Operators", operator_table(rows, limit=top), ("running",)),
        ("Roofline", roofline_table(rows, roof, limit=top), ("work", "bytes")),
        ("Kernels", kernel_table(kernels, limit=top), ("stream", "median", "deviation", "min", "max")),
    ):
        if not seen.on_host:
            blocks: tuple[Block, ...] = (brief(table, *left_out),)
        elif title != "Kernels":
            blocks = (of_host(brief(table, *left_out)),)
        else:
            continue
        yield Section(title=title, blocks=(*blocks, Paragraph(text=said)) if said and title == "Roofline" else blocks)


def subtitle(seen: Survey) -> str:
    """Window, rank, device and coverage: what every figure is to be read with."""
    trace = seen.trace
    parts = [f"window: {seen.label}"]
    parts += [f"rank {trace.rank}" + (f" of {trace.world}" if trace.world else "")] if trace.rank is not None else []
    parts += [min(trace.devices)] if trace.devices else []
    if not seen.on_host:
        parts.append(f"coverage {seen.coverage:.1%}" if seen.coverage is not None else "no GPU activity")
    parts += ["no shapes recorded"] if not trace.shapes else []
    lost = seen.tree.dropped
    parts += [f"{lost:,} straddling host event{'s' * (lost > 1)} left out of the tree"] if lost else []
    return " · ".join(parts)


def findings_block(found: Sequence[Finding]) -> Block:
    """Findings as sentences with their trigger."""
    if not found:
        return Paragraph(text="Nothing that the known patterns cover.")
    return Bullets(
        items=tuple(f"{f.title}. {f.detail} [{f.trigger}]" + (f" Next: {f.advice}." if f.advice else "") for f in found)
    )


def unseen_block() -> Block:
    """What a trace cannot tell."""
    return Bullets(items=tuple(f"{what}: use {tool}" for what, tool in UNSEEN))


def name_of(seen: Survey) -> str:
    return seen.trace.path.rpartition("/")[2]
