"""Messages between parent and child, child specification."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, Union, runtime_checkable

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError, restored
from pytest_perfgate.model.measurement import Artifact, Identity, Reading, Reference, Samples
from pytest_perfgate.model.metric import Finding, MetricSet, Problem
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.values import Work, value


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
    cpus: tuple[int, ...] = ()  # cores it is pinned to; none leaves it free
    label: str = "child"


@value
class Job:
    """Parent: the cases to run, in this order, and what the parent's session knows."""

    cases: tuple[Case, ...]
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts."""
    markers: tuple[str, ...] = ()
    """Registered markers: those of plugins that a child does not load."""
    capture: str = ""  # the one to enter around regions, by name
    out: str = ""  # folder for what captures leave
    cpus: tuple[int, ...] = ()  # cores that the child keeps to once it has collected; none leaves it free
    modules: tuple[str, ...] = ()  # top-level names of the package under test, to prove where they were loaded from
    beside: bool = False
    """Whether the child of an arm says at its end what else it loaded from below the root."""
    files: tuple[tuple[str, str], ...] = ()
    """Test files, by their path from the root, that are collected with another text than the disk's."""
    root: str = ""  # the project's own folder: an arm has another one, without the ceilings that this checkout keeps
    preload: bool = False
    """Whether the child waits once it has collected, and is forked for each round."""
    start: str = (
        ""  # how it was started, as its samples tell; empty for a fresh interpreter where nothing else was asked
    )


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

    references: bool = False
    """Whether to time it in turns with what its limits name as a reference."""


@value
class Fork:
    """Parent, to a preload: fork a child of one round, which calls at this address and writes into this file."""

    address: str
    output: str
    mark: str


@value
class Reap:
    """Parent, to a preload: whether this fork has ended."""

    pid: int


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
    untouched: bool = False
    """Whether it is seen to have given no device anything to do yet."""


@value
class Forked:
    """Preload: the fork that will call, or why there is none."""

    pid: int = 0
    why: str = ""


@value
class Reaped:
    """Preload: how a fork ended, as subprocess has it; nothing while it runs."""

    code: int | None = None


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
    figures: tuple[str, ...] = ()
    """What its own limits ask for beside the middle of its time."""


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
    readings: tuple[Reading, ...] = ()
    """Figures beside time, as this process took them."""
    references: tuple[Reference, ...] = ()
    """What it was timed beside, in this process."""


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


Command = Union[Job, Go, Skip, Measure, Finish, Fork, Reap]

Answer = Union[Hello, Collected, Ready, Entered, Waits, Taken, Finished, Bye, Forked, Reaped]


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


@runtime_checkable
class SupportsFork(Protocol):
    """A child that waits, and is forked."""

    def fork(self) -> Child:
        """A child of its own, with all that this one imported; ``child-start`` where it must not be forked, and why."""


class ChildSpawner(Protocol):
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
    fix: str = ""
    place: str = ""

    @classmethod
    def of(cls, nodeid: str, error: PerfgateError) -> Fault:
        return cls(
            nodeid=nodeid, code=error.code.name, what=error.what, why=error.why, fix=error.fix, place=error.place
        )

    def error(self) -> PerfgateError:
        return restored(self.code, self.what, self.why, self.fix, self.place)


CAPTURES = ("event", "annotation", "ncu", "nsys", "torch", "cupti", "cubin")
"""The one list of captures: ``capture=``, ``--perfgate-capture`` and ``perfgate profile --mode``."""

IN_PROCESS = frozenset({"torch", "cupti"})
"""Captures that need no launcher around the process, and so can stand beside the timing of a test."""

STATIC = "cubin"
"""The capture of machine code that a test hands over: it needs neither a device nor a clock."""

RECORD = "record"
"""What numbers that a test brought have in place of a timer."""

OWN = "metric"
"""What figures of the user's own have in place of a timer, where the test timed nothing."""

TIMED = "event"
"""The capture that is the timing itself."""

READ = "read"
"""What figures of a file that a test read have in place of a timer."""

START, FORK = "start", "fork of preload "
"""The note of a process on how it was started; what that begins with for a fork, before the number of its preload."""

VARIABLE = "PERFGATE_PROFILE"
"""Tells a child which instrument to enter around the region, and where its folder is."""

LOG, TOLD = "profiler.log", "child.json"
"""Files in the folder of a profile: what the child printed, and what it says of itself."""


def external(names: tuple[str, ...]) -> tuple[str, ...]:
    """The captures that are taken in a run of their own, after the timing."""
    return tuple(dict.fromkeys(name for name in names if name not in {TIMED, STATIC}))


def code_alone(captures: Sequence[Capture]) -> bool:
    """Whether a test brought machine code and nothing else: it is the same in every process, so one has read it all."""
    return bool(captures) and all(capture.identity.timer == STATIC for capture in captures)


def read_alone(captures: Sequence[Capture]) -> bool:
    """Whether a test brought machine code or files and nothing else: of several processes the last one would stand."""
    bare = (one.identity.timer in {STATIC, READ} and not one.readings for one in captures)
    return bool(captures) and all(bare)


@value
class Assignment:
    """What a profiled child is told."""

    mode: str
    out: str
    call: str | None = None
    """The name of the one call to watch; none watches every one."""
    clocks: str = ""
    """The policy of the command line; empty leaves it to the test's own plan."""
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts, where the child was not given them on its command line."""
    markers: tuple[str, ...] = ()
    bare: bool = False
    """Whether the child runs without the plugins that select, repeat and report."""

    def text(self) -> str:
        return json.dumps(asdict(self))


def parse_assignment(text: str) -> Assignment:
    """What ``Assignment.text`` wrote."""
    fields: dict[str, Any] = json.loads(text)
    fields["options"] = tuple((str(name), str(option)) for name, option in fields["options"])
    fields["markers"] = tuple(fields["markers"])
    return Assignment(**fields)


@value
class ProfilingResult:
    """What a profiled child says of itself when its test is over."""

    outcome: str = ""
    """passed, failed or skipped; empty when it never came to an end."""
    text: str = ""
    error: tuple[str, str, str] = ("", "", "")
    """(code, what, fix) of an error of ours that ended the test."""
    entered: int = 0
    """How often the instrument was entered."""
    seen: tuple[str, ...] = ()
    """Names of the calls that the test made."""
    facts: tuple[tuple[str, Any], ...] = ()
    """Device, parameters, dtype, clocks, notes: what the profile was taken with."""


def parse_profiling_result(held: dict[str, Any]) -> ProfilingResult:
    """What a child wrote as JSON."""
    code, what, fix = (*held.get("error", ()), "", "", "")[:3]
    return ProfilingResult(
        outcome=str(held.get("outcome", "")),
        text=str(held.get("text", "")),
        error=(str(code), str(what), str(fix)),
        entered=int(held.get("entered", 0)),
        seen=tuple(held.get("seen", ())),
        facts=tuple((name, fact) for name, fact in held.get("facts", ())),
    )
