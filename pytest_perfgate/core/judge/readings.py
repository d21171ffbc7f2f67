"""Figures other than time, joined over processes: the user's own, those of further passes, the speed-up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.judge.samples import (
    busy_processors,
    by_cpu_time,
    differs_in_power,
    head_ratio,
    ratios_of_turns,
    time_of,
    untimed,
)
from pytest_perfgate.core.limits.merge import share_of
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.core.stats.inference import EDGE, calls_needed, predict, quantile_ranks
from pytest_perfgate.core.stats.summary import (
    CONFIDENCE,
    NORMAL,
    RANKED,
    Summary,
    deviation,
    logs_of,
    median,
    of_processes,
    of_samples,
    t_quantile,
)
from pytest_perfgate.model.measurement import Reading, Reference, Samples, Stop
from pytest_perfgate.model.metric import Absent, Figure, Interval, Labels, Metric, MetricKind, MetricSet, Problem
from pytest_perfgate.model.plan import SPEEDUP, Outcome
from pytest_perfgate.model.values import Better, Dimension, grouped

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey, Limit
    from pytest_perfgate.model.verdict import CaseReport, Verdict


def figures_of(processes: Sequence[Sequence[Reading]]) -> MetricSet:
    """Return the figures of one measurement from the readings of each of its processes."""
    if not any(processes):
        return MetricSet()
    names = dict.fromkeys((reading.name, reading.labels) for readings in processes for reading in readings)
    joined = [_join_processes([_of(readings, *key) for readings in processes]) for key in names]
    metrics = [figure for figure in joined if isinstance(figure, Metric)]
    return MetricSet(
        metrics=(*_of_memory(metrics), *metrics),
        absent=tuple(figure for figure in joined if isinstance(figure, Absent)),
    )


MORE_RESIDENT, MORE_BYTES = 1.1, 2.0**20
"""The difference from which memory counts as taken by libraries; a smaller one is of the kernel's pages."""


def _of_memory(metrics: Sequence[Metric]) -> Iterator[Metric]:
    """Yield the peak: the traced one, unless the process clearly held more."""
    by = {dict(metric.labels).get("by"): metric for metric in metrics if metric.name == "peak_memory"}
    traced, resident = by.get("traced"), by.get("resident")
    if traced is None:
        return
    if resident is not None and resident.value > traced.value * MORE_RESIDENT + MORE_BYTES:
        yield replace(resident, labels=(), note="resident: more than Python counts")
    else:
        yield replace(traced, labels=(), note="traced: requests of Python and numpy")


def _of(readings: Sequence[Reading], name: str, labels: object) -> tuple[Reading, ...]:
    return tuple(reading for reading in readings if reading.name == name and reading.labels == labels)


def _join_processes(processes: Sequence[tuple[Reading, ...]]) -> Metric | Absent:
    """Return one figure: the median of its processes, with its interval."""
    first = next(readings[0] for readings in processes if readings)
    values = [tuple(value for reading in readings for value in reading.values) for readings in processes]
    if not all(values):
        lost = sum(not of_process for of_process in values)
        return _differs(first, f"{lost} of {len(values)} processes did not read it")
    names = {
        (reading.dimension, reading.better, reading.exact, reading.note)
        for readings in processes
        for reading in readings
    }
    if len(names) > 1:
        return _differs(first, "two calls give it different unit=, better= or exact=")
    if first.exact and len(set().union(*values)) > 1:
        least, most = min(map(min, values)), max(map(max, values))
        return _differs(first, f"it is exact, and was {least:g} one time and {most:g} another")
    middles = [median(sorted(of_process)) for of_process in values]
    centre = median(sorted(middles))
    return Metric(
        name=first.name,
        value=centre,
        dimension=first.dimension,
        labels=first.labels,
        interval=None if first.exact else interval_of(values, middles, centre),
        note=first.note,
        better=first.better,
        exact=first.exact,
    )


def _differs(first: Reading, why: str) -> Absent:
    return Absent(name=first.name, labels=first.labels, why=why, code="rounds-differ")


def interval_of(values: Sequence[Sequence[float]], middles: Sequence[float], centre: float) -> Interval | None:
    """Return the interval of the median: over processes, or for one process over its values; None for one value."""
    if len(middles) == 1:
        return _of_values(sorted(values[0]), centre)
    return of_processes(logs_of(middles), centre) if min(middles) > 0 else _student(middles, centre)


def _of_values(ordered: Sequence[float], centre: float) -> Interval | None:
    if len(ordered) < 2:
        return None
    if len(ordered) < RANKED:
        return _student(ordered, centre)
    return of_samples(ordered)


def _student(numbers: Sequence[float], centre: float) -> Interval:
    """Return Student's interval of numbers that may be zero or negative, widened to include their median."""
    mean = math.fsum(numbers) / len(numbers)
    half = t_quantile((1 + CONFIDENCE) / 2, len(numbers) - 1) * deviation(numbers, mean) / math.sqrt(len(numbers))
    return Interval(low=min(mean - half, centre), high=max(mean + half, centre), confidence=CONFIDENCE)


COUNTS = frozenset({Dimension.COUNT, Dimension.PLAIN})

FILE = "file:"
"""The prefix of a reference that is not a call: a time of another tool, in a file."""


def no_reference(over: str) -> Absent:
    """Return the absence of a speed-up over a call that was not timed with this one."""
    named = f"perfgate(reference, name={over!r})"
    return Absent(
        name=SPEEDUP,
        why=f"no call {over!r} was timed with this one",
        fix=f"measure it in the same test, {named}, after the call whose limits= names it",
    )


def reference_of(over: str, call: Samples, other: Samples) -> Reference:
    """Return the turns of one process; what cannot be compared becomes a problem instead of a figure."""
    problems = tuple(dict.fromkeys((*call.problems, *other.problems, *_why_incomparable(over, call, other))))
    if problems:
        return Reference(over=over, problems=problems)
    if call.settled and other.settled and differs_in_power([(call.settled, other.settled)]):
        return Reference(over=over, ours=(call.settled.time,), theirs=(other.settled.time,))
    by_cpu = by_cpu_time([call], [other])
    own, ratios = time_of(call, by_cpu=by_cpu), ratios_of_turns(call, other, by_cpu=by_cpu)
    edges = of_samples(ratios) if ratios else None
    return Reference(
        over=over,
        ours=(own,),
        theirs=(own * head_ratio(call, other, by_cpu=by_cpu),),
        within=((edges.low, edges.high),) if edges else (),
    )


def _why_incomparable(over: str, call: Samples, other: Samples) -> Iterator[Problem]:
    """Yield why two sides are not comparable."""
    if call.timer != other.timer:
        what = f"timed by {call.timer}, and {over} by {other.timer}: the two measure different times of a call"
        yield Problem(code="reference-unlike", what=what, retry=False)
    for side, samples in (("the call", call), (over, other)):
        if why := untimed(samples):
            yield Problem(code="bad-timing", what=f"in turns with each other, of {side}: {why}")


def over_processes(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """Join references of several processes by name."""
    by_name = grouped(references, lambda reference: reference.over)
    return tuple(map(_joined_references, by_name.values()))


def _joined_references(references: Sequence[Reference]) -> Reference:
    if references[0].over.startswith(FILE):
        return references[0]
    return replace(
        references[0],
        ours=tuple(time for reference in references for time in reference.ours),
        theirs=tuple(time for reference in references for time in reference.theirs),
        within=tuple(edges for reference in references for edges in reference.within),
        problems=tuple(dict.fromkeys(problem for reference in references for problem in reference.problems)),
    )


def speedups(references: Sequence[Reference], summary: Summary) -> tuple[Metric | Absent, ...]:
    """Return the speed-up over each reference, or why it is unknown."""
    return tuple(_speedup(reference, summary) for reference in references)


def _speedup(reference: Reference, summary: Summary) -> Metric | Absent:
    labels = (("over", reference.over),)
    if reference.problems:
        first = reference.problems[0]
        return Absent(name=SPEEDUP, labels=labels, why=first.what, code=first.code)
    if not reference.theirs:
        return replace(no_reference(reference.over), labels=labels)
    value, interval = _ratio(reference, summary)
    return Metric(
        name=SPEEDUP,
        value=value,
        dimension=Dimension.RATIO,
        labels=labels,
        interval=interval,
        note=sides(reference, summary.time),
    )


def _ratio(reference: Reference, summary: Summary) -> tuple[float, Interval | None]:
    """Return the median over processes with Student's interval; for one process, over its turns."""
    if not reference.ours:
        other, edges = reference.theirs[0], summary.interval
        between = Interval(low=other / edges.high, high=other / edges.low, confidence=edges.confidence)
        return other / summary.time, between
    ratios = [other / own for own, other in zip(reference.ours, reference.theirs)]
    middle = median(sorted(ratios))
    if len(ratios) > 1:
        return middle, of_processes(logs_of(ratios), middle)
    low, high = reference.within[0] if reference.within else (middle, middle)
    return middle, Interval(low=min(low, middle), high=max(high, middle))


def is_reference(limit: Limit, key: CaseKey, references: Collection[str]) -> bool:
    """Return whether this call is a reference in a limit on a speed-up, which therefore applies to other calls."""
    if limit.metric != SPEEDUP:
        return False
    scope = dict(limit.labels)
    return scope.get("over") == key.name or (key.name in references and not scope.get("case"))


def references_of(limits: Iterable[Limit]) -> frozenset[str]:
    """Return the calls that are references in limits on a speed-up."""
    return frozenset([dict(limit.labels).get("over", "") for limit in limits if limit.metric == SPEEDUP])


def word_of(report: CaseReport, verdict: Verdict) -> str:
    """Return the outcome of a limit in a word; for a call that others are compared with, "reference"."""
    others = references_of(other.limit for other in report.verdicts)
    compared = verdict.outcome is Outcome.NOT_APPLICABLE and is_reference(verdict.limit, report.key, others)
    return "reference" if compared else verdict.outcome.value


def _word_of_case(report: CaseReport) -> str:
    """Return the word for the worst of a case's limits; "" for a measured case without any."""
    worst = next((verdict for verdict in report.verdicts if verdict.outcome is report.worst), None)
    if worst is not None:
        return word_of(report, worst)
    return "" if report.measurement else report.worst.value


def tally(reports: Iterable[CaseReport]) -> str:
    """Return ``1 broken, 2 passed, 2 references``, the worst first."""
    counts = Counter(map(_word_of_case, reports))
    parts = [f"{counts[word.value]:,} {word.value}" for word in reversed(list(Outcome)) if counts[word.value]]
    if counts["reference"]:
        parts.append(plural(counts["reference"], "reference"))
    if counts[""]:
        parts.append(f"{counts['']:,} without a limit of {'its' if counts[''] == 1 else 'their'} own")
    return ", ".join(parts)


def sides(reference: Reference, time: float) -> str:
    """Return the times of both: ``1.02 ms, eager 1.31 ms``."""
    own = median(sorted(reference.ours)) if reference.ours else time
    other = quantity(median(sorted(reference.theirs)), Dimension.TIME)
    return f"{quantity(own, Dimension.TIME)}, {reference.origin or reference.over} {other}"


def _unqueued(process: Samples) -> Sequence[float]:
    """Return the calls without their waits for a processor; with them if the waits are unknown."""
    if len(process.waits) != len(process.durations):
        return process.durations
    return [max(0.0, took - waited) for took, waited in zip(process.durations, process.waits)]


def tail_of(processes: Sequence[Samples], labels: Labels) -> Metric | Absent:
    """Return a quantile of the calls of all processes, or the least of a process, or why it is unknown."""
    ((name, value),) = labels
    if name == "stat":
        least = sorted(min(samples.durations) for samples in processes)
        edges = Interval(low=least[0], high=least[-1], confidence=0.0) if len(least) > 1 else None
        return Metric(name="time", value=median(least), dimension=Dimension.TIME, labels=labels, interval=edges)
    batch = max(samples.batch for samples in processes)
    if batch > 1:
        why = f"each sample is the mean of {batch} calls, which hides a slow one"
        return Absent(name="time", labels=labels, why=why, fix="leave calls= out")
    share = share_of(value)
    assert share is not None
    ordered = sorted(time for samples in processes for time in _unqueued(samples))
    if len(ordered) < (needed := calls_needed(share)):
        why = f"{len(ordered)} calls are too few for a quantile of {value}: it takes {needed}"
        recorded = processes[0].stop is Stop.RECORDED
        fix = "give record() that many" if recorded else "a call this long takes --perfgate=full, or more rounds"
        return Absent(name="time", labels=labels, why=why, fix=fix)
    ranks = quantile_ranks(len(ordered), share)
    return Metric(
        name="time",
        value=ordered[ranks.middle],
        dimension=Dimension.TIME,
        labels=labels,
        interval=Interval(low=ordered[ranks.low], high=ordered[ranks.high], confidence=2 * EDGE - 1),
        note=f"of {len(ordered)} calls{', less waits for a processor' if any(s.waits for s in processes) else ''}",
    )


_STEADY = 0.01
"""The distance from the accepted speed-up below which it counts as unchanged."""

_ALONE = 2.0
"""The factor by which one side must have changed more than the other to be named alone."""


class Sides(NamedTuple):
    """A call and its reference since their speed-up was accepted."""

    text: str
    alone: str = ""
    """The only side that changed, or ""."""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("since accepted", self.text),)


THIS = "this call"


def moved_sides(metric: Metric, ratio_then: float, then: float, now: float) -> Sides | None:
    """Return which side changed since a speed-up was accepted together with a time; None if it did not change."""
    # The reference's earlier time is the accepted speed-up times the accepted time, both of one run.
    if metric.name != SPEEDUP or min(ratio_then, then, now, metric.value) <= 0:
        return None
    over = dict(metric.labels).get("over", "")
    own, other = math.log(now / then), math.log(metric.value * now / (ratio_then * then))
    if abs(other - own) < math.log1p(_STEADY):
        return None
    further, least = (over, THIS)[abs(own) > abs(other)], min(abs(own), abs(other))
    alone = further if max(abs(own), abs(other)) >= _ALONE * least else ""
    texts = (_step(THIS, then, own), _step(over, ratio_then * then, other))
    return Sides(f"{', '.join(texts)}: {alone or 'both'} moved", alone)


def _step(name: str, then: float, step: float) -> str:
    """Return ``eager +26 % (578 µs -> 728.3 µs)``."""
    shown = [quantity(time, Dimension.TIME) for time in (then, then * math.exp(step))]
    return f"{name} {signed(math.expm1(step))} ({' -> '.join(shown)})"


_BETWEEN = 0.003
"""The change of a speed-up between runs beyond that between processes: by the placement of code and data."""

_BETWEEN_BUSY = 0.03
"""The same beside busy programs, whose use of caches and memory slows two different calls differently."""

_LEAST_PROCESSES = 3
"""The least number of processes of an accepted run."""


def reach_in_turns(metric: Metric, then: Figure, bound: float, samples: Sequence[Samples], gates: int) -> float:
    """Return how far a speed-up may differ from an accepted one by chance."""
    # Turns cancel the machine's changes, so processes show the scatter. The accepted one's error is not stored: it is
    # taken as that of few processes, and at most half of the limit, to which a first run narrows it.
    processes, between = len(samples), _BETWEEN_BUSY if busy_processors(samples) else _BETWEEN
    quantile = t_quantile((1 + CONFIDENCE) / 2, processes - 1)
    error = math.log(metric.high / metric.low) / 2 / quantile if metric.low > 0 else math.inf
    before = error * math.sqrt(max(processes / _LEAST_PROCESSES, 1.0))
    if bound:
        before = max(error, min(before, abs(bound) / 2 / NORMAL))
    noise = math.sqrt((error**2 + before**2) / 2 + between**2)
    wider = max(noise, then.scatter)
    chance = predict(noise, scatter=wider, runs=then.runs, gates=gates, freedom=processes - 1)
    return chance.reach


def better_of(metric: Metric, kinds: Mapping[str, MetricKind]) -> Better:
    """Return the direction in which a figure improves: its own, or that of its kind."""
    kind = kinds.get(metric.name)
    return metric.better or (kind.better if kind else Better.NEITHER)


def comparable(then: Dimension, now: Dimension) -> bool:
    """Return whether two figures count the same; a line does not distinguish a count from a plain number."""
    return then is now or {then, now} <= {Dimension.COUNT, Dimension.PLAIN}
