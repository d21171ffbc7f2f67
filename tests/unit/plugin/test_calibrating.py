"""What a calibration measures next: unchanged code first, then whatever has the fewest rounds."""

from __future__ import annotations

from types import SimpleNamespace

from pytest_perfgate.app.compare_arms import ROUND, phase_of
from pytest_perfgate.core.judge.calibration import INJECTED, LEAST
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.plugin.calibrating import Calibrating


def played(count: int, *, slowing: bool, earlier: tuple[tuple[str, int], ...] = ()) -> list[tuple[str, float | None]]:
    rounds = [PairedRound(nodeid="t", phase=phase, number=at) for phase, most in earlier for at in range(most)]
    comparison = SimpleNamespace(rounds=rounds)
    turns = Calibrating._turns(comparison, slowing=slowing)
    order = []
    for _ in range(count):
        phase, by = next(turns)
        order.append((phase, by))
        number = sum(one.phase == phase for one in rounds)
        rounds.append(PairedRound(nodeid="t", phase=phase, number=number))
    return order


def test_unchanged_code_comes_first_then_every_slowdown_in_its_turn() -> None:
    order = played(LEAST + 4 * LEAST + 5, slowing=True)
    assert order[:LEAST] == [(ROUND, None)] * LEAST
    assert order[LEAST : LEAST + 8] == [(phase_of(by), by) for by in INJECTED] * 2
    assert set(order[-5:]) == {(ROUND, None), *((phase_of(by), by) for by in INJECTED)}


def test_a_run_that_was_cut_short_goes_on_where_it_stopped() -> None:
    earlier = ((ROUND, LEAST), (phase_of(0.02), 9), (phase_of(0.03), 9), (phase_of(0.05), 8), (phase_of(0.1), 8))
    assert played(2, slowing=True, earlier=earlier) == [(phase_of(0.05), 0.05), (phase_of(0.1), 0.1)]


def test_without_slowing_there_is_only_unchanged_code() -> None:
    assert set(played(LEAST + 5, slowing=False)) == {(ROUND, None)}
