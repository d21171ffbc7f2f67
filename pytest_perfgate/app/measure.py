"""Measuring cases in child processes, round by round."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_perfgate.app.instrument import at_least, has_uuid
from pytest_perfgate.app.passes import one_by_one
from pytest_perfgate.app.spread import Start, WaitingChildren
from pytest_perfgate.core.judge.metrics import timed_metrics, timing
from pytest_perfgate.core.judge.readings import figures_of, over_processes
from pytest_perfgate.core.render.words import detectable, plural, short_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.metric import Labels, MetricSet, Problem
from pytest_perfgate.model.protocol import (
    READ,
    Bye,
    Capture,
    CaseResult,
    Child,
    ChildJob,
    ChildSpawner,
    ChildSpec,
    Collected,
    Entered,
    Finish,
    Finished,
    Go,
    Measure,
    Ready,
    Skip,
    Taken,
    Waits,
    read_alone,
)
from pytest_perfgate.model.values import array_value, value
from pytest_perfgate.model.verdict import CaseReport, RunReport

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case, CaseKey
    from pytest_perfgate.model.ports import GateTools

    Progress = Callable[[int, Case, Finished], None]

FATAL = ("child-crashed", "child-hung")
"""Errors in which a test breaks its process, so that no other process should run it."""


@array_value
class ChildSettings:
    """The settings of a measuring run, apart from its cases."""

    spawner: ChildSpawner
    spec: Callable[[Sequence[Case]], ChildSpec]
    job: ChildJob
    """The job without its cases."""
    timeout_s: float
    progress: Progress
    clock: Callable[[], float]
    tell: Callable[[str], None] = lambda text: None  # noqa: ARG005 - the default tells nobody
    earlier_timers: Mapping[str, str] = field(default_factory=dict)
    """Timers with which calls were accepted, by key."""
    early: bool = False
    """Whether cores are free to start the next round's process while this one measures on a device."""


class Rounds:
    """The results so far; an interrupt keeps them."""

    def __init__(self, cases: Sequence[Case], settings: ChildSettings) -> None:
        self._settings = settings
        self._cases = {case.nodeid: case for case in cases}
        self._captures: dict[str, list[tuple[Capture, ...]]] = {case.nodeid: [] for case in cases}
        self._trouble: dict[str, list[str]] = {case.nodeid: [] for case in cases}
        self._outcome: dict[str, str] = {}
        self._seconds: dict[str, list[float]] = {case.nodeid: [] for case in cases}
        self._raised: dict[str, dict[CaseKey, str]] = {}
        self._telling = threading.Lock()
        self._children: set[Child] = set()
        self._next = WaitingChildren(settings.spawner)
        self._stopped = False

    @property
    def most(self) -> int:
        return max((case.plan.rounds for case in self._cases.values()), default=0)

    def round(self, number: int, cases: Iterable[Case], env: Mapping[str, str] | None = None) -> None:
        """Run those of these cases that need this round in a child; if it dies, a new one runs all but its case.

        Several threads may run rounds at once, each with cases of its own.
        """
        for group in one_child_each(self._remaining(number, cases)):
            remaining = group
            while remaining and not self._stopped:
                remaining = self._run_round(number, remaining, env or {})

    def close(self) -> None:
        """End the process that waits for a round that does not come."""
        self._next.take(())

    def _remaining(self, number: int, cases: Iterable[Case]) -> list[Case]:
        """Return the cases that need this round."""
        done = {nodeid for nodeid, captures in self._captures.items() if captures and read_alone(captures[-1])}
        return [c for c in cases if number < c.plan.rounds and c.nodeid not in done and c.nodeid not in self._outcome]

    def give_up(self, nodeid: str, why: str) -> None:
        """Record that a case cannot be measured, and why."""
        self._trouble[nodeid].append(why)
        self._outcome[nodeid] = "crashed"

    def kind(self, nodeid: str) -> str:
        """Return the kind of device that a case was measured on, ``gpu`` or ``host``; "" if unknown."""
        kinds = {capture.device.kind for captures in self._captures[nodeid] for capture in captures}
        return "gpu" if "gpu" in kinds else next(iter(kinds), "")

    def stop(self) -> None:
        """End every child and start no other."""
        self._stopped = True
        self.close()
        for child in tuple(self._children):
            child.close()

    def results(self) -> dict[str, CaseResult]:
        """Return the results so far, by node id."""
        return {nodeid: self._result(case) for nodeid, case in self._cases.items()}

    def _result(self, case: Case) -> CaseResult:
        return CaseResult(
            case=case,
            captures=tuple(self._captures[case.nodeid]),
            trouble=tuple(self._trouble[case.nodeid]),
            outcome=self._outcome.get(case.nodeid, "passed"),
            seconds=fmean(self._seconds[case.nodeid] or [0.0]),
            raised=tuple(self._raised.get(case.nodeid, {}).items()),
        )

    def _run_round(self, number: int, cases: list[Case], env: Mapping[str, str]) -> list[Case]:
        open_tests: list[str] = []
        finished: set[str] = set()
        child = None
        try:
            start = start_of(self._settings, cases, env)
            child = next(iter(self._next.take([start])), None) or self._settings.spawner.spawn(start.spec)
            self._children.add(child)
            if self._stopped:  # stopped while it was started, so it was not ended with the others
                return cases
            for message in conversation(child, start.job, self._settings.timeout_s, self._preferred_timer):
                if isinstance(message, Ready):
                    open_tests[:] = [message.nodeid]
                elif isinstance(message, Finished):
                    self._note(number, message)
                    finished.add(message.nodeid)
                    open_tests.clear()
                elif isinstance(message, Waits):
                    self._settings.tell(message.text)
                elif isinstance(message, Collected):
                    finished |= self._uncollected(cases, message)
                    self._begin(one_child_each(self._remaining(number + 1, cases))[0], env, alone=message.untouched)
        except PerfgateError as fault:
            return self._after_death(fault, open_tests, [c for c in cases if c.nodeid not in finished])
        finally:
            if child is not None:
                self._children.discard(child)
                child.close()
        for case in cases:
            if case.nodeid not in finished:
                self.give_up(case.nodeid, "the child ended without running it")
        return []

    def _begin(self, cases: Sequence[Case], env: Mapping[str, str], *, alone: bool) -> None:
        """Start the next round's process, unless it could slow this one; a failure is raised when its round begins."""
        by_device = all(timed_by_device(self._captures[case.nodeid]) for case in cases)
        if self._settings.early and alone and len(self._children) == 1 and cases and by_device:
            with suppress(PerfgateError):
                self._next.begin(start_of(self._settings, cases, env))

    def _preferred_timer(self, key: CaseKey) -> str:
        """Return the timer of this call's earlier rounds, else the one that it was accepted with."""
        earlier = [capture for captures in self._captures[key.nodeid] for capture in captures if capture.key == key]
        return earlier[0].identity.timer if earlier else self._settings.earlier_timers.get(str(key), "")

    def _after_death(self, fault: PerfgateError, open_tests: list[str], remaining: list[Case]) -> list[Case]:
        lost = open_tests or [case.nodeid for case in remaining]
        for nodeid in lost:
            self.give_up(nodeid, fault.what)
            if open_tests and fault.code.name in FATAL and not self._stopped:
                self._outcome[nodeid] = "died"
        return [case for case in remaining if case.nodeid not in lost]

    def _uncollected(self, cases: Sequence[Case], message: Collected) -> set[str]:
        lost = {case.nodeid for case in cases} - set(message.nodeids)
        for nodeid in lost:
            own = [error for error in message.errors if error.startswith(nodeid.partition("::")[0])] or message.errors
            self.give_up(nodeid, f"the child could not collect it: {'; '.join(own) or 'it did not collect this test'}")
        return lost

    def _note(self, number: int, message: Finished) -> None:
        nodeid = message.nodeid
        self._seconds[nodeid].append(message.seconds)
        if message.outcome == "passed":
            self._captures[nodeid].append(message.captures)
            self._raised.setdefault(nodeid, {}).update(message.raised)
        else:
            self._outcome[nodeid] = message.outcome
            self._trouble[nodeid].append(message.text)
        with self._telling:
            self._settings.progress(number, self._cases[nodeid], message)


def start_of(settings: ChildSettings, cases: Sequence[Case], env: Mapping[str, str]) -> Start:
    spec = settings.spec(cases)
    around = replace(spec, env=tuple(sorted({**dict(spec.env), **env}.items()))) if env else spec
    return Start(spec=around, job=replace(settings.job, cases=tuple(cases)))


def timed_by_device(rounds: Sequence[tuple[Capture, ...]]) -> bool:
    """Return whether the rounds of a case timed all of its calls by a device's own clock."""
    captures = [capture for one in rounds for capture in one]
    return bool(captures) and all(c.device.kind == "gpu" and c.identity.timer != "host" for c in captures)


def one_child_each(cases: Sequence[Case]) -> list[list[Case]]:
    """Divide cases among children: only a process that has compiled nothing else can measure a first call."""
    alone = [[case] for case in cases if "compile_time" in case.plan.figures]
    return [[case for case in cases if "compile_time" not in case.plan.figures], *alone]


def conversation(
    child: Child,
    job: ChildJob,
    timeout_s: float,
    earlier_timer: Callable[[CaseKey], str] = lambda key: "",  # noqa: ARG005
) -> Iterator[Ready | Finished | Collected | Waits]:
    """Lead one child through its cases, one whole measurement for each call; yield its messages."""
    plans = {case.nodeid: case.plan for case in job.cases}
    child.send(job)
    while True:
        message = child.receive(timeout_s)
        if isinstance(message, Bye):
            return
        if isinstance(message, (Ready, Finished, Collected, Waits)):
            yield message
        if isinstance(message, Ready):
            child.send(Go() if message.nodeid in plans else Skip())
        elif isinstance(message, Entered):
            plan = replace(plans[message.key.nodeid], earlier_timer=earlier_timer(message.key))
            wanted = (*plan.figures, *message.figures)
            child.send(Measure(plan=one_by_one(at_least(plan, message.samples), wanted, plan.rounds)))
        elif isinstance(message, Taken):
            child.send(Finish(references=True))


def measurements(result: CaseResult, tools: GateTools) -> tuple[Measurement, ...]:
    """Return one measurement for each key, with its processes in the order of the rounds."""
    by_key: dict[CaseKey, list[Capture]] = {}
    for captures in result.captures:
        for capture in captures:
            by_key.setdefault(capture.key, []).append(capture)
    rounds = len(result.captures)
    joined = (replace(_measurement(each, rounds, tools), params=result.case.params) for each in by_key.values())
    return tuple(_check_device(measurement, result.case.plan.device) for measurement in joined)


def _check_device(measurement: Measurement, name: str) -> Measurement:
    """Add a problem if it ran on another device than ``--perfgate-device`` names, by index, name, key or UUID."""
    device, read = measurement.device, measurement.identity.timer == READ
    plain = name.removeprefix("GPU-")
    named = name in {str(device.index), device.name, device.key} or plain == device.uuid.removeprefix("GPU-")
    if not name or read or named or has_uuid(device, name):
        return measurement
    what = f"asked for device {name}, and it ran on {device.name} (index {device.index}, {device.key})"
    return replace(measurement, problems=(*measurement.problems, Problem(code="device-other", what=what, retry=False)))


def _measurement(captures: list[Capture], rounds: int, tools: GateTools) -> Measurement:
    last = captures[-1]
    return Measurement(
        key=last.key,
        processes=tuple(samples for capture in captures for samples in capture.samples),
        device=tools.with_measured_ceilings(last.device),
        identity=next((c.identity for c in captures if c.identity.affinity.isdecimal()), last.identity),
        environment=tools.environment(),
        work=last.work,
        metrics=last.metrics | figures_of([capture.readings for capture in captures]),
        findings=last.findings,
        problems=(*_problems(captures, rounds), *last.problems),
        artifacts=tuple(artifact for capture in captures for artifact in capture.artifacts),
        limits=last.limits,
        references=over_processes(reference for capture in captures for reference in capture.references),
    )


def _problems(captures: list[Capture], rounds: int) -> Iterable[Problem]:
    """Yield why the processes of one run do not belong together."""
    measured = sum(bool(capture.samples) for capture in captures) or len(captures)
    if measured < rounds:
        what = f"measured in {measured} of {rounds} rounds: the call does not always happen"
        yield Problem(code="rounds-differ", what=what)
    first = captures[0]
    for other in captures[1:]:
        for name, earlier, later in first.identity.differences(other.identity):
            if name == "affinity" and earlier.isdecimal() is not later.isdecimal():
                continue  # turns that show threads of the call free it, in one round and not in another
            if name == "notes":
                yield _changing_notes(dict(first.identity.notes), dict(other.identity.notes))
                return
            yield Problem(code="rounds-differ", what=f"{name} differs between rounds: {earlier!r} and {later!r}")
            return


def _changing_notes(first: Mapping[str, str], other: Mapping[str, str]) -> Problem:
    """Return the problem of notes that differ between processes; measuring again would not help."""
    key = next(key for key in (*first, *other) if first.get(key) != other.get(key))
    values = " and ".join(repr(notes.get(key, "nothing")) for notes in (first, other))
    what = f"the note {key!r} differs between rounds: {values}; a note must be the same in all rounds: leave it out"
    return Problem(code="rounds-differ", what=what, retry=False)


def metrics_of_capture(capture: Capture, tails: Sequence[Labels] = ()) -> MetricSet:
    """Return the metrics of one process's samples, with the requested quantiles."""
    alone = _alone(capture)
    return timed_metrics(alone, None, timing(alone), tails) | capture.metrics | figures_of([capture.readings])


def record_of(capture: Capture) -> RunReport:
    """Return a record of one call, with its samples and metrics and without a verdict."""
    alone = replace(_alone(capture), metrics=metrics_of_capture(capture))
    case = CaseReport(key=capture.key, verdicts=(), measurement=alone)
    return RunReport(cases=(case,), environment=alone.environment, mode="profile", started="")


def _alone(capture: Capture) -> Measurement:
    return Measurement(
        key=capture.key,
        processes=capture.samples,
        device=capture.device,
        identity=capture.identity,
        work=capture.work,
        references=capture.references,
    )


_WORTH = 40
"""A case that needs more processes than this needs a quieter machine instead."""

_NAMED = 5


@value
class NoisyCall:
    """A call without an accepted time whose run cannot detect the slowdown of its limit."""

    key: CaseKey
    half_width: float
    """Half of its interval, relative."""
    requested: float
    processes: int
    busy: float = 0.0
    """Processors that others kept busy during the run, which may have slowed all its processes."""

    @property
    def machine_busy(self) -> bool:
        """Return whether the machine was too busy for any number of processes."""
        return self.busy > self.requested

    def __str__(self) -> str:
        """Return ``test_sum can detect 12.0 % after 10 processes, and its limit needs 5.0 %``."""
        after = (
            f"after {plural(self.processes, 'process', 'processes')}, and its limit needs {detectable(self.requested)}"
        )
        return f"{short_name(self.key)} can detect {detectable(self.half_width)} {after}"

    @property
    def advice_to_detect(self) -> str:
        """Return what would make the limit detectable: the interval narrows by the square root of the processes."""
        needs = math.ceil(self.processes * (self.half_width / self.requested) ** 2)
        return f"--perfgate-rounds={needs}, or a quieter machine" if needs <= _WORTH else "a quieter machine"


def report_noisy(calls: Sequence[NoisyCall], tell: Callable[[str], None]) -> None:
    """Report the calls that are still too noisy, with what would help."""
    if busy := [call.busy for call in calls if call.machine_busy]:
        text = f"{plural(len(busy), 'new time')} may be too slow: other programs used {max(busy):.1f} processors"
        tell(f"{text} meanwhile; next: run again on an idle machine before you accept")
    # of the others, the verdicts say what to do
    wide = [call for call in calls if not call.machine_busy and call.half_width > call.requested]
    for call in wide[:_NAMED]:
        tell(f"{call}; next: {call.advice_to_detect}")
    if len(wide) > _NAMED:
        tell(f"and {len(wide) - _NAMED} more, which `perfgate accept` names")
