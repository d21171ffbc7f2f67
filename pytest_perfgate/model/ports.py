"""Ports: what use cases need from adapters. Every method is required."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.model.device import Availability, Device, DeviceSpec, SupportsWait
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Artifact, Baseline, Environment, HistoryEntry, Samples, Stop
    from pytest_perfgate.model.metric import Analysis, FigureName, Levels, MetricKind, Problem
    from pytest_perfgate.model.plan import Base, Case, CaseKey, Plan
    from pytest_perfgate.model.protocol import ChildSpawner
    from pytest_perfgate.model.verdict import CaseReport, RunReport

    Confirm = Callable[[Mapping[CaseKey, CaseReport], Mapping[str, Case]], Mapping[CaseKey, CaseReport]]
    """Tries suspects against their baseline's own commit and returns the reports that changed."""

Call = Callable[[], Any]


class Stream(Protocol):
    """An ordered queue of a device, from a runtime."""

    def synchronize(self) -> None: ...


class Event(Protocol):
    """A point on a stream whose time the device records."""

    def record(self) -> None: ...

    def since(self, earlier: Any) -> float:
        """Return nanoseconds between two events, after the stream was synchronised."""


class Runtime(Protocol):
    """One GPU library, or the host, or a scripted fake: streams, events, graphs, flush."""

    name: str

    def availability(self) -> Availability: ...

    def recognises(self, module_names: frozenset[str]) -> bool:
        """Return whether the test's function uses this library, by the modules it has loaded."""

    def device(self, index: int = 0) -> Device: ...

    def synchronize(self) -> None: ...

    def event(self) -> Event: ...

    def capture(self, call: Call) -> Call:
        """Return the call as a graph; a runtime without graphs raises ``graph-unsupported``."""

    def flush(self) -> None:
        """Evict the last cache, by at least twice its size on the device."""


class QueueRuntime(Runtime, SupportsWait, Protocol):
    """A runtime whose device executes queues of its own, asynchronously."""

    def block(self) -> Callable[[], None]:
        """Stop the queue here until the returned function is called, from any thread; raise ``block-unsupported``."""

    def notes(self) -> tuple[tuple[str, str], ...]:
        """Return notes on the device and on what was done to its cache, for the record."""


class StoppingRule(Protocol):
    """Decides when enough samples were taken; core has the rule, timers receive it."""

    def __call__(self, durations: Sequence[float], spent_ns: float, plan: Plan) -> Stop | None: ...


class Timer(Protocol):
    """Turns a call into samples."""

    name: str

    def availability(self, runtime: Runtime) -> Availability: ...

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples: ...


class Contents(Protocol):
    """Contents of arrays of any library."""

    def within(self, *things: Any) -> tuple[Any, ...]:
        """Return arrays within reach of these things, each once."""

    def fillable(self, array: Any) -> bool: ...

    def unread(self, *things: Any) -> tuple[str, ...]:
        """Return kinds of arrays within reach whose bytes are not read."""

    def saved(self, array: Any) -> Any:
        """Return a copy of its bytes, on its own device if there is room."""

    def restore(self, array: Any, saved: Any) -> None: ...

    def fill(self, array: Any, byte: int) -> None:
        """Fill it with this byte."""

    def fingerprint(self, array: Any) -> bytes:
        """Return a short hash of its bytes."""

    def unchanged(self, array: Any, saved: Any) -> bool:
        """Return whether it still holds what was saved."""

    def holding(self, array: Any, byte: int, saved: Any) -> float:
        """Return the share of its elements that hold only this byte, and did not when it was saved."""

    def itemsize(self, array: Any) -> int: ...

    def name(self, array: Any) -> str: ...

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether two arrays share memory."""

    def level(self, array: Any) -> str | None:
        """Return the value of all elements, "" if they differ; None for small or boolean arrays, and on the host."""


class Clocks(Protocol):
    """Locks or watches a device's clocks around a region."""

    name: str

    def availability(self) -> Availability: ...

    def hold(self, device: Device, plan: Plan) -> AbstractContextManager[ClockWatch]: ...


class ClockWatch(Protocol):
    """The observations of the clocks while they were held."""

    def problems(self) -> tuple[Problem, ...]: ...

    def clock_hz(self) -> tuple[float, ...]: ...

    def watts(self) -> float | None:
        """The power of the device while samples were taken."""

    def capped(self) -> float | None:
        """The share of sampling in which the power limit held the clock down; None if not observed."""

    def facts(self) -> tuple[tuple[str, str], ...]: ...


class Profiler(Protocol):
    """Runs something under a profiler and leaves an artifact."""

    name: str

    def availability(self) -> Availability: ...

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:
        """Return the child's command line behind this profiler; unchanged if it works in process."""

    def region(self, out: Path) -> AbstractContextManager[None]:
        """Return the block around the region that counts, for the child."""

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """Return what it left, after the child ended."""


class Inspector(Protocol):
    """Recognises a kind of file by its content, reads it, and analyses it."""

    name: str

    @property
    def views(self) -> Sequence[str]:
        """The names of the views of a file, the usual one first."""

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        """(name, help) of the options by ``--set NAME=VALUE``.

        An inspector with ``limits`` receives the limits' texts, one a line, for figures that depend on them.
        """

    def recognises(self, path: Path, head: bytes) -> bool: ...

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis: ...

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis: ...


class Catalogue(Protocol):
    """Data sheets by device name."""

    def lookup(self, name: str) -> DeviceSpec | None: ...

    def find(self, text: str) -> Sequence[DeviceSpec]: ...

    def __iter__(self) -> Iterator[DeviceSpec]: ...


class BaselineStore(Protocol):
    """The accepted lines on disk."""

    def read(self, device: str, path: str, revision: str = "") -> Mapping[str, Baseline]:
        """Return baselines of a test file by ``str(CaseKey)``, from the work tree or from a revision."""

    def read_all(self, device: str) -> Mapping[str, Baseline]: ...

    def paths(self, device: str, revision: str) -> tuple[str, ...]:
        """Return the test files that a revision has lines of."""

    def parsed(self, text: str, device: str, path: str) -> Mapping[str, Baseline]:
        """Return the lines in a file's text, wherever it was stored."""

    def write(self, baselines: Sequence[Baseline]) -> tuple[Path, ...]:
        """Replace only these lines, atomically, safe beside another writer."""

    def remove(self, device: str, keys: Sequence[CaseKey]) -> tuple[Path, ...]: ...

    def devices(self, revision: str = "") -> tuple[str, ...]:
        """Return devices with lines here, or committed ones in a revision."""


class RecordStore(Protocol):
    """The records of runs under ``.perfgate/``."""

    def write(self, report: RunReport) -> Path: ...

    def read(self, source: str = "") -> RunReport:
        """Return the last record, or that of a path or URL."""


class HistoryStore(Protocol):
    """Entries over time: one of each case and device in a run."""

    def append(self, entries: Sequence[HistoryEntry], record: str = "") -> int:
        """Add entries that are not there yet and return their number; the digest of their record is stored too."""

    def kept_open(self) -> AbstractContextManager[None]:
        """Keep the store open while many runs are appended."""

    def has(self, record: str) -> bool:
        """Return whether a record of this digest was added before."""

    def read(self, key: CaseKey, device: str, last: int = 0) -> tuple[HistoryEntry, ...]:
        """Return the entries of a case, oldest first; with ``last``, only so many of the newest."""

    def figures(self, key: CaseKey, device: str, last: int = 0) -> tuple[HistoryEntry, ...]:
        """Return the same as ``read`` with figures, including entries without a time."""

    def lines(self, last: int = 0, detailed: int = 0) -> Iterator[tuple[HistoryEntry, ...]]:
        """Yield the same as ``read`` for each case and device; the newest ``detailed`` entries with all figures."""

    def levels(
        self, of: Mapping[tuple[str, CaseKey], Collection[FigureName]], last: int = 0, detailed: int = 0
    ) -> Iterator[tuple[tuple[HistoryEntry, ...], Levels]]:
        """Yield the same as ``lines`` for these cases, timed or not, with each run's values of the named figures."""

    def keys(self, device: str = "") -> tuple[tuple[str, CaseKey], ...]: ...


class Delivery(Protocol):
    """Sends a rendered report somewhere."""

    name: str

    def deliver(self, report: RunReport, target: str) -> str:
        """Return where it went, in words."""


class Lease(Protocol):
    """One measurement at a time on a device, across processes."""

    tell: Callable[[str], None] | None
    """Called with the owner when this process waits."""

    def hold(self, device: str) -> AbstractContextManager[str]:
        """Hold the lease; it yields the token that a child inherits."""


class Repository(Protocol):
    """What the gate needs from version control."""

    def head(self) -> str: ...

    def last_release(self) -> str:
        """Return the newest version tag before the current commit."""

    def base(self, target: str = "") -> Base:
        """Return the merge base with its role; if there is none, the reason."""

    def missing(self, commits: Iterable[str]) -> frozenset[str]:
        """Return those that are not commits here."""

    def brought(self, commit: str, folder: str, until: str = "HEAD") -> str:
        """Return the commit up to a revision whose lines in the folder first name this commit."""

    def show(self, revision: str, path: str) -> str | None: ...

    def touched(self, revision: str, words: Sequence[str]) -> Mapping[str, tuple[str | None, str | None]] | None:
        """Return both texts of each Python file with one of these words, there or here, that differs from a revision.

        None if that is unknown.
        """

    def files(self, revision: str, folder: str) -> tuple[str, ...]: ...

    def below(self) -> str:
        """Return the path of this folder from the top of the repository."""

    def elsewhere(self, revision: str, ending: str) -> Mapping[str, bool]:
        """Return files of a revision with this ending outside this folder, and whether the commit still has them."""

    def changed(self, revision: str) -> tuple[str, ...]:
        """Return the tracked files, there or here, that differ from a revision, by their paths from here."""

    def pages_alone(self, revision: str, baselines: str) -> tuple[str, ...] | None:
        """Return the pages and accepted times that differ from a revision, if nothing else in the repository does.

        None if other files differ, if code mentions files of their kind, or if that is unknown.
        """

    def dirty(self) -> bool: ...

    def untracked(self, baselines: str) -> tuple[str, ...]:
        """Return files that no commit holds and git does not ignore, but pages and files of perfgate."""

    def author(self) -> str: ...


class HostMemory(Protocol):
    """Measures the host memory that a call uses, each time in a run of its own."""

    def traced(self, call: Call) -> float:
        """Return the most bytes that Python and numpy allocated, beyond what they held before."""

    def resident(self, call: Call) -> float | None:
        """Return the most bytes that the process held, beyond what it held before; ``None`` if unknown."""

    def children(self) -> int:
        """Return how many pages of memory child processes have taken so far."""


@array_value
class Instruments:
    """What measures in one process."""

    runtimes: tuple[Runtime, ...]
    """The host is the last."""
    timers: tuple[Timer, ...]
    """In the order of preference."""
    threads: Callable[[], str]
    """Returns this process's settings of thread pools."""
    affinity: Callable[[], str]
    inspectors: Sequence[Inspector] = ()
    profilers: Sequence[Profiler] = ()
    clocks: Clocks | None = None
    """Locks or watches the clocks of a device while it is measured."""
    leases: Lease | None = None
    contents: Contents | None = None
    """Reads and overwrites arrays, if a call's output is checked."""
    memory: HostMemory | None = None
    """Measures the host's memory, if a limit needs it."""
    queued: Callable[[], int] = int
    """Returns the nanoseconds that this thread has waited for a processor so far; 0 if unknown."""
    energy: Callable[[Device], Callable[[], float | None] | None] | None = None
    """Returns a function that reads a device's joules so far; ``None`` for a device that does not count them."""
    pools: Callable[[object], str] = lambda _call: ""
    """Returns the thread settings of libraries that a call uses, whatever else has loaded them."""
    elsewhere: Callable[[], tuple[Problem, ...]] = tuple
    """Returns a problem for each package of this checkout that the process has loaded from another one."""


@array_value
class GateTools:
    """What judging needs from outside."""

    kinds: Mapping[str, MetricKind]
    spawner: ChildSpawner
    environment: Callable[[], Environment]
    with_measured_ceilings: Callable[[Device], Device]
    """Returns the device with its data sheet and measured ceilings, as far as they are known."""
    baselines: BaselineStore | None = None
    committed: Callable[[str], bool] = bool
    """Returns whether a device's baselines are committed, so that only accepting writes them."""
    records: RecordStore | None = None
    history: HistoryStore | None = None
    repository: Repository | None = None
    confirm: Confirm | None = None
    settings: Callable[[str], Mapping[str, str]] = lambda _revision: {}
    """Returns settings by their path, of a revision or of the work tree."""
    here: Callable[[], Sequence[str]] = tuple
    """Returns patterns of the keys of this machine's devices, for a run that measured nothing on them."""
