"""Whether samples can be trusted, and what pairs of processes show: times, levels, contention, agreement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.context import Ruling, complete, limited, paired_clocks, settled_turns
from pytest_perfgate.core.judge.rounds import Pairs
from pytest_perfgate.core.render.words import about, detectable, edges, plural, signed
from pytest_perfgate.core.stats.inference import scatter_of_neighbours
from pytest_perfgate.core.stats.summary import interquartile_range, median, middle
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.metric import Metric, MetricSet, Problem
from pytest_perfgate.model.values import Dimension, first_of
from pytest_perfgate.model.verdict import EQUAL_TIMES, Paired, PowerLimited

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import HistoryEntry, Measurement, Samples, Settled
    from pytest_perfgate.model.protocol import Capture

BOUND = 1.02
"""The largest ratio of wall to CPU time, in the least stretched sample, of a call that only computes."""

CLOCKS_APART, WATTS_APART, WAITS_APART = 0.005, 0.02, 0.05
"""The least difference of clocks, watts or waits between two builds with different states."""

LEAST_TURNS = 3  # with fewer, the median is unreliable

LEAST_CALMER = 9  # rounds in which a head waits less: by chance it does in all of seven, and slower code would pass


def pair_of(rounds: Sequence[tuple[Capture, Capture]]) -> Pairs:
    """Return base and head of every round as one number each, by the same clock on both sides."""
    # The base is its process's number; the head differs from it by the ratio of the two sides' turns.
    bases, heads = sides(rounds)
    long = settled_turns(rounds)
    if differs_in_power(long):
        by_cpu = False
        base, head = tuple(before.time for before, _ in long), tuple(after.time for _, after in long)
    else:
        by_cpu = by_cpu_time(bases, heads)
        base = tuple(time_of(samples, by_cpu=by_cpu) for samples in bases)
        waits = _wait_ratios(bases, heads) if by_cpu else [1.0] * len(bases)
        ratios = [
            head_ratio(before, after, by_cpu=by_cpu) * longer for before, after, longer in zip(bases, heads, waits)
        ]
        head = tuple(time * ratio for time, ratio in zip(base, ratios))
    spreads = sorted(spread(samples, by_cpu=by_cpu) for samples in (*bases, *heads))
    return Pairs(base=base, head=head, spread=median(spreads), preloads=preloads_of(rounds))


def _wait_ratios(bases: Sequence[Samples], heads: Sequence[Samples]) -> list[float]:
    """Return head over base by waits, which no CPU time shows; 1 unless one build waits longer in every round."""
    waits = complete([(_wall_over_cpu(before), _wall_over_cpu(after)) for before, after in zip(bases, heads)])
    ratios = [after / before for before, after in waits]
    if not _all_differ(waits, WAITS_APART) or (ratios[0] < 1 and len(ratios) < LEAST_CALMER):
        return [1.0] * len(bases)
    return ratios


def sides(rounds: Sequence[tuple[Capture, Capture]]) -> tuple[list[Samples], list[Samples]]:
    return [base.samples[-1] for base, _ in rounds], [head.samples[-1] for _, head in rounds]


def preloads_of(rounds: Iterable[Sequence[Capture]]) -> tuple[int, ...]:
    """Return the preload of each round's processes, 0 if fresh; empty if all were."""
    from pytest_perfgate.model.protocol import FORK, START

    numbers = []
    for captures in rounds:
        process = next((samples for capture in captures for samples in capture.samples[-1:]), None)
        start = dict(process.notes).get(START, "") if process else ""
        numbers.append(int(start[len(FORK) :].partition(":")[0]) if start.startswith(FORK) else 0)
    return tuple(numbers) if any(numbers) else ()


def by_cpu_time(*sides: Sequence[Samples]) -> bool:
    """Return whether both sides are compared by their threads' CPU time."""
    return all(computes(side) and all(map(_has_cpu_times, side)) for side in sides)


def differs_in_power(turns: Sequence[tuple[Settled, Settled]]) -> bool:
    """Return whether the sides of long turns differ enough in clock or power in every round."""
    # At the power limit a build that draws more runs at a lower clock; short turns of both share one clock.
    clocks = complete([(base.clock_hz, head.clock_hz) for base, head in turns])
    watts = complete([(base.watts, head.watts) for base, head in turns])
    return _all_differ(clocks, CLOCKS_APART) or _all_differ(watts, WATTS_APART)


def _all_differ(pairs: Sequence[tuple[float, float]], least: float) -> bool:
    logs = [math.log(after / before) for before, after in pairs]
    if not logs:
        return False
    return (min(logs) > 0 or max(logs) < 0) and abs(median(sorted(logs))) >= least


def power_limited(rounds: Sequence[tuple[Capture, Capture]]) -> PowerLimited | None:
    """Return power and clock of both sides at the power limit, from long turns if there were any."""
    bases, heads = sides(rounds)
    if not limited([*bases, *heads]):
        return None
    long = settled_turns(rounds)
    if not long:
        return PowerLimited(clocks_hz=paired_clocks(rounds))
    return PowerLimited(
        clocks_hz=_middles([(base.clock_hz, head.clock_hz) for base, head in long]),
        watts=_middles([(base.watts, head.watts) for base, head in long]),
        decides=differs_in_power(long),
    )


def _middles(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[float, float] | None:
    if not (whole := complete(pairs)):
        return None
    base, head = (median(sorted(side)) for side in zip(*whole))
    return base, head


def head_ratio(base: Samples, head: Samples, *, by_cpu: bool) -> float:
    """Return head over base: the median ratio of neighbouring turns; without turns, of whole processes."""
    # If clock or neighbours change during a process, its time varies, but neighbouring turns stay comparable.
    ratios = ratios_of_turns(base, head, by_cpu=by_cpu)
    return median(ratios) if ratios else time_of(head, by_cpu=by_cpu) / time_of(base, by_cpu=by_cpu)


def ratios_of_turns(base: Samples, head: Samples, *, by_cpu: bool) -> list[float]:
    """Return head over base of neighbouring turns, sorted; none if there are too few."""
    neighbours = zip(_turns(base, by_cpu=by_cpu), _turns(head, by_cpu=by_cpu))
    turns = [(before, after) for before, after in neighbours if before > 0 and after > 0]
    if len(turns) < LEAST_TURNS or len(base.turns) != len(head.turns):
        return []
    return sorted(after / before for before, after in turns)


def _turns(samples: Samples, *, by_cpu: bool) -> list[float]:
    """Return one number for each turn: the least wall time, or the median of times that others hardly disturb."""
    times = samples.cpu if by_cpu and is_host(samples) else samples.durations
    ends = list(accumulate(samples.turns))
    if not ends or ends[-1] != len(times) or min(samples.turns) < 1:
        return []
    of_turn = min if is_host(samples) and not by_cpu else lambda times: middle(sorted(times))
    return [of_turn(times[end - count : end]) for end, count in zip(ends, samples.turns)]


def is_host(samples: Samples) -> bool:
    return samples.timer in {"host", "region"}


def computes(side: Sequence[Samples]) -> bool:
    """Return whether the call is a single computing thread, which in most processes only waits for a processor."""
    # On a busy core every sample may lose time to a queue. A longer call loses more than its share, so wall time would
    # exaggerate its slowdown.
    return median(sorted(min(least_stretch(samples), _wall_over_cpu(samples) or math.inf) for samples in side)) <= BOUND


def _wall_over_cpu(samples: Samples) -> float | None:
    """Return the thread's time without queues over its CPU time; None if unknown."""
    cpu = fmean(samples.cpu) if samples.cpu and not samples.threaded else 0.0
    return (cpu + samples.blocked) / cpu if samples.blocked is not None and cpu > 0 else None


def _has_cpu_times(samples: Samples) -> bool:
    """Return whether every sample has a CPU time: a coarse clock reads none for a short call."""
    return len(samples.cpu) == len(samples.durations) and min(samples.cpu) > 0


def least_stretch(samples: Samples) -> float:
    if len(samples.cpu) != len(samples.durations) or samples.threaded:
        return math.inf
    return min((wall / cpu for wall, cpu in zip(samples.durations, samples.cpu) if cpu > 0), default=math.inf)


def time_of(samples: Samples, *, by_cpu: bool) -> float:
    """Return the lowest tenth of CPU times, or the smallest wall time, since disturbances only add time."""
    # A device's own times have no such disturbances, so the median is taken. Recorded data chose each
    # (docs/verdicts.md).
    if not is_host(samples):
        return middle(sorted(samples.durations))
    ordered = sorted(samples.cpu if by_cpu else samples.durations)
    return ordered[(len(ordered) - 1) // 10] if by_cpu else ordered[0]


def spread(samples: Samples, *, by_cpu: bool) -> float:
    """Return the interquartile range within the process, as a fraction of its median."""
    ordered = sorted(samples.cpu if by_cpu else samples.durations)
    return interquartile_range(ordered) / median(ordered)


_LEVEL = 0.15
"""Nearly four standard deviations between runs on the noisiest kind of machine."""


def scatter_of(entries: Sequence[HistoryEntry], time: float) -> tuple[float, int]:
    """Return (relative scatter between runs at the accepted level, number of runs)."""
    times = [entry.time for entry in _of_level(entries, time)]
    return scatter_of_neighbours(times), len(times)


def _of_level(entries: Sequence[HistoryEntry], time: float) -> list[HistoryEntry]:
    """Return the newest runs, back to the first that differs by more than any machine's scatter."""
    return list(takewhile(lambda s: of_level(s.time, time), reversed(entries)))


def of_level(measured: float, time: float) -> bool:
    """Return whether two times differ by no more than machines scatter between runs."""
    return 0 < measured < math.inf and time > 0 and abs(math.log(measured / time)) <= _LEVEL


SHORTEST_NS, LONGEST_NS = 1e-6, 1e18
"""A femtosecond and some thirty years; values outside cannot be times of a call."""


def all_possible(ordered: Sequence[float]) -> bool:
    """Return whether sorted samples are all possible times of a call; a NaN shows in the sum."""
    return bool(ordered) and ordered[0] >= SHORTEST_NS and ordered[-1] <= LONGEST_NS and math.isfinite(sum(ordered))


def untimed(samples: Samples) -> str:
    """Return why one process's samples are not times of a call; "" if they are."""
    if not samples.durations:
        discards = _discards_text(samples)
        return f"every sample was discarded: {discards}" if discards else "there is no sample"
    lost = next((problem.what for problem in samples.problems if problem.code == "bad-timing"), "")
    return lost or ("" if all_possible(sorted(samples.durations)) else _reads(samples.durations, ""))


def _discards_text(samples: Samples) -> str:
    return ", ".join(f"{d.count} x {d.reason}" for d in samples.discarded)


def _reads(durations: Sequence[float], within: str) -> str:
    at = next(n for n, duration in enumerate(durations) if not SHORTEST_NS <= duration <= LONGEST_NS)
    absurd = ", and no call can take such a time" if 0 < durations[at] < math.inf else ""
    return f"sample {at + 1} of {len(durations)}{within} reads {durations[at]} ns{absurd}"


def problems_of(measurement: Measurement, metrics: MetricSet, *, timed: bool) -> tuple[Problem, ...]:
    """Return all problems that make every limit on this measurement INVALID; ``timed`` if it has a summary."""
    recorded = [*measurement.problems, *[p for process in measurement.processes for p in process.problems]]
    samples = () if timed else _untrusted(measurement)
    return (*dict.fromkeys(recorded), *samples, *_above_peak(measurement, metrics))


def _untrusted(measurement: Measurement) -> Iterator[Problem]:
    for number, process in enumerate(measurement.processes, 1):
        durations = process.durations
        if not durations:
            why = _discards_text(process)
            what = f"every sample of process {number} was discarded: {why}" if why else f"process {number} is empty"
            yield Problem(code="no-samples", what=what)
        elif not all_possible(sorted(durations)):
            what = _reads(durations, f" in process {number}")
            yield Problem(code="bad-timing", what=what, retry=process.timer != "record")


def _above_peak(measurement: Measurement, metrics: MetricSet) -> Iterator[Problem]:
    """Yield problems of figures above a physical peak; measured ceilings are not included."""
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
"""The assumed number of neighbours if it is unknown."""

MOST = 2.0
"""The most neighbours that can slow one call: the core's other thread, and shared memory."""

BUSY = 0.5
"""Processors in use by others from which a run is too disturbed to judge others by it."""

FEW = 0.05
"""Processors in use by others below which nothing is reported."""


def busy_processors(processes: Sequence[Samples]) -> float:
    """Return the processors that others kept busy beside a run on the host, if more than half of one, else 0."""
    loads = sorted(samples.others for samples in processes if samples.others is not None and is_host(samples))
    neighbours = median(loads) if loads else 0.0
    return min(neighbours, MOST) if neighbours > BUSY else 0.0


def excused(processes: Sequence[Samples], time: float, reach: float) -> str:
    """Return why a run that is slower than ``reach`` is not confirmed; "" if it may be."""
    # Times of a device, or measured elsewhere, have no neighbours. On the host, waits for a processor are not the
    # call's own, and the rest may be slower by what neighbours took of shared resources.
    if not all(is_host(samples) and samples.durations for samples in processes):
        return ""
    if len(processes) < LEAST:
        count = plural(len(processes), "process", "processes")
        return f"{count} cannot show how far processes differ: it takes {LEAST}"
    own = [_time_alone(samples) for samples in processes]
    times = [number for number in own if number is not None]
    if len(times) < len(own):
        return "it is unknown how long the calls waited for a processor"
    shift = median(sorted(times)) / time - 1
    neighbours = min(max(UNKNOWN if samples.others is None else samples.others for samples in processes), MOST)
    shared = (1 + reach) * (1 + (neighbours if neighbours > FEW else 0.0)) - 1
    if shift > shared:
        return ""
    text = f"without the wait for a processor it is {signed(shift) if shift > 0 else 'no slower'}"
    if shift <= reach:
        return f"{text}: the machine was busy"
    return f"with {neighbours:.1f} processors in use by others up to {detectable(shared)}, and {text}"


def _time_alone(samples: Samples) -> float | None:
    """Return a call's time without queueing, at most its usual time."""
    if samples.unqueued is not None:
        return min(samples.unqueued, median(sorted(samples.durations)))
    return median(sorted(samples.cpu)) if computes([samples]) else None


BESIDE = "paired, against "
"""The prefix before the base in the source of a slowdown that two arms found."""


def slow_words(paired: Paired) -> str:
    """Return ``more slow processes (10 of 30, 0 in the base)``, if Fisher's test confirmed that."""
    if paired.slow is None:
        return ""
    head, base = paired.slow
    return f"more slow processes ({head} of {paired.rounds}, {base} in the base)"


def indistinguishable(paired: Paired) -> str:
    """Return files that changed since the base, but that both arms took from the head."""
    shown, base = first_of(paired.shared, 3), paired.base or "the base"
    return shown if shown == EQUAL_TIMES else f"{shown} changed since {base}, and both builds read the head's version"


def time_to_decide(paired: Paired) -> str:
    """Return the time that would decide an undecided case, or that hardly any would."""
    how = "more rounds would hardly" if math.isinf(paired.wants_s) else f"{about(paired.wants_s)} more would"
    return f"; {how} decide" if paired.wants_s else ""


def shift_metric(paired: Paired) -> Metric:
    return Metric(
        name="slowdown",
        value=paired.shift,
        dimension=Dimension.FRACTION,
        interval=paired.interval,
        source=f"{BESIDE}{paired.base}",
    )


def power_facts(paired: Paired) -> Iterator[tuple[str, str]]:
    """Yield power and clock of both sides, if the device was at its power limit."""
    if paired.limited is None:
        return
    facts = []
    for both, unit, by in ((paired.limited.clocks_hz, "MHz", 1e6), (paired.limited.watts, "W", 1.0)):
        if both is not None:
            then, now = (f"{figure / by:.0f} {unit}" for figure in both)  # as a block says the clock of its run
            facts.append(f"{then} then, {now} now")
    decides = "; turns of a second decide, because short ones share one clock" if paired.limited.decides else ""
    yield "power", f"at the device's limit: {', '.join(facts) or 'clocks are not known'}{decides}"


def base_words(paired: Paired) -> str:
    """Return ``base 33bcf03592 in 9 rounds: +4.2 %``."""
    base = f"base {paired.base}" if paired.base else "the base"
    if paired.without_rounds:
        return f"{base}, which has the same {'package' if paired.shared else 'code'}"
    return f"{base} in {plural(paired.rounds, 'round')}: {signed(paired.shift)}"


def with_confirmation(ruling: Ruling, screened: Metric, paired: Paired, processes: int) -> Ruling:
    """Return a ruling with the confirming figure, and the screening's figure below it."""
    if paired.without_rounds:
        return ruling._replace(metric=None)
    between = edges(screened, change=True)
    text = f"{signed(screened.value)} {between}".rstrip() + f" of {plural(processes, 'process', 'processes')}"
    return ruling._replace(
        metric=shift_metric(paired),
        rounds=paired.rounds,
        evidence=(*ruling.evidence, ("against the accepted time", text)),
    )
