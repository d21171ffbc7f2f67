"""The gate's section at the end of a session: quiet when nothing was gated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.plugin.ending import text_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_perfgate.model.verdict import CaseReport
    from pytest_perfgate.plugin.session import GateSession

_SHOWN = 20


def write_summary(out: Any, session: GateSession) -> None:
    """Counts by outcome, what only warns, notes on the suite, where the files lie, what to do next."""
    reports = session.all_reports()
    if not reports:
        return
    out.section("perfgate", sep="=")
    warned = [report for report in reports if report.effect is Effect.WARN]
    for report in warned[:_SHOWN]:
        out.write_line(render_block(report).rstrip())
    if len(warned) > _SHOWN:
        out.write_line(f"... and {len(warned) - _SHOWN} more that warn: perfgate report")
    for note in session.notes:
        out.write_line(f"{note.effect.value}  {text_of(note)}")
    for line in hidden(session):
        out.write_line(line)
    out.write_line(counted(session.mode.value, reports))
    for path in session.written:
        out.write_line(f"wrote {shown(path, session.settings.pytest.rootpath)}")


def counted(mode: str, reports: list[CaseReport]) -> str:
    """``quick: 1 broken, 2 passed``."""
    counts = Counter(report.worst for report in reports if report.verdicts)
    parts = [f"{counts[outcome]} {outcome.value}" for outcome in reversed(list(Outcome)) if counts[outcome]]
    free = sum(not report.verdicts for report in reports)
    parts += [f"{free} without a limit"] if free else []
    return f"{mode}: {', '.join(parts)}"


def hidden(session: GateSession) -> list[str]:
    """Failing verdicts that an ``xfail`` keeps from failing the run: never in silence."""
    return [f"xfail hides  {name}" for name in session.excused]


def shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
