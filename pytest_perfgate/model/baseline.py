"""Baselines: the accepted truth, one line a case."""

from __future__ import annotations

from pytest_perfgate.model.measurement import Environment, Identity
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import value


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
    commit: str = ""
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
