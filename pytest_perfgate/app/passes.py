"""Measurements beside a call's time: references in turns, memory, compile time, energy, quantiles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pytest_perfgate.app.instrument import at_least
from pytest_perfgate.core.judge.readings import FILE, reference_of
from pytest_perfgate.core.limits.merge import share_of
from pytest_perfgate.core.limits.scope import references_in
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.stats.inference import calls_needed
from pytest_perfgate.model.device import SupportsMemory
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.measurement import Reading, Reference
from pytest_perfgate.model.metric import Absent, Metric, Problem
from pytest_perfgate.model.plan import SPEEDUP
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Case, CaseKey, Plan
    from pytest_perfgate.model.ports import Call, Inspector, Instruments, Runtime

T = TypeVar("T")


class PassedCall(NamedTuple):
    """A timed call that is run again for figures beside its time."""

    call: Call
    prepare: Call
    runtime: Runtime
    calls: int = 1
    """How many calls one call of it stands for."""
    first_ns: float | None = None
    """The time of its first call in this process, with empty caches of compilers."""
    moved: tuple[str, ...] = ()
    """The variables by which the project itself chose a cache that is not empty."""

    def finished(self) -> object:
        """Call it and wait for its device."""
        result = self.call()
        self.runtime.synchronize()
        return result


Clock = Callable[[], float]

_TRIALS, _TRIALS_NS = 5, 0.2e9

_LEFT_NS, _LEFT = 2_000.0, 0.01
"""The least work that counts, also as a share of the call: after a call an idle wait finds the caches in use."""


WAITED = ("wait", "the time includes a wait for the work that the call leaves to a device")  # a note of samples


def leaves_work(passed: PassedCall, wait: Call, clock: Clock) -> bool:
    """Return whether a device still works when the call returns, so that a wait takes longer than a second one."""
    trials: list[tuple[float, ...]] = []
    passed.prepare()
    passed.call()  # it may compile
    begun = clock()
    while len(trials) < _TRIALS and (not trials or clock() - begun < _TRIALS_NS):
        passed.prepare()
        wait()
        stamps = [clock(), *((run(), clock())[1] for run in (passed.call, wait, wait))]
        trials.append(tuple(later - earlier for earlier, later in pairwise(stamps)))
    took, left, idle = (median(times) for times in zip(*trials))
    return bool(left - idle > max(idle, _LEFT_NS, _LEFT * took))


_RUNS = 3

_LONG_NS = 1e9
"""A pass is not repeated after so long."""

_PAGES = 16
"""The most pages in a run that processes take that are only present, such as a server of a fixture."""


def readings_of(
    wanted: Sequence[str], passed: PassedCall, samples: Sequence[Samples], instruments: Instruments, clock: Clock
) -> Iterator[Reading | Absent]:
    """Yield the requested figures beside time, each from runs of its own, or the reason for its absence."""
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
    before, runs = memory.children(), 0
    readings: list[Reading] = []
    for by, look in (("traced", memory.traced), ("resident", memory.resident)):
        looks = list(_results_of_runs(passed, look, clock))
        runs += len(looks)
        if peaks := tuple(peak for peak in looks if peak is not None):
            readings.append(Reading(name="peak_memory", values=peaks, dimension=Dimension.BYTES, labels=(("by", by),)))
    if memory.children() - before > _PAGES * runs:
        why = "child processes took memory during the call, which is not counted"  # its own, or those that watch it
        fix = "measure what the child runs, in a test of its own; or take its own figure: perfgate.metric(...)"
        yield Absent(name="peak_memory", why=why, fix=f"{fix}; or end a process that only watches")
        return
    yield from readings


def _results_of_runs(passed: PassedCall, look: Callable[[Call], T], clock: Clock) -> Iterator[T]:
    """Yield the result of several runs, each after its own set-up; a long call is run less often."""
    begun = clock()
    for _ in range(_RUNS):
        passed.prepare()
        yield look(passed.finished)
        if clock() - begun > _LONG_NS:
            return


def _device_memory(wanted: Sequence[str], passed: PassedCall, clock: Clock) -> Iterator[Reading | Absent]:
    """Yield what the array library counts: memory that a call holds, not what the library keeps in reserve."""
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
    peaks, counts = zip(*_results_of_runs(passed, runtime.memory_of, clock))
    if "peak_vram" in names:
        yield Reading(name="peak_vram", values=tuple(map(float, peaks)), dimension=Dimension.BYTES)
    if "allocations" in names:
        each = tuple(count / passed.calls for count in counts)
        yield Reading(name="allocations", values=each, dimension=Dimension.COUNT)


_WINDOW_NS = 2e9
"""Energy counters step every 20 to 100 ms, a few per cent of this time at most."""

_STILL_NS = 1e9
"""A counter that has not changed for so long under load is not usable."""

_BURST_NS = 5e6


def _energy(passed: PassedCall, instruments: Instruments, clock: Clock) -> Reading | Absent:
    """Return the joules of a call, from one step of the device's counter to another with calls in between."""
    meter = instruments.energy(passed.runtime.device()) if instruments.energy is not None else None
    if meter is None or meter() is None:
        why = "the device has no counter of energy that can be read"
        return Absent(name="energy", why=why, fix="NVIDIA cards from Volta on have one: pip install nvidia-ml-py")
    burst = _burst(passed, clock)
    if not _calls_per_step(passed, meter, burst, clock):
        return Absent(name="energy", why="the device's energy counter does not move under load")
    first, begun, count = meter(), clock(), 0
    while clock() - begun < _WINDOW_NS:
        count += _run(passed, burst)
    count += _calls_per_step(passed, meter, burst, clock)
    last = meter()
    if first is None or last is None:
        return Absent(name="energy", why="the device's counter of energy stopped answering")
    return Reading(name="energy", values=((last - first) / (count * passed.calls),), dimension=Dimension.ENERGY)


def _burst(passed: PassedCall, clock: Clock) -> int:
    """Return the number of calls between two reads of the counter, so that reading takes a small share."""
    begun = clock()
    _run(passed, 1)
    return max(1, int(_BURST_NS / max(clock() - begun, 1.0)))


def _run(passed: PassedCall, times: int) -> int:
    for _ in range(times):
        passed.prepare()
        passed.call()
    passed.runtime.synchronize()
    return times


def _calls_per_step(passed: PassedCall, meter: Callable[[], float | None], burst: int, clock: Clock) -> int:
    """Return the number of calls until the counter changes; 0 if it does not."""
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
    if passed.moved:
        why = f"the project itself sets {' and '.join(passed.moved)}, and that cache was not empty"
        fix = "set it by os.environ.setdefault(): perfgate has set an empty folder"
        return Absent(name="compile_time", why=why, fix=fix)
    steady = median(duration for process in samples for duration in process.durations) * passed.calls
    first = max(0.0, passed.first_ns - steady)
    return Reading(name="compile_time", values=(first,), dimension=Dimension.TIME)


_HEAD_BYTES = 4096


class GatedCall(Protocol):
    """One call of a test, as far as references use it."""

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
    """Time a call and its reference in turns, ten times each, in this process."""
    from pytest_perfgate.app.lockstep import BASE, HEAD, Turns, TurnTiming

    calls = {BASE: theirs, HEAD: ours}
    turns = Turns(lambda side, cut: measured(calls[side], cut), TurnTiming(), (BASE, HEAD), alike=False)
    base, head = turns.sample(plan)
    return reference_of(theirs.key.name, head, base)


class References(Generic[C]):
    """The calls and files of a test that its limits compare each other with."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._wanted = [pair for limit in case.limits for pair in _speedups(limit.text)]
        self._held: dict[str, RepeatableCall[C]] = {}

    def pairs_with(self, call: C) -> Iterator[tuple[C, C]]:
        """Yield each (call, reference) that is complete with this call, as one or the other."""
        name = call.key.name
        self._wanted += [(name, over) for text in call.limits for _, over in _speedups(text)]
        if not self._wanted:
            return
        self._held[name] = RepeatableCall(call)
        for ours, over in self._pairs(self._held):
            if name in {ours, over} and ours in self._held and over in self._held:
                yield self._held[ours].call, self._held[over].call

    def files_of(self, call: C, inspectors: Sequence[Inspector]) -> tuple[Reference, ...]:
        overs = dict.fromkeys(over for _, over in self._pairs([call.key.name]) if over.startswith(FILE))
        return tuple(of_file(over, (call.key, self._case.params), inspectors) for over in overs)

    def _pairs(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the names of calls and of their references, each pair once."""
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


class RepeatableCall(Generic[C]):
    """A call that is kept to be made again after other code of its test."""

    def __init__(self, call: C) -> None:
        self._call, self._cells = call, _cells(call)

    @property
    def call(self) -> C:
        """Return the call; raise if a variable of the test that it uses was replaced."""
        now = _cells(self._call)
        for name, then in self._cells.items():
            if now.get(name) is not then:
                what = f"{name} is another object than it was when {self._call.key} was measured"
                raise PerfgateError("reference-changed", what, place=self._call.key.nodeid)
        return self._call


def _cells(call: GatedCall) -> dict[str, object]:
    """Return the closure variables of a call and its set-up by name, without deleted ones."""
    cells: dict[str, object] = {}
    for function in (call.fn, call.setup):
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(function, "__closure__", None) or ()):
            with suppress(ValueError):
                cells[name] = cell.cell_contents
    return cells


ReferenceCase = tuple["CaseKey", tuple[tuple[str, str], ...]]
"""A call, and the parameters of its test."""


def of_file(over: str, case: ReferenceCase, inspectors: Sequence[Inspector]) -> Reference:
    """Return the reference time of a file; a file without one gives a problem instead."""
    name, _, pattern = over.removeprefix(FILE).partition("#")
    try:
        times = _times(Path(name), inspectors)
    except PerfgateError as fault:
        return _missing(over, f"{name}: {fault.what}")
    time = chosen(times, pattern, case)
    if isinstance(time, str):
        return _missing(over, f"{name} {time}")
    label = dict(time.labels)["case"]
    return Reference(over=over, theirs=(time.value,), origin=f"{label} in {Path(name).name}")


def _missing(over: str, what: str) -> Reference:
    return Reference(over=over, problems=(Problem(code="reference-missing", what=what, retry=False),))


def _times(path: Path, inspectors: Sequence[Inspector]) -> Mapping[str, Metric]:
    """Return the time of each benchmark of a file, by name."""
    from pytest_perfgate.app.inspections import choose

    if not path.is_file():
        raise PerfgateError("file-missing", "there is no such file")
    inspector = choose([path], {}, inspectors=inspectors, peek=_head)
    metrics = inspector.inspect([path], {}).metrics
    times = {dict(metric.labels).get("case", ""): metric for metric in metrics.metrics if metric.name == "time"}
    return {name: metric for name, metric in times.items() if name and metric.value > 0}


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def chosen(times: Mapping[str, Metric], pattern: str, case: ReferenceCase) -> Metric | str:
    """Return the benchmark of a file that matches by pattern, by the name of the test, or by its parameters.

    If none or several match, return the reason: a figure of another size would be a wrong reference.
    """
    key, params = case
    names = [name for name in times if fnmatchcase(name, f"*{pattern}*")] if pattern else list(times)
    for same in (key.test, key.test_id, key.nodeid.rpartition("::")[2], key.name):
        if same and same in names:
            return times[same]
    sized = [name for name in names if all(_contains_word(name, text) for _, text in params)]
    if len(sized) == 1 and (params or pattern or len(times) == 1):
        return times[sized[0]]
    wanted = ", ".join(f"{name}={text}" for name, text in params) or key.test
    nearest = proposal(pattern or key.test_id, times, all_of="it has")
    count = "several benchmarks fit" if sized else "no benchmark fits"
    return f"is read, and {count} {wanted}{f' and {pattern!r}' if pattern else ''}; {nearest}".rstrip("; ")


def _contains_word(name: str, text: str) -> bool:
    """Return whether the name of a benchmark contains the value of a parameter as a whole word."""
    return re.search(rf"(?<![A-Za-z0-9.]){re.escape(text)}(?![A-Za-z0-9.])", name) is not None


_AMPLE = 4
"""The wanted multiple of the calls that a quantile needs: with the least number, one odd call would decide it."""


def one_by_one(plan: Plan, figures: Sequence[str], processes: int) -> Plan:
    """Return the plan with calls timed one by one, and enough of them, if a limit asks for a quantile."""
    shares = [share for figure in figures if (share := share_of(figure.removeprefix("q=")))]
    if not shares:
        return plan
    needed = math.ceil(max(map(calls_needed, shares)) / processes)
    enough = at_least(plan, max(plan.least_samples, needed))
    wished = max(enough.min_samples, _AMPLE * needed)
    most = max(enough.max_samples, wished)
    return replace(enough, min_samples=wished, max_samples=most, calls=plan.calls or 1, figures=tuple(figures))
