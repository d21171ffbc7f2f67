"""What a calibration measures next: unchanged code first, then whatever has the fewest rounds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.app.compare_arms import ROUND, phase_of
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.core.judge.calibration import FORKED, INJECTED, LEAST
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import FORK, START, Capture
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.plugin import calibrating
from pytest_perfgate.plugin.calibrating import NOT_FORKED, Calibrating
from pytest_perfgate.wiring import read_values
from tests.unit.core.judge.bench import GPU, samples


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


class Played:
    """Rounds of one test on a device; only the first that is to be forked is, and the run ends after forty."""

    def __init__(self, *_: object) -> None:
        self.cases, self.rounds, self.out = {"t": SimpleNamespace(nodeid="t")}, [], set()
        self.next = SimpleNamespace(close=lambda: None)

    def resume(self, rounds) -> None:
        self.rounds = list(rounds)

    def play(self, phase: str, counts: dict[str, int]) -> None:
        number, start = counts["t"] - 1, ""
        if phase == FORKED:
            start = "fresh interpreter: 2 threads run" if number else f"{FORK}1: as they are"
        identity = Identity(device="d", clocks="observe", timer="events", cache="warm", data="", threads="")
        taken = samples(1e5, timer="events", notes=((START, start),))
        side = (Capture(key=CaseKey(nodeid="t"), identity=identity, device=GPU, samples=(taken,)),)
        self.rounds.append(PairedRound(nodeid="t", phase=phase, number=number, base=side, head=side))


def test_a_round_that_could_not_be_forked_is_no_round_of_forks_and_the_last_try(tmp_path: Path, monkeypatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(calibrating, "Progress", lambda *_: SimpleNamespace(tell=lines.append, close=lambda: None))
    monkeypatch.setattr(calibrating, "Comparison", Played)
    monkeypatch.setattr(Calibrating, "_stage", lambda self, progress: None)
    monkeypatch.setattr(calibrating.clock, "seconds", iter(range(1000)).__next__)
    settings = SimpleNamespace(pytest=None, project=SimpleNamespace(preload=""))
    for _ in range(2):  # the second run keeps what the first one stored, and tries once more
        lines.clear()
        Calibrating(SimpleNamespace(settings=settings, cases={"t": None}), tmp_path / "rounds").run(60, slowing=False)
        rounds = read_values(tmp_path / "rounds", PairedRound)
        assert [one.number for one in rounds if one.phase == FORKED] == [0]
        assert [line for line in lines if line.startswith(NOT_FORKED)] == [
            f"{NOT_FORKED}fresh interpreter: 2 threads run"
        ]
        assert lines[-1].startswith("unchanged code: "), "the time goes to fresh pairs"


class Clock:
    """Each look takes 50 ns, each call what it says."""

    def __init__(self, call_ns: int) -> None:
        self.now, self.call_ns, self.calls = 0, call_ns, 0

    def thread_time_ns(self) -> int:
        self.now += 50
        return self.now

    def call(self) -> str:
        self.now += self.call_ns
        self.calls += 1
        return "done"


@pytest.mark.parametrize(("call_ns", "calls"), [(400, 20000), (20_000, 1000), (3_000_000, 40)])
@pytest.mark.parametrize("by", [0.02, 0.10])
def test_it_waits_in_proportion(monkeypatch: pytest.MonkeyPatch, call_ns: int, calls: int, by: float) -> None:
    spent = {}
    for part in (0.0, by):
        clock = Clock(call_ns)
        monkeypatch.setattr(calibrating.clock, "HOST_CLOCK", HOST_CLOCK._replace(thread=clock.thread_time_ns))
        slow = calibrating.slowed(clock.call, part)
        assert [slow() for _ in range(calls)] == ["done"] * calls
        assert clock.calls == calls
        spent[part] = clock.now
    assert spent[by] / spent[0.0] - 1 == pytest.approx(by, rel=0.25)


@pytest.mark.parametrize(
    ("clocks", "out", "forked", "why"),
    [
        ({"a": "events", "b": "cupti"}, (), True, ""),
        ({"a": "events"}, ("b",), True, ""),
        ({"a": "host", "b": "host"}, (), False, ""),
        ({"a": "events", "b": "host"}, (), False, "the host's clock measures b, and a round forks all tests or none"),
    ],
    ids=["devices", "one failed", "the host", "both"],
)
def test_forks_are_measured_where_no_test_that_runs_has_the_clock_of_the_host(clocks, out, forked, why) -> None:
    def rounds_of(test: str, timer: str) -> list[PairedRound]:
        identity = Identity(device="d", clocks="observe", timer=timer, cache="warm", data="", threads="")
        side = (Capture(key=CaseKey(nodeid=test), identity=identity, device=GPU, samples=(samples(1e5),)),)
        return [PairedRound(nodeid=test, phase=ROUND, number=at, base=side, head=side) for at in range(LEAST)]

    rounds = [one for test, timer in clocks.items() for one in rounds_of(test, timer)]
    rounds += [PairedRound(nodeid=test, phase=ROUND, number=0, trouble="it raised") for test in out]
    cases = {test: SimpleNamespace(nodeid=test) for test in (*clocks, *out)}
    lines: list[str] = []
    comparison = SimpleNamespace(cases=cases, rounds=rounds, out=set(out))
    phase, _ = next(Calibrating._turns(comparison, slowing=False, forking=lines.append))
    assert phase == (FORKED if forked else ROUND)
    assert lines == ([f"{NOT_FORKED}{why}"] if why else [])
