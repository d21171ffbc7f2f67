"""The figures in three sentences, with the window they are from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_perfgate.core.analysis.nsys.balance import balances
from pytest_perfgate.core.analysis.nsys.findings import worst
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.nsys_job import Job, RankResult, Window
from pytest_perfgate.model.quantity import Dimension

_TIME, _PART = Dimension.TIME, Dimension.FRACTION


def window_text(ranks: Sequence[RankResult]) -> str:
    """The window of one rank in full; of several with the span they cover."""
    windows = [result.lane.window for result in ranks]
    if not windows:
        return "no window"
    first = windows[0]
    if all(str(window) == str(first) for window in windows):
        return f"window {_one(first)}"
    low, high = min(w.start for w in windows), max(w.end for w in windows)
    return f"windows of {len(windows)} ranks within {low}..{high} ns, of rank {ranks[0].rank.name} {_one(first)}"


def _one(window: Window) -> str:
    return f"{window} ns ({quantity(window.length, _TIME)}; {window.how})"


def sentences(job: Job) -> str:
    """How much was hidden, what was worst, how the devices were used."""
    return " ".join((_hidden(job), _worst(job), _used(job)))


def _hidden(job: Job) -> str:
    count = len(job.ranks)
    who = f"{count} rank{'s' if count != 1 else ''}"
    talk = sum(result.time.communication_ns for result in job.ranks)
    cited = window_text(job.ranks)
    if not talk:
        return f"In the {cited}, {who} ran no communication, so there is no overlap to speak of."
    bare = sum(result.time.exposed_comm_ns for result in job.ranks)
    hidden = quantity(1 - bare / talk, _PART)
    return (
        f"In the {cited}, {who} communicated for {quantity(talk, _TIME)}, of which computation "
        f"covered {hidden} and {quantity(bare, _TIME)} stood exposed."
    )


def _worst(job: Job) -> str:
    top = worst(job.ranks)
    if top is not None:
        result, row = top
        return (
            f"The most exposed is {row.stage} of rank {result.rank.name}: {quantity(row.exposed_ns, _TIME)} "
            f"at {quantity(row.overlap, _PART)} overlap over {row.kernels} kernel{'s' if row.kernels != 1 else ''}."
        )
    barrier = sum(row.barrier_ns for result in job.ranks for row in result.streams)
    if barrier:
        return f"{quantity(barrier, _TIME)} of it ran on streams that also compute, so it held them up as a barrier."
    if any(result.whole is not None for result in job.ranks):
        return "None of it stood exposed."
    return _longest(job)


def _longest(job: Job) -> str:
    """The kernel that takes most of the window, where there is nothing else to name."""
    totals: dict[str, int] = {}
    for result in job.ranks:
        lane = result.lane
        lengths = np.bincount(lane.kernels.name, lane.kernels.end - lane.kernels.start, minlength=len(lane.names))
        for name, length in zip(lane.names, lengths.tolist()):
            totals[name] = totals.get(name, 0) + int(length)
    name, longest = max(totals.items(), key=lambda pair: pair[1])
    share = quantity(longest / (sum(totals.values()) or 1), _PART)
    return f"The kernel that takes most of it is {name}: {quantity(longest, _TIME)}, {share} of the time in kernels."


def _used(job: Job) -> str:
    window = sum(result.time.window_ns for result in job.ranks) or 1
    idle = quantity(sum(result.time.idle_ns for result in job.ranks) / window, _PART)
    said = f"The devices were idle for {idle} of it"
    found = balances(job.ranks)
    parts = [f"{quantity(b.excess, _PART)} over {b.over}" for b in found if b.over != "rank" or len(found) == 1]
    return f"{said}, and the busiest part computed more than the mean by {', '.join(parts)}." if parts else f"{said}."
