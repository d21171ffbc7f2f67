"""Collects the events of a PyTorch trace into columns of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_perfgate.adapters.readers.kineto_text import NOTHING, Arguments, Slice
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import GPU, Category, Message

_DEVICES = ("gpu", "cuda", "hip", "xpu", "mtia", "mlu", "musa", "glow", "privateuse1")

_OF_DEVICE = {
    "runtime": Category.RUNTIME,
    "driver": Category.RUNTIME,
    "memcpy": Category.MEMCPY,
    "memset": Category.MEMSET,
    "user_annotation": Category.GPU_ANNOTATION,
}
"""What back ends of Kineto, also those of its forks, write behind the name of their device."""

CATEGORIES = {
    "cpu_op": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    "hip_api": Category.RUNTIME,
    "mtia_ccp_events": Category.KERNEL,
    "kernel": Category.KERNEL,
    **{f"{device}_{part}": category for device in _DEVICES for part, category in _OF_DEVICE.items()},
    "Kernel": Category.KERNEL,
    "Operator": Category.OPERATOR,
    "Runtime": Category.RUNTIME,
    "Memcpy": Category.MEMCPY,
    "Memset": Category.MEMSET,
}

_LEGACY: dict[object, Category] = {"CPU functions": Category.OPERATOR, "CUDA functions": Category.KERNEL}
"""Process names by which torch.autograd.profiler distinguished events, which had no category."""

_DEVICE_SIDE = (Category.KERNEL, Category.MEMCPY, Category.MEMSET, Category.GPU_ANNOTATION)

_NUMBERS = {name: int(category) for name, category in CATEGORIES.items()}

_PYTHON = int(Category.PYTHON)

_DESCRIPTION = attrgetter("dims", "types", "strides", "concrete")

_NONE = Arguments()

_UNSAID = _DESCRIPTION(_NONE)

_UNSURE, _PARTS = 255, 254
"""Instead of a category: for an event that is left out, and for one that is not an event by itself."""

SEPARATOR = b"\0"
"""Separates the parts of a description; JSON cannot contain it."""

_ARROW, _ENDS = "ac2g", ("s", "f")
"""Arrows from a launch to its kernel: the start is kept, the end adds nothing."""

_APART = ("B", "E", "b", "e")

_TELLING = ("nn.Module: ", "recompute_fn")
"""In the names of frames that figures use; all others are read only for call stacks."""

UNKNOWN, APART = "category", "begin and end written apart (B and E)"
"""Reasons for leaving an event out, as they are counted."""

PLAIN = frozenset(
    {
        "Trace",
        "overhead",
        "cuda_event",
        "cpu_instant_event",
        "external_correlation",
        "gpu_pm_counter",
        *("graph_event_node", "graph_host_node", "mtia_counters", "xpu_scope_profiler"),
        "hardware_counters",
        "that is not an event",
        *(f"{device}_{part}" for device in _DEVICES for part in ("sync", "profiler_range")),
    }
)
"""Categories that hold no work of the program, so that leaving them out is not reported."""


class Columns:
    """Grows by chunks of events and becomes traces."""

    def __init__(self, path: str, *, frames: bool = False) -> None:
        self.path = path
        self.frames = frames
        self.passed = 0
        """Frames of the interpreter that were skipped."""
        self._telling = _NeededFrames()
        self.names: Interned[str] = Interned()
        self.threads: Interned[tuple[Any, Any, Any]] = Interned()
        self.queues: Interned[tuple[Any, Any, Any]] = Interned()
        self.arguments: Interned[bytes] = Interned()
        self.labels: dict[tuple[str, Any, Any], str] = {}
        self.messages: dict[int, Message] = {}
        self.dropped: Counter[str] = Counter()
        self.chunks: list[dict[str, NDArray[Any]]] = []
        self.flows: list[Any] = []
        self.rows = self.seen = 0
        self.split_events: Counter[str] = Counter()
        """Work that is not written as one event, by category and phase."""
        self.untimed = 0
        """The number of GPU events without a start or a duration."""
        self.device_memory = False

    def add(self, events: Sequence[Slice]) -> None:
        chosen, table = self._usable_events(events)
        if chosen:
            self._describe(chosen, table)
            self.chunks.append(table)
            self.rows += len(chosen)
        self.seen += len(events)

    def _usable_events(self, events: Sequence[Slice]) -> tuple[list[Slice], dict[str, NDArray[Any]]]:
        """Return events of a known category and time, and their columns; a loop over each would double the time."""
        kinds = [_NUMBERS.get(event.cat, _UNSURE) if event.ph == "X" else _PARTS for event in events]
        kind = np.frombuffer(bytes(kinds), np.uint8)
        for at in np.flatnonzero(kind == _PARTS).tolist():
            event = events[at]
            if event.cat != _ARROW or event.ph not in _ENDS:
                self._unlisted(event)
            elif event.ph == "s":
                self.flows.append(event.id)
        selected = kind != _PARTS
        if not self.frames:
            frames, tells = np.flatnonzero(kind == _PYTHON), self._telling
            passed = frames[[not tells[events[at].name] for at in frames.tolist()]] if len(frames) else frames
            selected[passed] = False
            self.passed += len(passed)
        index = np.flatnonzero(selected)
        chosen = [events[at] for at in index.tolist()]
        starts, lengths = [event.ts for event in chosen], [event.dur for event in chosen]
        category = kind[index]
        unsure = set(np.flatnonzero(category == _UNSURE).tolist())
        for column in (starts, lengths):
            if None in column:
                unsure |= {at for at, entry in enumerate(column) if entry is None}
        for at in unsure:
            number = None if category[at] == _UNSURE else int(category[at])
            readable = self._readable(chosen[at], number)
            category[at] = _UNSURE if readable is None else readable
            if readable is None:
                starts[at] = lengths[at] = 0.0
        table: dict[str, NDArray[Any]] = {
            "ts": np.array(starts, np.float64),
            "dur": np.array(lengths, np.float64),
            "category": category,
            "index": index + self.seen,
        }
        usable = category != _UNSURE
        if not usable.all():
            return list(compress(chosen, usable.tolist())), {name: column[usable] for name, column in table.items()}
        return chosen, table

    def _readable(self, event: Slice, category: int | None) -> int | None:
        """Return the category of a complete event; count one that is left out."""
        if category is None and not event.cat:
            category = _LEGACY.get(event.pid)
        if category is None:
            self.dropped[f"{UNKNOWN} {event.cat or 'no category'}"] += 1
        elif event.ts is None or event.dur is None:
            self.dropped["without a time"] += 1
            self.untimed += category in GPU
        else:
            return int(category)
        return None

    def _unlisted(self, event: Slice) -> None:
        """Handle arrows, names of threads, counters, and work written in two parts, which are not complete events."""
        if event.ph == "M":
            _label(self.labels, event)
        elif (category := CATEGORIES.get(event.cat)) is not None:
            self._count_split(event, category)
        elif event.ph in _APART:
            self.dropped[APART] += 1
        elif event.name == "[memory]" and event.args is not None and event.args.memory_of not in {0, -1, None}:
            self.device_memory = True

    def _count_split(self, event: Slice, category: Category) -> None:
        """Count work that is not one event with a start and a duration, as all versions of PyTorch write it."""
        if event.ph in _APART:
            self.dropped[APART] += 1
        if category in GPU or event.ph in _APART:
            self.split_events[f"{event.cat} (phase {event.ph or 'missing'})"] += 1

    def _describe(self, events: list[Slice], table: dict[str, NDArray[Any]]) -> None:
        """Add the columns of the events' names, places and arguments."""
        category, count = table["category"], len(events)
        args = [event.args or _NONE for event in events]
        ranks = [arg.rank for arg in args]
        if ranks.count(None) < count:
            ranks = [numbered(rank) for rank in ranks]
        telling = np.flatnonzero(category != Category.PYTHON)  # arguments of frames are not read
        those = args if len(telling) == count else [args[row] for row in telling.tolist()]
        table.update((name, _scatter(column, telling, count)) for name, column in table_of(those).items())
        table["name"] = np.fromiter(map(self.names.__getitem__, [event.name for event in events]), np.int32, count)
        table["rank"] = _ranks(ranks, self.path)
        table["on_device"] = np.isin(category, _DEVICE_SIDE)
        table["place"] = self._places(events, args, ranks, table["on_device"])
        table["argument"] = _described(self.arguments, args, category)
        fields = [arg.collective for arg in those]
        if fields.count(None) < len(fields):
            rows = ((row, arg) for row, arg, name in zip(telling.tolist(), those, fields) if name is not None)
            self.messages.update((self.rows + row, message(arg)) for row, arg in rows)

    def _places(
        self, events: list[Slice], args: list[Arguments], ranks: list[Any], on_device: NDArray[np.bool_]
    ) -> NDArray[np.int32]:
        places = np.empty(len(events), np.int32)
        device = np.flatnonzero(on_device)
        host = events
        if len(device):
            on_host = (~on_device).tolist()
            host, ranks_of_host = list(compress(events, on_host)), list(compress(ranks, on_host))
        else:
            ranks_of_host = ranks
        keys = [(event.pid, event.tid, rank) for event, rank in zip(host, ranks_of_host)]
        places[~on_device] = np.fromiter(map(self.threads.__getitem__, keys), np.int32, len(host))
        for row in device.tolist():
            event, arg = events[row], args[row]
            place = arg.device if arg.device != -1 else event.pid
            stream = arg.stream if arg.stream is not None and arg.stream != -1 else event.tid
            places[row] = self.queues[place, stream, ranks[row]]
        return places


def _described(arguments: Interned[bytes], args: list[Arguments], category: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the number of each operator's arguments; -1 without any."""
    column = np.full(len(args), -1, np.int32)
    candidates = np.flatnonzero((category == Category.OPERATOR) | (category == Category.ANNOTATION)).tolist()
    rows = [at for at in candidates if args[at].dims is not NOTHING or _DESCRIPTION(args[at]) != _UNSAID]
    texts = map(SEPARATOR.join, map(_DESCRIPTION, map(args.__getitem__, rows)))
    column[rows] = np.fromiter(map(arguments.__getitem__, texts), np.int32, len(rows))
    return column


def _label(labels: dict[tuple[str, Any, Any], str], event: Slice) -> None:
    """Store the name of a process or thread."""
    args = event.args
    if args is not None and (text := args.labels if event.name == "process_labels" else args.name) is not None:
        labels[event.name, event.pid, event.tid if event.name == "thread_name" else None] = str(text)


def numbered(place: Any) -> Any:
    """Return a rank or a device as a number, also if it was written as text."""
    return int(place[:_DIGITS]) if isinstance(place, str) and place.isdecimal() else place


RANKS = 2**31

_DIGITS = 100
"""The most digits: Python is slow with more of them, or refuses."""


def _ranks(ranks: list[Any], place: str) -> NDArray[np.int64]:
    """Return the ranks of events; most files name none, so that nothing is examined one by one."""
    if ranks.count(None) == len(ranks):
        return np.full(len(ranks), -1, np.int64)
    if any(isinstance(rank, int) and rank >= RANKS for rank in ranks):
        raise too_high(place)
    return np.array([rank if isinstance(rank, int) and rank >= 0 else -1 for rank in ranks], np.int64)


def too_high(place: str) -> PerfgateError:
    """Return the error for an impossible rank, which would otherwise count as the first."""
    fix = "put the process's own number into distributedInfo.rank"
    return PerfgateError("trace-malformed", f"it names a rank above {RANKS - 1:,}", place=place, fix=fix)


T = TypeVar("T")

COLUMNS = (
    "start",
    "end",
    "category",
    "name",
    "place",
    "correlation",
    "external",
    "sequence",
    "size",
    "argument",
    "index",
)
"""The columns of a trace."""


class _NeededFrames(dict[str, bool]):
    """Whether a frame of that name is needed for more than call stacks."""

    def __missing__(self, name: str) -> bool:
        tells = self[name] = any(part in name for part in _TELLING)
        return tells


class Interned(dict[T, int]):
    """Numbers its keys in the order of their first use."""

    def __missing__(self, key: T) -> int:
        number = self[key] = len(self)
        return number


def table_of(args: Sequence[Arguments]) -> dict[str, NDArray[Any]]:
    """Return the numeric columns of the arguments of one chunk."""
    table: dict[str, NDArray[Any]] = {}
    columns: dict[str, list[Any]] = {  # a comprehension reads a field in half the time of an attrgetter
        "correlation": [arg.correlation for arg in args],
        "external": [arg.external for arg in args],
        "sequence": [arg.sequence for arg in args],
        "size": [arg.size for arg in args],
    }
    for name, values in columns.items():
        if values.count(-1) == len(values):
            table[name] = np.full(len(values), -1, np.int64)
        else:
            table[name] = integers(list(map(_size, values)) if name == "size" else values)
    return table


def _scatter(column: NDArray[Any], rows: NDArray[np.int64], count: int) -> NDArray[Any]:
    """Return a column of all rows from one of some rows; -1 for the others."""
    if len(column) == count:
        return column
    spread = np.full(count, -1, column.dtype)
    spread[rows] = column
    return spread


def integers(numbers: list[int]) -> NDArray[np.int64]:
    """Return integers as a column; identifiers past 2**63 keep their low bits."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array([n if -(2**63) <= n < 2**63 else n & (2**63 - 1) for n in numbers], np.int64)


def _size(size: Any) -> int:
    """Return the bytes of a copy; some writers quote them."""
    if isinstance(size, (int, float)):
        return int(size)
    return int(size) if isinstance(size, str) and size.isdigit() else -1


_WIDTHS = {
    name: width
    for width, names in {
        1: "bool byte char int8 uint8 qint8 quint8",
        2: "half bfloat16 short float16 int16 uint16",
        4: "float int float32 int32 uint32 qint32 complexhalf",
        8: "double long float64 int64 uint64 complexfloat complex64",
        16: "complexdouble complex128",
    }.items()
    for name in names.split()
}
"""Bytes of an element by its dtype, as PyTorch names it in C++ and in Python."""


def message(args: Arguments) -> Message:
    """Return the recorded collective, with its element counts in bytes if the dtype is known."""
    dtype = str(args.dtype or "")
    size = _width(dtype)
    ranks = _number(args.group_size)
    return Message(
        collective=args.collective or "",
        group=str(args.group if args.group is not None else ""),
        ranks=int(ranks) if ranks is not None else None,
        sent=_bytes(args.sent, size),
        received=_bytes(args.received, size),
        dtype=dtype,
    )


def _width(dtype: str) -> int | None:
    plain = dtype.lower().removeprefix("c10::").removeprefix("torch.")
    return 1 if plain.startswith(("float8_", "float4_")) else _WIDTHS.get(plain)  # two of float4 are one element


def _number(value: Any) -> float | None:
    return float(value) if type(value) in {int, float} and 0 <= value < 1 << 63 else None


def _bytes(count: Any, size: int | None) -> float | None:
    number = _number(count)
    return number * size if number is not None and size is not None else None
