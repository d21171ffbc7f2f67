"""Baselines: the accepted truth, one line a case."""

from __future__ import annotations

from pytest_perfgate.model.measurement import Environment, Identity
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import value

DIRTY = "+dirty"
"""Ends the name of a commit whose tree had changes of its own: nobody can build that again."""


def commit_name(commit: str, *, dirty: bool) -> str:
    """The commit that was measured, marked where its tree had changes; empty where none is known."""
    return f"{commit}{DIRTY}" if commit and dirty else commit


def short_commit(commit: str, digits: int = 12) -> str:
    """The first digits of a hash, with the mark that it may carry."""
    return commit.removesuffix(DIRTY)[:digits] + (DIRTY if commit.endswith(DIRTY) else "")


@value
class Baseline:
    """What was accepted for one case on one device."""

    key: CaseKey
    device: str
    time: float
    """Accepted nanoseconds per call."""
    scatter: float = 0.0
    """Relative standard deviation between sittings; 0 while there is one."""
    sittings: int = 1
    blind: float = 0.0
    """The smallest slowdown that the accepted sitting could have told from its own noise; 0 where it saw enough."""
    processes: int = 0
    """How many measured the accepted sitting, where a quick or an interrupted run took it; 0 for a whole one."""
    commit: str = ""
    """What was measured; it ends in ``+dirty`` where the tree had changes of its own."""
    who: str = ""
    when: str = ""
    """ISO date of the acceptance."""
    why: str = ""
    expires: str = ""
    identity: Identity | None = None
    local: bool = False
    """Kept under ``.perfgate/`` rather than committed."""
    place: str = ""
    """File and path inside it, for messages."""
    environment: str = ""
    """Digest of what surrounded the accepted sitting, as the line has it."""
    surroundings: Environment | None = None
    """What the digest stands for, where it is known."""
    limited: bool = False
    """Accepted at the device's power limit: a time that was not is held against it by two builds alone."""
    counted: str = ""
    """When the newest sitting started that was added to the accepted one; empty while none was."""


@value
class Sitting:
    """One line of the history: a case measured at one time."""

    key: CaseKey
    device: str
    time: float
    when: str
    commit: str = ""
    branch: str = ""
    processes: int = 1
    scatter: float = 0.0
    clock_hz: float | None = None
    identity: str = ""
    """How it was measured; empty where an earlier version kept it."""


@value
class Merging:
    """What git is told about merging baselines."""

    asked: bool = False
    """An attribute of the files names our driver."""
    driver: str = ""
    """The command that stands for it in this clone."""
