from __future__ import annotations

import functools
import time
import types
from collections import deque

import pytest

from pytest_perfgate.adapters.bindings.border import reachable_objects


class Queue:
    pass


GLOBAL = Queue()


def uses_global():
    return GLOBAL


def test_closures_arguments_objects_and_globals_are_looked_at() -> None:
    first, second, third, fourth = Queue(), Queue(), Queue(), Queue()

    class Holder:
        def __init__(self) -> None:
            self.queue = third

        def run(self):
            return self.queue

    def closed(again=fourth):
        return first, again

    assert reachable_objects(closed, Queue) == (first, fourth)
    assert reachable_objects(functools.partial(print, {"q": [second]}), Queue) == (second,)
    assert reachable_objects(Holder().run, Queue) == (third,)
    assert reachable_objects(uses_global, Queue) == (GLOBAL,)


def test_nothing_within_reach_is_nothing() -> None:
    assert reachable_objects(lambda: 1, Queue) == ()
    assert reachable_objects(len, Queue) == ()


def test_circles_and_unbound_names_do_no_harm() -> None:
    ring: list[object] = []
    ring.append(ring)

    def call():
        return ring, later

    assert reachable_objects(call, Queue) == ()
    later = 1


def test_each_is_found_once() -> None:
    queue = Queue()
    assert reachable_objects(lambda: (queue, [queue]), Queue) == (queue,)


HELD = Queue()
SPACE = types.ModuleType("space")
SPACE.queue, SPACE.other = Queue(), Queue()


def in_a_comprehension():
    return [HELD for _ in range(3)]


def in_a_function_inside():
    def inner():
        return HELD

    return inner


def of_a_module():
    return SPACE.queue


def by_keyword(*, queue=HELD):
    return queue


class Callable_:
    def __call__(self):
        return HELD


@pytest.mark.parametrize(
    "call",
    [
        in_a_comprehension,
        in_a_function_inside,
        by_keyword,
        Callable_(),
        functools.partial(print, queue=HELD),
        functools.partial(print, deque([HELD])),
    ],
)
def test_what_a_call_holds_is_found(call) -> None:
    assert reachable_objects(call, Queue) == (HELD,)


def test_of_a_module_what_is_named_is_found_and_the_rest_is_not() -> None:
    assert reachable_objects(of_a_module, Queue) == (SPACE.queue,)


@pytest.mark.torch
def test_weights_are_found_however_deep_they_lie() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    layers = torch.nn.Linear(2, 3)
    for _ in range(5):
        layers = torch.nn.Sequential(layers)
    tensors = reachable_objects(lambda: layers, torch.Tensor)
    assert {id(tensor) for tensor in tensors} >= {id(tensor) for tensor in layers.parameters()}


def test_what_raises_at_being_asked_has_no_parts() -> None:
    queue = Queue()

    class Rude:
        @property
        def __dict__(self) -> dict:  # type: ignore[override]
            raise ValueError("ask somebody else")

    class Lazy(dict):
        def values(self):
            raise OSError("the file is gone")

    assert reachable_objects([Rude(), Lazy(a=1), queue], Queue) == (queue,)


@pytest.mark.parametrize(
    "table", [list, set, lambda some: dict(enumerate(some)), deque], ids=["list", "set", "dict", "deque"]
)
def test_a_million_numbers_within_reach_cost_no_second(table) -> None:
    numbers, queue = table(float(number) for number in range(1_000_000)), Queue()
    began = time.thread_time()
    assert reachable_objects(lambda: (numbers, queue), Queue) == (queue,)
    assert time.thread_time() - began < 0.5


def test_a_table_of_objects_ends_the_search_behind_what_is_near() -> None:
    points, queue, holder = [(float(number), [0.0]) for number in range(200_000)], Queue(), [Queue()]
    began = time.thread_time()
    assert reachable_objects(lambda: (holder, points, queue), Queue) == (holder[0], queue)
    assert time.thread_time() - began < 1


def test_a_number_in_a_table_of_numbers_hides_no_object() -> None:
    queue = Queue()
    mixed = [1.0] * 100_000 + [queue]
    assert reachable_objects(lambda: mixed, Queue) == (queue,)


def test_the_way_to_an_object_is_the_shortest() -> None:
    """What was met at the end of a long way is followed again where it lies near."""
    queue = Queue()
    near = [[queue]]
    far = [[[[[near]]]]]
    assert reachable_objects(lambda: (far, near), Queue) == (queue,)


def test_an_object_that_is_named_first_comes_before_one_that_lies_nearer() -> None:
    """The first queue is timed: that of the kernel which is named first, not one which only lies nearer."""
    inside, bare = Queue(), Queue()
    kernel, other = types.SimpleNamespace(queue=inside), bare
    assert reachable_objects(lambda: (kernel, other), Queue) == (inside, bare)
