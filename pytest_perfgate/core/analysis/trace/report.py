"""The default report of a trace: where the time went, what took it, what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.survey import Survey, timelines
from pytest_perfgate.core.analysis.trace.tables import kernel_table, operator_table, roofline_table, timeline_table
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Bullets, Document, Paragraph, Section
from pytest_perfgate.model.problem import Finding

UNSEEN = (
    ("bank conflicts, coalescing, cache hits, stall reasons", "ncu, or rocprof on AMD"),
    ("occupancy and registers", "ncu, or the cubin: perfgate inspect KERNEL.cubin"),
    ("why the host was late", "a profile with stacks, or the trace in Perfetto"),
)
"""What a trace cannot tell, and what can."""


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
        blocks.append(Section(title=title, blocks=(timeline_table(line),)))
    if rows:
        top = seen.settings.top
        blocks.append(Section(title="Operators", blocks=(operator_table(rows, limit=2 * top),)))
        blocks.append(Section(title="Roofline", blocks=(roofline_table(rows, roof, limit=2 * top),)))
        blocks.append(Section(title="Kernels", blocks=(kernel_table(kernels, limit=2 * top),)))
    blocks.append(Section(title="Findings", blocks=(findings_block(found),)))
    blocks.append(Section(title="Not observable in a trace", blocks=(unseen_block(),)))
    return Document(title=f"Trace {name_of(seen)}", subtitle=subtitle(seen), blocks=tuple(blocks))


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
    parts += [f"{lost:,} host events straddle and are not in the tree"] if lost else []
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
