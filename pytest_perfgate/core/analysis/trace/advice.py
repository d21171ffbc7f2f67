"""Recommendations by priority: the issue, two paths of action, the impact as a range."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.roofline import band
from pytest_perfgate.core.analysis.trace.identity import library, tile
from pytest_perfgate.core.analysis.trace.impact import Impact
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.model.document import Block, Bullets, Paragraph, Section
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.values import value

REPLAY_SHARE, REPLAY_FRACTION = 0.10, 0.30
_FUSION = {
    "SDPA_fwd": "use the fused attention of the newest framework, or a shape its kernels prefer",
    "GEMM": "merge products that share an input into one, or raise the batch",
    "CONV_fwd": "channels-last layout, or a convolution folded with its neighbours",
    "NORM_fwd": "torch.compile, which folds a normalisation into its neighbours",
    "elementwise": "torch.compile, which fuses chains of elementwise operators",
}


@value
class Recommendation:
    """One thing to do, with the anchor of the section that shows why."""

    title: str
    issue: str
    action: tuple[str, ...]
    impact: str
    anchor: str = ""


def recommendations(impacts: Sequence[Impact], found: Sequence[Finding]) -> tuple[Recommendation, ...]:
    """Time beside compute first, then operators by what they could gain at most."""
    first = [
        Recommendation(
            title=f.title,
            issue=f"{f.detail} [{f.trigger}]",
            action=(f.advice,),
            impact="not projected",
            anchor="findings",
        )
        for f in found
        if f.trigger.startswith(("idle=", "exposed_"))
    ]
    ranked = sorted((i for i in impacts if i.gains), key=lambda i: -i.gains[-1][2])
    return (*first, *(_operator(impact) for impact in ranked))


def wants_replay(row: OperatorRow, fraction: float | None) -> bool:
    """Whether an operator is large and slow enough for a reproducer: over 10 % of compute, under 30 % of its roof."""
    return row.work is not None and row.share > REPLAY_SHARE and fraction is not None and fraction < REPLAY_FRACTION


def _operator(impact: Impact) -> Recommendation:
    row = impact.row
    low, high = impact.gains[0], impact.gains[-1]
    kernel = ", ".join(part for part in (library(row.kernel), tile(row.kernel)) if part) or "kernel of unknown library"
    path_b = f"kernel only: {kernel} runs it; look at its selection and tile"
    path_b += "; replay artifact recommended for the kernel's owners" if wants_replay(row, impact.fraction) else ""
    span = (
        f"{low[2]:.1%}" if low == high else f"{low[2]:.1%} ({low[0]:.0%} of the roof) to {high[2]:.1%} ({high[0]:.0%})"
    )
    return Recommendation(
        title=f"{row.name} at {impact.fraction:.0%} of its roof",
        issue=f"{row.share:.0%} of operator time in {row.count:,} calls, {band(impact.fraction)}.",
        action=(f"fusion or algorithm: {_FUSION.get(row.category, 'fuse it with its neighbours')}", path_b),
        impact=f"end to end at most {span}",
        anchor=row.name.replace("::", "-"),
    )


def recommendation_blocks(found: Sequence[Recommendation]) -> tuple[Block, ...]:
    """One short section each."""
    if not found:
        return (Paragraph(text="None: nothing stands out, or no roof is known to hold operators against."),)
    return tuple(
        Section(
            title=f"Priority {number}: {one.title}",
            blocks=(
                Bullets(
                    items=(
                        f"Issue: {one.issue}",
                        *(f"Action: {action}" for action in one.action),
                        f"Impact: {one.impact}",
                        *((f"Details: section {one.anchor}",) if one.anchor else ()),
                    )
                ),
            ),
        )
        for number, one in enumerate(found, 1)
    )
