"""Reports for two readers: fair for whoever decides, rough for whoever goes on working."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.roofline import band, place
from pytest_perfgate.core.analysis.trace import tables
from pytest_perfgate.core.analysis.trace.advice import (
    anchor_of,
    recommendation_blocks,
    recommendations,
    wants_replay,
)
from pytest_perfgate.core.analysis.trace.hardware import hardware_table
from pytest_perfgate.core.analysis.trace.identity import library, selection_table, short_name
from pytest_perfgate.core.analysis.trace.impact import impact, impact_table
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.report import findings_block, name_of, subtitle, unseen_block
from pytest_perfgate.core.analysis.trace.stack import stack_document
from pytest_perfgate.core.analysis.trace.summary import summary_blocks
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Bullets, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import array_value


@array_value
class Material:
    """What a standalone report is written from."""

    seen: Survey
    line: Timeline | None
    rows: tuple[OperatorRow, ...]
    kernels: tuple[KernelRow, ...]
    findings: tuple[Finding, ...]
    roof: Roof | None

    @property
    def top(self) -> tuple[OperatorRow, ...]:
        """The argument sets that took longest, until so many operators are among them."""
        names: dict[str, None] = {}
        found = []
        for row in self.rows[: 4 * self.seen.settings.top]:
            names.setdefault(row.name)
            if len(names) > self.seen.settings.top:
                break
            found.append(row)
        return tuple(found)


def standalone_fair(given: Material) -> Document:
    """Summary, recommendations, then all detail once."""
    total = given.line.total if given.line else 0
    impacts = [made for row in given.top if (made := impact(row, given.roof, total)) is not None]
    advised = recommendations(impacts, given.findings)
    detail: list[Block] = [Section(title="Findings", blocks=(findings_block(given.findings),), anchor="findings")]
    names = dict.fromkeys(row.name for row in given.top)
    detail += [_operator_section([row for row in given.top if row.name == name], given.roof) for name in names]
    replays = [i.row.name for i in impacts if wants_replay(i.row, i.fraction)]
    appendix: list[Block] = [
        hardware_table(device=given.roof),
        Paragraph(text="Replay artifacts: " + (", ".join(dict.fromkeys(replays)) or "none recommended") + "."),
    ]
    return Document(
        title=f"{name_of(given.seen)}: standalone analysis",
        subtitle=subtitle(given.seen),
        blocks=(
            Section(title="Executive summary", blocks=summary_blocks(given.seen, given.line, given.rows)),
            Section(title="Recommendations", blocks=recommendation_blocks(advised)),
            Section(title="Detailed analysis", blocks=tuple(detail)),
            Section(
                title="Impact", blocks=(impact_table(impacts),) if impacts else (Paragraph(text=_no_impact(given)),)
            ),
            Section(title="Appendix", blocks=tuple(appendix)),
        ),
    )


def standalone_rough(given: Material) -> Document:
    """Working notes: every table, what is missing, what to ask next."""
    unmodelled = [row for row in given.rows if row.work is None]
    gaps = Table(
        columns=(
            Column(name="operator"),
            Column(name="share", dimension=Dimension.FRACTION),
            Column(name="why it has no work model"),
        ),
        rows=tuple((row.name, row.share, row.why) for row in unmodelled),
        note="A model is one function: pytest_perfgate_operators.",
    )
    blocks: list[Block] = [Section(title="Findings", blocks=(findings_block(given.findings),))]
    blocks += (
        [Section(title="Timeline", blocks=(tables.timeline_table(given.line, on_host=given.seen.on_host),))]
        if given.line
        else []
    )
    blocks += [
        Section(title="Categories", blocks=(tables.category_table(given.rows),)),
        Section(title="Operators by arguments", blocks=(tables.argument_table(given.rows),)),
        Section(title="Roofline", blocks=(tables.roofline_table(given.rows, given.roof),)),
        Section(title="Kernels", blocks=(tables.kernel_table(given.kernels),)),
        Section(title="Kernel selection", blocks=(selection_table(given.rows),)),
        *_trees(given),
        Section(title="Gaps", blocks=(gaps, Paragraph(text=_dropped(given.seen)))),
        Section(title="Questions", blocks=(Bullets(items=_questions(given)),)),
        Section(title="Not observable in a trace", blocks=(unseen_block(),)),
    ]
    return Document(
        title=f"{name_of(given.seen)}: standalone analysis (rough)", subtitle=subtitle(given.seen), blocks=tuple(blocks)
    )


def _trees(given: Material, most: int = 3) -> list[Section]:
    """Who called the operators that took longest, and what one call of each launched."""
    found = dict.fromkeys(row.name for row in given.top if row.example >= 0)
    rows = [next(row for row in given.top if row.name == name and row.example >= 0) for name in list(found)[:most]]
    parts = [Section(title=row.name, blocks=stack_document(given.seen, str(row.example)).blocks) for row in rows]
    return [Section(title="Tree analysis", blocks=tuple(parts))] if parts else []


def _operator_section(rows: Sequence[OperatorRow], roof: Roof | None) -> Section:
    """One operator with those of its argument sets that are on top."""
    said = []
    for row in rows:
        at = place(row.work, row.total / row.count, roof) if row.work and roof else None
        reached = f"{at.fraction:.0%} of its roof, {band(at.fraction)}" if at and at.fraction is not None else ""
        why = f"no work model: {row.why}" if row.work is None else ""
        kernel = f"longest kernel {short_name(row.kernel)}" + (f" ({of})" if (of := library(row.kernel)) else "")
        parts = "; ".join(filter(None, (reached, why, kernel)))
        said.append(f"{tables.shapes(row) or 'no shapes'}: {parts}")
    table = tables.brief(tables.roofline_table(rows, roof), "operator", "work", "bytes")
    blocks = (Bullets(items=tuple(said)), replace(table, note=""))
    return Section(title=rows[0].name, blocks=blocks, anchor=anchor_of(rows[0].name))


def _no_impact(given: Material) -> str:
    return "No roof is known, so no gain is projected." if given.roof is None else "No top operator has a work model."


def _dropped(seen: Survey) -> str:
    parts = [f"{name}: {count:,}" for name, count in sorted(seen.trace.dropped.items())]
    return "Events left out: " + ("; ".join(parts) if parts else "none") + "."


def _questions(given: Material) -> tuple[str, ...]:
    asked = []
    if given.line and given.line.share(given.line.idle) > 0.05:
        asked.append("What does the host do in the idle gaps? Look at the trace in Perfetto.")
    if given.line and given.line.communication:
        asked.append("Is communication slow or is a rank late? That needs the traces of all ranks.")
    if not given.seen.trace.shapes:
        asked.append("Shapes were not recorded: profile with record_shapes=True for work and roofline.")
    return (*asked, "Were the clocks locked while this was recorded? A trace does not say.")
