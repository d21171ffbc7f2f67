"""Two traces compared: metrics that limits can name, and documents in neutral words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.core.analysis.trace.joined import Pair
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.analysis.trace.treediff import Edit
from pytest_perfgate.model.document import Block, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, labels
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT


def slowdown_metrics(scope: str, pairs: Iterable[Pair]) -> MetricSet:
    """Time a call against the reference, minus one, by scope; what is in one trace only is absent."""
    metrics, absent = [], []
    for pair in pairs:
        where = labels(**{scope: pair.name})
        if pair.ratio is None:
            absent.append(Absent(name="slowdown", labels=where, why=pair.remark))
        else:
            note = pair.remark
            metrics.append(
                Metric(name="slowdown", value=pair.ratio - 1, dimension=_PART, labels=where, source="trace", note=note)
            )
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def whole_slowdown(before: Timeline | None, after: Timeline | None) -> MetricSet:
    """Busy time of the whole window against the reference's."""
    if before is None or after is None or not before.busy:
        return MetricSet(absent=(Absent(name="slowdown", why="one of the traces has no single device's activity"),))
    metric = Metric(name="slowdown", value=after.busy / before.busy - 1, dimension=_PART, source="trace")
    return MetricSet(metrics=(metric,))


def pair_table(pairs: Sequence[Pair], of: str, limit: int = 0) -> Table:
    """One line a thing, the largest first."""
    return Table(
        columns=(
            Column(name=of),
            Column(name="arguments"),
            Column(name="calls, reference", dimension=_COUNT),
            Column(name="calls, target", dimension=_COUNT),
            Column(name="reference", dimension=_TIME),
            Column(name="target", dimension=_TIME),
            Column(name="difference", dimension=_TIME),
            Column(name="relative", dimension=_PART),
            Column(name="bound"),
            Column(name="expected", dimension=_PART),
            Column(name="remark"),
        ),
        rows=tuple(
            (
                pair.name,
                pair.detail,
                *pair.calls,
                pair.before,
                pair.after,
                pair.after - pair.before if pair.after is not None and pair.before is not None else None,
                pair.ratio - 1 if pair.ratio is not None else None,
                pair.bound,
                pair.expected - 1 if pair.expected is not None else None,
                pair.remark,
            )
            for pair in pairs
        ),
        note="Times are a call's mean on the GPU. Expected is what the ratio of bandwidths or peaks explains.",
        limit=limit,
    )


def timeline_pair_table(before: Timeline, after: Timeline) -> Table:
    """Where the time of each went."""
    names = ("computation", "exposed_comm", "exposed_memcpy", "exposed_memset", "idle", "busy", "total")
    rows = []
    for name in names:
        one, two = getattr(before, name), getattr(after, name)
        rows.append((name.replace("_", " "), one, two, two - one, two / one - 1 if one else None))
    return Table(
        columns=(
            Column(name="part"),
            Column(name="reference", dimension=_TIME),
            Column(name="target", dimension=_TIME),
            Column(name="difference", dimension=_TIME),
            Column(name="relative", dimension=_PART),
        ),
        rows=tuple(rows),
    )


def edit_table(found: Sequence[Edit], limit: int = 0) -> Table:
    """Where the call trees differ, the largest differences first."""
    ordered = sorted(found, key=lambda edit: -edit.size)
    return Table(
        columns=(
            Column(name="under"),
            Column(name="reference"),
            Column(name="target"),
            Column(name="operators", dimension=_COUNT),
        ),
        rows=tuple((e.path, e.before, e.after, e.size) for e in ordered),
        limit=limit,
    )


def comparison_document(
    title: str, lines: tuple[Timeline | None, Timeline | None], tables: Sequence[tuple[str, Table]], note: str
) -> Document:
    """Timelines first, then what differs."""
    blocks: list[Block] = [Paragraph(text=note)]
    if lines[0] is not None and lines[1] is not None:
        blocks.append(Section(title="Where the time went", blocks=(timeline_pair_table(lines[0], lines[1]),)))
    blocks += [Section(title=name, blocks=(table,)) for name, table in tables]
    return Document(title=title, blocks=tuple(blocks))
