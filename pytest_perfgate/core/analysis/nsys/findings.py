"""What a reader of the figures should know: doubts first, then what stands out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.nsys import stream_name
from pytest_perfgate.model.nsys_job import MIXED, Job, OverlapRow, RankResult
from pytest_perfgate.model.problem import Finding, Problem, Severity
from pytest_perfgate.model.quantity import Dimension

COVERAGE_FLOOR = 0.9


def problems(job: Job) -> tuple[Problem, ...]:
    """Whatever makes every limit on the job INVALID."""
    return (*_lacking(job), *_untimed(job), *_graphs(job), *_faults(job), *_unnamed(job), *_unlinked(job))


def _lacking(job: Job) -> Iterator[Problem]:
    for facts in job.files:
        if facts.lacking:
            what = f"the export has no column {', '.join(facts.lacking)}"
            yield Problem(code="nsys-schema", what=what, retry=False, evidence=(("file", facts.path),))


def _untimed(job: Job) -> Iterator[Problem]:
    for facts in job.files:
        for table, count in facts.untimed:
            what = f"{count:,} rows of {table} have no start or no end, and are in no figure"
            yield Problem(code="nsys-damaged", what=what, retry=False, evidence=(("file", facts.path),))


def _faults(job: Job) -> Iterator[Problem]:
    for result in job.ranks:
        for fault in result.lane.faults:
            yield Problem(code="nsys-damaged", what=f"rank {result.rank.name}: {fault}", retry=False)


def _graphs(job: Job) -> Iterator[Problem]:
    for facts in job.files:
        if facts.graphs:
            hidden = f"{facts.graphs:,} launches of CUDA graphs hide" if facts.graphs > 1 else "a CUDA graph hides"
            what = f"{hidden} kernels; capture with --cuda-graph-trace=node"
            yield Problem(code="nsys-graphs", what=what, evidence=(("file", facts.path),))


def _unnamed(job: Job) -> Iterator[Problem]:
    """A kernel without a name cannot be told to be communication: it would count as computation in silence."""
    for result in job.ranks:
        lane = result.lane
        if lane.unnamed:
            what = (
                f"rank {result.rank.name}: {lane.unnamed:,} of {len(lane.kernels):,} kernels have no name in the export"
            )
            yield Problem(code="nsys-damaged", what=f"{what}, so communication cannot be told", retry=False)


def _unlinked(job: Job) -> Iterator[Problem]:
    for result in job.ranks:
        lane = result.lane
        linked = lane.linked[lane.talks]
        if lane.stages and len(linked) and linked.mean() < COVERAGE_FLOOR:
            share = quantity(float(linked.mean()), Dimension.FRACTION)
            what = f"rank {result.rank.name}: the launch of only {share} of its communication was recorded"
            yield Problem(code="nsys-unlinked", what=f"{what}, so stages cannot be told", retry=False)


def findings(job: Job) -> tuple[Finding, ...]:
    """Doubts first, then the worst (rank, stage)."""
    top = worst(job.ranks)
    if top is None:
        return doubts(job)
    result, row = top
    exposed = quantity(row.exposed_ns, Dimension.TIME)
    scope = f"rank {result.rank.name}, {row.stage}"
    title = f"most exposed communication: {scope}, {exposed} of {quantity(row.total_ns, Dimension.TIME)}"
    return (*doubts(job), Finding(title=title, trigger=f"exposed_comm={row.exposed_ns} ns", scope=scope))


def doubts(job: Job) -> tuple[Finding, ...]:
    """What was left out, streams that disagree, stages that are silent on some ranks."""
    found = [Finding(title=note, severity=Severity.WARNING) for note in job.notes]
    foreign = (facts.path for facts in job.files if facts.foreign)
    found += [Finding(title=f"{path}: text that is not UTF-8 is shown with � in its place") for path in foreign]
    for result in job.ranks:
        found += [*_empty(result), *_mixed(result)]
    return (*found, *_silent(job))


def _empty(result: RankResult) -> Iterator[Finding]:
    """A rank without a row looks like one that is not there."""
    if not len(result.lane.kernels):
        title = f"rank {result.rank.name} ran no kernel in its window {result.lane.window}"
        yield Finding(title=title, severity=Severity.WARNING)


def _mixed(result: RankResult) -> Iterator[Finding]:
    for row in result.streams:
        if row.purpose == MIXED:
            where = f"rank {result.rank.name}: the kernels of stream {stream_name(row.stream)}"
            yield Finding(
                title=f"{where} disagree about its purpose",
                detail=row.detail,
                trigger=f"purpose={MIXED}",
            )


def _silent(job: Job) -> Iterator[Finding]:
    """A stage that talks on some ranks and only computes on others."""
    talking: dict[str, list[str]] = {}
    computing: dict[str, list[str]] = {}
    for result in job.ranks:
        for row in result.overlaps:
            if not row.outside:
                talking.setdefault(row.stage, []).append(result.rank.name)
        for stage, _ in result.compute:
            computing.setdefault(stage, []).append(result.rank.name)
    for stage, there in sorted(talking.items()):
        silent = [name for name in computing.get(stage, ()) if name not in there]
        if silent:
            title = f"{stage} communicates on rank {', '.join(there)} and only computes on rank {', '.join(silent)}"
            detail = "limits on it are INVALID there"
            yield Finding(title=title, detail=detail, severity=Severity.WARNING, scope=stage)


def worst(ranks: Sequence[RankResult]) -> tuple[RankResult, OverlapRow] | None:
    """The (rank, stage) with the most exposed communication; ranks' order breaks a tie."""
    rows = [(result, row) for result in ranks for row in result.overlaps if row.exposed_ns]
    return max(rows, key=lambda pair: pair[1].exposed_ns, default=None)
