"""Captures by name, and what a profiled child is told and tells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.children import Capture

CAPTURES = ("event", "annotation", "ncu", "nsys", "torch", "cupti", "cubin")
"""The one list of captures: ``capture=``, ``--perfgate-capture`` and ``perfgate profile --mode``."""
IN_PROCESS = frozenset({"torch", "cupti"})
"""Captures that need no launcher around the process, and so can stand beside the timing of a test."""
STATIC = "cubin"
"""The capture of machine code that a test hands over: it needs neither a device nor a clock."""
TIMED = "event"
"""The capture that is the timing itself."""
READ = "read"
"""What figures of a file that a test read have in place of a timer."""
VARIABLE = "PERFGATE_PROFILE"
"""Tells a child which instrument to enter around the region, and where its folder is."""
LOG, TOLD = "profiler.log", "child.json"
"""Files in the folder of a profile: what the child printed, and what it says of itself."""


def external(names: tuple[str, ...]) -> tuple[str, ...]:
    """The captures that are taken in a run of their own, after the timing."""
    return tuple(dict.fromkeys(name for name in names if name not in {TIMED, STATIC}))


def code_alone(captures: Sequence[Capture]) -> bool:
    """Whether a test brought machine code and nothing else: it is the same in every process, so one has read it all."""
    return bool(captures) and all(capture.identity.timer == STATIC for capture in captures)


@value
class Assignment:
    """What a profiled child is told."""

    mode: str
    out: str
    call: str | None = None
    """The name of the one call to watch; none watches every one."""
    clocks: str = ""
    """The policy of the command line; empty leaves it to the test's own plan."""
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts, where the child was not given them on its command line."""
    markers: tuple[str, ...] = ()
    bare: bool = False
    """Whether the child runs without the plugins that select, repeat and report."""

    def text(self) -> str:
        return json.dumps(asdict(self))


def parse_assignment(text: str) -> Assignment:
    """What ``Assignment.text`` wrote."""
    held: dict[str, Any] = json.loads(text)
    held["options"] = tuple((str(name), str(given)) for name, given in held["options"])
    held["markers"] = tuple(held["markers"])
    return Assignment(**held)


@value
class Told:
    """What a profiled child says of itself when its test is over."""

    outcome: str = ""
    """passed, failed or skipped; empty when it never came to an end."""
    text: str = ""
    error: tuple[str, str, str] = ("", "", "")
    """(code, what, mend) of an error of ours that ended the test."""
    entered: int = 0
    """How often the instrument was entered."""
    seen: tuple[str, ...] = ()
    """Names of the calls that the test made."""
    facts: tuple[tuple[str, Any], ...] = ()
    """Device, parameters, dtype, clocks, notes: what the profile was taken with."""


def parse_told(held: dict[str, Any]) -> Told:
    """What a child wrote as JSON."""
    code, what, mend = (*held.get("error", ()), "", "", "")[:3]
    return Told(
        outcome=str(held.get("outcome", "")),
        text=str(held.get("text", "")),
        error=(str(code), str(what), str(mend)),
        entered=int(held.get("entered", 0)),
        seen=tuple(held.get("seen", ())),
        facts=tuple((name, given) for name, given in held.get("facts", ())),
    )
