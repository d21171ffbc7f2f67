"""Where the figures are from: the median range that matches an anchor, so that runs compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import OPEN, Extent, Ranges, pid_of
from pytest_perfgate.model.nsys_job import Rank, Reading, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def windows(
    ranges: Ranges, found: Sequence[Rank], reading: Reading, extents: Callable[[], Sequence[Extent]]
) -> dict[Rank, Window]:
    """A window per rank; a rank without the anchor that others have gets none."""
    if reading.span is not None:
        start, end = reading.span
        return {rank: Window(start=start, end=end, how="as given") for rank in found}
    for anchor in (reading.anchor,) if reading.anchor else reading.preset.anchors:
        anchored = _anchored(ranges, found, anchor)
        if anchored:
            return anchored
    if reading.anchor:
        raise PerfgateError("nsys-anchor", f"no range matches {reading.anchor!r}", mend=_nearest(ranges))
    spans = {(extent.pid, extent.device): extent for extent in extents()}
    why = "the whole capture, for no range matches the preset's anchors" if len(ranges) else "the whole capture"
    return {
        rank: Window(start=spans[key].first, end=spans[key].last, how=why)
        for rank in found
        if (key := (rank.pid, rank.device)) in spans
    }


def _anchored(ranges: Ranges, found: Sequence[Rank], anchor: str) -> dict[Rank, Window]:
    pattern = re.compile(_regular(anchor), re.IGNORECASE)
    hits = np.array([bool(pattern.search(text)) for text in ranges.texts], dtype=bool)
    rows = np.flatnonzero(hits[ranges.text] & (ranges.end < OPEN)) if len(ranges) else np.empty(0, dtype=np.int64)
    rows = _lasting(ranges, rows, anchor)
    process = pid_of(ranges.tid[rows])
    result = {}
    for rank in found:
        mine = rows[process == rank.pid]
        if len(mine):
            mine = mine[np.argsort(ranges.start[mine], kind="stable")]
            middle = mine[len(mine) // 2]
            how = f"{ranges.texts[ranges.text[middle]]!r}, number {len(mine) // 2 + 1} of {len(mine)} that match"
            result[rank] = Window(start=int(ranges.start[middle]), end=int(ranges.end[middle]), how=how)
    return result


def _lasting(ranges: Ranges, rows: Ints, anchor: str) -> Ints:
    """Ranges that take time: in one that takes none nothing runs, and every share of it would be zero."""
    found = rows[ranges.end[rows] > ranges.start[rows]]
    if len(rows) and not len(found):
        mend = "name another range (--anchor), or give a start and an end"
        raise PerfgateError("nsys-window", f"every range that matches {anchor!r} starts and ends at once", mend=mend)
    return found


def _regular(anchor: str) -> str:
    """SQL's ``%`` matches anything and holds the whole text; without one it is a regular expression."""
    if "%" in anchor:
        return "^" + ".*".join(re.escape(part) for part in anchor.split("%")) + "$"
    try:
        re.compile(anchor)
    except re.error:
        return re.escape(anchor)
    return anchor


def _nearest(ranges: Ranges) -> str:
    """The commonest ranges, from which a person can choose."""
    if not len(ranges):
        return "the export has no NVTX ranges: give a start and an end"
    counts = np.bincount(ranges.text, minlength=len(ranges.texts))
    common = [ranges.texts[at] for at in np.argsort(-counts, kind="stable")[:5] if counts[at]]
    return f"the commonest ranges are {', '.join(map(repr, common))}"
