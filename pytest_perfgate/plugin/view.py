"""What the fixture's call returns: the result, and the numbers where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey

Metrics = Callable[[CaseKey], MetricSet | None]


class View:
    """``view.result`` is what the call returned; ``view.time`` and any other metric by its name.

    Times are nanoseconds, fractions 0 to 1. Reading what was not measured is an error.
    """

    def __init__(self, key: CaseKey, result: Any = None, *, metrics: Metrics) -> None:
        self.key, self.result, self._metrics = key, result, metrics

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        metrics = self._metrics(self.key)
        if metrics is None:
            raise PerfgateError("not-measured", f"{name} of {self.key} was read, and this run measures nothing")
        found = metrics.find(name)
        if not found:
            known = ", ".join(metrics.names())
            raise PerfgateError("not-measured", f"{name} of {self.key} was not measured; it has {known}")
        return found[0].value

    def __repr__(self) -> str:
        return f"<perfgate {self.key}>"
