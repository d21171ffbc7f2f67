"""A family of cases whose suite is judged."""

from __future__ import annotations

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.suite import Suite, judge_suite
from pytest_perfgate.model.plan import CaseKey
from tests.unit.core.judge.bench import KINDS

PLAIN_CONTEXT = JudgeContext(kinds=KINDS)
FAMILY = "tests/b.py::test_mm"
COLLECTED = frozenset({f"{FAMILY}[1]", f"{FAMILY}[2]"})


def key(param: str, family: str = FAMILY, name: str = "") -> CaseKey:
    return CaseKey(nodeid=f"{family}[{param}]", name=name)


def notes(reports, kind: str = "", **fields):
    settings = {"context": PLAIN_CONTEXT} | fields
    return [note for note in judge_suite(reports, Suite(**settings)) if not kind or note.kind == kind]
