"""Can these samples be trusted, and what pairs of processes show: process time, levels, contention, agreement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.context import Ruling, limited, paired_clocks, settled_turns
from pytest_perfgate.core.judge.rounds import Pairs
from pytest_perfgate.core.render.words import about, detectable, edges, plural, quantity, signed
from pytest_perfgate.core.stats.inference import scatter_of_neighbours
from pytest_perfgate.core.stats.summary import median
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.metric import Metric, MetricSet, Problem
from pytest_perfgate.model.values import Dimension, first_of
from pytest_perfgate.model.verdict import Paired, PowerLimited

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Measurement, Samples, Settled, Sitting
    from pytest_perfgate.model.protocol import Capture

BOUND = 1.02
"""Wall over CPU time of the least stretched sample, up to which a call is nothing but computing."""

CLOCKS_APART, WATTS_APART = 0.005, 0.02
"""How far the clocks, or the watts, of two builds lie apart that share neither."""

LEAST_TURNS = 3  # of fewer the middle is no witness


def pair_of(rounds: Sequence[tuple[Capture, Capture]]) -> Pairs:
    """Base and head of every round as one number each, by the same clock on both sides.

    The base is the number of its process; the head is as far from it as the turns of the two were apart.
    """
    if differs_in_power(long := settled_turns(rounds)):
        spreads = sorted(spread(capture.samples[-1], busy=False) for both in rounds for capture in both)
        base, head = zip(*((before.time, after.time) for before, after in long))
        return Pairs(base=base, head=head, spread=median(spreads), preloads=preloads_of(rounds))
    sides = [[capture.samples[-1] for capture in side] for side in zip(*rounds)]
    busy = by_cpu_time(*sides)
    base = tuple(time_of(samples, busy=busy) for samples in sides[0])
    head = tuple(time * apart(*both, busy=busy) for time, both in zip(base, zip(*sides)))
    spreads = sorted(spread(samples, busy=busy) for side in sides for samples in side)
    return Pairs(base=base, head=head, spread=median(spreads), preloads=preloads_of(rounds))


def preloads_of(rounds: Iterable[Sequence[Capture]]) -> tuple[int, ...]:
    """Which preload the processes of each round were forked from, 0 where fresh; empty where all were."""
    from pytest_perfgate.model.protocol import FORK, START

    starts = (next((dict(s.notes).get(START, "") for c in one for s in c.samples[-1:]), "") for one in rounds)
    numbers = tuple(int(text[len(FORK) :].partition(":")[0]) if text.startswith(FORK) else 0 for text in starts)
    return numbers if any(numbers) else ()


def by_cpu_time(*sides: Sequence[Samples]) -> bool:
    """Whether both sides are held apart by the time that their threads computed."""
    return all(computes(side) and all(map(_has_cpu_times, side)) for side in sides)


def differs_in_power(turns: Sequence[tuple[Settled, Settled]]) -> bool:
    """Whether the sides of long turns ran at other clocks, or drew another power, in every round and by enough.

    At the power limit a build that draws more runs at a lower clock; short turns of both share one clock.
    """
    clocks = [(base.clock_hz, head.clock_hz) for base, head in turns]
    watts = [(base.watts, head.watts) for base, head in turns]
    return _all_apart(clocks, CLOCKS_APART) or _all_apart(watts, WATTS_APART)


def _all_apart(pairs: Sequence[tuple[float | None, float | None]], least: float) -> bool:
    logs = [math.log(after / before) for before, after in pairs if before and after]
    if not logs or len(logs) < len(pairs):
        return False
    return (min(logs) > 0 or max(logs) < 0) and abs(median(sorted(logs))) >= least


def power_limited(rounds: Sequence[tuple[Capture, Capture]]) -> PowerLimited | None:
    """What the sides drew and ran at, where the power limit held their clocks: in long turns, if there were any."""
    sides = [[capture.samples[-1] for capture in side] for side in zip(*rounds)]
    if not limited([samples for side in sides for samples in side]):
        return None
    if not (long := settled_turns(rounds)):
        return PowerLimited(clocks_hz=paired_clocks(rounds))
    return PowerLimited(
        clocks_hz=_middles([(base.clock_hz, head.clock_hz) for base, head in long]),
        watts=_middles([(base.watts, head.watts) for base, head in long]),
        decides=differs_in_power(long),
    )


def _middles(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[float, float] | None:
    complete = [(base, head) for base, head in pairs if base and head]
    if len(complete) < len(pairs):
        return None
    base, head = (median(sorted(side)) for side in zip(*complete))
    return base, head


def apart(base: Samples, head: Samples, *, busy: bool) -> float:
    """Head over base: the middle of the ratios of neighbouring turns; where none were taken, of the whole processes.

    A process whose clock or neighbours change half way is far from itself; its turns are not far from the other's.
    """
    ratios = ratios_of_turns(base, head, busy=busy)
    return median(ratios) if ratios else time_of(head, busy=busy) / time_of(base, busy=busy)


def ratios_of_turns(base: Samples, head: Samples, *, busy: bool) -> list[float]:
    """Head over base of neighbouring turns, sorted; none where there are too few."""
    neighbours = zip(_turns(base, busy=busy), _turns(head, busy=busy))
    turns = [(before, after) for before, after in neighbours if before > 0 and after > 0]
    if len(turns) < LEAST_TURNS or len(base.turns) != len(head.turns):
        return []
    return sorted(after / before for before, after in turns)


def _turns(samples: Samples, *, busy: bool) -> list[float]:
    """One number a turn: the least, or the middle of a device's own times."""
    times = samples.cpu if busy and is_host(samples) else samples.durations
    ends = list(accumulate(samples.turns))
    if not ends or ends[-1] != len(times) or min(samples.turns) < 1:
        return []
    of_turn = min if is_host(samples) else lambda times: median(sorted(times))
    return [of_turn(times[end - count : end]) for end, count in zip(ends, samples.turns)]


def is_host(samples: Samples) -> bool:
    return samples.timer in {"host", "region"}


def computes(side: Sequence[Samples]) -> bool:
    """Whether the call is one thread that computes: in most processes it does so whenever it has a processor.

    On a busy core every sample may lose time to a queue; a longer call then loses more than its share, so by the wall
    it would be slower than it is.
    """
    return median(sorted(min(least_stretch(samples), _given(samples)) for samples in side)) <= BOUND


def _given(samples: Samples) -> float:
    """Time that the calling thread did not spend in queues, over what it computed; without end where none can tell."""
    busy = fmean(samples.cpu) if samples.cpu else 0.0
    return (busy + samples.blocked) / busy if samples.blocked is not None and busy > 0 else math.inf


def _has_cpu_times(samples: Samples) -> bool:
    """Whether every sample has processor time beside it: a coarse clock reads none for a short call."""
    return len(samples.cpu) == len(samples.durations) and min(samples.cpu) > 0


def least_stretch(samples: Samples) -> float:
    if len(samples.cpu) != len(samples.durations):
        return math.inf
    return min((wall / busy for wall, busy in zip(samples.durations, samples.cpu) if busy > 0), default=math.inf)


def time_of(samples: Samples, *, busy: bool) -> float:
    """The lowest tenth of CPU times, or the smallest wall time: what disturbs a process only makes it slower.

    A device's own times know no neighbours: of them, the median. Recorded data chose each (docs/verdicts.md).
    """
    if not is_host(samples):
        return median(sorted(samples.durations))
    ordered = sorted(samples.cpu if busy else samples.durations)
    return ordered[(len(ordered) - 1) // 10] if busy else ordered[0]


def spread(samples: Samples, *, busy: bool) -> float:
    """The interquartile range within the process, as a fraction of its median."""
    ordered = sorted(samples.cpu if busy else samples.durations)
    last = len(ordered) - 1
    return (ordered[(3 * last + 3) // 4] - ordered[last // 4]) / median(ordered)


_LEVEL = 0.15
"""Nearly four standard deviations between runs on the noisiest kind of machine."""


def scatter_of(sittings: Sequence[Sitting], time: float) -> tuple[float, int]:
    """(relative scatter between runs at the accepted level, how many); another level says nothing here."""
    times = [sitting.time for sitting in _of_level(sittings, time)]
    return scatter_of_neighbours(times), len(times)


def _of_level(sittings: Sequence[Sitting], time: float) -> list[Sitting]:
    """The newest runs, back to the first that lies further off than any machine scatters."""
    return list(takewhile(lambda s: of_level(s.time, time), reversed(sittings)))


def of_level(measured: float, time: float) -> bool:
    """Whether a time lies no further from another than machines scatter between runs."""
    return 0 < measured < math.inf and time > 0 and abs(math.log(measured / time)) <= _LEVEL


SHORTEST_NS, LONGEST_NS = 1e-6, 1e18
"""A femtosecond and some thirty years: what lies outside is no time of a call, whoever recorded it."""


def untrusted_samples(measurement: Measurement) -> tuple[Problem, ...]:
    """What is wrong with the samples themselves."""
    return tuple(_samples(measurement))


def sound(ordered: Sequence[float]) -> bool:
    """Sorted samples that are times of a call, and some of them; what is no number spoils the sum."""
    return bool(ordered) and ordered[0] >= SHORTEST_NS and ordered[-1] <= LONGEST_NS and math.isfinite(sum(ordered))


def untimed(samples: Samples) -> str:
    """Why one process's samples are no times of a call; empty where they are."""
    if not samples.durations:
        return f"every sample was discarded: {gone}" if (gone := _gone(samples)) else "there is no sample"
    lost = next((problem.what for problem in samples.problems if problem.code == "bad-timing"), "")
    return lost or ("" if sound(sorted(samples.durations)) else _reads(samples.durations, ""))


def _gone(samples: Samples) -> str:
    return ", ".join(f"{d.count} x {d.reason}" for d in samples.discarded)


def _reads(durations: Sequence[float], within: str) -> str:
    at = next(n for n, d in enumerate(durations) if not _plausible(d))
    absurd = ", which is no time that a call can take" if 0 < durations[at] < math.inf else ""
    return f"sample {at + 1} of {len(durations)}{within} reads {durations[at]} ns{absurd}"


def _plausible(duration: float) -> bool:
    return SHORTEST_NS <= duration <= LONGEST_NS


def problems_of(measurement: Measurement, metrics: MetricSet, *, timed: bool) -> tuple[Problem, ...]:
    """Everything that makes all limits on this measurement INVALID; ``timed`` when its samples were summed up."""
    recorded = [*measurement.problems, *[p for process in measurement.processes for p in process.problems]]
    samples = () if timed else untrusted_samples(measurement)
    return (*dict.fromkeys(recorded), *samples, *_above_peak(measurement, metrics))


def _samples(measurement: Measurement) -> Iterator[Problem]:
    for number, process in enumerate(measurement.processes, 1):
        durations = process.durations
        if not durations:
            gone = _gone(process)
            what = f"every sample of process {number} was discarded: {gone}" if gone else f"process {number} is empty"
            yield Problem(code="no-samples", what=what)
        elif not sound(sorted(durations)):
            what = _reads(durations, f" in process {number}")
            yield Problem(code="bad-timing", what=what, retry=process.timer != "record")


def _above_peak(measurement: Measurement, metrics: MetricSet) -> Iterator[Problem]:
    """Faster than a physical peak; a measured ceiling is no such thing."""
    clock = measurement.device.roof(Basis.CLOCK) if measurement.device.kind == "gpu" else None
    if clock is None:
        return
    from pytest_perfgate.core.analysis.roofline import above_every_peak

    rates = metrics.find("tflops") if measurement.work and not measurement.work.dtype else ()
    for metric in rates:
        if why := above_every_peak(metric.value, clock):
            yield Problem(code="above-peak", what=why, retry=False)
    for metric in metrics.find("sol"):
        if not metric.labels and metric.value > 1:
            yield Problem(
                code="above-peak",
                what=f"{metric.value * 100:.3g} % of the physical peak ({metric.note})",
                evidence=(("sol", f"{metric.value:.4g}"),),
                retry=False,
            )


LEAST = 3
"""The least number of fresh processes that shows how far two of them may differ."""

UNKNOWN = 1.0
"""Neighbours, where the system does not tell how many there were."""

MOST = 2.0
"""Neighbours that one call can feel: half a core's other thread, and the memory that all share."""

BUSY = 0.5
"""Processors in use by others from which on a run is too disturbed to judge others by it."""

FEW = 0.05
"""Processors in use by others, up to which they are not worth a word."""


def busy_processors(processes: Sequence[Samples]) -> float:
    """Processors that others kept busy beside a run on the host, where that is more than half of one; else 0."""
    loads = sorted(one.others for one in processes if one.others is not None and is_host(one))
    neighbours = median(loads) if loads else 0.0
    return min(neighbours, MOST) if neighbours > BUSY else 0.0


def excused(processes: Sequence[Samples], time: float, reach: float) -> str:
    """What keeps a run that is slower than ``reach`` from a confirmation; empty where nothing does.

    Times of a device, or measured elsewhere, know no neighbours. On the host, what a call queued for a processor is
    not its own, and what is left may be slower by as much as its neighbours took of what they share.
    """
    if not all(is_host(one) and one.durations for one in processes):
        return ""
    if len(processes) < LEAST:
        count = plural(len(processes), "process", "processes")
        return f"{count} cannot show how far processes differ: it takes {LEAST}"
    own = [_own(one) for one in processes]
    times = [number for number in own if number is not None]
    if len(times) < len(own):
        return "it is unknown how long the calls waited for a processor"
    shift = median(sorted(times)) / time - 1
    neighbours = min(max(UNKNOWN if one.others is None else one.others for one in processes), MOST)
    shared = (1 + reach) * (1 + (neighbours if neighbours > FEW else 0.0)) - 1
    if shift > shared:
        return ""
    text = f"without the wait for a processor it is {signed(shift) if shift > 0 else 'no slower'}"
    if shift <= reach:
        return f"{text}: the machine was busy"
    return f"with {neighbours:.1f} processors in use by others up to {detectable(shared)}, and {text}"


def _own(samples: Samples) -> float | None:
    """A call's time without queueing: never more than its usual time."""
    if samples.unqueued is not None:
        return min(samples.unqueued, median(sorted(samples.durations)))
    return median(sorted(samples.cpu)) if computes([samples]) else None


BESIDE = "paired, against "
"""Before the base, in the source of a slowdown that two arms found."""

_SHOWN = 3


def slow_processes(paired: Paired) -> str:
    """``more slow processes (10 of 30, 0 in the base)``, where Fisher's test confirmed that."""
    if paired.slow is None:
        return ""
    head, base = paired.slow
    return f"more slow processes ({head} of {paired.rounds}, {base} in the base)"


def indistinguishable(paired: Paired) -> str:
    """Files that both arms took from the head, though they are other ones since the base."""
    shown, base = first_of(paired.shared, _SHOWN), paired.base or "the base"
    return f"{shown} changed since {base}, and both builds read the head's version"


def time_to_decide(paired: Paired) -> str:
    """The time that would decide an undecided case."""
    return f"; {about(paired.wants_s)} more would decide" if paired.wants_s else ""


def shift_metric(paired: Paired) -> Metric:
    """The slowdown that the pairs found."""
    return Metric(
        name="slowdown",
        value=paired.shift,
        dimension=Dimension.FRACTION,
        interval=paired.interval,
        source=f"{BESIDE}{paired.base}",
    )


def power_facts(paired: Paired) -> Iterator[tuple[str, str]]:
    """What both sides drew and ran at, where the device was at its power limit."""
    if paired.limited is None:
        return
    facts = [
        f"{then} then, {now} now"
        for figures, dimension in ((paired.limited.clocks_hz, Dimension.CLOCK), (paired.limited.watts, Dimension.POWER))
        if figures is not None
        for then, now in [[quantity(figure, dimension) for figure in figures]]
    ]
    decides = "; turns of a second decide, because short ones share one clock" if paired.limited.decides else ""
    yield "power", f"at the device's limit: {', '.join(facts) or 'clocks are not known'}{decides}"


def base_words(paired: Paired) -> str:
    """``33bcf03592 beside it over 9 rounds: +4.2 %``."""
    base = f"base {paired.base}" if paired.base else "the base"
    if paired.unbuilt:
        return f"{base}: the change edits no file that code loads or reads, so both are the same code"
    return f"{base} in {plural(paired.rounds, 'round')}: {signed(paired.shift)}"


def resting_on_arms(ruling: Ruling, screened: Metric, paired: Paired, processes: int) -> Ruling:
    """A confirmation shows the figure that confirmed; what the screening saw stands below it."""
    if paired.unbuilt:
        return ruling._replace(metric=None)
    between = edges(screened, change=True)
    text = f"{signed(screened.value)} {between}".rstrip() + f" of {plural(processes, 'process', 'processes')}"
    return ruling._replace(
        metric=shift_metric(paired),
        rounds=paired.rounds,
        evidence=(*ruling.evidence, ("against the accepted time", text)),
    )
