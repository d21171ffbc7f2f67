"""Metrics of a timed call: absolute, and against the baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.analysis.roofline import Fraction, no_roof, of_compute, of_memory, ridge, roof_of
from pytest_perfgate.core.judge.readings import speedups, tail_of
from pytest_perfgate.core.judge.samples import all_possible
from pytest_perfgate.core.stats.summary import Summary, deviation, median, middle, summary, t_quantile
from pytest_perfgate.model.metric import Absent, Interval, Labels, Metric, MetricSet, selected
from pytest_perfgate.model.values import OF_ITEMS, Dimension, Work, first_of

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Roof
    from pytest_perfgate.model.measurement import Baseline, Measurement

RATES = {
    "tflops": ("flops", Dimension.FLOPS),
    "bandwidth": ("bytes", Dimension.BANDWIDTH),
    "throughput": ("items", Dimension.RATE),
}
"""What a rate counts: a field of the work, which is also its noun."""

TAILS = ("", "_datasheet", "_ceiling")

FRACTIONS = {f"{stem}{tail}": (stem, tail) for tail in TAILS for stem in ("mfu", "sol")}

OF_WORK = (*RATES, "intensity", *FRACTIONS)
"""Names in the order of reports."""

_NAMED = 5

_NO_BASELINE = Absent(name="slowdown", why="no baseline for this device", fix="perfgate accept")
_NO_CV = Absent(name="cv", why="one sample does not vary", fix="raise budget=")
_NO_GAP = Absent(name="launch_gap", why="the timer does not see the device's side", fix="use the cupti timer")
_NO_SPAN = Absent(name="span", why="the timer does not separate kernels", fix='use timer="cupti"')


def metrics_of(measurement: Measurement, baseline: Baseline | None) -> MetricSet:
    """Return every metric of the samples and the work, each with an interval or the reason of its absence."""
    return timed_metrics(measurement, baseline, timing(measurement))


def timing(measurement: Measurement) -> Summary | None:
    """Return the summary of the run; None if the samples are not trusted."""
    ordered = [sorted(process.durations) for process in measurement.processes]
    return summary(measurement.processes, ordered) if ordered and all(map(all_possible, ordered)) else None


def timed_metrics(
    measurement: Measurement, baseline: Baseline | None, summary: Summary | None, tails: Sequence[Labels] = ()
) -> MetricSet:
    """Return the metrics from an existing summary; ``tails`` are the quantiles that limits ask for."""
    if summary is None:
        why = "the samples cannot be trusted" if measurement.processes else "nothing was timed"
        fix = "" if measurement.processes else _instead(measurement)
        return MetricSet(absent=absences(tuple(sorted(DERIVED)), why, fix))
    return DerivedMetrics(CallMetrics(measurement, baseline, summary, tails))


def _instead(measurement: Measurement) -> str:
    """Return what a test that timed nothing may limit: the figures that it read."""
    from pytest_perfgate.core.analysis.results import limited_as
    from pytest_perfgate.model.protocol import READ

    of_file = measurement.identity.timer == READ  # its own figures the test names itself
    names = sorted({limited_as(m) if of_file else m.name for m in measurement.metrics.metrics})
    record = '; for a slowdown, give its times to perfgate.record(TIMES, unit="ns")' if "time" in names else ""
    return f"give the test a limit on a figure that it read: {first_of(names, _NAMED)}{record}" if names else ""


class CallMetrics:
    """One timed call, whose metrics are computed by name, each once."""

    def __init__(
        self, measurement: Measurement, baseline: Baseline | None, summary: Summary, tails: Sequence[Labels] = ()
    ) -> None:
        self.measurement, self.baseline, self.timing, self.tails = measurement, baseline, summary, tails
        self._by_name: dict[str, Made] = {}
        self._absolute: AbsoluteFigures | tuple[Absent, ...] | None = None
        self._every: Made | None = None

    def metrics_named(self, name: str) -> Made:
        """Return all metrics of that name with those derived from them, or the reason of their absence."""
        if name not in MAKERS:
            return ()
        figures = self._by_name.get(name)
        if figures is None:
            figures = self._by_name[name] = MAKERS[name](self, name)
        return figures

    @property
    def absolute(self) -> AbsoluteFigures | tuple[Absent, ...]:
        """Return the figures of its work."""
        if self._absolute is None:
            self._absolute = absolute(self.measurement, self.timing)
        return self._absolute

    def everything(self) -> Made:
        """Return all metrics, in the order of reports."""
        if self._every is None:
            self._every = self._all()
        return self._every

    def _all(self) -> Made:
        timed = [figure for name in _TIMED for figure in self.metrics_named(name)]
        if not isinstance(self.absolute, AbsoluteFigures):
            return (*timed, *self.absolute)
        return (*timed, *[figure for name in OF_WORK for figure in self.metrics_named(name)])


class DerivedMetrics(MetricSet):
    """The metrics of one timed call, each computed when it is first needed.

    Their inputs are frozen, so that the time of computing does not matter. The set equals a plain one with all metrics,
    and becomes it when copied.
    """

    __slots__ = ("call",)
    call: CallMetrics

    def __init__(self, call: CallMetrics) -> None:
        object.__setattr__(self, "call", call)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return _metrics(self.call.everything())

    @property
    def absent(self) -> tuple[Absent, ...]:
        return _absent(self.call.everything())

    def absences(self, name: str) -> tuple[Absent, ...]:
        return _absent([one for one in self.call.metrics_named(name) if one.name == name])

    def find(self, name: str, scope: Labels = ()) -> tuple[Metric, ...]:
        metrics = _metrics(self.call.metrics_named(name))
        return selected([metric for metric in metrics if metric.name == name], scope)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetricSet) and (self.metrics, self.absent) == (other.metrics, other.absent)

    def __hash__(self) -> int:
        return hash((self.metrics, self.absent))

    def __reduce__(self) -> tuple[Callable[..., MetricSet], tuple[object, ...]]:
        return _plain, (self.metrics, self.absent)


def _plain(metrics: tuple[Metric, ...], absent: tuple[Absent, ...]) -> MetricSet:
    return MetricSet(metrics=metrics, absent=absent)


def _metrics(figures: Made) -> tuple[Metric, ...]:
    return tuple([figure for figure in figures if isinstance(figure, Metric)])


def _absent(figures: Made) -> tuple[Absent, ...]:
    return tuple([figure for figure in figures if isinstance(figure, Absent)])


def _time(call: CallMetrics, _name: str) -> Made:
    timing = call.timing
    middle = Metric(name="time", value=timing.time, dimension=Dimension.TIME, interval=timing.interval)
    return (middle, *(tail_of(call.measurement.processes, tail) for tail in call.tails))


def _slowdown(call: CallMetrics, _name: str) -> Made:
    """Time over accepted time, minus one."""
    timing, baseline = call.timing, call.baseline
    if baseline is None or baseline.time <= 0:
        return (_NO_BASELINE,)
    then, now = baseline.time, timing.interval
    interval = Interval(low=now.low / then - 1, high=now.high / then - 1, confidence=now.confidence)
    return (Metric(name="slowdown", value=timing.time / then - 1, dimension=Dimension.FRACTION, interval=interval),)


def _cv(call: CallMetrics, _name: str) -> Made:
    """Return the variation of the samples of a process, as a fraction of their mean."""
    samples = [process.durations for process in call.measurement.processes if len(process.durations) > 1]
    if len(samples) < len(call.measurement.processes):
        return (_NO_CV,)
    means = [math.fsum(durations) / len(durations) for durations in samples]
    fractions = [deviation(durations, mean) / mean for durations, mean in zip(samples, means)]
    return (middle_process("cv", Dimension.FRACTION, sorted(fractions)),)


def _launch_gap(call: CallMetrics, _name: str) -> Made:
    gaps = sorted([p.launch_gap for p in call.measurement.processes if p.launch_gap is not None])
    return (middle_process("launch_gap", Dimension.TIME, gaps),) if gaps else (_NO_GAP,)


def _of_kernels(call: CallMetrics, _name: str) -> Made:
    """Figures of a timer that records kernels: first start to last end, and the busy part of that."""
    processes = [process for process in call.measurement.processes if process.busy]
    if not processes or len(processes) < len(call.measurement.processes):
        return (_NO_SPAN,)
    spans = [middle(sorted(process.durations)) for process in processes]
    busy = [middle(sorted(process.busy)) for process in processes]
    full = [math.fsum(process.busy) / math.fsum(process.durations) for process in processes]
    return (
        middle_process("span", Dimension.TIME, sorted(spans)),
        middle_process("busy_time", Dimension.TIME, sorted(busy)),
        middle_process("busy", Dimension.FRACTION, sorted(full)),
    )


def middle_process(name: str, dimension: Dimension, numbers: list[float]) -> Metric:
    """Return the median over processes, with their extremes as its interval."""
    interval = Interval(low=numbers[0], high=numbers[-1], confidence=0.0) if len(numbers) > 1 else None
    return Metric(name=name, value=median(numbers), dimension=dimension, interval=interval)


def _of_work(call: CallMetrics, name: str) -> Made:
    figures = call.absolute
    return figures.figure(name) if isinstance(figures, AbsoluteFigures) else [a for a in figures if a.name == name]


_TIMED: Mapping[str, Callable[[CallMetrics, str], Made]] = {
    "time": _time,
    "slowdown": _slowdown,
    "speedup": lambda call, _: speedups(call.measurement.references, call.timing),
    "cv": _cv,
    "launch_gap": _launch_gap,
    "span": _of_kernels,
}
"""Metrics that need no work, in the order of reports."""

DERIVED = frozenset((*_TIMED, *OF_WORK))
"""Names that only this module produces; equal names from elsewhere are ignored."""

MAKERS = {**_TIMED, **dict.fromkeys(("busy_time", "busy"), _of_kernels), **dict.fromkeys(OF_WORK, _of_work)}

Made = Sequence[Metric | Absent]


@lru_cache(maxsize=256)
def absences(names: tuple[str, ...], why: str, fix: str) -> tuple[Absent, ...]:
    """Return each name as absent for the same reason."""
    return tuple(Absent(name=name, why=why, fix=fix) for name in names)


class NetTime(NamedTuple):
    """The time of a call, and its interval."""

    time: float
    low: float
    high: float
    confidence: float

    def under(self, amount: float) -> tuple[float, Interval]:
        return amount / self.time, Interval(low=amount / self.high, high=amount / self.low, confidence=self.confidence)


class RoofPart(NamedTuple):
    """A fraction of a roof with its value; without an interval it does not apply."""

    of: Fraction
    value: float = 0.0
    interval: Interval | None = None

    def metric(self, name: str, *, note: str = "", labels: Labels = ()) -> Metric:
        dimension, interval = Dimension.FRACTION, self.interval
        return Metric(name=name, value=self.value, dimension=dimension, labels=labels, interval=interval, note=note)


class AbsoluteFigures:
    """The absolute figures of one call; shared intermediate results are computed once."""

    def __init__(self, measurement: Measurement, work: Work, timed: NetTime) -> None:
        self._measurement, self._work, self._timed = measurement, work, timed
        self._compute: dict[int, RoofPart] = {}
        self._memory: dict[int, RoofPart] = {}

    def figure(self, name: str) -> Made:
        """Return all metrics of one name of ``OF_WORK``, or the reason of their absence."""
        if name in RATES:
            return (self._rate(name),)
        if name == "intensity":
            return (self._intensity(),)
        stem, tail = FRACTIONS[name]
        roof, alias = roof_of(self._measurement.device, tail)
        if roof is None:
            if not (self._work.flops or (stem == "sol" and self._work.bytes)):
                return absences((name,), "the work counts no operations", "pass work= with flops")
            return absences((name,), *no_roof(self._measurement.device, tail))
        return (_mfu(name, self._of_compute(roof), alias),) if stem == "mfu" else self._sol(name, roof, alias)

    def _rate(self, name: str) -> Metric | Absent:
        from pytest_perfgate.core.analysis.work import rate_noun

        noun, dimension = RATES[name]
        amount: float | None = getattr(self._work, noun)
        if not amount:
            how = ", such as work.items(n, 'rows', of=WORK)" if noun == "items" else ""
            return absences((name,), f"the work counts no {noun}", f"pass work= with {noun}{how}")[0]
        value, interval = self._timed.under(amount * 1e9)
        counted = {"items": f"{self._work.unit}/s", "flops": rate_noun(self._work.dtype)}.get(noun)
        note = f"{OF_ITEMS}{counted}" if counted else ""
        return Metric(name=name, value=value, dimension=dimension, interval=interval, note=note)

    def _intensity(self) -> Metric | Absent:
        if self._work.intensity is None:
            return Absent(name="intensity", why="the work lacks operations or bytes", fix="pass work= with both")
        return Metric(name="intensity", value=self._work.intensity, dimension=Dimension.INTENSITY)

    def _sol(self, name: str, roof: Roof, alias: str) -> Made:
        parts = (self._of_compute(roof), self._of_memory(roof))
        return _sol(name, parts, (_sides(self._work, roof), alias))

    def _of_compute(self, roof: Roof) -> RoofPart:
        fraction = self._compute.get(id(roof))
        if fraction is None:
            fraction = self._compute[id(roof)] = self._part(of_compute(self._work, roof))
        return fraction

    def _of_memory(self, roof: Roof) -> RoofPart:
        fraction = self._memory.get(id(roof))
        if fraction is None:
            at = self._measurement
            fraction = self._memory[id(roof)] = self._part(of_memory(self._work, roof, at.device, at.identity))
        return fraction

    def _part(self, of: Fraction) -> RoofPart:
        return RoofPart(of) if of.least_ns is None else RoofPart(of, *self._timed.under(of.least_ns))


_ASK = {"throughput": "pass work=work.items(n, 'rows')", "bandwidth": "pass work=work.copy(bytes)"}
"""How to state other work than operations."""


def absolute(measurement: Measurement, summary: Summary) -> AbsoluteFigures | tuple[Absent, ...]:
    """Return the figures, or why a call has none; by the same time that is shown, compared and accepted."""
    if measurement.work is None:
        return tuple(
            Absent(name=n, why="no work= was given", fix=_ASK.get(n, "pass work=work.gemm(...)")) for n in OF_WORK
        )
    timed = NetTime(summary.time, summary.interval.low, summary.interval.high, summary.interval.confidence)
    if timed.time <= summary.overhead:
        return absences(OF_WORK, "the call takes no longer than the overhead of timing it", "raise calls=")
    if timed.low <= summary.overhead:
        wide = "the processes differ so much that the interval of the time reaches down to the overhead of timing it"
        return absences(OF_WORK, wide, "measure on a quieter machine, or with more --perfgate-rounds")
    return AbsoluteFigures(measurement, measurement.work, timed)


def _mfu(name: str, compute: RoofPart, alias: str) -> Metric | Absent:
    """Return the compute part alone."""
    if compute.interval is None:
        return Absent(name=name, why=compute.of.why, fix=compute.of.fix)
    return compute.metric(name, note=alias)


def _sol(name: str, parts: tuple[RoofPart, RoofPart], notes: tuple[str, str]) -> Made:
    """Return the larger part, its roof, and what is known of the other; ``sol`` itself also by roof."""
    known_parts = [part for part in parts if part.interval is not None]
    lacking = [f"{part.of.roof} {part.of.why}" for part in parts if part.interval is None]
    if not known_parts:
        return (Absent(name=name, why="; ".join(lacking), fix=parts[0].of.fix),)
    binding = known_parts[0] if known_parts[0].value >= known_parts[-1].value else known_parts[-1]
    words = (f"{binding.of.roof} roof", *notes, *lacking)
    metrics = [binding.metric(name, note="; ".join([word for word in words if word]))]
    if name == "sol":
        metrics += [part.metric(name, labels=(("roof", part.of.roof),)) for part in known_parts]
    return metrics


def _sides(work: Work, roof: Roof) -> str:
    """Return operations per byte of the work, and those from which compute limits."""
    edge = ridge(roof, work.dtype)
    if work.intensity is None or edge is None:
        return ""
    return f"{work.intensity:.3g} FLOP/B, ridge at {edge:.3g}"


def rounds_to_decide(metric: Metric, bound: float, count: int) -> int:
    """Return the processes whose interval likely leaves the bound: 8 to 9 in 10 for code as fast as accepted."""
    # Three processes often show too little scatter, so half as much again is assumed.
    zero = 1.0 if metric.name == "slowdown" else 0.0
    low, high, at = (max(zero + number, 1e-9) for number in (metric.low, metric.high, bound))
    half, gap = math.log(high / low) / 2, abs(math.log(at / math.sqrt(low * high)))
    gap = max(gap, abs(math.log(at)) / 2) if zero else gap
    if count < 2 or not gap:
        return 2 * max(count, 3)
    scatter = 1.5 * half * math.sqrt(count) / t_quantile(0.975, count - 1)
    needs = range(2 * max(count, 3), 60)
    return next((n for n in needs if (t_quantile(0.975, n - 1) + 0.84) * scatter <= gap * math.sqrt(n)), 60)
