"""Patterns that are worth a finding, and advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.decisions import SHORT_NS, mostly_short, outside_computation, saving, short_kernels
from pytest_perfgate.core.analysis.trace.operators import KernelRow, OperatorRow, recompute_share
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import Finding, Severity
from pytest_perfgate.model.profiles import Category, Kind
from pytest_perfgate.model.values import Dimension, regex

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.trace.survey import Survey
    from pytest_perfgate.core.analysis.trace.timeline import Timeline
    from pytest_perfgate.model.device import Roof

_SIMPLE = {"aten::add", "aten::add_", "aten::mul", "aten::mul_", "aten::copy_"}

COMPARE_FIRST = "compare with another device at the same length before calling it a kernel problem"

UNFUSED, FOLD = "Attention is not fused", "fold the batch into a larger product"

PRODUCTS = ("aten::bmm", "aten::baddbmm")
"""Batched products, of which unfused attention has two."""

PERFETTO = "open the trace in https://ui.perfetto.dev and look at what the host does in the gaps"


def findings(
    survey: Survey,
    line: Timeline | None,
    rows: Sequence[OperatorRow],
    kernels: Sequence[KernelRow],
    roof: Roof | None,
) -> tuple[Finding, ...]:
    """Return all findings, time other than compute first."""
    collected = [
        *_durations(survey),
        *_foreign(survey),
        *_longer_than_the_trace(survey),
        *(time_outside(line) if line else ()),
        *(() if survey.on_host else _launches(survey, line)),
        *(() if survey.on_host else _graph(survey)),
        *_waits(survey, line),
        *_attention(rows, roof, line.total if line else 0.0),
        *_transposes(kernels, rows, line.total if line else 0.0),
        *_tiny_products(rows, roof),
        *_slow(rows, roof),
        *_batch(rows, roof),
        *_recompute(survey),
    ]
    return tuple(collected)


def _durations(survey: Survey) -> Iterator[Finding]:
    """Yield findings on unusable durations, before figures that depend on them."""
    guessed, untimed = int(survey.guessed.sum()), survey.trace.untimed
    if guessed or untimed:
        yield Finding(
            title=f"{plural(guessed + untimed, 'GPU duration')} cannot be read",
            detail=f"{guessed:,} are negative or overflowed and end where the next one starts, "
            f"{untimed:,} have no next one, or start a day from the others, and are left out.",
            trigger=f"unread={survey.unread:.3f}",
            advice="profile again with a newer PyTorch, or fewer steps",
            severity=Severity.WARNING,
        )


def _foreign(survey: Survey) -> Iterator[Finding]:
    """Yield findings on events of unknown categories."""
    if survey.unknown_categories:
        yield Finding(
            title="Events of unknown categories are left out",
            detail=f"No figure has {survey.unknown_categories}; if any ran on a device, busy time and kernels lack it.",
            trigger=f"unknown={sum(count for _, count in survey.trace.foreign)}",
            advice="look at them in Perfetto before trusting a figure of this trace",
            severity=Severity.WARNING,
        )


def _longer_than_the_trace(survey: Survey) -> Iterator[Finding]:
    """Yield an event that contains most others of its queue and lasts ten times as long as all of them."""
    if survey.on_host or len(survey.rows) < 3:
        return
    start, end = survey.trace.start[survey.rows], survey.trace.end[survey.rows]
    at = int(np.argmax(end - start))
    others = np.arange(len(start)) != at
    lasts, span = int(end[at] - start[at]), int(end[others].max() - start[others].min())
    same_place = others & (survey.trace.place[survey.rows] == survey.trace.place[survey.rows[at]])
    inside = same_place & (start > start[at]) & (start < end[at])
    if lasts > 10 * span and 2 * np.count_nonzero(inside) > np.count_nonzero(same_place):
        name = survey.trace.names[int(survey.trace.name[survey.rows[at]])]
        yield Finding(
            title="One GPU event lasts longer than the trace",
            detail=f"{name} is said to take {quantity(lasts, Dimension.TIME)} and to hold {np.count_nonzero(inside):,} "
            f"others of its stream; all others together span {quantity(span, Dimension.TIME)}. "
            "Busy and idle time depend on it.",
            trigger=f"kernel_max={lasts}ns",
            advice="a counter has overflowed: profile again, or look at a window without it (--set window=)",
            severity=Severity.WARNING,
        )


def time_outside(line: Timeline) -> Iterator[Finding]:
    """Yield time other than compute, which no operator's figures contain."""
    parts = (line.idle, line.exposed_comm, line.exposed_memcpy)
    advice = (PERFETTO, "overlap it with compute; the ranks together show who waits for whom")
    return outside_computation(line.share(line.computation), tuple(map(line.share, parts)), "the window", advice)


def _short(survey: Survey) -> tuple[tuple[int, int], float]:
    """Return the numbers of computing kernels and of short ones, and the short ones' part of their time."""
    lengths = (survey.end - survey.start)[survey.kinds == Kind.COMPUTE]
    short = lengths[lengths < SHORT_NS]
    return (len(lengths), len(short)), float(short.sum() / max(lengths.sum(), 1))


def _replayed(survey: Survey) -> bool:
    """Return whether graphs launched most of what ran on the device."""
    launches = survey.link.launch[survey.link.launch >= 0]
    names, counts = np.unique(survey.trace.name[launches], return_counts=True)
    graphs = ["GraphLaunch" in survey.trace.names[name] for name in names]
    return bool(2 * counts[np.array(graphs, bool)].sum() > len(launches))


def _launches(survey: Survey, line: Timeline | None) -> Iterator[Finding]:
    (count, short), part = _short(survey)
    for finding in short_kernels((count, short), part):
        yield replace(finding, advice="fuse them; graphs launch them already") if _replayed(survey) else finding
    if line and line.share(line.idle_macro) > 0.3 and line.gaps < 0.2 * max(count, 1):
        yield Finding(
            title="The device waits in few long gaps",
            detail=f"{line.gaps:,} gaps against {count:,} kernels: the host has nothing to launch.",
            trigger=f"idle_macro_share={line.share(line.idle_macro):.3f}",
            advice="look for the data loader, a synchronisation or host code in these gaps; " + PERFETTO,
        )


def _graph(survey: Survey) -> Iterator[Finding]:
    """Yield calls that a CUDA graph cannot hold, if one would help."""
    trace, launches = survey.trace, survey.link.launch[survey.link.launch >= 0]
    (count, short), _ = _short(survey)
    if not mostly_short(count, short) or not len(launches) or _replayed(survey):
        return
    host = np.isin(trace.category, (Category.RUNTIME, Category.OPERATOR))
    host &= (trace.start >= trace.start[launches].min()) & (trace.start <= trace.start[launches].max())
    counts = np.bincount(trace.name[host], minlength=len(trace.names))
    breaks = {name: int(counts[at]) for at, name in enumerate(trace.names) if counts[at] and _BREAKS.search(name)}
    if breaks:
        most = sorted(breaks.items(), key=lambda item: -item[1])
        named = ", ".join(f"{name} {plural(count, 'time')}" for name, count in most[:4])
        yield Finding(
            title="Calls that a CUDA graph cannot contain",
            detail=f"Between the launches: {named}. They wait for the device, allocate on it or read from it.",
            trigger=f"graph_breaks={sum(breaks.values())}",
            advice="move them out of the captured code, or capture the parts between them",
        )


def _waits(survey: Survey, line: Timeline | None) -> Iterator[Finding]:
    """Yield the calls that wait for the device, by what calls them, if it idles behind them."""
    from pytest_perfgate.core.analysis.trace.bottleneck import blocking_calls, host_calls

    calls = host_calls(survey)
    if line is None or calls is None or calls.sync < _WAITING * line.total:
        return
    counts = Counter(_called_in(survey, row) for row in blocking_calls(survey).tolist())
    named = ", ".join(f"{name} {plural(count, 'time')}" for name, count in counts.most_common(4))
    yield Finding(
        title=f"The host waits for the device in {plural(calls.waits, 'call')}",
        detail=f"The device idles behind them for {line.share(calls.sync) * 100:.0f} % of the window: {named}.",
        trigger=f"sync_share={line.share(calls.sync):.3f}",
        advice="keep values on the device; wait on events instead of the whole device",
        gain=saving(0.0, calls.sync / line.total),
    )


def _called_in(survey: Survey, row: int) -> str:
    """Return a call with the operator that made it and the annotation around that, such as the optimizer's step."""
    trace, inside = survey.trace, [survey.trace.names[survey.trace.name[row]]]
    above = int(survey.tree.parent[row])
    while above >= 0 and len(inside) < 3:
        name = trace.names[trace.name[above]]
        if trace.category[above] in _CALLERS[len(inside) - 1 :] and not name.startswith((inside[-1], "ProfilerStep#")):
            inside.append(name)
        above = int(survey.tree.parent[above])
    return " in ".join(inside)


_WAITING = 0.02
"""From this share of a window on, waits are worth a finding."""

_CALLERS = (Category.OPERATOR, Category.ANNOTATION)
"""What may call a waiting call: an operator, and the annotation around it."""

_BREAKS = regex(
    r"^(?:cuda|hip|cu)(?:(?:Device|Stream|Event|Ctx)Synchronize|(?:Stream|Event)Query|Malloc(?!.*Async)|Free(?!.*Async)"
    r"|Memcpy(?!.*Async)|MemAlloc|MemFree)|^aten::(?:item|nonzero|masked_select)$"
)
"""Calls that capturing a stream refuses, or whose result has a size that only the device knows."""


_FUSED = (3, 10)
"""The speed-up of fused attention over its parts, from TraceLens' guide."""


_SHORT = 1024
"""The number of queries under which launch and memory limit any fused attention."""


def short_sequence(row: OperatorRow) -> int:
    """Return the queries of a fused attention over a short sequence; 0 for other operators."""
    axis = 2 if row.name.startswith("aten::_scaled") else 1
    queries = row.call.dims[0][axis] if row.category == "SDPA_fwd" and _rank(row) == 4 else 0
    return queries if type(queries) is int and 0 < queries < _SHORT else 0


def _attention(rows: Sequence[OperatorRow], roof: Roof | None, total: float) -> Iterator[Finding]:
    soft = _first_of(rows, "aten::_softmax", "aten::softmax")
    product = _first_of(rows, *PRODUCTS)
    softened, multiplied = (sum(row.count for row in group) for group in (soft, product))
    if softened and multiplied >= 2 * softened:
        together = (*soft, *product)
        spent = sum(row.share for row in together)
        shares = [sum(row.total for row in together) * (1 - 1 / times) / (total or math.inf) for times in _FUSED]
        yield Finding(
            title=UNFUSED,
            detail=f"{soft[0].name} {softened:,} times, {product[0].name} {multiplied:,} times, {spent * 100:.0f} % "
            f"together. Fused kernels are {_FUSED[0]} to {_FUSED[1]} times as fast.",
            trigger=f"op_count(op={soft[0].name})={softened}",
            advice="call torch.nn.functional.scaled_dot_product_attention",
            scope=soft[0].name,
            gain=saving(*shares) if total else None,
        )
    for row in rows:
        queries = short_sequence(row)
        if queries and row.share > 0.02:
            at = row.placement(roof)
            reached = f"{at.fraction * 100:.0f} % of the roof" if at and at.fraction else "share of the roof not known"
            yield Finding(
                title=f"Attention over a short sequence: {queries}",
                detail=f"{row.name}, {reached}; below 1024 the fused kernels are limited by memory and launch.",
                trigger=f"sequence={queries}",
                advice=COMPARE_FIRST,
                scope=row.name,
                severity=Severity.INFO,
            )


def _first_of(rows: Sequence[OperatorRow], *names: str) -> list[OperatorRow]:
    """Return the argument sets of the first of these operators that occurs: attention's products have two shapes."""
    groups = ([row for row in rows if row.name == name] for name in names)
    return next((group for group in groups if group), [])


def _transposes(kernels: Sequence[KernelRow], rows: Sequence[OperatorRow], window: float) -> Iterator[Finding]:
    convolved = [k for k in kernels if "conv" in k.launcher.lower()]
    moved = [k for k in convolved if any(w in k.name for w in ("batched_transpose", "nchwToNhwc", "nhwcToNchw"))]
    total = sum(k.total for k in convolved)
    share = sum(k.total for k in moved) / total if total else 0.0
    if share > 0.1:
        spent, calls = sum(k.total for k in moved), sum(row.count for row in rows if row.category.startswith("CONV"))
        yield Finding(
            title=f"Layout changes take {share * 100:.0f} % of convolution time",
            detail=f"{sum(k.count for k in moved):,} transposes around {plural(calls, 'convolution')}.",
            trigger=f"transpose_share={share:.3f}",
            advice="model.to(memory_format=torch.channels_last)",
            gain=saving(0.0, spent / window) if window else None,
        )


def _shapes(row: OperatorRow) -> list[tuple[int, ...]]:
    """Return the shapes of all tensors of a call; empty if one of them is not a possible shape."""
    try:
        return [row.call.shape(at) for at in row.call.tensors()]
    except ValueError:
        return []


def _tiny_products(rows: Sequence[OperatorRow], roof: Roof | None) -> Iterator[Finding]:
    for row in rows:
        if row.name not in PRODUCTS or row.work is None:
            continue
        shapes = _shapes(row)
        if not shapes or not all(shapes):  # a batched product has no scalar operand: the trace is unusual
            continue
        batch, sizes = shapes[-1][0], [n for shape in shapes for n in shape[1:]]
        if batch >= 1024 and max(sizes) < 128:
            at = row.placement(roof)
            reached = f", {at.fraction * 100:.0f} % of the roof" if at and at.fraction else ""
            yield Finding(
                title=f"Tiny batched products: {batch:,} of at most {max(sizes)}",
                detail=f"{row.name} takes {row.share * 100:.0f} % of operator time{reached}.",
                trigger=f"batch={batch}",
                advice=f"{FOLD}, or replay it to look at kernel selection",
                scope=row.name,
            )


def _slow(rows: Sequence[OperatorRow], roof: Roof | None) -> Iterator[Finding]:
    """Yield operators that memory limits but that leave most of it unused, unlike elementwise ones."""
    baseline = elementwise_baseline(rows, roof)
    if baseline is None or baseline < 0.7 or roof is None:
        return
    for row in rows:
        normalises = row.category == "NORM_fwd"
        worth = normalises or (row.share > _WORTH and row.name not in _SIMPLE)
        at = row.placement(roof) if worth else None
        if at and at.bound == "memory" and at.memory is not None and at.memory < 0.2:
            what = "the normalisation" if normalises else "the operator"
            yield Finding(
                title=f"{row.name} reaches {at.memory * 100:.0f} % of memory bandwidth",
                detail=f"Elementwise operators of the same trace reach {baseline * 100:.0f} %: the device can.",
                trigger=f"bandwidth_fraction={at.memory:.3f}",
                advice=f"another implementation of {what}, or a fused one",
                scope=row.name,
            )


_WORTH = 0.05
"""The least part of the operators' time for a finding on an operator."""


def _batch(rows: Sequence[OperatorRow], roof: Roof | None) -> Iterator[Finding]:
    """Yield products limited by their weights, where more rows are nearly free up to the balance point."""
    for row in rows:
        worth = row.share > _WORTH and _reads_weights(row)
        at = row.placement(roof) if worth else None
        if at is None or at.intensity is None or not at.compute or not at.memory or at.memory < 4 * at.compute:
            continue
        times = at.memory / at.compute
        yield Finding(
            title=f"A larger batch costs {row.name} next to nothing",
            detail=f"{at.intensity:.3g} operations a byte, {times:.0f} times under the balance point: it reads weights "
            "for few rows, and takes about as long for several times as many.",
            trigger=f"intensity={at.intensity:.4g}",
            advice="raise the batch, or gather requests, until operations limit it",
            scope=row.name,
        )


def _reads_weights(row: OperatorRow) -> bool:
    """Return whether a product reads more of its second operand than it moves of its rows."""
    # A batched product has a second operand for each entry, which a larger batch multiplies too.
    if row.category != "GEMM":
        return False
    shapes = _shapes(row)[-2:]
    if [len(shape) for shape in shapes] != [2, 2]:
        return False
    (rows, inner), weights = shapes[0], math.prod(shapes[1])
    return bool(weights * inner > rows * (inner * inner + weights))  # whole numbers, of any length


def _recompute(survey: Survey) -> Iterator[Finding]:
    share = recompute_share(survey)
    if share and share > 0.05:
        yield Finding(
            title=f"Recomputation takes {share * 100:.0f} % of GPU time",
            detail="Activation checkpointing runs these forward passes twice.",
            trigger=f"recompute={share:.3f}",
            advice="checkpoint fewer or cheaper layers where memory allows",
            gain=saving(0.0, share),
        )


def elementwise_baseline(rows: Sequence[OperatorRow], roof: Roof | None) -> float | None:
    """Return the bandwidth fraction of simple elementwise operators: the median over argument sets."""
    simple = (row for row in rows if row.name in _SIMPLE and row.work and (row.work.bytes or 0) > 1e6)
    reached = [at.memory for row in simple if (at := row.placement(roof)) is not None and at.memory is not None]
    if not reached:
        return None
    from pytest_perfgate.core.stats.summary import median

    return median(sorted(reached))


def _rank(row: OperatorRow) -> int:
    first = row.call.dims[0] if row.call.dims else ()
    return len(first) if isinstance(first, tuple) else 0
