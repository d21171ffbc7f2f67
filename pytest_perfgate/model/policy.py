"""What the user wants done about each outcome that can be argued about."""

from __future__ import annotations

import enum

from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.values import value


class Choice(str, enum.Enum):
    """What to do about an outcome."""

    IGNORE = "ignore"
    RECORD = "record"
    WARN = "warn"
    FAIL = "fail"


@value
class Policy:
    """One choice for each outcome that leaves one; ``core.gate.policy`` has the defaults."""

    ci: bool = False
    missing: Choice = Choice.RECORD
    """No baseline for a slowdown limit."""
    unused: Choice = Choice.WARN
    """Baselines and tests that are gone."""
    improved: Choice = Choice.WARN
    undecided: Choice = Choice.WARN
    suspect: Choice = Choice.WARN
    """Slower, and no second arm could say whether the code is."""
    moved: Choice = Choice.WARN
    unmeasured: Choice = Choice.WARN
    """Collected, but never measured."""
    baseless: Choice = Choice.WARN
    """Committed lines judged in CI, and there is no merge base whose lines could."""
    own_gate: Choice = Choice.WARN
    """In CI, the change edits limits, marks, lines, settings or tests by which it is judged."""

    @property
    def records(self) -> bool:
        """Whether a missing baseline is made from what was measured."""
        return self.missing is Choice.RECORD


@value
class Rule:
    """One line of the table of outcomes."""

    outcome: Outcome
    meaning: str
    key: str = ""
    """The policy that decides; empty where nothing is left to decide."""
    effect: Effect = Effect.PASS
    """Where no policy decides."""
    exit: int = 0
    """Of the command line, where the effect is to fail."""
