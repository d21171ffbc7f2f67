"""Lasting slowdowns by the commit that caused them, and cases that have not been measured for days."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, pairwise
from math import inf
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.judge.context import how_measured
from pytest_perfgate.core.render.words import TIMES, FigureLevel, plural, printable
from pytest_perfgate.core.stats.change_points import ChangePoint, change_points
from pytest_perfgate.model.measurement import Baseline, HistoryEntry, short_commit
from pytest_perfgate.model.metric import Block, Bullets, Cell, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.values import first_of, grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey

LEVEL = 0.01
"""The error rate of change points: of a thousand series without any, a few show one, mostly below ``OVER``."""

STEP = 0.01
"""Smaller changes cannot be distinguished from a drifting series."""

OVER = 0.02
"""Smaller steps are not reported as regressions; the anchor catches their sum."""

STALE_DAYS = 14

_DIGITS, _DIGITS_OF_LINE = 7, 20

_SHOWN = 20
"""The most rows of a table for people, with the largest changes."""

_BACK = 0.5
"""A step is gone when less than this share of it remains."""


class Trend:
    """A case on one device over the runs that were measured like the newest: its times, or a figure."""

    def __init__(
        self, entries: Sequence[HistoryEntry], accepted: Baseline | None = None, anchor: Baseline | None = None,
        of: FigureLevel = TIMES, levels: Sequence[float] = (),
    ) -> None:  # fmt: skip
        newest, self.of = entries[-1], of
        self.key: CaseKey = newest.key
        self.device: str = newest.device
        self.newest = newest
        every = levels or [s.time for s in entries]
        alike = [s.identity in {"", newest.identity} and 0 < n < inf for s, n in zip(entries, every)]
        self.entries = entries if all(alike) else [*compress(entries, alike)]
        self.levels = array("d", compress(every, alike))
        self.runs = self.entries or entries  # including those of a case without a time
        self.accepted = accepted if _was_measured_alike(newest, accepted) else None
        self.anchor = anchor if _was_measured_alike(newest, anchor) else None

    @cached_property
    def changes(self) -> tuple[ChangePoint, ...]:
        """The change points that are large enough to report."""
        if self.of.exact:  # values that repeat need no statistical test
            steps_of = enumerate(pairwise(self.levels), 1)
            return tuple(ChangePoint(index=at, before=a, after=b, p=0.0) for at, (a, b) in steps_of if a != b)
        changes = change_points(self.levels, level=LEVEL)
        size = attrgetter("size")
        while changes and min(changes, key=size).size < STEP:
            least = min(changes, key=size)
            changes = _of_levels(self.levels, [change for change in changes if change is not least])
        return changes

    @property
    def digest(self) -> str:
        """A digest of everything that change points depend on."""
        return hashlib.sha256(self.levels.tobytes()).hexdigest()[:_DIGITS_OF_LINE]

    @property
    def now(self) -> float:
        """The newest level; 0 for a case without a time."""
        return self.levels[-1] if self.levels else 0.0

    @property
    def level(self) -> float:
        """The present level: the median since the last change; without one the newest time."""
        return self.changes[-1].after if self.changes else self.now

    def moved(self, change: ChangePoint) -> tuple[tuple[str, str, str], ...]:
        """Return (name, then, now) of facts other than the commit that changed with the level."""
        return self._moved[change.index]

    @cached_property
    def _moved(self) -> dict[int, tuple[tuple[str, str, str], ...]]:
        edges = [0, *(change.index for change in self.changes), len(self.entries)]
        levels = [self.entries[a:b] for a, b in pairwise(edges)]
        return {at: tuple(_differing_facts(then, now)) for at, (then, now) in zip(edges[1:], pairwise(levels))}


def _of_levels(times: Sequence[float], changes: Sequence[ChangePoint]) -> tuple[ChangePoint, ...]:
    """Return the changes with the medians of the remaining levels."""
    edges = [0, *(change.index for change in changes), len(times)]
    middle = [median(times[a:b]) for a, b in pairwise(edges)]
    return tuple(replace(change, before=a, after=b) for change, (a, b) in zip(changes, pairwise(middle)))


def _differing_facts(then: Sequence[HistoryEntry], now: Sequence[HistoryEntry]) -> Iterator[tuple[str, str, str]]:
    """Yield facts that differ in all runs of both levels, as in the runs next to the change."""
    before, after = _surroundings(reversed(then)), _surroundings(now)
    for name in dict.fromkeys((*before, *after)) if before and after else ():
        old, new = before.get(name, [""]), after.get(name, [""])
        if not set(old) & set(new):
            yield name, old[0], new[0]


def _surroundings(entries: Iterable[HistoryEntry]) -> dict[str, list[str]]:
    """Return the values of each fact in order: host, card, driver, packages."""
    facts: dict[str, list[str]] = {}
    for host, card, others in dict.fromkeys((s.host, s.card, s.facts) for s in entries):
        for name, text in (("host", host), ("card", card), *others):
            if text:
                facts.setdefault(name, []).append(text)
    return facts


def _was_measured_alike(entry: HistoryEntry, line: Baseline | None) -> bool:
    """Return whether a line was measured in the same way."""
    if line is None or not line.time:
        return False
    if line.identity is None or not entry.identity:
        return True
    return entry.identity == how_measured(line.identity, at_limit=line.limited)


@value
class Step:
    """A change of a case's level."""

    key: CaseKey
    device: str
    commit: str
    """The first commit measured at the new level."""
    earlier: str
    """The last commit before it; the same one if no commit was in between."""
    when: str
    before: float
    after: float
    now: float
    fastest: float
    """The fastest level before it."""
    moved: tuple[tuple[str, str, str], ...] = ()
    accepted: str = ""
    """The reason for which the new time was accepted."""
    of: FigureLevel = TIMES
    """The figure of the levels, if it is not the time."""

    @property
    def change(self) -> float:
        return self.after / self.before - 1

    @property
    def reverted(self) -> bool:
        """Return whether less than half of it remains, or it was reversed."""
        return abs(self.now - self.before) < _BACK * abs(self.after - self.before) or self._over_the_top

    @property
    def _over_the_top(self) -> bool:
        """Return whether it was a slowdown and the case is now faster than ever, or the reverse."""
        return (self.now - self.before) * (self.after - self.before) < 0


def steps(trend: Trend, over: float = OVER) -> Iterator[Step]:
    """Yield every change of level that is large enough to report."""
    for change in trend.changes:
        if abs(change.change) < (0.0 if trend.of.exact else over):
            continue
        then, now = trend.entries[change.index - 1], trend.entries[change.index]
        step = Step(
            key=trend.key, device=trend.device, commit=now.commit, earlier=then.commit, when=now.when,
            before=change.before, after=change.after, now=trend.level, moved=trend.moved(change),
            fastest=trend.of.best(one.before for one in trend.changes if one.index <= change.index), of=trend.of,
        )  # fmt: skip
        yield replace(step, accepted=_accepted(step, trend.accepted))


def _accepted(step: Step, line: Baseline | None) -> str:
    """Return the reason of the line that accepts the new level; "" while the line has the old one."""
    nearer = line is not None and abs(line.time - step.after) <= abs(line.time - step.before)
    if line is None or line.when[:10] < step.when[:10] or not nearer:
        return ""
    return line.why or f"accepted {line.when}"


class StaleCase(NamedTuple):
    """A case without recent runs; without a key, a whole device."""

    device: str
    key: CaseKey | None
    when: str
    """The commit of its newest run."""


def stale_cases(trends: Iterable[Trend], before: str) -> Iterator[StaleCase]:
    """Yield cases without a run since a day; a device without any run is named once."""
    newest: dict[str, list[tuple[str, CaseKey]]] = {}
    for trend in trends:
        newest.setdefault(trend.device, []).append((trend.newest.when, trend.key))
    for device, cases in newest.items():
        last = max(when for when, _ in cases)
        if last[:10] < before[:10]:
            yield StaleCase(device, None, last)
        else:
            yield from (StaleCase(device, key, when) for when, key in sorted(cases, key=str) if when[:10] < before[:10])


@value
class Findings:
    slower: tuple[Step, ...] = ()
    """Regressions that remain and that nobody accepted."""
    accepted: tuple[Step, ...] = ()
    gone: tuple[Step, ...] = ()
    faster: tuple[Step, ...] = ()
    unseen: tuple[StaleCase, ...] = ()
    cases: int = 0
    runs: int = 0


def findings(
    trends: Sequence[Trend], figures: Sequence[Trend] = (), *, since: str = "", before: str = "", over: float = OVER
) -> Findings:
    """Return the findings on steps since a day; cases without a run since ``before`` are stale."""
    lines = (*trends, *figures)
    every = [step for trend in lines for step in steps(trend, over) if step.when[:10] >= since[:10]]
    up = [step for step in every if step.of.sign * step.change > 0]
    present = [step for step in up if not step.reverted]
    return Findings(
        slower=tuple(step for step in present if not step.accepted),
        accepted=tuple(step for step in present if step.accepted),
        gone=tuple(step for step in up if step.reverted),
        faster=tuple(step for step in every if not step.reverted and step.of.ahead(step.after, step.fastest, over / 2)),
        unseen=tuple(stale_cases(trends, before)) if before else (),
        cases=len({(trend.device, str(trend.key)) for trend in lines}),
        runs=sum(any(s.when[:10] >= since[:10] for s in run) for run in joined_runs(trends or figures)),
    )


def joined_runs(trends: Iterable[Trend]) -> list[list[HistoryEntry]]:
    """Return the entries of each run, oldest first; runs of one commit without a common case are its shards."""
    parts: dict[tuple[str, str], tuple[set[int], list[HistoryEntry]]] = {}
    for number, trend in enumerate(trends):
        for entry in trend.runs:
            cases, own = parts.setdefault((entry.commit, entry.run or entry.when), (set(), []))
            cases.add(number)
            own.append(entry)
    runs: list[list[HistoryEntry]] = []
    of_commit: dict[str, list[tuple[set[int], list[HistoryEntry]]]] = {}
    for (commit, _), (cases, own) in sorted(parts.items(), key=lambda part: part[1][1][0].when):
        for others, run in of_commit.setdefault(commit, []) if commit else ():
            if others.isdisjoint(cases):
                others.update(cases)
                run.extend(own)
                break
        else:
            runs.append(own)
            of_commit.setdefault(commit, []).append((cases, own))
    return runs


def by_commit(every: Iterable[Step]) -> list[tuple[str, list[Step]]]:
    """Return (cause, steps), newest first; steps of one commit are together, whatever the device."""
    groups = grouped(every, cause_of_step)
    for group in groups.values():
        group.sort(key=lambda step: -abs(step.change))
    return sorted(groups.items(), key=lambda group: max(step.when for step in group[1]), reverse=True)


def cause_of_step(step: Step) -> str:
    """Return the commit at which the level was first measured; if it did not change, what else did."""
    if step.commit and step.commit != step.earlier:
        return short_commit(step.commit, _DIGITS)
    if step.moved:
        return first_of([f"{name} {then or 'none'} -> {now or 'none'}" for name, then, now in step.moved], 2)
    return "no commit and nothing else that was recorded"


_COLUMNS = Column.header("case | device | change | now | before: time | after: time")


def findings_document(every: Findings, *, since: str = "", stale_days: int = STALE_DAYS) -> Document:
    """Return a page, or a weekly digest, with the most important findings first."""
    blocks: list[Block] = [Paragraph(text=_summary(every, stale_days))]
    for commit, group in by_commit(every.slower):
        blocks.append(Section(title=_title(commit, group), blocks=(*_notes(group), *_tables(group))))
    for title, part in (("Accepted", every.accepted), ("Faster", every.faster)):
        if part:
            blocks.append(Section(title=title, blocks=tuple(_tables(part, why=title == "Accepted", commit=True))))
    if every.gone:
        blocks.append(Section(title="Went away", blocks=(_by_commit_table(every.gone),)))
    if every.unseen:
        blocks.append(Section(title=f"No run for {stale_days} days", blocks=(_stale_table(every.unseen),)))
    period = f"since {since[:10]}, " if since else ""
    return Document(
        title="Regressions", subtitle=f"{period}{plural(every.cases, 'case')} in {plural(every.runs, 'run')}",
        blocks=tuple(blocks),
    )  # fmt: skip


def _summary(every: Findings, stale_days: int) -> str:
    moved = len(by_commit(every.slower))
    slower = f"{plural(len(every.slower), 'case')} got slower and stayed so, by {plural(moved, 'change')}"
    lone = sum(one.key is not None for one in every.unseen)
    parts = [slower] if every.slower else ["nothing got slower and stayed so"]
    parts += [f"{len(every.accepted)} accepted"] if every.accepted else []
    parts += [f"{len(every.faster)} faster"] if every.faster else []
    parts += [f"{len(every.gone)} went away"] if every.gone else []
    parts += [f"{plural(lone, 'case')} without a run for {stale_days} days"] if lone else []
    silent = [one.device for one in every.unseen if one.key is None]
    parts += [f"no run on {', '.join(silent)} for {stale_days} days"] if silent else []
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _title(commit: str, group: Sequence[Step]) -> str:
    devices, day = sorted({step.device for step in group}), min(step.when for step in group)[:10]
    return f"{printable(commit)}: {plural(len(group), 'case')} on {first_of(devices, 3)}, {day}"


def _notes(group: Sequence[Step]) -> Iterator[Block]:
    """Yield the commit before, and what else changed in all of these series."""
    step = group[0]
    if step.commit and step.earlier and step.commit != step.earlier:
        yield Paragraph(text=f"Measured before it: {short_commit(step.earlier, _DIGITS)}.")
    moved = set(step.moved).intersection(*(other.moved for other in group[1:]))
    if moved and step.commit != step.earlier:
        items = tuple(f"{name}: {then or 'none'} -> {now or 'none'}" for name, then, now in sorted(moved))
        yield Bullets(items=tuple(f"also moved: {printable(item)}" for item in items))


def _tables(group: Sequence[Step], *, why: bool = False, commit: bool = False) -> Iterator[Block]:
    """Yield the largest changes, and the number of others."""
    ordered = sorted(group, key=lambda step: -abs(step.change))
    yield _table(ordered[:_SHOWN], why=why, commit=commit)
    if len(ordered) > _SHOWN:
        yield Paragraph(text=f"{len(ordered) - _SHOWN:,} more with smaller changes: perfgate regressions --json")


def _by_commit_table(every: Sequence[Step]) -> Table:
    """Return a row for each commit whose changes are gone, so that nobody needs to act."""
    columns = Column.header("at | cases | devices | largest | on")
    rows: list[tuple[Cell, ...]] = [
        (
            printable(commit), f"{len(group):,}", first_of(sorted({step.device for step in group}), 3),
            group[0].of.step(group[0].before, group[0].after), min(step.when for step in group)[:10],
        )
        for commit, group in by_commit(every)
    ]  # fmt: skip
    return Table(columns=columns, rows=tuple(rows))


def _table(group: Sequence[Step], *, why: bool = False, commit: bool = False) -> Table:
    columns = [*_COLUMNS, *([Column(name="at")] if commit else []), *([Column(name="why")] if why else [])]
    rows: list[tuple[Cell, ...]] = [
        (
            printable(f"{s.key} {s.of.title}".rstrip()), s.device,
            s.of.step(s.before, s.after), s.of.step(s.before, s.now),
            *((s.before, s.after) if not s.of.title else (s.of.text(s.before), s.of.text(s.after))),
            *([printable(cause_of_step(s))] if commit else []), *([printable(s.accepted)] if why else []),
        )
        for s in group
    ]  # fmt: skip
    return Table(columns=tuple(columns), rows=tuple(rows))


def _stale_table(every: Sequence[StaleCase]) -> Table:
    columns = Column.header("case | device | last")
    rows = tuple((printable(str(one.key)) if one.key else "all", one.device, one.when[:16]) for one in every)
    return Table(columns=columns, rows=rows)
