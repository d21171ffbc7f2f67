"""Cases that are slower than their limit says, and pass because the floor raised it: never in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import signed
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict

_MEND = "calls=N times more calls together, and the setting floor moves it"


def floored(reports: Iterable[CaseReport]) -> Iterator[SuiteNote]:
    """A warning where the floor alone lets cases pass."""
    names = [
        f"{report.key}: {v.limit.text}, the floor raised it to {signed(v.raised)}: {signed(v.metric.value)}"
        for report in reports
        for v in report.verdicts
        if v.raised is not None and v.metric is not None and _by_floor_alone(v, v.metric.value)
    ]
    if names:
        text = f"{plural(len(names), 'limit')} kept only as the floor for short calls raised it: {_MEND}"
        yield SuiteNote(kind="floor", effect=Effect.WARN, text=text, names=tuple(names))


def _by_floor_alone(verdict: Verdict, slowdown: float) -> bool:
    return verdict.outcome is Outcome.PASSED and slowdown > verdict.limit.bound
