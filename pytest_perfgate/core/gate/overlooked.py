"""Accepted cases that a run in CI says nothing of: the change removed them, or the project itself left them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_perfgate.core.gate.reach import Reach
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import SuiteNote


@value
class LeftOut:
    """What was not chosen: by ``addopts`` or a conftest where no word of the command line asks for less."""

    deselected: frozenset[str] = frozenset()
    reach: Reach | None = None
    """Where the run looked, where it was told so by settings alone."""
    commanded: bool = False
    """The command line asks for less: what that leaves out is counted, and named elsewhere."""


def removed(
    gone: Iterable[Baseline], found: frozenset[str], reach: Reach, moved: Mapping[str, str]
) -> Iterator[SuiteNote]:
    """Accepted cases of the merge base that went with their lines: nothing here could miss them."""
    lost = {str(b.key) for b in gone if b.key.nodeid not in found and reach.holds(b.key.nodeid)}
    names = sorted(f"{name} -> {moved[name]}, where this run did not look" if name in moved else name for name in lost)
    if names and not reach.unknown:
        what = "moved out of this run's reach" if lost <= set(moved) else "gone in this change"
        text = f"{plural(len(names), 'accepted case')} of the merge base {what}, tests and lines both"
        yield SuiteNote(kind="removed", effect=Effect.WARN, text=text, names=tuple(names))


def unlined(gone: Iterable[Baseline], asked: frozenset[str], effect: Effect) -> Iterator[SuiteNote]:
    """Accepted cases whose lines this change takes away while their limits stay: from then on nothing judges them."""
    names = sorted({str(b.key) for b in gone if str(b.key) in asked})
    if names:
        text = (
            f"{plural(len(names), 'accepted line')} of the merge base taken away by this change, and the limit is still"
            " here: put it back, or accept what is measured with a reason"
        )
        yield SuiteNote(kind="taken away", effect=effect, text=text, names=tuple(names))


def left_out(lines: Sequence[Baseline], found: frozenset[str], left: LeftOut) -> Iterator[SuiteNote]:
    """Accepted cases that the project's own settings keep from being measured, run after run."""
    names = sorted({str(b.key) for b in lines if _left(b.key.nodeid, found, left)})
    if names:
        by = "deselected" if left.commanded else "by addopts or a conftest and no word of the command"
        text = f"{plural(len(names), 'accepted case')} not measured, {by}"
        yield SuiteNote(kind="left out", effect=Effect.WARN, text=text, names=() if left.commanded else tuple(names))


def _left(nodeid: str, found: frozenset[str], left: LeftOut) -> bool:
    if nodeid in left.deselected:
        return True
    return left.reach is not None and nodeid not in found and left.reach.leaves_out(nodeid)
