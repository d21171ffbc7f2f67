"""A run that ended before its end: what was measured and kept, what was not, and how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.core.render.plural import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.docket import Docket

_NAMED = 5


def cut_short_lines(session: Docket) -> list[str]:
    """Lines for the terminal; none where nothing was to be measured."""
    if not session.cases:
        return []
    lines, missing = [_headline(session)], _missing(session)
    if len(missing) < len(session.cases):
        lines += [f"  not measured  {case.nodeid}" for case in missing[:_NAMED]]
        lines += [f"  not measured  {plural(len(missing) - _NAMED, 'more case')}"] if len(missing) > _NAMED else []
    return [*lines, f"next  {_onward(session, missing)}"]


def _headline(session: Docket) -> str:
    measured = len(session.cases) - len(_missing(session))
    said = f"cut short: {measured} of {plural(len(session.cases), 'case')} measured"
    said += " and kept" if measured else ", nothing is kept"
    fewer = [nodeid for nodeid in session.cases if 0 < _processes(session, nodeid) < _asked(session, nodeid)]
    return f"{said}; {len(fewer)} of them in fewer processes than asked for" if fewer else said


def _missing(session: Docket) -> Sequence[Case]:
    return [case for nodeid, case in session.cases.items() if not _processes(session, nodeid)]


def _processes(session: Docket, nodeid: str) -> int:
    """Processes that measured a test; a measurement without samples, such as machine code, counts as one."""
    found = [r.measurement for r in session.reports.get(nodeid, ()) if r.measurement is not None]
    return max((max(1, len(measurement.processes)) for measurement in found), default=0)


def _asked(session: Docket, nodeid: str) -> int:
    return session.cases[nodeid].plan.rounds if session.measured_ahead else 1


def _onward(session: Docket, missing: Sequence[Case]) -> str:
    if session.resumable:
        return "the same command again: it goes on behind the rounds that were finished"
    if missing and len(missing) <= _NAMED and len(missing) < len(session.cases):
        names = " ".join("'" + case.nodeid.replace("'", "'\"'\"'") + "'" for case in missing)
        return f"pytest --perfgate={session.mode.value} {names} measures the rest, the same command again everything"
    return "the same command again: it measures everything anew"
