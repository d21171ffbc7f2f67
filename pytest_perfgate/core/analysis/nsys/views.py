"""Tables, notes and the class of each window of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.classify import THRESHOLDS, Bottleneck, Classification, Signals, classify
from pytest_perfgate.core.analysis.decisions import findings_block, four_sections, recommendations, sentence
from pytest_perfgate.core.analysis.intervals import communication
from pytest_perfgate.core.analysis.nsys.metrics import doubts, figures, problems, rank_names, sentences, window_text
from pytest_perfgate.core.analysis.nsys.overlap import balances
from pytest_perfgate.core.render.words import distinct_names, quantity
from pytest_perfgate.model.metric import (
    HALF,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Finding,
    Paragraph,
    Section,
    Severity,
    Table,
)
from pytest_perfgate.model.nsys import AS_GIVEN, ApiTotal, Job, KernelTotal, OverlapRow, Rank, RankResult, stream_name
from pytest_perfgate.model.values import Dimension


def balance(job: Job) -> Document:
    """Return how much more than the mean the busiest part computes."""
    balanced = balances(job.ranks)
    excess = Table(
        columns=Column.header("over | balance: fraction | parts: count"),
        rows=tuple((b.over, b.excess, len(b.parts)) for b in balanced),
        note="balance: the busiest part's compute over the mean of the parts, minus one" if balanced
        else "one part alone: there is nothing to balance",
    )  # fmt: skip
    parts = Table(
        columns=Column.header("over | part | compute_ns: time | ranks: count"),
        rows=tuple((b.over, name, amount, ranks) for b in balanced for name, amount, ranks in b.parts),
    )
    stages = Table(
        title="Compute per rank and stage",
        columns=Column.header("pid | rank | stage | compute_ns: time | of its compute: fraction"),
        rows=tuple(
            (str(r.rank.pid), r.rank.name, stage, amount, amount / max(r.time.computation_ns, 1))
            for r in job.ranks
            for stage, amount in r.compute
        ),
    )  # fmt: skip
    tables = tuple(table for table in (excess, parts, stages) if table.rows or table.note)
    return Document(title="Balance", subtitle=window_text(job.ranks), blocks=tables)


def ns(name: str) -> Column:
    """Return a column of plain nanoseconds, for pasting as the start or end of a window."""
    return Column(name=name, dimension=Dimension.TIME, unit="ns")


def notes(job: Job, *, led: bool = False) -> tuple[Block, ...]:
    """Return what makes limits INVALID, unless a finding did already, then other doubts."""
    items = [f"INVALID for limits: {problem.what}" for problem in problems(job) if not led]
    items += [f"{finding.title}{f' ({finding.detail})' if finding.detail else ''}" for finding in doubts(job)]
    return (Bullets(items=tuple(items)),) if items else ()


_ALWAYS = Column.header(
    "pid | rank | stage | exposed_ns: time | overlap: fraction | overlap_min: fraction | overlap_max: fraction"
)

_SUMS = Column.header("exposed_sum: time | overlap_sum: fraction")

_NO_ROWS = "no communication on a stream of its own in the window"

_LAST = Column.header("kernels: count | window")


def overlap(job: Job, findings: Sequence[Finding] = ()) -> Document:
    """Return what was hidden, in three sentences and in a table."""
    blocks: list[Block] = [*_lead(job, findings), overlap_table(job), *_barriers(job)]
    names = distinct_names([facts.path for facts in job.files])
    files = ", ".join(names) if len(names) < 3 else f"{len(names):,} files"
    title, window = f"Overlap per rank and stage of {files}", window_text(job.ranks)
    return Document(title=title, subtitle=window, blocks=(*blocks, *_last(job)))


def _last(job: Job) -> Iterator[Block]:
    """Yield the class of windows and stages, then notes; the original tool only has notes, an INVALID job no class."""
    if not job.reading.original:
        yield from (Paragraph(text=text) for text in class_sentences(job))
    yield from notes(job, led=not job.reading.original)


def _lead(job: Job, findings: Sequence[Finding]) -> list[Block]:
    """Return sentences and findings without doubts, INVALID ones first; the original tool has no findings."""
    lead: list[Block] = [Paragraph(text=sentences(job))]
    if not job.reading.original:
        doubtful, at = doubts(job), 0 if problems(job) else 1
        own = [finding for finding in findings if finding not in doubtful]
        lead.insert(at, Section(title="Findings", blocks=(findings_block(own),)))
    return lead


def _barriers(job: Job) -> tuple[Table, ...]:
    """Return communication on computing streams, where it cannot overlap what follows it."""
    columns = Column.header("pid | rank | stream | barrier_ns: time | of the window: fraction")
    rows = tuple(
        (str(r.rank.pid), r.rank.name, stream_name(s.stream), s.barrier_ns, s.barrier_ns / max(r.time.window_ns, 1))
        for r in job.ranks
        for s in r.streams
        if s.barrier_ns
    )
    return (Table(title="Barriers: communication on streams that compute", columns=columns, rows=rows),) if rows else ()


def overlap_table(job: Job) -> Table:
    """Return stages, then what is outside of them in brackets."""
    original = job.reading.original
    rows = [_row(result, row, original=original) for result in job.ranks for row in _listed(result, original)]
    note = "(name): outside any stage, by purpose. _sum: per kernel; the others by union of what runs at once."
    if not rows:
        note = "no communication in the window" if all(r.comm is None for r in job.ranks) else _NO_ROWS
    elif original:
        note = ""
    heads = (*_ALWAYS[:3], ns("exposed_ns"), *_ALWAYS[4:], *_LAST) if original else (*_ALWAYS, *_SUMS, *_LAST)
    title = "" if original else "Communication by rank and stage"
    return Table(title=title, columns=heads, rows=tuple(rows), note=note)


def _listed(result: RankResult, original: bool) -> tuple[OverlapRow, ...]:
    """Return the rows of a rank; the original tool drops what is outside of stages."""
    return tuple(row for row in result.overlaps if not (original and row.outside))


def _row(result: RankResult, row: OverlapRow, *, original: bool) -> tuple[Cell, ...]:
    share, exposed = figures(row, original=original)
    name = f"({row.stage})" if row.outside else row.stage
    first = (str(result.rank.pid), result.rank.name, name, exposed, share, row.least, row.most)
    sums = () if original else (row.exposed_sum, row.overlap_sum)
    return (*first, *sums, row.kernels, str(result.lane.window))


def setup(job: Job) -> Document:
    """Return the rank, device and mesh coordinates of each process."""
    columns = Column.header("pid | rank | gpu | device | mesh | settings | named by | file")
    rows = tuple(_rank(job, result.rank) for result in job.ranks)
    return Document(title="Setup", blocks=(Table(columns=columns, rows=rows), *_files(job), *notes(job)))


def _rank(job: Job, rank: Rank) -> tuple[Cell, ...]:
    facts = job.files[rank.file]
    device = dict(facts.gpus).get(rank.device)
    mesh = " ".join(f"{axis}={at}/{size}" for axis, at, size in rank.mesh)
    settings = " ".join(f"{key}={number}" for key, number in rank.settings)
    named = "its first labelled range"
    if not rank.label:
        named = "order of devices"
    elif re.search(job.reading.preset.thread, rank.label):
        named = "its thread's name"
    return (str(rank.pid), rank.name, str(rank.device), device, mesh or "-", settings or "-", named, facts.path)


def _files(job: Job) -> tuple[Table, ...]:
    rows = tuple((facts.path, facts.product or None, facts.schema or None) for facts in job.files)
    return (Table(columns=Column.header("file | nsys | schema"), rows=rows),)


def window(job: Job) -> Document:
    """Return the windows of the figures, and what their edges cut."""
    columns = (
        *Column.header("pid | rank"),
        ns("start"),
        ns("end"),
        *Column.header(
            "length: time | kernels: count | straddling: count | cut off: time | coverage: fraction | "
            "step to step: time | limited by | chosen as"
        ),
    )
    wrong = problems(job)
    rows: list[tuple[Cell, ...]] = []
    for r in job.ranks:
        lane, w = r.lane, r.lane.window
        bottleneck = Bottleneck.INVALID if wrong else rank_class(r).bottleneck
        rows.append((str(r.rank.pid), r.rank.name, w.start, w.end, w.length, len(lane.kernels), lane.straddlers,
                     lane.cut, w.covers, w.between_starts, bottleneck.value, w.how))  # fmt: skip
    rule = "left out whole" if job.reading.original else "clipped to it"
    note = f"Kernels that straddle an edge of the window are {rule}. Coverage: of the capture, by all ranges like it."
    table = Table(columns=columns, rows=tuple(rows), note=note)
    return Document(title="Window", blocks=(table, *notes(job)))


def streams(job: Job) -> Document:
    """Return the active streams of the window, with what runs on them."""
    columns = Column.header(
        "pid | rank | stream | kind | purpose | kernels: count | busy_ns: time | barrier_ns: time | window"
    )
    rows = tuple(
        (str(r.rank.pid), r.rank.name, stream_name(s.stream), s.kind,
         f"{s.purpose} ({s.detail})" if s.detail else s.purpose, s.kernels, s.busy_ns, s.barrier_ns, str(r.lane.window))
        for r in job.ranks
        for s in r.streams
    )  # fmt: skip
    note = "A stream computes if any kernel on it does; barrier: communication on such a stream."
    return Document(title="Streams in the window", blocks=(Table(columns=columns, rows=rows, note=note), *notes(job)))


def summary(
    job: Job,
    totals: Iterable[tuple[str, KernelTotal]],
    calls: Iterable[tuple[str, ApiTotal]],
    findings: Sequence[Finding] = (),
    *,
    shown: int = 20,
) -> Document:
    """Return kernels of the whole capture, and devices and host in the window, from (rank, total) pairs."""
    kernels = kernel_table(totals, communication(job.reading.preset.communication), shown)
    blocks = (*_lead(job, findings), kernels, *window_tables(job, calls, shown), *_last(job))
    return Document(title="Summary", subtitle=window_text(job.ranks), blocks=blocks)


def kernel_table(totals: Iterable[tuple[str, KernelTotal]], talks: re.Pattern[str], shown: int) -> Table:
    """Return kernels by total time, from (rank, total) pairs."""
    listed = sorted(totals, key=lambda pair: -pair[1].total_ns)
    whole = sum(total.total_ns for _, total in listed) or 1
    columns = Column.header(
        "rank | kernel | class | count: count | total_ns: time | share: fraction | mean: time | min: time | max: time"
    )
    rows: list[tuple[Cell, ...]] = [
        (rank, t.name, "communication" if talks.search(t.name) else "compute", t.count, t.total_ns,
         t.total_ns / whole, t.total_ns / t.count, t.least_ns, t.most_ns)
        for rank, t in listed
    ]  # fmt: skip
    return Table(title="Kernels of the whole capture", columns=columns, rows=tuple(rows), limit=shown)


def window_tables(job: Job, calls: Iterable[tuple[str, ApiTotal]], shown: int) -> tuple[Table, ...]:
    """Return each device's use of its window, and the host's calls in it."""
    uses = Table(
        title="Device in the window: parts that sum to it",
        columns=Column.header(
            "pid | rank | window_ns: time | computation: fraction | exposed_comm: fraction | "
            "exposed_copies: fraction | idle: fraction | launch_share: fraction"
        ),
        rows=tuple(map(_use, job.ranks)),
        note="launch_share: time the host spends launching, over the window, by union of its threads",
    )
    listed = sorted(calls, key=lambda pair: -pair[1].total_ns)
    host = Table(
        title="Host calls in the window",
        columns=Column.header("rank | call | count: count | total_ns: time"),
        rows=tuple((rank, row.name, row.count, row.total_ns) for rank, row in listed),
        limit=shown,
    )
    return (uses, host) if listed else (uses,)


def _use(result: RankResult) -> tuple[Cell, ...]:
    rank, time, whole = result.rank, result.time, max(result.time.window_ns, 1)
    parts = (time.computation_ns, time.exposed_comm_ns, time.exposed_copies_ns, time.idle_ns, result.launch_ns)
    return str(rank.pid), rank.name, time.window_ns, *(None if part is None else part / whole for part in parts)


def analysis(job: Job, findings: Sequence[Finding]) -> Document:
    """Return the report in four sections: summary, metrics of every rank, findings, recommendations."""
    classes = [f for f in findings if f.trigger == "class=invalid" or (f.trigger[:6] == "class=" and not f.advice)]
    texts = [*(sentence(f"{f.title}: {f.detail}") for f in classes), *class_sentences(job)]
    stated = {f.title: f.detail.rstrip(".") for f in findings if f.title.startswith("Stated work of rank ")}
    metrics = [*(f"{name}: {figure}" for name, figure in stated.items()), *_metrics(job.ranks)]
    rest = [f for f in findings if f.title not in stated and (f.advice or f not in classes)]
    return four_sections(("Report", window_text(job.ranks)), " ".join([*texts, sentences(job)]), metrics, rest)


def _metrics(ranks: Sequence[RankResult]) -> Iterator[str]:
    """Yield each metric of a window; of several ranks the least and the greatest."""
    rows: dict[str, list[tuple[float, str, str]]] = {}
    for result in ranks:
        for name, number, dimension in _rank_metrics(result):
            figure = quantity(number, dimension, 3 if dimension is Dimension.FRACTION else 4)
            figure = f"{figure.removesuffix('/s').strip()} windows/s" if dimension is Dimension.RATE else figure
            rows.setdefault(name, []).append((number, figure, result.rank.name))
    for name, pairs in rows.items():
        (_, least, first), (_, most, last) = min(pairs), max(pairs)
        span = least if least == most else f"{least} (rank {first}) to {most} (rank {last})"
        yield f"{name}: {span}{f', of {len(pairs)} of {len(ranks)} ranks' if len(pairs) < len(ranks) else ''}"


def _rank_metrics(result: RankResult) -> Iterator[tuple[str, float, Dimension]]:
    """Yield throughput, use of the device, and communication of one rank's window."""
    spent, window = result.time, max(result.time.window_ns, 1)
    apart = result.lane.window.between_starts
    if apart:
        yield "throughput", 1e9 / apart, Dimension.RATE
    yield "window", float(spent.window_ns), Dimension.TIME
    parts = (("GPU utilisation", window - spent.idle_ns), ("computation", spent.computation_ns),
             ("exposed communication", spent.exposed_comm_ns), ("exposed copies", spent.exposed_copies_ns),
             ("idle", spent.idle_ns), ("host launching", result.launch_ns),
             ("blocking synchronisation", result.sync_ns))  # fmt: skip
    yield from ((name, amount / window, Dimension.FRACTION) for name, amount in parts if amount is not None)
    if result.comm is not None:
        yield "overlap", result.comm.overlap, Dimension.FRACTION
    counts = (("kernels", len(result.lane.kernels)), ("blocking synchronisations", result.sync_count))
    yield from ((name, float(number), Dimension.COUNT) for name, number in counts if number is not None)


_CLOSE_NS = 10_000
_HELD = (Bottleneck.LAUNCH, Bottleneck.COMMUNICATION, Bottleneck.SYNCHRONISATION)


def rank_class(result: RankResult) -> Classification:
    """Return the class of a rank's window with its numbers; an export has no counters of a roof."""
    time, window = result.time, max(result.time.window_ns, 1)
    return classify(
        Signals(
            exposed=time.exposed_comm_ns / window,
            idle=time.idle_ns / window,
            launch_share=result.launch_ns / window if result.launch_ns is not None else None,
            sync=result.sync_ns / window if result.sync_ns is not None else None,
            kernel_ns=_train(result),
        )
    )


def _train(result: RankResult) -> float | None:
    compute = np.flatnonzero(~result.lane.talks)
    return intervals.train(
        result.lane.kernels.start[compute], result.lane.kernels.end[compute], _CLOSE_NS, result.lane.window.length
    )


def stage_class(result: RankResult, stage: str) -> str:
    """Return whether a stage waits for communication: exposed time over that and the stage's computation."""
    exposed = sum(row.exposed_ns for row in result.overlaps if row.stage == stage)
    spent = exposed + dict(result.compute).get(stage, 0)
    share = exposed / spent if spent else 0.0
    return Bottleneck.COMMUNICATION.value if share > THRESHOLDS.exposed else ""


def class_findings(ranks: Sequence[RankResult]) -> Iterator[Finding]:
    """Yield one finding for the ranks of each class, and the advice that follows."""
    classes = [(result, rank_class(result)) for result in ranks if len(result.lane.kernels)]
    classes = [(rank, reached) for rank, reached in classes if reached.bottleneck is not Bottleneck.NOT_COLLECTED]
    for bottleneck in dict.fromkeys(classified.bottleneck for _, classified in classes):
        of_class = [(result, classified) for result, classified in classes if classified.bottleneck is bottleneck]
        names, (_, first) = rank_names([result for result, _ in of_class]), of_class[0]
        yield Finding(
            title=f"The window of {names} is {first.named}",
            detail=f"{first.reasons}." if len(of_class) == 1 else f"Rank {of_class[0][0].rank.name}: {first.reasons}.",
            trigger=f"class={bottleneck.value}",
            severity=Severity.WARNING if bottleneck in _HELD else Severity.NOTE,
        )
        if bottleneck in _HELD:
            yield from recommendations(first.facts)


def class_sentences(job: Job) -> Iterator[str]:
    """Yield the windows that only their kernels limit, and the stages that wait for communication."""
    ranks = () if problems(job) else job.ranks
    open_ranks = [r for r in ranks if len(r.lane.kernels) and rank_class(r).bottleneck is Bottleneck.NOT_COLLECTED]
    if open_ranks:
        yield (
            f"Kernels limit the window of {rank_names(open_ranks)}, not communication, synchronisation or launches. "
            "An export has no counters that show what limits a kernel: perfgate profile NODEID --mode annotation."
        )
    bound: dict[str, list[RankResult]] = {}
    for result in ranks:
        for row in result.overlaps:
            if not row.outside and stage_class(result, row.stage):
                bound.setdefault(row.stage, []).append(result)
    if bound:
        texts = (f"{stage} of {rank_names(there)}" for stage, there in bound.items())
        yield f"Communication-bound stages: {'; '.join(texts)}."


def coverage_findings(job: Job) -> Iterator[Finding]:
    """Yield a finding on windows that cover little of a capture, since no figure covers the rest."""
    for result in job.ranks:
        window = result.lane.window
        if window.covers is None or window.covers >= HALF:
            continue
        as_given, gap_text = window.how == AS_GIVEN, ""
        if window.between_starts is not None:
            length, gap = (quantity(ns, Dimension.TIME) for ns in (window.length, window.between_starts))
            gap_text = f" A range is {length} long, and the next one starts {gap} after it."
        yield Finding(
            title=f"The {'window' if as_given else 'windows'} of rank {result.rank.name} "
            f"{'covers' if as_given else 'cover'} {window.covers * 100:.0f} % of its capture",
            detail="Its figures say nothing of the rest."
            if as_given
            else f"Figures of a window leave out what happens between them, mainly idle time.{gap_text}",
            trigger=f"window_coverage={window.covers:.3f}",
            advice="look at the whole capture too, or limit window_coverage"
            if as_given
            else "look at the whole capture too: --start and --end, or limit step_to_step and window_coverage",
            severity=Severity.WARNING,
        )
