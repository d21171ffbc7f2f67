"""Verdicts and reports: what a run came to."""

from __future__ import annotations

from enum import Enum

from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Effect, Limit, Outcome
from pytest_perfgate.model.measurement import Environment, Measurement
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.values import value

THEN = "then"
"""The name of the fact that stands where a stored baseline would: what the other arm took."""


@value
class Verdict:
    """One limit judged: outcome, the numbers it rests on, what to do next."""

    limit: Limit
    outcome: Outcome
    effect: Effect
    metric: Metric | None = None
    baseline: Baseline | None = None
    visible: float | None = None
    """The smallest slowdown this measurement could have seen."""
    sentence: str = ""
    """Why, in one sentence."""
    next: tuple[str, ...] = ()
    """Commands that help."""
    evidence: tuple[tuple[str, str], ...] = ()
    """Labelled facts for the block: ``("why", "shared memory 96 -> 114 KiB")``."""
    rounds: int = 0
    interval: Interval | None = None
    raised: float | None = None
    """What the absolute floor raised the limit to: less, a timer of short calls cannot tell."""

    def without_figures(self, why: str) -> Verdict:
        """What it came to, for a record that cannot hold its figures."""
        return Verdict(limit=self.limit, outcome=self.outcome, effect=self.effect, sentence=f"{self.sentence}; {why}")


class Excuse(str, Enum):
    """What became of a test that keeps its verdicts from failing the run."""

    NONE = ""
    NOT_RUN = "not run"
    """Skipped, or failed by itself: pytest says so, and the gate adds no failure of its own."""
    EXPECTED_TO_FAIL = "expected to fail"
    """``xfail``: its failures are warnings."""

    def soften(self, effect: Effect) -> Effect:
        """What is left of the effect of a verdict."""
        if self is Excuse.NOT_RUN:
            return Effect.PASS
        return Effect.WARN if self is Excuse.EXPECTED_TO_FAIL and effect is Effect.FAIL else effect


@value
class Arms:
    """The arms that a slowdown rests on, where the user named a revision: no accepted time is asked then."""

    base: str
    same: bool = False
    """Both ran the same code: whatever is slower then, it is not the code."""
    differences: tuple[float, ...] = ()
    """Logarithms of head over base, one a round, in order."""


@value
class CaseReport:
    """One measurement with all its verdicts."""

    key: CaseKey
    verdicts: tuple[Verdict, ...]
    measurement: Measurement | None = None
    baseline: Baseline | None = None
    problems: tuple[Problem, ...] = ()
    unheld: str = ""
    """Why its slowdown speaks for nothing, such as an accepted time that was measured differently."""
    accepts: Baseline | None = None
    """The line with which the change under test accepts another time, with a reason of its own."""
    arms: Arms | None = None
    """What its slowdown is against; nothing where that is the accepted time."""
    excuse: Excuse = Excuse.NONE

    def effect_of(self, verdict: Verdict) -> Effect:
        """What one of its verdicts does to the run."""
        return self.excuse.soften(verdict.effect)

    @property
    def effect(self) -> Effect:
        effects = {self.effect_of(v) for v in self.verdicts}
        return next((e for e in (Effect.FAIL, Effect.WARN) if e in effects), Effect.PASS)

    @property
    def worst(self) -> Outcome:
        order = list(Outcome)
        return max((v.outcome for v in self.verdicts), key=order.index, default=Outcome.NOT_MEASURED)


@value
class SuiteNote:
    """A verdict on the suite: dropped tests, unused baselines, limits that apply nowhere."""

    kind: str
    effect: Effect
    text: str
    names: tuple[str, ...] = ()

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Names that the text does not have."""
        return tuple(name for name in self.names if name not in self.text)


@value
class RunReport:
    """All of a run: what the record file holds and every report is rendered from."""

    cases: tuple[CaseReport, ...]
    environment: Environment
    mode: str
    started: str
    seconds: float = 0.0
    complete: bool = True
    """False when interrupted: the record is partial."""
    filtered: bool = False
    """True under ``-k``, ``-m``, node ids: suite verdicts are not drawn."""
    notes: tuple[SuiteNote, ...] = ()
    status: int = 0
    """How pytest ended, for tests that failed for another reason than their limits."""
    root: str = ""
    schema: int = 1
