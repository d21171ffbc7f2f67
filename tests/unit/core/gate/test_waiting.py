"""Without a second arm, time that a call spent waiting for a busy machine convicts nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.judge import judge
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.verdict import Verdict
from tests.unit.core.gate.bench import GPU, KINDS, SHAPE, accepted, limit, measured, samples


def verdict(*stretches: float, time: float = 2e6, timer: str = "host", device=None) -> Verdict:
    """Twice as slow as accepted; each sample's wall time is its processor time, stretched in turn."""
    one = samples(time, timer=timer)
    cpu = tuple(wall / stretches[n % len(stretches)] for n, wall in enumerate(one.durations)) if stretches else ()
    processes = tuple(samples(time * factor, timer=timer, cpu=tuple(b * factor for b in cpu)) for factor in SHAPE)
    fields = {"device": device} if device else {}
    measurement = measured(time, processes=processes, **fields)
    context = JudgeContext(kinds=KINDS, gates=1)
    return judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(1e6, **fields), context=context).verdicts[0]


@pytest.mark.parametrize(
    ("stretches", "outcome"),
    [
        ((1.0,), Outcome.REGRESSED),
        ((1.1, 1.2), Outcome.REGRESSED),
        ((1.2, 2.0, 2.2, 3.0), Outcome.SUSPECT),
        ((1.9,), Outcome.SUSPECT),
        ((50.0,), Outcome.REGRESSED),
        ((), Outcome.REGRESSED),
    ],
    ids=["computes", "computes more", "others had the cores", "always", "waits by nature", "nobody looked"],
)
def test_processor_time_is_the_witness_of_what_computes(stretches: tuple[float, ...], outcome: Outcome) -> None:
    assert verdict(*stretches).outcome is outcome


def test_what_waited_says_so_and_how_to_decide() -> None:
    seen = verdict(2.0, 1.8)
    assert "in processor time it is +" in seen.sentence
    assert "the calls waited, as on a busy machine" in seen.sentence
    assert any("--perfgate-against" in line for line in seen.next)


def test_a_devices_own_time_knows_no_waiting_for_cores() -> None:
    assert verdict(2.0, timer="events", device=GPU).outcome is Outcome.REGRESSED


def test_one_process_by_another_clock_and_nobody_knows_what_waited() -> None:
    calm = samples(2e6)
    host = replace(calm, cpu=tuple(wall / 1.9 for wall in calm.durations))
    processes = (host, host, samples(2e6, timer="events"))
    context = JudgeContext(kinds=KINDS, gates=1)
    found = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert found.verdicts[0].outcome is Outcome.REGRESSED


def test_a_suspect_beyond_chance_says_what_kept_it_from_a_conviction() -> None:
    loose = measured(9.3e6, shape=(0.3, 1.7))
    report = judge(loose, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=JudgeContext(kinds=KINDS))
    (found,) = report.verdicts
    assert found.outcome is Outcome.SUSPECT
    assert "and this is more; what keeps it from a conviction is its own interval of 2 processes" in found.sentence
    assert "it begins at -" in found.sentence
