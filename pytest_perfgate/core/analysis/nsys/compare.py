"""Comparison of two jobs, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.nsys.metrics import figures, metrics, window_text
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.metric import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Labels,
    Metric,
    MetricSet,
    Paragraph,
    Table,
    labels,
)
from pytest_perfgate.model.nsys import Job, OverlapRow, RankLane, RankResult
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


@value
class JobPair:
    """One thing on both sides; ``None`` if a side does not have it."""

    rank: str
    name: str
    before_ns: float | None
    after_ns: float | None
    before_count: int = 0
    after_count: int = 0

    @property
    def difference(self) -> float:
        return (self.after_ns or 0.0) - (self.before_ns or 0.0)

    @property
    def slowdown(self) -> float | None:
        """After over before, minus one; None if a side lacks it."""
        if self.before_ns is None or self.after_ns is None:
            return None
        if not self.before_ns:
            return 0.0 if not self.after_ns else inf
        return self.after_ns / self.before_ns - 1


@value
class JobComparison:
    """Two jobs compared, the greatest difference first."""

    total: JobPair
    """Time in kernels, over all ranks."""
    communication: JobPair
    step: JobPair
    """The time that a user waits: of windows if an anchor chose them, otherwise busy time; mean over ranks."""
    kernels: tuple[JobPair, ...]
    stages: tuple[JobPair, ...]
    ranks: tuple[JobPair, ...]
    anchored: bool
    talkers: tuple[str, ...] = ()
    """Names of the communication kernels, of either side."""


def comparison(before: Job, after: Job) -> JobComparison:
    """Compare everything that can be matched by name, and list the rest."""
    anchored = all(_anchored(job) for job in (before, after))
    return JobComparison(
        total=_summed("", "all kernels", before, after, lambda lane: np.ones(len(lane.talks), dtype=bool)),
        communication=_summed("", "communication", before, after, lambda lane: lane.talks),
        step=_step(before, after, anchored=anchored),
        kernels=_sorted(_matched(before, after, _kernels)),
        stages=_sorted(_matched(before, after, _stages)),
        ranks=tuple(_matched(before, after, lambda r: [(r.rank.name, float(_waited_ns(r, anchored=anchored)), 0)])),
        anchored=anchored,
        talkers=tuple(sorted({name for job in (before, after) for r in job.ranks for name in _communicating(r.lane)})),
    )


def _communicating(lane: RankLane) -> set[str]:
    return {lane.names[at] for at in np.unique(lane.kernels.name[lane.talks])}


def _anchored(job: Job) -> bool:
    """Return whether every window is a range of the program, and so one step."""
    return all(result.lane.window.how.endswith("that match") for result in job.ranks)


def _waited_ns(result: RankResult, *, anchored: bool) -> int:
    return result.time.window_ns if anchored else result.time.busy_ns


def _step(before: Job, after: Job, *, anchored: bool) -> JobPair:
    old, new = (float(np.mean([_waited_ns(r, anchored=anchored) for r in job.ranks])) for job in (before, after))
    return JobPair(rank="", name="window" if anchored else "busy time", before_ns=old, after_ns=new)


def _summed(rank: str, name: str, before: Job, after: Job, chosen: Callable[[RankLane], Mask]) -> JobPair:
    (old, old_count), (new, new_count) = (_total(job, chosen) for job in (before, after))
    return JobPair(rank=rank, name=name, before_ns=old, after_ns=new, before_count=old_count, after_count=new_count)


def _total(job: Job, chosen: Callable[[RankLane], Mask]) -> tuple[float, int]:
    """Return the time and the number of the chosen kernels of all ranks."""
    lanes = [rank.lane for rank in job.ranks]
    lengths = [(lane.kernels.end - lane.kernels.start)[chosen(lane)] for lane in lanes]
    return sum(float(of_rank.sum()) for of_rank in lengths), sum(map(len, lengths))


Named = Callable[[RankResult], Iterable[tuple[str, float, int]]]


def _matched(before: Job, after: Job, named: Named) -> Iterator[JobPair]:
    """Yield one pair for each rank and name, in the order of the first side that has it."""
    old, new = (
        {(r.rank.name, name): (amount, count) for r in job.ranks for name, amount, count in named(r)}
        for job in (before, after)
    )
    for rank, name in dict.fromkeys([*old, *new]):
        before_ns, before_count = old.get((rank, name), (None, 0))
        after_ns, after_count = new.get((rank, name), (None, 0))
        yield JobPair(
            rank=rank,
            name=name,
            before_ns=before_ns,
            after_ns=after_ns,
            before_count=before_count,
            after_count=after_count,
        )


def _kernels(result: RankResult) -> Iterator[tuple[str, float, int]]:
    lane, size = result.lane, len(result.lane.names)
    totals = np.bincount(lane.kernels.name, lane.kernels.end - lane.kernels.start, minlength=size)
    counts = np.bincount(lane.kernels.name, minlength=size)
    for at in np.flatnonzero(counts):
        yield lane.names[at], float(totals[at]), int(counts[at])


def _stages(result: RankResult) -> Iterator[tuple[str, float, int]]:
    """Yield stages with the union of the time of all that they launched."""
    lane = result.lane
    for at, stage in enumerate(lane.stages):
        on = lane.stage == at
        if on.any():
            yield stage, float(intervals.covered(lane.kernels.start[on], lane.kernels.end[on])), int(on.sum())


def _sorted(pairs: Iterable[JobPair]) -> tuple[JobPair, ...]:
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.difference)))


def comparison_metrics(comparison: JobComparison, after: Job) -> MetricSet:
    """Return ``slowdown`` of the step, each rank, stage and kernel, and the figures of the second side."""
    rows: list[tuple[JobPair, Labels]] = [(comparison.step, ())]
    rows += [(pair, labels(rank=pair.rank)) for pair in comparison.ranks]
    rows += [(pair, labels(rank=pair.rank, stage=pair.name)) for pair in comparison.stages]
    rows += [(pair, labels(rank=pair.rank, kernel=pair.name)) for pair in comparison.kernels]
    slower = tuple(
        Metric(name="slowdown", value=pair.slowdown, dimension=Dimension.FRACTION, labels=where, source="nsys")
        for pair, where in rows
        if pair.slowdown is not None and isfinite(pair.slowdown)
    )
    return MetricSet(metrics=slower) | metrics(after)


_SHOWN = 20

_ABSENT = "-"


def difference(comparison: JobComparison, before: Job, after: Job, subject: str) -> Document:
    """Return sentences on the whole, then ranks, stages with their overlap, and kernels."""
    tables = (
        _table("Ranks", comparison.ranks, "rank", comparison.step.name),
        _overlaps(before, after),
        _table("Stages: all that each launched, by union", comparison.stages, "stage"),
        _table("Kernels", comparison.kernels, "kernel", limit=_SHOWN),
    )
    blocks: list[Block] = [Paragraph(text=sentences(comparison)), Bullets(items=window_texts(before, after))]
    blocks += [table for table in tables if table.rows]
    return Document(title=f"Comparison of {subject}", blocks=tuple(blocks))


def window_texts(before: Job, after: Job) -> tuple[str, ...]:
    """Return the window of each side, or of both where it is the same."""
    old, new = window_text(before.ranks), window_text(after.ranks)
    return (f"before and after: {old}",) if old == new else (f"before: {old}", f"after: {new}")


def sentences(comparison: JobComparison) -> str:
    """Return sentences on the waiting time, the kernels, the communication, and the greatest difference."""
    step, total = comparison.step, comparison.total
    lines = [f"The {step.name} of a rank went {_change(step)}; time in kernels went {_change(total)}."]
    if comparison.communication.before_ns or comparison.communication.after_ns:
        alone = f", all of it {comparison.talkers[0]}" if len(comparison.talkers) == 1 else ""
        lines.append(f"Communication went {_change(comparison.communication)}{alone}.")
    if comparison.kernels:
        top = comparison.kernels[0]
        of_top = f"The greatest difference is {top.name} on rank {top.rank}: {_change(top)}."
        lines.append(of_top if top.difference else "Every kernel took the same time on both sides.")
    if not comparison.anchored:
        lines.append("The windows are whole captures: they compare only if both did the same work.")
    return " ".join(lines)


def _change(pair: JobPair) -> str:
    if pair.before_ns is None or pair.after_ns is None:
        side = "after" if pair.before_ns is None else "before"
        return f"{quantity(pair.after_ns or pair.before_ns, Dimension.TIME)}, only {side}"
    old, new = (quantity(amount, Dimension.TIME) for amount in (pair.before_ns, pair.after_ns))
    share = f" ({signed(pair.slowdown)})" if pair.slowdown is not None else ""
    return f"from {old}{_launches(pair.before_count)} to {new}{_launches(pair.after_count)}{share}"


def _launches(count: int) -> str:
    return f" in {plural(count, 'kernel')}" if count else ""


def _table(title: str, pairs: Iterable[JobPair], what: str, how: str = "", limit: int = 0) -> Table:
    kernels = f"{what} | count before: count | count after: count | " if what != "rank" else ""
    columns = Column.header(
        f"rank | {kernels}before_ns: time | after_ns: time | difference_ns: time | slowdown: fraction"
    )
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        old, new, slower = (
            _ABSENT if side is None else side for side in (pair.before_ns, pair.after_ns, pair.slowdown)
        )
        counts: tuple[Cell, ...] = (pair.name, pair.before_count, pair.after_count) if kernels else ()
        rows.append((pair.rank, *counts, old, new, pair.difference, slower))
    note = f"{_ABSENT}: not on that side" if any(_ABSENT in row for row in rows) else ""
    return Table(title=f"{title} ({how})" if how else title, note=note, columns=columns, rows=tuple(rows), limit=limit)


def _overlaps(before: Job, after: Job) -> Table:
    """Return exposed communication and overlap by rank and stage, both sides in one row."""
    sides = [
        {
            (r.rank.name, _name(row)): figures(row, original=job.reading.original)
            for r in job.ranks
            for row in r.overlaps
            if not (job.reading.original and row.outside)
        }
        for job in (before, after)
    ]
    rows: list[tuple[Cell, ...]] = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        (old, exposed_before), (new, exposed_after) = (side.get(key, (None, None)) for side in sides)
        rows.append((*key, exposed_before, exposed_after, old, new))
    columns = Column.header(
        "rank | stage | exposed before_ns: time | exposed after_ns: time | "
        "overlap before: fraction | overlap after: fraction"
    )
    return Table(title="Overlap", columns=columns, rows=tuple(rows))


def _name(row: OverlapRow) -> str:
    return f"({row.stage})" if row.outside else row.stage
