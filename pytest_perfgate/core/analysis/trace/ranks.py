"""Many ranks: the same collective seen from each, who waits, who is late, what the links carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pytest_perfgate.core.analysis.ops.collective import bus_factor
from pytest_perfgate.core.analysis.trace.collectives import Collective
from pytest_perfgate.model.document import Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.metric import Labels, Metric, MetricSet, labels
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value

_TIME, _COUNT = Dimension.TIME, Dimension.COUNT


@value
class Instance:
    """One collective seen by all ranks that recorded it."""

    kind: str
    group: str
    ordinal: int
    parts: tuple[Collective, ...]

    @property
    def latency(self) -> int:
        """The shortest duration: that of the rank which arrived last and waited for nobody."""
        return min(part.length for part in self.parts)

    @property
    def skew(self) -> int:
        return max(part.length for part in self.parts) - self.latency

    @property
    def size(self) -> float | None:
        return max((part.size for part in self.parts if part.size is not None), default=None)


@value
class Meeting:
    """All collectives of a job; parts of ranks may be joined in any order and grouping."""

    parts: tuple[Collective, ...] = ()
    present: frozenset[int] = frozenset()

    def __or__(self, other: Meeting) -> Meeting:
        return Meeting(parts=self.parts + other.parts, present=self.present | other.present)

    @property
    def instances(self) -> tuple[Instance, ...]:
        found: dict[tuple[str, str, int], list[Collective]] = defaultdict(list)
        for part in sorted(self.parts, key=lambda p: (p.kind, p.group, p.ordinal, p.rank)):
            found[part.kind, part.group, part.ordinal].append(part)
        return tuple(Instance(kind=k, group=g, ordinal=n, parts=tuple(p)) for (k, g, n), p in found.items())

    @property
    def shared(self) -> tuple[Instance, ...]:
        """Those that more than one rank recorded: only these can tell waiting from working."""
        return tuple(instance for instance in self.instances if len(instance.parts) > 1)


def waits(instances: Iterable[Instance]) -> Mapping[int, int]:
    """Nanoseconds that each rank waited in all: its durations beyond the shortest."""
    total: dict[int, int] = defaultdict(int)
    for instance in instances:
        for part in instance.parts:
            total[part.rank] += part.length - instance.latency
    return dict(total)


def straggler(instances: Sequence[Instance]) -> int | None:
    """The rank that waits least, since it arrives last; ``None`` where ranks do not differ."""
    total = waits(instances)
    if len(total) < 2 or len(set(total.values())) == 1:
        return None
    return min(total, key=lambda rank: (total[rank], rank))


def meeting_metrics(meeting: Meeting) -> MetricSet:
    """Latency, waits, skew and bandwidths."""
    shared, metrics = meeting.shared, []
    for rank, waited in sorted(waits(shared).items()):
        metrics.append(_metric("comm_wait", waited, _TIME, labels(rank=rank)))
    late = straggler(shared)
    if late is not None:
        metrics.append(_metric("straggler", late, _COUNT, ()))
    for kind, group in _by_kind(shared).items():
        where = labels(collective=kind)
        latency = sum(i.latency for i in group)
        metrics.append(_metric("comm_latency", latency, _TIME, where))
        metrics.append(_metric("comm_skew", max(i.skew for i in group), _TIME, where))
        sized = [i for i in group if i.size]
        moved, spent = sum(i.size or 0 for i in sized), sum(i.latency for i in sized)
        if moved and spent:
            members = max((p.ranks or len(i.parts)) for i in sized for p in i.parts)
            rate = moved / spent * 1e9
            metrics.append(_metric("comm_bytes", moved, Dimension.BYTES, where))
            metrics.append(_metric("alg_bandwidth", rate, Dimension.BANDWIDTH, where))
            metrics.append(
                _metric("bus_bandwidth", rate * bus_factor(_operation(group), members), Dimension.BANDWIDTH, where)
            )
    return MetricSet(metrics=tuple(metrics))


def meeting_document(meeting: Meeting, subject: str) -> Document:
    """What ranks say together, or what one rank alone cannot say."""
    shared = meeting.shared
    if not shared:
        return Document(
            title=f"Ranks of {subject}",
            blocks=(Paragraph(text=alone(meeting)),),
        )
    late, total = straggler(shared), waits(shared)
    rows = tuple((str(rank), waited, "straggler" if rank == late else "") for rank, waited in sorted(total.items()))
    waiting = Table(
        columns=(Column(name="rank"), Column(name="waits for others", dimension=_TIME), Column(name="")),
        rows=rows,
        note="A rank's wait is its durations beyond the shortest over all ranks; clocks need not agree. "
        "Whoever waits least arrives last.",
    )
    unmatched = len(meeting.instances) - len(shared)
    blocks = [Section(title="Waits", blocks=(waiting,)), Section(title="Collectives", blocks=(_kinds(shared),))]
    if unmatched:
        said = f"{unmatched:,} collectives were recorded by one rank only; they tell nothing about waiting."
        blocks.append(Section(title="Unmatched", blocks=(Paragraph(text=said),)))
    return Document(title=f"Ranks of {subject}", blocks=tuple(blocks))


def alone(meeting: Meeting) -> str:
    """What cannot be known from one rank."""
    seen = len(meeting.parts)
    return (
        f"Only one rank's trace is here ({seen:,} collectives). Their duration is transfer and waiting together: "
        "which of the two, which rank is late, and the bandwidth of the links cannot be known from one rank. "
        "Give the traces of all ranks."
    )


def _kinds(shared: Sequence[Instance]) -> Table:
    rows = []
    for kind, group in sorted(_by_kind(shared).items(), key=lambda item: -sum(i.latency for i in item[1])):
        sized = [i for i in group if i.size]
        moved, spent = sum(i.size or 0 for i in sized), sum(i.latency for i in sized)
        members = max((p.ranks or len(i.parts)) for i in group for p in i.parts)
        rate = moved / spent * 1e9 if moved and spent else None
        rows.append(
            (
                kind,
                len(group),
                members,
                sum(i.latency for i in group),
                max(i.skew for i in group),
                moved or None,
                rate,
                rate * bus_factor(_operation(group), members) if rate else None,
            )
        )
    return Table(
        columns=(
            Column(name="collective"),
            Column(name="instances", dimension=_COUNT),
            Column(name="ranks", dimension=_COUNT),
            Column(name="latency", dimension=_TIME),
            Column(name="largest skew", dimension=_TIME),
            Column(name="bytes", dimension=Dimension.BYTES),
            Column(name="algorithm", dimension=Dimension.BANDWIDTH),
            Column(name="bus", dimension=Dimension.BANDWIDTH),
        ),
        rows=tuple(rows),
    )


def _by_kind(shared: Sequence[Instance]) -> Mapping[str, list[Instance]]:
    found: dict[str, list[Instance]] = defaultdict(list)
    for instance in shared:
        found[instance.kind].append(instance)
    return found


def _metric(name: str, number: float, dimension: Dimension, where: Labels) -> Metric:
    return Metric(name=name, value=float(number), dimension=dimension, labels=where, source="trace")


def _operation(group: Sequence[Instance]) -> str:
    named = next((part.operation for i in group for part in i.parts if part.operation), "")
    return named or group[0].kind
