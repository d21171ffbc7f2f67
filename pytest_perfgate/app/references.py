"""What a call is held against: another call of its test, in turns with it, or a figure that another tool left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pytest_perfgate.core.judge.readings import FILE, SPEEDUP, reference_of
from pytest_perfgate.core.limits.scope import proposal, references_in
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reference
from pytest_perfgate.model.metric import Metric, Problem

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Case, CaseKey, Plan
    from pytest_perfgate.model.ports import Inspector

_HEAD_BYTES = 4096


class Call(Protocol):
    """One call of a test, as far as it matters here."""

    @property
    def key(self) -> CaseKey: ...

    @property
    def fn(self) -> Callable[..., Any]: ...

    @property
    def setup(self) -> Callable[[], Any] | None: ...

    @property
    def limits(self) -> tuple[str, ...]: ...


C = TypeVar("C", bound=Call)


def in_turns(ours: C, theirs: C, plan: Plan, measured: Callable[[C, Plan], Samples]) -> Reference:
    """A call and its reference one after the other, ten times each, in this process."""
    from pytest_perfgate.app.lockstep import BASE, HEAD, Turns, TurnTiming

    calls = {BASE: theirs, HEAD: ours}
    turns = Turns(lambda side, cut: measured(calls[side], cut), TurnTiming(), (BASE, HEAD), alike=False)
    base, head = turns.taken(plan)
    return reference_of(theirs.key.name, head, base)


class References(Generic[C]):
    """The calls of a test that its limits hold against each other, and against files."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._wanted = [pair for limit in case.limits for pair in _speedups(limit.text)]
        self._held: dict[str, HeldCall[C]] = {}

    def pairs_with(self, call: C) -> Iterator[tuple[C, C]]:
        """(call, reference) that are complete with this call, which is the one or the other."""
        name = call.key.name
        self._wanted += [(name, over) for text in call.limits for _, over in _speedups(text)]
        if not self._wanted:
            return
        self._held[name] = HeldCall(call)
        for ours, over in self._pairs(self._held):
            if name in {ours, over} and ours in self._held and over in self._held:
                yield self._held[ours].call, self._held[over].call

    def files_of(self, call: C, inspectors: Sequence[Inspector]) -> tuple[Reference, ...]:
        """What the files say that this call is held against."""
        overs = dict.fromkeys(over for _, over in self._pairs([call.key.name]) if over.startswith(FILE))
        return tuple(of_file(over, (call.key, self._case.params), inspectors) for over in overs)

    def _pairs(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """The names of calls and of their references, each pair once."""
        pairs = ((name, over) for case, over in self._wanted for name in names if fnmatchcase(name, case or "*"))
        return tuple(dict.fromkeys((name, over) for name, over in pairs if name != over))


def _speedups(text: str) -> tuple[tuple[str, str], ...]:
    return references_in(text, by_name()[SPEEDUP]) if SPEEDUP in text else ()


class HeldCall(Generic[C]):
    """A call that is to be made again, behind other code of its test."""

    def __init__(self, call: C) -> None:
        self._call, self._cells = call, _cells(call)

    @property
    def call(self) -> C:
        """The call, as long as the variables of the test that it uses are what they were."""
        now = _cells(self._call)
        for name, then in self._cells.items():
            if now.get(name) is not then:
                what = f"{name} is another object than it was when {self._call.key} was measured"
                raise PerfgateError("reference-changed", what, place=self._call.key.nodeid)
        return self._call


def _cells(call: Call) -> dict[str, object]:
    """What a call and its set-up close over, by name; one that was deleted is left out."""
    cells: dict[str, object] = {}
    for function in (call.fn, call.setup):
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(function, "__closure__", None) or ()):
            with suppress(ValueError):
                cells[name] = cell.cell_contents
    return cells


Asked = tuple["CaseKey", tuple[tuple[str, str], ...]]
"""A call, and the parameters of its test."""


def of_file(over: str, asked: Asked, inspectors: Sequence[Inspector]) -> Reference:
    """The figure of a file that a call is held against; a file without one is a problem, and no figure."""
    name, _, pattern = over.removeprefix(FILE).partition("#")
    try:
        times = _times(Path(name), inspectors)
    except PerfgateError as fault:
        return _missing(over, f"{name}: {fault.what}")
    one = chosen(times, pattern, asked)
    if isinstance(one, str):
        return _missing(over, f"{name} {one}")
    label = dict(one.labels)["case"]
    return Reference(over=over, theirs=(one.value,), origin=f"{label} in {Path(name).name}")


def _missing(over: str, what: str) -> Reference:
    return Reference(over=over, problems=(Problem(code="reference-missing", what=what, retry=False),))


def _times(path: Path, inspectors: Sequence[Inspector]) -> Mapping[str, Metric]:
    """The time of each benchmark of a file, by its name."""
    from pytest_perfgate.app.inspect import choose

    if not path.is_file():
        raise PerfgateError("file-missing", "there is no such file")
    inspector = choose([path], {}, inspectors=inspectors, peek=_head)
    metrics = inspector.inspect([path], {}).metrics
    times = {dict(metric.labels).get("case", ""): metric for metric in metrics.metrics if metric.name == "time"}
    return {name: metric for name, metric in times.items() if name and metric.value > 0}


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def chosen(times: Mapping[str, Metric], pattern: str, asked: Asked) -> Metric | str:
    """The one benchmark of a file that is meant: by a pattern, by the name of the test, by its parameters.

    What is left undecided is an answer in words: a figure of another size would be no reference.
    """
    key, params = asked
    names = [name for name in times if fnmatchcase(name, f"*{pattern}*")] if pattern else list(times)
    for same in (key.test, key.test_id, key.nodeid.rpartition("::")[2], key.name):
        if same and same in names:
            return times[same]
    sized = [name for name in names if all(_says(name, text) for _, text in params)]
    if len(sized) == 1 and (params or pattern or len(times) == 1):
        return times[sized[0]]
    wanted = ", ".join(f"{name}={text}" for name, text in params) or key.test
    near = proposal(pattern or key.test_id, times, all_of="it has")
    count = "several benchmarks fit" if sized else "no benchmark fits"
    return f"is read, and {count} {wanted}{f' and {pattern!r}' if pattern else ''}; {near}".rstrip("; ")


def _says(name: str, text: str) -> bool:
    """Whether the name of a benchmark holds the value of a parameter as a word of its own."""
    return re.search(rf"(?<![A-Za-z0-9.]){re.escape(text)}(?![A-Za-z0-9.])", name) is not None
