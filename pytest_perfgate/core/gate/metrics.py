"""The metrics of a timed call: absolute figures from its work, and its change against the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
_NO_BASELINE = Absent(name="slowdown", why="no baseline for this device", mend="perfgate accept")
_NO_GAP = Absent(name="launch_gap", why="the timer does not see the device's side", mend="use the cupti timer")
_OF_TAIL = tuple((tail, (f"mfu{tail}", f"sol{tail}")) for tail in TAILS)
_NO_SPAN = Absent(name="span", why="the timer does not see kernels apart", mend='use timer="cupti"')
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
    metrics: list[Metric] = [Metric(name="time", value=seen.time, dimension=Dimension.TIME, interval=seen.interval)]
    absent: list[Absent] = []
    more = (*_of_kernels(measurement), *_of_work(measurement, seen))
    for found in (slowdown(seen, baseline), _launch_gap(measurement), *more):
        if isinstance(found, Metric):
            metrics.append(found)
        else:
            absent.append(found)
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def slowdown(seen: Summary, baseline: Baseline | None) -> Metric | Absent:
    """Time over accepted time, minus one; the overhead of timing stays in both."""
    if baseline is None or baseline.time <= 0:
        return _NO_BASELINE
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
    gaps = sorted([p.launch_gap for p in measurement.processes if p.launch_gap is not None])
    if not gaps:
        return _NO_GAP
    return _of_processes("launch_gap", Dimension.TIME, gaps)


def _of_kernels(measurement: Measurement) -> Iterator[Metric | Absent]:
    """What an instrument that records kernels sees: from the first start to the last end, and how full that is."""
    seen = [process for process in measurement.processes if process.span]
    if not seen or len(seen) < len(measurement.processes):
        yield _NO_SPAN
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


def _of_work(measurement: Measurement, seen: Summary) -> Sequence[Metric | Absent]:
    """Absolute figures: here alone the overhead of timing is subtracted."""
    work = measurement.work
    if work is None:
        return _WORKLESS
    net = Interval(low=seen.interval.low - seen.overhead, high=seen.interval.high - seen.overhead)
    if net.low <= 0:
        return _absent(OF_WORK, "the call is no longer than the overhead of timing it", "raise calls=")
    timed = (seen.time - seen.overhead, net)
    found = [_inverse(name, getattr(work, field), timed, dimension, noun) for name, field, dimension, noun in RATES]
    if work.intensity is None:
        found.append(Absent(name="intensity", why="the work lacks operations or bytes", mend="pass work= with both"))
    else:
        found.append(Metric(name="intensity", value=work.intensity, dimension=Dimension.INTENSITY))
    return [*found, *_fractions(measurement, work, timed)]


Timed = tuple[float, Interval]


def _inverse(name: str, amount: float | None, timed: Timed, dimension: Dimension, noun: str) -> Metric | Absent:
    if not amount:
        return _absent((name,), f"the work counts no {noun}", f"pass work= with {noun}")[0]
    return _rate(name, amount * 1e9, timed, dimension)


def _rate(name: str, amount: float, timed: Timed, dimension: Dimension) -> Metric:
    return Metric(name=name, value=amount / timed[0], dimension=dimension, interval=_span(amount, timed[1]))


def _span(amount: float, net: Interval) -> Interval:
    return Interval(low=amount / net.high, high=amount / net.low, confidence=net.confidence)


def _fractions(measurement: Measurement, work: Work, timed: Timed) -> list[Metric | Absent]:
    """``mfu`` and ``sol`` of every denominator; one roof under two names is asked once."""
    device = measurement.device
    known: dict[Basis, tuple[tuple[Part, Part], str]] = {}
    found: list[Metric | Absent] = []
    for tail, names in _OF_TAIL:
        roof, alias = roof_of(device, tail)
        if roof is None:
            found += _absent(names, *no_roof(device, tail))
            continue
        if roof.basis not in known:
            compute, memory = of_compute(work, roof), of_memory(work, roof, device, measurement.identity)
            known[roof.basis] = ((_part(compute, timed), _part(memory, timed)), _sides(work, roof))
        found += _named(tail, names, *known[roof.basis], alias)
    return found


Part = tuple[Fraction, float, "Interval | None"]
"""A fraction of a roof with its value and interval; without an interval it does not apply."""


def _part(fraction: Fraction, timed: Timed) -> Part:
    if fraction.least_ns is None:
        return fraction, 0.0, None
    return fraction, fraction.least_ns / timed[0], _span(fraction.least_ns, timed[1])


def _named(
    tail: str, names: tuple[str, str], parts: tuple[Part, Part], sides: str, alias: str
) -> list[Metric | Absent]:
    """``mfu`` is the compute part; ``sol`` the larger of both, which roof it is, and what is known of the other."""
    mfu, sol = names
    compute = parts[0]
    found: list[Metric | Absent] = []
    if compute[2] is None:
        found.append(Absent(name=mfu, why=compute[0].why, mend=compute[0].mend))
    else:
        found.append(_fraction(mfu, compute, note=alias))
    held = [part for part in parts if part[2] is not None]
    lacking = [f"{part[0].roof} {part[0].why}" for part in parts if part[2] is None]
    if not held:
        return [*found, Absent(name=sol, why="; ".join(lacking), mend=compute[0].mend)]
    binding = held[0] if held[0][1] >= held[-1][1] else held[-1]
    words = (f"{binding[0].roof} roof", sides, alias, *lacking)
    found.append(_fraction(sol, binding, note="; ".join([word for word in words if word])))
    if not tail:
        found += [_fraction(sol, part, labels=(("roof", part[0].roof),)) for part in held]
    return found


def _fraction(name: str, part: Part, *, note: str = "", labels: Labels = ()) -> Metric:
    return Metric(name=name, value=part[1], dimension=Dimension.FRACTION, labels=labels, interval=part[2], note=note)


def _sides(work: Work, roof: Roof) -> str:
    edge = ridge(work, roof)
    if work.intensity is None or edge is None:
        return ""
    return f"{work.intensity:.3g} FLOP/B, ridge at {edge:.3g}"
