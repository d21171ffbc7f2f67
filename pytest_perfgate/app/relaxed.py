"""Limits of the merge base's tests beside those of the change under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_perfgate.app.edits import WORDS, edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.relaxed import TIGHTER, relaxed
from pytest_perfgate.core.metrics.registry import by_name
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect, Limit
from pytest_perfgate.model.plan import Case
from pytest_perfgate.model.verdict import SuiteNote

_WORDS = (*WORDS, "limits")
"""What a file holds that asks for more or less than the project does, or excuses a test of asking for the fixture."""


def relaxed_limits(court: Court, cases: Mapping[str, Case]) -> Iterable[SuiteNote]:
    """One note in CI for all of them: the change is judged by the limits that it leaves."""
    changed = edits(court, court.accepted.base.commit)
    if changed is None:
        return
    texts = changed.texts(_WORDS)
    if texts is None:
        yield changed.unknown("limits", "limits of tests")
        return
    found = relaxed(texts, court.tools.kinds or by_name(), court.merged, _asked(cases.values()))
    if found:
        text = f"{plural(len(found), 'limit or setting', 'limits or settings')} of tests changed {changed.since};"
        effect = Effect.PASS if {*found.values()} == {TIGHTER} else Effect.WARN
        yield SuiteNote(kind="limits", effect=effect, text=f"{text} this run was judged by the new", names=tuple(found))


def _asked(cases: Iterable[Case]) -> dict[str, list[tuple[Limit, ...]]]:
    """What the tests of the run were asked by the project; a limit of the command line is none of it."""
    found: dict[str, list[tuple[Limit, ...]]] = {}
    for case in cases:
        ways = found.setdefault(case.nodeid.partition("[")[0], [])
        if case.limits not in ways and not any(limit.source == "command line" for limit in case.limits):
            ways.append(case.limits)
    return found
