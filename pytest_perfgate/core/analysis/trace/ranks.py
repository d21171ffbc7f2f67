"""Collectives across ranks, and the arrival of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_perfgate.core.analysis.work import bus_factor
from pytest_perfgate.model.metric import Absent, Column, Labels, Metric, MetricSet, Table, labels
from pytest_perfgate.model.values import Dimension, grouped, value

_TIME, _COUNT = Dimension.TIME, Dimension.COUNT

APART = "The clocks of the ranks do not agree, so their starts cannot be compared"

UNSIZED = "the trace does not record the sizes of these messages"

_SIZED = ("comm_bytes", "alg_bandwidth", "bus_bandwidth")

_TOGETHER = (
    "comm_wait", "start_wait", "straggler", "comm_latency", "comm_skew", "start_skew", "alg_bandwidth", "bus_bandwidth",
)  # fmt: skip


@value
class JobCollectives:
    """All collectives of a job; ranks may be joined in any order and grouping."""

    parts: tuple[Collective, ...] = ()
    present: frozenset[int] = frozenset()

    def __or__(self, other: JobCollectives) -> JobCollectives:
        return JobCollectives(parts=self.parts + other.parts, present=self.present | other.present)

    @property
    def instances(self) -> tuple[Instance, ...]:
        parts = sorted(self.parts, key=lambda p: (p.kind, p.group, p.ordinal, p.rank))
        by_key = grouped(parts, lambda p: (p.kind, p.group, p.ordinal))
        return tuple(Instance(kind=k, group=g, ordinal=n, parts=tuple(p)) for (k, g, n), p in by_key.items())

    @property
    def shared(self) -> tuple[Instance, ...]:
        """The collectives that more than one rank recorded, which alone can separate waiting from working."""
        return tuple(instance for instance in self.instances if len(instance.parts) > 1)


def waits(instances: Iterable[Instance]) -> Mapping[int, int]:
    """Return the nanoseconds that each rank waited: its durations beyond the shortest."""
    total: dict[int, int] = defaultdict(int)
    for instance in instances:
        for part in instance.parts:
            total[part.rank] += part.length - instance.latency
    return dict(total)


def straggler(instances: Sequence[Instance]) -> int | None:
    """Return the rank that waits least, since it arrives last; ``None`` if ranks do not differ."""
    total = waits(instances)
    if len(total) < 2 or len(set(total.values())) == 1:
        return None
    return min(total, key=lambda rank: (total[rank], rank))


def collective_metrics(meeting: JobCollectives) -> MetricSet:
    """Return latency, waits, skews and bandwidths, absent with the reason if ranks or sizes are missing."""
    shared = meeting.shared
    if not shared:
        return _alone_metrics(meeting)
    metrics, late, agreed = [], straggler(shared), one_clock(shared)
    for rank, waited in sorted(waits(shared).items()):
        metrics.append(_metric("comm_wait", waited, _TIME, labels(rank=rank)))
    starts = arrival_waits(shared) if agreed else {}
    metrics += [_metric("start_wait", waited, _TIME, labels(rank=rank)) for rank, waited in sorted(starts.items())]
    metrics += [_metric("straggler", late, _COUNT, ())] if late is not None else []
    absent = [] if late is not None else [Absent(name="straggler", why="the ranks do not differ")]
    absent += [] if agreed else [Absent(name=name, why=APART) for name in ("start_skew", "start_wait")]
    for kind, group in by_kind(shared).items():
        where, sums = labels(collective=kind), sums_of(group)
        metrics.append(_metric("comm_count", len(group), _COUNT, where))
        metrics.append(_metric("comm_ranks", sums.members, _COUNT, where))
        metrics.append(_metric("comm_latency", sums.latency, _TIME, where))
        metrics.append(_metric("comm_skew", max(i.skew for i in group), _TIME, where))
        metrics += [_metric("start_skew", max(map(start_skew, group)), _TIME, where)] if agreed else []
        if sums.rate is None:
            absent += [Absent(name=name, labels=where, why=UNSIZED) for name in _SIZED]
            continue
        metrics.append(_metric("comm_bytes", sums.moved, Dimension.BYTES, where))
        metrics.append(_metric("alg_bandwidth", sums.rate, Dimension.BANDWIDTH, where))
        metrics.append(_metric("bus_bandwidth", sums.rate * sums.factor, Dimension.BANDWIDTH, where))
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def _alone_metrics(meeting: JobCollectives) -> MetricSet:
    """Return the metrics of one rank, which has numbers and sizes of collectives, but no waits or link rates."""
    why = "one rank's trace cannot tell waiting from transfer" if meeting.parts else "no collective in this window"
    fix = "give the traces of all ranks" if meeting.parts else ""
    metrics, rows = [], single_rank_rows(meeting)
    for kind, count, spent, moved in rows:
        where = labels(collective=kind)
        metrics.append(_metric("comm_count", count, _COUNT, where))
        metrics.append(_metric("comm_time", spent, _TIME, where))
        metrics += [_metric("comm_bytes", moved, Dimension.BYTES, where)] if moved else []
    names = (*_TOGETHER, *(() if any(row[3] for row in rows) else ("comm_bytes",)))
    return MetricSet(metrics=tuple(metrics), absent=tuple(Absent(name=name, why=why, fix=fix) for name in names))


def single_rank_rows(meeting: JobCollectives) -> list[tuple[str, int, int, float]]:
    """Return kind, number, time and bytes of the collectives of one rank, the longest first."""
    by_name = grouped(meeting.parts, lambda part: part.kind)
    rows = [(k, len(g), sum(p.length for p in g), float(sum(p.size or 0 for p in g))) for k, g in by_name.items()]
    return sorted(rows, key=lambda row: -row[2])


@value
class KindTotals:
    """The totals of all instances of one kind."""

    latency: int
    moved: float
    rate: float | None
    """Bytes a second of the instances with a known size."""
    factor: float
    """Bytes that each link of the bus carries, over those of the messages."""
    members: int
    """The ranks of the largest group."""


def sums_of(group: Sequence[Instance]) -> KindTotals:
    """Return the totals of the instances of one kind."""
    sized = [(i.size, i) for i in group if i.size]
    moved, spent = sum(size for size, _ in sized), sum(i.latency for _, i in sized)
    return KindTotals(
        latency=sum(i.latency for i in group),
        moved=moved,
        rate=moved / spent * 1e9 if moved and spent else None,
        factor=sum(size * i.factor for size, i in sized) / moved if moved else 1.0,
        members=max(i.members for i in group),
    )


def by_kind(shared: Sequence[Instance]) -> Mapping[str, list[Instance]]:
    return grouped(shared, lambda instance: instance.kind)


def _metric(name: str, number: float, dimension: Dimension, where: Labels) -> Metric:
    return Metric(name=name, value=float(number), dimension=dimension, labels=where, source="trace")


@value
class Collective:
    kind: str
    group: str
    ordinal: int
    """Its number among those of its kind and group on this rank."""
    rank: int
    start: int
    """The start on the rank's own clock, in nanoseconds since its epoch."""
    length: int
    size: float | None = None
    sent: float | None = None
    """The bytes of its input, which is not the message of a gather."""
    ranks: int | None = None
    operation: str = ""
    """The framework's name for it: an all-to-all is sent as point-to-point kernels."""


@value
class Instance:
    """One collective of all ranks that recorded it."""

    kind: str
    group: str
    ordinal: int
    parts: tuple[Collective, ...]

    @property
    def latency(self) -> int:
        """The shortest duration, of the rank that arrived last and did not wait."""
        return min(part.length for part in self.parts)

    @property
    def skew(self) -> int:
        return max(part.length for part in self.parts) - self.latency

    @property
    def size(self) -> float | None:
        return max((part.size for part in self.parts if part.size is not None), default=None)

    @property
    def members(self) -> int:
        """The ranks of its group, or those that recorded it if the group is not known."""
        return max(part.ranks or len(self.parts) for part in self.parts)

    @property
    def factor(self) -> float:
        """Bytes that each link of the bus carries, over those of the message."""
        operation = next((part.operation for part in self.parts if part.operation), self.kind)
        return bus_factor(operation, self.members)


AGREE = 0.95
"""The part of the collectives that must overlap on all ranks if their clocks are one."""


_MUTUAL = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")
"""Collectives in which every rank needs all others; the root of a broadcast may end before another one starts."""


def one_clock(instances: Sequence[Instance]) -> bool:
    """Return whether ranks share a clock: in a mutual collective, no rank ends before the last one starts."""
    mutual = [instance for instance in instances if any(name in _plain(instance) for name in _MUTUAL)] or instances
    return bool(mutual) and sum(map(_overlaps, mutual)) >= AGREE * len(mutual)


def _overlaps(instance: Instance) -> bool:
    first_end = min(part.start + part.length for part in instance.parts)
    return max(part.start for part in instance.parts) <= first_end


def _plain(instance: Instance) -> str:
    named = f"{instance.kind} {next((part.operation for part in instance.parts if part.operation), '')}".lower()
    return "".join(char for char in named if char.isalpha())


def arrival_waits(instances: Sequence[Instance]) -> Mapping[int, int]:
    """Return the nanoseconds from each rank's start to the latest start, summed over collectives."""
    total: dict[int, int] = defaultdict(int)
    for instance in instances:
        latest = max(part.start for part in instance.parts)
        for part in instance.parts:
            total[part.rank] += latest - part.start
    return dict(total)


def start_skew(instance: Instance) -> int:
    """Return the latest start minus the earliest."""
    starts = [part.start for part in instance.parts]
    return max(starts) - min(starts)


def collective_pairs(before: Sequence[Collective], after: Sequence[Collective]) -> Table:
    """Return the collectives of both sides by kind and size, with calls and mean times."""
    sides = [_by_message(one) for one in (before, after)]
    rows = []
    for key in dict.fromkeys((*sides[0], *sides[1])):
        first, second = (side.get(key, []) for side in sides)
        times = [sum(group) / len(group) if group else None for group in (first, second)]
        change = times[1] / times[0] - 1 if times[0] and times[1] is not None else None
        rows.append((*key, len(first), len(second), *times, change))
    return Table(
        columns=Column.header(
            "collective | message: bytes | ranks: count | calls, reference: count | calls, target: count | "
            "reference: time | target: time | relative: fraction"
        ),
        rows=tuple(rows),
        note="Times are a call's mean as this rank saw it, waiting for other ranks included."
        if rows
        else "Neither has a collective.",
    )


def _by_message(of_rank: Sequence[Collective]) -> dict[tuple[str, float | None, int | None], list[int]]:
    groups: dict[tuple[str, float | None, int | None], list[int]] = {}
    for collective in of_rank:
        size = collective.sent if collective.size is None else collective.size
        groups.setdefault((collective.operation or collective.kind, size, collective.ranks), []).append(
            collective.length
        )
    return groups
