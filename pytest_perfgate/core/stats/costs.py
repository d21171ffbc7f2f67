"""What a run costs: guessed, learnt from earlier runs and its own first round; how shards divide it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.render.words import about, plural
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import CaseResult


STARTING = ""
"""Among the costs of cases: what a round takes beside them, the starting of its child above all."""

START_S = 1.0
"""A guess at that, for the first run."""

_SHORTEST = 0.1
"""The part of its sampling time that a case keeps at least."""


def cost_line(cases: Iterable[Case], known: Mapping[str, float], part: float = 1.0) -> str:
    """``38 cases, 3 rounds, about 1 min 10 s``: no bound, for nobody knows how busy the machine will be."""
    cases = list(cases)
    guessed = sum(case.nodeid not in known for case in cases)
    starts, total = seconds_of(cases, known)
    whole = ", a first guess" if guessed > len(cases) / 2 else ""
    cut = f"; sampling cut to {part:.0%} by the budget" if part < 1 else ""
    rounds = max(case.plan.rounds for case in cases)
    return f"{plural(len(cases), 'case')}, {plural(rounds, 'round')}, {about(starts + part * total)}{whole}{cut}"


def seconds_of(cases: Iterable[Case], known: Mapping[str, float]) -> tuple[float, float]:
    """What starting children takes, and all sampling."""
    cases = list(cases)
    total = sum(case.plan.rounds * known.get(case.nodeid, _most_s(case)) for case in cases)
    return max((case.plan.rounds for case in cases), default=0) * known.get(STARTING, START_S), total


def affordable(cases: Iterable[Case], known: Mapping[str, float], left_s: float) -> float:
    """The part of their sampling time that so many seconds allow."""
    starts, total = seconds_of(cases, known)
    sampling_s = max(0.0, left_s - starts)
    return 1.0 if total <= sampling_s else max(_SHORTEST, sampling_s / total)


def _most_s(case: Case) -> float:
    """What a round of a case takes at most, if sampling is all that it does."""
    return (case.plan.warmup_ns + case.plan.budget_ns) / 1e9


def costs_of(results: Mapping[str, CaseResult], took_s: float) -> dict[str, float]:
    """What to expect of the next run: seconds of a round of each case, and of a round beside its cases.

    Where cases ran on several devices at once the whole takes no longer than its parts, and tells nothing of starting.
    """
    measured = {nodeid: result for nodeid, result in results.items() if result.captures}
    costs = {nodeid: round(result.seconds, 4) for nodeid, result in measured.items()}
    rounds = max((result.case.plan.rounds for result in measured.values()), default=0)
    sampling = sum(result.case.plan.rounds * result.seconds for result in measured.values())
    complete = len(measured) == len(results)
    return {**costs, STARTING: round((took_s - sampling) / rounds, 4)} if complete and took_s > sampling > 0 else costs


_LONGEST_START_S = 15.0
"""A guess at a child's start-up is no longer: threads of a library count their time several times."""


def starting_guess(cpu_s: float) -> dict[str, float]:
    """The start-up of a child before any was measured: this process has collected the same."""
    return {STARTING: min(_LONGEST_START_S, max(START_S, cpu_s))}


class TimeLeft:
    """What a run still takes: each case as this run saw it, else as known or guessed, and the starting of children."""

    def __init__(self, cases: Sequence[Case], known: Mapping[str, float], clock: Callable[[], float]) -> None:
        self._clock, self._begun = clock, clock()
        self._expected = {case.nodeid: known.get(case.nodeid, _most_s(case)) for case in cases}
        self._learnt = all(case.nodeid in known for case in cases) and STARTING in known
        self._rounds = {case.nodeid: case.plan.rounds for case in cases}
        self._taken: dict[str, list[float]] = {case.nodeid: [] for case in cases}
        self._start_s = known.get(STARTING, START_S)
        self._started = 0
        """Rounds of which a case has ended."""

    def note(self, number: int, nodeid: str, took_s: float, *, last: bool) -> None:
        """A case has ended in a round, for the last time perhaps."""
        self._taken[nodeid].append(took_s)
        if last:
            self._rounds[nodeid] = len(self._taken[nodeid])
        if number >= self._started:
            self._started = number + 1
            self._start_s = max(0.0, self._clock() - self._begun - self._sampled_s) / self._started

    def extend(self, nodeids: Iterable[str], rounds: int) -> None:
        """These take part in more rounds than they were to."""
        self._rounds.update(dict.fromkeys(nodeids, rounds))

    @property
    def learnt(self) -> bool:
        """Whether it stands on more than a guess: on an earlier run, or on every case seen once."""
        return self._learnt or all(self._taken.values())

    @property
    def left_s(self) -> float:
        """Seconds; where devices measure side by side, as many at once as until now."""
        sampling = sum(self._rounds_left(nodeid) * self._cost_s(nodeid) for nodeid in self._rounds)
        starting = (max(self._rounds.values(), default=0) - self._started) * self._start_s
        at_once = max(1.0, self._sampled_s / max(self._clock() - self._begun, 1e-9))
        return sampling / at_once + max(0.0, starting)

    @property
    def _sampled_s(self) -> float:
        return sum(map(sum, self._taken.values()))

    def _rounds_left(self, nodeid: str) -> int:
        return max(0, self._rounds[nodeid] - len(self._taken[nodeid]))

    def _cost_s(self, nodeid: str) -> float:
        taken = self._taken[nodeid]
        return fmean(taken) if taken else self._expected[nodeid]


PAIRED = "two builds"
"""Among the costs: what a round of two builds takes beside its tests; of a test in it, with its node id behind."""

PAIR_START_S, PAIR_TEST_S = 2.5, 0.25
"""A guess at what starting two processes takes, and one test in both."""


class PairCost(NamedTuple):
    """What a round of two builds takes."""

    start_s: float = PAIR_START_S
    test_s: float = PAIR_TEST_S

    def rounds_s(self, cases: int, rounds: int) -> float:
        """Seconds of so many rounds of so many cases, beside the making of two builds."""
        return rounds * (self.start_s + cases * self.test_s)


def pair_cost(nodeids: Iterable[str], known: Mapping[str, float]) -> PairCost:
    """As the last comparison took it; before the first, two processes start no faster than one."""
    start_s = known.get(PAIRED, max(PAIR_START_S, known.get(STARTING, 0.0)))
    tests = [known.get(f"{PAIRED} {nodeid}", PAIR_TEST_S) for nodeid in nodeids]
    return PairCost(start_s, fmean(tests) if tests else PAIR_TEST_S)


def paired_costs(tests: Mapping[str, float], start_s: float) -> dict[str, float]:
    """What to expect of the next comparison; one that played no round teaches nothing."""
    costs = {f"{PAIRED} {nodeid}": round(cost, 4) for nodeid, cost in tests.items() if cost > 0}
    return {**costs, PAIRED: round(start_s, 4)} if costs and start_s > 0 else costs


def bare_name(nodeid: str) -> str:
    """The test without its parameters."""
    return nodeid.partition("[")[0]


def divided(
    nodeids: Iterable[str], count: int, costs: Mapping[str, float] | None = None, bound: Collection[str] = ()
) -> dict[str, int]:
    """The shard of every test, from 1.

    Tests whose cost is known are spread so that all shards take as long; that rests on the costs alone, so a test that
    is added moves no other, and goes where its name leads. Without costs names lead all, to about as many each. A
    family stays whole, unless it alone would take more than a shard should and is not ``bound``, by a limit that speaks
    of all of it.
    """
    known, names = dict(costs or {}), list(nodeids)
    alone = _too_large(known or dict.fromkeys(names, 1.0), count, bound)
    units = Counter(_unit(name, alone) for name in names)
    placed = _spread(known, count, alone) if known else _by_names(units, count)
    return {name: placed.get(unit) or _ranked(unit, count)[0] for name in names for unit in [_unit(name, alone)]}


def _unit(nodeid: str, alone: Collection[str]) -> str:
    """What is placed as one: a family, or a single test of one that is divided."""
    family = bare_name(nodeid)
    return nodeid if family in alone else family


def _too_large(costs: Mapping[str, float], count: int, bound: Collection[str]) -> frozenset[str]:
    """Families that take more than a shard's part of the whole."""
    totals: defaultdict[str, float] = defaultdict(float)
    for nodeid, cost in costs.items():
        totals[bare_name(nodeid)] += cost
    part = sum(totals.values()) / count
    return frozenset(family for family, total in totals.items() if total > part and family not in bound)


def _spread(costs: Mapping[str, float], count: int, alone: Collection[str]) -> dict[str, int]:
    """The longest first, each to the shard that has least."""
    units: defaultdict[str, float] = defaultdict(float)
    for nodeid, cost in costs.items():
        units[_unit(nodeid, alone)] += cost
    loads = [0.0] * count
    placed: dict[str, int] = {}
    for unit, cost in sorted(units.items(), key=lambda pair: (-pair[1], pair[0])):
        least = min(range(count), key=lambda at: (loads[at], at))
        loads[least] += cost
        placed[unit] = least + 1
    return placed


_ROOM = 1.1
"""How many more tests than its part a shard takes before they go to the next."""


def _by_names(units: Mapping[str, int], count: int) -> dict[str, int]:
    """Each to the first of its shards that has room: one test more moves few others, if any."""
    most, loads = math.ceil(_ROOM * sum(units.values()) / count), [0] * count
    placed: dict[str, int] = {}
    for unit in sorted(units, key=_hash):
        ranked = _ranked(unit, count)
        index = next((one for one in ranked if loads[one - 1] + units[unit] <= most), 0)
        index = index or min(ranked, key=lambda one: loads[one - 1])
        loads[index - 1] += units[unit]
        placed[unit] = index
    return placed


def _ranked(unit: str, count: int) -> list[int]:
    """All shards in an order of its own: one shard more takes its part of each other."""
    return sorted(range(1, count + 1), key=lambda index: _hash(f"{unit}\0{index}"))


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def costs_digest(costs: Mapping[str, float]) -> str:
    """Tells whether two shards divided the run by the same costs."""
    if not costs:
        return ""
    lines = "\n".join(f"{name} {cost!r}" for name, cost in sorted(costs.items()))
    return hashlib.blake2b(lines.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def positions(universe: Sequence[str], chosen: Collection[str]) -> tuple[int, ...]:
    """Where the chosen stand in the universe."""
    return tuple(at for at, nodeid in enumerate(universe) if nodeid in chosen)


SCREENING = 0.4
"""The part of a budget that the accepted times may take: the rest is for the two builds."""


@value
class Want:
    """What one case asks for before it is decided."""

    rounds: int
    seconds: float
    """Of one round."""
    suspected: bool
    """It reads slower than its limit."""

    @property
    def cost(self) -> float:
        return self.rounds * self.seconds


@value
class Allotment:
    """Rounds by case, and those that the budget does not reach."""

    rounds: Mapping[str, int]
    beyond: Mapping[str, Want]
    cost: float
    """Seconds, the starting of processes included."""


def allotted(wants: Mapping[str, Want], left_s: float, start_s: float) -> Allotment:
    """What reads slower first, then the rest; of each those that are nearest to a decision.

    A round starts its processes once for all cases in it, so rounds that others have anyway cost less.
    """
    granted: dict[str, Want] = {}
    beyond: dict[str, Want] = {}
    for name, want in sorted(wants.items(), key=lambda pair: (not pair[1].suspected, pair[1].cost)):
        fits = cost_of({**granted, name: want}.values(), start_s) <= left_s
        (granted if fits else beyond)[name] = want
    rounds = {name: want.rounds for name, want in granted.items()}
    return Allotment(rounds=rounds, beyond=beyond, cost=cost_of(granted.values(), start_s))


def cost_of(wants: Iterable[Want], start_s: float) -> float:
    """Seconds of rounds that are played together."""
    wants = list(wants)
    return max((want.rounds for want in wants), default=0) * start_s + math.fsum(want.cost for want in wants)
