"""Building traces from columns: times as integers, ranks separated, threads and queues by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_perfgate.adapters.readers.kineto_columns import (
    APART,
    COLUMNS,
    PLAIN,
    RANKS,
    SEPARATOR,
    UNKNOWN,
    Columns,
    numbered,
    too_high,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import GPU, Queue, Thread, Trace
from pytest_perfgate.model.values import regex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_perfgate.adapters.readers.kineto_text import Header

_LONGEST = 9e15
"""Microseconds whose nanoseconds fit 64 bits: 285 years."""

_DAY = 24 * 3600e6
"""Microseconds that no event takes; a longer one has an overflowed counter."""

CLIPPED, LOST = "durations clipped to the next start", "durations or starts that no clock shows, and nothing follows"

UNNAMED = "(an event without a name)"

_FRAME = {"Trace"}
"""What torch.profiler writes around every recording."""

_RANK = regex(r"rank[-_]?(\d+)")


def traces_of(columns: Columns, header: Header) -> tuple[Trace, ...]:
    if not columns.rows:
        raise no_events_error(columns)
    if columns.split_events:
        raise _split_events_error(columns)
    names = columns.chunks[0].keys()
    table = {name: np.concatenate([chunk.pop(name) for chunk in columns.chunks]) for name in list(names)}
    base = _to_nanoseconds(columns, table)
    _refuse_repeated(columns, table)
    ranks, is_kept = _ranks(columns, table), ~table["lost"]
    if len(ranks) < 2:
        mask = None if is_kept.all() else is_kept
        return (_trace(columns, table, header, ranks[0] if ranks else _rank(columns, header), base, mask),)
    return tuple(_trace(columns, table, header, rank, base, is_kept & (table["rank"] == rank)) for rank in ranks)


_REPEATED = 0.1
"""The part of GPU events that may equal another one; in whole microseconds, branches of a graph are not counted."""


def _refuse_repeated(columns: Columns, table: dict[str, NDArray[Any]]) -> None:
    """Refuse a file in which much GPU work stands twice, since every sum would count it twice."""
    rows = np.flatnonzero(np.isin(table["category"], GPU))
    order = rows[np.lexsort((table["start"][rows], table["place"][rows]))]
    same = np.ones(max(len(order) - 1, 0), bool)
    for name in ("start", "end", "place", "name", "correlation", "rank"):
        same &= np.diff(table[name][order]) == 0
    if same.sum() > _REPEATED * len(rows) and not (table["ts"][rows] % 1).any():
        launches, first = table["correlation"] ^ (table["rank"] << 32), np.r_[True, ~same]
        _, launch, different = np.unique(launches[order[first]], return_inverse=True, return_counts=True)
        same &= (different[launch] == 1)[np.cumsum(first)[1:] - 1]  # what a graph launched may look the same
    if same.sum() > _REPEATED * len(rows):
        what = f"{int(same.sum()):,} of {len(rows):,} GPU events repeat another one, with its times and its launch"
        fix = "give the file as torch.profiler wrote it: a later tool has put its events into it twice"
        raise PerfgateError("trace-two-documents", what, place=columns.path, fix=fix)


def no_events_error(columns: Columns) -> PerfgateError:
    """Return the error for a file without usable events: it has none, or they are another program's."""
    text = f"{columns.seen:,} event{'s' * (columns.seen != 1)}"
    if columns.dropped[APART]:
        what = f"{text}, and their starts and ends are separate (phases B and E): PyTorch writes one event (X)"
        return PerfgateError("trace-foreign", what, place=columns.path)
    strange = _unknown_categories(columns)
    if set(strange) == _FRAME or columns.passed:
        what = f"{text}, and none of an operator or a device: the recorded code called nothing of PyTorch"
        return PerfgateError("trace-empty", what, place=columns.path)
    if strange and not columns.dropped["without a time"]:
        most = sorted(strange.items(), key=lambda item: -item[1])[:4]
        named = ", ".join(f"{name} ({count:,})" for name, count in most)
        what = f"{text}, and none of a category that PyTorch writes; their categories: {named}"
        return PerfgateError("trace-foreign", what, place=columns.path, fix=_readable_instead(columns.labels))
    what = f"{text}, none of them with a category and a duration" if columns.seen else "no events"
    return PerfgateError("trace-empty", what, place=columns.path)


def _readable_instead(labels: Mapping[tuple[str, Any, Any], str]) -> str:
    """Return what the program that names these processes can write instead; empty if it is unknown."""
    names = {name.lstrip("0123456789 ") for (kind, *_), name in labels.items() if kind == "process_name"}
    if any(name.startswith(("/device:", "/host:", "/job:")) for name in names):
        return "JAX or TensorFlow wrote it; profile with nsys instead, and give the file of nsys export --type=sqlite"
    if names & {"CPU HIP API", "CPU HSA API", "COPY"}:
        return "rocprof wrote it; give results.csv of the same run instead"
    return ""


def _unknown_categories(columns: Columns) -> dict[str, int]:
    """Return events with a duration by their unknown categories."""
    return {name.partition(" ")[2]: n for name, n in columns.dropped.items() if name.startswith(UNKNOWN)}


def _split_events_error(columns: Columns) -> PerfgateError:
    """Return the error for work that is not written as one event, and so missing from every figure."""
    named = ", ".join(f"{count:,} of {name}" for name, count in columns.split_events.most_common(4))
    what = f"events of PyTorch's categories are not one event each, with a start and a duration: {named}"
    fix = "give the file as torch.profiler wrote it: a later tool has split its events"
    return PerfgateError("trace-foreign", what, place=columns.path, fix=fix)


def _to_nanoseconds(columns: Columns, table: dict[str, NDArray[Any]]) -> float:
    """Convert microseconds to integer nanoseconds relative to the earliest start, and return that start."""
    stamps, spans, far = table["ts"], table["dur"], _of_another_clock(table)
    base = float(stamps[~far].min())
    if not abs(base) < _LONGEST:
        what, fix = "time stamps are larger than any clock's microseconds", "PyTorch writes microseconds: divide them"
        raise PerfgateError("trace-malformed", what, place=columns.path, fix=fix)
    if not float(stamps.max()) - base < _LONGEST:
        what = "time stamps lie further apart than any clock can tell"
        raise PerfgateError("trace-malformed", what, place=columns.path)
    start = np.rint((np.where(far, base, stamps) - base) * 1e3).astype(np.int64)
    broken = far | ~((spans >= 0) & (spans <= _DAY))
    length = np.rint(np.where(broken, 0.0, spans) * 1e3).astype(np.int64)
    table["start"], table["end"] = start, start + length
    table["guessed"] = table["lost"] = broken
    if broken.any():
        _clip(columns, table, broken, far)
    return base


def _of_another_clock(table: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return the GPU events of one rank that start more than a day from most others: their clock was another one."""
    gpu: NDArray[np.bool_] = np.isin(table["category"], GPU) & (table["rank"].min() == table["rank"].max())
    if gpu.any():
        gpu &= np.abs(table["ts"] - np.sort(table["ts"][gpu])[gpu.sum() // 2]) > _DAY
    return gpu


def _ranks(columns: Columns, table: dict[str, NDArray[Any]]) -> list[int]:
    if table["rank"].max() < 0:
        return []
    numbers = [int(rank) for rank in np.unique(table["rank"]) if rank >= 0]
    if len(numbers) > 1:
        unranked = table["rank"] < 0
        lost = int((unranked & np.isin(table["category"], GPU)).sum())
        if lost:
            what = f"{lost:,} GPU event{'s' * (lost > 1)} without a rank in a file of {len(numbers)} ranks"
            why = "whose they are is not in the file, and every figure of a rank would miss them"
            fix = "the tool that joined the ranks left args.rank out: join them again, or give each rank's own file"
            raise PerfgateError("trace-ranks", what, why=why, place=columns.path, fix=fix)
        columns.dropped["without a rank in a file of several"] += int(unranked.sum())
    return numbers


def _rank(columns: Columns, header: Header) -> int | None:
    rank = _header_number(header.distributed, "rank")
    if rank is None:
        match = _RANK.search(columns.path.rpartition("/")[2])
        rank = float(match.group(1)) if match else None
    if rank is not None and not rank < RANKS:
        raise too_high(columns.path)
    return _rank_or_count(rank)


def _header_number(distributed: Any, name: str) -> float | None:
    """Return a number of the header, which some writers store as text."""
    number = distributed.get(name) if isinstance(distributed, dict) else None
    if isinstance(number, str) and number.isdecimal():
        return float(number)
    return number if type(number) in {int, float} else None


def _rank_or_count(number: float | None) -> int | None:
    """Return a rank or a number of ranks; None for -1, which some writers use for none."""
    return int(number) if number is not None and 0 <= number < RANKS and number == int(number) else None


def _trace(
    columns: Columns,
    table: dict[str, NDArray[Any]],
    header: Header,
    rank: int | None,
    base: float,
    mask: NDArray[np.bool_] | None,
) -> Trace:
    rows = np.flatnonzero(mask) if mask is not None else None
    taken = {name: table[name] if rows is None else table[name][rows] for name in COLUMNS}
    place = {old: new for new, old in enumerate(rows.tolist())} if rows is not None else None
    messages = columns.messages if place is None else {place[r]: m for r, m in columns.messages.items() if r in place}
    backend = header.distributed.get("backend") if isinstance(header.distributed, dict) else None
    device_rows = header.devices or header.compute  # the first versions had another name for it
    devices = device_rows if isinstance(device_rows, list) else []
    return Trace(
        path=columns.path,
        **taken,
        names=tuple(map(_displayable, columns.names)),
        threads=tuple(_thread(columns, *key) for key in columns.threads),
        queues=tuple(
            Queue(device=_device(numbered(d)), stream=s if s is not None else -1, rank=_rank_of(r))
            for d, s, r in columns.queues
        ),
        arguments=tuple(_parts(text) for text in columns.arguments),
        messages=messages,
        rank=rank,
        world=_rank_or_count(_header_number(header.distributed, "world_size")),
        devices=tuple(str(d.get("name", "")) for d in devices if isinstance(d, dict)),
        base_ns=round(base * 1e3) + (header.base if isinstance(header.base, int) else 0),
        shapes=bool(columns.arguments),
        dropped=dict(columns.dropped),
        frames=columns.passed,
        flows=frozenset(flow for flow in columns.flows if isinstance(flow, int)),
        events=columns.seen,
        guessed=_estimated_ends(table, rows),
        untimed=columns.untimed,
        device_memory=columns.device_memory,
        backend=backend.lower() if isinstance(backend, str) else "",
        foreign=tuple((name, count) for name, count in _unknown_categories(columns).items() if name not in PLAIN),
        stamps=(table["ts"], table["dur"]) if rows is None else (table["ts"][rows], table["dur"][rows]),
    )


def _parts(text: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    dims, types, strides, concrete = text.split(SEPARATOR)
    return dims, types, strides, concrete


def _displayable(name: str) -> str:
    """Return a name for display, without characters that move a cursor or end a line."""
    return (name if name.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in name)) or UNNAMED


def _estimated_ends(table: dict[str, NDArray[Any]], rows: NDArray[np.int64] | None) -> tuple[int, ...]:
    """Return the GPU rows without a duration whose end was set to the next one's start."""
    guessed = table["guessed"] & ~table["lost"] & np.isin(table["category"], GPU)
    return tuple(np.flatnonzero(guessed if rows is None else guessed[rows]).tolist())


def _thread(columns: Columns, process: Any, thread: Any, rank: Any) -> Thread:
    return Thread(
        process=process,
        thread=thread,
        rank=_rank_of(rank),
        process_name=columns.labels.get(("process_name", process, None), ""),
        process_label=columns.labels.get(("process_labels", process, None), ""),
        name=columns.labels.get(("thread_name", process, thread), ""),
    )


def _device(number: Any) -> int:
    """Return a device's number; unknown if it is missing or does not fit a column."""
    return number if isinstance(number, int) and abs(number) < 2**31 else -1


def _rank_of(rank: Any) -> int | None:
    return rank if isinstance(rank, int) else None


def _clip(columns: Columns, table: dict[str, NDArray[Any]], broken: NDArray[np.bool_], far: NDArray[np.bool_]) -> None:
    """End broken events at the next start in the same place; without a next one, or far from all, they are lost."""
    after = next_starts(table["start"], table["place"].astype(np.int64) * 16 + table["category"])
    table["lost"] = lost = far | (broken & (after < 0))
    table["guessed"] = guessed = broken & ~lost
    table["end"][guessed] = after[guessed]
    columns.dropped[CLIPPED] += int(guessed.sum())
    columns.dropped[LOST] += int(lost.sum())
    columns.untimed += int((lost & np.isin(table["category"], GPU)).sum())
    if lost.all():
        what = f"{columns.seen:,} events, and every duration is negative or overflowed"
        raise PerfgateError("trace-durations", what, place=columns.path)


def next_starts(start: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next later start in the group of each row; -1 if there is none."""
    order = np.lexsort((start, group))
    starts, groups = start[order], group[order]
    change = np.flatnonzero((np.diff(starts) != 0) | (np.diff(groups) != 0)) + 1
    ends = np.append(change, len(starts))
    at = ends[np.searchsorted(change, np.arange(len(starts)), side="right")]
    inside = np.minimum(at, len(starts) - 1)
    starts_after = np.where((at < len(starts)) & (groups[inside] == groups), starts[inside], -1)
    after = np.empty_like(starts_after)
    after[order] = starts_after
    return after
