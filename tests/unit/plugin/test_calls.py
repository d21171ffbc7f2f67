"""Tests of plugin/calls."""

from __future__ import annotations

import asyncio
import copy
import csv
import enum
import io
import itertools
import re
import sqlite3
import subprocess
import threading
import time
from array import array
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_perfgate import work
from pytest_perfgate import work as operators
from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import Instruments
from pytest_perfgate.model.values import plain
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import MeasuredCall, View, refuse_unrun
from pytest_perfgate.plugin.fixture import Perfgate
from pytest_perfgate.plugin.measuring import Measuring
from pytest_perfgate.testing import FakeRuntime

NAN = np.array([1.0, np.nan])


def call_with(check: Any) -> MeasuredCall:
    return MeasuredCall(CaseKey(nodeid="t"), lambda: NAN, check=check)


@pytest.mark.parametrize("answer", [True, None, np.True_, np.array(True)])
def test_content(answer) -> None:
    call_with(lambda result: answer).once()


@pytest.mark.parametrize(
    "answer", [False, np.False_, np.array(False), 0.0, 1.0, float("nan"), "yes", np.array([True, True]), object()]
)
def test_not_content(answer) -> None:
    with pytest.raises(PerfgateError, match="check= returned") as refused:
        call_with(lambda result: answer).once()
    form = refused.value.fix != refused.value.code.fix
    assert form is (str(answer) != "False"), "a plain no is no mistake in the form"


def test_what_is_not_a_number_never_passes() -> None:
    with pytest.raises(PerfgateError, match=r"check= returned False"):
        call_with(lambda result: np.abs(result - 1.0).max() <= 1e-3).once()


@pytest.mark.torch
def test_truths_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    call_with(lambda result: torch.tensor(True)).once()
    for answer in (torch.tensor(False), torch.tensor([True]), torch.tensor(0.5)):
        with pytest.raises(PerfgateError, match="check= returned"):
            call_with(lambda result, answer=answer: answer).once()


class Zeros:
    """Two arrays within reach of anything, until a call has written them."""

    def __init__(self) -> None:
        self.looks, self.written = 0, False

    def within(self, *things):
        self.looks += 1
        return ("a", "b")

    def level(self, array):
        return "" if self.written else "0"

    def name(self, array):
        return array


@pytest.mark.parametrize("gpu", [True, False])
def test_constant_inputs_are_a_note_of_the_capture(gpu) -> None:
    contents, fake = Zeros(), FakeRuntime([2e6])
    instruments = Instruments(
        runtimes=(fake if gpu else HostRuntime(probe_host),), timers=(HostTimer(Stopping(), WarmUp()),),
        threads=str, affinity=str, contents=contents,
    )  # fmt: skip
    measuring = Measuring(instruments, lambda capture: MetricSet())

    def call() -> None:
        contents.written = True
        fake.kernel()

    plan = replace(Plan(), runtime="fake" if gpu else "host", warmup_ns=1.0, budget_ns=1.0)
    measured_call = MeasuredCall(CaseKey(nodeid="t.py::test_a"), call)
    captures = [measuring.capture(measured_call, plan) for _ in range(2)]
    assert contents.looks == gpu
    titles = [[finding.title for finding in capture.findings] for capture in captures]
    assert titles == [["constant inputs"] * gpu] * 2


@pytest.mark.parametrize(("made", "titles"), [(("zeros", "zeros"), ["constant inputs"]), (("data", "zeros"), [])])
def test_what_a_set_up_makes_is_looked_at_once_before_a_call_writes_it(made, titles) -> None:
    fake, made_of = FakeRuntime([2e6]), []

    class Kinds(Zeros):
        """Arrays are the names of what they hold."""

        def within(self, *things):
            self.looks += 1
            return things[-1]

        def level(self, array):
            return "" if self.written or array == "data" else "0"

    contents = Kinds()
    instruments = Instruments(
        runtimes=(fake,), timers=(HostTimer(Stopping(), WarmUp()),), threads=str, affinity=str, contents=contents,
    )  # fmt: skip

    def prepare():
        contents.written = False
        made_of.append(1)
        return made

    def call(one, other) -> None:
        contents.written = True
        fake.kernel()

    measured_call = MeasuredCall(CaseKey(nodeid="t.py::test_a"), call, setup=prepare)
    measuring = Measuring(instruments, lambda capture: MetricSet())
    plan = replace(Plan(), runtime="fake", warmup_ns=1.0, budget_ns=1.0)
    captures = [measuring.capture(measured_call, plan) for _ in range(2)]
    assert [[finding.title for finding in capture.findings] for capture in captures] == [titles] * 2
    assert (contents.looks, len(made_of) > 1) == (1, True)


class Kind(str, enum.Enum):
    FAST = "fast"


class Kept(Bench):
    """Keeps what it was asked."""

    call: MeasuredCall

    def take(self, call: MeasuredCall) -> View:
        self.call = call
        return super().take(call)


def gate() -> tuple[Perfgate, Kept]:
    case = Case(nodeid="t.py::test_a", limits=(), plan=Plan())
    bench = Kept(case)
    return Perfgate(case, bench), bench


@pytest.mark.parametrize(
    ("value", "expected"), [(np.int64(3), 3), (np.float32(0.5), 0.5), (np.str_("a"), "a"), (Kind.FAST, "fast")]
)
def test_numbers_and_texts_become_pythons_own(value: object, expected: object) -> None:
    result = plain(value)
    assert (result, type(result)) == (expected, type(expected))


def test_a_view_answers_whoever_only_asks_what_it_has() -> None:
    """numpy, copy, rich and editors ask any object for attributes that it may not have."""
    view = View(CaseKey(nodeid="t.py::test_a"), metrics=lambda _: MetricSet())
    nothing = View(CaseKey(nodeid="t.py::test_a"), metrics=lambda _: None)
    for one in (view, nothing):
        assert not hasattr(one, "shape")
        assert getattr(one, "mfu", "absent") == "absent"
        assert np.asarray(one).shape == ()
        assert copy.copy(one).key == one.key
        with pytest.raises(PerfgateError, match="not-measured"):
            _ = one.mfu


@pytest.mark.parametrize("value", [object(), np.zeros(3), 1j])
def test_what_no_record_holds_is_named(value: object) -> None:
    with pytest.raises(TypeError, match="is nothing that a record holds"):
        plain(value)


def test_a_call_is_asked_for_in_pythons_own_values() -> None:
    ask, bench = gate()
    done = work.Work(flops=np.float32(16.0), bytes=np.int64(8))  # type: ignore[arg-type]
    ask(int, name=np.str_("a"), calls=np.int32(4), limits=np.array(["time <= 2s"]), work=done)  # type: ignore[arg-type]
    ask(int, name=Kind.FAST)
    assert bench.call_keys[1].name == "fast"
    ask(int, name="b", calls=np.int32(4), limits=np.array(["time <= 2s"]), work=done)  # type: ignore[arg-type]
    measured_call = bench.call
    values = (
        measured_call.calls,
        *measured_call.limits,
        measured_call.work and measured_call.work.flops,
        measured_call.work and measured_call.work.bytes,
    )
    assert [(value, type(value)) for value in values] == [(4, int), ("time <= 2s", str), (16.0, float), (8, int)]
    assert type(bench.call_keys[0].name) is str


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 3}, "name= must be a text, got 3"),
        ({"limits": [5]}, "a limit must be a text, got 5"),
        ({"calls": 1.5}, "calls=1.5 is not a whole number from 1"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_a_sentence(fields: dict[str, object], message: str) -> None:
    ask, _ = gate()
    with pytest.raises(PerfgateError, match=message):
        ask(int, **fields)  # type: ignore[arg-type]


class _Awaitable:
    """What ``collect_async`` of polars and a remote call of Ray return."""

    def __await__(self) -> Iterator[None]:
        yield


class _Communication:
    """What a collective of ``torch.distributed`` returns with ``async_op=True``."""

    def is_completed(self) -> bool:
        return False

    def wait(self) -> None: ...


class _Query:
    """What ``collect(background=True)`` of polars returns."""

    def fetch_blocking(self) -> None: ...


async def _coroutine() -> int:
    return 1


def _generator() -> Iterator[int]:
    yield 1


async def _asynchronous() -> AsyncIterator[int]:
    yield 1


def _passed() -> Iterator[int]:
    return enumerate(map(str, "ab"))  # type: ignore[return-value]


@contextmanager
def _entered_by_nobody() -> Iterator[int]:
    yield 1


def _pooled() -> object:
    with ThreadPool(1) as pool:
        return pool.apply_async(int)


def _at_work() -> threading.Thread:
    thread = threading.Thread(target=time.sleep, args=(1,))
    thread.start()
    return thread


def _over() -> threading.Thread:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return thread


class Steps:
    """A reader of anybody's: it computes at each step."""

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> int:
        return 1


class Described(Future[int]):
    """A future with a text for people, which is no cursor."""

    description = None


class Odd:
    """As a quantity of pint without dask: it has the methods, and asking it raises."""

    def __dask_graph__(self) -> object:
        raise AttributeError("'NoneType' object has no attribute 'Array'")

    def compute(self) -> int:
        return 1


class Rude:
    """Whatever it is asked, it raises."""

    @property
    def __class__(self) -> type:
        raise ValueError("ask somebody else")


class Graph:
    """As a collection of dask is known, or a data set that may hold one."""

    def __init__(self, graph: object = "tasks") -> None:
        self._graph = graph

    def __dask_graph__(self) -> object:
        return self._graph

    def compute(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("promise", "message", "fix"),
    [
        (_coroutine, "a coroutine that was never run", "asyncio.run(f())"),
        (_generator, "a generator that was never run", "list(f())"),
        (lambda: (x for x in "ab"), "a generator that was never run", "list(f())"),
        (lambda: map(str, [1]), "an iterator that was never run", "list(f())"),
        (lambda: filter(None, [1]), "an iterator that was never run", "list(f())"),
        (lambda: zip("a", "b", strict=True), "an iterator that was never run", "list(f())"),
        (Future, "a future that was never run", "f().result()"),
        (Described, "a future that was never run", "f().result()"),
        (lambda: [Future(), Future()], "futures that were never waited for", "one.result()"),
        (Graph, "a graph that was never run", "f().compute()"),
        (_passed, "an iterator that was never run", "list(f())"),
        (lambda: itertools.chain("a", map(str, [1])), "an iterator that was never run", "list(f())"),
        (lambda: itertools.chain.from_iterable(map(str, [1])), "an iterator that was never run", "list(f())"),
        (lambda: itertools.islice(itertools.chain(_generator()), 3), "an iterator that was never run", "list(f())"),
        (lambda: itertools.permutations("ab"), "an iterator that was never run", "list(f())"),
        (lambda: re.finditer("a", "aa"), "an iterator that was never run", "list(f())"),
        (lambda: (1, map(str, [1])), "a tuple with an iterator that was never run", "let the call run it"),
        (_Awaitable, "an awaitable that was never run", "awaits it"),
        (_Communication, "communication that was never waited for", "f().wait()"),
        (_Query, "a query that still works", "fetch_blocking"),
        (lambda: [1, _coroutine()], "a list with a coroutine that was never run", "let the call run it"),
        (lambda: [_coroutine(), _coroutine()], "a list with a coroutine that was never run", "let the call run it"),
        (lambda: (1, Future()), "a tuple with a future that was never run", "let the call run it"),
        (_asynchronous, "an async generator that was never run", "asyncio.run(g())"),
        (_entered_by_nobody, "a context manager that was never run", "enters it"),
        (lambda: csv.reader(["a,b"]), "an iterator that was never run", "list(f())"),
        (Steps, "an iterator that was never run", "if the call has done its work, let it return nothing"),
        (lambda: enumerate(csv.reader(["a,b"])), "an iterator that was never run", "list(f())"),
        (lambda: sqlite3.connect(":memory:").execute("select 1"), "a cursor with rows that were never read", "fetch"),
        (lambda: asyncio.new_event_loop().call_soon(print), "a scheduled call that was never run", "run_until"),
        (_pooled, "a future that was never run", "f().get()"),
        (_at_work, "a thread or process that still works", "joins it"),
        (lambda: subprocess.Popen(["sleep", "1"]), "a process that still works", "waits for it"),
        (lambda: {"rows": _generator()}, "a dict with a generator that was never run", "let the call run it"),
        (lambda: {_generator()}, "a set with a generator that was never run", "let the call run it"),
    ],
)
def test_what_nobody_ran_is_refused(promise: object, message: str, fix: str) -> None:
    assert callable(promise)
    with pytest.raises(PerfgateError, match=message) as caught:
        refuse_unrun(promise())
    assert fix in caught.value.fix


DONE = [None, [1], iter([1]), range(3), (1,), [], (), enumerate([1]), Graph(None), Odd(), [Odd()]]
STORED = [iter({1: 2}.values()), iter("a"), iter({1}), np.ones(2).flat, io.StringIO("a"), {"a": [1]}, _over()]
STORED += [iter(deque([1])), reversed(deque([1])), iter(array("i", [1]))]
WITHOUT_ROWS = sqlite3.connect(":memory:").execute("create table t (a)")
READ = sqlite3.connect(":memory:").execute("select 1")
READ.fetchall()
ENDED = subprocess.Popen(["true"])
ENDED.wait()


@pytest.mark.parametrize(
    "done",
    [
        *(*DONE, *STORED, WITHOUT_ROWS, READ, ENDED, reversed([1]), itertools.count(), itertools.chain([1], (2,))),
        *(itertools.islice([1], 1), itertools.chain([map])),
    ],
)
def test_what_was_done_is_taken(done: object) -> None:
    refuse_unrun(done)


@pytest.mark.parametrize("sample", ["x", None, "12.5", True, [1.0], 10**400])
def test_a_record_takes_numbers_alone(sample: Any) -> None:
    bench: Any = SimpleNamespace(miss=lambda *_: None, raised={})
    gate = Perfgate(Case(nodeid="t.py::test_a", limits=(), plan=Plan()), bench)
    with pytest.raises(PerfgateError, match="which is not a number") as caught:
        gate.record([1.0, sample])
    assert caught.value.code.name == "call-wrong"


@pytest.mark.parametrize(
    "work", [1e9, operators.gemm(-1, 2, 3, dtype="fp16"), operators.bmm(2, 3, 4, -1, dtype="fp32")]
)
def test_work_that_no_call_can_do_is_refused(work: Any) -> None:
    bench: Any = SimpleNamespace(raised={})
    gate = Perfgate(Case(nodeid="t.py::test_a", limits=(), plan=Plan()), bench)
    with pytest.raises(PerfgateError, match="not possible for a call"):
        gate.record([1.0], work=work)


def test_what_raises_at_being_asked_is_taken() -> None:
    refuse_unrun(Rude())
    refuse_unrun((Rude(), 1))


def test_a_coroutine_function_is_refused_before_it_is_timed() -> None:
    """Python warned of each timed call that it was never awaited; with warnings as errors hundreds of errors followed."""

    class Untouched(Bench):
        def take(self, call: MeasuredCall) -> View:
            raise AssertionError(f"{call.key} was timed")

    case = Case(nodeid="t.py::test_a", limits=(), plan=Plan())
    for fn in (_coroutine, partial(_coroutine)):
        with pytest.raises(PerfgateError, match="a coroutine that was never run"):
            Perfgate(case, Untouched(case))(fn)
