"""Classifies what limits a kernel or a window most, from the parts of time and roof that were measured."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from pytest_perfgate.model.values import value


class Bottleneck(str, enum.Enum):
    """Bottlenecks, in the order in which they are tested."""

    INVALID = "invalid"
    COMMUNICATION = "communication"
    SYNCHRONISATION = "synchronisation"
    LAUNCH = "launch"
    BALANCED = "balanced"
    COMPUTE = "compute"
    MEMORY = "memory"
    LATENCY = "latency"
    NOT_COLLECTED = "not collected"


ABSENT_CAUSE = "not collected"

_MOST_LOST = 0.999

_UNKNOWN = f"cause {ABSENT_CAUSE}"


@value
class Thresholds:
    """The bounds of each class: fractions of the window or of a roof, nanoseconds, warps."""

    exposed: float = 0.20
    sync: float = 0.10
    idle: float = 0.30
    launch_share: float = 0.50
    """The host's launch share that counts as high beside an idle device."""
    short_ns: float = 10_000.0
    roof: float = 0.60
    """The fraction of a roof that makes it the bottleneck of a kernel at the balance point."""
    far: float = 0.40
    """The same for a kernel far from the balance point, which only one roof can limit."""
    filled: float = 1.0
    """The sum of both fractions from which latency is excluded, and work alternates between the roofs."""
    balances: float = 4.0
    """The multiple of the balance point that counts as far."""
    alone: float = 0.80
    """The fraction that makes a roof the bottleneck even if the other roof was not measured."""
    near: float = 0.10
    implausible: float = 1.05
    """The largest plausible fraction of a roof; above it the peak or the work is wrong."""
    warps: float = 8.0
    l2_hit: float = 0.80


THRESHOLDS = Thresholds()


@value
class Signals:
    """Measured signals. ``None`` and NaN mean not collected."""

    compute: float | None = None
    """Fraction of the compute roof."""
    memory: float | None = None
    """Fraction of the memory roof."""
    warps: float | None = None
    """Active warps a multiprocessor, or those that the launch allows if none were counted."""
    idle: float | None = None
    launch_share: float | None = None
    kernel_ns: float | None = None
    """The length up to which kernels back to back fill half of the window; None where they do not."""
    exposed: float | None = None
    sync: float | None = None
    waits: int | None = None
    """The number of blocking synchronisations."""
    l2_hit: float | None = None
    stall: tuple[str, float] | None = None
    """The most frequent stall reason, and its share."""
    waves: float | None = None
    """Waves of blocks for each multiprocessor."""
    inside: tuple[str, float] | None = None
    """The busiest part of the on-chip memory, and its fraction of peak."""
    intensity: float | None = None
    ridge: float | None = None
    problems: tuple[str, ...] = ()


@value
class Classification:
    """One class, the numbers behind it, and the distance to the second most likely one."""

    bottleneck: Bottleneck
    evidence: tuple[str, ...]
    runner_up: Bottleneck | None = None
    distance: float | None = None
    """The change of the nearest number that would select the second class: 0.02 is two points."""
    notes: tuple[str, ...] = ()
    measured: bool = True
    """Whether it was measured; False for a bound from intensity."""
    lost: float | None = None
    """The part of a window that its bottleneck takes."""

    @property
    def facts(self) -> dict[str, str | float]:
        """Return the facts for advice on a window: its class, and the largest speed-up without the bottleneck."""
        if self.lost is None:
            return {"class": self.bottleneck.value}
        share = min(self.lost, _MOST_LOST)
        return {"class": self.bottleneck.value, "room": share / (1 - share)}

    @property
    def cause(self) -> str:
        """Return what a latency-bound kernel waits for, or that this was not collected."""
        known = self.bottleneck is not Bottleneck.LATENCY or _UNKNOWN not in self.evidence
        return "known" if known else ABSENT_CAUSE

    @property
    def sentence(self) -> str:
        return f"{self.named}: {self.reasons}" if self.evidence else self.named

    @property
    def reasons(self) -> str:
        """Return the numbers behind the class, and the distance to the next class."""
        return f"{', '.join(self.evidence)}{self._near}"

    @property
    def of_window(self) -> str:
        if self.bottleneck is not Bottleneck.NOT_COLLECTED:
            return f"The window is {self.sentence}."
        return f"What limits the window is {self.sentence}; {_NEEDS}."

    @property
    def short(self) -> str:
        """Return the class and the distance to the next, for use beside separate evidence."""
        return f"{self.named}{self._near}" if self.evidence else self.named

    @property
    def named(self) -> str:
        text = bound_name(self.bottleneck)
        return text if self.measured else f"{text} (a bound from intensity, not a measurement)"

    @property
    def _near(self) -> str:
        if self.runner_up is None or self.distance is None or not self.measured:
            return ""
        return f"; {self.distance * 100:.1f} points from {bound_name(self.runner_up)}"


_BOUND = {
    Bottleneck.COMMUNICATION, Bottleneck.SYNCHRONISATION, Bottleneck.LAUNCH,
    Bottleneck.COMPUTE, Bottleneck.MEMORY, Bottleneck.LATENCY,
}  # fmt: skip


_NEEDS = "it needs recorded shapes and a roof (--device NAME, or --peak and --bandwidth)"


def bound_name(bottleneck: Bottleneck) -> str:
    """Return ``memory-bound``; a class that is no bound keeps its name."""
    return f"{bottleneck.value}{'-bound' if bottleneck in _BOUND else ''}"


Margin = Callable[[Signals], "float | None"]
"""Returns how far inside its region a class is, as a fraction; negative outside, ``None`` if not collected."""


def _valid(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else number


def _over(name: str, limit: str) -> Margin:
    def margin(signals: Signals) -> float | None:
        value = _valid(getattr(signals, name))
        return None if value is None else value - float(getattr(THRESHOLDS, limit))

    return margin


def _launch(signals: Signals) -> float | None:
    idle, share, short = (_valid(n) for n in (signals.idle, signals.launch_share, signals.kernel_ns))
    ways = []
    if idle is not None and share is not None:
        ways.append(min(idle - THRESHOLDS.idle, share - THRESHOLDS.launch_share))
    if short is not None:
        ways.append((THRESHOLDS.short_ns - short) / THRESHOLDS.short_ns)
    return max(ways, default=None)


def _balanced(signals: Signals) -> float | None:
    compute, memory = _valid(signals.compute), _valid(signals.memory)
    if compute is None or memory is None:
        return None
    return min(compute + memory - THRESHOLDS.filled, THRESHOLDS.near - abs(compute - memory))


def _side(first: str, second: str) -> Margin:
    def margin(signals: Signals) -> float | None:
        share, other = _valid(getattr(signals, first)), _valid(getattr(signals, second))
        if share is None:
            return None
        if other is None:
            return share - THRESHOLDS.alone
        return min(max(share - _least_fraction(share, other), share + other - THRESHOLDS.filled), share - other)

    return margin


def _least_fraction(share: float, other: float) -> float:
    """Return the fraction from which a roof is the bottleneck, lower for kernels far from the balance point."""
    if share <= other:
        return THRESHOLDS.roof
    times = share / other if other > 0 else THRESHOLDS.balances
    return THRESHOLDS.roof - (THRESHOLDS.roof - THRESHOLDS.far) * min(
        math.log(times) / math.log(THRESHOLDS.balances), 1.0
    )


def completed(signals: Signals) -> Signals:
    """Return signals with a missing roof computed from the other one, by intensity and balance point."""
    compute, memory = _valid(signals.compute), _valid(signals.memory)
    intensity, ridge = _valid(signals.intensity), _valid(signals.ridge)
    if not intensity or not ridge or (compute is None) is (memory is None):
        return signals
    if compute is None and memory is not None:
        return replace(signals, compute=memory * intensity / ridge)
    return replace(signals, memory=(compute or 0.0) * ridge / intensity)


ORDER: tuple[tuple[Bottleneck, Margin, bool], ...] = (
    (Bottleneck.COMMUNICATION, _over("exposed", "exposed"), False),
    (Bottleneck.SYNCHRONISATION, _over("sync", "sync"), False),
    (Bottleneck.LAUNCH, _launch, False),
    (Bottleneck.BALANCED, _balanced, True),
    (Bottleneck.COMPUTE, _side("compute", "memory"), True),
    (Bottleneck.MEMORY, _side("memory", "compute"), True),
)
"""Tested from the top; the first with a positive margin holds (or zero, if the edge belongs to it)."""


def classify(signals: Signals) -> Classification:
    """Return the class of these signals; every point of the plane has exactly one."""
    if signals.problems:
        return Classification(bottleneck=Bottleneck.INVALID, evidence=signals.problems)
    signals = completed(signals)
    wrong = tuple(_implausible(signals))
    if wrong:
        return Classification(bottleneck=Bottleneck.INVALID, evidence=wrong)
    margins = [(name, margin(signals), closed) for name, margin, closed in ORDER]
    inside = ((name, margin, closed) for name, margin, closed in margins if margin is not None)
    names = [name for name, margin, closed in inside if margin > 0 or (closed and margin == 0)]
    if names:
        return _named(names[0], names[1:], signals)
    if _idles(signals):
        return _named(Bottleneck.LATENCY, [], signals)
    if _valid(signals.compute) is None and _valid(signals.memory) is None:
        return _by_intensity(signals)
    if _valid(signals.compute) is None or _valid(signals.memory) is None:
        return Classification(
            bottleneck=Bottleneck.NOT_COLLECTED, evidence=tuple(_evidence(Bottleneck.BALANCED, signals))
        )
    return _named(Bottleneck.LATENCY, [], signals)


def _implausible(signals: Signals) -> Iterator[str]:
    for field, words in _ROOFS:
        number = _valid(getattr(signals, field))
        if number is not None and number > THRESHOLDS.implausible:
            part = f"{words} {number * 100:.1f} % of its roof"
            yield f"{part} is more than the hardware can do: its peak or the work is wrong"


def _idles(signals: Signals) -> bool:
    """Return whether the device idles for so much of a window that no roof can be its bottleneck."""
    idle = _valid(signals.idle)
    return idle is not None and idle > THRESHOLDS.idle


def _named(name: Bottleneck, also: list[Bottleneck], signals: Signals) -> Classification:
    runner, distance = _runner_up(name, also, signals)
    return Classification(
        bottleneck=name,
        evidence=tuple(_evidence(name, signals)),
        runner_up=runner,
        distance=distance,
        notes=tuple(_notes(name, signals)),
        lost=_valid(getattr(signals, _LOST[name])) if name in _LOST else None,
    )


_LOST = {Bottleneck.COMMUNICATION: "exposed", Bottleneck.SYNCHRONISATION: "sync", Bottleneck.LAUNCH: "idle"}


def _runner_up(name: Bottleneck, also: list[Bottleneck], signals: Signals) -> tuple[Bottleneck | None, float | None]:
    """Return the class across the nearest edge: an earlier one that almost holds, or the one after this."""
    margins = {other: margin(signals) for other, margin, _ in ORDER}
    places = list(margins)
    earlier = places[: places.index(name)] if name in margins else places
    silent = {other for other, field in _LOST.items() if _valid(getattr(signals, field)) == 0}  # no such events at all
    edges = [(-gap, other) for other in earlier if other not in silent and (gap := margins[other]) is not None]
    own_margin = margins.get(name)
    if own_margin is not None:
        edges.append((own_margin, _after(name, also, signals)))
    if not edges:
        return None, None
    distance, runner = min(edges, key=lambda pair: pair[0])
    return runner, abs(distance)


def _after(name: Bottleneck, also: list[Bottleneck], signals: Signals) -> Bottleneck:
    """Return the class if the first one did not hold."""
    compute, memory = _valid(signals.compute), _valid(signals.memory)
    if name is not Bottleneck.BALANCED or compute is None or memory is None:
        return also[0] if also else Bottleneck.LATENCY
    if compute + memory - THRESHOLDS.filled < THRESHOLDS.near - abs(compute - memory):
        return Bottleneck.LATENCY
    return Bottleneck.COMPUTE if compute >= memory else Bottleneck.MEMORY


def _by_intensity(signals: Signals) -> Classification:
    intensity, ridge = _valid(signals.intensity), _valid(signals.ridge)
    if intensity is None or ridge is None:
        return Classification(bottleneck=Bottleneck.NOT_COLLECTED, evidence=())
    side = Bottleneck.COMPUTE if intensity > ridge else Bottleneck.MEMORY
    other = Bottleneck.MEMORY if side is Bottleneck.COMPUTE else Bottleneck.COMPUTE
    return Classification(
        bottleneck=side,
        evidence=(f"intensity {intensity:.1f} FLOP/B against a ridge point of {ridge:.1f}",),
        runner_up=other,
        distance=abs(intensity - ridge) / ridge,
        notes=tuple(_notes(side, signals)),
        measured=False,
    )


_SHOWN = {
    Bottleneck.COMMUNICATION: (("exposed", "exposed collectives"),),
    Bottleneck.SYNCHRONISATION: (("sync", "blocking synchronisation"),),
    Bottleneck.LAUNCH: (("idle", "device idle"), ("launch_share", "host launch share")),
}

_ROOFS = (("compute", "compute"), ("memory", "memory"))


def _evidence(name: Bottleneck, signals: Signals) -> Iterator[str]:
    if name is Bottleneck.LATENCY and _idles(signals):  # what fills most of a window comes first
        yield _cause(signals)
    for field, words in (*_SHOWN.get(name, ()), *_ROOFS):
        number = _valid(getattr(signals, field))
        if number is not None:
            more = f" in {signals.waits:,} calls" if field == "sync" and signals.waits else ""
            yield f"{words} {number * 100:.1f} %{' of its roof' if (field, words) in _ROOFS else more}"
        elif name not in _SHOWN and not _idles(signals):
            yield f"{words} not collected"
    short = _valid(signals.kernel_ns)
    if name is Bottleneck.LAUNCH and short is not None:
        yield f"kernels of up to {short / 1000:.1f} µs back to back"
    if name is Bottleneck.LATENCY and not _idles(signals):
        yield _cause(signals)


def _cause(signals: Signals) -> str:
    if _idles(signals):
        launching = _valid(signals.launch_share)
        launches = f" (the host launches for {launching * 100:.1f} %)" if launching is not None else ""
        return f"the device idles for {(signals.idle or 0.0) * 100:.1f} % of the window{launches}"
    warps = _valid(signals.warps)
    if warps is not None and warps < THRESHOLDS.warps:
        return f"{warps:.1f} warps a multiprocessor, fewer than {THRESHOLDS.warps:.0f}"
    if signals.stall:
        return f"leading stall {signals.stall[0]} ({signals.stall[1] * 100:.0f} %)"
    if _busy_on_chip(signals):
        return _busy_on_chip(signals)
    waves = _valid(signals.waves)
    if waves is not None and waves < 1:
        return f"{waves:.2g} waves of blocks, too few for every multiprocessor"
    return _UNKNOWN


def _busy_on_chip(signals: Signals) -> str:
    """Return on-chip memory that is busy, a cause outside of the two roofs."""
    if signals.inside is None or math.isnan(signals.inside[1]) or signals.inside[1] < THRESHOLDS.roof:
        return ""
    return f"{signals.inside[0]} {signals.inside[1] * 100:.1f} % of its peak inside the chip"


def _notes(name: Bottleneck, signals: Signals) -> Iterator[str]:
    hit = _valid(signals.l2_hit)
    if name in (Bottleneck.MEMORY, Bottleneck.BALANCED) and hit is not None and hit < THRESHOLDS.l2_hit:
        yield f"locality: L2 hit rate {hit * 100:.1f} %, under {THRESHOLDS.l2_hit * 100:.0f} %"
    if name is Bottleneck.LATENCY and signals.stall and _busy_on_chip(signals):
        yield _busy_on_chip(signals)
