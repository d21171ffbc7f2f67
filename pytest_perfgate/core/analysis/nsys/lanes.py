"""Kernels of a rank with their class, stage and purpose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import Activity, Calls, Preset, Ranges, Rank, RankLane, ReadOptions, Window, pid_of
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.model.nsys import RankResult

    Ints = NDArray[np.int64]


_ORIGINAL = re.compile(r"^nccl", re.IGNORECASE)


@array_value
class ExportContent:
    """The content of one export around its windows."""

    kernels: Activity
    copies: Activity
    calls: Calls
    ranges: Ranges
    names: Mapping[int, str]


def lanes(recorded: ExportContent, windows: Mapping[Rank, Window], reading: ReadOptions) -> tuple[RankLane, ...]:
    kernels = recorded.kernels
    when, thread, linked = launches(kernels, recorded.calls)
    stage, stages = _labelled(recorded.ranges, when, thread, _stages(recorded.ranges.texts, reading.preset))
    purpose, purposes = _labelled(recorded.ranges, when, thread, _purposes(recorded.ranges.texts, reading.preset))
    number, names = _names(kernels.name, recorded.names)
    nameless = ~np.isin(kernels.name, [known for known, name in recorded.names.items() if name])
    talks = _communicates(names, reading)[number] if len(names) else np.zeros(0, dtype=bool)
    whole = replace(kernels, name=number)
    result = []
    for rank, window in windows.items():
        rows, cut, straddlers = _inside(whole, rank, window, whole_only=reading.original)
        result.append(
            RankLane(
                rank=rank,
                window=window,
                kernels=_clipped(whole.where(rows), window),
                names=names,
                talks=talks[rows],
                stage=stage[rows],
                stages=stages,
                purpose=purpose[rows],
                purposes=purposes,
                linked=linked[rows],
                copies=_copies(recorded.copies, rank, window),
                cut=cut,
                straddlers=straddlers,
                faults=faults(whole.where(rows)),
                unnamed=int(nameless[rows].sum()),
            )
        )
    return tuple(result)


def _inside(kernels: Activity, rank: Rank, window: Window, *, whole_only: bool) -> tuple[NDArray[np.bool_], int, int]:
    """Return which kernels count, the time of theirs that does not, and how many cross an edge."""
    of_rank = (kernels.pid == rank.pid) & (kernels.device == rank.device)
    if whole_only:
        of_rank &= kernels.start >= 0
    touches = of_rank & (kernels.start < window.end) & (kernels.end > window.start)
    wholly = of_rank & (kernels.start >= window.start) & (kernels.end <= window.end)
    straddles = touches & ~wholly
    total = int(np.sum((kernels.end - kernels.start)[straddles]))
    if whole_only:
        return wholly, total, int(straddles.sum())
    rows = touches | wholly
    inside = np.minimum(kernels.end, window.end) - np.maximum(kernels.start, window.start)
    return rows, total - int(np.sum(inside[straddles])), int(straddles.sum())


_DAY = 24 * 3600 * 10**9
"""The nanoseconds of a day; no capture is as long."""


def faults(rows: Activity) -> tuple[str, ...]:
    """Return the faults of kernels that end before they start, of a jump of the clock, and of repeated rows."""
    backward = int((rows.end < rows.start).sum())
    jump = int(np.diff(np.sort(rows.start)).max(initial=0))
    twice = _repeated(rows)
    text = f"{backward:,} of {len(rows):,} kernels end before they start"
    also = f"{twice:,} of {len(rows):,} kernels are in the export twice, as after export --append"
    jumped = f"no kernel starts for {jump / _DAY:,.1f} days between two others: the clock jumped"
    return tuple(fault for fault, is_met in ((text, backward), (jumped, jump > _DAY), (also, twice)) if is_met)


def _repeated(rows: Activity) -> int:
    """Count rows that equal another one in every column; only those with the same start are compared."""
    order = np.argsort(rows.start, kind="stable")
    start = rows.start[order]
    same = start[1:] == start[:-1]
    if not same.any():
        return 0
    near = order[np.append(same, False) | np.append(False, same)]
    table = np.stack([column[near] for column in rows.columns()])
    return len(near) - int(np.unique(table, axis=1).shape[1])


def _clipped(rows: Activity, window: Window) -> Activity:
    start, end = np.maximum(rows.start, window.start), np.minimum(rows.end, window.end)
    return replace(rows, start=start, end=end)


def _copies(copies: Activity, rank: Rank, window: Window) -> Activity:
    rows, _, _ = _inside(copies, rank, window, whole_only=False)
    return _clipped(copies.where(rows), window)


def _names(ids: Ints, names: Mapping[int, str]) -> tuple[Ints, tuple[str, ...]]:
    distinct, number = np.unique(ids, return_inverse=True)
    return number.astype(np.int64), tuple(names.get(int(known), f"kernel {known}") for known in distinct)


def _communicates(names: Sequence[str], reading: ReadOptions) -> NDArray[np.bool_]:
    pattern = _ORIGINAL if reading.original else intervals.communication(reading.preset.communication)
    return np.array([bool(pattern.search(name)) for name in names], dtype=bool)


def _stages(texts: Iterable[str], preset: Preset) -> list[str | None]:
    """Return the last match of the stage's pattern in each text."""
    pattern = re.compile(preset.stage, re.IGNORECASE)
    return [_last_match(pattern, text) for text in texts]


def _last_match(pattern: re.Pattern[str], text: str) -> str | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last match is used
        pass
    return match.group() if match else None


def _purposes(texts: Iterable[str], preset: Preset) -> list[str | None]:
    """Return the purpose whose pattern matches last in each text; earlier patterns win a tie."""
    patterns = [(re.compile(pattern, re.IGNORECASE), purpose) for pattern, purpose in preset.purposes]
    purposes: list[str | None] = []
    for text in texts:
        ends = [(max((hit.start() for hit in p.finditer(text)), default=-1), purpose) for p, purpose in patterns]
        at, purpose = max(ends, key=lambda pair: pair[0], default=(-1, ""))
        purposes.append(purpose if at >= 0 else None)
    return purposes


def _labelled(ranges: Ranges, when: Ints, thread: Ints, labels: Sequence[str | None]) -> tuple[Ints, tuple[str, ...]]:
    """Return the label around each launch, as an index into the distinct labels."""
    distinct = tuple(sorted({label for label in labels if label is not None}))
    index = {label: at for at, label in enumerate(distinct)}
    column = np.array([-1 if label is None else index[label] for label in labels], dtype=np.int64)
    return contexts(ranges, column, when, thread), distinct


def innermost(start: Ints, end: Ints, points: Ints) -> Ints:
    """For each point, return the index of the last-started range that contains it, or -1."""
    # For a range that ended before the point, the nearest earlier one that ends later is tried; all ranges between
    # those two have ended as well, so none is missed.
    order = np.lexsort((-end, start))
    ends = end[order]
    later = _ends_later(ends)
    at = np.searchsorted(start[order], points, side="right") - 1
    pending = np.flatnonzero(at >= 0)
    while len(pending):
        pending = pending[ends[at[pending]] < points[pending]]
        at[pending] = later[at[pending]]
        pending = pending[at[pending] >= 0]
    return np.where(at >= 0, order[np.maximum(at, 0)], -1) if len(order) else np.full(len(points), -1)


def _ends_later(ends: Ints) -> Ints:
    """For each interval in order of start, return the nearest earlier one that ends later, or -1."""
    # All first look at the previous one. One that finds an interval that ended continues from that one's position,
    # since none between those two ends later. The distance doubles with every round.
    later = np.arange(-1, len(ends) - 1, dtype=np.int64)
    pending = np.flatnonzero(later >= 0)
    while len(pending):
        pending = pending[ends[later[pending]] <= ends[pending]]
        later[pending] = later[later[pending]]
        pending = pending[later[pending] >= 0]
    return later


def launches(kernels: Activity, calls: Calls) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return launch time and thread of each kernel, and whether its call was recorded."""
    wanted = _key(kernels.pid, kernels.correlation)
    have = _key(pid_of(calls.tid), calls.correlation)
    order = np.lexsort((calls.start, have))
    have = have[order]
    at = np.minimum(np.searchsorted(have, wanted), max(len(have) - 1, 0))
    if not len(have):
        none = np.full(len(wanted), -1, dtype=np.int64)
        return none, none, np.zeros(len(wanted), dtype=bool)
    linked = have[at] == wanted
    row = order[at]
    return np.where(linked, calls.start[row], -1), np.where(linked, calls.tid[row], -1), linked


def _key(pid: Ints, correlation: Ints) -> Ints:
    return (pid << 32) | correlation


def contexts(ranges: Ranges, label: Ints, when: Ints, thread: Ints) -> Ints:
    """Return the label of the innermost labelled range around each launch on its own thread, or -1."""
    # ``label`` holds one index for each text of the ranges; a range with -1 is ignored.
    codes = np.full(len(when), -1, dtype=np.int64)
    named = label[ranges.text] >= 0 if len(ranges) else np.zeros(0, dtype=bool)
    rows = np.flatnonzero(named)
    for tid in np.unique(thread[thread >= 0]):
        of_thread = rows[ranges.tid[rows] == tid]
        here = np.flatnonzero(thread == tid)
        low, high = when[here].min(), when[here].max()
        of_thread = of_thread[(ranges.start[of_thread] <= high) & (ranges.end[of_thread] >= low)]
        if len(of_thread):
            at = innermost(ranges.start[of_thread], ranges.end[of_thread], when[here])
            codes[here] = np.where(at >= 0, label[ranges.text[of_thread[np.maximum(at, 0)]]], -1)
    return codes


_ANONYMOUS = re.compile(r"<unnamed>|\(anonymous namespace\)")

_INNERMOST = re.compile(r"<[^<>()]*>|\([^<>()]*\)")


def by_namespace(names: Mapping[int, str], reading: ReadOptions) -> tuple[int, ...]:
    """Return the full names that show communication only by their namespace; the original tool reads short names."""
    if reading.original:
        return ()
    own = reading.preset.communication
    pattern = intervals.communication(own)
    marked = re.compile("|".join(own)).search if own else lambda _: None
    likely = (pair for pair in names.items() if _marked(pair[1]) or marked(pair[1]))
    listed = ((number, qualified(name)) for number, name in likely)
    return tuple(
        number for number, name in listed if pattern.search(name) and not pattern.search(name.rpartition("::")[2])
    )


def _marked(name: str) -> bool:
    low = name.lower()
    return any(mark in low for mark in intervals.MARKS)


def qualified(name: str) -> str:
    """Return the name with its namespaces, without template and call arguments, which may contain any name."""
    name, count = _ANONYMOUS.subn("", name)
    count = 1
    while count:
        name, count = _INNERMOST.subn("", name)
    return name


def check_distinct(ranks: Sequence[Rank], files: Sequence[str]) -> None:
    """Refuse two processes with one rank, which would be added up."""
    known: dict[str, Rank] = {}
    for rank in ranks:
        other = known.setdefault(rank.name, rank)
        if other is not rank:
            here, there = (f"process {r.pid} of {files[r.file]}" for r in (rank, other))
            raise PerfgateError("nsys-ranks", f"rank {rank.name} is {there} and {here}")


def check_copies(results: Sequence[RankResult], files: Sequence[str]) -> None:
    """Refuse unlabelled files in which the same processes run the same kernels at the same times."""
    known: dict[tuple[int, int, int, int], RankResult] = {}
    for result in (result for result in results if not result.rank.label):
        rank, window = result.rank, result.lane.window
        other = known.setdefault((rank.pid, rank.device, window.start, window.end), result)
        if other.rank.file != rank.file and _same(other.lane.kernels, result.lane.kernels):
            here, there = files[rank.file], files[other.rank.file]
            what = "the same file was given twice" if here == there else f"{here} is a copy of {there}"
            raise PerfgateError("nsys-ranks", f"{what}: every kernel of process {rank.pid} is in both")


def _same(activity: Activity, other: Activity) -> bool:
    return len(activity) > 0 and np.array_equal(activity.start, other.start) and np.array_equal(activity.end, other.end)
