from __future__ import annotations

import functools

from pytest_perfgate.adapters.bindings.touched import touched


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

    assert touched(closed, Queue) == (first, fourth)
    assert touched(functools.partial(print, {"q": [second]}), Queue) == (second,)
    assert touched(Holder().run, Queue) == (third,)
    assert touched(uses_global, Queue) == (GLOBAL,)


def test_nothing_within_reach_is_nothing() -> None:
    assert touched(lambda: 1, Queue) == ()
    assert touched(len, Queue) == ()


def test_circles_and_unbound_names_do_no_harm() -> None:
    ring: list[object] = []
    ring.append(ring)

    def call():
        return ring, later

    assert touched(call, Queue) == ()
    later = 1


def test_each_is_found_once() -> None:
    queue = Queue()
    assert touched(lambda: (queue, [queue]), Queue) == (queue,)
