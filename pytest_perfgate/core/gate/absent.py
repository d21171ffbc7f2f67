"""Gated tests of a revision that this run did not find: a comparison with it says nothing of them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.gate.bodies import same_bodies
from pytest_perfgate.core.gate.marked import marked
from pytest_perfgate.core.gate.reach import Reach


def absent(path: str, then: str, now: str | None, found: frozenset[str], reach: Reach) -> Iterator[str]:
    """Those of one file, each with what became of it; parameters are not looked at."""
    tests = dict.fromkeys(name.partition("#")[0].partition("[")[0] for name in marked(then))
    here, names = {node.partition("[")[0] for node in found}, same_bodies(then, now or "")
    known = marked(now or "")
    for test in tests:
        node = f"{path}::{test}"
        if node in here or not reach.holds(node) or not test.rpartition("::")[2].startswith("test"):
            continue
        said = f"now {names[test]}" if test in names else "here, and not collected" if test in known else "gone"
        yield f"{node}: {said}"
