"""Recommendations by priority: the issue, two paths of action, the impact as a range."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from pytest_perfgate.core.analysis.roofline import band
from pytest_perfgate.core.analysis.trace.identity import library, tile
from pytest_perfgate.core.analysis.trace.impact import Impact
from pytest_perfgate.core.analysis.trace.operators import OperatorRow
from pytest_perfgate.model.document import Block, Bullets, Link, Paragraph, Section
from pytest_perfgate.model.problem import Finding, Severity
from pytest_perfgate.model.values import value

_ODD = re.compile(r"[^a-z0-9]+")
MOST, WORTH = 8, 0.005
"""Recommendations of a report at the most, and the end-to-end gain under which an operator is none."""
_BESIDE = ("unread=", "idle=", "exposed_", "short_kernels=", "idle_macro_share=")
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
    details: str = ""
    """How that section is called."""


def recommendations(impacts: Sequence[Impact], found: Sequence[Finding]) -> tuple[Recommendation, ...]:
    """Time beside compute first, then operators by what they could gain at most, then other patterns."""
    worth = [finding for finding in found if finding.severity is not Severity.INFO]
    first = [_pattern(finding) for finding in worth if finding.trigger.startswith(_BESIDE)]
    others = [_pattern(finding) for finding in worth if not finding.trigger.startswith(_BESIDE)]
    groups: dict[str, list[Impact]] = defaultdict(list)
    for one in impacts:
        groups[one.row.name] += [one] if one.gains else []
    ranked = sorted(filter(None, groups.values()), key=lambda group: -_most(group))
    return (*first, *(_operator(group) for group in ranked if _most(group) >= WORTH), *others)[:MOST]


def _most(group: Sequence[Impact]) -> float:
    """What an operator would gain at the highest share of its roof."""
    return sum(impact.gains[-1][2] for impact in group)


def _pattern(finding: Finding) -> Recommendation:
    return Recommendation(
        title=finding.title,
        issue=f"{finding.detail} [{finding.trigger}]",
        action=(finding.advice,),
        impact="not projected",
        anchor="findings",
        details="findings",
    )


def wants_replay(row: OperatorRow, fraction: float | None) -> bool:
    """Whether an operator is large and slow enough for a reproducer: over 10 % of compute, under 30 % of its roof."""
    return row.work is not None and row.share > REPLAY_SHARE and fraction is not None and fraction < REPLAY_FRACTION


def _operator(group: Sequence[Impact]) -> Recommendation:
    """One operator with all its argument sets that are worth a look."""
    row = max(group, key=lambda i: i.row.total).row
    calls, share = sum(i.row.count for i in group), sum(i.row.share for i in group)
    least, most = min(i.fraction for i in group), max(i.fraction for i in group)
    reached = f"{least:.0%}" if f"{least:.0%}" == f"{most:.0%}" else f"{least:.0%} to {most:.0%}"
    kernel = ", ".join(part for part in (library(row.kernel), tile(row.kernel)) if part) or "kernel of unknown library"
    path_b = f"kernel only: {kernel} runs it; look at its selection and tile"
    wanted = any(wants_replay(i.row, i.fraction) for i in group)
    path_b += "; replay artifact recommended for the kernel's owners" if wanted else ""
    low, high = f"{sum(i.gains[0][2] for i in group):.1%}", f"{_most(group):.1%}"
    span = high if low == high else f"{low} at the next step (20, 50 or 80 % of the roof), {high} at 80 %"
    sets = f" of its {len(group)} longest argument sets" if len(group) > 1 else ""
    return Recommendation(
        title=f"{row.name} at {reached} of its roof",
        issue=f"{share:.0%} of operators' time in {calls:,} call{'s' if calls > 1 else ''}{sets}: {band(least)}.",
        action=(f"fusion or algorithm: {fusion_of(row.category)}", path_b),
        impact=f"end to end at most {span}",
        anchor=anchor_of(row.name),
        details=row.name,
    )


def fusion_of(category: str) -> str:
    """The path of whoever may change the model."""
    return _FUSION.get(category, "fuse it with its neighbours")


def anchor_of(name: str) -> str:
    """What an operator's section is linked by."""
    return _ODD.sub("-", name.lower()).strip("-")


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
                    )
                ),
                *((Link(text=f"Details: {one.details or one.anchor}", anchor=one.anchor),) if one.anchor else ()),
            ),
        )
        for number, one in enumerate(found, 1)
    )
