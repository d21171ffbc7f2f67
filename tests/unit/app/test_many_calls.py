"""One test that makes many calls: each is a suspect of its own, and each can be convicted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_perfgate.app.compare_arms import ROUND, Comparison
from pytest_perfgate.app.screening import Screening as Hearing
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import Decision, Paired, PairedRound
from tests.unit.app.duets import DEVICE, World, arm, cases
from tests.unit.app.test_compare_arms import staged

Slower = Callable[[int], float]


def capture(nodeid: str, call: int, time: float) -> Capture:
    samples = Samples(durations=(time,) * 5, cpu=(time,) * 5, timer="host", stop=Stop.BUDGET, batch=1)
    key = CaseKey(nodeid=nodeid, name=f"call {call}")
    return Capture(key=key, samples=(samples,), device=DEVICE, identity=Identity(device="host-x"))


def round_of(nodeid: str, number: int, calls: int, slower: Slower) -> PairedRound:
    noise = 1 + 0.002 * ((number * 7) % 5)
    base = tuple(capture(nodeid, call, 1e6) for call in range(calls))
    head = tuple(capture(nodeid, call, 1e6 * noise * (1 + slower(call))) for call in range(calls))
    return PairedRound(nodeid=nodeid, phase=ROUND, number=number, base=base, head=head)


def measured(tests: int, calls: int, rounds: int, slower: Slower, said: list[str]) -> Comparison:
    """A comparison of which every round was played before."""
    stage = staged(World(time=lambda *_: 0.0), said, [])
    comparison = Comparison((arm("base"), arm("head")), cases(tests), stage, Design())
    played = (round_of(nodeid, number, calls, slower) for nodeid in comparison.cases for number in range(rounds))
    comparison.resume(played)
    return comparison


def decisions(found: dict[CaseKey, Paired]) -> set[Decision]:
    return {paired.decision for paired in found.values()}


@pytest.mark.parametrize(("tests", "calls", "rounds"), [(1, 11, 13), (6, 2, 13), (4, 3, 13), (1, 21, 14), (1, 1, 9)])
def test_rounds_are_enough_to_convict_every_call(tests: int, calls: int, rounds: int) -> None:
    said: list[str] = []
    hearing = Hearing(measured(tests, calls, 30, lambda call: 0.5, said), lambda key: 0.03)
    hearing.decide()
    found = hearing.paired(revision=True)
    assert len(found) == tests * calls
    assert decisions(found) == {Decision.SLOWER}
    assert {paired.rounds for paired in found.values()} == {rounds}


def test_a_call_that_is_decided_stays_so_while_another_of_its_test_has_rounds() -> None:
    comparison = measured(1, 11, 30, lambda call: 0.5 if call == 3 else 0.0, [])
    hearing = Hearing(comparison, lambda key: 0.03)
    hearing.decide()
    found = {key.name: paired for key, paired in hearing.paired(revision=False).items()}
    slow = found.pop("call 3")
    assert (slow.decision, slow.rounds) == (Decision.SLOWER, 13)
    assert {(paired.decision, paired.rounds) for paired in found.values()} == {(Decision.NOT_SLOWER, 7)}
