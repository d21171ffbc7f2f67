"""The metrics of a timed call: absolute figures from its work, and its change against the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from pytest_perfgate.core.gate.roofs import (
    Fraction,
    no_roof,
    of_compute,
    of_memory,
    ridge,
    roof_of,
)
from pytest_perfgate.core.gate.trust import untrusted_samples
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.core.stats.summary import Summary, summary
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.work import Work

TAILS = ("", "_datasheet", "_ceiling")
RATES = (
    ("tflops", "flops", Dimension.FLOPS, "flops"),
    ("bandwidth", "bytes", Dimension.BANDWIDTH, "bytes"),
    ("throughput", "items", Dimension.RATE, "items"),
)
DERIVED = frozenset(
    {"time", "slowdown", "launch_gap", "span", "intensity", *(name for name, *_ in RATES)}
    | {f"{stem}{tail}" for stem in ("mfu", "sol") for tail in TAILS}
)
"""What this module alone produces; the same names from elsewhere give way."""


@lru_cache(maxsize=256)
def _absent(names: tuple[str, ...], why: str, mend: str) -> tuple[Absent, ...]:
    return tuple(Absent(name=name, why=why, mend=mend) for name in names)


OF_WORK = tuple(sorted(DERIVED - {"time", "slowdown", "launch_gap", "span"}))
_WORKLESS = _absent(OF_WORK, "no work= was given", "pass work=work.gemm(...)")


def metrics_of(measurement: Measurement, baseline: Baseline | None) -> MetricSet:
    """Every metric that the samples and the work give, each with an interval, or why it is absent."""
    return timed_metrics(measurement, baseline, timing(measurement))


def timing(measurement: Measurement) -> Summary | None:
    """The summed-up sitting; nothing where the samples are not to be trusted."""
    usable = measurement.processes and not untrusted_samples(measurement)
    return summary(measurement.processes) if usable else None


def timed_metrics(measurement: Measurement, baseline: Baseline | None, seen: Summary | None) -> MetricSet:
    """The same, of a sitting that was summed up before."""
    if seen is None:
        why = "the samples are not to be trusted" if measurement.processes else "nothing was timed"
        return MetricSet(absent=_absent(tuple(sorted(DERIVED)), why, ""))
    found = [
        Metric(name="time", value=seen.time, dimension=Dimension.TIME, interval=seen.interval),
        slowdown(seen, baseline),
        _launch_gap(measurement),
        *_of_kernels(measurement),
        *_of_work(measurement, seen),
    ]
    return MetricSet(
        metrics=tuple(f for f in found if isinstance(f, Metric)),
        absent=tuple(f for f in found if isinstance(f, Absent)),
    )


def slowdown(seen: Summary, baseline: Baseline | None) -> Metric | Absent:
    """Time over accepted time, minus one; the overhead of timing stays in both."""
    if baseline is None or baseline.time <= 0:
        return Absent(name="slowdown", why="no baseline for this device", mend="perfgate accept")
    then = baseline.time
    return Metric(
        name="slowdown",
        value=seen.time / then - 1,
        dimension=Dimension.FRACTION,
        interval=Interval(
            low=seen.interval.low / then - 1, high=seen.interval.high / then - 1, confidence=seen.interval.confidence
        ),
    )


def _launch_gap(measurement: Measurement) -> Metric | Absent:
    gaps = sorted(p.launch_gap for p in measurement.processes if p.launch_gap is not None)
    if not gaps:
        return Absent(name="launch_gap", why="the timer does not see the device's side", mend="use the cupti timer")
    return _of_processes("launch_gap", Dimension.TIME, gaps)


def _of_kernels(measurement: Measurement) -> Iterator[Metric | Absent]:
    """What an instrument that records kernels sees: from the first start to the last end, and how full that is."""
    seen = [process for process in measurement.processes if process.span]
    if not seen or len(seen) < len(measurement.processes):
        yield Absent(name="span", why="the timer does not see kernels apart", mend='use timer="cupti"')
        return
    spans = [median(sorted(process.span)) for process in seen]
    busy = [median(sorted(process.durations)) for process in seen]
    full = [math.fsum(process.durations) / math.fsum(process.span) for process in seen]
    for name, dimension, of in (
        ("span", Dimension.TIME, spans),
        ("busy_time", Dimension.TIME, busy),
        ("busy", Dimension.FRACTION, full),
    ):
        yield _of_processes(name, dimension, sorted(of))


def _of_processes(name: str, dimension: Dimension, found: list[float]) -> Metric:
    """The middle of what processes saw; their extremes are its interval."""
    interval = Interval(low=found[0], high=found[-1], confidence=0.0) if len(found) > 1 else None
    return Metric(name=name, value=median(found), dimension=dimension, interval=interval)


def _of_work(measurement: Measurement, seen: Summary) -> Iterator[Metric | Absent]:
    """Absolute figures: here alone the overhead of timing is subtracted."""
    work = measurement.work
    if work is None:
        yield from _WORKLESS
        return
    net = Interval(low=seen.interval.low - seen.overhead, high=seen.interval.high - seen.overhead)
    if net.low <= 0:
        why = "the call is no longer than the overhead of timing it"
        yield from _absent(OF_WORK, why, "raise calls=")
        return
    time = seen.time - seen.overhead
    for name, field, dimension, noun in RATES:
        yield _inverse(name, getattr(work, field), (time, net), dimension, noun)
    if work.intensity is None:
        yield Absent(name="intensity", why="the work lacks operations or bytes", mend="pass work= with both")
    else:
        yield Metric(name="intensity", value=work.intensity, dimension=Dimension.INTENSITY)
    yield from _fractions(measurement, (time, net))


Timed = tuple[float, Interval]


def _inverse(name: str, amount: float | None, timed: Timed, dimension: Dimension, noun: str) -> Metric | Absent:
    if not amount:
        return Absent(name=name, why=f"the work counts no {noun}", mend=f"pass work= with {noun}")
    return _rate(name, amount * 1e9, timed, dimension)


def _rate(name: str, amount: float, timed: Timed, dimension: Dimension) -> Metric:
    return Metric(name=name, value=amount / timed[0], dimension=dimension, interval=_span(amount, timed[1]))


def _span(amount: float, net: Interval) -> Interval:
    return Interval(low=amount / net.high, high=amount / net.low, confidence=net.confidence)


def _fractions(measurement: Measurement, timed: Timed) -> Iterator[Metric | Absent]:
    """``mfu`` and ``sol`` of every denominator; one roof under two names is asked once."""
    device, work = measurement.device, measurement.work
    assert work is not None
    known: dict[Basis, tuple[tuple[Part, Part], str]] = {}
    for tail in TAILS:
        roof, alias = roof_of(device, tail)
        if roof is None:
            yield from _absent((f"mfu{tail}", f"sol{tail}"), *no_roof(device, tail))
            continue
        if roof.basis not in known:
            compute, memory = of_compute(work, roof), of_memory(work, roof, device, measurement.identity)
            known[roof.basis] = ((_part(compute, timed), _part(memory, timed)), _sides(work, roof))
        yield from _named(tail, *known[roof.basis], alias)


Part = tuple[Fraction, float, "Interval | None"]
"""A fraction of a roof with its value and interval; without an interval it does not apply."""


def _part(fraction: Fraction, timed: Timed) -> Part:
    if fraction.least_ns is None:
        return fraction, 0.0, None
    return fraction, fraction.least_ns / timed[0], _span(fraction.least_ns, timed[1])


def _named(tail: str, parts: tuple[Part, Part], sides: str, alias: str) -> Iterator[Metric | Absent]:
    """``mfu`` is the compute part; ``sol`` the larger of both, which roof it is, and what is known of the other."""
    compute = parts[0]
    if compute[2] is None:
        yield Absent(name=f"mfu{tail}", why=compute[0].why, mend=compute[0].mend)
    else:
        yield _fraction(f"mfu{tail}", compute, note=alias)
    held = [part for part in parts if part[2] is not None]
    lacking = [f"{part[0].roof} {part[0].why}" for part in parts if part[2] is None]
    if not held:
        yield Absent(name=f"sol{tail}", why="; ".join(lacking), mend=compute[0].mend)
        return
    binding = held[0] if held[0][1] >= held[-1][1] else held[-1]
    words = (f"{binding[0].roof} roof", sides, alias, *lacking)
    yield _fraction(f"sol{tail}", binding, note="; ".join(filter(None, words)))
    for part in () if tail else held:
        yield _fraction(f"sol{tail}", part, labels=(("roof", part[0].roof),))


def _fraction(name: str, part: Part, *, note: str = "", labels: Labels = ()) -> Metric:
    return Metric(name=name, value=part[1], dimension=Dimension.FRACTION, labels=labels, interval=part[2], note=note)


def _sides(work: Work, roof: Roof) -> str:
    edge = ridge(work, roof)
    if work.intensity is None or edge is None:
        return ""
    return f"{work.intensity:.3g} FLOP/B, ridge at {edge:.3g}"
