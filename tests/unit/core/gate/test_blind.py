"""A time that was accepted from a sitting too noisy for its limit."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.plan import Effect, Outcome
from tests.unit.core.gate.bench import CONTEXT, KEY, SLOWDOWN, accepted, limit, measured, outcome, verdict


def test_a_time_accepted_from_a_blind_sitting_lets_nothing_pass_as_known() -> None:
    blind = accepted(1e6, blind=3.0)
    same = verdict(1e6, baseline=blind)
    assert (same.outcome, same.effect, same.visible) == (Outcome.UNDECIDED, Effect.WARN, 3.0)
    assert same.sentence == (
        "the accepted run was too noisy to detect less than +300.0 %: the accepted time may be off by as much"
    )
    assert same.next == (f"perfgate accept '{KEY}'",)
    slower = verdict(1.02e6, baseline=blind).next
    assert slower == (f"perfgate accept '{KEY}' --reason \"...\"",), "it may count as slower, and then asks for one"
    context = replace(CONTEXT, edited=accepted(1e6, blind=0.02))
    done = verdict(1e6, baseline=blind, context=context)
    assert (done.outcome, done.next) == (Outcome.UNDECIDED, ()), "done already: nothing is left to do"
    assert done.sentence.endswith(": this change accepts 1 ms from one that saw more, which judges once it is merged")
    as_noisy = replace(CONTEXT, edited=accepted(1e6, blind=3.0))
    assert verdict(1e6, baseline=blind, context=as_noisy).next == same.next
    assert outcome(0.3e6, baseline=blind) is Outcome.UNDECIDED, "three times faster may have been so before"
    assert outcome(0.2e6, baseline=blind) is Outcome.IMPROVED
    assert outcome(3.9e6, baseline=blind) is Outcome.SUSPECT
    assert outcome(4.2e6, baseline=blind) is Outcome.REGRESSED
    assert outcome(1e6, (limit("slowdown <= 400%"),), baseline=blind) is Outcome.PASSED
    hardly = verdict(0.95e6, baseline=accepted(1e6, blind=0.05), shape=(0.98, 1.0, 1.02))
    assert (hardly.outcome, hardly.next) == (Outcome.UNDECIDED, ()), "as noisy itself, it is no better time"
    report = judge(measured(1e6), SLOWDOWN, baseline=blind, context=CONTEXT)
    assert '"TMA loads"  can detect +300.0 %\n' in render_block(report)
    narrow = [line for line in render_block(report, 60).splitlines() if "  next  " not in line]
    assert max(map(len, narrow)) <= 60, "then is folded as why is"


def test_a_sitting_that_saw_exactly_as_little_is_no_better_time() -> None:
    shape = (0.98, 1.0, 1.02)
    seen = verdict(0.95e6, shape=shape).visible
    assert seen > 0.03
    assert verdict(0.95e6, baseline=accepted(1e6, blind=seen), shape=shape).next == ()
    context = replace(CONTEXT, edited=accepted(2.1e6, why="x", blind=seen))
    found = verdict(2e6, context=context, shape=shape)
    assert (found.outcome, found.next) == (Outcome.UNDECIDED, ())


def test_an_edit_from_a_blind_sitting_is_neither_accepted_nor_convicted_within_it() -> None:
    context = replace(CONTEXT, edited=accepted(4e6, why="exact softmax", blind=1.5))
    found = verdict(2e6, context=context)
    assert (found.outcome, found.effect) == (Outcome.UNDECIDED, Effect.WARN)
    assert found.sentence.endswith('accepts 4 ms: "exact softmax", from a run too noisy to detect less than +150.0 %')
    assert found.next == (f"perfgate accept '{KEY}' --reason \"...\"",)
    no_better = verdict(2e6, context=replace(context, edited=accepted(2.2e6, why="x", blind=0.12)), shape=(0.8, 1, 1.2))
    assert (no_better.outcome, no_better.next) == (Outcome.UNDECIDED, ())
    assert outcome(4e6, context=context) is Outcome.ACCEPTED
    assert outcome(11e6, context=context) is Outcome.REGRESSED
    assert outcome(2e6, context=replace(CONTEXT, edited=accepted(4e6, why="  ", blind=1.5))) is Outcome.REGRESSED
