"""A trace as TraceLens sees it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators import OperatorCall, parse_call
from pytest_perfgate.core.analysis.tracelens.models import PeerWork, modelled
from pytest_perfgate.model.profiles import Category, Kind, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_perfgate.core.analysis.trace.survey import Survey

    Ints = NDArray[np.int64]

    Floats = NDArray[np.float64]

Span = tuple[float, float]

_NAMELESS = "Unknown"

_GRAPHS = ("cudaGraphLaunch", "hipGraphLaunch")
"""Calls that launch GPU rows, which the reference accepts without an arrow."""


class Forest:
    """Operators with the GPU rows below them, in the file's own floating-point microseconds."""

    def __init__(self, survey: Survey) -> None:
        trace = survey.trace
        if trace.stamps is None:
            raise ValueError("the trace was read without its own time stamps")
        self.survey = survey
        self.trace = trace
        stamps, lengths = (np.asarray(column, np.float64) for column in trace.stamps)
        self.stamp, self.length = stamps.tolist(), lengths.tolist()
        self.whole = bool((lengths == np.rint(lengths)).all())
        """Whether the file writes durations in whole microseconds."""
        parents, roots = _tree(survey, stamps, lengths)
        arrows = np.isin(trace.correlation[survey.rows], list(trace.flows))
        launch = survey.link.launch
        graphs = np.array([name in _GRAPHS for name in trace.names] or [False])
        replayed = (launch >= 0) & graphs[trace.name[np.maximum(launch, 0)]]
        linked = np.isin(launch, list(roots)) & (arrows | replayed)
        self.gpu = survey.rows[linked]
        self.kinds = dict(zip(self.gpu.tolist(), survey.kinds[linked].tolist()))
        self.direct: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)
        self.launch = dict(zip(self.gpu.tolist(), launch[linked].tolist()))
        self.parents: list[int] = parents.tolist()
        self.category: list[int] = trace.category.tolist()
        for row, call in self.launch.items():
            if self.category[call] == Category.RUNTIME:
                self.direct[self._launcher(call)].append(row)
            at = call
            while at >= 0:
                self.below[at].append(row)
                at = self.parents[at]
        self.children: dict[int, list[int]] = defaultdict(list)
        for row in sorted(self.below):
            if self.category[row] == Category.OPERATOR:
                self.children[self.parents[row]].append(row)
        self.worked: dict[tuple[object, ...], PeerWork | None] = {}
        """The work of a call, by its signature and its kernels."""
        self._names: list[int] = trace.name.tolist()
        self._arguments: list[int] = trace.argument.tolist()
        self._call = cache(partial(_call, trace))
        self.recorded_arguments = cache(self._recorded_arguments)

    def _launcher(self, call: int) -> int:
        """Return the nearest operator above a call of the runtime, or the call itself."""
        above = self.parents[call]
        while above >= 0 and self.category[above] != Category.OPERATOR:
            above = self.parents[above]
        return above if above >= 0 else call

    def name(self, row: int) -> str:
        return self.trace.names[self._names[row]]

    def signature(self, row: int) -> tuple[int, int]:
        """Return a key of the call's name and arguments; thousands of calls share few."""
        return self._names[row], self._arguments[row]

    def call(self, row: int) -> OperatorCall:
        return self._call(*self.signature(row))

    def _recorded_arguments(self, name: int, argument: int) -> tuple[object, ...]:
        """Return the recorded arguments of a call, as texts."""
        if argument < 0:
            return (None,) * 4
        return tuple(None if part is None else str(part) for part in recorded(self._call(name, argument)))

    def busy(self, rows: Sequence[int]) -> float:
        """Return the union of GPU rows, summed in floats."""
        return measure(merged([(self.stamp[r], self.stamp[r] + self.length[r]) for r in rows]))

    def is_communication(self, row: int) -> bool:
        return bool(self.kinds[row] == Kind.COMMUNICATION)

    def launchers(self) -> list[int]:
        """Return operators that directly launch something other than communication, in the order of the file."""
        return sorted(row for row, below in self.direct.items() if not all(map(self.is_communication, below)))

    def thread(self, row: int) -> tuple[str, str, str]:
        thread = self.trace.threads[int(self.trace.place[row])]
        return thread.process_name or _NAMELESS, thread.process_label or _NAMELESS, thread.name or _NAMELESS


def _call(trace: Trace, name: int, argument: int) -> OperatorCall:
    text = trace.names[name]
    return parse_call(text, trace.arguments[argument]) if argument >= 0 else OperatorCall(name=text)


def recorded(call: OperatorCall) -> tuple[object, ...]:
    """Return the recorded arguments; older versions lack some that newer ones record beside shapes."""
    parts = (call.dims, call.types, call.strides, call.concrete)
    return tuple(part if part or not any(parts) else None for part in parts)


def _tree(survey: Survey, stamp: Floats, length: Floats) -> tuple[Ints, set[int]]:
    """Return operators and runtime calls nested by float time, without annotations, frames and overlapping calls."""
    trace = survey.trace
    parent, roots = np.full(len(trace), -1, np.int64), set()
    stacks: dict[int, list[tuple[float, int]]] = defaultdict(list)
    host = np.flatnonzero((trace.category == Category.OPERATOR) | (trace.category == Category.RUNTIME))
    rows = host[np.argsort(stamp[host], kind="stable")]
    columns = (rows, trace.place[rows], stamp[rows], stamp[rows] + length[rows])
    for row, place, start, end in zip(*(column.tolist() for column in columns)):
        stack = stacks[place]
        while stack and start >= stack[-1][0]:
            stack.pop()
        if stack and end > stack[-1][0]:
            continue
        parent[row] = stack[-1][1] if stack else -1
        roots.add(row)
        stack.append((end, row))
    return parent, roots


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return overlapping or touching spans joined."""
    joined: list[Span] = []
    for start, end in sorted(spans, key=lambda span: span[0]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def measure(spans: Sequence[Span]) -> float:
    return sum(end - start for start, end in spans)


def minus(spans: Sequence[Span], cover: Sequence[Span]) -> list[Span]:
    """Return the parts of disjoint spans that a disjoint cover does not contain."""
    remaining: list[Span] = []
    for start, end in spans:
        at = start
        for low, high in (*(part for part in cover if part[1] > start and part[0] < end), (end, end)):
            if low > at:
                remaining.append((at, low))
            at = max(at, high)
    return remaining


Row = dict[str, object]

PARTS = ("mean", "median", "std", "min", "max")


def aggregates(column: str, numbers: Sequence[float], parts: Sequence[str] = PARTS) -> Row:
    """Return ``column_mean`` and its siblings; the deviation of one number is unknown."""
    values = np.asarray(numbers, np.float64)
    known = {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "std": float(values.std(ddof=1)) if len(values) > 1 else None,
        "min": float(values.min()),
        "max": float(values.max()),
        "sum": float(values.sum()),
    }
    return {f"{column}_{part}": known[part] for part in parts}


def with_shares(rows: list[Row], column: str) -> list[Row]:
    """Return rows by falling column, with their percentage and its running sum."""
    ordered = sorted(rows, key=lambda row: (-float(row[column]), int(row.get("ex_UID") or row.get("UID_first") or 0)))  # type: ignore[arg-type, call-overload]
    total = sum(float(row[column]) for row in ordered)  # type: ignore[arg-type, misc]
    running = 0.0
    for row in ordered:
        share = 100 * float(row[column]) / total if total else 0.0  # type: ignore[arg-type]
        running += share
        row["Percentage (%)"], row["Cumulative Percentage (%)"] = share, running
    return ordered


Kernels = Sequence[Sequence[tuple[str, object, float]]]


def kernel_summary(lists: Kernels) -> str:
    """Return kernels by position in a call, the shortest first, as in a cell of the reference."""
    return "[" + ", ".join(_entry(name, stream, spent) for name, stream, spent in _columns(lists)) + "]"


def _columns(lists: Kernels) -> list[tuple[str, object, list[float]]]:
    template = next((call for call in lists if call), [])
    same = [call for call in lists if len(call) == len(template)]
    columns = [(name, stream, [call[at][2] for call in same]) for at, (name, stream, _) in enumerate(template)]
    return sorted(columns, key=lambda column: sum(column[2]))


def _entry(name: str, stream: object, spent: Sequence[float]) -> str:
    """Return numbers as numpy prints them; sums and extremes of whole numbers stay whole."""
    times = np.asarray(spent if max(spent) < 1 << 63 else [float(one) for one in spent])
    parts = {
        "total_duration_us": times.sum(),
        "mean_duration_us": times.mean(),
        "median_duration_us": np.median(times),
        "std_dev_duration_us": times.std(),
        "min_duration_us": times.min(),
        "max_duration_us": times.max(),
    }
    head = f"{{'name': {name!r}, 'stream': {stream}, 'count': {len(times)}, "
    return head + ", ".join(f"'{key}': {_shown(number)}" for key, number in parts.items()) + "}"


def _shown(number: np.generic) -> str:
    kind = "int64" if isinstance(number, np.integer) else "float64"
    return f"np.{kind}({number.item()!r})"


def truncated_summary(lists: Kernels) -> str:
    """Return the same in short form."""
    entries = []
    for name, stream, spent in _columns(lists):
        mean = float(np.round(np.mean(spent), 2))
        short = name if len(name) <= 64 else name[:64] + "..."
        entries.append(f"{{'name': {short!r}, 'stream': {stream}, 'mean_duration_us': np.float64({mean!r})}}")
    return "[" + ", ".join(entries) + "]"


Choice = tuple[int, str, list[int], bool]
"""Row, name, GPU rows, whether it has a model."""


def chosen(forest: Forest) -> Iterator[Choice]:
    """Yield operators from the roots down; a kernel below none of them follows as an operator of its own."""
    taken: set[int] = set()
    for root in (row for row in sorted(forest.below) if not _inside(forest, row)):
        if forest.category[root] == Category.OPERATOR:
            for choice in _below(forest, root):
                taken.update(choice[2])
                yield choice
    parent = {r: row for row, direct in forest.direct.items() for r in direct if r not in taken}
    alone = [r for r in sorted(parent) if not forest.is_communication(r)]
    orphans: dict[int, list[int]] = {}
    for kernel in (r for r in alone if forest.category[parent[r]] != Category.OPERATOR):
        orphans.setdefault(parent[kernel], []).append(kernel)
    below_operators = [r for r in alone if forest.category[parent[r]] == Category.OPERATOR]
    for kernel in (*(r for kernels in orphans.values() for r in kernels), *below_operators):
        yield parent[kernel], f"{forest.name(parent[kernel])}->{forest.name(kernel)} (Synthetic Op)", [kernel], False


def _inside(forest: Forest, row: int) -> bool:
    above = forest.parents[row]
    return above >= 0 and int(forest.survey.tree.operator[above]) >= 0


def _below(forest: Forest, row: int) -> Iterator[Choice]:
    """Yield the operator if it has a model, or launches and none below has one, else those of its children."""
    rows = forest.below[row]
    if modelled(forest.name(row)):
        yield row, forest.name(row), rows, True
    elif forest.direct.get(row) and not _modelled_below(forest, row):
        if not any(map(forest.is_communication, rows)):
            yield row, forest.name(row), rows, False
    else:
        for child in forest.children.get(row, ()):
            yield from _below(forest, child)


def _modelled_below(forest: Forest, row: int) -> bool:
    children = forest.children.get(row, ())
    return any(modelled(forest.name(child)) or _modelled_below(forest, child) for child in children)


def first_kernel(forest: Forest, row: int) -> str:
    """Return the first kernel that an operator launches itself, not through a call of the runtime."""
    direct = forest.direct.get(row, ()) if forest.category[row] == Category.OPERATOR else ()
    return next((forest.name(kernel) for kernel in direct if not forest.is_communication(kernel)), "")
