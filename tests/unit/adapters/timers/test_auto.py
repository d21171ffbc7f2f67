"""None"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.timers.auto import AutoTimer, GraphTimer, bytes_of, chosen
from pytest_perfgate.adapters.timers.event_pairs import EmptyPair
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache


@pytest.fixture
def auto(rules) -> AutoTimer:
    return AutoTimer(rules, [EventsTimer(rules), BlockingTimer(rules), GraphTimer(rules)])


def test_a_long_kernel_gets_events(auto, gpu, plan) -> None:
    samples = auto.measure(lambda: gpu.kernel(200_000), plan, gpu)
    assert samples.timer == "events"
    assert dict(samples.notes)["timer"].startswith("events: a sample takes 201.5 µs, 101 times")


def test_a_short_kernel_gets_a_graph(auto, gpu, plan) -> None:
    samples = auto.measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert samples.timer == "graph"
    note = dict(samples.notes)["timer"]
    assert "too short" in note
    assert "not cupti: not there" in note


def test_a_slow_host_gets_a_blocked_queue(auto, gpu, plan) -> None:
    def call() -> None:
        for _ in range(10):
            gpu.kernel(5_000)

    gpu.launch_ns = 10_000.0
    samples = auto.measure(call, plan, gpu)
    assert samples.timer == "blocking"
    assert "host launches more slowly" in dict(samples.notes)["timer"]


def test_a_call_that_synchronises_gets_events_since_it_never_fills_a_queue(rules, gpu, plan) -> None:
    def call() -> None:
        gpu.kernel(300_000)
        gpu.synchronize()

    gpu.launch_ns = 10_000.0
    auto = AutoTimer(rules, [EventsTimer(rules), BlockingTimer(rules, patience_s=0.2)])
    samples = auto.measure(call, plan, gpu)
    assert samples.timer == "events"
    assert "not blocking: The call waits for the device" in dict(samples.notes)["timer"]
    turn = auto.measure(call, replace(plan, earlier_timer="events", in_turns=True), gpu)
    assert turn.timer == "events"
    assert "not blocking" not in dict(turn.notes)["timer"], "it does not wait for a deadlock in each turn"


def test_events_of_another_process_do_not_time_a_queue_that_runs_dry_here(auto, gpu, plan) -> None:
    """They would hold the host's time, which hides a slower kernel."""
    gpu.launch_ns = 300_000.0
    samples = auto.measure(lambda: gpu.kernel(200_000), replace(plan, earlier_timer="events"), gpu)
    assert samples.timer == "blocking"


def test_nothing_fits_is_an_error_that_names_every_reason(rules, gpu, plan) -> None:
    auto = AutoTimer(rules, [EventsTimer(rules)])
    with pytest.raises(PerfgateError, match="timer-too-coarse") as caught:
        auto.measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert "not graph: not there" in caught.value.what
    assert "graph" not in caught.value.fix, "no timer that is not there"


def test_a_cold_short_call_without_buffers_is_an_error_and_not_another_timer(auto, gpu, plan) -> None:
    with pytest.raises(PerfgateError, match="cache-cold-batch"):
        auto.measure(lambda: gpu.kernel(2_000), replace(plan, cache=Cache.COLD), gpu)


def test_a_host_runtime_gets_the_host_timer(rules, plan) -> None:
    class Plain:
        name = "host"

    class Host:
        name = "host"

        def availability(self, runtime):
            from pytest_perfgate.model.device import Availability

            return Availability(name="host", usable=True)

        def measure(self, call, plan, runtime, setup=None):
            from pytest_perfgate.model.measurement import Samples, Stop

            return Samples(durations=(1.0,), timer="host", stop=Stop.COUNT)

    samples = AutoTimer(rules, [Host()]).measure(print, plan, Plain())
    assert samples.timer == "host"
    assert "works on the host" in dict(samples.notes)["timer"]


EMPTY = EmptyPair(overhead=1_500.0)
BORDER = EMPTY.shortest


@pytest.mark.parametrize(
    ("times", "earlier_timer", "first"),
    [
        (10.1, "", "events"),
        (1.5, "", "cupti"),
        (1.5, "events", "events"),
        (1.15, "", "cupti"),
        (1.15, "events", "events"),
        (1.01, "events", "cupti"),
    ],
)
def test_near_the_border_the_timer_of_before_is_kept(times, earlier_timer, first) -> None:
    assert chosen(times * BORDER, EMPTY, dry=False, earlier_timer=earlier_timer).names[0] == first


def test_what_was_taken_before_is_taken_again_and_said(auto, gpu, plan) -> None:
    def call() -> None:
        gpu.kernel(200_000)

    samples = auto.measure(call, replace(plan, earlier_timer="graph"), gpu)
    assert samples.timer == "graph"
    assert "taken for this call before" in dict(samples.notes)["timer"]
    missing = auto.measure(call, replace(plan, earlier_timer="cupti"), gpu)
    assert missing.timer == "events"
    assert "not cupti: not there" in dict(missing.notes)["timer"]


@pytest.mark.parametrize("code", ["cupti-busy", "cupti-dropped", "cupti-unproved"])
def test_records_that_cannot_be_had_leave_the_call_to_events(rules, gpu, plan, code: str) -> None:
    class NoRecords:
        name = "cupti"

        def availability(self, runtime):
            return Availability(name="cupti", usable=True)

        def measure(self, call, plan, runtime, setup=None):
            raise PerfgateError(code, "no records")

    samples = AutoTimer(rules, [NoRecords(), EventsTimer(rules)]).measure(lambda: gpu.kernel(100_000), plan, gpu)
    assert samples.timer == "events"
    assert "not cupti: " in dict(samples.notes)["timer"]


def test_events_that_refuse_after_all_leave_the_call_to_the_next(rules, gpu, plan) -> None:
    class Refusing(EventsTimer):
        def measure(self, *arguments):
            raise PerfgateError("timer-too-coarse", "a call takes 39,000 ns")

    by_graph = AutoTimer(rules, [Refusing(rules), GraphTimer(rules)])
    samples = by_graph.measure(lambda: gpu.kernel(200_000), plan, gpu)
    assert samples.timer == "graph"
    assert "not events: " in dict(samples.notes)["timer"]
    with pytest.raises(PerfgateError, match="39,000 ns"):
        AutoTimer(rules, [Refusing(rules)]).measure(lambda: gpu.kernel(200_000), plan, gpu)


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


@pytest.mark.parametrize(("size", "message"), [(0, "not known"), (10, "buffers of 10 bytes")])
def test_buffers_that_cannot_fill_the_cache_are_refused(gpu, rules, plan, size, message) -> None:
    cold = replace(plan, cache=Cache.COLD)
    with pytest.raises(PerfgateError, match=message):
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


def test_whether_a_library_has_graphs_is_tried_once_in_a_process(gpu, rules, monkeypatch) -> None:
    """Each turn of two builds asks, and each try empties the cache of torch's allocator."""
    tries, capture = [], gpu.capture
    monkeypatch.setattr(gpu, "capture", lambda call: tries.append(call) or capture(call))
    timer = GraphTimer(rules)
    assert all(timer.availability(gpu).usable for _ in range(3))
    assert len(tries) == 1


def test_sizes_of_what_a_setup_returns() -> None:
    assert bytes_of([Inputs(3), {"a": Inputs(4), "b": (Inputs(5), "text")}]) == 12
