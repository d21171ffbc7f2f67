"""Metrics, metric sets, documents (tables, paragraphs), problems."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Union

from pytest_perfgate.model.values import Better, Dimension, array_value, value

Labels = tuple[tuple[str, str], ...]
"""Scope of a metric as sorted (name, text) pairs, such as ``(("rank", "0"), ("stage", "stage2_f"))``."""

FigureName = tuple[str, Labels]
"""What a figure is called, with its scope."""

Levels = Mapping[FigureName, Sequence[float]]
"""Figures over the runs of a case; not a number where a run has none of that name."""

HALF = 0.5
"""The part of a capture under which its windows say little of it."""


def labels(**named: object) -> Labels:
    """Sorted labels from keywords."""
    return tuple(sorted((key, str(text)) for key, text in named.items()))


_BARE = re.compile(r"[\w.*?:/+@$~!|%-]+(?: [\w.*?:/+@$~!|%-]+)*", re.ASCII)


def quoted(text: str) -> str:
    """The text of a scope, bare where it reads back alike, in double quotes otherwise."""
    if _BARE.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def figure_title(name: str, scope: Labels) -> str:
    """A metric with its scope: ``overlap(rank=0, stage=stage2)``."""
    return f"{name}({', '.join(f'{label}={quoted(text)}' for label, text in scope)})" if scope else name


_TITLE = re.compile(r"([A-Za-z_][\w.]*)(?:\((.*)\))?", re.ASCII | re.DOTALL)

_LABEL = re.compile(r'([A-Za-z_]\w*)=(?:"((?:[^"\\]|\\.)*)"|([^",]*))(?:, |\Z)', re.DOTALL)


def parse_figure_title(text: str) -> tuple[str, Labels] | None:
    """The metric and the scope that ``figure_title`` wrote; nothing where a text is no such title."""
    match = _TITLE.fullmatch(text)
    if match is None:
        return None
    scope: list[tuple[str, str]] = []
    inside, at = match[2] or "", 0
    while at < len(inside):
        label = _LABEL.match(inside, at)
        if label is None:
            return None
        scope.append((label[1], label[3] if label[2] is None else re.sub(r"\\(.)", r"\1", label[2])))
        at = label.end()
    return match[1], tuple(sorted(scope))


@value
class MetricKind:
    """What can be asked of a metric: its name, dimension, direction and scopes."""

    name: str
    dimension: Dimension
    better: Better
    doc: str
    """What it is, as the table of limits and ``perfgate explain`` print it."""
    scopes: tuple[str, ...] = ()
    """What a limit may select it by, such as ``rank``; every metric takes ``case``."""
    positional: str = ""
    """The scope that a bare word fills: ``count(HMMA)`` means ``count(opcode=HMMA)``."""
    aliases: tuple[str, ...] = ()
    source: str = "time"
    """Which capture or timer produces it, named when it was not collected; ``time`` is any timed call."""
    exact: bool = False
    """Whether two measurements of the same code give the same number: a count, a size, a fact of the code."""


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
    better: Better | None = None
    """The direction of a figure of the user's own; of all others their kind says it."""
    exact: bool = False
    """Whether the user counts it rather than measures it: any difference is one."""

    @property
    def low(self) -> float:
        return self.interval.low if self.interval else self.value

    @property
    def high(self) -> float:
        return self.interval.high if self.interval else self.value


@value
class Figure:
    """One accepted figure of a case beside its time."""

    name: str
    value: float
    dimension: Dimension
    labels: Labels = ()
    scatter: float = 0.0
    """Standard deviation between runs: as a fraction of the value, of a percentage in its own unit."""
    sittings: int = 1

    @property
    def title(self) -> str:
        """The metric with its scope, as its line has it: ``overlap(stage=stage2)``."""
        return figure_title(self.name, self.labels)


@value
class FigurePairs:
    """One figure of a case in the rounds of two arms."""

    name: str
    labels: Labels
    dimension: Dimension
    base: tuple[float, ...]
    head: tuple[float, ...]

    @property
    def repeats(self) -> bool:
        """Whether each side read the same in every round."""
        return len(set(self.base)) <= 1 and len(set(self.head)) <= 1


@value
class Absent:
    """A metric that was asked for and not collected, with the reason and the fix."""

    name: str
    labels: Labels = ()
    why: str = "not collected"
    fix: str = ""
    code: str = ""
    """The problem for which it is not to be trusted: a limit on it is INVALID, not merely NOT MEASURED."""


@value
class MetricSet:
    """Every metric of one measurement or artifact, and what is known to be absent."""

    metrics: tuple[Metric, ...] = ()
    absent: tuple[Absent, ...] = ()

    def absences(self, name: str) -> tuple[Absent, ...]:
        """Every metric of one name that is known to be absent."""
        return tuple([a for a in self.absent if a.name == name])

    def find(self, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        """Metrics that a scope selects: those with the fewest labels beside the ones it names.

        An exact aggregate wins over its parts; without one, every part is returned and each
        must hold. Scope texts are globs; a bare ``stage2`` also matches ``stage2_f``.
        """
        return selected([m for m in self.metrics if m.name == name], scope)

    def missing(self, name: str, scope: Labels = ()) -> Absent | None:
        """Why a metric is not here, where the instrument said so."""
        return next((a for a in self.absences(name) if matches(a.labels, scope)), None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({m.name for m in self.metrics}))

    def absent_once(self) -> tuple[Absent, ...]:
        """What is absent, one entry for each reason where no kernel, step or rank has the metric at all."""
        present = {m.name for m in self.metrics}
        return tuple(dict.fromkeys(a if a.name in present else replace(a, labels=()) for a in self.absent))

    def __or__(self, other: MetricSet) -> MetricSet:
        return MetricSet(metrics=self.metrics + other.metrics, absent=self.absent + other.absent)


def selected(named: Sequence[Metric], scope: Labels) -> tuple[Metric, ...]:
    """Of metrics of one name those that a scope selects; see ``MetricSet.find``."""
    hits = [m for m in named if m.labels == scope or matches(m.labels, scope)] if scope else named
    if len(hits) < 2:
        return tuple(hits)
    fewest = min(len(m.labels) for m in hits)
    return tuple(m for m in hits if len(m.labels) == fewest)


def matches(have: Labels, wanted: Labels) -> bool:
    """Whether labels satisfy a scope, globs included."""
    if not wanted:
        return True
    own = dict(have)
    return all(name in own and _fits(own[name], pattern) for name, pattern in wanted)


def _fits(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern) or fnmatchcase(text, pattern + "_?")


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


Cell = Union[str, float, int, None]


@value
class Column:
    """A column with what its numbers mean."""

    name: str
    dimension: Dimension = Dimension.TEXT
    unit: str = ""
    """Forces one unit for the whole column (``ns``); empty picks a readable one."""
    digits: int = 4
    absent: str = "not collected"
    """How a cell without a number shows: of a capture, what it did not collect."""


@value
class Table:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    limit: int = 0
    """Rows a person sees; 0 means all. Data formats always carry every row."""
    rest: str = "all of them with --json or --csv"
    """How to see the rows that are left out."""

    @property
    def filled(self) -> Table:
        """Without the columns in which no row has a word."""
        full = [at for at in range(len(self.columns)) if not self.rows or any(row[at] != "" for row in self.rows)]
        rows = tuple(tuple(row[at] for at in full) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in full), rows=rows)


@value
class Paragraph:
    text: str


@value
class Bullets:
    items: tuple[str, ...]
    ordered: bool = False


@value
class Link:
    """A way to the section of this anchor, with the words that stand for it."""

    text: str
    anchor: str


@value
class Code:
    text: str
    language: str = ""


@value
class Bar:
    """A line of a picture in a terminal: parts of the full length behind each other, with words on both sides."""

    label: str
    parts: tuple[float, ...] = ()
    text: str = ""


@value
class Picture:
    """A drawing as SVG, with the sentence that stands for it where no picture can be shown."""

    svg: str
    alt: str
    name: str = ""
    """How it is asked for by itself."""
    narrow: str = ""
    """The same for a phone."""
    key: tuple[str, ...] = ()
    """What the parts of its bars are."""
    bars: tuple[Bar, ...] = ()
    """The same for a terminal."""


@value
class Section:
    title: str
    blocks: tuple[Union[Paragraph, Bullets, Link, Code, Picture, Table, Section], ...]
    anchor: str = ""


Block = Union[Paragraph, Bullets, Link, Code, Picture, Table, Section]


@value
class Document:
    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""


@array_value
class Analysis:
    """One artifact, or the several of one job, analysed. Views are built when asked for."""

    kind: str
    subject: str
    metrics: MetricSet
    views: Mapping[str, Callable[[], Document]]
    """The first is the default."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Whatever makes every limit on it INVALID: coverage under the floor, for one."""
    window: str = ""
    """Where the figures are from; always printed beside them."""
    devices: tuple[str, ...] = ()
    """Names of the devices that it ran on, or the architectures of machine code, as far as the file says."""
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts that belong beside the artifact, by relative path: annotated source, machine code. Built when asked for."""
    kept: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts that a profile keeps beside its report, by relative path, for other programs. Built when asked for."""
    reports: Mapping[str, str] = field(default_factory=dict)
    """Written reports: the name of the file, without its ending, and the view that it holds."""
    tables: tuple[str, ...] = ()
    """Views whose tables are worth exporting; all of them where none is named."""
    pictures: Mapping[str, Callable[[], Picture]] = field(default_factory=dict)
    """Pictures by name, those worth the first look first. Drawn when asked for; one may raise why there is none."""


@value
class Interval:
    """A closed range that holds the truth with the stated confidence."""

    low: float
    high: float
    confidence: float = 0.95

    @property
    def width(self) -> float:
        return self.high - self.low

    def holds(self, number: float) -> bool:
        return self.low <= number <= self.high
