"""What surrounds a device: versions that are kept beside an accepted time and compared with those of today."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.device import Device

KEPT = ("driver", "toolkit", "framework", "ptxas")
LEVELS = ("off", "shown", "major", "minor", "exact")
"""How closely versions must agree for a baseline to be compared; ``shown`` only tells what differs."""

Fact = tuple[str, str]
Move = tuple[str, str, str]
"""(name, then, now)"""
_VERSION = re.compile(r"(.*?)(\d+)(?:\.(\d+))?")


def facts_of(device: Device) -> tuple[Fact, ...]:
    """The versions that a baseline keeps."""
    known = dict(device.facts)
    return tuple((name, known[name]) for name in KEPT if known.get(name))


def accepted_facts(baseline: Baseline) -> tuple[Fact, ...]:
    """Those around the accepted sitting; none where the line kept no environment."""
    known = dict(baseline.surroundings.facts) if baseline.surroundings else {}
    found = ((name, known.get(f"device {name}") or known.get(name, "")) for name in KEPT)
    return tuple((name, text) for name, text in found if text)


def moves(then: Iterable[Fact], now: Iterable[Fact], level: str = "exact") -> tuple[Move, ...]:
    """What differs at this level; what one side does not know is no difference."""
    here = dict(now)
    both = ((name, was, here[name]) for name, was in then if name in here)
    return tuple(move for move in both if rounded(move[1], level) != rounded(move[2], level))


def rounded(text: str, level: str) -> tuple[str, ...]:
    """A version as far as this level looks: ``torch 2.13.0`` is ``torch``, 2, 13 at ``minor``."""
    found = _VERSION.match(text) if level != "exact" else None
    if found is None:
        return (text,)
    name, major, minor = found.group(1), found.group(2), found.group(3) or ""
    return (name, major) if level == "major" else (name, major, minor)
