"""cupti-python on a CUPTI of our own making, each in a process of its own; run by test_cupti.py."""

from __future__ import annotations

import contextlib
import ctypes
import io
from statistics import median
from types import SimpleNamespace

from ci.gpu import truth
from pytest_perfgate.adapters.bindings.cupti import BUFFER, CuptiRecorder
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.adapters.runtimes.cuda import CudaCoreRuntime
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.cupti import CuptiTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import Plan

with contextlib.suppress(OSError):  # in the process that forks: one import for all of them
    # before the package looks for it; its release 13.0.1 takes a name that is known, or else the file beside its wheel
    ctypes.CDLL("libcupti.so.13", ctypes.RTLD_GLOBAL)
    import cuda.core  # noqa: F401
    from cupti import cupti


def scenario(function):
    function.__scenario__ = True
    return function


class Card:
    """The made driver and the made CUPTI: what is launched on the one leaves its records in the other."""

    def __init__(self) -> None:
        self.cupti = ctypes.CDLL("libcupti.so.13")
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.cuda.fake_now.restype, self.cupti.fake_id.restype = ctypes.c_double, ctypes.c_uint64
        self.kinds, self.name = cupti.ActivityKind, ctypes.create_string_buffer(b"softmax")
        self.number = 0
        self.layouts = {
            self.kinds.CONCURRENT_KERNEL: self._newest("kernel"),
            self.kinds.MEMCPY: self._newest("memcpy"),
            self.kinds.MEMSET: self._newest("memset"),
            self.kinds.EXTERNAL_CORRELATION: cupti.activity_external_correlation_dtype,
            self.kinds.RUNTIME: cupti.activity_api_dtype,
            self.kinds.DRIVER: cupti.activity_api_dtype,
        }
        for kind, layout in self.layouts.items():
            self.cupti.fake_size(int(kind), ctypes.c_size_t(layout.itemsize))

    def _newest(self, stem: str):
        """Releases number the forms of a record; only the newest is what the library gives."""
        names = [name.removeprefix(f"activity_{stem}").removesuffix("_dtype") for name in dir(cupti)]
        return getattr(cupti, f"activity_{stem}{max(int(name) for name in names if name.isdigit())}_dtype")

    def add(self, kind, **fields) -> None:
        import numpy as np

        record = np.zeros(1, self.layouts[kind])
        for field, figure in {"kind": int(kind), **fields}.items():
            record[field] = figure
        self.cupti.fake_add(ctypes.c_void_p(record.ctypes.data))

    def launch(self, nanoseconds: float, stream: int = 7, kind=None, at: float | None = None) -> None:
        """A call of the runtime, the id that it was made under, and the work: as CUPTI leaves them."""
        kind = self.kinds.CONCURRENT_KERNEL if kind is None else kind
        self.number += 1
        begins = int(self.cuda.fake_now() if at is None else at)
        self.cuda.fake_launch(ctypes.c_double(nanoseconds))
        self.add(self.kinds.RUNTIME, correlation_id=self.number)
        if self.cupti.fake_id():
            outer = {"external_kind": int(cupti.ExternalCorrelationKind.CUSTOM0)}
            outer |= {"external_id": self.cupti.fake_id(), "correlation_id": self.number}
            self.add(self.kinds.EXTERNAL_CORRELATION, **outer)
        named = {"name": ctypes.addressof(self.name)} if kind == self.kinds.CONCURRENT_KERNEL else {}
        where = {"stream_id": stream, "device_id": 0, "correlation_id": self.number}
        self.add(kind, start=begins, end=begins + int(nanoseconds), **where, **named)

    def on(self) -> list[int]:
        return [self.cupti.fake_on(int(kind)) for kind in self.layouts]

    def set_fake(self, name: str, number: int) -> None:
        kind = ctypes.c_size_t if name == "fake_most" else ctypes.c_int
        kind.in_dll(self.cupti, name).value = number

    def measured(self, call):
        rules = Rules(
            stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= 64 else None,
            warm=lambda medians, calls, spent, plan: calls >= 5,
            clock=self.cuda.fake_now,
        )
        return CuptiTimer(rules, CuptiRecorder()).measure(call, Plan(), CudaCoreRuntime(lookup_spec))

    def refused(self, call) -> dict:
        try:
            self.measured(call)
        except PerfgateError as error:
            return {"code": error.code.name, "text": str(error), "on": self.on()}
        return {}


@scenario
def records() -> dict:
    """Two calls of three pieces each, and a kernel outside of any call."""
    card, recorder = Card(), CuptiRecorder()
    availability = recorder.availability()
    with recorder.opened(BUFFER):
        during = card.on()
        for call in (1, 2):
            recorder.push(call)
            card.launch(5_000)
            card.launch(300, 8, card.kinds.MEMSET)
            card.launch(200, 8, card.kinds.MEMCPY)
            recorder.pop()
        card.launch(50)
        rows = [(r.call, r.kind, r.name, r.stream, r.device, r.end - r.start) for r in recorder.drain()]
        lost = recorder.dropped()
    answer = {"usable": availability.usable, "version": availability.version, "during": during, "after": card.on()}
    return {**answer, "seen": rows, "lost": lost}


@scenario
def slowdown_and_none() -> dict:
    card = Card()
    took = [card.measured(lambda ns=ns: card.launch(ns)) for ns in (2_000, 2_000, 2_060)]
    return {"took": [median(samples.durations) for samples in took], "notes": dict(took[0].notes)}


@scenario
def streams_that_overlap() -> dict:
    card = Card()

    def call() -> None:
        begins = card.cuda.fake_now()
        card.launch(60_000, 7, at=begins)
        card.launch(60_000, 8, at=begins + 20_000)

    samples = card.measured(call)
    return {"busy": median(samples.busy), "span": median(samples.durations), "notes": dict(samples.notes)}


@scenario
def larger_buffers_hold_what_smaller_dropped() -> dict:
    card = Card()
    card.set_fake("fake_most", 4_000)
    samples = card.measured(lambda: card.launch(2_000))
    return {"discarded": [discard.reason for discard in samples.discarded], "n": len(samples.durations)}


@scenario
def a_buffer_asked_for_beforehand() -> dict:
    card = Card()
    card.set_fake("fake_ahead", 1)
    return {"n": len(card.measured(lambda: card.launch(2_000)).durations)}


@scenario
def dropped_to_the_end() -> dict:
    card = Card()
    card.set_fake("fake_most", 1)
    return card.refused(lambda: card.launch(2_000))


@scenario
def a_counter_that_does_not_count() -> dict:
    card = Card()
    card.set_fake("fake_counts", 0)
    return card.refused(lambda: card.launch(2_000))


@scenario
def a_check_whose_proof_fails() -> dict:
    """ci/gpu-check: the driver's own work leaves no records in this CUPTI, so no counter can count them."""
    torch, runtime = SimpleNamespace(zeros=lambda *sizes, device: None), SimpleNamespace(synchronize=lambda: None)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            truth.run_proof(torch, runtime)
        except SystemExit as end:
            return {"why": end.code, "tried": errors.getvalue().splitlines()}
    return {}


@scenario
def a_second_subscriber() -> dict:
    card = Card()
    card.set_fake("fake_taken", 1)
    try:
        with CuptiRecorder().opened(BUFFER):
            pass
    except PerfgateError as error:
        return {"code": error.code.name, "text": str(error), "found": CuptiRecorder().availability().why}
    return {}


@scenario
def one_kind_refused() -> dict:
    card = Card()
    card.set_fake("fake_refused", int(card.kinds.RUNTIME))
    return card.refused(lambda: card.launch(2_000))


@scenario
def missing() -> dict:
    availability = CuptiRecorder().availability()
    return {"usable": availability.usable, "why": availability.why, "fix": availability.fix}
