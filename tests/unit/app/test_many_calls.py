"""One test that makes many calls: each is a suspect of its own, and each can be convicted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_perfgate.app.compare_arms import CONFIRM, SCREEN, Comparison
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


def round_of(nodeid: str, phase: str, number: int, calls: int, slower: Slower) -> PairedRound:
    noise = 1 + 0.002 * ((number * 7) % 5)
    base = tuple(capture(nodeid, call, 1e6) for call in range(calls))
    head = tuple(capture(nodeid, call, 1e6 * noise * (1 + slower(call))) for call in range(calls))
    return PairedRound(nodeid=nodeid, phase=phase, number=number, base=base, head=head)


def measured(tests: int, calls: int, rounds: int, slower: Slower, said: list[str]) -> Comparison:
    """A comparison of which every round was played before."""
    stage = staged(World(time=lambda *_: 0.0), said, [])
    comparison = Comparison((arm("base"), arm("head")), cases(tests), stage, Design())
    for phase, count in ((SCREEN, 5), (CONFIRM, rounds)):
        played = [
            round_of(nodeid, phase, number, calls, slower) for nodeid in comparison.cases for number in range(count)
        ]
        comparison.resume([*comparison.rounds, *played])
    return comparison


def decisions(found: dict[CaseKey, Paired]) -> set[Decision]:
    return {paired.decision for paired in found.values()}


@pytest.mark.parametrize(("tests", "calls", "rounds"), [(1, 11, 11), (6, 2, 11), (4, 3, 11), (1, 21, 12), (1, 10, 10)])
def test_rounds_are_enough_to_convict_every_call(tests: int, calls: int, rounds: int) -> None:
    said: list[str] = []
    hearing = Hearing(measured(tests, calls, rounds, lambda call: 0.5, said), lambda key: 0.03)
    hearing.screen()
    found = dict(hearing.paired(revision=True))
    assert len(found) == tests * calls
    assert decisions(found) == {Decision.SLOWER}
    assert said == [f"{tests} of {tests} suspected: up to {rounds} fresh rounds each"]


def test_only_the_accused_calls_of_a_test_are_tried() -> None:
    said: list[str] = []
    comparison = measured(1, 11, 10, lambda call: 0.5 if call == 3 else 0.0, said)
    accused = CaseKey(nodeid="t.py::test_0", name="call 3")
    hearing = Hearing(comparison, lambda key: 0.03)
    hearing.confirm([accused], 1)
    found = hearing.paired(revision=False)
    assert {key: paired.decision for key, paired in found.items()} == {accused: Decision.SLOWER}
    assert said == ["up to 10 fresh rounds each"]


def test_a_suspect_pays_for_those_that_are_tried_beside_other_commits() -> None:
    for among, rounds, decision in ((1, 10, Decision.SLOWER), (40, 10, Decision.UNDECIDED), (40, 12, Decision.SLOWER)):
        said: list[str] = []
        hearing = Hearing(measured(1, 1, rounds, lambda call: 0.5, said), lambda key: 0.03)
        hearing._try([CaseKey(nodeid="t.py::test_0", name="call 0")], {"t.py::test_0": rounds}, among)
        assert decisions(dict(hearing.paired(revision=False))) == {decision}
    hearing = Hearing(measured(1, 1, 12, lambda call: 0.5, said), lambda key: 0.03)
    hearing.confirm([CaseKey(nodeid="t.py::test_0", name="call 0")], 40)
    assert said == ["up to 12 fresh rounds each"]
    assert decisions(dict(hearing.paired(revision=False))) == {Decision.SLOWER}
