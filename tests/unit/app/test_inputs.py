from __future__ import annotations

import pytest

from pytest_perfgate.app.output_check import CONSTANT, constant_inputs


class Arrays:
    """Contents of which each thing is an array with a level."""

    def within(self, *things):
        return tuple(thing for thing in things if isinstance(thing, tuple))

    def level(self, array):
        return array[1]

    def name(self, array):
        return array[0]


A, B = ("float16[64, 64]", "0"), ("float32[4096]", "1")


def said(*things) -> str:
    found = constant_inputs(Arrays(), things)
    return found.detail if found else ""


def test_constants_are_named_with_what_it_means() -> None:
    assert said(A, B).startswith("float16[64, 64] is all 0, float32[4096] is all 1: a GPU draws less power")
    assert constant_inputs(Arrays(), (A, B)).title == CONSTANT
    assert "is all 0 and 2 more: " in said(A, B, A, A, B)


@pytest.mark.parametrize(
    "things",
    [
        (),
        (A,),  # may be what the call fills
        (A, B, ("float32[64]", "")),  # data, beside a mask or an output that is still zero
        (A, ("bool[4096]", None)),
        (A, 3.5, "text"),
    ],
)
def test_nothing_is_said_where_data_may_count(things) -> None:
    assert said(*things) == ""
