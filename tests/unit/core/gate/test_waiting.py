"""Without a second arm, time that a call spent waiting for a busy machine, or shared with others, convicts nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import Verdict
from tests.unit.core.gate.bench import GPU, KINDS, SHAPE, accepted, limit, measured, samples

BASE = 1e6


def verdict(time: float = 2e6, *, shape: tuple[float, ...] = SHAPE, device=None, **fields) -> Verdict:
    """Of a call that was accepted at 1 ms; chance explains up to +23.6 %."""
    processes = tuple(samples(time * factor, **fields) for factor in shape)
    of = {"device": device} if device else {}
    measurement = measured(time, processes=processes, **of)
    context = JudgeContext(kinds=KINDS, gates=1)
    return judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(BASE, **of), context=context).verdicts[0]


@pytest.mark.parametrize(
    ("unqueued", "others", "outcome"),
    [
        (2.0, 0.0, Outcome.REGRESSED),
        (1.3, 0.0, Outcome.REGRESSED),
        (1.3, 0.04, Outcome.REGRESSED),
        (1.27, 0.05, Outcome.REGRESSED),
        (1.27, 0.06, Outcome.SUSPECT),
        (1.2, 0.0, Outcome.SUSPECT),
        (0.0, 0.0, Outcome.SUSPECT),
        (9.0, 0.5, Outcome.REGRESSED),
        (1.8, 0.5, Outcome.SUSPECT),
        (2.0, 1.0, Outcome.SUSPECT),
        (2.0, None, Outcome.SUSPECT),
        (None, 0.0, Outcome.SUSPECT),
    ],
    ids=["its own", "less, but its own", "a clock tick of others", "just a few", "more than a few", "it queued", "it only queued", "means and outliers",
         "it queued beside others", "a neighbour", "perhaps a neighbour", "nobody looked"],
)  # fmt: skip
def test_what_a_call_queued_or_shared_is_not_its_own(unqueued: float | None, others: float, outcome: Outcome) -> None:
    own = None if unqueued is None else unqueued * BASE
    assert verdict(unqueued=own, others=others).outcome is outcome


@pytest.mark.parametrize(("slower", "outcome"), [(3.6, Outcome.SUSPECT), (3.8, Outcome.REGRESSED)])
def test_however_many_the_neighbours_four_times_slower_is_seen(slower: float, outcome: Outcome) -> None:
    assert verdict(slower * BASE, unqueued=slower * BASE, others=60.0).outcome is outcome


def test_neighbours_that_nobody_counted_are_taken_for_one() -> None:
    for slower, outcome in ((2.4, Outcome.SUSPECT), (2.6, Outcome.REGRESSED)):
        assert verdict(slower * BASE, unqueued=slower * BASE, others=None).outcome is outcome


def test_of_several_processes_the_one_with_the_most_neighbours_counts() -> None:
    quiet, beside = samples(2e6), samples(2e6, others=1.0)
    context = JudgeContext(kinds=KINDS, gates=1)
    for processes, outcome in (((quiet,) * 3, Outcome.REGRESSED), ((quiet, quiet, beside), Outcome.SUSPECT)):
        found = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(BASE),
                      context=context)  # fmt: skip
        assert found.verdicts[0].outcome is outcome


@pytest.mark.parametrize("shape", [(1.0,), (1.0, 1.0)])
def test_one_or_two_processes_convict_nobody(shape: tuple[float, ...]) -> None:
    seen = verdict(9e6, shape=shape, unqueued=9e6)
    assert seen.outcome is Outcome.SUSPECT
    assert "cannot tell how far processes are apart: it takes 3" in seen.sentence
    assert any("--perfgate-rounds=3" in line for line in seen.next)


def test_a_suspect_says_what_the_machine_did_and_how_to_decide() -> None:
    queued = verdict(unqueued=1.1e6)
    assert "without waiting for a processor it is +10.0 %: the machine was busy" in queued.sentence
    assert any("--perfgate-against" in line for line in queued.next)
    for less in (0.9e6, BASE):
        assert "without waiting for a processor it is no slower" in verdict(unqueued=less).sentence
    said = "with 0.8 processors in use by others up to +122.5 %, and without waiting for a processor it is +100.0 %"
    assert said in verdict(others=0.8).sentence
    assert "it is unknown how long the calls waited for a processor" in verdict(unqueued=None).sentence


@pytest.mark.parametrize(("stretch", "outcome"), [(1.01, Outcome.REGRESSED), (1.5, Outcome.SUSPECT)])
def test_a_region_that_only_computes_is_known_by_its_processor_time(stretch: float, outcome: Outcome) -> None:
    cpu = tuple(wall / stretch for wall in samples(2e6).durations)
    assert verdict(timer="region", unqueued=None, others=0.0, cpu=cpu).outcome is outcome


def test_a_devices_own_time_knows_no_waiting_for_cores() -> None:
    assert verdict(timer="events", device=GPU, unqueued=None, others=9.0).outcome is Outcome.REGRESSED


def test_one_process_by_another_clock_is_no_time_of_the_host() -> None:
    host = samples(2e6, unqueued=None)
    processes = (host, host, replace(host, timer="events"))
    context = JudgeContext(kinds=KINDS, gates=1)
    found = judge(measured(0, processes=processes), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=context)
    assert found.verdicts[0].outcome is Outcome.REGRESSED


def test_a_suspect_beyond_chance_says_what_kept_it_from_a_conviction() -> None:
    loose = measured(9.3e6, shape=(0.3, 1.7))
    report = judge(loose, [limit("slowdown <= 3%")], baseline=accepted(1e6), context=JudgeContext(kinds=KINDS))
    (found,) = report.verdicts
    assert found.outcome is Outcome.SUSPECT
    assert "and this is more; what keeps it from being confirmed is its own interval of 2 processes" in found.sentence
    assert "it begins at -" in found.sentence
