"""Many ranks for people: who waits, what each kind of collective took, or what one rank cannot know."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.trace.arrivals import arrival_waits, one_clock
from pytest_perfgate.core.analysis.trace.instances import Instance
from pytest_perfgate.core.analysis.trace.ranks import (
    APART,
    Meeting,
    by_kind,
    lone_rows,
    straggler,
    sums_of,
    waits,
)
from pytest_perfgate.model.document import Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.quantity import Dimension

_TIME, _COUNT = Dimension.TIME, Dimension.COUNT


def meeting_document(meeting: Meeting, subject: str) -> Document:
    """What ranks say together, or what one rank alone cannot say."""
    shared = meeting.shared
    title = f"Ranks of {subject}"
    if not shared:
        table = (_lone_table(meeting),) if meeting.parts else ()
        return Document(title=title, blocks=(*table, Paragraph(text=alone(meeting))))
    unmatched = len(meeting.instances) - len(shared)
    blocks = [
        Section(title="Waits", blocks=(_waits_table(shared),)),
        Section(title="Collectives", blocks=(_kinds(shared),)),
    ]
    if unmatched:
        said = f"{unmatched:,} collectives were recorded by one rank only; they tell nothing about waiting."
        blocks.append(Section(title="Unmatched", blocks=(Paragraph(text=said),)))
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
            Column(name="rank"),
            Column(name="waits for others", dimension=_TIME),
            *(by_starts if agreed else ()),
            Column(name=""),
        ),
        rows=rows if agreed else tuple((rank, waited, said) for rank, waited, _, said in rows),
        note=note + ("By starts: from its start to the latest, since the clocks agree." if agreed else f"{APART}."),
    )


def _lone_table(meeting: Meeting) -> Table:
    return Table(
        columns=(
            Column(name="collective"),
            Column(name="instances", dimension=_COUNT),
            Column(name="transfer and waiting", dimension=_TIME),
            Column(name="bytes", dimension=Dimension.BYTES),
        ),
        rows=tuple((kind, count, spent, moved or None) for kind, count, spent, moved in lone_rows(meeting)),
    )


def alone(meeting: Meeting) -> str:
    """What cannot be known without the other ranks."""
    seen, ranks = len(meeting.parts), len(meeting.present)
    if not seen:
        return "No collective is in this window."
    whose = "one rank's trace is" if ranks < 2 else f"{ranks} ranks without a collective in common are"
    return (
        f"Only {whose} here ({seen:,} collectives). Their duration is transfer and waiting together: "
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
