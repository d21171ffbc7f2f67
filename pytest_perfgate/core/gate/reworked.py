"""Tests that may measure something else than before, under the line that was accepted before."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.core.gate.definitions import ITSELF, PARAMETERS, Parts, parts_of


def reworked(then: str, now: str) -> dict[str, tuple[str, ...]]:
    """What differs of each test of two versions of a file: itself, its parameters, or names that it reaches.

    A test that one of them does not have is another test.
    """
    before, after = parts_of(then), parts_of(now)
    apart = {name: _apart(parts, after[name]) for name, parts in before.items() if name in after}
    return {name: parts for name, parts in apart.items() if parts}


def _apart(before: Parts, after: Parts) -> tuple[str, ...]:
    own = tuple(part for part in (ITSELF, PARAMETERS) if before[part] != after[part])
    if own:
        return own  # what it names now is another question
    both: Mapping[str, str] = {**before, **after}
    return tuple(sorted(name.removeprefix("self.") for name in both if before.get(name) != after.get(name)))
