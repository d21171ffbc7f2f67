"""Judges a figure against its accepted value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.judge.against_limit import missing_siblings, sides_of, without_metric
from pytest_perfgate.core.judge.context import REASON, JudgeContext, JudgedMeasurement, Ruling, figure_kept
from pytest_perfgate.core.judge.readings import COUNTS, THIS, Sides, better_of, comparable, reach_in_turns
from pytest_perfgate.core.judge.rounds import figure_finding
from pytest_perfgate.core.judge.samples import indistinguishable
from pytest_perfgate.core.judge.suspects import DOCTOR, SAME, cause_commands, comparable_edit, more_rounds
from pytest_perfgate.core.limits.merge import name_of_several, scope_within
from pytest_perfgate.core.limits.scope import demands_regression, noun, render_scope
from pytest_perfgate.core.render.words import change_text, figure_text, plural, quantity
from pytest_perfgate.core.stats.inference import predict, prior
from pytest_perfgate.model.metric import Figure, FigurePairs, Metric, figure_title, matches
from pytest_perfgate.model.plan import SPEEDUP, Compare, Decision, Limit, Mode, Operator, Outcome
from pytest_perfgate.model.values import Better, Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Measurement

_ROUNDED = 1e-4
"""The rounding of a stored figure, which has five digits; smaller differences do not count."""

_EQUAL = 1e-9
"""The difference between changes that arithmetic alone can cause."""

_OF_TIME = frozenset({Dimension.TIME, Dimension.FLOPS, Dimension.BANDWIDTH, Dimension.RATE})
"""Dimensions of figures that scatter between runs as times do."""

_ORDER = tuple(Outcome)
_CAME = "the accepted value came with this change, and clears nothing by itself"
_CONTESTED = frozenset({Outcome.SUSPECT, Outcome.UNDECIDED, Outcome.REGRESSED})

_BY_BUILDS = {
    Decision.SLOWER: (Outcome.REGRESSED, "worse"),
    Decision.NOT_SLOWER: (Outcome.MOVED, "no worse"),
    Decision.UNDECIDED: (Outcome.UNDECIDED, "undecided whether worse"),
}


def against_figure(limit: Limit, trial: JudgedMeasurement) -> Ruling:
    """Return the worst ruling of all figures that the limit's scope selects, each against its own accepted value."""
    scope = scope_within(limit, trial.measurement.key)
    metrics = trial.metrics.find(limit.metric, scope)
    if not metrics:
        return without_metric(limit, trial)
    if demands_regression(own := metrics[0].better, limit.operator):  # of one's own, known after it was taken
        wanted = f"{'less' if own is Better.LOWER else 'more'} {limit.metric} is better"
        return Ruling(Outcome.INVALID, f"{wanted}: {limit.text} demands a regression", metric=metrics[0])
    if twice := name_of_several(metrics):
        why = f"several benchmarks are named {twice}, and each name has one earlier value to compare with"
        step = "give each its own name, or name one file of one device"
        return Ruling(Outcome.INVALID, why, (step,), metric=metrics[0])
    if trial.paired is not None and trial.paired.revision:
        rulings = [_in_both_builds(limit, metric, trial) for metric in metrics]
        return max(rulings, key=lambda ruling: _severity_of(limit, ruling))
    if trial.incomparable:
        return _unbaselined(limit, trial, trial.incomparable, metrics[0])
    rulings = [_by_builds(limit, metric, _ruling(limit, metric, trial), trial) for metric in metrics]
    for gap in missing_siblings(limit.metric, scope, metrics, trial.metrics):
        outcome = Outcome.INVALID if gap.code else Outcome.NOT_MEASURED
        rulings.append(Ruling(outcome=outcome, sentence=f"{gap.name}: {gap.why}"))
    if rulings[0].figure is None or limit.metric in trial.several:
        rulings += _missing_figures(limit, trial)
    return rulings[0] if len(rulings) == 1 else max(rulings, key=lambda ruling: _severity_of(limit, ruling))


def _severity_of(limit: Limit, ruling: Ruling) -> tuple[int, float]:
    if ruling.metric is None or ruling.figure is None:
        return _ORDER.index(ruling.outcome), 0.0
    moved = limit.change(ruling.metric.value, ruling.figure.value)
    if limit.operator in {Operator.AT_LEAST, Operator.MORE}:
        moved = -moved
    elif limit.operator is Operator.EQUAL:
        moved = abs(moved)
    return _ORDER.index(ruling.outcome), moved


def _pairs_of(metric: Metric, trial: JudgedMeasurement) -> FigurePairs | None:
    figures = trial.paired.figures if trial.paired is not None else ()
    return next((pairs for pairs in figures if (pairs.name, pairs.labels) == (metric.name, metric.labels)), None)


def _in_both_builds(limit: Limit, metric: Metric, trial: JudgedMeasurement) -> Ruling:
    """Judge by the rounds of both builds against a named revision, without an accepted value."""
    pairs, paired = _pairs_of(metric, trial), trial.paired
    assert paired is not None
    if pairs is None:
        return Ruling(Outcome.NOT_MEASURED, f"{metric.name} was not measured in both builds", metric=metric)
    finding = figure_finding(pairs, limit, trial.context.gates, paired.most)
    outcome, word = _BY_BUILDS[finding.decision]
    if finding.decision is Decision.SLOWER and paired.same:
        outcome = Outcome.MOVED
    elif finding.decision is Decision.NOT_SLOWER:
        outcome, word = (Outcome.IMPROVED, "better") if finding.better and not paired.same else (Outcome.PASSED, word)
    text = f"{word} in {plural(finding.rounds, 'round')} against {paired.base}"
    steps = {Outcome.REGRESSED: cause_commands(trial), Outcome.UNDECIDED: more_rounds(trial, paired)}
    return Ruling(outcome, text, steps.get(outcome, ()), metric=metric, figure=finding.base, rounds=finding.rounds)


def _by_builds(limit: Limit, metric: Metric, ruling: Ruling, trial: JudgedMeasurement) -> Ruling:
    """Judge a figure by the rounds of two builds if the accepted value leaves it open, or finds it worse."""
    paired = trial.paired
    if paired is None or ruling.outcome not in _CONTESTED:
        return ruling
    if (pairs := _pairs_of(metric, trial)) is None:
        lost = paired.rounds and metric.better is not None
        return ruling._replace(sentence=f"{ruling.sentence}; the base did not measure it") if lost else ruling
    base, came = f"base {paired.base}" if paired.base else "the base", ruling.sentence == _CAME
    finding = figure_finding(pairs, limit, trial.context.gates, paired.most)
    (outcome, word), then, head = _BY_BUILDS[finding.decision], ruling.next, median(pairs.head)
    moved = change_text(limit.change(head, finding.base.value), limit, metric.dimension)
    text = f"{ruling.sentence}; {word} than {base} in {plural(finding.rounds, 'round')}: {moved}"
    if outcome is Outcome.REGRESSED and paired.same:
        outcome, text, then = Outcome.MOVED, f"{text}, {SAME}", (DOCTOR,)
    elif outcome is Outcome.MOVED and ruling.outcome is Outcome.UNDECIDED and not (came and paired.shared):
        outcome = Outcome.PASSED  # the accepted value left it open
    elif outcome is Outcome.MOVED and pairs.repeats and head != metric.value:
        builds = quantity(head, metric.dimension)
        outcome, text = Outcome.SUSPECT, f"{text}, where both read {builds}: a file or the environment differs there"
    elif outcome is Outcome.MOVED and paired.shared:
        text = f"{text}; {indistinguishable(paired)}: the cause is that, or the machine"
        outcome, then = Outcome.SUSPECT, cause_commands(trial)
    elif outcome is Outcome.UNDECIDED:
        then = more_rounds(trial, paired)
    elif outcome in {Outcome.MOVED, Outcome.REGRESSED}:
        then = (*(cause_commands(trial) if outcome is Outcome.REGRESSED else ()), *_accept(trial, REASON))
    edited, line = trial.context.edited, trial.context.edited or trial.baseline
    if came and outcome is Outcome.REGRESSED and line and line.explains(trial.baseline if edited else None):
        outcome, text, then = Outcome.ACCEPTED, f'{text}; this change accepts it: "{line.why}"', ()
    return ruling._replace(outcome=outcome, sentence=text, next=then, figure=finding.base if came else ruling.figure)


def _unbaselined(limit: Limit, trial: JudgedMeasurement, reason: str, metric: Metric | None = None) -> Ruling:
    context, line = trial.context, trial.baseline
    local = context.policy.records and not context.unbaselined and (line is None or line.local)
    text = "; this measurement is stored under .perfgate/ and judges the next local run" if local else ""
    return Ruling(
        outcome=Outcome.UNBASELINED,
        sentence=f"{limit.metric}{render_scope(limit.labels)}: {reason}{text}",
        next=() if local else _accept(trial),
        metric=metric,
        against=line is not None,
    )


def _accept(trial: JudgedMeasurement, option: str = "") -> tuple[str, ...]:
    """Return the command that accepts the new value."""
    return () if trial.context.two_files else (trial.accepting(option),)


def _ruling(limit: Limit, metric: Metric, trial: JudgedMeasurement) -> Ruling:
    line, edited = trial.baseline, trial.context.edited
    assert line is not None
    at = (metric.name, metric.labels)
    own = line.figure(*at)
    then = own or (edited.figure(*at) if edited is not None else None)
    if then is None:
        return _unbaselined(limit, trial, f"no value of {figure_title(*at)} has been accepted", metric)
    if wrong := _mismatch(limit, metric, then):
        return Ruling(outcome=Outcome.INVALID, sentence=wrong, metric=metric)
    decidable = trial.context.mode is Mode.FULL and trial.context.paired_available
    came = (own is None or not line.runs) and (trial.context.policy.ci or decidable)
    if metric.value == then.value and metric.interval is None and not came and _allows(limit, 0.0, 0.0):
        return figure_kept(metric, then)
    ruling = _compare(FigureComparison(limit, metric, then), trial)
    sides = sides_of(metric, then, trial) if metric.name == SPEEDUP else None
    if sides is not None:
        ruling = _by_the_reference(ruling._replace(evidence=(*ruling.evidence, *sides.facts)), sides, trial)
    if came and ruling.outcome in {Outcome.PASSED, Outcome.IMPROVED}:
        ruling = ruling._replace(outcome=Outcome.UNDECIDED, sentence=_CAME, next=(f"{trial.rerun} --perfgate-against",))
    if ruling.outcome is Outcome.PASSED:  # usual: copying would take as long as comparing
        return ruling
    return ruling._replace(metric=metric, figure=then, against=True)


def _by_the_reference(ruling: Ruling, sides: Sides, trial: JudgedMeasurement) -> Ruling:
    """Return MOVED for a speed-up that is only better because its reference got slower."""
    if ruling.outcome is not Outcome.IMPROVED or sides.alone in ("", THIS):
        return ruling
    sentence = f"{ruling.sentence}, because {sides.alone} got slower"
    return ruling._replace(outcome=Outcome.MOVED, sentence=sentence, next=(trial.accepting(REASON),))


def _mismatch(limit: Limit, metric: Metric, then: Figure) -> str:
    """Return why figures are not compared: a limit cannot know the kind of a test's own figure."""
    if not comparable(then.dimension, metric.dimension) or not math.isfinite(metric.value):
        return f"{then.title} was accepted as {quantity(then.value, then.dimension)}, not comparable with this"
    if metric.better is None:
        return ""  # for every other metric, the limit was checked when it was parsed
    if limit.compare is Compare.RELATIVE and metric.dimension is Dimension.FRACTION:
        return f"{metric.name} is a percentage: write its change in points, such as 2pp"
    if limit.compare is Compare.ABSOLUTE and limit.bound and not comparable(limit.dimension, metric.dimension):
        return f"{metric.name} is {noun(metric.dimension)}, and the limit on its change {noun(limit.dimension)}"
    return ""


class FigureChange(NamedTuple):
    """A change and its interval."""

    value: float
    low: float
    high: float


class FigureComparison(NamedTuple):
    """One figure and its accepted value."""

    limit: Limit
    metric: Metric
    then: Figure

    @property
    def moved(self) -> FigureChange:
        """Return the change, with the interval of the figure."""
        value = self._of(self.metric.value)
        if self.metric.interval is None:
            return FigureChange(value, value, value)
        return FigureChange(value, self._of(self.metric.low), self._of(self.metric.high))

    def _of(self, number: float) -> float:
        """Return the change to a number; the bound itself if they differ only by arithmetic."""
        moved, bound = self.limit.change(number, self.then.value), self.limit.bound
        return bound if math.isclose(moved, bound, rel_tol=_EQUAL) else moved

    @property
    def texts(self) -> str:
        """``128 -> 130``."""
        return figure_text(self.then, self.metric)


def _compare(pair: FigureComparison, trial: JudgedMeasurement) -> Ruling:
    moved, play, reach = pair.moved, 0.0, None
    if not is_exact(pair.metric, trial.context):
        play, reach = _rounding(pair), _reach(pair, trial)
    keeps = _keeps(pair.limit, moved, play)
    if keeps:  # what alone decides, where nothing shows the scatter, holds in both directions
        alone = 0.0 if reach or trial.measurement.processes else abs(pair.limit.bound)
        return _within_limit(pair, moved, None if reach is None else max(reach, play, alone), trial)
    reach = reach or 0.0
    if _allows(pair.limit, moved.value, play):
        return Ruling(outcome=Outcome.UNDECIDED, sentence="the interval of the change spans the limit", visible=reach)
    return _beyond_limit(pair, moved, reach, trial)


def _keeps(limit: Limit, moved: FigureChange, play: float) -> bool | None:
    """Return whether the whole interval keeps a limit or misses it; None if it spans the bound."""
    low = high = _allows(limit, moved.low, play)
    if moved.low != moved.high:
        high = _allows(limit, moved.high, play)
    if limit.operator is Operator.EQUAL:
        return low and high
    return low if low is high else None


def _allows(limit: Limit, moved: float, play: float) -> bool:
    """Return whether one change keeps a limit, with a margin for the digits of a line."""
    if limit.operator is Operator.AT_MOST:
        return moved <= limit.bound + play
    if limit.operator is Operator.AT_LEAST:
        return moved >= limit.bound - play
    if limit.operator is Operator.EQUAL:
        return moved == limit.bound
    return moved < limit.bound + play if limit.operator is Operator.LESS else moved > limit.bound - play


def is_exact(metric: Metric, context: JudgeContext) -> bool:
    """Return whether unchanged code repeats the figure exactly, so that any difference comes from the code."""
    kind = context.kinds.get(metric.name)
    return metric.exact or (kind is not None and kind.exact)


def _rounding(pair: FigureComparison) -> float:
    """Return the change that the digits of a line may hide; a count is stored with all of its own."""
    whole = pair.then.dimension in COUNTS and not (pair.metric.value % 1 or pair.then.value % 1)
    return 0.0 if whole else _ROUNDED * _unit(pair)


def _unit(pair: FigureComparison) -> float:
    """Return a relative scatter of 1 in the unit of the limit; a percentage scatters in points."""
    relative = pair.limit.compare is Compare.RELATIVE
    return 1.0 if relative or pair.then.dimension is Dimension.FRACTION else abs(pair.then.value)


def _reach(pair: FigureComparison, trial: JudgedMeasurement) -> float:
    """Return how far one more run may differ by chance, in the unit of the limit."""
    # It is 0 if neither runs nor processes show the scatter, so that the limit alone decides.
    metric, then, measurement = pair.metric, pair.then, trial.measurement
    if metric.name == SPEEDUP and len(measurement.processes) > 1:
        return reach_in_turns(metric, then, pair.limit.bound, measurement.processes, trial.context.gates)
    expected = 0.0
    if metric.interval is not None:
        scale = 1.0 if metric.dimension is Dimension.FRACTION else abs(metric.value) or 1.0
        expected = (metric.high - metric.low) / 4 / scale
    if metric.dimension in _OF_TIME and measurement.processes:
        expected = max(expected, prior(measurement.device.kind, measurement.identity.clocks))
    if not expected and not then.scatter:
        return 0.0
    return _chance(expected, then.scatter, then.runs, trial.context.gates) * _unit(pair)


@lru_cache(maxsize=1024)
def _chance(expected: float, scatter: float, runs: int, gates: int) -> float:
    """Return how far one more run may differ, as a logarithm; it is the same for most figures of a kind."""
    return predict(expected, scatter=scatter, runs=runs, gates=gates).log_reach


def _within_limit(pair: FigureComparison, moved: FigureChange, reach: float | None, trial: JudgedMeasurement) -> Ruling:
    """Return PASSED, or IMPROVED if it is better beyond chance; an exact figure has no such ``reach``."""
    ahead = {Better.LOWER: -moved.high, Better.HIGHER: moved.low}.get(better_of(pair.metric, trial.context.kinds), 0.0)
    edited = trial.context.edited.figure(pair.then.name, pair.then.labels) if trial.context.edited else None
    if ahead > (reach or 0.0) and edited in (None, pair.then) and trial.context.mode is not Mode.OFF:
        return Ruling(Outcome.IMPROVED, f"better than accepted: {pair.texts}", _accept(trial, " --improved"))
    return figure_kept(pair.metric, pair.then, reach)


def _beyond_limit(pair: FigureComparison, moved: FigureChange, reach: float, trial: JudgedMeasurement) -> Ruling:
    """Judge a figure worse than accepted: accepted by the change itself, beyond chance, or not confirmed."""
    text = f"{pair.texts}, {change_text(moved.value, pair.limit, pair.metric.dimension)}"
    if not pair.then.value and pair.metric.value and pair.limit.compare is Compare.RELATIVE:
        text = f"{pair.texts}: the accepted value is 0, so any rise breaks a relative limit"
    if (ruling := _accepted_by_change(pair, text, trial)) is not None:
        return ruling
    if moved.value < 0 and pair.limit.compare is Compare.RELATIVE:
        reach = -math.expm1(-reach)  # half is as far as twice, and nothing falls by more than 100 %
    profiles = trial.profiles if trial.measurement.processes else ()
    beyond_reach = abs(moved.value) > reach and _keeps(pair.limit, moved, 0.0) is False
    full = trial.context.mode is Mode.FULL and bool(trial.measurement.processes)
    if full and trial.context.paired_available and trial.paired is None:
        sentence = f"{text}; not confirmed: compare with the accepted commit"
        return Ruling(outcome=Outcome.SUSPECT, sentence=sentence, visible=reach or None)
    if beyond_reach:
        word = "other" if better_of(pair.metric, trial.context.kinds) is Better.NEITHER else "worse"
        steps = (*profiles, *_accept(trial, REASON))
        return Ruling(Outcome.REGRESSED, f"{word} than accepted: {text}", steps, visible=reach or None)
    by_chance = change_text(math.copysign(reach, moved.value), pair.limit, pair.metric.dimension)
    explained = f"{text}; chance explains up to {by_chance}"
    more = f"{trial.rerun} --perfgate=full" if trial.measurement.processes else ""
    return Ruling(outcome=Outcome.SUSPECT, sentence=explained, next=(more,) if more else (), visible=reach)


def _accepted_by_change(pair: FigureComparison, text: str, trial: JudgedMeasurement) -> Ruling | None:
    """Return the ruling on a line that the change edits: accepted if it has a reason and agrees."""
    edited, line = comparable_edit(trial), trial.baseline
    new = edited.figure(pair.then.name, pair.then.labels) if edited is not None else None
    if edited is None or new is None or new.value == pair.then.value:
        return None
    if not edited.explains(line):
        edits = f"worse than accepted: {text}, and this change edits the accepted value without a reason"
        return Ruling(Outcome.REGRESSED, edits, (trial.accepting(REASON),))
    play = 0.0 if is_exact(pair.metric, trial.context) else _rounding(pair)
    again = FigureComparison(pair.limit, pair.metric, new)
    if _keeps(pair.limit, again.moved, play) is False:
        return None
    accepts = f'{text}; this change accepts {quantity(new.value, new.dimension)}: "{edited.why}"'
    return Ruling(outcome=Outcome.ACCEPTED, sentence=accepts)


def _missing_figures(limit: Limit, trial: JudgedMeasurement) -> Iterator[Ruling]:
    """Yield a ruling for each accepted figure that the limit selects and that was not measured."""
    assert trial.baseline is not None
    accepted = "" if trial.context.two_files else "accepted as "
    for figure in accepted_elsewhere(limit, trial.measurement.with_metrics(trial.metrics), trial.baseline.figures):
        yield Ruling(
            outcome=Outcome.NOT_MEASURED,
            sentence=f"{figure.title} was {accepted}{quantity(figure.value, figure.dimension)}, and is missing now",
            next=_accept(trial, REASON),
            fails=True,
            figure=figure,
            against=True,
        )


def accepted_elsewhere(limit: Limit, measurement: Measurement, figures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield accepted figures of the limit that were not measured, if measured ones have a scope of their kind."""
    metrics = selected_figures(limit, measurement)
    here = {metric.labels for metric in metrics}
    levels = {tuple(label for label, _ in labels) for labels in here}
    scope = scope_within(limit, measurement.key)
    for figure in figures if metrics else ():
        alike = figure.name == limit.metric and matches(figure.labels, scope)
        if alike and figure.labels not in here and tuple(label for label, _ in figure.labels) in levels:
            yield figure


def selected_figures(limit: Limit, measurement: Measurement) -> tuple[Metric, ...]:
    """Return the figures that need an accepted value: those of a limit on a change, and a speed-up."""
    if limit.compare is Compare.FIGURE and limit.metric != SPEEDUP:
        return ()
    return measurement.metrics.find(limit.metric, scope_within(limit, measurement.key))
