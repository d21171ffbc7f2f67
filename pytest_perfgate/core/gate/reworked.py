"""Tests that may measure something else than before, under the line that was accepted before."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.core.gate.definitions import AROUND, ITSELF, Parts, parts_of
from pytest_perfgate.core.gate.parametrised import PARAMETERS, other_parameters


def reworked(then: str, now: str) -> dict[str, tuple[str, ...]]:
    """What differs of each test of two versions of a file: itself, its parameters, or names that it reaches.

    A test that one of them does not have is another test.
    """
    before, after = parts_of(then), parts_of(now)
    apart = {name: _apart(parts, after[name]) for name, parts in before.items() if name in after}
    return {name: parts for name, parts in apart.items() if parts}


def _apart(before: Parts, after: Parts) -> tuple[str, ...]:
    own = [(part, before[part] != after[part]) for part in (ITSELF, AROUND)]
    own.append((PARAMETERS, other_parameters(before, after)))
    if any(differs for _, differs in own):
        return tuple(part for part, differs in own if differs)  # what it names now is another question
    both: Mapping[str, str] = {**before, **after}
    apart = (name for name in both if before.get(name) != after.get(name) and not name.startswith(PARAMETERS))
    return tuple(sorted(name.removeprefix("self.") for name in apart))
