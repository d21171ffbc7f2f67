"""The gate's section at the end of a session: quiet when nothing was gated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.limit import Effect, Outcome

if TYPE_CHECKING:
    from pytest_perfgate.plugin.session import GateSession

_SHOWN = 20


def write_summary(out: Any, session: GateSession) -> None:
    """Counts by outcome, what only warns, notes on the suite, and where the files lie."""
    reports = [report for found in session.reports.values() for report in found]
    if not reports:
        return
    out.section("perfgate", sep="=")
    counts = Counter(report.worst for report in reports)
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in reversed(list(Outcome)) if counts[outcome]]
    out.write_line(f"{session.mode.value}: {', '.join(parts)}")
    warned = [report for report in reports if report.effect is Effect.WARN]
    for report in warned[:_SHOWN]:
        out.write_line(render_block(report).rstrip())
    if len(warned) > _SHOWN:
        out.write_line(f"... and {len(warned) - _SHOWN} more that warn (perfgate report)")
