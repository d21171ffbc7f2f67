"""A rank's kernels inside its window, each with its class, its stage and its purpose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import communication
from pytest_perfgate.core.analysis.nsys.context import contexts, launches
from pytest_perfgate.model.nsys import Activity, Calls, Preset, Ranges
from pytest_perfgate.model.nsys_job import Lane, Rank, Reading, Window
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_ORIGINAL = re.compile(r"^nccl", re.IGNORECASE)


@array_value
class Recorded:
    """What one export holds around its windows."""

    kernels: Activity
    copies: Activity
    calls: Calls
    ranges: Ranges
    names: Mapping[int, str]


def lanes(recorded: Recorded, windows: Mapping[Rank, Window], reading: Reading) -> tuple[Lane, ...]:
    """One lane per rank that has a window."""
    kernels = recorded.kernels
    when, thread, linked = launches(kernels, recorded.calls)
    stage, stages = _labelled(recorded.ranges, when, thread, _stages(recorded.ranges.texts, reading.preset))
    purpose, purposes = _labelled(recorded.ranges, when, thread, _purposes(recorded.ranges.texts, reading.preset))
    number, names = _names(kernels.name, recorded.names)
    nameless = ~np.isin(kernels.name, [known for known, name in recorded.names.items() if name])
    talks = _talking(names, reading)[number] if len(names) else np.zeros(0, dtype=bool)
    whole = replace(kernels, name=number)
    found = []
    for rank, window in windows.items():
        kept, cut, straddlers = _inside(whole, rank, window, whole_only=reading.original)
        found.append(
            Lane(
                rank=rank,
                window=window,
                kernels=_clipped(whole.where(kept), window),
                names=names,
                talks=talks[kept],
                stage=stage[kept],
                stages=stages,
                purpose=purpose[kept],
                purposes=purposes,
                linked=linked[kept],
                copies=_copies(recorded.copies, rank, window),
                cut=cut,
                straddlers=straddlers,
                faults=faults(whole.where(kept)),
                unnamed=int(nameless[kept].sum()),
            )
        )
    return tuple(found)


def _inside(kernels: Activity, rank: Rank, window: Window, *, whole_only: bool) -> tuple[NDArray[np.bool_], int, int]:
    """Which kernels count, the time of theirs that does not, and how many straddle an edge."""
    mine = (kernels.pid == rank.pid) & (kernels.device == rank.device)
    if whole_only:
        mine &= kernels.start >= 0
    touches = mine & (kernels.start < window.end) & (kernels.end > window.start)
    wholly = mine & (kernels.start >= window.start) & (kernels.end <= window.end)
    straddles = touches & ~wholly
    total = int(np.sum((kernels.end - kernels.start)[straddles]))
    if whole_only:
        return wholly, total, int(straddles.sum())
    kept = touches | wholly
    inside = np.minimum(kernels.end, window.end) - np.maximum(kernels.start, window.start)
    return kept, total - int(np.sum(inside[straddles])), int(straddles.sum())


def faults(rows: Activity) -> tuple[str, ...]:
    """Kernels that end before they start, and kernels that stand there twice."""
    backward = int((rows.end < rows.start).sum())
    twice = _repeated(rows)
    said = f"{backward:,} of {len(rows):,} kernels end before they start"
    also = f"{twice:,} of {len(rows):,} kernels stand in the export twice, as after export --append"
    return (*((said,) if backward else ()), *((also,) if twice else ()))


def _repeated(rows: Activity) -> int:
    """Rows that another one equals in every column; only those of one start are looked at."""
    order = np.argsort(rows.start, kind="stable")
    start = rows.start[order]
    same = start[1:] == start[:-1]
    if not same.any():
        return 0
    near = order[np.append(same, False) | np.append(False, same)]
    table = np.stack([column[near] for column in rows.columns()])
    return len(near) - int(np.unique(table, axis=1).shape[1])


def _clipped(rows: Activity, window: Window) -> Activity:
    start, end = np.maximum(rows.start, window.start), np.minimum(rows.end, window.end)
    return replace(rows, start=start, end=end)


def _copies(copies: Activity, rank: Rank, window: Window) -> Activity:
    kept, _, _ = _inside(copies, rank, window, whole_only=False)
    return _clipped(copies.where(kept), window)


def _names(ids: Ints, names: Mapping[int, str]) -> tuple[Ints, tuple[str, ...]]:
    distinct, number = np.unique(ids, return_inverse=True)
    return number.astype(np.int64), tuple(names.get(int(known), f"kernel {known}") for known in distinct)


def _talking(names: Sequence[str], reading: Reading) -> NDArray[np.bool_]:
    pattern = _ORIGINAL if reading.original else communication.communication(reading.preset.communication)
    return np.array([bool(pattern.search(name)) for name in names], dtype=bool)


def _stages(texts: Iterable[str], preset: Preset) -> list[str | None]:
    """The last match of the stage's pattern in each text."""
    pattern = re.compile(preset.stage, re.IGNORECASE)
    return [_last(pattern, text) for text in texts]


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the last one is what is wanted
        pass
    return found.group() if found else None


def _purposes(texts: Iterable[str], preset: Preset) -> list[str | None]:
    """The purpose whose pattern matches last in each text; earlier patterns win a tie."""
    patterns = [(re.compile(pattern, re.IGNORECASE), purpose) for pattern, purpose in preset.purposes]
    found: list[str | None] = []
    for text in texts:
        ends = [(max((hit.start() for hit in p.finditer(text)), default=-1), purpose) for p, purpose in patterns]
        at, purpose = max(ends, key=lambda pair: pair[0], default=(-1, ""))
        found.append(purpose if at >= 0 else None)
    return found


def _labelled(ranges: Ranges, when: Ints, thread: Ints, labels: Sequence[str | None]) -> tuple[Ints, tuple[str, ...]]:
    """The label around each launch, as an index into the distinct labels."""
    distinct = tuple(sorted({label for label in labels if label is not None}))
    index = {label: at for at, label in enumerate(distinct)}
    column = np.array([-1 if label is None else index[label] for label in labels], dtype=np.int64)
    return contexts(ranges, column, when, thread), distinct
