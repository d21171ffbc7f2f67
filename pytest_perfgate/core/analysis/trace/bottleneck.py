"""The bottleneck of a trace's window: the host's activity beside the device, the class and the advice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.analysis.classify import Bottleneck, Classification, Signals, classify
from pytest_perfgate.core.analysis.decisions import recommendations, saved
from pytest_perfgate.core.analysis.intervals import BLOCKS, LAUNCHES
from pytest_perfgate.core.analysis.operators import fusion_of
from pytest_perfgate.core.analysis.roofline import band
from pytest_perfgate.core.analysis.trace.findings import COMPARE_FIRST, FOLD, PRODUCTS, UNFUSED, short_sequence
from pytest_perfgate.core.analysis.trace.metrics import mean_fraction
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, library, short_name, tile
from pytest_perfgate.core.analysis.trace.survey import Survey, timelines, trace_metric
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import (
    HALF,
    Block,
    Bullets,
    Finding,
    Labels,
    Link,
    Metric,
    Paragraph,
    Problem,
    Section,
    Severity,
)
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.profiles import Category, Kind
from pytest_perfgate.model.values import Dimension, grouped, regex, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.trace.rates import Impact
    from pytest_perfgate.model.device import Roof

    Ints = NDArray[np.int64]

_MODELLED = 0.5
"""The least part of the operators' time with known work for a window to have roofs."""


@value
class HostCalls:
    """The host's activity in a window, in nanoseconds, by union over its threads."""

    launch: int
    sync: int
    """How long the device idled after so many (``waits``) blocking synchronisations."""
    waits: int


def host_calls(survey: Survey) -> HostCalls | None:
    """Return launches and blocking synchronisations of a window; ``None`` without calls of the runtime."""
    trace = survey.trace
    runtime = np.flatnonzero(trace.category == Category.RUNTIME)
    if not len(runtime) or survey.on_host or not len(survey.rows):
        return None
    low, high = _edges(survey)
    launches = runtime[_named(survey, runtime, LAUNCHES)]
    start, end = np.clip(trace.start[launches], low, high), np.clip(trace.end[launches], low, high)
    blocking = blocking_calls(survey)
    busy = intervals.union(survey.start, survey.end)
    return HostCalls(
        launch=intervals.covered(start, end),
        sync=intervals.idle_after_waits(busy, (trace.start[blocking], trace.end[blocking]), (low, high)),
        waits=len(blocking),
    )


def blocking_calls(survey: Survey) -> Ints:
    """Return the rows of the blocking synchronisations of a window."""
    trace, (low, high) = survey.trace, _edges(survey)
    rows = np.flatnonzero((trace.category == Category.RUNTIME) & (trace.start < high) & (trace.end > low))
    return rows[_named(survey, rows, BLOCKS)]


def _edges(survey: Survey) -> tuple[int, int]:
    return survey.window.pair if survey.window is not None else (int(survey.start.min()), int(survey.end.max()))


def _named(survey: Survey, rows: Ints, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    numbers, texts = survey.trace.name[rows], survey.trace.names  # a trace names each step: not all are searched
    fitting = [at for at in np.unique(numbers).tolist() if pattern.search(texts[at])]
    return np.isin(numbers, fitting)


def window_signals(survey: Survey, rows: Sequence[OperatorRow], roof: Roof | None) -> Signals | None:
    """Return the signals of a window of one device; ``None`` if nothing ran on a device."""
    lines = timelines(survey)
    if survey.on_host or len(lines) != 1:
        return None
    (line,) = lines.values()
    calls, total = host_calls(survey), max(line.total, 1)
    compute, memory = _roofs(rows, roof)
    return Signals(
        exposed=line.share(line.exposed_comm),
        idle=line.share(line.idle),
        launch_share=calls.launch / total if calls else None,
        sync=calls.sync / total if calls else None,
        waits=calls.waits if calls else None,
        kernel_ns=_train(survey),
        compute=compute,
        memory=memory,
    )


def _train(survey: Survey) -> float | None:
    kernels = np.flatnonzero(survey.kinds == Kind.COMPUTE)
    low, high = _edges(survey)
    return intervals.train(survey.start[kernels], survey.end[kernels], survey.settings.micro_ns, high - low)


def _roofs(rows: Sequence[OperatorRow], roof: Roof | None) -> tuple[float | None, float | None]:
    """Return the operators' fractions of both roofs by time; None if too little work is known."""
    everything = sum(row.total for row in rows)
    known = [row for row in rows if row.work is not None and row.total > 0]
    if roof is None or not everything or sum(row.total for row in known) < _MODELLED * everything:
        return None, None
    return mean_fraction(known, roof, "compute"), mean_fraction(known, roof, "memory")


def window_class(
    survey: Survey, rows: Sequence[OperatorRow], roof: Roof | None, problems: Sequence[Problem]
) -> Classification | None:
    """Return the class of a window with its numbers; only invalid if there are problems."""
    signals = Signals(problems=tuple(p.what for p in problems)) if problems else window_signals(survey, rows, roof)
    return classify(signals) if signals is not None else None


def window_findings(classified: Classification | None) -> Iterator[Finding]:
    """Yield the class as a sentence, and the advice that follows."""
    if classified is None or classified.bottleneck is Bottleneck.NOT_COLLECTED:
        return
    limited_by_host = classified.bottleneck in (Bottleneck.LAUNCH, Bottleneck.COMMUNICATION, Bottleneck.SYNCHRONISATION)
    yield Finding(
        title=f"The window is {classified.named}",
        detail=f"{classified.reasons}.",
        trigger=f"class={classified.bottleneck.value}",
        severity=Severity.WARNING if limited_by_host else Severity.NOTE,
    )
    if limited_by_host:
        yield from recommendations(classified.facts)


def step_metrics_of_all(whole: Survey, steps: Sequence[Survey], scopes: Sequence[Labels]) -> Iterator[Metric]:
    """Yield ``window_coverage`` and ``step_to_step``: the steps' part of a trace, and the time between them."""
    windows = [part.window for part in steps if part.window is not None and part.window.step]
    if not windows or not len(whole.rows):
        return
    start, end = (np.array([getattr(window, side) for window in windows], np.int64) for side in ("start", "end"))
    low, high = min(int(whole.start.min()), int(start.min())), max(int(whole.end.max()), int(end.max()))
    for scope in scopes:
        covered = intervals.covered(start, end) / max(high - low, 1)
        yield trace_metric("window_coverage", covered, Dimension.FRACTION, scope)
        if len(windows) > 1:
            yield trace_metric("step_to_step", intervals.middle(np.diff(np.sort(start))), Dimension.TIME, scope)


def coverage_findings(whole: Survey, steps: Sequence[Survey]) -> Iterator[Finding]:
    """Yield a finding on steps, or a window of one, that cover little of a trace."""
    shares = {metric.name: metric.value for metric in step_metrics_of_all(whole, steps, ((),))}
    covered = shares.get("window_coverage", 1.0)
    if covered >= HALF:
        return
    lengths = [part.window.end - part.window.start for part in steps if part.window is not None]
    several, between_starts = len(lengths) > 1, quantity(shares.get("step_to_step", 0.0), Dimension.TIME)
    detail = f"What happens {'between' if several else 'beside'} them, idle time above all, is in no figure of a step. "
    detail += f"A step is {quantity(intervals.middle(np.array(lengths, np.int64)), Dimension.TIME)} long"
    yield Finding(
        title=f"The {'steps cover' if several else 'window covers'} {covered * 100:.0f} % of the trace",
        detail=f"{detail}, and the next one starts {between_starts} after it." if several else f"{detail}.",
        trigger=f"window_coverage={covered:.3f}",
        advice="look at the whole trace too, or limit step_to_step and window_coverage",
        severity=Severity.WARNING,
    )


def host_metrics(parts: Sequence[tuple[Survey, Labels]]) -> Iterator[Metric]:
    """Yield ``sync_time``, ``sync_share`` and ``launch_share`` of windows, each under its labels."""
    for survey, where in parts:
        calls, lines = host_calls(survey), timelines(survey)
        total = max((line.total for line in lines.values()), default=0)
        if calls is None or not total:
            continue
        for name, number, dimension in (
            ("sync_time", calls.sync, Dimension.TIME),
            ("sync_share", calls.sync / total, Dimension.FRACTION),
            ("sync_count", calls.waits, Dimension.COUNT),
            ("launch_share", calls.launch / total, Dimension.FRACTION),
        ):
            yield trace_metric(name, number, dimension, where)


_ODD = regex(r"[^a-z0-9]+")

MOST, WORTH = 8, 0.005
"""The most recommendations of a report, and the least end-to-end gain of an operator's."""

_TIMES = ("idle=", "exposed_", "idle_macro_share=")

_BESIDE = ("class=", "unread=", "short_kernels=", *_TIMES)

_TINY = "batch="

_OF_OPERATOR = (_TINY, "bandwidth_fraction=", "intensity=")
"""Triggers of findings that belong into the recommendation on their operator."""

_SAME = {
    "class=communication": ("exposed_",),
    "class=synchronisation": ("idle=", "idle_macro_share=", "sync_share="),
    "class=launch": ("idle=", "idle_macro_share=", "short_kernels="),
}
"""Triggers of findings that advice by the class of a window covers in more detail."""

REPLAY_SHARE, REPLAY_FRACTION = 0.10, 0.30


@value
class Recommendation:
    """One recommendation, with the anchor of the section that explains it."""

    title: str
    issue: str
    action: tuple[str, ...]
    impact: str
    anchor: str = ""
    details: str = ""
    """The name of that section."""
    findings: tuple[Finding, ...] = ()
    """The patterns that it follows from."""


def advised(impacts: Sequence[Impact], findings: Sequence[Finding]) -> tuple[Recommendation, ...]:
    """Return time other than compute first, then operators and patterns by their largest gain."""
    worth = [finding for finding in findings if finding.severity is not Severity.INFO and finding.advice]
    same = tuple(trigger for finding in worth for trigger in _SAME.get(finding.trigger, ()))
    covered = [finding for finding in worth if finding.trigger.startswith(same)]
    patterns = [finding for finding in worth if finding.trigger.startswith(_BESIDE) and finding not in covered]
    patterns.sort(key=lambda finding: not finding.trigger.startswith("class="))
    first = [_pattern(finding, *(covered if finding.trigger in _SAME else ())) for finding in patterns]
    ranked = [(_greatest_gain(group), _operator(group, worth)) for group in _worth_advice(impacts)]
    covered += [finding for _, advice in ranked for finding in advice.findings]
    others = [finding for finding in worth if finding not in (*patterns, *covered)]
    ranked += [(saved(finding.gain)[1] if finding.gain else 0.0, _pattern(finding)) for finding in others]
    ranked.sort(key=lambda pair: -pair[0])
    return (*first, *(recommendation for _, recommendation in ranked))[:MOST]


def _worth_advice(impacts: Iterable[Impact]) -> list[list[Impact]]:
    """Return the argument sets of each operator whose gain is worth a recommendation."""
    groups = grouped((impact for impact in impacts if impact.gains), lambda impact: impact.row.name)
    return [group for group in groups.values() if _greatest_gain(group) >= WORTH]


def _greatest_gain(group: Sequence[Impact]) -> float:
    """Return an operator's gain at the highest share of its roof."""
    return sum(impact.gains[-1][2] for impact in group)


def _pattern(finding: Finding, *covered: Finding) -> Recommendation:
    texts = [f"{one.title}." if one.trigger.startswith(_TIMES) else f"{one.title}. {one.detail}" for one in covered]
    return Recommendation(
        title=finding.title,
        issue=" ".join((finding.detail, *texts, f"[{finding.trigger}]")),
        action=(finding.advice,),
        impact=_expected(finding),
        findings=(finding, *covered),
    )


def _expected(finding: Finding) -> str:
    """Return what an advice may save, as a share of the window."""
    if finding.gain is None:
        return "not projected"
    low, high = (f"{share * 100:.1f} %" for share in saved(finding.gain))
    span = f"at most {high}" if finding.gain.low <= 0 or low == high else f"{low} to {high}"
    return f"{span} of the window, if nothing else fills that time"


def left_over(recommended: Sequence[Recommendation], findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings that are in no recommendation."""
    covered = [finding for advice in recommended for finding in advice.findings]
    operators = {advice.details for advice in recommended}
    return tuple(f for f in findings if f not in covered and not (f.severity is Severity.INFO and f.scope in operators))


def wants_replay(row: OperatorRow, fraction: float | None) -> bool:
    """Return whether an operator is worth a replay: over 10 % of compute, under 30 % of its roof."""
    # Attention over a short sequence is slow because of its length, so it is excluded first.
    large = row.work is not None and row.share > REPLAY_SHARE and not short_sequence(row)
    return large and fraction is not None and fraction < REPLAY_FRACTION


def _operator(group: Sequence[Impact], findings: Sequence[Finding]) -> Recommendation:
    """Return one operator with all its argument sets that are worth examining, and what was found of it alone."""
    row = max(group, key=lambda i: i.row.total).row
    own = tuple(
        finding for finding in findings if finding.scope == row.name and finding.trigger.startswith(_OF_OPERATOR)
    )
    texts = [finding.title + ("." if finding.trigger.startswith(_TINY) else f". {finding.detail}") for finding in own]
    texts = [f"{band(min(i.fraction for i in group))}.", *dict.fromkeys(texts)]
    calls, share = sum(i.row.count for i in group), sum(i.row.share for i in group)
    reached = " to ".join(dict.fromkeys(f"{end(i.fraction for i in group) * 100:.0f} %" for end in (min, max)))
    sets = f" of its {len(group)} longest argument sets" if len(group) > 1 else ""
    unfused = any(finding.title == UNFUSED for finding in findings) and row.name in PRODUCTS
    advice = next((FOLD if finding.trigger.startswith(_TINY) else finding.advice for finding in own), "")
    fusion = fusion_of(row.category, "softmax") if unfused else advice or fusion_of(row.category, row.name)
    wanted = any(wants_replay(i.row, i.fraction) for i in group)
    kernel = _kernel_path(row, "its longest argument set" if sets else "it")
    return Recommendation(
        title=f"{row.name} at {reached} of its roof",
        issue=f"{share * 100:.0f} % of operators' time in {plural(calls, 'call')}{sets}: {' '.join(texts)}",
        action=(
            f"fusion or algorithm: {fusion}",
            f"kernel only: {kernel}" + ("; replay artifact recommended for the kernel's owners" if wanted else ""),
        ),
        impact=_at_targets(group),
        anchor=anchor_of(row.name),
        details=row.name,
        findings=own,
    )


def _kernel_path(row: OperatorRow, what: str) -> str:
    """Return what runs an operator, and how to examine it."""
    size, name = tile(row.kernel), library(row.kernel)
    kernel = (f"a kernel of {name}" if name else short_name(row.kernel)) + (f" with the tile {size}" if size else "")
    if length := short_sequence(row):
        return f"{what} runs {kernel} over {length} queries; {COMPARE_FIRST}"
    if row.category.startswith(("GEMM", "CONV", "SDPA")):
        return f"{what} runs {kernel}; look at which kernel is selected" + (" and at its tile" if size else "")
    return f"{what} runs {kernel}; profile it alone with ncu, or with rocprof on AMD"


def _at_targets(group: Sequence[Impact]) -> str:
    """Return the gains of an operator's argument sets together: at the next target, and at the last."""
    low, high = f"{sum(i.gains[0][2] for i in group) * 100:.1f} %", f"{_greatest_gain(group) * 100:.1f} %"
    targets = {i.gains[0][0] for i in group}
    target = f"{min(targets) * 100:.0f} %" if len(targets) == 1 else "the next of 20, 50 and 80 %"
    return f"at most {low} of the window at {target} of its roof" + (f", {high} at 80 %" if low != high else "")


def anchor_of(name: str) -> str:
    """Return the anchor of an operator's section."""
    return _ODD.sub("-", shareable(name, Names()).lower()).strip("-")


def advice_blocks(recommended: Sequence[Recommendation]) -> tuple[Block, ...]:
    """Return one short section for each."""
    if not recommended:
        return (Paragraph(text="None: nothing stands out, or no roof is known to compare operators with."),)
    return tuple(
        Section(
            title=f"Priority {number}: {advice.title}",
            blocks=(
                Bullets(
                    items=(
                        f"Issue: {advice.issue}",
                        *(f"Action: {action}" for action in advice.action),
                        f"Impact: {advice.impact}",
                    )
                ),
                *(
                    (Link(text=f"Details: {advice.details or advice.anchor}", anchor=advice.anchor),)
                    if advice.anchor
                    else ()
                ),
            ),
        )
        for number, advice in enumerate(recommended, 1)
    )
