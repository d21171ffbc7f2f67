"""A run that ended before its end: what was measured and kept, what was not, and how to go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.plugin.standpoint import Standpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.docket import Docket

_NAMED = 5
_BEHIND = "the same command again: it goes on behind the rounds that were finished"


def cut_short_lines(session: Docket) -> list[str]:
    """Lines for the terminal; none where nothing is left to be measured."""
    missing = _missing(session)
    if not missing and not _fewer(session) and not _untried(session):
        return []
    if session.resumable and len(missing) == len(session.cases):
        return ["cut short before any verdict: the finished rounds of both arms are kept", f"next  {_BEHIND}"]
    lines = [_headline(session, len(missing))]
    if len(missing) < len(session.cases):
        lines += [f"  not measured  {case.nodeid}" for case in missing[:_NAMED]]
        lines += [f"  not measured  {plural(len(missing) - _NAMED, 'more case')}"] if len(missing) > _NAMED else []
    return [*lines, *_onward(session, missing)]


def _headline(session: Docket, missing: int) -> str:
    measured, fewer = len(session.cases) - missing, _fewer(session)
    said = f"cut short: {measured} of {plural(len(session.cases), 'case')} measured"
    said += " and kept" if measured else ", nothing is kept"
    said += f"; {fewer} of them in fewer processes than asked for" if fewer else ""
    untried = _untried(session)
    return f"{said}; {plural(untried, 'suspect')} not tried to the end" if untried else said


def _untried(session: Docket) -> int:
    """Suspects of a run that would have tried them."""
    if session.court.tools.convict is None:
        return 0
    return sum(report.worst is Outcome.SUSPECT for found in session.reports.values() for report in found)


def _fewer(session: Docket) -> int:
    """Cases with a measurement of fewer processes than were asked for."""
    return sum(0 < _processes(session, nodeid) < _asked(session, nodeid) for nodeid in session.cases)


def _missing(session: Docket) -> Sequence[Case]:
    return [case for nodeid, case in session.cases.items() if not _processes(session, nodeid)]


def _processes(session: Docket, nodeid: str) -> int:
    """Processes that measured a test; a measurement without samples, such as machine code, counts as one."""
    found = [r.measurement for r in session.reports.get(nodeid, ()) if r.measurement is not None]
    return max((max(1, len(measurement.processes)) for measurement in found), default=0)


def _asked(session: Docket, nodeid: str) -> int:
    return session.cases[nodeid].plan.rounds if session.measured_ahead else 1


def _onward(session: Docket, missing: Sequence[Case]) -> list[str]:
    """What measures the rest, alone on its line: it is pasted."""
    if session.resumable:
        return [f"next  {_BEHIND}"]
    if missing and len(missing) <= _NAMED and len(missing) < len(session.cases):
        here = Standpoint(session.settings.pytest)
        names = " ".join(shlex.quote(here.nodeid(case.nodeid)) for case in missing)
        rest = "that measures the rest; the same command again measures everything"
        return [f"next  pytest --perfgate={session.mode.value} {names}", rest]
    return ["next  the same command again: it measures everything anew"]
