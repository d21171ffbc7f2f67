"""Samples, identity, measurement, baseline."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.metric import Figure, Finding, Labels, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.project import FACT, REQUEST
from pytest_perfgate.model.values import Better, Dimension, Work, value

IDLE = "from idle to idle"
"""The note on samples by the host's clock that wait for a device: calls are only batched on request."""


class Stop(str, enum.Enum):
    """Why a timer stopped sampling; a spent budget by itself is never a pass."""

    SETTLED = "noise settled"
    PRECISE = "spread small enough"
    BUDGET = "budget spent"
    COUNT = "asked-for count reached"
    RECORDED = "measured elsewhere"


@value
class Discard:
    """Samples that an instrument rejected."""

    reason: str
    count: int


@value
class Settled:
    """One turn long enough for clock and power to settle under this side's load alone."""

    time: float
    """The median of its samples, nanoseconds per call."""
    watts: float | None = None
    clock_hz: float | None = None


HELPING = 0.05
"""Processors that other threads keep busy, from which on they count as working for the call."""


@value
class Samples:
    """One process: nanoseconds per call, in order, and how they were taken."""

    durations: tuple[float, ...]
    timer: str
    stop: Stop
    batch: int = 1
    """Calls behind each sample; a sample is their mean."""
    overhead: float = 0.0
    """Nanoseconds of an empty measurement, for any batch; subtracted for pairs of events, not for the host's clock."""
    resolution: float = 0.0
    """Nanoseconds that a measurement can distinguish, for any batch."""
    warmups: int = 0
    warmup_ns: float = 0.0
    """The warm-up's length; a device is warm when its clock, its power and the time of a call are stable."""
    launch_gap: float | None = None
    """Host-visible minus device-busy nanoseconds per call."""
    clock_hz: tuple[float, ...] = ()
    watts: float | None = None
    """The median power of the device during sampling; ``None`` if it does not report it."""
    capped: float | None = None
    """The share of sampling in which the power limit held the clock down; ``None`` if not observed."""
    discarded: tuple[Discard, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    """The timer's notes: ``("timer", "events: kernel is 212 us")``."""
    cpu: tuple[float, ...] = ()
    """CPU nanoseconds per call of the calling thread for each sample; empty if not measured."""
    waits: tuple[float, ...] = ()
    """Nanoseconds per call in which the calling thread waited for a processor, if a limit needs a quantile."""
    busy: tuple[float, ...] = ()
    """Nanoseconds per call in which a kernel ran, if the timer records kernels; durations are their span."""
    turns: tuple[int, ...] = ()
    """The number of samples of each turn, if two processes took turns."""
    settled: Settled | None = None
    """A longer turn, if the device was at its power limit."""
    unqueued: float | None = None
    """Mean nanoseconds per call without its threads' waits for a processor; ``None`` if unknown."""
    others: float | None = None
    """Processors that other processes kept busy meanwhile; ``None`` if unknown."""
    blocked: float | None = None
    """Mean nanoseconds per call in which the calling thread neither computed nor queued; ``None`` if unknown."""
    helpers: float | None = None
    """Processors that other threads of this process kept busy meanwhile; ``None`` if unknown."""

    @property
    def threaded(self) -> bool:
        """Return whether other threads worked for the call, such as those of a BLAS or of OpenMP."""
        return self.helpers is not None and self.helpers >= HELPING


@value
class Reference:
    """The time of another call, or of a file, as a reference; a call is timed in turns in the same processes."""

    over: str
    """Its name in a limit: ``over=eager``."""
    ours: tuple[float, ...] = ()
    """Nanoseconds per call of the call itself in those turns, one a process; empty for a file as reference."""
    theirs: tuple[float, ...] = ()
    """Those of the reference, in the same order; for a file its only figure."""
    within: tuple[tuple[float, float], ...] = ()
    """The interval of the ratios of one process's turns, one pair a process."""
    problems: tuple[Problem, ...] = ()
    """Why the two are not comparable."""
    origin: str = ""
    """Which figure of a file this is."""


def _no_listener() -> None:
    """Do nothing: the default listener."""


def _always() -> bool:
    """Return True: without a watch, everything counts as stable."""
    return True


class Sampling:
    """Marks of sampling: odd inside a sampled region, even during warm-up, trials and a first call that compiles."""

    def __init__(self) -> None:
        self.mark = 0
        self.loads = 0
        """The number of warm-ups; readings before the newest one do not show whether a device has settled."""
        self._listener: Callable[[], None] = _no_listener
        self.steady: Callable[[], bool] = _always
        """Returns whether the warming device has settled, as far as it is watched."""

    def tell(self, listener: Callable[[], None] | None) -> Callable[[], None]:
        """Set the function called when a region begins and ends; return the previous one."""
        before, self._listener = self._listener, listener or _no_listener
        return before

    def ask(self, steady: Callable[[], bool] | None) -> Callable[[], bool]:
        """Set the function that returns whether the device has settled; return the previous one."""
        before, self.steady = self.steady, steady or _always
        return before

    @contextmanager
    def region(self) -> Iterator[None]:
        self.mark += 1
        self._listener()
        try:
            yield
        finally:
            self.mark += 1
            self._listener()


SAMPLING = Sampling()
"""Of this process, which measures one call at a time."""


@value
class Reading:
    """One process's values of a figure other than time."""

    name: str
    values: tuple[float, ...]
    dimension: Dimension
    better: Better | None = None
    exact: bool = False
    labels: Labels = ()
    note: str = ""


@value
class Identity:
    """What must agree before two measurements may be compared."""

    device: str
    clocks: str = "off"
    timer: str = "host"
    cache: str = "warm"
    data: str = "user"
    threads: str = ""
    affinity: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    """The test's notes by ``perfgate.note``."""
    calls: str = "1"
    """How many calls one call of the test stands for; times are those of one."""

    def differences(self, other: Identity) -> tuple[tuple[str, str, str], ...]:
        """Return (field, here, there) for all that differs."""
        return tuple(
            (name, str(getattr(self, name)), str(getattr(other, name)))
            for name in _IDENTITY
            if getattr(self, name) != getattr(other, name)
        )

    def text(self) -> str:
        """Return a text, never empty, that is equal for comparable measurements of a device; the history stores it."""
        unusual = self.differences(Identity(device=self.device))
        return ", ".join(f"{name}={here}" for name, here, _ in unusual) or "usual"


_IDENTITY = tuple(field.name for field in fields(Identity))


@value
class Environment:
    """The environment of a run: recorded, shown when a time changed, never part of the identity."""

    python: str = ""
    platform: str = ""
    packages: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Driver, toolkit, governor, load: name and text."""
    commit: str = ""
    dirty: bool = False
    ci: bool = False

    @property
    def lasting(self) -> Environment:
        """The facts that outlast the run, stored with an accepted time to show what changed."""
        facts = tuple((name, text) for name, text in self.facts if name not in _PASSING)
        return Environment(python=self.python, platform=self.platform, packages=self.packages, facts=facts)

    def differences(self, other: Environment) -> tuple[tuple[str, str, str], ...]:
        """Return (name, here, there) for lasting facts that differ; a missing fact reads ``none``."""
        here, there = self._lines(), other._lines()
        names = dict.fromkeys((*here, *there))
        lines = ((name, here.get(name, "none"), there.get(name, "none")) for name in names)
        return tuple((name, own, others) for name, own, others in lines if own != others)

    def _lines(self) -> dict[str, str]:
        lasting = self.lasting
        return dict((*lasting.facts, ("system", self.platform), ("python", self.python), *self.packages))


TREE = "working copy"  # the fact that it changed during the run, before and after
_PASSING = frozenset({"load", FACT, REQUEST, TREE})
"""Facts that change from moment to moment."""


@value
class Artifact:
    """A file of a capture, with what made it."""

    kind: str
    path: str
    parameters: tuple[tuple[str, str], ...] = ()


@value
class Measurement:
    """One case measured: the processes of one run, and all metrics they give."""

    key: CaseKey
    processes: tuple[Samples, ...]
    device: Device
    identity: Identity
    environment: Environment = Environment()
    work: Work | None = None
    metrics: MetricSet = MetricSet()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    """(file, hash) of every module of the package under test, which identify the arm."""
    limits: tuple[str, ...] = ()
    """Limits that the fixture's call added with ``limits=``."""
    references: tuple[Reference, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    """The parameters of its test, by name."""

    def with_metrics(self, metrics: MetricSet) -> Measurement:
        """Return it with other metrics, twice as fast as ``dataclasses.replace``."""
        return Measurement(
            key=self.key,
            processes=self.processes,
            device=self.device,
            identity=self.identity,
            environment=self.environment,
            work=self.work,
            metrics=metrics,
            findings=self.findings,
            problems=self.problems,
            artifacts=self.artifacts,
            modules=self.modules,
            limits=self.limits,
            references=self.references,
            params=self.params,
        )


DIRTY = "+dirty"
"""The suffix of a commit whose tree had changes of its own, so that it cannot be built again."""


def commit_name(commit: str, *, dirty: bool) -> str:
    """Return the measured commit, marked if its tree had changes; "" if unknown."""
    return f"{commit}{DIRTY}" if commit and dirty else commit


def short_commit(commit: str, digits: int = 12) -> str:
    """Return the first digits of a hash, with its mark if it has one."""
    return commit.removesuffix(DIRTY)[:digits] + (DIRTY if commit.endswith(DIRTY) else "")


@value
class Baseline:
    """The accepted values of one case on one device."""

    key: CaseKey
    device: str
    time: float = 0.0
    """Accepted nanoseconds per call; 0 if none is accepted."""
    figures: tuple[Figure, ...] = ()
    """Other accepted figures, sorted by title."""
    scatter: float = 0.0
    """Relative standard deviation between runs; 0 for a single one."""
    runs: int = 1  # that it rests on; 0 where none counts, since the line came with the change under test
    detects: float = 0.0
    """The smallest slowdown that the accepted run could detect; 0 if that was sufficient."""
    processes: int = 0
    """The number of processes of a quick or interrupted accepted run; 0 for a complete one."""
    commit: str = ""
    """The measured commit; it ends in ``+dirty`` if the tree had changes of its own."""
    who: str = ""
    when: str = ""
    """ISO date of the acceptance."""
    why: str = ""
    expires: str = ""
    identity: Identity | None = None
    local: bool = False
    """Whether it is stored under ``.perfgate/`` rather than committed."""
    place: str = ""
    """File and path inside it, for messages."""
    environment: str = ""
    """Digest of the accepted run's environment, as in the line."""
    surroundings: Environment | None = None
    """The environment of the digest, if it is known."""
    limited: bool = False
    """Whether it was accepted at the power limit; times in the other state are only compared by two builds."""
    anchor: float = 0.0
    """Accepted nanoseconds from which the drift of this line is counted; 0 if from its own time."""
    anchored: str = ""
    """ISO date of that acceptance."""
    counted: str = ""
    """When the newest run that was added to the accepted one started; "" if none was added."""

    def figure(self, name: str, labels: Labels) -> Figure | None:
        """Return the accepted value of one metric with exactly this scope."""
        for figure in self.figures:  # a loop, since this runs for each limit of each case
            if figure.name == name and figure.labels == labels:
                return figure
        return None

    @property
    def drift_from_anchor(self) -> float:
        """How far accepted steps took the line from where its drift is counted, as a fraction."""
        return self.time / self.anchor - 1 if self.anchor else 0.0

    def explains(self, before: Baseline | None) -> bool:
        """Return whether it has a new reason; that of an earlier day, as in a revert, explains nothing new."""
        old = before and ((self.why, self.when) == (before.why, before.when) or "" < self.when < before.when)
        return not old and self.why.strip() != ""


@value
class HistoryEntry:
    """One entry of the history: a case measured at one time."""

    key: CaseKey
    device: str
    time: float
    when: str
    commit: str = ""
    branch: str = ""
    """The target branch of the pull request that was measured; "" for any other run."""
    processes: int = 1
    scatter: float = 0.0
    clock_hz: float | None = None
    identity: str = ""
    """How it was measured; "" in entries of an earlier version."""
    run: str = ""
    """The run that measured it, with one entry for each case; "" is identified by time and commit."""
    outcome: str = ""
    """The worst verdict of the case in that run."""
    host: str = ""
    card: str = ""
    """UUID of the device, if it has one."""
    facts: tuple[tuple[str, str], ...] = ()
    """Facts of the environment: driver, packages, governor."""
    metrics: tuple[Metric, ...] = ()
    """All figures, if they were requested."""
