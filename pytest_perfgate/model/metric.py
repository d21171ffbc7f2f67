"""Metrics: named, labelled numbers that a limit can be held against."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pytest_perfgate.model.quantity import Better, Dimension, Interval
from pytest_perfgate.model.values import value

Labels = tuple[tuple[str, str], ...]
"""Scope of a metric as sorted (name, text) pairs, such as ``(("rank", "0"), ("stage", "stage2_f"))``."""


def labels(**named: object) -> Labels:
    """Sorted labels from keywords."""
    return tuple(sorted((key, str(text)) for key, text in named.items()))


@value
class MetricKind:
    """What can be asked of a metric: its name, dimension, direction and scopes."""

    name: str
    dimension: Dimension
    better: Better
    doc: str
    scopes: tuple[str, ...] = ()
    positional: str = ""
    """The scope that a bare word fills: ``count(HMMA)`` means ``count(opcode=HMMA)``."""
    aliases: tuple[str, ...] = ()
    source: str = "time"
    """Which capture or timer produces it, named when it was not collected."""


@value
class Metric:
    """One measured number with its scope and, where it is known, its interval."""

    name: str
    value: float
    dimension: Dimension
    labels: Labels = ()
    interval: Interval | None = None
    source: str = ""
    note: str = ""

    @property
    def low(self) -> float:
        return self.interval.low if self.interval else self.value

    @property
    def high(self) -> float:
        return self.interval.high if self.interval else self.value


@value
class Absent:
    """A metric that was asked for and not collected, with the reason and the mend."""

    name: str
    labels: Labels = ()
    why: str = "not collected"
    mend: str = ""
    code: str = ""
    """The problem for which it is not to be trusted: a limit on it is INVALID, not merely NOT MEASURED."""


@value
class MetricSet:
    """Every metric of one measurement or artifact, and what is known to be absent."""

    metrics: tuple[Metric, ...] = ()
    absent: tuple[Absent, ...] = ()

    def of(self, name: str) -> MetricSet:
        """Those of one name alone."""
        return MetricSet(
            metrics=tuple([m for m in self.metrics if m.name == name]),
            absent=tuple([a for a in self.absent if a.name == name]),
        )

    def find(self, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        """Metrics that a scope selects: those with the fewest labels beside the ones it names.

        An exact aggregate wins over its parts; without one, every part is returned and each
        must hold. Scope texts are globs; a bare ``stage2`` also matches ``stage2_f``.
        """
        return selected([m for m in self.metrics if m.name == name], scope)

    def missing(self, name: str, scope: Labels = ()) -> Absent | None:
        """Why a metric is not here, where the instrument said so."""
        return next((a for a in self.absent if a.name == name and matches(a.labels, scope)), None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({m.name for m in self.metrics}))

    def __or__(self, other: MetricSet) -> MetricSet:
        return MetricSet(metrics=self.metrics + other.metrics, absent=self.absent + other.absent)


def selected(named: Sequence[Metric], scope: Labels) -> tuple[Metric, ...]:
    """Of metrics of one name those that a scope selects; see ``MetricSet.find``."""
    hits = [m for m in named if matches(m.labels, scope)]
    if len(hits) < 2:
        return tuple(hits)
    fewest = min(len(m.labels) for m in hits)
    return tuple(m for m in hits if len(m.labels) == fewest)


def matches(have: Labels, wanted: Labels) -> bool:
    """Whether labels satisfy a scope, globs included."""
    if not wanted:
        return True
    held = dict(have)
    return all(name in held and _fits(held[name], pattern) for name, pattern in wanted)


def _fits(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern) or fnmatchcase(text, pattern + "_?")
