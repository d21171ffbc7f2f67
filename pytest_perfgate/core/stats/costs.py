"""The cost of a run: guessed, then learnt from earlier runs and its first round; division into shards."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.render.words import about, plural, span
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import CaseResult
    from pytest_perfgate.model.verdict import CaseReport, PairedRound

STARTING = ""
"""The key, among the costs of cases, of a round's time outside of them, mostly the start of its child."""

START_S = 1.0  # the guess at that for the first run

_SHORTEST = 0.1  # the least part of its sampling time that a case keeps


def cost_line(cases: Iterable[Case], known: Mapping[str, float], part: float = 1.0) -> str:
    """Return ``38 tests, 3 rounds, about 1 min 10 s``, without a bound, since a busy machine takes longer."""
    cases = list(cases)
    guessed = sum(case.nodeid not in known for case in cases)
    starts, total = seconds_of(cases, known)
    whole = ", a first guess" if guessed > len(cases) / 2 else ""
    cut = f"; sampling cut to {part * 100:.0f} % by the budget" if part < 1 else ""
    rounds = max(case.plan.rounds for case in cases)
    return f"{plural(len(cases), 'test')}, {plural(rounds, 'round')}, {about(starts + part * total)}{whole}{cut}"


def seconds_of(cases: Iterable[Case], known: Mapping[str, float]) -> tuple[float, float]:
    """Return the time of starting children, and of all sampling."""
    cases = list(cases)
    total = sum(case.plan.rounds * known.get(case.nodeid, _most_s(case)) for case in cases)
    return max((case.plan.rounds for case in cases), default=0) * known.get(STARTING, START_S), total


def affordable(cases: Iterable[Case], known: Mapping[str, float], left_s: float) -> float:
    """Return the part of the sampling time that fits so many seconds."""
    starts, total = seconds_of(cases, known)
    sampling_s = max(0.0, left_s - starts)
    return 1.0 if total <= sampling_s else max(_SHORTEST, sampling_s / total)


def _most_s(case: Case) -> float:
    """Return the longest time of a round of a case, if it only samples."""
    return (case.plan.warmup_ns + case.plan.budget_ns) / 1e9


def costs_of(results: Mapping[str, CaseResult], took_s: float) -> dict[str, float]:
    """Return the costs for the next run: seconds of a round of each case, and of a round outside its cases."""
    # If cases ran on several devices at once, the total shows nothing about starting.
    measured = {nodeid: result for nodeid, result in results.items() if result.captures}
    costs = {nodeid: round(result.seconds, 4) for nodeid, result in measured.items()}
    sampling = sum(result.case.plan.rounds * result.seconds for result in measured.values())
    if len(measured) < len(results) or not took_s > sampling > 0:
        return costs
    rounds = max(result.case.plan.rounds for result in measured.values())
    return {**costs, STARTING: round((took_s - sampling) / rounds, 4)}


_LONGEST_START_S = 15.0
"""The longest guess at a child's start, since CPU time counts the threads of a library separately."""


def starting_guess(cpu_s: float) -> dict[str, float]:
    """Return the guess at a child's start from this process's time, which has collected the same tests."""
    return {STARTING: min(_LONGEST_START_S, max(START_S, cpu_s))}


class TimeLeft:
    """The remaining time of a run: of each case as in this run, else as known or guessed, and of starts."""

    def __init__(self, cases: Sequence[Case], known: Mapping[str, float], clock: Callable[[], float]) -> None:
        self._clock, self._begun = clock, clock()
        self._expected = {case.nodeid: known.get(case.nodeid, _most_s(case)) for case in cases}
        self._learnt = all(case.nodeid in known for case in cases) and STARTING in known
        self._rounds = {case.nodeid: case.plan.rounds for case in cases}
        self._seconds: dict[str, list[float]] = {case.nodeid: [] for case in cases}
        self._start_s = known.get(STARTING, START_S)
        self._started, self._first_s = 0, 0.0  # rounds that have begun, and what the first start took

    def note(self, number: int, nodeid: str, took_s: float, *, last: bool) -> None:
        """Note that a case has finished a round, possibly its last."""
        self._seconds[nodeid].append(took_s)
        if last:
            self._rounds[nodeid] = len(self._seconds[nodeid])
        if number >= self._started:
            self._started = number + 1
            beside_s = max(0.0, self._clock() - self._begun - self._sampled_s)
            self._first_s = self._first_s if number else beside_s  # files are read from the disk in the first round
            self._start_s = max(0.0, beside_s - self._first_s) / number if number else beside_s

    def extend(self, nodeids: Iterable[str], rounds: int) -> None:
        """Give these cases more rounds than planned."""
        self._rounds.update(dict.fromkeys(nodeids, rounds))

    @property
    def learnt(self) -> bool:
        """Return whether it is based on more than guesses: on an earlier run, or on every case run once."""
        return self._learnt or all(self._seconds.values())

    @property
    def left_s(self) -> float:
        """Return the remaining seconds, at the present rate of parallel devices."""
        left = {nodeid: max(0, rounds - len(self._seconds[nodeid])) for nodeid, rounds in self._rounds.items()}
        sampling = sum(rounds * self._cost_s(nodeid) for nodeid, rounds in left.items())
        starting = (max(self._rounds.values(), default=0) - self._started) * self._start_s
        at_once = max(1.0, self._sampled_s / max(self._clock() - self._begun, 1e-9))
        return sampling / at_once + max(0.0, starting)

    @property
    def _sampled_s(self) -> float:
        return sum(map(sum, self._seconds.values()))

    def _cost_s(self, nodeid: str) -> float:
        costs = self._seconds[nodeid]
        return fmean(costs) if costs else self._expected[nodeid]


PAIRED = "two builds"
"""Keys, among the costs, of a round of two builds outside its tests, and of a test in it with its node id."""

PAIR_START_S, PAIR_TEST_S = 2.5, 0.25
"""Guesses at the start of two processes, and at one test in both."""


class PairCost(NamedTuple):
    """The cost of a round of two builds."""

    start_s: float = PAIR_START_S
    test_s: float = PAIR_TEST_S
    learnt: bool = False
    """Whether an earlier comparison of this project took so long."""

    def between(self, cases: int, least: int, most: int, left_s: float = math.inf) -> str:
        """Return ``28 s to 2 min, a first guess``: so many rounds of so many cases, without making the builds."""
        # The data decide the number of rounds, and a budget ends them: what does not fit into it is ``8 min or more``.
        low_s, high_s = (rounds * (self.start_s + cases * self.test_s) for rounds in (least, most))
        rest = ""
        if low_s > left_s:
            rest = " or more"
        elif low_s != high_s:
            rest = f" to {span(min(left_s, high_s))}"
        return f"{span(low_s)}{rest}{'' if self.learnt else ', a first guess'}"


def pair_cost(nodeids: Iterable[str], known: Mapping[str, float]) -> PairCost:
    """Return the cost by the last comparison; before the first, two processes start in one to two times that of one."""
    one_s = known.get(STARTING, PAIR_START_S)
    start_s = known.get(PAIRED, max(one_s, min(PAIR_START_S, 2 * one_s)))
    tests = [known.get(f"{PAIRED} {nodeid}", PAIR_TEST_S) for nodeid in nodeids]
    return PairCost(start_s, fmean(tests) if tests else PAIR_TEST_S, PAIRED in known)


class PairTimes:
    """What rounds of two builds took so far: least and most outside of the tests, and of each test in both builds."""

    def __init__(self, rounds: Iterable[PairedRound], started_s: float | None = None) -> None:
        """``started_s`` is what the start of the present round took."""
        starts: defaultdict[int, float] = defaultdict(float)
        self._tests, self._timed = defaultdict[str, list[float]](list), set[str]()
        for round_ in rounds:
            if round_.share_s:
                starts[round_.number] += round_.share_s - round_.seconds
            self.add(round_)
        first, *later = [starts[number] for number in sorted(starts)] or [0.0]
        later += [started_s] if started_s is not None else []
        self.starts = later or [first]  # files are read from the disk in the first round

    def add(self, one: PairedRound) -> None:
        """Count one more test of the present round."""
        self._tests[one.nodeid].append(one.seconds)
        if any(capture.samples for capture in one.head):
            self._timed.add(one.nodeid)

    @property
    def costs(self) -> dict[str, float]:
        """Return the costs for the next comparison."""
        return paired_costs(self.usual, median(self.starts))

    @property
    def usual(self) -> dict[str, float]:
        """Return the mean time of each test in a round."""
        return {nodeid: fmean(seconds) for nodeid, seconds in self._tests.items() if seconds}

    def left_s(self, nodeids: Sequence[str], done: int, rounds: tuple[int, int]) -> tuple[float, float]:
        """Return the least and the most seconds of the rest of a round, and of so many further ones."""
        # Only a test that is timed has all of the least rounds. A round takes as long as the quickest or slowest so
        # far.
        low = {name: min(self._tests[name], default=0.0) for name in nodeids}
        high = {name: max(self._tests[name], default=math.inf) for name in nodeids}
        sure = sum(low[name] for name in nodeids if name in self._timed)
        least_s = math.fsum(low[name] for name in nodeids[done:]) + rounds[0] * (sure and sure + min(self.starts))
        further_s = rounds[1] * (max(self.starts) + math.fsum(high.values())) if rounds[1] else 0.0  # not 0 * inf
        return least_s, math.fsum(high[name] for name in nodeids[done:]) + further_s


def left_words(least_s: float, most_s: float) -> str:
    """Return ``at least 12 s, at most 1 min 8 s left``."""
    least = [f"at least {span(least_s)}"] if least_s >= 1 or most_s == math.inf else []
    most = [f"at most {span(max(1.0, most_s))}"] if most_s < math.inf else []
    return f"{', '.join(least + most)} left"


def paired_costs(tests: Mapping[str, float], start_s: float) -> dict[str, float]:
    """Return the costs for the next comparison; a comparison without rounds has none."""
    costs = {f"{PAIRED} {nodeid}": round(cost, 4) for nodeid, cost in tests.items() if cost > 0}
    return {**costs, PAIRED: round(start_s, 4)} if costs and start_s > 0 else costs


def bare_name(nodeid: str) -> str:
    """Return the test without its parameters."""
    return nodeid.partition("[")[0]


def divided(
    nodeids: Iterable[str], count: int, costs: Mapping[str, float] | None = None, bound: Collection[str] = ()
) -> dict[str, int]:
    """Return the shard of every test, from 1."""
    # Tests of known cost are spread for equal time, by these costs alone, so that a new test moves no other; it is
    # placed by its name. Without costs all are placed by names, about equally many each. A family stays whole unless it
    # alone takes more than a shard's part and is not ``bound`` by a limit on all of it.
    known, names = dict(costs or {}), list(nodeids)
    alone = _too_large(known or Counter({*names}), count, bound)
    units = Counter(_unit(name, alone) for name in names)
    placed = _spread(known, count, alone) if known else _by_names(units, count)
    places = {unit: placed.get(unit) or _ranked(unit, count)[0] for unit in units}
    return {name: places[_unit(name, alone)] for name in names}


def _unit(nodeid: str, alone: Collection[str]) -> str:
    """Return what is placed together: a family, or a single test of a divided one."""
    family = bare_name(nodeid)
    return nodeid if family in alone else family


def _too_large(costs: Mapping[str, float], count: int, bound: Collection[str]) -> frozenset[str]:
    """Return families that take more than a shard's part of the whole."""
    totals: defaultdict[str, float] = defaultdict(float)
    for nodeid, cost in costs.items():
        totals[bare_name(nodeid)] += cost
    part = sum(totals.values()) / count
    return frozenset(family for family, total in totals.items() if total > part and family not in bound)


def _spread(costs: Mapping[str, float], count: int, alone: Collection[str]) -> dict[str, int]:
    """Assign the longest first, each to the shard with the least time."""
    units: defaultdict[str, float] = defaultdict(float)
    for nodeid, cost in costs.items():
        units[_unit(nodeid, alone)] += cost
    loads: defaultdict[int, float] = defaultdict(float)
    placed: dict[str, int] = {}
    for unit, cost in sorted(units.items(), key=lambda pair: (-pair[1], pair[0])):
        least = min(range(1, count + 1), key=lambda one: loads[one])
        loads[least] += cost
        placed[unit] = least
    return placed


_ROOM = 1.1
"""How many tests unreached its part a shard takes before the next one is tried."""


def _by_names(units: Mapping[str, int], count: int) -> dict[str, int]:
    """Assign each to its first shard with room, so that a new test moves few others."""
    most, loads = math.ceil(_ROOM * sum(units.values()) / count), Counter[int]()
    placed: dict[str, int] = {}
    for unit in sorted(units, key=_hash):
        ranked = _ranked(unit, count)
        index = next((i for i in ranked if loads[i] + units[unit] <= most), min(ranked, key=lambda i: loads[i]))
        loads[index] += units[unit]
        placed[unit] = index
    return placed


def _ranked(unit: str, count: int) -> list[int]:
    """Return all shards in an order specific to the unit, so that a further shard takes equally from each."""
    return sorted(range(1, count + 1), key=lambda index: _hash(f"{unit}\0{index}"))


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def costs_digest(costs: Mapping[str, float]) -> str:
    """Return a digest that shows whether two shards used the same costs."""
    if not costs:
        return ""
    lines = "\n".join(f"{name} {cost!r}" for name, cost in sorted(costs.items()))
    return hashlib.blake2b(lines.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def positions(universe: Sequence[str], chosen: Collection[str]) -> tuple[int, ...]:
    return tuple(at for at, nodeid in enumerate(universe) if nodeid in chosen)


SCREENING = 0.4
"""The part of a budget for the measurement against accepted times; the rest is for two builds."""


@value
class NeededRounds:
    """What one case needs until it is decided."""

    rounds: int
    seconds: float  # of one round
    suspected: bool  # whether it seems slower than its limit
    likely: int = 0  # rounds by the scatter so far, however many, which set the order; 0 for the same

    @property
    def cost(self) -> float:
        return self.rounds * self.seconds

    @property
    def likely_cost(self) -> float:
        return (self.likely or self.rounds) * self.seconds


@value
class Allotment:
    """Rounds by case, and the cases that the budget does not reach."""

    rounds: Mapping[str, int]
    unreached: Mapping[str, NeededRounds]
    cost: float  # in seconds, including the starts of processes


def allotted(needs: Mapping[str, NeededRounds], left_s: float, start_s: float) -> Allotment:
    """Allot rounds: suspects first, then the rest, in each group those nearest to a decision."""
    # A round starts its processes once for all its cases, so sharing rounds costs less.
    granted, unreached, most, total = dict[str, int](), dict[str, NeededRounds](), 0, 0.0
    for name, want in sorted(needs.items(), key=lambda pair: (not pair[1].suspected, pair[1].likely_cost)):
        rounds, cost = max(most, want.rounds), total + want.cost
        if rounds * start_s + cost <= left_s:
            granted[name], most, total = want.rounds, rounds, cost
        else:
            unreached[name] = want
    return Allotment(rounds=granted, unreached=unreached, cost=most * start_s + total)


def waiting(needs: Mapping[str, NeededRounds], left_s: float, start_s: float) -> frozenset[str]:
    """Return the tests that wait until cheaper ones are decided, because the budget may be too short for all."""
    # A test waits if its round takes longer than one round of all cheaper tests, unless it reads slower and they do
    # not: otherwise they could reach the end of the budget undecided. Costs are guesses, so twice their sum has to fit.
    if 2 * cost_of(needs.values(), start_s) <= left_s:
        return frozenset()
    late = set()
    for name, want in needs.items():
        cheaper = [o.seconds for o in needs.values() if o.seconds < want.seconds and o.suspected >= want.suspected]
        if cheaper and want.seconds > start_s + math.fsum(cheaper):
            late.add(name)
    return frozenset(late)


TURNS = 26
"""The least number of calls in a round of two builds: ten turns and three calls to warm up, in each build."""


def first_wants(reports: Iterable[CaseReport], known: Mapping[str, float], rounds: int) -> dict[str, NeededRounds]:
    """Return what each test needs before its first round: by the last comparison, or by its own measured time."""
    needs: dict[str, NeededRounds] = {}
    for report in reports:
        nodeid, measured = report.key.nodeid, report.measurement
        times = [metric.value for metric in measured.metrics.find("time")[:1]] if measured is not None else []
        took_s = max([PAIR_TEST_S, *[TURNS * time / 1e9 for time in times]])
        slow = any(verdict.outcome in {Outcome.SUSPECT, Outcome.REGRESSED} for verdict in report.verdicts)
        before = needs.get(nodeid, NeededRounds(rounds=rounds, seconds=0.0, suspected=False))
        seconds = known.get(f"{PAIRED} {nodeid}", before.seconds + took_s)
        needs[nodeid] = NeededRounds(rounds=rounds, seconds=seconds, suspected=before.suspected or slow)
    return needs


def known_wants(nodeids: Iterable[str], known: Mapping[str, float], rounds: int) -> dict[str, NeededRounds]:
    """Return what each test needs before its first round, by earlier comparisons; what none had costs a guess."""
    costs = {nodeid: known.get(f"{PAIRED} {nodeid}", PAIR_TEST_S) for nodeid in nodeids}
    return {nodeid: NeededRounds(rounds=rounds, seconds=cost, suspected=False) for nodeid, cost in costs.items()}


def cost_of(needs: Iterable[NeededRounds], start_s: float) -> float:
    """Return the seconds of rounds that are run together."""
    needs = list(needs)
    return max((want.rounds for want in needs), default=0) * start_s + math.fsum(want.cost for want in needs)
