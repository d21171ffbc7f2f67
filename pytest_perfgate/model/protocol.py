"""Messages between parent and child, and the specification of a child."""

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
    """How a child is started: interpreter, environment, launcher."""

    argv: tuple[str, ...]
    """Arguments for pytest."""
    python: tuple[str, ...]
    """The interpreter and its flags."""
    cwd: Path
    env: tuple[tuple[str, str], ...]
    """The whole environment except the channel's own variable."""
    prefix: tuple[str, ...] = ()
    """A launcher or a profiler before the command."""
    cpus: tuple[int, ...] = ()  # cores it is pinned to; none leaves it free
    label: str = "child"


@value
class ChildJob:
    """Parent: the cases to run, in this order, and facts of the parent's session."""

    cases: tuple[Case, ...]
    argv: tuple[str, ...] = ()  # the words of the parent's command line
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts."""
    markers: tuple[str, ...] = ()
    """Registered markers, including those of plugins that a child does not load."""
    out: str = ""  # folder for the files of captures
    cpus: tuple[int, ...] = ()  # cores that the child keeps to once it has collected; none leaves it free
    modules: tuple[str, ...] = ()  # top-level names of the package under test, to check where they were loaded from
    list_loaded: bool = False
    """Whether the child of an arm reports at its end what else it loaded from below the root."""
    files: tuple[tuple[str, str], ...] = ()
    """Test files, by their path from the root, that are collected with another text than the disk's."""
    root: str = ""  # the project's own folder; an arm has another one, without this checkout's ceilings
    preload: bool = False
    """Whether the child waits after it has collected, and is forked for each round."""
    start: str = ""  # how it was started, for its samples; "" for a plain fresh interpreter


@value
class Go:
    """Parent: run the test you are ready for."""


@value
class Skip:
    """Parent: leave that test out."""


@value
class Measure:
    """Parent: take samples of the current call under this plan; any number of times."""

    plan: Plan


@value
class Finish:
    """Parent: finish this call and go on with the test."""

    references: bool = False
    """Whether to time it in turns with the references of its limits."""


@value
class Fork:
    """Parent, to a preload: fork a child of one round, which connects to this address and writes into this file."""

    address: str
    output: str
    mark: str


@value
class Reap:
    """Parent, to a preload: return whether this fork has ended."""

    pid: int


@value
class Hello:
    """Child: the token that proves it is ours."""

    token: str


@value
class Collected:
    """Child: which of the requested tests it found, and errors of the collection."""

    nodeids: tuple[str, ...]
    errors: tuple[str, ...] = ()
    untouched: bool = False
    """Whether it has certainly not used a device yet."""


@value
class Forked:
    """Preload: the fork that will connect, or why there is none."""

    pid: int = 0
    why: str = ""


@value
class Reaped:
    """Preload: the exit code of a fork as in subprocess; None while it runs."""

    code: int | None = None


@value
class Ready:
    """Child: about to set this test up."""

    nodeid: str


@value
class Entered:
    """Child: the test has called ``perfgate(fn)``."""

    key: CaseKey
    samples: int = 0
    """The least number of samples for the call."""
    figures: tuple[str, ...] = ()
    """Figures other than the median time that its own limits need."""


@value
class Waits:
    """Child: it lives, and waits for something that another process has."""

    text: str


@value
class Taken:
    """Child: the samples of one ``Measure``."""

    key: CaseKey
    samples: Samples


@value
class Capture:
    """Everything that one child knows about one key."""

    key: CaseKey
    samples: tuple[Samples, ...]
    """One for every ``Measure``, or those that the test took itself."""
    device: Device
    identity: Identity
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings of an artifact's analysis."""
    problems: tuple[Problem, ...] = ()
    readings: tuple[Reading, ...] = ()
    """Figures other than time, as this process took them."""
    references: tuple[Reference, ...] = ()
    """The references that it was timed with in this process."""


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
    """Calls and regions that raised although the test caught it: ``(key, "call raised ValueError: odd")``."""


@value
class Bye:
    """Child: nothing left to run; the files it has loaded, to check the arm."""

    modules: tuple[tuple[str, str], ...] = ()
    loaded: tuple[tuple[str, str], ...] = ()
    """Other modules below the root, tests and what lies beside them: (path from the root, hash)."""


Command = Union[ChildJob, Go, Skip, Measure, Finish, Fork, Reap]

Answer = Union[Hello, Collected, Ready, Entered, Waits, Taken, Finished, Bye, Forked, Reaped]


class Child(Protocol):
    """A running child, seen from its parent."""

    label: str

    def send(self, command: Command) -> None: ...

    def receive(self, timeout_s: float) -> Answer:
        """Return the next answer; raise ``child-crashed``, ``child-hung`` or ``child-garbled`` if there is none."""

    def close(self) -> None:
        """End it and everything it started; safe to repeat."""

    def tail(self) -> str:
        """Return the last lines it printed."""


@runtime_checkable
class SupportsFork(Protocol):
    """A child that waits, and is forked."""

    def fork(self) -> Child:
        """Return a fork with all that this child imported; raise ``child-start`` if it must not be forked."""


class ChildSpawner(Protocol):
    """Starts children."""

    def spawn(self, spec: ChildSpec) -> Child: ...


class Parent(Protocol):
    """The parent, seen from its child."""

    def send(self, answer: Answer) -> None: ...

    def receive(self) -> Command: ...


@value
class CaseResult:
    """The results of all rounds of one case, before judging."""

    case: Case
    captures: tuple[tuple[Capture, ...], ...] = ()
    """One entry for each finished round."""
    trouble: tuple[str, ...] = ()
    """Why a round did not finish, one sentence each."""
    outcome: str = "passed"
    """How a test that did not pass ended: skipped, xfailed, failed, crashed.

    ``died`` if the body itself ended its child: it is never run again.
    """
    seconds: float = 0.0  # of a round, the mean
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """Calls and regions that raised although the test caught it, each once."""


@value
class Fault:
    """The error of one test, sent to the worker that runs it."""

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
"""All captures: ``capture=``, ``--perfgate-capture`` and ``perfgate profile --mode``."""

IN_PROCESS = frozenset({"torch", "cupti"})
"""Captures that need no launcher around the process, and so can be taken while a test is timed."""

STATIC = "cubin"
"""The capture of machine code from a test, which needs neither a device nor a clock."""

RECORD = "record"
"""The timer name of numbers that a test recorded."""

OWN = "metric"
"""The timer name of the user's own figures, if the test timed nothing."""

TIMED = "event"
"""The capture that is the timing itself."""

WAITED = "waited"  # the outcome of a test whose first round the budget did not reach

READ = "read"
"""The timer name of figures in a file that a test read."""

START, FORK = "start", "fork of preload "
"""The note on how a process was started, and its prefix for a fork, before the number of its preload."""

VARIABLE = "PERFGATE_PROFILE"
"""The variable that tells a child which profiler to enter around the region, and where its folder is."""

LOG, TOLD, FIRST_FAILURE = "profiler.log", "child.json", "first_failure"
"""Files in the folder of a profile: the child's output, and its result; the fact that says why its warm-up failed."""


def external(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the captures that are taken in a run of their own, after the timing."""
    return tuple(dict.fromkeys(name for name in names if name not in {TIMED, STATIC}))


def code_alone(captures: Sequence[Capture]) -> bool:
    """Return whether a test only gave machine code, which is the same in every process, so that one is enough."""
    return bool(captures) and all(capture.identity.timer == STATIC for capture in captures)


def read_alone(captures: Sequence[Capture]) -> bool:
    """Return whether a test only gave machine code or files, of which a single process is enough."""
    without_samples = (capture.identity.timer in {STATIC, READ} and not capture.readings for capture in captures)
    return bool(captures) and all(without_samples)


@value
class Assignment:
    """The instructions for a profiled child."""

    mode: str
    out: str
    call: str | None = None
    """The name of the only call to watch; "" for every one."""
    clocks: str = ""
    """The clock policy of the command line; "" for that of the test's own plan."""
    options: tuple[tuple[str, str], ...] = ()
    """The user's own options as JSON texts, if they are not on the child's command line."""
    markers: tuple[str, ...] = ()
    plain: bool = False
    """Whether the child runs without the plugins that select, repeat and report."""

    def text(self) -> str:
        return json.dumps(asdict(self))


def parse_assignment(text: str) -> Assignment:
    """Return the assignment that ``Assignment.text`` wrote."""
    fields: dict[str, Any] = json.loads(text)
    fields["options"] = tuple((str(name), str(option)) for name, option in fields["options"])
    fields["markers"] = tuple(fields["markers"])
    return Assignment(**fields)


@value
class ProfilingResult:
    """The result that a profiled child writes when its test is over."""

    outcome: str = ""
    """passed, failed or skipped; "" if it did not end."""
    text: str = ""
    error: tuple[str, str, str] = ("", "", "")
    """(code, what, fix) of an error of ours that ended the test."""
    entered: int = 0
    """How often the profiled region was entered."""
    calls: tuple[str, ...] = ()
    """Names of the calls that the test made."""
    facts: tuple[tuple[str, Any], ...] = ()
    """Conditions of the profile: device, parameters, dtype, clocks, notes."""


def parse_profiling_result(result: dict[str, Any]) -> ProfilingResult:
    """Return the result that a child wrote as JSON."""
    code, what, fix = (*result.get("error", ()), "", "", "")[:3]
    return ProfilingResult(
        outcome=str(result.get("outcome", "")),
        text=str(result.get("text", "")),
        error=(str(code), str(what), str(fix)),
        entered=int(result.get("entered", 0)),
        calls=tuple(result.get("calls", ())),
        facts=tuple((name, fact) for name, fact in result.get("facts", ())),
    )
