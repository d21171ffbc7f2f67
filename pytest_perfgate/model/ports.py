"""What use cases need from adapters. Every method is required."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.model.device import Availability, Device, DeviceSpec, SupportsWait
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Artifact, Baseline, Environment, Samples, Sitting, Stop
    from pytest_perfgate.model.metric import Analysis, FigureName, Levels, MetricKind, Problem
    from pytest_perfgate.model.plan import Base, Case, CaseKey, Plan
    from pytest_perfgate.model.protocol import ChildSpawner
    from pytest_perfgate.model.verdict import CaseReport, RunReport

    Confirm = Callable[[Mapping[CaseKey, CaseReport], Mapping[str, Case]], Mapping[CaseKey, CaseReport]]
    """Tries suspects against their baseline's own commit and returns the reports that changed."""

Call = Callable[[], Any]


class Stream(Protocol):
    """An ordered queue of a device, as a runtime hands it out."""

    def synchronize(self) -> None: ...


class Event(Protocol):
    """A point on a stream that the device stamps."""

    def record(self) -> None: ...

    def since(self, earlier: Any) -> float:
        """Nanoseconds between two events, read after the stream was synchronised."""


class Runtime(Protocol):
    """One GPU library, or the host, or a scripted fake: streams, events, graphs, flush."""

    name: str

    def availability(self) -> Availability: ...

    def recognises(self, module_names: frozenset[str]) -> bool:
        """Whether the test's function touches this library, judged by modules it has loaded."""

    def device(self, index: int = 0) -> Device: ...

    def synchronize(self) -> None: ...

    def event(self) -> Event: ...

    def capture(self, call: Call) -> Call:
        """The call as a graph; a runtime without graphs raises ``graph-unsupported``."""

    def flush(self) -> None:
        """Evict the last cache: at least twice its size, read off the device."""


class QueueRuntime(Runtime, SupportsWait, Protocol):
    """A runtime whose device works through queues of its own, beside the host."""

    def block(self) -> Callable[[], None]:
        """Stop the queue here until the returned function is called, from any thread; or ``block-unsupported``."""

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What was read off the device and done to its cache, for the record."""


class StoppingRule(Protocol):
    """Says when enough samples were taken; core has the rule, timers are given it."""

    def __call__(self, durations: Sequence[float], spent_ns: float, plan: Plan) -> Stop | None: ...


class Timer(Protocol):
    """Turns a call into samples."""

    name: str

    def availability(self, runtime: Runtime) -> Availability: ...

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples: ...


class Contents(Protocol):
    """What arrays hold, whatever library they are of."""

    def within(self, *things: Any) -> tuple[Any, ...]:
        """Arrays within reach of these things, each once."""

    def saved(self, array: Any) -> Any:
        """A copy of its bytes, on its own device where there is room."""

    def restore(self, array: Any, saved: Any) -> None: ...

    def fill(self, array: Any, byte: int) -> None:
        """This one byte throughout."""

    def fingerprint(self, array: Any) -> bytes:
        """A few bytes that are others where any of its bytes is."""

    def unchanged(self, array: Any, saved: Any) -> bool:
        """Whether it holds what was saved."""

    def holding(self, array: Any, byte: int, saved: Any) -> float:
        """The share of its elements that hold nothing but this byte, and did not when it was saved."""

    def itemsize(self, array: Any) -> int: ...

    def name(self, array: Any) -> str: ...

    def overlap(self, one: Any, other: Any) -> bool:
        """Whether two arrays lie in the same memory."""

    def level(self, array: Any) -> str | None:
        """The value of all its elements, empty where they differ; None of a small one, truths, one on the host."""


class Clocks(Protocol):
    """Locks or watches a device's clocks around a region."""

    name: str

    def availability(self) -> Availability: ...

    def hold(self, device: Device, plan: Plan) -> AbstractContextManager[ClockWatch]: ...


class ClockWatch(Protocol):
    """What happened to the clocks while they were held."""

    def problems(self) -> tuple[Problem, ...]: ...

    def clock_hz(self) -> tuple[float, ...]: ...

    def watts(self) -> float | None:
        """What the device drew while samples were taken."""

    def capped(self) -> float | None:
        """The share of the sampling in which the power limit held the clock down; none where nobody looked."""

    def facts(self) -> tuple[tuple[str, str], ...]: ...


class Profiler(Protocol):
    """Runs something under an instrument and leaves an artifact."""

    name: str

    def availability(self) -> Availability: ...

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:
        """The child's command line behind this profiler; the same list when it works in process."""

    def region(self, out: Path) -> AbstractContextManager[None]:
        """Entered in the child around the region that counts."""

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """What it left, after the child ended."""


class Inspector(Protocol):
    """Tells a kind of file by its content, reads it, and says what is in it."""

    name: str

    @property
    def views(self) -> Sequence[str]:
        """The names of what can be shown of a file, the usual one first."""

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        """(name, help) of what ``--set NAME=VALUE`` may carry for it.

        One that lists ``limits`` is given the limits' texts, one a line, for figures that depend on what is asked.
        """

    def recognises(self, path: Path, head: bytes) -> bool: ...

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis: ...

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis: ...


class Catalogue(Protocol):
    """Data sheets by device name."""

    def lookup(self, name: str) -> DeviceSpec | None: ...

    def __iter__(self) -> Iterator[DeviceSpec]: ...


class BaselineStore(Protocol):
    """The accepted truth on disk."""

    def read(self, device: str, path: str, revision: str = "") -> Mapping[str, Baseline]:
        """Baselines of a test file by ``str(CaseKey)``, from the work tree or from a revision."""

    def read_all(self, device: str) -> Mapping[str, Baseline]: ...

    def paths(self, device: str, revision: str) -> tuple[str, ...]:
        """The test files that a revision has lines of."""

    def parsed(self, text: str, device: str, path: str) -> Mapping[str, Baseline]:
        """The lines that a file says, wherever it lay."""

    def write(self, baselines: Sequence[Baseline]) -> tuple[Path, ...]:
        """Replace these lines and no others, atomically, safe beside another writer."""

    def remove(self, device: str, keys: Sequence[CaseKey]) -> tuple[Path, ...]: ...

    def devices(self, revision: str = "") -> tuple[str, ...]:
        """Those with lines here, or committed ones in a revision."""


class RecordStore(Protocol):
    """The record of runs under ``.perfgate/``."""

    def write(self, report: RunReport) -> Path: ...

    def read(self, source: str = "") -> RunReport:
        """The last record, or that of a path or URL."""


class HistoryStore(Protocol):
    """Sittings over time: one of each case and device in a run."""

    def append(self, sittings: Sequence[Sitting], record: str = "") -> int:
        """How many were new: one that is there already is left as it is. The digest of their record is kept too."""

    def kept_open(self) -> AbstractContextManager[None]:
        """While many runs are appended."""

    def has(self, record: str) -> bool:
        """Whether a record of this digest was added before."""

    def read(self, key: CaseKey, device: str, last: int = 0) -> tuple[Sitting, ...]:
        """Sittings of a case, oldest first; the newest so many where ``last`` says so."""

    def figures(self, key: CaseKey, device: str, last: int = 0) -> tuple[Sitting, ...]:
        """As ``read``, each with its figures, those among them of which nothing was timed."""

    def lines(self, last: int = 0, detailed: int = 0) -> Iterator[tuple[Sitting, ...]]:
        """As ``read``, of one case and device after the other; the newest ``detailed`` with all figures."""

    def levels(
        self, of: Mapping[tuple[str, CaseKey], Collection[FigureName]], last: int = 0, detailed: int = 0
    ) -> Iterator[tuple[tuple[Sitting, ...], Levels]]:
        """As ``lines``, of these devices and cases, whatever was timed; beside them a number a run of each name."""

    def keys(self, device: str = "") -> tuple[tuple[str, CaseKey], ...]: ...


class Delivery(Protocol):
    """Takes a rendered report somewhere."""

    name: str

    def deliver(self, report: RunReport, target: str) -> str:
        """Where it went, in words."""


class Lease(Protocol):
    """One measurement at a time on a device, across processes."""

    tell: Callable[[str], None] | None
    """Who hears that this process waits, and for whom."""

    def hold(self, device: str) -> AbstractContextManager[str]:
        """Yields the token that a child inherits."""


class Repository(Protocol):
    """What the gate asks of version control."""

    def head(self) -> str: ...

    def last_release(self) -> str:
        """The newest tag of a version behind the current commit."""

    def merge_base(self, target: str = "") -> str: ...

    def base(self, target: str = "") -> Base:
        """The same with what it is; where there is none, why."""

    def missing(self, commits: Iterable[str]) -> frozenset[str]:
        """Those that are no commit here."""

    def brought(self, commit: str, folder: str, until: str = "HEAD") -> str:
        """The commit, of those that a revision holds, that brought a line into the folder that names this one."""

    def show(self, revision: str, path: str) -> str | None: ...

    def touched(self, revision: str, words: Sequence[str]) -> Mapping[str, tuple[str | None, str | None]] | None:
        """Both texts of each Python file with one of these words, there or here, that is other than in a revision.

        Nothing where that cannot be told.
        """

    def files(self, revision: str, folder: str) -> tuple[str, ...]: ...

    def below(self) -> str:
        """This folder, from the top of the repository."""

    def elsewhere(self, revision: str, ending: str) -> Mapping[str, bool]:
        """Files of a revision above or beside this folder, from here, and whether the commit still has them."""

    def changed(self, revision: str) -> tuple[str, ...]:
        """Files that git knows, there or here, and that are other than in a revision, by their paths from here."""

    def pages_alone(self, revision: str, baselines: str) -> tuple[str, ...] | None:
        """Pages and accepted times that are other than in a revision, where nothing else in the whole repository is.

        Nothing where something else is, where code speaks of files of their kind, or where that cannot be told.
        """

    def dirty(self) -> bool: ...

    def author(self) -> str: ...


def _none(call: object) -> str:
    """No library has a pool of its own."""
    del call
    return ""


class HostMemory(Protocol):
    """What a call takes of the host's memory, each time in a run of its own."""

    def traced(self, call: Call) -> float:
        """Bytes that Python and numpy asked for at the most, beyond what they held before."""

    def resident(self, call: Call) -> float | None:
        """Bytes that the process held at the most, beyond what it held before; ``None`` where nobody can tell."""


@array_value
class Instruments:
    """What measures in one process."""

    runtimes: tuple[Runtime, ...]
    """The host is the last."""
    timers: tuple[Timer, ...]
    """In the order of preference."""
    threads: Callable[[], str]
    """What this process was told of thread pools."""
    affinity: Callable[[], str]
    inspectors: Sequence[Inspector] = ()
    profilers: Sequence[Profiler] = ()
    clocks: Clocks | None = None
    """What watches or locks the clocks of a device while it is measured."""
    leases: Lease | None = None
    contents: Contents | None = None
    """What reads and overwrites arrays, where a call's output is checked."""
    memory: HostMemory | None = None
    """What looks at the host's memory, where a limit asks."""
    queued: Callable[[], int] = int
    """Nanoseconds that this thread has waited for a processor so far, as far as the system tells."""
    energy: Callable[[Device], Callable[[], float | None] | None] | None = None
    """What reads the joules that a device has taken so far; ``None`` of one that does not count them."""
    pools: Callable[[object], str] = _none
    """What libraries that a call uses were told of theirs, whatever else has loaded them."""


@array_value
class GateTools:
    """What judging asks of the world."""

    kinds: Mapping[str, MetricKind]
    spawner: ChildSpawner
    environment: Callable[[], Environment]
    roofed: Callable[[Device], Device]
    """The device with its data sheet and measured ceilings, where they are known."""
    baselines: BaselineStore | None = None
    committed: Callable[[str], bool] = bool
    """Whether a device's baselines belong to the project: then only accepting writes them."""
    records: RecordStore | None = None
    history: HistoryStore | None = None
    repository: Repository | None = None
    confirm: Confirm | None = None
    settings: Callable[[str], Mapping[str, str]] = lambda _revision: {}
    """Settings by their path, of a revision or, without one, of what is here."""
    here: Callable[[], Sequence[str]] = tuple
    """Patterns of the keys that this machine's devices have, asked where nothing was measured on them."""
