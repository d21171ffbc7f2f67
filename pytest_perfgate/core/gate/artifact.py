"""Limits held against an artifact: its figures are what they are, so the number decides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect, Limit, Operator, Outcome
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, matches
from pytest_perfgate.model.verdict import Verdict

_KEEPS: dict[Operator, Callable[[float, float], bool]] = {
    Operator.AT_MOST: operator.le,
    Operator.AT_LEAST: operator.ge,
    Operator.LESS: operator.lt,
    Operator.MORE: operator.gt,
    Operator.EQUAL: operator.eq,
}


def judge_artifact(analysis: Analysis, limits: Sequence[Limit]) -> tuple[Verdict, ...]:
    """One verdict for each metric that each limit selects; every one of them must hold."""
    return tuple(verdict for limit in limits for verdict in _judged(analysis, limit))


def _judged(analysis: Analysis, limit: Limit) -> list[Verdict]:
    if analysis.problems:
        problem = analysis.problems[0]
        return [_verdict(limit, Outcome.INVALID, problem.what, evidence=problem.evidence)]
    selected = analysis.metrics.find(limit.metric, limit.labels)
    if selected:
        return [_held(limit, metric, analysis.window) for metric in selected] + _beside(analysis, limit, selected)
    absent = analysis.metrics.missing(limit.metric, limit.labels)
    if absent is not None or limit.metric not in analysis.metrics.names():
        return [_lacking(limit, absent or Absent(name=limit.metric, why=f"nothing in {analysis.kind} gives it"))]
    raise _unmatched(limit, analysis.metrics)


def _beside(analysis: Analysis, limit: Limit, selected: Sequence[Metric]) -> list[Verdict]:
    """What the limit means as well and was not collected: a kernel among others that were measured."""
    level = {name for name, _ in selected[0].labels}
    return [
        _lacking(limit, absent, scope_text(absent.labels))
        for absent in analysis.metrics.absent
        if absent.name == limit.metric
        and absent.labels
        and {name for name, _ in absent.labels} == level
        and matches(absent.labels, limit.labels)
    ]


def _lacking(limit: Limit, absent: Absent, scope: str = "") -> Verdict:
    """What was not collected is NOT MEASURED; what there is no sense in asking for here is INVALID."""
    outcome = Outcome.INVALID if absent.code else Outcome.NOT_MEASURED
    said = absent.why if absent.code else f"was not collected: {absent.why}"
    colon = ":" if absent.code else ""
    mend = (absent.mend,) if absent.mend else ()
    return _verdict(limit, outcome, f"{limit.metric}{scope}{colon} {said}", mend=mend)


def _held(limit: Limit, metric: Metric, window: str) -> Verdict:
    keeps = _KEEPS[limit.operator](metric.value, limit.bound)
    shown = quantity(metric.value, metric.dimension)
    sentence = f"{metric.name}{scope_text(metric.labels)} is {shown}, limit {limit.operator.value} {bound_text(limit)}"
    outcome = Outcome.PASSED if keeps else Outcome.BROKEN
    notes = (("at", window.removeprefix("window ")), ("note", metric.note))
    return _verdict(limit, outcome, sentence, metric=metric, evidence=tuple(n for n in notes if n[1]))


def _verdict(
    limit: Limit,
    outcome: Outcome,
    sentence: str,
    *,
    metric: Metric | None = None,
    evidence: tuple[tuple[str, str], ...] = (),
    mend: tuple[str, ...] = (),
) -> Verdict:
    effect = Effect.PASS if outcome is Outcome.PASSED else Effect.FAIL
    return Verdict(
        limit=limit, outcome=outcome, effect=effect, metric=metric, sentence=sentence, evidence=evidence, next=mend
    )


def scope_text(labels: Labels) -> str:
    """A scope as it is written in a limit."""
    return f"({', '.join(f'{name}={text}' for name, text in labels)})" if labels else ""


def bound_text(limit: Limit) -> str:
    return quantity(limit.bound, limit.dimension)


def _unmatched(limit: Limit, metrics: MetricSet) -> PerfgateError:
    """The scope matched nothing: say what there is, nearest first."""
    there = [m for m in metrics.metrics if m.name == limit.metric]
    names = sorted({name for m in there for name, _ in m.labels})
    unknown = [name for name, _ in limit.labels if name not in names]
    if unknown:
        known = ", ".join(names) or "no scopes"
        what = f"'{limit.text}': {limit.metric} has no scope '{unknown[0]}' here, only {known}"
        return PerfgateError("limit-scope", what, place=limit.source, mend=proposal(unknown[0], names))
    asked = dict(limit.labels)
    values = sorted({text for m in there for name, text in m.labels if name in asked})
    shown = ", ".join(values[:12]) + (f" and {len(values) - 12} more" if len(values) > 12 else "")
    what = f"'{limit.text}': no {limit.metric} matches {scope_text(limit.labels)}"
    return PerfgateError("limit-scope", what, place=limit.source, mend=f"there are: {shown}")
