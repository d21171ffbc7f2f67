"""What the fixture's call returns: the result, and the numbers where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey

Metrics = Callable[[CaseKey], MetricSet | None]
Fate = Callable[[CaseKey], str]
"""Why a call has no measurement, as far as somebody knows."""


def _unknown(_: CaseKey) -> str:
    return ""


class MetricMissing(PerfgateError, AttributeError):
    """A number that this call has not: whoever only asks whether there is one (``hasattr``) hears no."""


class View:
    """``view.result`` is what the call returned; ``view.time`` and any other metric by its name.

    Times are nanoseconds, fractions 0 to 1. Reading what was not measured is an error.
    """

    def __init__(self, key: CaseKey, result: Any = None, *, metrics: Metrics, fate: Fate = _unknown) -> None:
        self.key, self.result, self._metrics, self._fate = key, result, metrics, fate

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        metrics = self._metrics(self.key)
        if metrics is None:
            raise MetricMissing("not-measured", f"{name} of {self.key} was read, and this run measures nothing")
        found = metrics.find(name)
        if not found:
            raise _missing(name, metrics, str(self.key), self._fate(self.key))
        return found[0].value

    def __repr__(self) -> str:
        return f"<perfgate {self.key}>"


def _missing(name: str, metrics: MetricSet, key: str, fate: str) -> MetricMissing:
    """A name that no metric of this call has: misspelt, or nothing measured it here."""
    from pytest_perfgate.core.gate.nearest import nearest, some_of
    from pytest_perfgate.core.metrics.registry import by_name

    names, said = metrics.names(), f"{name} of {key} was not measured"
    if not names:
        why = fate or "nothing was measured of it: it failed while it was measured, or was not measured yet"
        return MetricMissing("not-measured", said, why=why, mend="perfgate report says what became of it")
    has = f"this call has {some_of(sorted(names))}"
    gap = metrics.missing(name)
    if gap is not None or name in by_name():
        why = gap.why if gap is not None else "nothing that measured this call produces it"
        mend = (gap.mend if gap is not None else "") or has
        return MetricMissing("not-measured", said, why=why, mend=mend)
    near = nearest(name, names, 1) or nearest(name, by_name(), 1)
    mend = f"did you mean {near[0]!r}? {has}" if near else has
    return MetricMissing("not-measured", said, why="no metric has that name", mend=mend)
