"""A call beside its reference: the turns of both as figures, how much faster it is, and which of the two moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_perfgate.core.judge.samples import (
    apart,
    by_cpu_time,
    differs_in_power,
    ratios_of_turns,
    time_of,
    untimed,
)
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.core.stats.summary import Summary, logs_of, median, of_processes, of_samples
from pytest_perfgate.model.measurement import Reference, Samples
from pytest_perfgate.model.metric import Absent, Metric, Problem
from pytest_perfgate.model.plan import CaseKey, Limit
from pytest_perfgate.model.values import Dimension, Interval

SPEEDUP = "speedup"

FILE = "file:"
"""Begins the name of a reference that is no call: what another tool measured, and left in a file."""

NO_REFERENCE = Absent(
    name=SPEEDUP,
    why="no call of that name was timed beside this one",
    mend='measure it in the same test, perfgate(reference, name="eager"), after the call whose limits= names it',
)


def reference_of(over: str, ours: Samples, theirs: Samples) -> Reference:
    """The turns of one process; what cannot be compared is a problem, and no figure."""
    problems = tuple(dict.fromkeys((*ours.problems, *theirs.problems, *_unlike(over, ours, theirs))))
    if problems:
        return Reference(over=over, problems=problems)
    if ours.settled and theirs.settled and differs_in_power([(ours.settled, theirs.settled)]):
        return Reference(over=over, ours=(ours.settled.time,), theirs=(theirs.settled.time,))
    busy = by_cpu_time([ours], [theirs])
    own, ratios = time_of(ours, busy=busy), ratios_of_turns(ours, theirs, busy=busy)
    edges = of_samples(ratios) if len(ratios) > 1 else None
    return Reference(
        over=over,
        ours=(own,),
        theirs=(own * apart(ours, theirs, busy=busy),),
        within=((edges.low, edges.high),) if edges else (),
    )


def _unlike(over: str, ours: Samples, theirs: Samples) -> Iterator[Problem]:
    """What keeps two sides from being compared at all."""
    if ours.timer != theirs.timer:
        what = f"timed by {ours.timer}, and {over} by {theirs.timer}: the two see different times of a call"
        yield Problem(code="reference-unlike", what=what, retry=False)
    for side, samples in (("the call", ours), (over, theirs)):
        if why := untimed(samples):
            yield Problem(code="bad-timing", what=f"in turns with each other, of {side}: {why}")


def over_processes(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """Those of several processes, joined by their names."""
    by_name: dict[str, list[Reference]] = {}
    for reference in references:
        by_name.setdefault(reference.over, []).append(reference)
    return tuple(_joined(of_one) for of_one in by_name.values())


def _joined(references: Sequence[Reference]) -> Reference:
    if references[0].over.startswith(FILE):
        return references[0]
    return replace(
        references[0],
        ours=tuple(time for one in references for time in one.ours),
        theirs=tuple(time for one in references for time in one.theirs),
        within=tuple(edges for one in references for edges in one.within),
        problems=tuple(dict.fromkeys(problem for one in references for problem in one.problems)),
    )


def speedups(references: Sequence[Reference], seen: Summary) -> tuple[Metric | Absent, ...]:
    """How much faster the call is than each of its references, or why nobody can tell."""
    return tuple(_speedup(reference, seen) for reference in references)


def _speedup(reference: Reference, seen: Summary) -> Metric | Absent:
    labels = (("over", reference.over),)
    if reference.problems:
        first = reference.problems[0]
        return Absent(name=SPEEDUP, labels=labels, why=first.what, code=first.code)
    if not reference.theirs:
        return Absent(name=SPEEDUP, labels=labels, why=NO_REFERENCE.why, mend=NO_REFERENCE.mend)
    value, interval = _ratio(reference, seen)
    return Metric(
        name=SPEEDUP,
        value=value,
        dimension=Dimension.RATIO,
        labels=labels,
        interval=interval,
        note=sides(reference, seen.time),
    )


def _ratio(reference: Reference, seen: Summary) -> tuple[float, Interval | None]:
    """The middle of the processes, Student's interval over them; of one process, that of its turns."""
    if not reference.ours:
        theirs, edges = reference.theirs[0], seen.interval
        between = Interval(low=theirs / edges.high, high=theirs / edges.low, confidence=edges.confidence)
        return theirs / seen.time, between
    ratios = [theirs / ours for ours, theirs in zip(reference.ours, reference.theirs)]
    middle = median(sorted(ratios))
    if len(ratios) > 1:
        return middle, of_processes(logs_of(ratios), middle)
    low, high = reference.within[0] if reference.within else (middle, middle)
    return middle, Interval(low=min(low, middle), high=max(high, middle))


def is_reference(limit: Limit, key: CaseKey) -> bool:
    """Whether a limit on a speed-up means other calls than this one: it is what they are held against."""
    return limit.metric == SPEEDUP and dict(limit.labels).get("over") == key.name


def sides(reference: Reference, time: float) -> str:
    """What both took: ``1.02 ms, eager 1.31 ms``."""
    ours = median(sorted(reference.ours)) if reference.ours else time
    theirs = quantity(median(sorted(reference.theirs)), Dimension.TIME)
    return f"{quantity(ours, Dimension.TIME)}, {reference.origin or reference.over} {theirs}"
