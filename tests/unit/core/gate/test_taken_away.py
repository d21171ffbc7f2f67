"""A line that a change deletes while the limit stays: the merge base's judges, and the deletion is told."""

from __future__ import annotations

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import parse_policy
from pytest_perfgate.core.judge.suite import Suite, judge_suite
from pytest_perfgate.model.plan import Effect
from tests.unit.core.gate.bench import KEY, KINDS, accepted, limit, measured


def notes(text: str, *policy: str):
    context = JudgeContext(kinds=KINDS, policy=parse_policy(policy, ci=True))
    report = judge(measured(1e6), [limit(text), limit("time <= 2s")], baseline=accepted(1e6), context=context)
    suite = Suite(context=context, gone=(accepted(1e6),), collected=frozenset({KEY.nodeid}))
    return [note for note in judge_suite([report], suite) if note.kind == "taken away"]


def test_a_line_may_not_go_while_its_limit_stays() -> None:
    (note,) = notes("slowdown <= 3%")
    assert (note.effect, note.names) == (Effect.FAIL, (str(KEY),))
    assert "put it back, or accept what is measured" in note.text
    assert notes("slowdown <= 3%", "missing=warn")[0].effect is Effect.WARN


def test_a_line_that_no_limit_asks_for_may_go() -> None:
    assert notes("time <= 1s") == []
