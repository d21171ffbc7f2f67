"""A call that returns what nobody ran has not done its work: timing it would pass anything."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate import work as operators
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.calls import refuse_unrun
from pytest_perfgate.plugin.fixture import Gate


async def _coroutine() -> int:
    return 1


def _generator() -> Iterator[int]:
    yield 1


async def _asynchronous() -> AsyncIterator[int]:
    yield 1


def _passed() -> Iterator[int]:
    return enumerate(map(str, "ab"))  # type: ignore[return-value]


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
    ("promise", "said", "mend"),
    [
        (_coroutine, "a coroutine that was never run", "asyncio.run(f())"),
        (_generator, "a generator that was never run", "list(f())"),
        (lambda: (x for x in "ab"), "a generator that was never run", "list(f())"),
        (lambda: map(str, [1]), "an iterator that was never run", "list(f())"),
        (lambda: filter(None, [1]), "an iterator that was never run", "list(f())"),
        (lambda: zip("a", "b", strict=True), "an iterator that was never run", "list(f())"),
        (Future, "a future that was never run", "f().result()"),
        (lambda: [Future(), Future()], "futures that were never waited for", "one.result()"),
        (Graph, "a graph that was never run", "f().compute()"),
        (_passed, "an iterator that was never run", "list(f())"),
        (lambda: itertools.chain("a", map(str, [1])), "an iterator that was never run", "list(f())"),
        (lambda: itertools.chain.from_iterable(map(str, [1])), "an iterator that was never run", "list(f())"),
        (lambda: itertools.islice(itertools.chain(_generator()), 3), "an iterator that was never run", "list(f())"),
        (lambda: itertools.permutations("ab"), "an iterator that was never run", "list(f())"),
        (lambda: re.finditer("a", "aa"), "an iterator that was never run", "list(f())"),
        (lambda: (1, map(str, [1])), "a tuple with an iterator that was never run", "before it returns"),
        (lambda: [1, _coroutine()], "a list with a coroutine that was never run", "before it returns"),
        (lambda: [_coroutine(), _coroutine()], "a list with a coroutine that was never run", "before it returns"),
        (lambda: (1, Future()), "a tuple with a future that was never run", "before it returns"),
        (_asynchronous, "an async generator that was never run", "asyncio.run(g())"),
    ],
)
def test_what_nobody_ran_is_refused(promise: object, said: str, mend: str) -> None:
    assert callable(promise)
    with pytest.raises(PerfgateError, match=said) as caught:
        refuse_unrun(promise())
    assert mend in caught.value.mend


DONE = [None, [1], iter([1]), range(3), (1,), [], (), enumerate([1]), Graph(None), Odd(), [Odd()]]


@pytest.mark.parametrize(
    "done", [*DONE, reversed([1]), itertools.chain([1], (2,)), itertools.islice([1], 1), itertools.chain([map])]
)
def test_what_was_done_is_taken(done: object) -> None:
    refuse_unrun(done)


@pytest.mark.parametrize("sample", ["x", None, "12.5", True, [1.0], 10**400])
def test_a_record_takes_numbers_alone(sample: Any) -> None:
    bench: Any = SimpleNamespace(miss=lambda *_: None, raised={})
    gate = Gate(Case(nodeid="t.py::test_a", limits=(), plan=Plan()), bench)
    with pytest.raises(PerfgateError, match="which is not a number") as caught:
        gate.record([1.0, sample])
    assert caught.value.code.name == "call-wrong"


@pytest.mark.parametrize(
    "work", [1e9, operators.gemm(-1, 2, 3, dtype="fp16"), operators.bmm(2, 3, 4, -1, dtype="fp32")]
)
def test_work_that_no_call_can_do_is_refused(work: Any) -> None:
    bench: Any = SimpleNamespace(raised={})
    gate = Gate(Case(nodeid="t.py::test_a", limits=(), plan=Plan()), bench)
    with pytest.raises(PerfgateError, match="no work that a call can do"):
        gate.record([1.0], work=work)


def test_what_raises_at_being_asked_is_taken() -> None:
    refuse_unrun(Rude())
    refuse_unrun((Rude(), 1))
