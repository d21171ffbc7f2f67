"""Limits that speak of a call which the test never makes: nothing is held against them, so they must not pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.merge import applies_on, case_of, parts_of, unmatched_cases
from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.gate.ruling import Ruling, verdict
from pytest_perfgate.model.limit import Limit, Outcome
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import CaseReport

NOBODY = "(no such call)"
WIDE = frozenset({"configuration", "command line"})
"""Sources of limits that are for every gated test: one without such a call is not meant by them."""


def lost_limits(
    reports: Sequence[CaseReport], limits: Iterable[Limit], context: JudgeContext
) -> tuple[CaseReport, ...]:
    """The report of limits whose ``case=`` names no call of their test; ``reports`` are of the calls it made."""
    parts = {part for report in reports if report.measurement for part in parts_of(report.measurement.metrics)}
    lost = unmatched_cases(dict.fromkeys(limits), [report.key for report in reports], parts)
    devices = [report.measurement.device for report in reports if report.measurement is not None]
    meant = [limit for limit in lost if not devices or applies_on(limit, devices[0])]
    if not meant:
        return ()
    calls = sorted({report.key.name for report in reports if report.key.name} | parts)
    rulings = ((limit, _ruling(limit, calls, of_file=bool(parts))) for limit in meant)
    key = CaseKey(nodeid=reports[0].key.nodeid, name=NOBODY)
    return (CaseReport(key=key, verdicts=tuple(verdict(limit, ruling, context) for limit, ruling in rulings)),)


def _ruling(limit: Limit, calls: Sequence[str], *, of_file: bool) -> Ruling:
    """A limit of the test itself is wrong, as any scope that matches nothing; a wide one is about other tests."""
    named = case_of(limit)
    if limit.source in WIDE:
        return Ruling(outcome=Outcome.NOT_APPLICABLE, sentence=f"no call of this test has the name '{named}'")
    near = proposal(named, calls, all_of="there are") if calls else "none of its calls has a name"
    return Ruling(
        outcome=Outcome.NOT_MEASURED,
        sentence=f"case={named} names no call of the test{' and nothing in its files' if of_file else ''}; {near}",
        next=() if of_file else (f"name the call: perfgate(..., name={named!r})",),
        fails=True,
    )
