"""Metrics, metric sets, documents (tables, paragraphs), problems."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Union

from pytest_perfgate.model.values import OF_ITEMS, Better, Dimension, array_value, regex, value

Labels = tuple[tuple[str, str], ...]
"""Scope of a metric as sorted (name, text) pairs, such as ``(("rank", "0"), ("stage", "stage2_f"))``."""

FigureName = tuple[str, Labels]  # its name and its scope

Levels = Mapping[FigureName, Sequence[float]]
"""Figures over the runs of a case; NaN for a run without one of that name."""

HALF = 0.5  # the covered part of a capture below which its windows say little about it


def labels(**named: object) -> Labels:
    """Return sorted labels from keywords."""
    return tuple(sorted((key, str(text)) for key, text in named.items()))


_BARE = regex(r"[\w.*?:/+@$~!|%-]+(?: [\w.*?:/+@$~!|%-]+)*", re.ASCII)


def quoted(text: str) -> str:
    """Return the text of a scope, bare if it reads back alike, otherwise in double quotes."""
    return text if _BARE.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def figure_title(name: str, scope: Labels) -> str:
    """Return a metric with its scope: ``overlap(rank=0, stage=stage2)``."""
    return f"{name}({', '.join(f'{label}={quoted(text)}' for label, text in scope)})" if scope else name


_TITLE = regex(r"([A-Za-z_][\w.]*)(?:\((.*)\))?", re.ASCII | re.DOTALL)

_LABEL = regex(r'([A-Za-z_]\w*)=(?:"((?:[^"\\]|\\.)*)"|([^",]*))(?:, |\Z)', re.DOTALL)


def parse_figure_title(text: str) -> tuple[str, Labels] | None:
    """Return the metric and the scope that ``figure_title`` wrote; None for another text."""
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
    """A kind of metric: its name, dimension, direction and scopes."""

    name: str
    dimension: Dimension
    better: Better
    doc: str
    """Its meaning, as the table of limits and ``perfgate explain`` print it."""
    scopes: tuple[str, ...] = ()
    """Scopes by which a limit may select it, such as ``rank``; every metric accepts ``case``."""
    positional: str = ""
    """The scope of a bare word: ``count(HMMA)`` means ``count(opcode=HMMA)``."""
    aliases: tuple[str, ...] = ()
    source: str = "time"
    """The capture or timer that produces it, named when it was not collected; ``time`` is any timed call."""
    exact: bool = False
    """Whether two measurements of the same code give the same number: a count, a size, a property of the code."""


@value
class Metric:
    """One measured number with its scope and, if known, its interval."""

    name: str
    value: float
    dimension: Dimension
    labels: Labels = ()
    interval: Interval | None = None
    source: str = ""
    note: str = ""
    better: Better | None = None
    """The direction of a figure of the user's own; other figures have that of their kind."""
    exact: bool = False
    """Whether the user counts it rather than measures it, so that any difference is a change."""

    @property
    def noun(self) -> str:
        """What a rate counts, by its note: ``tokens/s``, or ``OPS`` of integers; "" for other figures."""
        return self.note.removeprefix(OF_ITEMS).partition(";")[0] if self.note.startswith(OF_ITEMS) else ""

    @property
    def low(self) -> float:
        return self.interval.low if self.interval else self.value

    @property
    def high(self) -> float:
        return self.interval.high if self.interval else self.value


@value
class Figure:
    """One accepted figure of a case other than its time."""

    name: str
    value: float
    dimension: Dimension
    labels: Labels = ()
    scatter: float = 0.0
    """Standard deviation between runs: as a fraction of the value, for a percentage in its own unit."""
    runs: int = 1

    @property
    def title(self) -> str:
        """The metric with its scope, as in its line: ``overlap(stage=stage2)``."""
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
    """A requested metric that was not collected, with the reason and the fix."""

    name: str
    labels: Labels = ()
    why: str = "not collected"
    fix: str = ""
    code: str = ""
    """The problem that makes it untrustworthy: a limit on it is INVALID, not merely NOT MEASURED."""


@value
class MetricSet:
    """Every metric of one measurement or artifact, and those known to be absent."""

    metrics: tuple[Metric, ...] = ()
    absent: tuple[Absent, ...] = ()

    def absences(self, name: str) -> tuple[Absent, ...]:
        """Return every absent metric of one name."""
        return tuple([a for a in self.absent if a.name == name])

    def find(self, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        """Return the metrics that a scope selects; see ``selected``."""
        return selected([m for m in self.metrics if m.name == name], scope)

    def missing(self, name: str, scope: Labels = ()) -> Absent | None:
        """Return why a metric is absent, if the instrument said so."""
        return next((a for a in self.absences(name) if matches(a.labels, scope)), None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({m.name for m in self.metrics}))

    def absent_once(self) -> tuple[Absent, ...]:
        """Return absent metrics, one entry for each reason if no kernel, step or rank has the metric."""
        present = {m.name for m in self.metrics}
        return tuple(dict.fromkeys(a if a.name in present else replace(a, labels=()) for a in self.absent))

    def __or__(self, other: MetricSet) -> MetricSet:
        return MetricSet(metrics=self.metrics + other.metrics, absent=self.absent + other.absent)


def selected(named: Sequence[Metric], scope: Labels) -> tuple[Metric, ...]:
    """Return the metrics of one name that a scope selects: an aggregate, or without one every part of it."""
    hits = [m for m in named if m.labels == scope or matches(m.labels, scope)] if scope else named
    if len(hits) < 2:
        return tuple(hits)
    fewest = min(len(m.labels) for m in hits)
    return tuple(m for m in hits if len(m.labels) == fewest)


def matches(have: Labels, wanted: Labels) -> bool:
    """Return whether labels satisfy a scope of globs; ``stage2`` also matches ``stage2_f``."""
    own = dict(have)
    return all(name in own and _fits(own[name], pattern) for name, pattern in wanted)


def _fits(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern) or fnmatchcase(text, pattern + "_?")


@value
class Problem:
    """A reason to doubt a measurement, with its evidence. It makes limits INVALID."""

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
    """A finding of an analysis, with the metric that triggered it."""

    title: str
    detail: str = ""
    trigger: str = ""
    """``metric=value``: never empty for a recommendation."""
    advice: str = ""
    gain: Interval | None = None
    """Expected end-to-end gain as fractions, if an instrument or a measurement gives one."""
    doubt: str = ""
    conflicts: tuple[str, ...] = ()
    severity: Severity = Severity.NOTE
    scope: str = ""


Cell = Union[str, float, int, None]
_COLUMN = regex(rf"((?! )[^|:]*(?<! ))(?:: ({'|'.join(kind.value for kind in Dimension)})(?: (\d))?)?")


@value
class Column:
    """A column with the meaning of its numbers."""

    name: str
    dimension: Dimension = Dimension.TEXT
    unit: str = ""
    """The unit of the whole column (``ns``); "" picks a readable one."""
    digits: int = 4
    absent: str = "not collected"
    """The text of a cell without a number, such as what a capture did not collect."""

    @classmethod
    def header(cls, text: str, absent: str = "not collected") -> tuple[Column, ...]:
        """Return the columns of ``kernel | launches: count | share: fraction 3``: names, dimensions, digits."""
        columns = []
        for part in text.split(" | "):
            if not (match := _COLUMN.fullmatch(part)):
                raise ValueError(f"{part!r} in a header is no NAME, NAME: DIMENSION or NAME: DIMENSION DIGITS")
            name, kind, digits = match.groups()
            columns.append(cls(name=name, dimension=Dimension(kind or "text"), digits=int(digits or 4), absent=absent))
        return tuple(columns)


@value
class Table:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    limit: int = 0
    """The most rows shown to people; 0 means all. Data formats always have every row."""
    rest: str = "all of them with --json or --csv"
    """How to see the rows that are left out."""

    @property
    def filled(self) -> Table:
        """Return the table without its empty columns."""
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
    """A link to the section of this anchor, with its text."""

    text: str
    anchor: str


@value
class Code:
    text: str
    language: str = ""


@value
class Bar:
    """A line of a picture in a terminal: consecutive parts of the full length, with text on both sides."""

    label: str
    parts: tuple[float, ...] = ()
    text: str = ""


@value
class Picture:
    """A drawing as SVG, with the sentence that replaces it where no picture can be shown."""

    svg: str
    alt: str
    name: str = ""
    """The name by which it is requested."""
    narrow: str = ""
    """The drawing for a phone."""
    key: tuple[str, ...] = ()
    """The meanings of its bars' parts."""
    bars: tuple[Bar, ...] = ()
    """The bars for a terminal."""


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
    """The analysis of one artifact, or of the several of one job. Views are built on first use."""

    kind: str
    subject: str
    metrics: MetricSet
    views: Mapping[str, Callable[[], Document]]
    """The views by name; the first is the default."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Problems that make every limit on it INVALID, such as coverage under the minimum."""
    window: str = ""
    """What the figures cover; always printed beside them."""
    devices: tuple[str, ...] = ()
    """Names of the devices that it ran on, or the architectures of machine code, as far as the file has them."""
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts for files beside the artifact, by relative path: annotated source, machine code. Built on first use."""
    data: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts for other programs in a profile's folder, by relative path. Built on first use."""
    reports: Mapping[str, str] = field(default_factory=dict)
    """Reports to write: the name of the file, without its ending, and the view that it contains."""
    tables: tuple[str, ...] = ()
    """Views whose tables are worth exporting; empty for all."""
    pictures: Mapping[str, Callable[[], Picture]] = field(default_factory=dict)
    """Pictures by name, the most useful first. Drawn on first use; one may raise with the reason."""


@value
class Interval:
    """A closed range that contains the true value with the stated confidence."""

    low: float
    high: float
    confidence: float = 0.95

    def holds(self, number: float) -> bool:
        return self.low <= number <= self.high


def kind_title(kind: str) -> str:
    """Return the name by which a person knows a kind of file."""
    return "PyTorch trace (kineto)" if kind == "kineto" else kind
