"""Limits held against an artifact: its figures are what they are, so the number decides."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.against_limit import CHECK_PEAK, PAST_PEAK, above_peak, beside, holds, worst_first
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.full_name import not_in_the_report
from pytest_perfgate.core.gate.nearest import proposal, some_of
from pytest_perfgate.core.gate.opcode_named import no_instruction
from pytest_perfgate.core.gate.policy import CI
from pytest_perfgate.core.gate.ruling import Ruling, verdict
from pytest_perfgate.core.gate.scope import render_scope
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.codes import CODES
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Limit, Outcome
from pytest_perfgate.model.metric import Absent, Metric, MetricSet, matches
from pytest_perfgate.model.policy import Policy
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.verdict import Verdict


def judge_artifact(analysis: Analysis, limits: Sequence[Limit], policy: Policy = CI) -> tuple[Verdict, ...]:
    """One verdict for each metric that each limit selects; every one of them must hold.

    Who holds limits against a file asks for an answer: what was not measured fails, wherever this is,
    unless the policy says otherwise.
    """
    context = JudgeContext(policy=policy)
    return tuple(verdict(limit, ruling, context) for limit in limits for ruling in _judged(analysis, limit))


def _judged(analysis: Analysis, limit: Limit) -> list[Ruling]:
    if analysis.problems:
        return [_invalid(limit, analysis.problems)]
    selected = analysis.metrics.find(limit.metric, limit.labels)
    if selected:
        lacking = beside(limit.metric, limit.labels, selected, analysis.metrics)
        rulings = [_held(limit, metric, analysis.window) for metric in selected]
        rulings += [_lacking(f"{limit.metric}{render_scope(absent.labels)}", absent) for absent in lacking]
        return worst_first(limit, rulings)
    absent = analysis.metrics.missing(limit.metric, limit.labels)
    if absent is None and limit.metric not in analysis.metrics.names():
        absent = analysis.metrics.missing(limit.metric)
    if absent is not None or limit.metric not in analysis.metrics.names():
        return [_lacking(limit.metric, absent or _unknown(limit.metric, analysis.kind))]
    uncollected = not_in_the_report(limit, analysis.metrics)
    if uncollected is not None:
        return [_lacking(limit.metric, uncollected)]
    raise _unmatched(limit, analysis.metrics)


def _unknown(metric: str, kind: str) -> Absent:
    """A figure that this kind of file never has."""
    if metric == "slowdown":
        mend = "compare two: perfgate compare BEFORE AFTER LIMIT"
        return Absent(name=metric, why="one file alone is no slower than itself", mend=mend)
    return Absent(name=metric, why=f"nothing in {kind} gives it")


def _invalid(limit: Limit, problems: Sequence[Problem]) -> Ruling:
    """Every limit is named: which of them a run of several could not answer must be told apart."""
    first, more = problems[0], len(problems) - 1
    others = f" (and {more} more problem{'s' * (more > 1)})" if more else ""
    code = CODES.get(first.code)
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{limit.text}: {first.what}{others}",
        next=(code.mend,) if code and code.mend else (),
        evidence=first.evidence,
    )


def _lacking(name: str, absent: Absent) -> Ruling:
    """What was not collected is NOT MEASURED; what there is no sense in asking for here is INVALID."""
    return Ruling(
        outcome=Outcome.INVALID if absent.code else Outcome.NOT_MEASURED,
        sentence=f"{name}: {absent.why}" if absent.code else f"{name} was not collected: {absent.why}",
        next=(absent.mend,) if absent.mend else (),
    )


def _held(limit: Limit, metric: Metric, window: str) -> Ruling:
    shown = quantity(metric.value, metric.dimension)
    bound = quantity(limit.bound, limit.dimension)
    notes = (("at", window.removeprefix("window ")), ("note", metric.note))
    if above_peak(metric):
        return _above_peak(f"{metric.name}{render_scope(metric.labels)} is {shown}", metric, notes)
    return Ruling(
        outcome=Outcome.PASSED if holds(limit, metric.value) else Outcome.BROKEN,
        sentence=f"{metric.name}{render_scope(metric.labels)} is {shown}, limit {limit.operator.value} {bound}",
        metric=metric,
        evidence=tuple(note for note in notes if note[1]),
    )


def _above_peak(what: str, metric: Metric, notes: Sequence[tuple[str, str]]) -> Ruling:
    """More of a peak than there is: the peak or the work count is wrong, so no limit is kept by it."""
    return Ruling(
        outcome=Outcome.INVALID,
        sentence=f"{what}: {PAST_PEAK}",
        metric=metric,
        next=CHECK_PEAK,
        evidence=tuple(note for note in notes if note[1]),
    )


def _unmatched(limit: Limit, metrics: MetricSet) -> PerfgateError:
    """The scope matched nothing: say what there is, nearest first."""
    there = [m for m in metrics.metrics if m.name == limit.metric]
    names = sorted({name for m in there for name, _ in m.labels})
    unknown = [name for name, _ in limit.labels if name not in names]
    if unknown:
        known = ", ".join(names) or "no scopes"
        what = f"'{limit.text}': {limit.metric} has no scope '{unknown[0]}' here, only {known}"
        return PerfgateError("limit-scope", what, place=limit.source, mend=proposal(unknown[0], names))
    strange = no_instruction(limit, metrics)
    if strange is not None:
        return PerfgateError("limit-scope", f"'{limit.text}': {strange[0]}", place=limit.source, mend=strange[1])
    asked = {name for name, text in limit.labels if not any(matches(m.labels, ((name, text),)) for m in there)}
    asked = asked or {name for name, _ in limit.labels}
    values = sorted({text for m in there for name, text in m.labels if name in asked})
    what = f"'{limit.text}': no {limit.metric} matches {render_scope(limit.labels)}"
    return PerfgateError("limit-scope", what, place=limit.source, mend=f"there are: {some_of(values)}")
