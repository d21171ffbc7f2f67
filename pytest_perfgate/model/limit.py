"""Limits: what a test says must hold, and the outcomes a limit can have."""

from __future__ import annotations

import enum

from pytest_perfgate.model.metric import Labels
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value


class Operator(str, enum.Enum):
    """How a metric is held against its limit."""

    AT_MOST = "<="
    AT_LEAST = ">="
    LESS = "<"
    MORE = ">"
    EQUAL = "=="


@value
class Limit:
    """``METRIC[(SCOPE)] OP VALUE[UNIT]`` as a value; the bound is in the units of the inside."""

    metric: str
    labels: Labels
    operator: Operator
    bound: float
    dimension: Dimension
    text: str
    source: str = "marker"
    """Where it was written: marker, fixture, configuration, command line, default."""
    on: tuple[str, ...] = ()
    """Device patterns on which it applies; empty means everywhere."""
    except_on: tuple[str, ...] = ()
    """Device patterns on which a closer limit took its place."""

    @property
    def key(self) -> tuple[str, Labels]:
        return (self.metric, self.labels)


class Outcome(str, enum.Enum):
    """What a limit came to; never a bool. The order is from best to worst."""

    PASSED = "passed"
    IMPROVED = "improved"
    ACCEPTED = "accepted"
    NOT_APPLICABLE = "not applicable"
    MOVED = "moved"
    SUSPECT = "suspect"
    UNSTABLE = "unstable"
    UNDECIDED = "undecided"
    UNBASELINED = "unbaselined"
    NOT_MEASURED = "not measured"
    INVALID = "invalid"
    REGRESSED = "regressed"
    BROKEN = "broken"


class Effect(str, enum.Enum):
    """What an outcome does to the test: after the policy was asked."""

    PASS = "pass"  # noqa: S105 - an effect, not a secret
    WARN = "warn"
    FAIL = "fail"
