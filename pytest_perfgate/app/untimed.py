"""Calls that an arm did not time in every round, or whose times are none: nobody compares them, and why is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_perfgate.app.duet import BASE, HEAD
from pytest_perfgate.core.gate.trust import untimed
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.arm import Arm
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.paired import PairedRound
from pytest_perfgate.model.plan import CaseKey

Side = tuple[Capture, ...]
Untimed = dict[CaseKey, str]


def timed(side: Side) -> dict[CaseKey, Capture]:
    """What one process timed as no statistic stumbles over: a zero has no ratio and no logarithm."""
    return {one.key: one for one in side if one.samples and not _fault(one)}


def untimed_in(arms: Sequence[Arm], rounds: Sequence[PairedRound], sides: Sequence[int] = (HEAD, BASE)) -> Untimed:
    """Calls of which these sides have no time to compare, with the arm and why."""
    found = {side: untimed_on(side, rounds) for side in sides}
    return {key: f"{arms[side].name}: {why}" for side, told in found.items() for key, why in told.items()}


def untimed_on(side: int, rounds: Iterable[PairedRound]) -> Untimed:
    """Calls that one side (base, head) timed in some round and not well in all, with what was wrong first."""
    ran: Counter[str] = Counter()
    faults: dict[CaseKey, list[str]] = {}
    for one in rounds:
        if not one.trouble:
            ran[one.nodeid] += 1
            for capture in (one.base, one.head)[side]:
                if capture.samples:
                    faults.setdefault(capture.key, []).append(_fault(capture))
    told = {key: next(filter(None, found), _seldom(len(found), ran[key.nodeid])) for key, found in faults.items()}
    return {key: why for key, why in told.items() if why}


def _fault(capture: Capture) -> str:
    return next(filter(None, map(untimed, capture.samples)), "")


def _seldom(count: int, rounds: int) -> str:
    return f"timed in {count} of {plural(rounds, 'round')}: the call does not always happen" if count < rounds else ""
