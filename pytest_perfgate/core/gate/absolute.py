"""Absolute figures of a timed call: rates of its work, and how near they come to a roof."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_perfgate.core.gate.roofs import Fraction, no_roof, of_compute, of_memory, ridge, roof_of
from pytest_perfgate.core.stats.summary import Summary
from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Absent, Labels, Metric
from pytest_perfgate.model.quantity import Dimension, Interval
from pytest_perfgate.model.work import Work

TAILS = ("", "_datasheet", "_ceiling")
RATES = {
    "tflops": ("flops", Dimension.FLOPS),
    "bandwidth": ("bytes", Dimension.BANDWIDTH),
    "throughput": ("items", Dimension.RATE),
}
"""What a rate counts: a field of the work, which is its noun as well."""
FRACTIONS = {f"{stem}{tail}": (stem, tail) for tail in TAILS for stem in ("mfu", "sol")}
WORKED = (*RATES, "intensity", *FRACTIONS)
"""In the order of reports."""
OF_WORK = tuple(sorted(WORKED))

Made = Sequence[Metric | Absent]


@lru_cache(maxsize=256)
def absences(names: tuple[str, ...], why: str, mend: str) -> tuple[Absent, ...]:
    """The same reason for each of them."""
    return tuple(Absent(name=name, why=why, mend=mend) for name in names)


class Net(NamedTuple):
    """The time of a call without the overhead of timing it, and between what it lies."""

    time: float
    low: float
    high: float
    confidence: float

    def under(self, amount: float) -> tuple[float, Interval]:
        """An amount over the time."""
        return amount / self.time, Interval(low=amount / self.high, high=amount / self.low, confidence=self.confidence)


class Part(NamedTuple):
    """A fraction of a roof with its value; without an interval it does not apply."""

    of: Fraction
    value: float = 0.0
    interval: Interval | None = None

    def metric(self, name: str, *, note: str = "", labels: Labels = ()) -> Metric:
        """The part under a name."""
        return Metric(
            name=name,
            value=self.value,
            dimension=Dimension.FRACTION,
            labels=labels,
            interval=self.interval,
            note=note,
        )


class Absolute:
    """The absolute figures of one call; what several of them rest on is worked out once."""

    def __init__(self, measurement: Measurement, work: Work, timed: Net) -> None:
        self._measurement, self._work, self._timed = measurement, work, timed
        self._compute: dict[int, Part] = {}
        self._memory: dict[int, Part] = {}

    def figure(self, name: str) -> Made:
        """All metrics of one name of ``WORKED``, or why there is none."""
        if name in RATES:
            return (self._rate(name),)
        if name == "intensity":
            return (self._intensity(),)
        stem, tail = FRACTIONS[name]
        roof, alias = roof_of(self._measurement.device, tail)
        if roof is None:
            return absences((name,), *no_roof(self._measurement.device, tail))
        return (_mfu(name, self._of_compute(roof), alias),) if stem == "mfu" else self._sol(name, roof, alias)

    def _rate(self, name: str) -> Metric | Absent:
        noun, dimension = RATES[name]
        amount: float | None = getattr(self._work, noun)
        if not amount:
            return absences((name,), f"the work counts no {noun}", f"pass work= with {noun}")[0]
        value, interval = self._timed.under(amount * 1e9)
        return Metric(name=name, value=value, dimension=dimension, interval=interval)

    def _intensity(self) -> Metric | Absent:
        if self._work.intensity is None:
            return Absent(name="intensity", why="the work lacks operations or bytes", mend="pass work= with both")
        return Metric(name="intensity", value=self._work.intensity, dimension=Dimension.INTENSITY)

    def _sol(self, name: str, roof: Roof, alias: str) -> Made:
        parts = (self._of_compute(roof), self._of_memory(roof))
        return _sol(name, parts, (_sides(self._work, roof), alias))

    def _of_compute(self, roof: Roof) -> Part:
        found = self._compute.get(id(roof))
        if found is None:
            found = self._compute[id(roof)] = self._part(of_compute(self._work, roof))
        return found

    def _of_memory(self, roof: Roof) -> Part:
        found = self._memory.get(id(roof))
        if found is None:
            at = self._measurement
            found = self._memory[id(roof)] = self._part(of_memory(self._work, roof, at.device, at.identity))
        return found

    def _part(self, of: Fraction) -> Part:
        return Part(of) if of.least_ns is None else Part(of, *self._timed.under(of.least_ns))


_ASK = {"throughput": "pass work=work.items(n, 'rows')", "bandwidth": "pass work=work.copy(bytes)"}
"""What makes up for it where operations are not what is counted."""


def absolute(measurement: Measurement, seen: Summary) -> Absolute | tuple[Absent, ...]:
    """The figures, or why a call has none at all; they alone leave the overhead of timing out."""
    if measurement.work is None:
        return tuple(
            Absent(name=n, why="no work= was given", mend=_ASK.get(n, "pass work=work.gemm(...)")) for n in OF_WORK
        )
    interval, overhead = seen.interval, seen.overhead
    timed = Net(seen.time - overhead, interval.low - overhead, interval.high - overhead, interval.confidence)
    if timed.low <= 0:
        return absences(OF_WORK, "the call is no longer than the overhead of timing it", "raise calls=")
    return Absolute(measurement, measurement.work, timed)


def _mfu(name: str, compute: Part, alias: str) -> Metric | Absent:
    """The compute part alone."""
    if compute.interval is None:
        return Absent(name=name, why=compute.of.why, mend=compute.of.mend)
    return compute.metric(name, note=alias)


def _sol(name: str, parts: tuple[Part, Part], said: tuple[str, str]) -> Made:
    """The larger part, which roof it is, and what is known of the other; ``sol`` itself also roof by roof."""
    held = [part for part in parts if part.interval is not None]
    lacking = [f"{part.of.roof} {part.of.why}" for part in parts if part.interval is None]
    if not held:
        return (Absent(name=name, why="; ".join(lacking), mend=parts[0].of.mend),)
    binding = held[0] if held[0].value >= held[-1].value else held[-1]
    words = (f"{binding.of.roof} roof", *said, *lacking)
    found = [binding.metric(name, note="; ".join([word for word in words if word]))]
    if name == "sol":
        found += [part.metric(name, labels=(("roof", part.of.roof),)) for part in held]
    return found


def _sides(work: Work, roof: Roof) -> str:
    """Operations per byte of the work, and those at which compute begins to bind."""
    edge = ridge(work, roof)
    if work.intensity is None or edge is None:
        return ""
    return f"{work.intensity:.3g} FLOP/B, ridge at {edge:.3g}"
