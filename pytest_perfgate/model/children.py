"""What a parent and a measuring child say to each other, and what a child is started with.

The child runs the tests it was given in order and asks before each; inside a test it stops at
every ``perfgate(fn)`` and measures on command, as often as the parent likes. So one protocol
serves screening, arms in lock-step (two children, one short ``Measure`` each in turn) and captures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Union

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError, restored
from pytest_perfgate.model.measurement import Artifact, Identity
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.samples import Samples
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work


@value
class ChildSpec:
    """How a child is started: its interpreter, its environment, what stands before it."""

    argv: tuple[str, ...]
    """Arguments for pytest."""
    python: tuple[str, ...]
    """The interpreter and its flags."""
    cwd: Path
    env: tuple[tuple[str, str], ...]
    """The whole environment but the channel's own variable."""
    prefix: tuple[str, ...] = ()
    """A launcher or a profiler in front of the command."""
    cpus: tuple[int, ...] = ()
    """Cores it is pinned to; none leaves it free."""
    label: str = "child"


@value
class Job:
    """Parent: the cases to run, in this order, and what the parent's session knows."""

    cases: tuple[Case, ...]
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts."""
    markers: tuple[str, ...] = ()
    """Registered markers: those of plugins that a child does not load."""
    capture: str = ""
    """The capture to enter around regions, by name."""
    out: str = ""
    """Folder for what captures leave."""
    cpus: tuple[int, ...] = ()
    """Cores that the child keeps to once it has collected; none leaves it free."""
    modules: tuple[str, ...] = ()
    """Top-level names of the package under test: the child proves where it loaded them from."""
    beside: bool = False
    """Whether the child of an arm says at its end what else it loaded from below the root."""
    files: tuple[tuple[str, str], ...] = ()
    """Test files, by their path from the root, that are collected with another text than the disk's."""


@value
class Go:
    """Parent: run the test you are ready for."""


@value
class Skip:
    """Parent: leave that test out."""


@value
class Measure:
    """Parent: take samples of the call you stand in, under this plan; any number of times."""

    plan: Plan


@value
class Finish:
    """Parent: enough of this call; go on with the test."""


@value
class Hello:
    """Child: the proof that it is ours, and who it is."""

    token: str
    pid: int
    python: str = ""


@value
class Collected:
    """Child: which of the asked-for tests it found, and what collection complained of."""

    found: tuple[str, ...]
    errors: tuple[str, ...] = ()


@value
class Ready:
    """Child: about to set this test up."""

    nodeid: str


@value
class Entered:
    """Child: the test stands in ``perfgate(fn)``."""

    key: CaseKey
    samples: int = 0
    """Samples that the call asks for at least."""


@value
class Waits:
    """Child: it lives, and waits for what another process has."""

    text: str


@value
class Taken:
    """Child: the samples of one ``Measure``."""

    key: CaseKey
    samples: Samples


@value
class Capture:
    """All that one child knows about one key."""

    key: CaseKey
    samples: tuple[Samples, ...]
    """One for every ``Measure``, or those that the test brought along."""
    device: Device
    identity: Identity
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What the analysis of an artifact saw."""
    problems: tuple[Problem, ...] = ()


@value
class Finished:
    """Child: the test is over."""

    nodeid: str
    outcome: str
    """passed, failed, skipped or xfailed."""
    text: str = ""
    captures: tuple[Capture, ...] = ()
    seconds: float = 0.0
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """Calls and regions that raised while the test caught it: ``(key, "call raised ValueError: odd")``."""


@value
class Bye:
    """Child: nothing left to run; the files it had loaded, as proof of the arm."""

    modules: tuple[tuple[str, str], ...] = ()
    beside: tuple[tuple[str, str], ...] = ()
    """Other modules below the root, tests and what lies beside them: (path from the root, hash)."""


Command = Union[Job, Go, Skip, Measure, Finish]
Answer = Union[Hello, Collected, Ready, Entered, Waits, Taken, Finished, Bye]


class Child(Protocol):
    """A running child, seen from its parent."""

    label: str

    def send(self, command: Command) -> None: ...

    def receive(self, timeout_s: float) -> Answer:
        """The next answer; ``child-crashed``, ``child-hung`` or ``child-garbled`` where none comes."""

    def close(self) -> None:
        """Ends it and everything it started; safe to repeat."""

    def tail(self) -> str:
        """The last lines it printed."""


class Nursery(Protocol):
    """Starts children."""

    def spawn(self, spec: ChildSpec) -> Child: ...


class Parent(Protocol):
    """The parent, seen from its child."""

    def send(self, answer: Answer) -> None: ...

    def receive(self) -> Command: ...


@value
class CaseResult:
    """What all rounds of one case came to, before anything was judged."""

    case: Case
    captures: tuple[tuple[Capture, ...], ...] = ()
    """One entry a round that finished."""
    trouble: tuple[str, ...] = ()
    """Why a round did not finish, one sentence each."""
    outcome: str = "passed"
    """How the test itself ended where it did not pass: skipped, xfailed, failed, crashed.

    ``died`` where the body itself ended its child: it is never run again.
    """
    seconds: float = 0.0
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """Calls and regions that raised while the test caught it, each once."""


@value
class Fault:
    """What is wrong with one test, on its way to the worker that runs it."""

    nodeid: str
    code: str
    what: str
    why: str = ""
    mend: str = ""
    place: str = ""

    @classmethod
    def of(cls, nodeid: str, error: PerfgateError) -> Fault:
        return cls(
            nodeid=nodeid, code=error.code.name, what=error.what, why=error.why, mend=error.mend, place=error.place
        )

    def error(self) -> PerfgateError:
        return restored(self.code, self.what, self.why, self.mend, self.place)
