"""What a test asked of its fixture, on its way to whoever answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.samples import Discard, Samples, Stop
from pytest_perfgate.model.work import Work


@dataclass
class Asked:
    """One ``perfgate(fn, …)``."""

    key: CaseKey
    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    setup: Callable[[], Any] | None = None
    work: Work | None = None
    check: Callable[[Any], Any] | None = None
    calls: int = 1
    limits: tuple[str, ...] = ()
    _made: tuple[Any, ...] = ()

    def once(self) -> Any:
        """Call it once, setup first, and let ``check`` see what it returned."""
        if self.setup is not None:
            self.prepare()
        result = self.timed()()
        self.judge(result)
        return result

    def judge(self, result: Any) -> None:
        """Let ``check`` see what a call returned."""
        if self.check is not None and self.check(result) is False:
            raise PerfgateError("check-failed", "check= returned False for what the call returned", place=str(self.key))

    def prepare(self) -> None:
        """What runs before each timed call, outside of the time."""
        if self.setup is not None:
            made = self.setup()
            self._made = () if made is None else made if isinstance(made, tuple) else (made,)

    def timed(self) -> Callable[[], Any]:
        """The call and nothing around it."""
        if self.setup is not None:
            return lambda: self.fn(*self._made, *self.args)
        return partial(self.fn, *self.args) if self.args else self.fn


@dataclass
class Brought:
    """Samples or metrics that the test has taken by itself: a region, a record, an artifact."""

    key: CaseKey
    kind: str
    durations: list[float] = field(default_factory=list)
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = field(default_factory=MetricSet)
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    def samples(self) -> tuple[Samples, ...]:
        """One process's samples; none where nothing was timed. What is no number is counted, never averaged."""
        if not self.durations:
            return ()
        finite = tuple(duration for duration in self.durations if isfinite(duration))
        lost = len(self.durations) - len(finite)
        what = f"{lost} of {len(self.durations)} samples are no number"
        return (
            Samples(
                durations=finite,
                timer=self.kind,
                stop=Stop.COUNT if self.kind == "region" else Stop.RECORDED,
                discarded=(Discard(reason="not a number", count=lost),) if lost else (),
                problems=(Problem(code="bad-timing", what=what, retry=False),) if lost else (),
            ),
        )
