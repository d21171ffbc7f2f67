"""The figures of a job, kept without its traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.trace.metrics import WITH_GPU
from pytest_perfgate.core.analysis.trace.ranks import (
    APART,
    Collective,
    Instance,
    JobCollectives,
    arrival_waits,
    by_kind,
    one_clock,
    single_rank_rows,
    straggler,
    sums_of,
    waits,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import (
    Absent,
    Column,
    Document,
    Finding,
    Labels,
    MetricSet,
    Paragraph,
    Problem,
    Section,
    Table,
)
from pytest_perfgate.model.values import Dimension, regex, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.timeline import Timeline

_NUMBER = regex(r"\d+(?:\.\d+)?")

LOST = "its GPU activity is missing, and other ranks of this job have theirs"


@value
class RankFigures:
    """One rank: everything that is kept of its trace."""

    rank: int
    path: str
    window: str
    metrics: MetricSet
    lines: tuple[tuple[int, Timeline], ...]
    """The breakdown of each of its devices."""
    collectives: tuple[Collective, ...]
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    on_host: bool = False
    """Whether its trace by itself looks like that of a program without a GPU."""
    world: int = 0
    """The ranks of the whole job, if the trace states them."""
    devices: tuple[str, ...] = ()
    """Names of its devices, as far as the trace has them."""
    placed: bool = False
    """Whether the trace has no rank, so that the number is its position among the files."""

    def silenced(self, wanted: Iterable[tuple[str, Labels]]) -> RankFigures:
        """Return the rank as unmeasured, for a job in which others have a GPU, with absent figures for limits."""
        own = ((missing.name, missing.labels) for missing in self.metrics.absent)
        here = ((name, tuple(sorted({**dict(of), "rank": str(self.rank)}.items()))) for name, of in (*wanted, *own))
        absent = (Absent(name=name, labels=of, why=LOST, fix=WITH_GPU) for name, of in dict.fromkeys(here))
        return replace(self, metrics=MetricSet(absent=tuple(absent)), lines=(), findings=(), problems=())


@value
class TraceJob:
    ranks: tuple[RankFigures, ...] = ()

    def __or__(self, other: TraceJob) -> TraceJob:
        return TraceJob.of((*self.ranks, *other.ranks))

    @classmethod
    def of(cls, ranks: Iterable[RankFigures]) -> TraceJob:
        """Return a job of all ranks at once; adding them one by one would sort them each time."""
        by_rank: dict[int, RankFigures] = {}
        for one in ranks:
            if one.rank in by_rank:
                both = " and ".join(sorted((by_rank[one.rank].path, one.path)))
                raise PerfgateError("trace-ranks", f"rank {one.rank} is claimed by {both}")
            by_rank[one.rank] = one
        return cls(ranks=tuple(by_rank[rank] for rank in sorted(by_rank)))

    @property
    def settled(self) -> TraceJob:
        """Return the complete job; a profile of the host beside those of GPUs has lost its GPU activity."""
        with_gpu = [rank for rank in self.ranks if rank.lines and not rank.on_host]
        if not with_gpu or len(with_gpu) == len(self.ranks):
            return self
        wanted = {
            (m.name, tuple(label for label in m.labels if label[0] != "rank"))
            for r in with_gpu
            for m in r.metrics.metrics
        }
        there, ordered = {one.rank for one in with_gpu}, sorted(wanted)
        return TraceJob(ranks=tuple(rank if rank.rank in there else rank.silenced(ordered) for rank in self.ranks))

    @property
    def measured(self) -> TraceJob:
        """The ranks with figures, or all if none has any."""
        return TraceJob(ranks=tuple(rank for rank in self.ranks if rank.lines) or self.ranks)

    @property
    def subject(self) -> str:
        """The number of ranks, and which of them have nothing to measure."""
        world, here = max((rank.world for rank in self.ranks), default=0), len(self.ranks)
        silent = [str(rank.rank) for rank in self.ranks if not rank.lines]
        without = f", without GPU activity: rank {', '.join(silent)}" if silent else ""
        return f"{here} of {world} ranks{without}" if world > here else f"{here} ranks{without}"

    @property
    def window(self) -> str:
        """What all figures cover, and the origin of the ranks' numbers."""
        placed = [str(rank.rank) for rank in self.ranks if rank.placed]
        named = self.measured.ranks[0].window
        if not placed:
            return named
        which = f"ranks {placed[0]} to {placed[-1]}" if len(placed) > 1 else f"rank {placed[0]}"
        return f"{named}; {which} by the order of the files, since the traces do not say"

    @property
    def meeting(self) -> JobCollectives:
        """The collectives of all ranks."""
        parts = tuple(part for rank in self.ranks for part in rank.collectives)
        return JobCollectives(parts=parts, present=frozenset(rank.rank for rank in self.ranks))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, once for each pattern: of the rank where it is worst, with the number of others."""
        kinds: dict[tuple[str, str, bool], list[tuple[RankFigures, Finding]]] = defaultdict(list)
        for rank in self.ranks:
            for finding in rank.findings:
                name, _, reached = finding.trigger.partition("=")
                kind = finding.trigger if reached.isalpha() else name
                kinds[kind, finding.scope, bool(finding.advice)].append((rank, finding))
        return tuple(_worst(by_rank) for by_rank in kinds.values())

    @property
    def metrics(self) -> MetricSet:
        """The figures of every rank."""
        return MetricSet(
            metrics=tuple(metric for rank in self.ranks for metric in rank.metrics.metrics),
            absent=tuple(absent for rank in self.ranks for absent in rank.metrics.absent),
        )


def _worst(by_rank: Sequence[tuple[RankFigures, Finding]]) -> Finding:
    rank, finding = max(by_rank, key=lambda one: _trigger_of(*one))
    others = len({other.rank for other, _ in by_rank} - {rank.rank})
    also = f" {others} more rank{'s have' if others > 1 else ' has'} the same." if others else ""
    return replace(finding, title=f"Rank {rank.rank}: {finding.title}", detail=f"{finding.detail}{also}")


_WORSE_IF_LESS = ("bandwidth_fraction=", "intensity=", "sequence=", "window_coverage=")
"""Triggers of findings on a number that is too small."""


_LIMITED_BY = {"communication": "exposed_share", "synchronisation": "sync_share", "launch": "idle", "latency": "idle"}
"""The figure by which a rank has more of a class than another."""


def _trigger_of(rank: RankFigures, finding: Finding) -> float:
    """Return the number that triggered a finding, or made its class; negated where a smaller one is worse."""
    if metric := _LIMITED_BY.get(finding.trigger.removeprefix("class=")):
        return max((m.value for m in rank.metrics.find(metric) if "step" not in dict(m.labels)), default=0.0)
    number = _NUMBER.search(finding.trigger.rpartition("=")[2])
    sign = -1.0 if finding.trigger.startswith(_WORSE_IF_LESS) else 1.0
    return sign * float(number.group()) if number else 0.0


_TIME = Dimension.TIME


def job_sentence(job: TraceJob) -> str:
    """Return how the windows of all devices are spent, and which rank is late."""
    from pytest_perfgate.core.render.words import quantity

    lines = [line for one in job.ranks for _, line in one.lines]
    if not lines:
        return "No rank has GPU activity."
    computed, exposed, idle = (
        _span([line.share(getattr(line, part)) for line in lines]) for part in ("computation", "exposed_comm", "idle")
    )
    text = f"Computation fills {computed} of the windows, exposed communication {exposed}, idle time {idle}."
    if all(one.on_host for one in job.ranks):
        text = f"No rank has a GPU. Operators of the host run for {computed} of the windows, idle time is {idle}."
    shared = job.meeting.shared
    late = straggler(shared)
    if late is None:
        return text
    waited, rank = max((waited, rank) for rank, waited in waits(shared).items())
    most = f"rank {rank} waits longest for others, {quantity(float(waited), _TIME)}"
    return f"{text} Rank {late} waits least and so arrives last; {most}."


def _span(shares: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{share * 100:.3g} %" for share in (min(shares), max(shares)))
    return " to ".join(ends)


def collectives_document(meeting: JobCollectives, subject: str) -> Document:
    """Return what several ranks show together, or what one rank cannot show."""
    shared = meeting.shared
    title = f"Ranks of {subject}"
    if not shared:
        table = (_single_rank_table(meeting),) if meeting.parts else ()
        return Document(title=title, blocks=(*table, Paragraph(text=alone(meeting))))
    unmatched = len(meeting.instances) - len(shared)
    blocks = [
        Section(title="Waits", blocks=(_waits_table(shared),)),
        Section(title="Collectives", blocks=(_kinds(shared),)),
    ]
    if unmatched:
        text = f"{unmatched:,} collectives were recorded by one rank only; they do not show waiting."
        blocks.append(Section(title="Unmatched", blocks=(Paragraph(text=text),)))
    return Document(title=title, blocks=tuple(blocks))


def _waits_table(shared: Sequence[Instance]) -> Table:
    late, total, agreed = straggler(shared), waits(shared), one_clock(shared)
    starts = arrival_waits(shared) if agreed else {}
    rows = tuple(
        (str(rank), waited, starts.get(rank), "straggler" if rank == late else "")
        for rank, waited in sorted(total.items())
    )
    note = "A rank's wait is its durations beyond the shortest over all ranks; whoever waits least arrives last. "
    by_starts = (Column(name="by starts", dimension=_TIME),)
    return Table(
        columns=(
            *Column.header("rank | waits for others: time"),
            *(by_starts if agreed else ()),
            Column(name=""),
        ),
        rows=rows if agreed else tuple((rank, waited, remark) for rank, waited, _, remark in rows),
        note=note + ("By starts: from its start to the latest, since the clocks agree." if agreed else f"{APART}."),
    )


def _single_rank_table(meeting: JobCollectives) -> Table:
    return Table(
        columns=Column.header("collective | instances: count | transfer and waiting: time | bytes: bytes"),
        rows=tuple((kind, count, spent, moved or None) for kind, count, spent, moved in single_rank_rows(meeting)),
    )


def alone(meeting: JobCollectives) -> str:
    """Return what is unknown without the other ranks."""
    parts, ranks = len(meeting.parts), len(meeting.present)
    if not parts:
        return "No collective is in this window."
    whose = "one rank's trace is" if ranks < 2 else f"{ranks} ranks without a collective in common are"
    return (
        f"Only {whose} here ({parts:,} collectives). Their duration is transfer and waiting together: "
        "which of the two, which rank is late, and the bandwidth of the links cannot be known. "
        "Give the traces of all ranks."
    )


def _kinds(shared: Sequence[Instance]) -> Table:
    rows = []
    for kind, group in sorted(by_kind(shared).items(), key=lambda item: -sum(i.latency for i in item[1])):
        sums = sums_of(group)
        bus = sums.rate * sums.factor if sums.rate else None
        skew = max(i.skew for i in group)
        rows.append((kind, len(group), sums.members, sums.latency, skew, sums.moved or None, sums.rate, bus))
    return Table(
        columns=Column.header(
            "collective | instances: count | ranks: count | latency: time | largest skew: time | "
            "bytes: bytes | algorithm: bandwidth | bus: bandwidth"
        ),
        rows=tuple(rows),
    )
