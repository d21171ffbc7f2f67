"""Tests that pytest-codspeed measures from end to end: marked, and without a fixture to call."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from unittest import TestCase

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_WHOLE = pytest.StashKey[bool]()


def gate_whole(items: Iterable[pytest.Item]) -> None:
    """Give each such test our fixture; with pytest-benchmark the mark alone means nothing."""
    for item in items:
        if _is_whole(item):
            item.stash[_WHOLE] = True
            names: list[str] = item.fixturenames  # type: ignore[attr-defined]
            if "perfgate" not in names:
                names.append("perfgate")


def measure_whole(item: Any, fixture: Callable[..., Any]) -> bool | None:
    """Call the test by a fixture that nobody asked for, where it is one of those."""
    if not item.stash.get(_WHOLE, False):
        return None
    given = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}  # noqa: SLF001 - as pytest calls it
    item.funcargs["benchmark"] = fixture(item.funcargs["perfgate"], item)
    item.funcargs["benchmark"](partial(item.obj, **given))
    return True


def _is_whole(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or "perfgate" in item._fixtureinfo.argnames:  # noqa: SLF001 - as above
        return False
    if {"benchmark", "codspeed_benchmark"} & set(item.fixturenames) or issubclass(item.cls or object, TestCase):
        return False
    marked = item.get_closest_marker("benchmark") is not None and find_spec("pytest_codspeed") is not None
    return marked or item.get_closest_marker("codspeed_benchmark") is not None
