"""The metrics of a timed call: absolute figures from its work, and its change against the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.gate.roofs import (
    Fraction,
    compute_fraction,
    memory_fraction,
    no_roof,
    ridge,
    roof_of,
)
from pytest_perfgate.core.gate.trust import untrusted_samples
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.core.stats.summary import Summary, summary
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Absent, Metric, MetricSet
from pytest_perfgate.model.quantity import Dimension, Interval

TAILS = ("", "_datasheet", "_ceiling")
RATES = (
    ("tflops", "flops", Dimension.FLOPS, "flops"),
    ("bandwidth", "bytes", Dimension.BANDWIDTH, "bytes"),
    ("throughput", "items", Dimension.RATE, "items"),
)
DERIVED = frozenset(
    {"time", "slowdown", "launch_gap", "intensity", *(name for name, *_ in RATES)}
    | {f"{stem}{tail}" for stem in ("mfu", "sol") for tail in TAILS}
)
"""What this module alone produces; the same names from elsewhere give way."""


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
        return MetricSet(absent=tuple(Absent(name=name, why=why) for name in sorted(DERIVED)))
    found = [
        Metric(name="time", value=seen.time, dimension=Dimension.TIME, interval=seen.interval),
        slowdown(seen, baseline),
        _launch_gap(measurement),
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
    return Metric(
        name="launch_gap",
        value=median(gaps),
        dimension=Dimension.TIME,
        interval=Interval(low=gaps[0], high=gaps[-1], confidence=0.0) if len(gaps) > 1 else None,
    )


def _of_work(measurement: Measurement, seen: Summary) -> Iterator[Metric | Absent]:
    """Absolute figures: here alone the overhead of timing is subtracted."""
    work = measurement.work
    names = sorted(DERIVED - {"time", "slowdown", "launch_gap"})
    if work is None:
        yield from (Absent(name=name, why="no work= was given", mend="pass work=work.gemm(...)") for name in names)
        return
    net = Interval(low=seen.interval.low - seen.overhead, high=seen.interval.high - seen.overhead)
    if net.low <= 0:
        why = "the call is no longer than the overhead of timing it"
        yield from (Absent(name=name, why=why, mend="raise calls=") for name in names)
        return
    time = seen.time - seen.overhead
    for name, field, dimension, noun in RATES:
        yield _inverse(name, getattr(work, field), (time, net), dimension, noun)
    if work.intensity is None:
        yield Absent(name="intensity", why="the work lacks operations or bytes", mend="pass work= with both")
    else:
        yield Metric(name="intensity", value=work.intensity, dimension=Dimension.INTENSITY)
    for tail in TAILS:
        yield from _fractions(measurement, tail, (time, net))


Timed = tuple[float, Interval]


def _inverse(name: str, amount: float | None, timed: Timed, dimension: Dimension, noun: str) -> Metric | Absent:
    if not amount:
        return Absent(name=name, why=f"the work counts no {noun}", mend=f"pass work= with {noun}")
    return _rate(name, amount * 1e9, timed, dimension)


def _rate(name: str, amount: float, timed: Timed, dimension: Dimension, note: str = "") -> Metric:
    time, net = timed
    return Metric(
        name=name,
        value=amount / time,
        dimension=dimension,
        interval=Interval(low=amount / net.high, high=amount / net.low, confidence=net.confidence),
        note=note,
    )


def _fractions(measurement: Measurement, tail: str, timed: Timed) -> Iterator[Metric | Absent]:
    """``mfu`` and ``sol`` of one denominator."""
    roof, alias = roof_of(measurement.device, tail)
    work = measurement.work
    if roof is None or work is None:
        why, mend = no_roof(measurement.device, tail)
        yield from (Absent(name=f"{stem}{tail}", why=why, mend=mend) for stem in ("mfu", "sol"))
        return
    compute = compute_fraction(work, roof)
    memory = memory_fraction(work, roof, measurement.device, measurement.identity)
    if compute.least_ns is None:
        yield Absent(name=f"mfu{tail}", why=compute.why, mend=compute.mend)
    else:
        yield _rate(f"mfu{tail}", compute.least_ns, timed, Dimension.FRACTION, alias)
    yield from _sol(f"sol{tail}", (compute, memory), timed, _note(alias, measurement, roof))


def _note(alias: str, measurement: Measurement, roof: Roof) -> str:
    work = measurement.work
    edge = ridge(work, roof) if work else None
    sides = ""
    if work and work.intensity is not None and edge is not None:
        sides = f"{work.intensity:.3g} FLOP/B, ridge at {edge:.3g}"
    return "; ".join(part for part in (sides, alias) if part)


def _sol(name: str, parts: tuple[Fraction, Fraction], timed: Timed, note: str) -> Iterator[Metric | Absent]:
    """The larger fraction, which roof it is, and what is known of the other; then each part by its name."""
    known = [part for part in parts if part.least_ns is not None]
    missing = [part for part in parts if part.least_ns is None]
    if not known:
        yield Absent(name=name, why="; ".join(f"{p.roof}: {p.why}" for p in missing), mend=missing[0].mend)
        return
    binding = max(known, key=lambda part: part.least_ns or 0.0)
    words = [f"{binding.roof} roof", note, *(f"{p.roof} {p.why}" for p in missing)]
    yield _rate(name, binding.least_ns or 0.0, timed, Dimension.FRACTION, "; ".join(filter(None, words)))
    for part in known:
        whole = _rate(name, part.least_ns or 0.0, timed, Dimension.FRACTION)
        yield Metric(
            name=name,
            value=whole.value,
            dimension=whole.dimension,
            labels=(("roof", part.roof),),
            interval=whole.interval,
        )
