"""Samples, identity, measurement, baseline."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.metric import Figure, Finding, Labels, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.project import FACT
from pytest_perfgate.model.values import Better, Dimension, Work, value

IDLE = "from idle to idle"
"""The note of samples by the host's clock that wait for a device: calls are put together only where asked for."""


class Stop(str, enum.Enum):
    """Why a timer stopped sampling; a spent budget is never a pass by itself."""

    SETTLED = "noise settled"
    PRECISE = "spread small enough"
    BUDGET = "budget spent"
    COUNT = "asked-for count reached"
    RECORDED = "measured elsewhere"
    SINGLE = "called once"


@value
class Discard:
    """Samples thrown away because an instrument said so."""

    reason: str
    count: int


@value
class Settled:
    """One turn that was long enough for clock and power to settle under this side's load alone."""

    time: float
    """The middle of its samples, nanoseconds per call."""
    watts: float | None = None
    clock_hz: float | None = None


@value
class Samples:
    """One process: nanoseconds per call, in order, and how they came about."""

    durations: tuple[float, ...]
    timer: str
    stop: Stop
    batch: int = 1
    """Calls behind each sample; a sample is their mean."""
    overhead: float = 0.0
    """Nanoseconds that timing takes, whatever the batch: of a pair of events taken off, of the host's clock not."""
    resolution: float = 0.0
    """Nanoseconds that a measurement can tell apart, whatever its batch."""
    warmups: int = 0
    warmup_ns: float = 0.0
    """What warming up took; a device is warm when its clock, its power and the time of a call hold still."""
    launch_gap: float | None = None
    """Host-visible minus device-busy nanoseconds per call."""
    cycles: tuple[float, ...] = ()
    clock_hz: tuple[float, ...] = ()
    watts: float | None = None
    """What the device drew while samples were taken, the middle of the looks; ``None`` where it does not tell."""
    capped: float | None = None
    """The share of the sampling in which the power limit held the clock down; ``None`` where nobody looked."""
    discarded: tuple[Discard, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    """What the timer wants said: ``("timer", "events: kernel is 212 us")``."""
    cpu: tuple[float, ...] = ()
    """CPU nanoseconds per call of the calling thread, beside each sample; empty where nobody looked."""
    waits: tuple[float, ...] = ()
    """Nanoseconds per call in which the calling thread waited for a processor, where a quantile was asked for."""
    busy: tuple[float, ...] = ()
    """Nanoseconds per call in which a kernel ran, where the instrument sees kernels; durations are their span."""
    turns: tuple[int, ...] = ()
    """How many samples each turn gave, where two processes took turns."""
    settled: Settled | None = None
    """A longer turn beside them, where the device was at its power limit."""
    unqueued: float | None = None
    """Mean nanoseconds per call, less those in which its threads waited for a processor; ``None``: nobody can tell."""
    others: float | None = None
    """Processors that other processes kept busy meanwhile; ``None`` where the system does not tell."""
    blocked: float | None = None
    """Mean nanoseconds per call in which the calling thread neither computed nor queued; ``None``: nobody can tell."""


@value
class Reference:
    """What another call, or a file, took beside a call; of a call, in turns with it in the same processes."""

    over: str
    """Its name, as a limit writes it: ``over=eager``."""
    ours: tuple[float, ...] = ()
    """Nanoseconds per call of the call itself in those turns, one a process; none where a file is the reference."""
    theirs: tuple[float, ...] = ()
    """Those of the reference, in the same order; of a file the one figure that it has."""
    within: tuple[tuple[float, float], ...] = ()
    """Between what the ratios of the turns of one process lie, one pair a process."""
    problems: tuple[Problem, ...] = ()
    """Why the two cannot be compared."""
    origin: str = ""
    """Of a file, which of its figures this is."""


def _no_listener() -> None:
    """Is told."""


def _always() -> bool:
    """What nobody watches holds still."""
    return True


class Sampling:
    """Odd marks are inside of a sampled region; warming up, trials and a first call that compiles are outside."""

    def __init__(self) -> None:
        self.mark = 0
        self.loads = 0
        """Warm-ups so far: what a device did before the newest says nothing of whether it has settled."""
        self._listener: Callable[[], None] = _no_listener
        self.steady: Callable[[], bool] = _always
        """Whether the device that is being warmed up has settled, as far as somebody watches it."""

    def tell(self, listener: Callable[[], None] | None) -> Callable[[], None]:
        """Whom to call when a region begins and when it ends; returned is who was called before."""
        before, self._listener = self._listener, listener or _no_listener
        return before

    def ask(self, steady: Callable[[], bool] | None) -> Callable[[], bool]:
        """Whom to ask whether the device has settled; returned is who was asked before."""
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
"""Of this process: it measures one call at a time."""


@value
class Reading:
    """What one process says of a figure beside time."""

    name: str
    values: tuple[float, ...]
    dimension: Dimension
    better: Better | None = None
    exact: bool = False
    labels: Labels = ()
    note: str = ""


@value
class Identity:
    """What must agree before two measurements may be compared at all."""

    device: str
    clocks: str = "off"
    timer: str = "host"
    cache: str = "warm"
    data: str = "user"
    threads: str = ""
    affinity: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    """What the test said with ``perfgate.note``."""
    calls: str = "1"
    """How many calls one call of the test stood for: times are those of one."""

    def differences(self, other: Identity) -> tuple[tuple[str, str, str], ...]:
        """(field, here, there) for all that differs."""
        return tuple(
            (name, str(getattr(self, name)), str(getattr(other, name)))
            for name in _IDENTITY
            if getattr(self, name) != getattr(other, name)
        )

    def text(self) -> str:
        """Equal for two of one device that may be compared, and never empty: what the history keeps beside a time."""
        unusual = self.differences(Identity(device=self.device))
        return ", ".join(f"{name}={here}" for name, here, _ in unusual) or "usual"


_IDENTITY = tuple(field.name for field in fields(Identity))


@value
class Environment:
    """Recorded, shown when something moved, never part of the identity."""

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
        """What outlives the run: kept beside an accepted time, to say what moved."""
        facts = tuple((name, text) for name, text in self.facts if name not in _PASSING)
        return Environment(python=self.python, platform=self.platform, packages=self.packages, facts=facts)

    def differences(self, other: Environment) -> tuple[tuple[str, str, str], ...]:
        """(name, here, there) for all that lasts and differs; what one side does not have reads ``none``."""
        here, there = self._lines(), other._lines()
        names = dict.fromkeys((*here, *there))
        apart = ((name, here.get(name, "none"), there.get(name, "none")) for name in names)
        return tuple((name, mine, theirs) for name, mine, theirs in apart if mine != theirs)

    def _lines(self) -> dict[str, str]:
        lasting = self.lasting
        return dict((*lasting.facts, ("system", self.platform), ("python", self.python), *self.packages))


_PASSING = frozenset({"load", FACT})
"""Facts of the moment."""


@value
class Artifact:
    """A file that a capture left, with what made it."""

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
    """(file, hash) of every module of the package under test: the proof of the arm."""
    limits: tuple[str, ...] = ()
    """What the fixture's call added with ``limits=``."""
    references: tuple[Reference, ...] = ()
    """What it was timed beside."""
    params: tuple[tuple[str, str], ...] = ()
    """The parameters of its test, by name."""

    def with_metrics(self, metrics: MetricSet) -> Measurement:
        """The same with other metrics, as ``dataclasses.replace`` gives it at four times the cost."""
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
"""Ends the name of a commit whose tree had changes of its own: nobody can build that again."""


def commit_name(commit: str, *, dirty: bool) -> str:
    """The commit that was measured, marked where its tree had changes; empty where none is known."""
    return f"{commit}{DIRTY}" if commit and dirty else commit


def short_commit(commit: str, digits: int = 12) -> str:
    """The first digits of a hash, with the mark that it may carry."""
    return commit.removesuffix(DIRTY)[:digits] + (DIRTY if commit.endswith(DIRTY) else "")


@value
class Baseline:
    """What was accepted for one case on one device."""

    key: CaseKey
    device: str
    time: float = 0.0
    """Accepted nanoseconds per call; 0 where none is accepted."""
    figures: tuple[Figure, ...] = ()
    """What else is accepted, sorted by title."""
    scatter: float = 0.0
    """Relative standard deviation between runs; 0 while there is one."""
    sittings: int = 1
    blind: float = 0.0
    """The smallest slowdown that the accepted run could have told from its own noise; 0 where it saw enough."""
    processes: int = 0
    """How many measured the accepted run, where a quick or an interrupted run took it; 0 for a whole one."""
    commit: str = ""
    """What was measured; it ends in ``+dirty`` where the tree had changes of its own."""
    who: str = ""
    when: str = ""
    """ISO date of the acceptance."""
    why: str = ""
    expires: str = ""
    identity: Identity | None = None
    local: bool = False
    """Kept under ``.perfgate/`` rather than committed."""
    place: str = ""
    """File and path inside it, for messages."""
    environment: str = ""
    """Digest of what surrounded the accepted run, as the line has it."""
    surroundings: Environment | None = None
    """What the digest stands for, where it is known."""
    limited: bool = False
    """Accepted at the device's power limit: a time that was not is held against it by two builds alone."""
    anchor: float = 0.0
    """Accepted nanoseconds of before, from which the drift of this line is counted; 0 where it begins with itself."""
    anchored: str = ""
    """ISO date of that acceptance."""
    counted: str = ""
    """When the newest run started that was added to the accepted one; empty while none was."""

    def figure(self, name: str, labels: Labels) -> Figure | None:
        """The accepted value of one metric with this very scope."""
        for one in self.figures:  # a loop, since this is asked for each limit of each case
            if one.name == name and one.labels == labels:
                return one
        return None

    @property
    def drift_from_anchor(self) -> float:
        """How far accepted steps took the line from where its drift is counted, as a fraction."""
        return self.time / self.anchor - 1 if self.anchor else 0.0

    def explains(self, before: Baseline | None) -> bool:
        """Whether it has a reason of its own: one left from the acceptance before explains nothing new."""
        return bool(self.why.strip()) and not (before and (self.why, self.when) == (before.why, before.when))


@value
class Sitting:
    """One line of the history: a case measured at one time."""

    key: CaseKey
    device: str
    time: float
    when: str
    commit: str = ""
    branch: str = ""
    processes: int = 1
    scatter: float = 0.0
    clock_hz: float | None = None
    identity: str = ""
    """How it was measured; empty where an earlier version kept it."""
    run: str = ""
    """Names the run that measured it: one of each case; empty stands for its moment and its commit."""
    outcome: str = ""
    """The worst verdict of the case in that run."""
    host: str = ""
    card: str = ""
    """UUID of the device, where it has one."""
    facts: tuple[tuple[str, str], ...] = ()
    """What surrounded it: driver, packages, governor."""
    metrics: tuple[Metric, ...] = ()
    """All figures, where they were asked for."""
