from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.timers.graph import GraphTimer, bytes_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache


class Inputs:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Rotated:
    """A call in the form that the fixture hands over: bound to inputs at will."""

    def __init__(self, gpu, nanoseconds: float) -> None:
        self.gpu, self.nanoseconds, self.seen = gpu, nanoseconds, []

    def __call__(self) -> None:
        self.gpu.kernel(self.nanoseconds)

    def bind(self, inputs):
        def run() -> None:
            self.seen.append(inputs)
            self()

        return run


def test_a_kernel_too_short_for_events_is_timed(gpu, rules, plan) -> None:
    samples = GraphTimer(rules).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert samples.batch >= 100
    assert median(samples.durations) == pytest.approx(2_000, rel=0.001)
    assert not samples.problems
    assert samples.launch_gap == pytest.approx(4_000, rel=0.5)
    assert "calls over 1 buffers" in dict(samples.notes)["graph"]


@pytest.mark.parametrize("percent", [1, 3])
def test_a_slowdown_of_a_short_kernel_is_seen(gpu, rules, plan, percent) -> None:
    timer = GraphTimer(rules)
    before, same, after = (
        timer.measure(lambda ns=ns: gpu.kernel(ns), plan, gpu)
        for ns in (2_000, 2_000, 2_000 * (1 + percent / 100))
    )  # fmt: skip
    assert median(same.durations) == median(before.durations)
    assert median(after.durations) / median(before.durations) - 1 == pytest.approx(percent / 100, rel=0.05)


def test_cold_needs_buffers_to_rotate(gpu, rules, plan) -> None:
    with pytest.raises(PerfgateError, match="cache-cold-batch"):
        GraphTimer(rules).measure(lambda: gpu.kernel(2_000), replace(plan, cache=Cache.COLD), gpu)


def test_cold_rotates_more_than_twice_the_cache_and_captures_every_buffer(gpu, rules, plan) -> None:
    call, made = Rotated(gpu, 50_000), []

    def setup():
        made.append(Inputs(100_000))
        return made[-1]

    samples = GraphTimer(rules).measure(call, replace(plan, cache=Cache.COLD), gpu, setup)
    buffers = {id(inputs) for inputs in call.seen}
    assert sum(inputs.nbytes for inputs in made if id(inputs) in buffers) > 2 * gpu.device().cache_bytes
    assert samples.batch >= len(buffers)


@pytest.mark.parametrize(("size", "said"), [(0, "not known"), (10, "buffers of 10 bytes")])
def test_buffers_that_cannot_fill_the_cache_are_refused(gpu, rules, plan, size, said) -> None:
    cold = replace(plan, cache=Cache.COLD)
    with pytest.raises(PerfgateError, match=said):
        GraphTimer(rules).measure(Rotated(gpu, 1_000), cold, gpu, lambda: Inputs(size))


def test_a_graph_without_work_gives_no_number(gpu, rules, plan) -> None:
    with pytest.raises(PerfgateError, match="timer-broken"):
        GraphTimer(rules).measure(lambda: None, plan, gpu)


def test_a_library_without_graphs_says_so(gpu, rules, plan, monkeypatch) -> None:
    def refuse(call):
        raise PerfgateError("graph-unsupported", "no graphs here")

    monkeypatch.setattr(gpu, "capture", refuse)
    assert not GraphTimer(rules).availability(gpu).usable
    with pytest.raises(PerfgateError, match="graph-unsupported"):
        GraphTimer(rules).measure(lambda: gpu.kernel(2_000), plan, gpu)


def test_sizes_of_what_a_setup_returns() -> None:
    assert bytes_of([Inputs(3), {"a": Inputs(4), "b": (Inputs(5), "text")}]) == 12
