"""What the arrays that a call can reach hold: constants make a GPU draw less power, and run faster than on data."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.core.render.plural import first_of
from pytest_perfgate.model.ports import Contents
from pytest_perfgate.model.problem import Finding

CONSTANT = "constant inputs"
_LEAST = 2
"""One array may be what the call fills: of that, nothing is said."""
_NAMED = 3


def constant_inputs(contents: Contents, things: Iterable[object]) -> Finding | None:
    """A note where every array on the device holds one value; an output that is still to be written is no input.

    What cannot be told apart says nothing: as soon as one array holds data, so may all that count.
    """
    told: list[str] = []
    for array in contents.within(*things):
        level = contents.level(array)
        if level == "":
            return None
        if level is not None:
            told.append(f"{contents.name(array)} is all {level}")
    if len(told) < _LEAST:
        return None
    why = "a GPU draws less power on such data and may run faster than on yours"
    return Finding(title=CONSTANT, detail=f"{first_of(told, _NAMED)}: {why}")
