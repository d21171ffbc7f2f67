"""Reports of two traces: fair for whoever decides, rough for whoever goes on working."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.operators.table import category_of
from pytest_perfgate.core.analysis.trace.advice import fusion_of
from pytest_perfgate.core.analysis.trace.comparison import pair_table, timeline_pair_table
from pytest_perfgate.core.analysis.trace.hardware import hardware_table
from pytest_perfgate.core.analysis.trace.joined import Pair
from pytest_perfgate.core.analysis.trace.tables import brief
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.document import Block, Bullets, Document, Link, Paragraph, Section
from pytest_perfgate.model.quantity import Dimension

Lines = tuple[Timeline | None, Timeline | None]
Roofs = tuple[Roof | None, Roof | None]
_ASIDE = ("calls, reference", "calls, target", "difference")
"""Columns that a page for whoever decides has no room for."""


def comparative_fair(subject: str, lines: Lines, pairs: Sequence[Pair], roofs: Roofs) -> Document:
    """Neutral framing, what differs, recommendations for the target only."""
    odd = sorted((pair for pair in pairs if pair.unexpected), key=lambda pair: -(_saving(pair) or 0.0))[:6]
    advised = tuple(_advised(pair, number) for number, pair in enumerate(odd, 1))
    none = Paragraph(text="No operator differs by more than the hardware explains, or no roof is known to say so.")
    first: list[Block] = [Paragraph(text=_neutral(lines))]
    first += [timeline_pair_table(lines[0], lines[1])] if lines[0] and lines[1] else []
    method = (
        "Expected differences: the ratio of bandwidths where an operator is bound by memory, of peaks where it is "
        "bound by compute; beyond 1.5 times that, a difference is called unexpected."
    )
    return Document(
        title=f"Comparison of {subject}",
        blocks=(
            Section(title="Executive summary", blocks=tuple(first)),
            Section(title="Recommendations for the target", blocks=advised or (none,)),
            Section(
                title="Detailed comparison",
                blocks=(brief(pair_table(pairs, "operator", 30), *_ASIDE),),
                anchor="detail",
            ),
            Section(
                title="Appendix", blocks=(hardware_table(reference=roofs[0], target=roofs[1]), Paragraph(text=method))
            ),
        ),
    )


def _advised(pair: Pair, number: int) -> Section:
    """What the hardware does not explain, and both paths."""
    items = (
        f"Gap: {_change(pair.ratio)} than the reference, where the hardware explains {_change(pair.expected)}",
        f"Action: fusion or algorithm: {fusion_of(category_of(pair.name))}",
        "Action: kernel only: replay it on the target and look at which kernel is selected",
        f"Impact: {_saved(pair)}",
    )
    blocks = (Bullets(items=items), Link(text="Details: detailed comparison", anchor="detail"))
    return Section(title=f"Priority {number}: {pair.name} {pair.detail}".rstrip(), blocks=blocks)


def _change(ratio: float | None) -> str:
    """How much slower or faster a ratio of times is."""
    change = (ratio or 1.0) - 1
    return f"{abs(change):.0%} {'slower' if change >= 0 else 'faster'}"


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


def _saving(pair: Pair) -> float | None:
    """The target's time beyond what the hardware explains, all calls together."""
    if pair.before is None or pair.after is None or pair.expected is None:
        return None
    return (pair.after - pair.before * pair.expected) * pair.calls[1]


def _saved(pair: Pair) -> str:
    saved = _saving(pair)
    return "unknown" if saved is None else f"up to {quantity(saved, Dimension.TIME)} of the target's GPU time"


def _neutral(lines: Lines) -> str:
    if not lines[0] or not lines[1]:
        return "One of the traces has no single device's activity."
    one, two = lines[0].computation, lines[1].computation
    change = f"{two / one - 1:+.1%}" if one else "not comparable"
    return f"Compute time of the target is {two / 1e6:.3f} ms, {change} against the reference's {one / 1e6:.3f} ms."
