"""A line that a change makes hold less without another time: how far it sees, how long it stands, what it measured."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.gate.reasons import reasoned
from pytest_perfgate.core.render.quantity import sight
from pytest_perfgate.model.baseline import DIRTY, Baseline, short_commit

_MUCH = 0.05
"""Scatter, or blindness, that a sitting on a quiet machine does not come to."""
_FAR = 2.0
"""How much more of it than before is no matter of one sitting more."""


def widened(then: Baseline, edited: Baseline) -> tuple[str, ...]:
    """What the edit makes of the line beside its time; nothing where a reason of its own speaks for it."""
    return () if reasoned(edited, then) else tuple(_widened(then, edited))


def _widened(then: Baseline, edited: Baseline) -> Iterator[str]:
    for name in ("scatter", "blind"):
        was, now = getattr(then, name), getattr(edited, name)
        if now > max(_MUCH, _FAR * was):
            yield f"{name} {sight(was)} -> {sight(now)}"
    if then.expires and (not edited.expires or edited.expires > then.expires):
        yield f"expires {then.expires} -> {edited.expires or 'never'}"
    clean = then.commit and not then.commit.endswith(DIRTY)
    if clean and edited.commit != then.commit and edited.time == then.time:
        yield f"commit {short_commit(then.commit, 7)} -> {short_commit(edited.commit, 7) or 'none'}"
