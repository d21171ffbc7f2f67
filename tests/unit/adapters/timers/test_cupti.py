from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from statistics import median

import pytest

from pytest_perfgate.adapters.bindings.cupti import CuptiRecorder, KernelRecord
from pytest_perfgate.adapters.timers.auto import AutoTimer, GraphTimer
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache


class FakeRecorder:
    """Reads the records off the simulated GPU; loses some where it is told to."""

    def __init__(self, gpu, *, holds=10**9, counts=True, silent=False) -> None:
        self.gpu, self.holds, self.counts, self.silent = gpu, holds, counts, silent
        self.sizes, self.calls, self.lost, self.size = [], {}, 0, 0

    def availability(self):
        return Availability(name="cupti", usable=True)

    @contextmanager
    def opened(self, size):
        self.size = size
        self.sizes.append(size)
        yield self

    def push(self, call):
        self.call, self.first = call, len(self.gpu.executed)

    def pop(self):
        self.calls[self.call] = self.gpu.executed[self.first :]

    def drain(self):
        records = [
            KernelRecord(start=int(start), end=int(end), stream=stream, device=0, call=call)
            for call, work in self.calls.items()
            for start, end, stream in work
        ]
        self.calls = {}
        drained = records[: self.size * self.holds // (256 * 1024)]
        self.lost = len(records) - len(drained)
        return drained

    def dropped(self):
        return 0 if self.silent else self.lost

    def counts_drops(self, call):
        call()
        return self.counts


def two_streams(gpu):
    def call() -> None:
        gpu.kernel(60_000)
        gpu.kernel(60_000, stream=1)
        gpu.kernel(2_000)

    return call


def test_busy_and_span_and_overlap_are_apart(gpu, rules, plan) -> None:
    samples = CuptiTimer(rules, FakeRecorder(gpu)).measure(two_streams(gpu), plan, gpu)
    notes = dict(samples.notes)
    assert samples.timer == "cupti"
    assert len(samples.busy) == len(samples.durations)
    assert 62_000 <= median(samples.busy) < 122_000
    assert notes["kernels"] == "3 a call on 2 streams"
    assert float(notes["overlap of streams"]) > 0.2
    assert "counter proved" in notes["dropped records"]


def test_a_stream_of_each_of_two_devices_is_two_streams(gpu, rules, plan, monkeypatch) -> None:
    drained = FakeRecorder.drain
    monkeypatch.setattr(
        FakeRecorder, "drain", lambda self: [replace(one, device=one.stream, stream=7) for one in drained(self)]
    )
    samples = CuptiTimer(rules, FakeRecorder(gpu)).measure(two_streams(gpu), plan, gpu)
    assert dict(samples.notes)["kernels"] == "3 a call on 2 streams"


class LateRecorder(FakeRecorder):
    """Stamps some batches of records as longer than the host waited, as an H100 did for a lone copy."""

    def __init__(self, gpu, *, late) -> None:
        super().__init__(gpu)
        self.late, self.batches = late, 0

    def drain(self):
        self.batches += 1
        return [replace(one, end=one.end + 10**9) if self.batches in self.late else one for one in super().drain()]


def test_the_lone_call_after_the_start_of_cupti_only_shows_its_records(gpu, rules, plan) -> None:
    samples = CuptiTimer(rules, LateRecorder(gpu, late={1})).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert median(samples.durations) == 2_000
    with pytest.raises(PerfgateError, match="that the host waited"):
        CuptiTimer(rules, LateRecorder(gpu, late={2})).measure(lambda: gpu.kernel(2_000), plan, gpu)


def test_cold_flushes_before_every_call(gpu, rules, plan) -> None:
    gpu.cold = 2.0
    timer = CuptiTimer(rules, FakeRecorder(gpu))
    warm = median(timer.measure(lambda: gpu.kernel(100_000), plan, gpu).durations)
    assert gpu.flushes == 0
    launches = gpu.launches
    cold = median(timer.measure(lambda: gpu.kernel(100_000), replace(plan, cache=Cache.COLD), gpu).durations)
    assert cold == pytest.approx(2 * warm)
    assert 40 <= gpu.flushes <= gpu.launches - launches


def test_a_gap_between_kernels_is_span_and_not_busy(gpu, rules, plan) -> None:
    def call() -> None:
        gpu.kernel(2_000)
        gpu.kernel(2_000)

    gpu.launch_ns = 10_000.0
    samples = CuptiTimer(rules, FakeRecorder(gpu)).measure(call, plan, gpu)
    assert median(samples.busy) == 4_000
    assert median(samples.durations) == 12_000
    assert samples.launch_gap == pytest.approx(19_500, rel=0.2)


@pytest.mark.parametrize("percent", [1, 3])
def test_a_slowdown_of_a_short_kernel_is_seen(gpu, rules, plan, percent) -> None:
    timer = CuptiTimer(rules, FakeRecorder(gpu))
    before, after = (
        median(timer.measure(lambda ns=ns: gpu.kernel(ns), plan, gpu).durations) for ns in (2000, 2000 + 20 * percent)
    )
    assert after / before - 1 == pytest.approx(percent / 100)


def test_dropped_records_are_measured_again_with_four_times_the_buffers(gpu, rules, plan) -> None:
    recorder = FakeRecorder(gpu, holds=10)
    samples = CuptiTimer(rules, recorder).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert recorder.sizes == [256 * 1024, 1024 * 1024]
    (discard,) = samples.discarded
    assert discard.count == 32
    assert "22 records dropped" in discard.reason


def test_dropped_to_the_end_gives_no_number(gpu, rules, plan) -> None:
    with pytest.raises(PerfgateError, match="cupti-dropped") as caught:
        CuptiTimer(rules, FakeRecorder(gpu, holds=1)).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert "4096 KiB" in caught.value.what


@pytest.mark.parametrize("holds", [10**9, 70], ids=["nothing lost", "records lost unseen"])
def test_a_counter_that_does_not_count_gives_no_number(gpu, rules, plan, holds) -> None:
    recorder = FakeRecorder(gpu, holds=holds, silent=True, counts=False)

    def call() -> None:
        for _ in range(5):
            gpu.kernel(2_000)

    with pytest.raises(PerfgateError, match="cupti-unproved"):
        CuptiTimer(rules, recorder).measure(call, plan, gpu)
    samples = AutoTimer(rules, [CuptiTimer(rules, recorder), GraphTimer(rules)]).measure(call, plan, gpu)
    assert samples.timer == "graph"
    assert "not cupti: CUPTI's counter of dropped records does not work" in dict(samples.notes)["timer"]


def test_calls_that_differ_in_their_kernels_give_no_number(gpu, rules, plan) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        for _ in range(2 + (len(calls) % 7 == 0)):
            gpu.kernel(2_000)

    with pytest.raises(PerfgateError, match="between 2 and 3 records"):
        CuptiTimer(rules, FakeRecorder(gpu)).measure(call, plan, gpu)


def test_a_call_without_kernels_gives_no_number(gpu, rules, plan) -> None:
    with pytest.raises(PerfgateError, match="timer-broken"):
        CuptiTimer(rules, FakeRecorder(gpu)).measure(lambda: None, plan, gpu)


def test_a_runtime_that_is_not_cuda_is_refused(gpu, rules, plan) -> None:
    gpu.cuda = False
    timer = CuptiTimer(rules, FakeRecorder(gpu))
    assert "does not run on CUDA" in timer.availability(gpu).why
    with pytest.raises(PerfgateError, match="timer-unsuited"):
        timer.measure(lambda: gpu.kernel(2_000), plan, gpu)


class Record:
    def __init__(self, **fields) -> None:
        self.__dict__.update(fields)


class FakeCupti:
    __name__ = "fake"

    class cuptiError(Exception):
        pass

    class ActivityKind:
        CONCURRENT_KERNEL, KERNEL, MEMCPY, MEMSET, EXTERNAL_CORRELATION, RUNTIME, DRIVER = range(7)

    class ExternalCorrelationKind:
        CUSTOM0 = 6

    def __init__(self, fail_on: str = "") -> None:
        self.fail_on, self.enabled, self.stack, self.pending, self.lost, self.count = fail_on, set(), [], [], 0, 0

    def activity_register_callbacks(self, requested, completed):
        self.requested, self.completed = requested, completed

    def activity_enable(self, kind):
        if self.fail_on == "enable":
            raise self.cuptiError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_push_external_correlation_id(self, kind, call):
        self.stack.append(call)

    def activity_pop_external_correlation_id(self, kind):
        return self.stack.pop()

    def launch(self, start, end):
        self.count += 1
        kinds = self.ActivityKind
        self.pending.append(Record(kind=kinds.RUNTIME, correlation_id=self.count))
        if self.stack:
            external = self.stack[-1]
            self.pending.append(
                Record(kind=kinds.EXTERNAL_CORRELATION, correlation_id=self.count, external_id=external)
            )
        self.pending.append(
            Record(
                kind=kinds.CONCURRENT_KERNEL, start=start, end=end, stream_id=7, device_id=0, correlation_id=self.count
            )
        )

    def activity_flush_all(self, flag):
        size, _ = self.requested()
        fits = size // 200
        self.completed(self.pending[:fits])
        self.lost += len(self.pending[fits:])
        self.pending = []

    def activity_get_num_dropped_records(self, context, stream, address):
        import ctypes

        ctypes.c_size_t.from_address(address).value = self.lost
        self.lost = 0


def test_the_binding_ties_kernels_to_calls() -> None:
    cupti = FakeCupti()
    recorder = CuptiRecorder(lambda: cupti)
    with recorder.opened(256 * 1024):
        cupti.launch(0, 5)
        recorder.push(17)
        cupti.launch(10, 30)
        recorder.pop()
        inside, outside = sorted(recorder.drain(), key=lambda r: r.call is None)
        assert (inside.call, inside.start, inside.end, inside.stream) == (17, 10, 30, 7)
        assert outside.call is None
        assert recorder.dropped() == 0
        assert recorder.counts_drops(lambda: cupti.launch(0, 1))
        assert recorder.drain() == []
    assert cupti.enabled == set()


def test_a_binding_whose_counter_stands_still_says_so() -> None:
    cupti = FakeCupti()
    cupti.activity_get_num_dropped_records = lambda context, stream, address: None
    recorder = CuptiRecorder(lambda: cupti)
    with recorder.opened(256 * 1024):
        assert not recorder.counts_drops(lambda: cupti.launch(0, 1))
        cupti.launch(3, 4)
        assert len(recorder.drain()) == 1


def test_another_subscriber_is_an_error() -> None:
    cupti = FakeCupti(fail_on="enable")
    recorder = CuptiRecorder(lambda: cupti)
    assert "MULTIPLE_SUBSCRIBERS" in recorder.availability().why
    with pytest.raises(PerfgateError, match="cupti-busy"), recorder.opened(1024):
        pass


@pytest.mark.parametrize("failure", [ImportError("no cupti"), KeyError("driver"), OSError("libcuda"), AssertionError()])
def test_a_missing_library_is_a_reason_and_no_crash(failure) -> None:
    def load():
        raise failure

    availability = CuptiRecorder(load).availability()
    assert not availability.usable
    assert type(failure).__name__ in availability.why


def test_a_proof_elsewhere_stands_for_one_that_this_process_might_not_survive(rules, gpu, plan) -> None:
    class Deadly(FakeRecorder):
        def counts_drops(self, call):
            raise AssertionError("tried in this process")

    samples = CuptiTimer(rules, Deadly(gpu), lambda: "").measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert samples.timer == "cupti"
    died = CuptiTimer(rules, Deadly(gpu), lambda: "the proof of its counter died of signal 11")
    with pytest.raises(PerfgateError, match=r"signal 11  \[cupti-unproved\]"):
        died.measure(lambda: gpu.kernel(2_000), plan, gpu)
    by_graph = AutoTimer(rules, [died, GraphTimer(rules)]).measure(lambda: gpu.kernel(2_000), plan, gpu)
    assert by_graph.timer == "graph"
