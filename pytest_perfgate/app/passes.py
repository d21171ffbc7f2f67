"""What is measured beside a call: another call of its test in turns with it, memory, compiling, energy, tails."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pytest_perfgate.app.instrument import at_least
from pytest_perfgate.core.judge.readings import FILE, SPEEDUP, reference_of
from pytest_perfgate.core.limits.merge import share_of
from pytest_perfgate.core.limits.scope import references_in
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.stats.inference import calls_needed
from pytest_perfgate.model.device import SupportsMemory
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.measurement import Reading, Reference
from pytest_perfgate.model.metric import Absent, Metric, Problem
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Case, CaseKey, Plan
    from pytest_perfgate.model.ports import Call, Inspector, Instruments, Runtime

T = TypeVar("T")


class PassedCall(NamedTuple):
    """A call that was timed and is run again for figures beside its time."""

    call: Call
    prepare: Call
    runtime: Runtime
    calls: int = 1
    """How many calls one call of it stands for."""
    first_ns: float | None = None
    """What its first call in this process took, where caches of compilers were cold."""

    def finished(self) -> object:
        """Call it and wait for its device."""
        result = self.call()
        self.runtime.synchronize()
        return result


Clock = Callable[[], float]

_RUNS = 3

_LONG_NS = 1e9
"""A pass that has taken so long is not repeated."""


def readings_of(
    wanted: Sequence[str], passed: PassedCall, samples: Sequence[Samples], instruments: Instruments, clock: Clock
) -> Iterator[Reading | Absent]:
    """The requested figures beside time, each in runs of its own, or the reason why there is none."""
    if "peak_memory" in wanted:
        yield from _host_memory(passed, instruments, clock)
    if "peak_vram" in wanted or "allocations" in wanted:
        yield from _device_memory(wanted, passed, clock)
    if "energy" in wanted:
        yield _energy(passed, instruments, clock)
    if "compile_time" in wanted:
        yield _compile_time(passed, samples)


def _host_memory(passed: PassedCall, instruments: Instruments, clock: Clock) -> Iterator[Reading | Absent]:
    memory = instruments.memory
    if memory is None:
        yield Absent(name="peak_memory", why="no instrument here reads the host's memory")
        return
    for by, look in (("traced", memory.traced), ("resident", memory.resident)):
        peaks = [peak for peak in _looks(passed, look, clock) if peak is not None]
        if peaks:
            yield Reading(name="peak_memory", values=tuple(peaks), dimension=Dimension.BYTES, labels=(("by", by),))


def _looks(passed: PassedCall, look: Callable[[Call], T], clock: Clock) -> Iterator[T]:
    """What several looks see, each after a set-up of its own; a long call is looked at less often."""
    begun = clock()
    for _ in range(_RUNS):
        passed.prepare()
        yield look(passed.finished)
        if clock() - begun > _LONG_NS:
            return


def _device_memory(wanted: Sequence[str], passed: PassedCall, clock: Clock) -> Iterator[Reading | Absent]:
    """What the array library itself counts: memory that a call holds, not what the library keeps in reserve."""
    names = [name for name in ("peak_vram", "allocations") if name in wanted]
    runtime: object = passed.runtime
    if not isinstance(runtime, SupportsMemory):
        why = f"{passed.runtime.name} does not count its allocations of device memory"
        yield from (
            Absent(
                name=name,
                why=why,
                fix="torch and CuPy do, for calls on a GPU; for a call on the host use peak_memory",
            )
            for name in names
        )
        return
    peaks, counts = zip(*_looks(passed, runtime.memory_of, clock))
    if "peak_vram" in names:
        yield Reading(name="peak_vram", values=tuple(map(float, peaks)), dimension=Dimension.BYTES)
    if "allocations" in names:
        each = tuple(count / passed.calls for count in counts)
        yield Reading(name="allocations", values=each, dimension=Dimension.COUNT)


_WINDOW_NS = 2e9
"""Counters of energy step every 20 to 100 ms: over so long a step is a few per cent at the most."""

_STILL_NS = 1e9
"""A counter that has not moved for so long under load does not count."""

_BURST_NS = 5e6


def _energy(passed: PassedCall, instruments: Instruments, clock: Clock) -> Reading | Absent:
    """Joules a call, from one step of the device's counter to another, calls one behind the other between them."""
    meter = instruments.energy(passed.runtime.device()) if instruments.energy is not None else None
    if meter is None or meter() is None:
        why = "the device has no counter of energy that can be read"
        return Absent(name="energy", why=why, fix="NVIDIA cards from Volta on have one: pip install nvidia-ml-py")
    burst = _burst(passed, clock)
    if not _stepped(passed, meter, burst, clock):
        return Absent(name="energy", why="the device's energy counter does not move under load")
    first, begun, count = meter(), clock(), 0
    while clock() - begun < _WINDOW_NS:
        count += _run(passed, burst)
    count += _stepped(passed, meter, burst, clock)
    last = meter()
    if first is None or last is None:
        return Absent(name="energy", why="the device's counter of energy stopped answering")
    return Reading(name="energy", values=((last - first) / (count * passed.calls),), dimension=Dimension.ENERGY)


def _burst(passed: PassedCall, clock: Clock) -> int:
    """Calls between two looks at the counter: reading it must cost little beside them."""
    begun = clock()
    _run(passed, 1)
    return max(1, int(_BURST_NS / max(clock() - begun, 1.0)))


def _run(passed: PassedCall, times: int) -> int:
    for _ in range(times):
        passed.prepare()
        passed.call()
    passed.runtime.synchronize()
    return times


def _stepped(passed: PassedCall, meter: Callable[[], float | None], burst: int, clock: Clock) -> int:
    """Calls until the counter moves; none where it does not."""
    before, begun, count = meter(), clock(), 0
    while clock() - begun < _STILL_NS:
        count += _run(passed, burst)
        if meter() != before:
            return count
    return 0


def _compile_time(passed: PassedCall, samples: Sequence[Samples]) -> Reading | Absent:
    if passed.first_ns is None:
        why = "only a fresh process with cold caches can measure a first call"
        return Absent(name="compile_time", why=why, fix="pytest --perfgate=full, with the limit on the test's marker")
    steady = median(duration for one in samples for duration in one.durations) * passed.calls
    first = max(0.0, passed.first_ns - steady)
    return Reading(name="compile_time", values=(first,), dimension=Dimension.TIME)


_HEAD_BYTES = 4096


class GatedCall(Protocol):
    """One call of a test, as far as it matters here."""

    @property
    def key(self) -> CaseKey: ...

    @property
    def fn(self) -> Callable[..., Any]: ...

    @property
    def setup(self) -> Callable[[], Any] | None: ...

    @property
    def limits(self) -> tuple[str, ...]: ...


C = TypeVar("C", bound=GatedCall)


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
        overs = {over for _, over in self._wanted}
        pairs = (
            (name, over)
            for case, over in self._wanted
            for name in names
            if (fnmatchcase(name, case) if case else name not in overs)
        )
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


def _cells(call: GatedCall) -> dict[str, object]:
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


def of_file(over: str, case: Asked, inspectors: Sequence[Inspector]) -> Reference:
    """The figure of a file that a call is held against; a file without one is a problem, and no figure."""
    name, _, pattern = over.removeprefix(FILE).partition("#")
    try:
        times = _times(Path(name), inspectors)
    except PerfgateError as fault:
        return _missing(over, f"{name}: {fault.what}")
    one = chosen(times, pattern, case)
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


def chosen(times: Mapping[str, Metric], pattern: str, case: Asked) -> Metric | str:
    """The one benchmark of a file that is meant: by a pattern, by the name of the test, by its parameters.

    What is left undecided is an answer in words: a figure of another size would be no reference.
    """
    key, params = case
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


_AMPLE = 4
"""Times the calls that a quantile takes at least, as far as the budget goes: with no more, one odd call is its end."""


def one_by_one(plan: Plan, figures: Sequence[str], processes: int) -> Plan:
    """The plan with calls timed one by one, and enough of them, where a limit asks for a quantile."""
    shares = [share for figure in figures if (share := share_of(figure.removeprefix("q=")))]
    if not shares:
        return plan
    needed = math.ceil(max(map(calls_needed, shares)) / processes)
    enough = at_least(plan, max(plan.least_samples, needed))
    wished = max(enough.min_samples, _AMPLE * needed)
    most = max(enough.max_samples, wished)
    return replace(enough, min_samples=wished, max_samples=most, calls=plan.calls or 1, figures=tuple(figures))
