"""One number for a process: the time that is the code's, not its neighbours'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean

from pytest_perfgate.core.gate.clocks import limited, paired_clocks, settled_turns
from pytest_perfgate.core.gate.rounds import Pairs
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.paired import PowerLimited
from pytest_perfgate.model.samples import Samples, Settled

BOUND = 1.02
"""Wall over CPU time of the least stretched sample, up to which a call is nothing but computing."""
CLOCKS_APART, WATTS_APART = 0.005, 0.02
"""How far the clocks, or the watts, of two builds lie apart that share neither."""
LEAST_TURNS = 3
"""Of fewer turns the middle is no witness."""


def pair_of(rounds: Sequence[tuple[Capture, Capture]]) -> Pairs:
    """Base and head of every round as one number each, by the same clock on both sides.

    The base is the number of its process; the head is as far from it as the turns of the two were apart.
    """
    if differs_in_power(long := settled_turns(rounds)):
        spreads = sorted(spread(capture.samples[-1], busy=False) for both in rounds for capture in both)
        base, head = zip(*((before.time, after.time) for before, after in long))
        return Pairs(base=base, head=head, spread=median(spreads))
    sides = [[capture.samples[-1] for capture in side] for side in zip(*rounds)]
    busy = all(computes(side) and all(map(_witnessed, side)) for side in sides)
    base = tuple(time_of(samples, busy=busy) for samples in sides[0])
    head = tuple(time * apart(*both, busy=busy) for time, both in zip(base, zip(*sides)))
    spreads = sorted(spread(samples, busy=busy) for side in sides for samples in side)
    return Pairs(base=base, head=head, spread=median(spreads))


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
    known = [(base, head) for base, head in pairs if base and head]
    if len(known) < len(pairs):
        return None
    base, head = (median(sorted(side)) for side in zip(*known))
    return base, head


def apart(base: Samples, head: Samples, *, busy: bool) -> float:
    """Head over base: the middle of the ratios of neighbouring turns; where none were taken, of the whole processes.

    A process whose clock or neighbours change half way is far from itself; its turns are not far from the other's.
    """
    neighbours = zip(_turns(base, busy=busy), _turns(head, busy=busy))
    turns = [(before, after) for before, after in neighbours if before > 0 and after > 0]
    if len(turns) < LEAST_TURNS or len(base.turns) != len(head.turns):
        return time_of(head, busy=busy) / time_of(base, busy=busy)
    return median(sorted(after / before for before, after in turns))


def _turns(samples: Samples, *, busy: bool) -> list[float]:
    """One number a turn: the least, or the middle of a device's own times."""
    times = samples.cpu if busy and is_host(samples) else samples.durations
    ends = list(accumulate(samples.turns))
    if not ends or ends[-1] != len(times) or min(samples.turns) < 1:
        return []
    of_turn = min if is_host(samples) else _middle
    return [of_turn(times[end - count : end]) for end, count in zip(ends, samples.turns)]


def _middle(times: Sequence[float]) -> float:
    return median(sorted(times))


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


def _witnessed(samples: Samples) -> bool:
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
