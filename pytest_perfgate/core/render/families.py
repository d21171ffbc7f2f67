"""Tables of parametrised tests: sizes by implementations, and any two parameters against each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.family import extremes
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.drawing import MARK, OTHER, SOFT, Axis, Frame, dot, line, picture, responsive, words
from pytest_perfgate.core.render.text import table_lines
from pytest_perfgate.core.render.words import printable, quantity, signed
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.metric import Block, Cell, Column, Metric, Picture, Section, Table
from pytest_perfgate.model.plan import CHANGES, SPEEDUP, Outcome
from pytest_perfgate.model.values import Better, Dimension, grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.verdict import CaseReport

CALL = "call"
"""The parameter name that means the ``name=`` of a call."""

TIME = "time"

_FINE = frozenset({Outcome.PASSED, Outcome.IMPROVED, Outcome.ACCEPTED, Outcome.NOT_APPLICABLE, Outcome.UNBASELINED})

_NOTHING = "-"

_PIVOT = re.compile(r"\s*(\w+)\s*(?:x|×|,)\s*(\w+)\s*(?:of\s+(\w+)\s*)?")

_COLOURS = (MARK, OTHER, SOFT)
_DASHES = ("", "6 4", "2 3")

Values = tuple[str, ...]


@value
class Pivot:
    """Two parameters whose values head the rows and the columns of a table, and the figure in its cells."""

    rows: str
    columns: str
    metric: str = ""
    """Empty for the figure that the tests have a limit on; the time if that has no figure."""


def parse_pivot(text: str, place: str = "") -> Pivot:
    """Parse ``n x dtype``, or ``n x dtype of mfu``; ``place`` is where it was written."""
    match = _PIVOT.fullmatch(text)
    if match is None or match[1] == match[2]:
        fix = 'write two parameters and, if you like, a metric: "n x dtype of mfu"'
        raise PerfgateError("option-wrong", f"{text!r} is not two parameters", fix=fix, place=place)
    return Pivot(rows=match[1], columns=match[2], metric=match[3] or "")


def family_sections(
    cases: Iterable[CaseReport], pivots: Sequence[str] = (), *, drawn: bool = True
) -> tuple[Block, ...]:
    """Return a section for each family with calls to compare, or with two of the requested parameters."""
    families = _families(cases)
    implementations = (_implementations(name, members, drawn=drawn) for name, members in families.items())
    sections: list[Block] = [section for section in implementations if section is not None]
    for pivot in map(parse_pivot, pivots):
        sections += [_pivoted(name, members, pivot) for name, members in families.items() if _fits(members, pivot)]
    return tuple(sections)


def family_lines(cases: Iterable[CaseReport], pivots: Sequence[str]) -> list[str]:
    """Return the same for a terminal."""
    lines = list(_unmatched_pairs(cases := list(cases), pivots))
    for section in family_sections(cases, pivots, drawn=False):
        if isinstance(section, Section):
            tables = [block for block in section.blocks if isinstance(block, Table)]
            lines += [section.title, *(f"  {text}" for table in tables for text in table_lines(table))]
    return lines


def _unmatched_pairs(cases: Sequence[CaseReport], pivots: Sequence[str]) -> Iterator[str]:
    """Yield the pairs with a parameter that no test has."""
    known = {name for case in cases if case.measurement for name, _ in case.measurement.params}
    for pair in pivots if known else ():
        for name in (parse_pivot(pair).rows, parse_pivot(pair).columns):
            if name not in {*known, CALL}:
                near = proposal(name, sorted(known), all_of="there are")
                yield f"no table {pair!r}: no test here has a parameter {name!r}; {near}"


@value
class Member:
    """One measured call of a family."""

    case: CaseReport
    measurement: Measurement

    @property
    def params(self) -> dict[str, str]:
        """The parameters of its test, and the name of the call."""
        return {**dict(self.measurement.params), CALL: self.case.key.name}

    def row(self) -> Values:
        """The parameters that distinguish its test from others of the family."""
        return tuple(text for _, text in self.measurement.params)


def _families(cases: Iterable[CaseReport]) -> dict[str, list[Member]]:
    """Group members by the test without parameters, and by device if a report has several."""
    members = [Member(case=case, measurement=case.measurement) for case in cases if case.measurement]
    devices = {member.measurement.device.key for member in members}

    def family(member: Member) -> str:
        place = f" on {member.measurement.device.key}" if len(devices) > 1 else ""
        return f"{member.case.key.nodeid.partition('[')[0]}{place}"

    return grouped(members, family)


def _implementations(name: str, members: Sequence[Member], *, drawn: bool) -> Section | None:
    """Return sizes by implementations: the time of each call, and its speed-up over the reference."""
    if not any(member.measurement.references for member in members):
        return None
    names = list(dict.fromkeys(member.case.key.name for member in members))
    rows = _ordered(list(dict.fromkeys(member.row() for member in members)))
    cells = {(member.row(), member.case.key.name): member for member in members}
    table = Table(
        columns=(
            *(Column(name=parameter) for parameter, _ in members[0].measurement.params),
            *(Column(name=call or "call", absent=_NOTHING) for call in names),
        ),
        rows=tuple((*row, *(_timed(cells.get((row, call))) for call in names)) for row in rows),
        note=_of_families(members) if len(rows) > 1 else "",
    )
    plot = _plot(name, rows, {call: [cells.get((row, call)) for row in rows] for call in names}) if drawn else None
    return Section(title=printable(name), blocks=(table, *([plot] if plot else [])))


def _timed(member: Member | None) -> Cell:
    """Return ``468.9 µs, 1.31x``; with several references, each by name."""
    time = _figure(member, TIME) if member else None
    if member is None or time is None:
        return None
    ratios = member.measurement.metrics.find(SPEEDUP)
    named = [(dict(m.labels).get("over", ""), quantity(m.value, m.dimension, 3)) for m in ratios]
    texts = [f"{text} {over}" if len(named) > 1 else text for over, text in named]
    return printable(", ".join((quantity(time.value, time.dimension), *texts, *_bad_outcome(member))))


def _bad_outcome(member: Member) -> tuple[str, ...]:
    """Return the outcome of a case if it is not a good one."""
    worst = member.case.worst
    return (worst.value.upper(),) if member.case.verdicts and worst not in _FINE else ()


def _of_families(members: Sequence[Member]) -> str:
    """Return the mean and the worst speed-up of each implementation over each reference, in a line."""
    ratios: dict[tuple[str, str], list[tuple[Metric, str]]] = {}
    for member in members:
        for metric in member.measurement.metrics.find(SPEEDUP):
            over = dict(metric.labels).get("over", "")
            ratios.setdefault((member.case.key.name, over), []).append((metric, _place(member)))
    texts = (f"{name or 'call'} over {over}: {summed(figures)}" for (name, over), figures in ratios.items())
    return printable("; ".join(texts))


def summed(figures: Sequence[tuple[Metric, str]], *, higher: bool = True) -> str:
    """Return ``geomean 1.29x, worst 1.2x at n=64``."""
    (metric, _), (mean, worst, place) = figures[0], extremes(figures, higher=higher)
    if metric.name in CHANGES:
        return f"geomean {signed(mean)}, worst {signed(worst)} at {place}"
    return f"geomean {quantity(mean, metric.dimension, 3)}, worst {quantity(worst, metric.dimension, 3)} at {place}"


def _place(member: Member) -> str:
    return ", ".join(f"{name}={text}" for name, text in member.measurement.params) or "its only case"


def _figure(member: Member, name: str) -> Metric | None:
    """Return the figure that a limit judged, else the plain one of that name."""
    judged = next((v.metric for v in member.case.verdicts if v.metric and v.metric.name == name), None)
    return judged or next(iter(member.measurement.metrics.find(name)), None)


def _ordered(rows: list[Values]) -> list[Values]:
    """Return rows by size if a parameter is a number, else in the order of measuring."""
    ranks = [_ranks(list(dict.fromkeys(column))) for column in zip(*rows)]
    return sorted(rows, key=lambda row: [rank[text] for rank, text in zip(ranks, row)])


def _ranks(texts: Sequence[str]) -> dict[str, float]:
    numbers = [_number(text) for text in texts]
    known = [number for number in numbers if number is not None]
    return dict(zip(texts, known if len(known) == len(texts) else map(float, range(len(texts)))))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _fits(members: Sequence[Member], pivot: Pivot) -> bool:
    return all({pivot.rows, pivot.columns} <= set(member.params) for member in members) and len(members) > 1


def _pivoted(name: str, members: Sequence[Member], pivot: Pivot) -> Section:
    """Return one table for each combination of the other parameters."""
    limited = (verdict.metric.name for member in members for verdict in member.case.verdicts if verdict.metric)
    metric = pivot.metric or next(limited, TIME)
    groups: dict[str, list[Member]] = {}
    for member in (member for member in members if _figure(member, metric)):
        others = {param: text for param, text in member.params.items() if param not in {pivot.rows, pivot.columns}}
        shown = ", ".join(f"{param}={text}" for param, text in others.items() if text)
        groups.setdefault(shown, []).append(member)
    tables = tuple(_pivot_table(of_group, pivot, metric, title) for title, of_group in groups.items())
    return Section(title=printable(f"{name}: {metric}, {pivot.rows} x {pivot.columns}"), blocks=tables)


def _pivot_table(members: Sequence[Member], pivot: Pivot, metric: str, title: str) -> Table:
    rows, columns = (
        [value for (value,) in _ordered(list(dict.fromkeys((member.params[param],) for member in members)))]
        for param in (pivot.rows, pivot.columns)
    )
    cells = {(member.params[pivot.rows], member.params[pivot.columns]): member for member in members}
    figures = [(figure, _place(member)) for member in members if (figure := _figure(member, metric)) is not None]
    several = len(figures) > 1 and CALL not in {pivot.rows, pivot.columns}
    return Table(
        columns=(
            Column(name=pivot.rows),
            *(Column(name=printable(f"{pivot.columns}={text}"), absent=_NOTHING) for text in columns),
        ),
        rows=tuple((printable(row), *(_cell(cells.get((row, text)), metric) for text in columns)) for row in rows),
        title=printable(title),
        note=printable(summed(figures, higher=_higher_is_better(figures[0][0]))) if several else "",
    )


def _higher_is_better(metric: Metric) -> bool:
    """Return whether a higher figure is better, by its kind or by the test."""
    kind = by_name().get(metric.name)
    return (metric.better or (kind.better if kind else Better.HIGHER)) is Better.HIGHER


def _cell(member: Member | None, metric: str) -> Cell:
    figure = _figure(member, metric) if member else None
    if member is None or figure is None:
        return None
    shown = signed(figure.value) if metric in CHANGES else quantity(figure.value, figure.dimension)
    return ", ".join((shown, *_bad_outcome(member)))


def _plot(name: str, rows: Sequence[Values], series: dict[str, list[Member | None]]) -> Picture | None:
    """Plot time over size, a line for each implementation; sizes that are not numbers are placed side by side."""
    sizes = [_number(row[0]) if len(row) == 1 else None for row in rows]
    known = [size for size in sizes if size is not None and size > 0]
    numeric = len(known) == len(rows)
    across = known if numeric else [float(at) for at in range(len(rows))]
    lines: dict[str, list[tuple[float, float]]] = {}
    for call, members in series.items():
        times_of = [(x, _figure(member, TIME)) for x, member in zip(across, members) if member]
        lines[call] = [(x, time.value) for x, time in times_of if time]
    times = [time for points in lines.values() for _, time in points if time > 0]
    if len(rows) < 2 or not times:
        return None
    x = _sizes(across, [", ".join(row) for row in rows], numeric=numeric, label=_heading(series))
    y = Axis(low=min(times) / 1.5, high=max(times) * 1.5, label="time of a call", log=True, text=_time_text)
    alt = f"Time by size of {name}: {', '.join(call or 'call' for call in lines)}"
    return responsive("sizes", lambda width: _curves(Frame(x=x, y=y, width=width), lines, alt), alt)


def _curves(frame: Frame, lines: dict[str, list[tuple[float, float]]], alt: str) -> str:
    marks = []
    for number, (call, points) in enumerate(lines.items()):
        colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]
        marks.append(line(frame, points, colour=colour, dash=dash))
        marks += [dot(frame, x, time, title=f"{call}: {_time_text(time)}", colour=colour) for x, time in points]
        marks.append(words(frame.left + 12, frame.top + 16 * (number + 1), call or "call", colour=colour))
    return picture(frame, marks, alt)


def _heading(series: dict[str, list[Member | None]]) -> str:
    members = (member for members in series.values() for member in members if member)
    return next((", ".join(name for name, _ in member.measurement.params) for member in members), "")


def _sizes(across: Sequence[float], labels: Sequence[str], *, numeric: bool, label: str) -> Axis:
    """Return the axis of sizes, logarithmic if they are numbers."""
    if numeric:
        return Axis(low=min(across) / 1.2, high=max(across) * 1.2, label=label, log=True, text="{:g}".format)
    text: Callable[[float], str] = lambda at: labels[int(at)] if at == int(at) and 0 <= at < len(labels) else ""  # noqa: E731
    return Axis(low=-0.5, high=len(labels) - 0.5, label=label, text=text, whole=True)


def _time_text(nanoseconds: float) -> str:
    return quantity(nanoseconds, Dimension.TIME, 3)
