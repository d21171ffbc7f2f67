"""Metrics and findings of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from pytest_perfgate.core.analysis.decisions import SHORT_NS, outside_computation, short_kernels
from pytest_perfgate.core.analysis.nsys.overlap import balances, stages
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import Absent, Finding, Labels, Metric, MetricSet, Problem, Severity, labels
from pytest_perfgate.model.nsys import MIXED, Job, OverlapRow, RankResult, Window, stream_name
from pytest_perfgate.model.values import Dimension, first_of

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT

SILENT = "nsys-silent"

_ASKED = ("overlap", "overlap_sum", "overlap_min", "overlap_max", "exposed_comm", "exposed_sum")


def metrics(job: Job) -> MetricSet:
    """Return every figure by rank, by rank and stage, by rank and kernel, without sums over ranks."""
    collected: list[Metric] = []
    absent: list[Absent] = []
    for result in job.ranks:
        collected += _rank(result)
        collected += _kernels(result)
        for row in (row for row in result.overlaps if row.lasts):
            collected += _overlap(row, scope(result, row), original=job.reading.original)
        if result.comm is not None and result.comm.lasts:
            collected += _overlap(result.comm, labels(rank=result.rank.name), original=job.reading.original)
        absent += _missing(result)
    collected += _balances(job)
    return MetricSet(metrics=tuple(collected), absent=tuple(absent))


def _balances(job: Job) -> Iterator[Metric]:
    """Yield the balance of all compute, and of each stage that several parts have."""
    for stage in ("", *stages(job.ranks)):
        for balance in balances(job.ranks, stage):
            where = labels(over=balance.over, **({"stage": stage} if stage else {}))
            if isfinite(balance.excess):
                yield Metric(name="balance", value=balance.excess, dimension=_PART, labels=where, source="nsys")


def scope(result: RankResult, row: OverlapRow) -> Labels:
    """Return the scope of a row: a stage, or outside of stages a category, which limits on stages do not match."""
    kind = "category" if row.outside else "stage"
    return labels(rank=result.rank.name, **{kind: row.stage})


def figures(row: OverlapRow, *, original: bool) -> tuple[float, int]:
    """Return overlap and exposure by the reading's mode: by union, or per kernel as in the original tool."""
    return (row.overlap_sum, row.exposed_sum) if original else (row.overlap, row.exposed_ns)


def _overlap(row: OverlapRow, where: Labels, *, original: bool) -> Iterator[Metric]:
    overlap, exposed = figures(row, original=original)
    values: tuple[tuple[str, float, Dimension], ...] = (
        ("overlap", overlap, _PART),
        ("overlap_sum", row.overlap_sum, _PART),
        ("overlap_min", row.least, _PART),
        ("overlap_max", row.most, _PART),
        ("exposed_comm", exposed, _TIME),
        ("exposed_sum", row.exposed_sum, _TIME),
    )
    for name, number, dimension in values:
        yield Metric(name=name, value=float(number), dimension=dimension, labels=where, source="nsys")


def _rank(result: RankResult) -> Iterator[Metric]:
    time, window = result.time, max(result.time.window_ns, 1)
    values: tuple[tuple[str, float | None, Dimension], ...] = (
        ("total_time", time.window_ns, _TIME),
        ("busy", time.busy_ns / window, _PART),
        ("busy_time", time.busy_ns, _TIME),
        ("idle", time.idle_ns / window, _PART),
        ("idle_time", time.idle_ns, _TIME),
        ("computation", time.computation_ns / window, _PART),
        ("computation_time", time.computation_ns, _TIME),
        ("communication", time.communication_ns / window, _PART),
        ("communication_time", time.communication_ns, _TIME),
        ("exposed_memcpy", time.exposed_copies_ns, _TIME),
        ("barrier", sum(row.barrier_ns for row in result.streams), _TIME),
        ("straddling", result.lane.cut, _TIME),
        ("exposed_share", time.exposed_comm_ns / window if result.comm and result.comm.lasts else None, _PART),
        ("launch_share", result.launch_ns / window if result.launch_ns is not None else None, _PART),
        ("sync_time", result.sync_ns, _TIME),
        ("sync_share", result.sync_ns / window if result.sync_ns is not None else None, _PART),
        ("sync_count", result.sync_count, _COUNT),
        ("window_coverage", result.lane.window.covers, _PART),
        ("step_to_step", result.lane.window.between_starts, _TIME),
    )
    where = labels(rank=result.rank.name)
    for name, number, dimension in values:
        if number is not None:
            yield Metric(name=name, value=float(number), dimension=dimension, labels=where, source="nsys")


def _kernels(result: RankResult) -> Iterator[Metric]:
    lane = result.lane
    number = lane.kernels.name
    lengths = lane.kernels.end - lane.kernels.start
    counts = np.bincount(number, minlength=len(lane.names))
    totals = np.bincount(number, lengths, minlength=len(lane.names))
    for at in np.flatnonzero(counts):
        where = labels(rank=result.rank.name, kernel=lane.names[at])
        yield Metric(name="kernel_time", value=float(totals[at]), dimension=_TIME, labels=where, source="nsys")
        yield Metric(name="kernel_count", value=float(counts[at]), dimension=_COUNT, labels=where, source="nsys")


_NO_LAUNCH = "the export holds no launch by its process"

_LACKING = dict.fromkeys(("launch_share", "sync_time", "sync_share", "sync_count"), _NO_LAUNCH) | {
    "window_coverage": "its window is the whole capture (--anchor PATTERN names a range)",
    "step_to_step": "its window is not one of several ranges (--anchor PATTERN names them)",
}
"""Why a rank may lack a figure."""


def _missing(result: RankResult) -> Iterator[Absent]:
    """Yield what a rank lacks: the overlap of one without communication is neither 0 nor 100 %."""
    name_of_rank, where, window = result.rank.name, labels(rank=result.rank.name), str(result.lane.window)
    have = {metric.name for metric in _rank(result)}
    lacking = ((name, f"rank {name_of_rank}: {why}") for name, why in _LACKING.items() if name not in have)
    yield from (Absent(name=name, labels=where, why=why) for name, why in lacking)
    staged = [row for row in result.overlaps if not row.outside]
    silent = {*dict(result.compute), *(row.stage for row in staged)} - {row.stage for row in staged if row.lasts}
    if result.comm is None or not result.comm.lasts:
        why = f"rank {name_of_rank} has no communication in the window {window}"
        yield from (Absent(name=name, labels=where, why=why, code=SILENT) for name in (*_ASKED, "exposed_share"))
    for stage in sorted(silent):
        why = f"{stage} of rank {name_of_rank} has no communication in the window {window}"
        of_stage = labels(rank=name_of_rank, stage=stage)
        yield from (Absent(name=name, labels=of_stage, why=why, code=SILENT) for name in _ASKED)


COVERAGE_FLOOR = 0.9


def problems(job: Job) -> tuple[Problem, ...]:
    """Return what makes every limit on the job INVALID."""
    return (*_lacking(job), *_untimed(job), *_graphs(job), *_faults(job), *_unnamed(job), *_unlinked(job))


def invalid_findings(job: Job) -> Iterator[Finding]:
    """Yield what makes every figure doubtful; in that case no other advice is given."""
    for problem in problems(job):
        yield Finding(
            title="The figures are INVALID for limits",
            detail=problem.what,
            trigger="class=invalid",
            advice=f"fix this first: perfgate explain {problem.code}",
            severity=Severity.WARNING,
        )


def _lacking(job: Job) -> Iterator[Problem]:
    for facts in job.files:
        if facts.lacking:
            what = f"the export has no column {', '.join(facts.lacking)}"
            yield Problem(code="nsys-schema", what=what, retry=False, evidence=(("file", facts.path),))


def _untimed(job: Job) -> Iterator[Problem]:
    for facts in job.files:
        for table, count in facts.untimed:
            what = f"{plural(count, 'row')} of {table} without a start or an end, or longer than a day"
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
    """Yield a problem on kernels without names, which would silently count as computation."""
    for result in job.ranks:
        lane = result.lane
        if lane.unnamed:
            which = f"rank {result.rank.name}: {lane.unnamed:,} of {len(lane.kernels):,} kernels"
            what = f"{which} have no name in the export, so communication cannot be recognised"
            yield Problem(code="nsys-damaged", what=what, retry=False)


def _unlinked(job: Job) -> Iterator[Problem]:
    for result in job.ranks:
        lane = result.lane
        linked = lane.linked[lane.talks]
        if lane.stages and len(linked) and linked.mean() < COVERAGE_FLOOR:
            share = quantity(float(linked.mean()), Dimension.FRACTION)
            what = f"rank {result.rank.name}: the launch of only {share} of its communication was recorded"
            yield Problem(code="nsys-unlinked", what=f"{what}, so it cannot be assigned to stages", retry=False)


def findings(job: Job) -> tuple[Finding, ...]:
    """Return doubts first, then the worst (rank, stage)."""
    top = worst_overlap(job.ranks)
    if top is None:
        return doubts(job)
    result, row = top
    exposed = quantity(row.exposed_ns, Dimension.TIME)
    scope = f"rank {result.rank.name}, {row.stage}"
    title = f"most exposed communication: {scope}, {exposed} of {quantity(row.total_ns, Dimension.TIME)}"
    return (*doubts(job), Finding(title=title, trigger=f"exposed_comm={row.exposed_ns} ns", scope=scope))


def window_findings(ranks: Sequence[RankResult]) -> Iterator[Finding]:
    """Yield each part other than computation, of the rank with most of it, and short kernels."""
    there = [result for result in ranks if len(result.lane.kernels)]
    findings = [finding for at in range(3) if there for finding in _part_outside(there, at)]
    yield from sorted(findings, key=lambda finding: -finding.gain.high if finding.gain else 0.0)
    for result in there:
        yield from _short_windows(result)


def _part_outside(there: Sequence[RankResult], at: int) -> Iterator[Finding]:
    """Yield one part of one rank's window; communication on a computing stream cannot be covered there."""
    worst = max(there, key=lambda result: _shares(result)[at])
    of = f", the most of {len(there)} ranks" if len(there) > 1 else ""
    shares = [share if number == at else 0.0 for number, share in enumerate(_shares(worst))]
    filled = worst.time.computation_ns / max(worst.time.window_ns, 1)
    in_line = sum(row.barrier_ns for row in worst.streams) >= worst.time.communication_ns
    advice = (_in_gaps(worst), _IN_LINE if in_line else _APART)
    return outside_computation(filled, shares, f"the window of rank {worst.rank.name}{of}", advice)


def _in_gaps(result: RankResult) -> str:
    """Return the next step on idle time: where most of it lies behind synchronisations, these."""
    waits, window = result.sync_ns or 0, max(result.time.window_ns, 1)
    if not waits or waits * 2 < result.time.idle_ns:
        return _GAPS
    part, calls = quantity(waits / window, _PART, 2), plural(result.sync_count or 0, "call")
    return f"{part} of the window is idle behind {calls} that wait for the device: keep values on it, or wait on events"


_GAPS = "open the export in Nsight Systems and look at what the host does in the gaps"
_APART = "overlap it with compute; the ranks together show who waits for whom"
_IN_LINE = "move it to a stream of its own: on one that computes nothing can cover it"


def _shares(result: RankResult) -> tuple[float, float, float]:
    time, window = result.time, max(result.time.window_ns, 1)
    return time.idle_ns / window, time.exposed_comm_ns / window, time.exposed_copies_ns / window


def _short_windows(result: RankResult) -> Iterator[Finding]:
    lengths = (result.lane.kernels.end - result.lane.kernels.start)[~result.lane.talks]
    brief = lengths[lengths < SHORT_NS]
    part = float(brief.sum()) / max(float(lengths.sum()), 1.0)
    yield from short_kernels((len(lengths), len(brief)), part, f" of rank {result.rank.name}")


def doubts(job: Job) -> tuple[Finding, ...]:
    """Return what was left out, streams that disagree, and stages without communication on some ranks."""
    findings = [Finding(title=note, severity=Severity.WARNING) for note in job.notes]
    foreign = (facts.path for facts in job.files if facts.foreign)
    findings += [Finding(title=f"{path}: text that is not UTF-8 is shown with � in its place") for path in foreign]
    for result in job.ranks:
        findings += [*_empty(result), *_mixed(result)]
    return (*findings, *_ranks_without_communication(job), *(_not_counted(job.ranks) if job.reading.original else ()))


def _not_counted(ranks: Sequence[RankResult]) -> Iterator[Finding]:
    """Yield how many kernels the original tool's mode leaves out: cut by an edge, or outside every stage."""
    cut = sum(result.lane.straddlers for result in ranks)
    outside = sum(row.kernels for result in ranks for row in result.overlaps if row.outside)
    parts = (f"{plural(cut, 'kernel')} across an edge of the window" if cut else "",
             f"{plural(outside, 'kernel')} of communication outside every stage" if outside else "")  # fmt: skip
    if any(parts):
        yield Finding(title=f"left out: {' and '.join(filter(None, parts))}, as compat=pithtrain does")


def _empty(result: RankResult) -> Iterator[Finding]:
    """Yield a finding on a rank without a row, which otherwise looks like a missing one."""
    if not len(result.lane.kernels):
        title = f"rank {result.rank.name} ran no kernel in its window {result.lane.window}"
        yield Finding(title=title, severity=Severity.WARNING)


def _mixed(result: RankResult) -> Iterator[Finding]:
    for row in result.streams:
        if row.purpose == MIXED:
            where = f"rank {result.rank.name}: the kernels of stream {stream_name(row.stream)}"
            yield Finding(title=f"{where} disagree about its purpose", detail=row.detail, trigger=f"purpose={MIXED}")


def _ranks_without_communication(job: Job) -> Iterator[Finding]:
    """Yield a finding on a stage that communicates on some ranks and only computes on others."""
    talking, computing = dict[str, list[str]](), dict[str, list[str]]()
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
            yield Finding(title=title, detail="limits on it are INVALID there", severity=Severity.WARNING, scope=stage)


def worst_overlap(ranks: Sequence[RankResult]) -> tuple[RankResult, OverlapRow] | None:
    """Return the (rank, stage) with the most exposed communication; the first rank wins a tie."""
    rows = [(result, row) for result in ranks for row in result.overlaps if row.exposed_ns]
    return max(rows, key=lambda pair: pair[1].exposed_ns, default=None)


def window_text(ranks: Sequence[RankResult]) -> str:
    """Return the window of one rank in full; of several, with the time they span."""
    windows = [result.lane.window for result in ranks]
    first = windows[0]
    if all(str(window) == str(first) for window in windows):
        return f"window {_one(first)}"
    span = f"{min(w.start for w in windows)}..{max(w.end for w in windows)} ns"
    return f"windows of {len(windows)} ranks within {span}; that of rank {ranks[0].rank.name}: {_one(first)}"


def rank_names(ranks: Sequence[RankResult]) -> str:
    """Return ``rank 0``, ``ranks 0, 1 and 2``, or ``ranks 0, 1, 2, 3, 4, 5 and 58 more``."""
    *others, last = [result.rank.name for result in ranks]
    listed = first_of([*others, last], 6) if len(others) >= 8 else f"{', '.join(others)} and {last}"
    return f"ranks {listed}" if others else f"rank {last}"


def _one(window: Window) -> str:
    return f"{window} ns ({quantity(window.length, _TIME)}; {window.how})"


def sentences(job: Job) -> str:
    """Return sentences on how much was hidden, what was worst, how the devices were used."""
    return " ".join((_hidden(job), _worst(job), _used(job)))


def _hidden(job: Job) -> str:
    ranks = plural(len(job.ranks), "rank")
    talk = sum(result.time.communication_ns for result in job.ranks)
    its = "its window" if len(job.ranks) == 1 else "their windows"
    if not talk:
        return f"{ranks} ran no communication in {its}, so there is no overlap."
    exposed = sum(result.time.exposed_comm_ns for result in job.ranks)
    hidden = quantity(1 - exposed / talk, _PART)
    hid = f"Computation hid {hidden} of that; {quantity(exposed, _TIME)} was exposed."
    return f"{ranks} communicated for {quantity(talk, _TIME)} in {its}. {hid}"


def _worst(job: Job) -> str:
    top = worst_overlap(job.ranks)
    if top is not None:
        result, row = top
        at = f"{quantity(row.overlap, _PART)} overlap over {plural(row.kernels, 'kernel')}"
        text = f"{row.stage} of rank {result.rank.name}: {quantity(row.exposed_ns, _TIME)} at {at}"
        return f"The most exposed is {text}."
    barrier = sum(row.barrier_ns for result in job.ranks for row in result.streams)
    if barrier:
        part = "All" if barrier == sum(r.time.communication_ns for r in job.ranks) else quantity(barrier, _TIME)
        return f"{part} of it ran on streams that also compute, and held up their other kernels."
    if any(result.comm is not None for result in job.ranks):
        return "None of it was exposed."
    return _longest(job)


def _longest(job: Job) -> str:
    """Return the kernel with the most time in the window, if there is nothing else to name."""
    totals: dict[str, int] = {}
    for lane in (result.lane for result in job.ranks):
        lengths = np.bincount(lane.kernels.name, lane.kernels.end - lane.kernels.start, minlength=len(lane.names))
        for name, length in zip(lane.names, lengths.tolist()):
            totals[name] = totals.get(name, 0) + int(length)
    name, longest = max(totals.items(), key=lambda pair: pair[1])
    share = quantity(longest / (sum(totals.values()) or 1), _PART)
    name = name if len(name) <= 80 else f"{name[:79]}…"
    return f"The kernel with the most time is {name}: {quantity(longest, _TIME)}, {share} of the time in kernels."


def _used(job: Job) -> str:
    window = sum(result.time.window_ns for result in job.ranks) or 1
    idle = quantity(sum(result.time.idle_ns for result in job.ranks) / window, _PART)
    balanced = [balance for balance in balances(job.ranks) if isfinite(balance.excess)]
    parts = (
        f"{'The busiest rank' if b.over == 'rank' else f'Over {b.over}, the busiest part'} "
        f"computed {quantity(b.excess, _PART, 2)} more than the mean."
        for b in balanced if b.over != "rank" or len(balanced) == 1
    )  # fmt: skip
    device, place = ("device was", "window") if len(job.ranks) == 1 else ("devices were", "windows")
    return " ".join((f"The {device} idle for {idle} of the {place}.", *parts))
