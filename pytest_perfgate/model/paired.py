"""Paired evidence: two arms measured beside each other, and what the exact tests made of it."""

from __future__ import annotations

import enum

from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.quantity import Interval
from pytest_perfgate.model.values import value


class Decision(str, enum.Enum):
    """What the pairs say about the head against its base."""

    SLOWER = "slower"
    NOT_SLOWER = "not slower"
    UNDECIDED = "undecided"


@value
class PowerLimited:
    """Base and head of a comparison on a device at its power limit, as far as it tells."""

    clocks_hz: tuple[float, float] | None = None
    watts: tuple[float, float] | None = None
    decides: bool = False
    """Whether turns of a second or more decided: the sides differ in them, and short turns share one clock."""


@value
class Paired:
    """One case in two arms. Convictions across a suite are corrected before they get here."""

    decision: Decision
    differences: tuple[float, ...]
    """Logarithms of head over base, one a round, in order."""
    shift: float
    """The Hodges-Lehmann shift as a fraction: 0.05 is 5 % slower."""
    interval: Interval | None = None
    """Of the shift, as fractions."""
    base: str = ""
    """The commit or revision of the other arm."""
    revision: bool = False
    """True when the user named a revision: it is then judged by, and no stored baseline is asked."""
    p: float | None = None
    """Of the exact one-sided signed-rank test."""
    threshold: float | None = None
    """What ``p`` had to stay below, after Holm."""
    visible: float | None = None
    moved: tuple[tuple[str, str, str], ...] = ()
    """(name, then, now) of the driver, the dependency, the machine: what else differs."""
    problems: tuple[Problem, ...] = ()
    """An arm that loaded the other's files, and the like: INVALID, never a verdict."""
    unstable: bool = False
    """Processes of a side stand in groups: where nothing is convicted, that is the verdict."""
    same: bool = False
    """Both sides ran the same code: whatever is slower then, it is not the code."""
    faster: bool = False
    """Shown faster, as a regression would be shown."""
    slow: tuple[int, int] | None = None
    """Slow processes of head and base, where those are what was found slower."""
    wants_s: float = 0.0
    """Seconds of further rounds that would decide what is undecided; 0 where none are known to help."""

    stands_in: str = ""
    """Where the other arm is not the commit that the baseline names: which it is, and why."""
    bare: bool = False
    """The test loads nothing of the package, and the same files beside it on both sides."""
    edited: tuple[str, ...] = ()
    """Files beside such a test that the change edits: they are the head's in both arms, and were not compared."""
    shared: tuple[str, ...] = ()
    """Files that are other ones since the base, and that both arms take from the head: nobody compared what they do."""
    own_file: str = ""
    """Why the base arm ran its own revision's test file: it could not collect the head's, or failed at this test."""
    own_test: bool = False
    """The test itself is another one there: both versions of it are part of what was compared."""
    base_ns: float = 0.0
    """What a call took in the base arm, the middle of its processes; 0 where nobody knows."""
    clocks_hz: tuple[float, float] | None = None
    """The clocks that base and head ran at, where both are known."""
    limited: PowerLimited | None = None
    """What the sides drew and ran at, where the power limit held their clocks."""

    @property
    def rounds(self) -> int:
        return len(self.differences)


@value
class PairedRound:
    """One case, once in two fresh processes that took turns."""

    nodeid: str
    phase: str
    """``round``, or that of a calibration in which one side was kept busy."""
    number: int
    base: tuple[Capture, ...] = ()
    head: tuple[Capture, ...] = ()
    trouble: str = ""
    """Why a side has nothing to compare: it failed there, or the test is on the other side only."""
    seconds: float = 0.0
    share_s: float = 0.0
    """Its share of the wall time of the whole round, the starting of processes included."""
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """What calls of the head raised while the test caught it."""
    died: bool = False
    """A child ended in this test, and did not say so."""
    own: str = ""
    """Why the base ran its own version of the test file."""
    base_alone: bool = False
    """The test raised in the base arm and passed in the head's."""
