"""Lock-step rounds: how many are needed, who is suspected, groups of processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import NormalDist, fmean, median
from typing import NamedTuple, TypeVar

from pytest_perfgate.core.stats.inference import far, fisher, pairs_needed, scatter_of, shift_and_interval, signed_rank
from pytest_perfgate.core.stats.summary import GAP, deviation, group_gap, t_quantile, t_tail
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval
from pytest_perfgate.model.plan import LEAST, Compare, Decision, Limit, Operator
from pytest_perfgate.model.values import Dimension, value

K = TypeVar("K")

SURELY = 2.33 + 0.84
"""Standard errors by which a shift passes the 99 % point with a power of 80 %."""

MARGIN = 1 / 3
"""The part of the limit that the test must exclude: placement in memory alone shifts unchanged code by 1 %."""

OFTEN = 30
"""The rounds up to which each is followed by a look; after that, every tenth is."""

IN_CI = 60
"""The last round in CI, unless the budget ends it earlier: a case open after thirty would just stay open."""

TOO_WIDE, _LEAST_GAP, TOO_WIDE_FROM = 5.0, 0.01, 2 * LEAST
"""Half an interval at the last round, over limit and shift, beyond which a case is given up; from this round on."""

CLEARS = 0.0085
"""The error rate of one look in clearing: over all sixty rounds 4.8 % for code slower by exactly its limit.

The signed ranks of all looks have one joint distribution for all symmetric differences, so this sum over looks is exact
(`tests/properties/test_round_rates.py` draws it).
"""

SHIFTED, GROUPED = 0.75, 0.25
"""The parts of the false-alarm rate: for the shift of a case, and for the number of its slow processes."""

FORKS, PRELOADS = 3, 3
"""The rounds forked from one preloaded pair of processes, and the least such pairs for a decision."""

SLOWER_LOOKS = 3
"""The number of looks that may find a case slower: the earliest, the last, and one between them."""


@value
class Design:
    """The number of rounds of a comparison, and its error rates."""

    most: int = OFTEN
    """The rounds after which an open case stays open."""
    alpha: float = 0.01
    """The chance that a clean suite confirms anything."""
    cases: int = 1  # that share it
    clears_same: bool = False  # after one round of the same code on both sides
    least: int = 0
    """The rounds below which a cleared case goes on: those that could confirm a mean over its family."""

    @property
    def level(self) -> float:
        """The error rate of one case at one look in being found slower."""
        return SHIFTED * self.alpha / (SLOWER_LOOKS * max(self.cases, 1))

    @property
    def looks(self) -> tuple[int, ...]:
        """Rounds after which a case may be found slower: from the fewest for which the exact test can reject."""
        first = max(LEAST, pairs_needed(self.level))
        last = max(first, self.most)
        return tuple(sorted({first, math.ceil(math.sqrt(first * last)), last}))

    @property
    def last(self) -> int:
        """The last round of all."""
        return self.looks[-1]


@value
class Pairs:
    """The rounds of one case: nanoseconds of a process on each side, in order."""

    base: tuple[float, ...]
    head: tuple[float, ...]
    spread: float
    """The interquartile range within a process, as a fraction."""
    preloads: tuple[int, ...] = ()
    """The preload of each round, 0 for fresh processes; empty if all were fresh."""
    floor: float = math.inf  # the least scatter of draws of forks: that of fresh pairs of unchanged code here

    @property
    def differences(self) -> tuple[float, ...]:
        """Logarithms of head over base."""
        return tuple(math.log(h / b) for b, h in zip(self.base, self.head))

    def first(self, count: int) -> Pairs:
        """Return the first so many rounds."""
        return replace(self, base=self.base[:count], head=self.head[:count], preloads=self.preloads[:count])

    @property
    def draws(self) -> tuple[tuple[float, ...], ...]:
        """Differences grouped by their start: those of one preload, or of one round."""
        starts = [preload or ~at for at, preload in enumerate(self.preloads or (0,) * len(self.base))]
        groups = groupby(zip(starts, self.differences), key=lambda round_: round_[0])
        return tuple(tuple(difference for _, difference in group) for _, group in groups)

    @property
    def last_draw_complete(self) -> bool:
        """Whether the last draw has all of its rounds."""
        return not self.preloads or not self.preloads[-1] or len(self.draws[-1]) == FORKS


@value
class RoundsResult:
    """The result of the pairs of one case."""

    rounds: int
    shift: float
    """As a fraction."""
    interval: Interval
    """The interval of a look, which clears if its upper end is below the limit."""
    p: float
    """One-sided, of "slower by more than a third of the threshold", corrected for all looks and cases."""
    visible: float
    """The smallest slowdown that these rounds detect; the limit if their interval is below it."""
    unstable: bool
    decision: Decision
    scatter: float
    """Of the differences, as of a round of fresh processes."""
    faster: bool = False
    """Whether it was shown faster, by the test for regressions."""
    settled: bool = False
    """Whether no further round is needed."""
    slow: tuple[int, int] | None = None
    """Slow processes of head and base, if those were the finding."""


class ShiftReading(NamedTuple):
    """Differences without a limit: the shift and the interval that clears, as logarithms."""

    shift: float
    interval: Interval
    p: Callable[[Sequence[float]], float]
    """One-sided, of "above zero"."""


def exact(d: Sequence[float]) -> ShiftReading:
    """Return the reading of fresh pairs by the exact test, for any scatter."""
    return ShiftReading(*shift_and_interval(d, 1 - 2 * CLEARS), signed_rank)


def by_draws(means: Sequence[float], floor: float) -> ShiftReading:
    """Return the reading of draws too few for an exact test: Student's, with at least the scatter of fresh pairs."""
    # Draws of fewer rounds scatter more; for symmetric differences the test then errs less. (B. Efron, 1969.)
    dof, mean = max(1, len(means) - 1), fmean(means)
    error = max(deviation(means, mean), floor) / math.sqrt(len(means))
    reach = t_quantile(1 - CLEARS, dof) * error

    def above(shifted: Sequence[float]) -> float:
        return t_tail(fmean(shifted) / error, dof) if error else float(fmean(shifted) <= 0)

    return ShiftReading(mean, Interval(low=mean - reach, high=mean + reach, confidence=1 - 2 * CLEARS), above)


def one_look(pairs: Pairs, threshold: float, design: Design | None = None) -> RoundsResult:
    """Return shift, interval, groups of processes, and the decision of this look alone."""
    design = design or Design()
    count, draws = len(pairs.base), pairs.draws
    d = [fmean(draw) for draw in draws]
    reading = by_draws(d, pairs.floor) if pairs.preloads else exact(d)
    shift, interval, test = reading
    enough = not pairs.preloads or len({*pairs.preloads} - {0}) >= PRELOADS
    high = _expm1(interval.high) if enough else max(_expm1(interval.high), threshold)  # too few clear nothing
    bounds = Interval(low=_expm1(interval.low), high=high, confidence=interval.confidence)
    p = test(excess_of_each(d, threshold))
    ends = enough and (pairs.last_draw_complete or count >= design.last)
    reached = [look for look in design.looks if ends and count - len(draws[-1]) < look <= count]
    slower = bool(reached) and p <= design.level and shift >= math.log1p(threshold)
    clear = ends and is_look(count) and bounds.high < threshold
    ahead = shift <= -math.log1p(max(threshold, 0.0))
    earliest = design.looks[0]
    faster = earliest in reached and ahead and test(excess_of_each([-x for x in d], threshold)) <= design.level
    groups = unstable(pairs)
    cleared_at = max(design.least, earliest) if ahead else design.least  # later if it may be shown faster
    over = count >= design.last or (not groups and _never_decides(reading, count, threshold, design))
    return RoundsResult(
        rounds=count,
        shift=math.expm1(shift),
        interval=bounds,
        p=min(1.0, p * design.alpha / design.level),
        visible=threshold if bounds.high < threshold else max(threshold, visible(d)),
        unstable=groups,
        decision=Decision.SLOWER if slower else Decision.NOT_SLOWER if clear else Decision.UNDECIDED,
        scatter=(deviation(d, fmean(d)) if pairs.preloads else scatter_of(d)) * math.sqrt(count / len(d)),
        faster=faster,
        settled=slower or over or (clear and count >= cleared_at),
    )


def _never_decides(reading: ShiftReading, count: int, threshold: float, design: Design) -> bool:
    """Return whether even at the last round the interval would be too wide to decide."""
    half = (reading.interval.high - reading.interval.low) / 2 * math.sqrt(count / max(count, design.last))
    enough = max(abs(reading.shift), math.log1p(max(threshold, 0.0)), _LEAST_GAP)
    return count >= TOO_WIDE_FROM and half > TOO_WIDE * enough


def _expm1(bound: float) -> float:
    """Return ``expm1`` of a bound that may be beyond the range of a float."""
    return math.expm1(min(bound, 700.0))


def is_look(count: int) -> bool:
    """Return whether so many rounds may clear; a budget that ends between two looks adds none."""
    return count >= LEAST and (count <= OFTEN or count % 10 == 0)


def all_looks(before: RoundsResult | None, pairs: Pairs, threshold: float, design: Design) -> RoundsResult:
    """Look at the rounds of a case in order, from the last look on; the first look that decides is final."""
    # A cleared case that seems faster, or whose mean needs more, gets rounds up to the look that could show it.
    result = before
    for count in range(result.rounds + 1 if result else 1, len(pairs.base) + 1):
        if result is not None and result.settled:
            return result
        if count < LEAST and count < len(pairs.base):
            continue
        now = one_look(pairs.first(count), threshold, design)
        if result is not None and result.decision is Decision.NOT_SLOWER:
            settled = now.settled or count >= max(design.looks[0], design.least)
            now = replace(now, decision=Decision.NOT_SLOWER, faster=now.faster or result.faster, settled=settled)
        result = now
    assert result is not None
    return result


def visible(differences: Sequence[float]) -> float:
    """Return the smallest slowdown that so many rounds of this scatter detect."""
    if (count := len(differences)) < 2:
        return math.inf
    return math.expm1(SURELY * deviation(differences, math.fsum(differences) / count) / math.sqrt(count))


def unstable(pairs: Pairs) -> bool:
    """Return whether a side's processes form two groups, and the sides of a round are not always in the same one."""
    # A machine that drifts affects both sides of a round, which is not instability.
    d, within = pairs.differences, math.log1p(pairs.spread)
    if max(d) - min(d) <= GAP * within:
        return False
    sides = [[math.log(time) for time in side] for side in (pairs.base, pairs.head)]
    return any(group_gap(side, within) is not None for side in sides)


def slow_processes(pairs: Pairs) -> tuple[int, int] | None:
    """Return how many processes of head and base are in the slower of two groups, if both sides form two."""
    # The groups are formed without regard to sides, so unchanged code has slow ones on either side by chance.
    edges = group_gap([math.log(time) for time in (*pairs.base, *pairs.head)], math.log1p(pairs.spread))
    if edges is None:
        return None
    above = math.exp(edges[1]) * (1 - 1e-12)
    return sum(time >= above for time in pairs.head), sum(time >= above for time in pairs.base)


def more_slow(
    results: Mapping[K, RoundsResult], pairs: Mapping[K, Pairs], thresholds: Mapping[K, float], alpha: float
) -> dict[K, RoundsResult]:
    """Find undecided cases with more slow processes in the head than in the base, by Fisher's exact test."""
    # On a busy machine the differences of rounds form groups, not the times. All such cases share the error rate.
    fresh = {key: rounds for key, rounds in pairs.items() if not rounds.preloads}  # forks of a preload share its state
    groups: dict[K, tuple[tuple[int, int], float]] = {}
    for key, rounds in fresh.items():
        both = slow_processes(rounds)
        if counted := (both, fisher(*both, len(rounds.base))) if both else far(rounds.differences):
            groups[key] = counted
    level = GROUPED * alpha / max(len(groups), 1)
    changed = dict(results)
    for key, (slow, p) in groups.items():
        shift = math.expm1(fmean(pairs[key].differences))  # the median of averages leaves out a few slow processes
        if results[key].decision is Decision.UNDECIDED and p <= level and shift >= thresholds[key]:
            changed[key] = replace(results[key], decision=Decision.SLOWER, shift=shift, p=p * alpha / level, slow=slow)
    return changed


def excess_of_each(differences: Iterable[float], threshold: float) -> list[float]:
    """Return how far each difference is above what the test must exclude."""
    return [x - MARGIN * math.log1p(max(threshold, 0.0)) for x in differences]


FUTILE, _POWER = 200, 0.8
"""The rounds beyond which a case is not worth its time, its shift nearly the threshold; the power asked for."""


def further_rounds(result: RoundsResult, threshold: float, design: Design) -> int:
    """Return the rounds until a case of this shift and scatter is decided, with a power of four fifths."""
    if result.decision is not Decision.UNDECIDED:
        return max(0, max(design.looks[0], design.least) - result.rounds)
    slower = result.shift >= threshold
    needs = slower_rounds(result, threshold, design) if slower else clearing_rounds(result, threshold)
    return max(1, needs - result.rounds)


def slower_rounds(result: RoundsResult, threshold: float, design: Design) -> int:
    """Return the first coming look at which a case of this shift and scatter is found slower."""
    gap = math.log1p(result.shift) - MARGIN * math.log1p(max(threshold, 0.0))
    needs = _rounds(NormalDist().inv_cdf(1 - design.level), result.scatter, gap)
    ahead = (look for look in design.looks if look >= needs and look > result.rounds)
    return next(ahead, max(needs, result.rounds + 1))


def clearing_rounds(result: RoundsResult, threshold: float) -> int:
    """Return the rounds after which the interval of this shift and scatter is below the threshold."""
    gap = math.log1p(max(threshold, 0.0)) - math.log1p(result.shift)
    return max(LEAST, _rounds(NormalDist().inv_cdf(1 - CLEARS), result.scatter, gap))


def _rounds(level: float, scatter: float, gap: float) -> int:
    if gap <= 0:
        return FUTILE
    standard = (level + NormalDist().inv_cdf(_POWER)) * scatter / gap
    return min(FUTILE, math.ceil(standard**2))


_UPPER = frozenset({Operator.AT_MOST, Operator.LESS})

_EQUAL = 1e-9  # the difference between changes that arithmetic alone can cause


class FigureFinding(NamedTuple):
    decision: Decision
    base: Figure
    """The median of the base's rounds, in the form of the head's figure."""
    rounds: int
    better: bool = False
    """Whether it was shown better, by the test for regressions."""


def figure_finding(pairs: FigurePairs, limit: Limit, gates: int, most: int = OFTEN) -> FigureFinding:
    """Judge whether the head is worse than its limit allows: by the exact test, or exactly for repeating figures."""
    # Worse is the direction that the limit forbids; ``gates`` is how many figures share the false-alarm rate.
    base = Figure(name=pairs.name, labels=pairs.labels, dimension=pairs.dimension, value=median(pairs.base))
    if pairs.repeats:
        moved = limit.change(median(pairs.head), base.value)
        decision = Decision.NOT_SLOWER if _allows(limit, moved) else Decision.SLOWER
        better = moved < 0 if limit.operator in _UPPER else moved > 0
        return FigureFinding(decision, base, len(pairs.base), better)
    worse_by, allowed = _steps(pairs, limit, base.value)
    both_ways = limit.operator is Operator.EQUAL
    if median(worse_by) < 0 if both_ways else limit.operator not in _UPPER:
        worse_by, allowed = [-step for step in worse_by], -allowed
    design = Design(most=most, cases=max(gates, 1) * (2 if both_ways else 1))
    for count in range(min(LEAST, len(worse_by)), len(worse_by) + 1):
        decision = _figure_look(worse_by[:count], allowed, design)
        if decision is not Decision.UNDECIDED:
            break
    look_at = worse_by[: max(count, design.looks[0])]  # a clear figure may be better, which needs more rounds
    better = decision is Decision.NOT_SLOWER and _p_of_excess([-step for step in look_at], abs(allowed)) <= design.level
    return FigureFinding(decision, base, count, better)


def _figure_look(worse_by: Sequence[float], allowed: float, design: Design) -> Decision:
    """Return the decision of one look; if no worsening is allowed, clear once it could have been found."""
    count = len(worse_by)
    shift, interval = shift_and_interval(worse_by, 1 - 2 * CLEARS)
    if count in design.looks and shift >= allowed and _p_of_excess(worse_by, allowed) <= design.level:
        return Decision.SLOWER
    enough = design.looks[len(design.looks) // 2]
    keeps = interval.high < allowed or (allowed <= 0 and interval.low <= allowed and count >= enough)
    return Decision.NOT_SLOWER if keeps and is_look(count) else Decision.UNDECIDED


def _p_of_excess(steps: Sequence[float], allowed: float) -> float:
    """Return the one-sided p of "worse by more than a part of what is allowed"."""
    return signed_rank([step - MARGIN * max(allowed, 0.0) for step in steps])


def _allows(limit: Limit, moved: float) -> bool:
    """Return whether an exact change keeps the limit."""
    if math.isclose(moved, limit.bound, rel_tol=_EQUAL):
        return limit.operator not in {Operator.LESS, Operator.MORE}
    if limit.operator is Operator.EQUAL:
        return False
    return (moved < limit.bound) is (limit.operator in _UPPER)


def _steps(pairs: FigurePairs, limit: Limit, base: float) -> tuple[list[float], float]:
    """Return each round's change and the bound: as differences of logarithms, or plain if values may be zero."""
    both = list(zip(pairs.base, pairs.head))
    if pairs.dimension is Dimension.FRACTION or not all(min(pair) > 0 for pair in both):
        scale = 1.0 if limit.compare is Compare.ABSOLUTE else abs(base) or 1.0
        return [(head - then) / scale for then, head in both], limit.bound
    bound = limit.bound if limit.compare is Compare.RELATIVE else limit.bound / base
    return [math.log(head / then) for then, head in both], math.log1p(max(bound, -0.99))
