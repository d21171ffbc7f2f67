"""The clock that a sitting ran at, as far as the samples and the history know it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.baseline import DIRTY, Baseline, Sitting
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.samples import Samples, Settled

LIMITED = 0.1
"""The share of the sampling at the power limit from which on that is the state of a process."""


def limited(processes: Iterable[Samples]) -> bool | None:
    """Whether a sitting ran at the power limit, as half of its processes did; none where nobody looked."""
    shares = [process.capped for process in processes if process.capped is not None]
    return median(sorted(shares)) >= LIMITED if shares else None


def how_measured(identity: Identity, *, at_limit: bool | None) -> str:
    """The identity of a sitting with its state of power: the sittings of one state scatter by what is theirs."""
    return f"{identity.text()}{', power=limited' if at_limit else ''}"


def settled_turns(rounds: Iterable[tuple[Capture, Capture]]) -> list[tuple[Settled, Settled]]:
    """The long turns of base and head, round by round; none unless every round has both."""
    found = [[capture.samples[-1].settled for capture in both] for both in rounds]
    return [(base, head) for base, head in found if base and head] if all(map(all, found)) else []


def clock_of(processes: Iterable[Samples]) -> float | None:
    """The clock that a sitting ran at: the median over its processes; unknown where one of them did not see it."""
    clocks = [median(sorted(one.clock_hz)) if one.clock_hz else 0.0 for one in processes]
    return median(sorted(clocks)) if clocks and min(clocks) > 0 else None


def accepted_clock(baseline: Baseline | None, sittings: Sequence[Sitting]) -> float | None:
    """The clock at which a line was measured: that of the newest sitting of its commit that knows one."""
    if baseline is None or not baseline.commit:
        return None
    same = (s for s in reversed(sittings) if s.commit and _one_commit(s.commit, baseline.commit))
    return next((s.clock_hz for s in same if s.clock_hz), None)


def _one_commit(one: str, other: str) -> bool:
    """Hashes of different lengths name one commit when the shorter begins the longer; changes are changes to both."""
    first, second = one.removesuffix(DIRTY), other.removesuffix(DIRTY)
    alike = one.endswith(DIRTY) == other.endswith(DIRTY)
    return alike and (first.startswith(second) or second.startswith(first))


def paired_clocks(rounds: Iterable[tuple[Capture, Capture]]) -> tuple[float, float] | None:
    """The clocks of base and head over the rounds of two arms; nothing where one of them is not known."""
    sides = list(zip(*rounds))
    base, head = (clock_of(s for capture in side for s in capture.samples) for side in sides) if sides else (None, None)
    return (base, head) if base is not None and head is not None else None
