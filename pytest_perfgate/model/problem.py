"""Problems and findings: what is wrong with a measurement, what was seen in it."""

from __future__ import annotations

import enum

from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.values import value


@value
class Problem:
    """A reason not to trust a measurement, with its evidence. It makes limits INVALID."""

    code: str
    what: str
    evidence: tuple[tuple[str, str], ...] = ()
    retry: bool = True
    """Whether measuring again can help."""


class Severity(str, enum.Enum):
    INFO = "info"
    NOTE = "note"
    WARNING = "warning"


@value
class Finding:
    """Something an analysis saw, with the metric that triggered it."""

    title: str
    detail: str = ""
    trigger: str = ""
    """``metric=value``: never empty for a recommendation."""
    advice: str = ""
    gain: Interval | None = None
    """Expected end-to-end gain as fractions, where an instrument or a measurement says so."""
    doubt: str = ""
    conflicts: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    scope: str = ""
