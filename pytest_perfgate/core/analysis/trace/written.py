"""Reports for two readers: fair for whoever decides, rough for whoever goes on working."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.operators.table import category_of
from pytest_perfgate.core.analysis.roofline import band, place
from pytest_perfgate.core.analysis.trace import tables
from pytest_perfgate.core.analysis.trace.advice import (
    anchor_of,
    fusion_of,
    recommendation_blocks,
    recommendations,
    wants_replay,
)
from pytest_perfgate.core.analysis.trace.comparison import pair_table, timeline_pair_table
from pytest_perfgate.core.analysis.trace.identity import selection_table
from pytest_perfgate.core.analysis.trace.impact import impact, impact_table
from pytest_perfgate.core.analysis.trace.joined import Pair
from pytest_perfgate.core.analysis.trace.kernels import KernelRow
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.core.analysis.trace.report import findings_block, name_of, subtitle, unseen_block
from pytest_perfgate.core.analysis.trace.stack import stack_document
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Bullets, Column, Document, Link, Paragraph, Section, Table
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import array_value

Lines = tuple[Timeline | None, Timeline | None]
Roofs = tuple[Roof | None, Roof | None]


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
        Paragraph(text=f"Hardware reference: {_roof_text(given.roof)}"),
        Paragraph(text="Replay artifacts: " + (", ".join(dict.fromkeys(replays)) or "none recommended") + "."),
    ]
    return Document(
        title=f"{name_of(given.seen)}: standalone analysis",
        subtitle=subtitle(given.seen),
        blocks=(
            Section(title="Executive summary", blocks=_summary(given)),
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


def comparative_fair(subject: str, lines: Lines, pairs: Sequence[Pair], roofs: Roofs) -> Document:
    """Neutral framing, what differs, recommendations for the target only."""
    odd = [pair for pair in pairs if pair.unexpected][:6]
    advised = tuple(_advised(pair, number) for number, pair in enumerate(odd, 1))
    none = Paragraph(text="No operator differs by more than the hardware explains, or no roof is known to say so.")
    first: list[Block] = [Paragraph(text=_neutral(lines))]
    first += [timeline_pair_table(lines[0], lines[1])] if lines[0] and lines[1] else []
    appendix = f"Reference: {_roof_text(roofs[0])} Target: {_roof_text(roofs[1])}"
    method = (
        "Expected differences: the ratio of bandwidths where an operator is bound by memory, of peaks where it is "
        "bound by compute; beyond 1.5 times that, a difference is called unexpected."
    )
    return Document(
        title=f"Comparison of {subject}",
        blocks=(
            Section(title="Executive summary", blocks=tuple(first)),
            Section(title="Recommendations for the target", blocks=advised or (none,)),
            Section(title="Detailed comparison", blocks=(pair_table(pairs, "operator", 30),), anchor="detail"),
            Section(title="Appendix", blocks=(Paragraph(text=appendix), Paragraph(text=method))),
        ),
    )


def _advised(pair: Pair, number: int) -> Section:
    """What the hardware does not explain, and both paths."""
    items = (
        f"Gap: {(pair.ratio or 1) - 1:+.0%}; the hardware explains {(pair.expected or 1) - 1:+.0%}",
        f"Action: fusion or algorithm: {fusion_of(category_of(pair.name))}",
        "Action: kernel only: replay it on the target and look at which kernel is selected",
        f"Impact: {_saved(pair)}",
    )
    blocks = (Bullets(items=items), Link(text="Details: detailed comparison", anchor="detail"))
    return Section(title=f"Priority {number}: {pair.name} {pair.detail}".rstrip(), blocks=blocks)


def comparative_rough(
    subject: str, lines: Lines, parts: tuple[Sequence[Pair], Sequence[Pair], Sequence[Pair]], note: str
) -> Document:
    """Every table of the comparison."""
    blocks: list[Block] = [Paragraph(text=note)]
    if lines[0] and lines[1]:
        blocks.append(Section(title="Timeline", blocks=(timeline_pair_table(lines[0], lines[1]),)))
    for title, of, pairs in zip(("Operators", "By arguments", "Kernels"), ("operator", "operator", "kernel"), parts):
        blocks.append(Section(title=title, blocks=(pair_table(pairs, of),)))
    return Document(title=f"Comparison of {subject} (rough)", blocks=tuple(blocks))


def _summary(given: Material) -> tuple[Block, ...]:
    line, coverage = given.line, given.seen.coverage
    cells: list[tuple[str, str]] = []
    if line is not None:
        cells.append(("window", quantity(line.total, Dimension.TIME)))
    if line is not None and given.seen.on_host:
        cells.append(("innermost operators run", f"{line.share(line.computation):.1%}"))
    elif line is not None:
        cells += [
            ("GPU utilisation", f"{line.share(line.busy):.1%}"),
            ("computation", f"{line.share(line.computation):.1%}"),
            ("exposed communication", f"{line.share(line.exposed_comm):.1%}"),
            ("overlap", f"{line.overlap:.1%}" if line.overlap is not None else "no communication"),
        ]
    cells.append(("coverage", f"{coverage:.1%}" if coverage is not None else "no GPU activity"))
    metrics = Table(columns=(Column(name="metric"), Column(name="value")), rows=tuple(cells))
    ranked = Table(
        columns=(
            Column(name="rank"),
            Column(name="operation"),
            Column(name="time", dimension=Dimension.TIME),
            Column(name="of compute", dimension=Dimension.FRACTION),
        ),
        rows=tuple((str(n), *row) for n, row in enumerate(_ranked(given), 1)),
        title="Top bottlenecks",
    )
    return (metrics, ranked)


def _ranked(given: Material) -> list[tuple[str, float, float]]:
    """The operators that took longest: name, time, share."""
    spent: dict[str, tuple[float, float]] = {}
    for row in given.rows:
        total, share = spent.get(row.name, (0.0, 0.0))
        spent[row.name] = (total + row.total, share + row.share)
    longest = sorted(spent.items(), key=lambda item: -item[1][0])
    return [(name, total, share) for name, (total, share) in longest[: given.seen.settings.top]]


def _operator_section(rows: Sequence[OperatorRow], roof: Roof | None) -> Section:
    """One operator with those of its argument sets that are on top."""
    said = []
    for row in rows:
        at = place(row.work, row.total / row.count, roof) if row.work and roof else None
        reached = f", {at.fraction:.0%} of its roof ({band(at.fraction)})" if at and at.fraction is not None else ""
        why = f"; no work model: {row.why}" if row.work is None else ""
        said.append(f"{tables.shapes(row) or 'no shapes'}: longest kernel {row.kernel}{reached}{why}")
    blocks = (Bullets(items=tuple(said)), tables.roofline_table(rows, roof))
    return Section(title=rows[0].name, blocks=blocks, anchor=anchor_of(rows[0].name))


def _saved(pair: Pair) -> str:
    if pair.before is None or pair.after is None or pair.expected is None:
        return "unknown"
    saved = (pair.after - pair.before * pair.expected) * pair.calls[1]
    return f"up to {quantity(saved, Dimension.TIME)} of the target's GPU time"


def _neutral(lines: Lines) -> str:
    if not lines[0] or not lines[1]:
        return "One of the traces has no single device's activity."
    one, two = lines[0].computation, lines[1].computation
    change = f"{two / one - 1:+.1%}" if one else "not comparable"
    return f"Compute time of the target is {two / 1e6:.3f} ms, {change} against the reference's {one / 1e6:.3f} ms."


def _roof_text(roof: Roof | None) -> str:
    if roof is None:
        return "not known."
    rates = ", ".join(f"{dtype} {rate / 1e12:,.0f} TFLOPS" for dtype, rate in roof.compute)
    memory = f"{roof.bandwidth / 1e12:.2f} TB/s" if roof.bandwidth else "bandwidth not known"
    return f"{roof.note}: {memory}; {rates}."


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
