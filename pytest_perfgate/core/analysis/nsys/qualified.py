"""Kernels whose short name hides that they communicate: ``deep_ep::dispatch`` is ``dispatch`` there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_perfgate.core.analysis import communication
from pytest_perfgate.model.nsys_job import Reading

_ANONYMOUS = re.compile(r"<unnamed>|\(anonymous namespace\)")
_INNERMOST = re.compile(r"<[^<>()]*>|\([^<>()]*\)")


def hidden_talkers(names: Mapping[int, str], reading: Reading) -> tuple[int, ...]:
    """Of the full names those that communicate by their namespace alone; the original looks at short names."""
    if reading.original:
        return ()
    own = reading.preset.communication
    pattern = communication.communication(own)
    marked = re.compile("|".join(own)).search if own else lambda _: None
    likely = (pair for pair in names.items() if _marked(pair[1]) or marked(pair[1]))
    listed = ((number, qualified(name)) for number, name in likely)
    return tuple(number for number, name in listed if pattern.search(name) and not pattern.search(_short(name)))


def _marked(name: str) -> bool:
    low = name.lower()
    return any(mark in low for mark in communication.MARKS)


def qualified(name: str) -> str:
    """The name with its namespaces, without what it is made or called with: that may name anything."""
    name, count = _ANONYMOUS.subn("", name)
    count = 1
    while count:
        name, count = _INNERMOST.subn("", name)
    return name


def _short(name: str) -> str:
    return name.rpartition("::")[2]
