"""What is not accepted: what only the machine made slower, what no limit asks for, what no later run compares with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from pytest_perfgate.core.gate.acceptance import Change, Decision, asked_slowdown, between_sittings
from pytest_perfgate.core.gate.family import family_of
from pytest_perfgate.core.gate.twins import heirs
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.verdict import CaseReport


def unmoved(found: Decision) -> Decision:
    """A slower time of code that two arms found no slower writes nothing: it would hide as much from then on."""
    if found.change is not Change.SLOWER or not _machine_moved(found.report):
        return found
    why = "the machine moved, not the code: accepted only where it is named itself"
    return Decision(report=found.report, change=Change.MOVED, before=found.before, why=why)


def unasked(found: Decision, families: Collection[str]) -> Decision:
    """A new line that no limit asks for would be one too many from the next complete run on."""
    report = found.report
    asked = not report.verdicts or any(v.limit.metric == "slowdown" for v in report.verdicts)
    if found.change is not Change.NEW or asked or family_of(report.key) in families:
        return found
    return Decision(report=report, change=Change.UNASKED, why="no limit of this case asks for an accepted time")


def on_one_core(reports: Iterable[CaseReport]) -> bool:
    """Whether cases were measured as both arms of a revision are on the host: pinned to one core."""
    cases = tuple(reports)
    return any(case.arms is not None for case in cases) and any(map(pinned, cases))


def unpinned(found: Decision, *, beside: bool) -> Decision:
    """A line of one core would be compared with no run that is beside nothing; one that was such before stays such."""
    report, before = found.report, found.before
    if not (beside and found.writes and pinned(report)):
        return found
    was = before.identity if before is not None else None
    if was is not None and report.measurement is not None and was.affinity == report.measurement.identity.affinity:
        return found
    why = "both arms of --perfgate-against are; other runs compare their times with no such line"
    return Decision(report=report, change=Change.PINNED, before=before, why=why)


def pinned(report: CaseReport) -> bool:
    """Whether a case was held on one core."""
    return report.measurement is not None and report.measurement.identity.affinity.isdecimal()


def _machine_moved(report: CaseReport) -> bool:
    outcomes = {v.outcome for v in report.verdicts if v.limit.metric == "slowdown"}
    return Outcome.MOVED in outcomes and Outcome.REGRESSED not in outcomes


def inherited(found: Sequence[Decision], gone: Sequence[Baseline]) -> tuple[Decision, ...]:
    """New lines that are slower than one that is gone are no clean start: another name is no reason."""
    new = {str(d.report.key): d for d in found if d.change is Change.NEW}
    slower = {
        str(heir.new.key): heir.gone
        for heir in heirs(gone, [d.after for d in new.values() if d.after is not None])
        if heir.slower > _unseen(new[str(heir.new.key)].report, heir.gone)
    }
    return tuple(replace(d, twin=slower.get(str(d.report.key))) for d in found)


def _unseen(report: CaseReport, gone: Baseline) -> float:
    """What is no slowdown: less than the limit asks about, or than the line that is gone could have told."""
    return max(asked_slowdown(report), gone.blind, between_sittings(gone))
