"""The context of a judgement besides the measurement, and whether lines are comparable."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.policy import LOCAL, effect
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.core.stats.summary import Summary, median
from pytest_perfgate.model.measurement import (
    DIRTY,
    Baseline,
    Environment,
    HistoryEntry,
    Identity,
    Measurement,
    Samples,
    Settled,
    Stop,
)
from pytest_perfgate.model.plan import ANCHOR, Effect, Limit, Mode, Outcome, Policy
from pytest_perfgate.model.values import Dimension, value
from pytest_perfgate.model.verdict import Paired, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.metric import Figure, Metric, MetricKind, MetricSet, Problem
    from pytest_perfgate.model.protocol import Capture

BUILT_IN = by_name()


@value
class Unpaired:
    """Why the two builds of a case could not be compared, so that its stored line judges it."""

    why: str
    step: str = ""
    """What would make the comparison possible."""
    base_missing: bool = False
    """Whether no clone has the commit, so that fetching does not help."""
    unversioned: bool = False
    """Whether no revision can be named here, because there is no repository or no commit in it."""


@value
class JudgeContext:
    """The policy and the circumstances of a run, or of one case in it."""

    policy: Policy = LOCAL
    mode: Mode = Mode.FULL
    kinds: Mapping[str, MetricKind] = field(default_factory=lambda: BUILT_IN, repr=False)
    gates: int = 1
    """The number of slowdown gates of the run and its other shards, which share the false-alarm rate."""
    share: float = 1.0
    """The part of the gates that this shard judges, which is also its part of the false-alarm rate."""
    scatter: float | None = None
    """Relative scatter between runs from the history; the baseline's own if unknown."""
    runs: int = 0  # behind ``scatter``
    floor_ns: float = 0.0
    """Smaller differences do not count, per timed sample: a batch of calls divides it."""
    paired_available: bool = False
    """Whether a suspect will be confirmed in two arms, so that nothing else confirms it."""
    edited: Baseline | None = None
    """The line of the work tree if this change edits it; ``baseline`` is the merge base's."""
    replaced: Baseline | None = None
    """The merge base's line, if it is not comparable and ``baseline`` is the one that this change accepts."""
    new_line: bool = False  # whether the merge base has no such line
    anchor: float = ANCHOR
    """How far accepted steps may take a line from its anchor, as a fraction."""
    today: str = ""
    """ISO date, against which an acceptance expires."""
    facts: str = "shown"
    """How closely versions must agree with the baseline's: off, major, minor, exact; "shown" only reports them."""
    then_hz: float | None = None
    """The clock of the accepted runs, if the history knows it."""
    environment_edits: EnvironmentEdits = EnvironmentEdits()
    """The installed software that the change under test edits."""
    unpaired: Unpaired | None = None
    """Why two builds of this case were not compared as intended."""
    unbaselined: str = ""
    """Why there is no baseline, if the caller has a better reason."""
    pytest: str = "pytest"
    """The command that started this run, as far as the next one needs the same."""
    two_files: bool = False
    """Whether two files are compared, so that there is nothing to accept."""


REASON = ' --reason "..."'


@value
class JudgedMeasurement:
    """One measurement to be judged, with what it is compared with and its problems."""

    measurement: Measurement
    context: JudgeContext
    metrics: MetricSet
    problems: tuple[Problem, ...]
    baseline: Baseline | None
    timing: Summary | None
    """The time of the run with its interval; None if its samples are not trusted."""
    in_groups: bool
    """Whether its processes form groups of different speed."""
    paired: Paired | None
    unheld: str = ""
    """Why the line cannot be compared, for example because there is none; "" if it can be."""
    references: frozenset[str] = frozenset()
    """The calls that are references in limits of its test."""
    several: frozenset[str] = frozenset()
    """Metrics of which the line has accepted values in several scopes."""

    @property
    def name(self) -> str:
        """Return the case, quoted for a shell."""
        return shlex.quote(str(self.measurement.key))

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the command that profiles this test; none for a test of the host alone, which has no kernels."""
        return (f"perfgate profile {self.name}",) if self.measurement.device.kind != "host" else ()

    @property
    def rerun(self) -> str:
        """Return the command that runs this test once more; pytest cannot select single calls. Options may follow."""
        return f"{self.context.pytest} {shlex.quote(self.measurement.key.nodeid)}"

    def accepting(self, option: str = "") -> str:
        """Return the command that accepts this time; in CI, from the run's record, since it must not write."""
        from pytest_perfgate.core.judge.accepted_line import goes_too_far

        source, line = "--from RECORD " if self.context.policy.ci else "", self.context.edited or self.baseline
        far = self.timing and option and goes_too_far(line, self.measurement, self.timing.time, self.context)
        return f"perfgate accept {source}{self.name}{' --anchor' if far else ''}{option}"


class Ruling(NamedTuple):
    """An outcome with its reason; it becomes a verdict with its limit."""

    outcome: Outcome
    sentence: str
    next: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    metric: Metric | None = None
    visible: float | None = None
    rounds: int = 0
    against: bool = False
    """Whether the baseline was used."""
    raised: float | None = None
    """The value to which the absolute floor raised the limit."""
    fails: bool = False
    """Whether it fails whatever the policy."""
    policy: str = ""
    """A further policy that may fail it, besides that of its outcome."""
    figure: Figure | None = None
    """The accepted figure, if the limit is on its change."""


def figure_kept(metric: Metric, then: Figure, reach: float | None = None) -> Ruling:
    """Return PASSED for a figure that keeps its limit, five times as fast as by the names of its fields."""
    return _tuple(Ruling, (Outcome.PASSED, "", (), (), metric, reach, 0, False, None, False, "", then))


_tuple = tuple.__new__


def verdict(limit: Limit, ruling: Ruling, context: JudgeContext, trial: JudgedMeasurement | None = None) -> Verdict:
    """Return the ruling as a verdict, with its effect by the policy."""
    outcome, sentence, steps, evidence, metric, visible, rounds, against, raised, fails, policy, figure = ruling
    done = effect(outcome, context.policy, context.mode)
    if fails:
        done = Effect.FAIL
    elif policy and done is not Effect.FAIL and context.policy.effect(policy) is Effect.FAIL:
        done, evidence = Effect.FAIL, (*evidence, ("fails", f"by policy {policy} = fail"))
    if visible is None and figure is None and trial is not None and trial.timing is not None:
        visible = None if trial.paired is not None and trial.paired.without_rounds else trial.timing.visible
    return Verdict(
        limit=limit, outcome=outcome, effect=done, metric=metric, visible=visible, sentence=sentence, next=steps,
        evidence=evidence, rounds=rounds, raised=raised, figure=figure,
        baseline=trial.baseline if against and trial is not None else None,
        interval=metric.interval if metric is not None else None,
    )  # fmt: skip


FLOOR_AT_MOST = 0.5
"""The most that the absolute floor hides: a doubled time counts, however short the call."""


class Tolerance(NamedTuple):
    """Tolerances as fractions of the accepted time."""

    bound: float
    """The limit, or the absolute floor if that is larger."""
    resolution: float
    """A tick of the timer, as a share of the accepted time."""
    raised: float | None
    """The value to which the floor raised the limit, if it did."""
    detects: float
    """What the accepted run could not detect, by which the accepted time may be wrong."""

    @property
    def threshold(self) -> float:
        """The smallest slowdown that counts."""
        return max(self.bound, self.resolution)


def tolerance(limit: Limit, trial: JudgedMeasurement, summary: Summary, then: float, detects: float = 0.0) -> Tolerance:
    """Return the tolerance of one limit. The floor is for a timed sample: a batch of calls divides it."""
    # No floor raises a demanded improvement, since it only excuses a slowdown that is too short to time.
    floor = min(_floor(trial) / summary.batch / then, FLOOR_AT_MOST) if limit.bound >= 0 else limit.bound
    return Tolerance(
        bound=max(limit.bound, floor),
        resolution=summary.resolution / then,
        raised=floor if floor > limit.bound else None,
        detects=detects,
    )


def _floor(trial: JudgedMeasurement) -> float:
    """Return the floor in nanoseconds; 0 for recorded times, whose timer's resolution is unknown."""
    floor = trial.context.floor_ns
    return 0.0 if all(samples.stop is Stop.RECORDED for samples in trial.measurement.processes) else floor


def incomparable(baseline: Baseline | None, measurement: Measurement, context: JudgeContext) -> str:
    """Return why the baseline may not be compared with this measurement; "" if it may."""
    if baseline is None:
        return context.unbaselined or "there is no baseline for this device"
    if not (baseline.time > 0 and math.isfinite(baseline.time)) and not baseline.figures:
        return f"the accepted time is {baseline.time} ns"
    if baseline.device != measurement.device.key:
        return f"the baseline is of {baseline.device}, and this device is {measurement.device.key}: not compared"
    return measured_differently(baseline, measurement) or _surroundings(baseline, measurement, context.facts)


def measured_differently(baseline: Baseline, measurement: Measurement) -> str:
    """Return the differences between how a line and this measurement were measured."""
    if baseline.identity is None or baseline.identity == measurement.identity:
        return ""
    then, now = baseline.identity, measurement.identity
    names = [name for name, _, _ in now.differences(then)]
    text = ", ".join(f"{name} {_part(getattr(then, name))} -> {_part(getattr(now, name))}" for name in names)
    return f"measured differently, not compared: {text}" if text else ""


def _part(part: object) -> str:
    """Return a part of an identity as text; notes are pairs."""
    text = ", ".join(f"{name}={note}" for name, note in part) if isinstance(part, tuple) else str(part)
    return text or "none"


def _surroundings(baseline: Baseline, measurement: Measurement, level: str) -> str:
    if level in {"off", "shown"}:
        return ""
    differences = moves(baseline, measurement.device, level)
    text = ", ".join(f"{name} {then} -> {now}" for name, then, now in differences)
    return f"measured with other versions, not compared: {text}" if text else ""


KEPT = ("driver", "toolkit", "framework", "ptxas")

Fact = tuple[str, str]

Move = tuple[str, str, str]
"""(name, then, now)"""

_VERSION = re.compile(r"(.*?)(\d+)(?:\.(\d+))?")


@lru_cache(maxsize=256)
def facts_of(facts: tuple[Fact, ...], prefix: str = "") -> tuple[Fact, ...]:
    """Return the versions that a baseline stores, of a device; of an environment, where the device's have a prefix."""
    named = dict(facts)
    versions = {name: named.get(name) for name in KEPT}
    if prefix:
        versions = {name: named.get(prefix + name) or text for name, text in versions.items()}
    return tuple((name, text) for name, text in versions.items() if text)


def moves(baseline: Baseline, device: Device, level: str = "exact") -> tuple[Move, ...]:
    """Return what differs from the accepted run at this level; a fact that one side lacks is not a difference."""
    then = facts_of(baseline.surroundings.facts, "device ") if baseline.surroundings else ()
    here = dict(facts_of(device.facts))
    both = ((name, was, here[name]) for name, was in then if name in here)
    return tuple(move for move in both if rounded(move[1], level) != rounded(move[2], level))


def rounded(text: str, level: str) -> tuple[str, ...]:
    """Return a version as far as this level compares it: ``torch 2.13.0`` is ``torch``, 2, 13 at ``minor``."""
    match = _VERSION.match(text) if level != "exact" else None
    if match is None:
        return (text,)
    name, major, minor = match.groups("")
    return (name, major) if level == "major" else (name, major, minor)


APART = 0.02
"""The largest difference between clocks that count as equal."""

UNKNOWN = "unknown: the line was accepted without its environment"

Facts = tuple[Move, ...]


def surroundings(measurement: Measurement) -> Environment:
    """Return the environment stored with an accepted time: facts that outlast the run, also the device's."""
    around = measurement.environment.lasting
    facts = dict(around.facts)
    device = ((f"device {name}", text) for name, text in measurement.device.facts if text and name not in facts)
    return replace(around, facts=(*around.facts, *device))


def moved(baseline: Baseline | None, measurement: Measurement, entries: Sequence[HistoryEntry] = ()) -> Facts:
    """Return everything that differs between the accepted run and this one."""
    if baseline is None:
        return ()
    then = baseline.surroundings
    facts = then.differences(surroundings(measurement)) if then is not None else ()
    return (*_clocks(baseline, measurement, entries), *facts)


def named(baseline: Baseline | None, facts: Facts) -> str:
    """Return the facts in one line; without any, whether none is known or none differs."""
    if facts:
        return ", ".join(f"{name} {then} -> {now}" for name, then, now in facts)
    recorded = baseline is not None and baseline.surroundings is not None
    return "none of the facts that perfgate records" if recorded else UNKNOWN


def _clocks(baseline: Baseline, measurement: Measurement, entries: Sequence[HistoryEntry]) -> Facts:
    now, then = clock_of(measurement.processes), accepted_clock(baseline, entries)
    if now is None or then is None or abs(now / then - 1) <= APART:
        return ()
    return (("clock", quantity(then, Dimension.CLOCK), quantity(now, Dimension.CLOCK)),)


LIMITED = 0.1
"""The share of sampling at the power limit from which a process counts as limited."""


def limited(processes: Iterable[Samples]) -> bool | None:
    """Return whether a run was at the power limit, in half of its processes; ``None`` if not observed."""
    shares = [process.capped for process in processes if process.capped is not None]
    return median(sorted(shares)) >= LIMITED if shares else None


def how_measured(identity: Identity, *, at_limit: bool | None) -> str:
    """Return a run's identity with its state of power, since runs of one state have their own scatter."""
    return f"{identity.text()}{', power=limited' if at_limit else ''}"


def settled_turns(rounds: Iterable[tuple[Capture, Capture]]) -> list[tuple[Settled, Settled]]:
    """Return the long turns of base and head in each round; none unless every round has both."""
    return complete([(base.samples[-1].settled, head.samples[-1].settled) for base, head in rounds])


T = TypeVar("T")


def complete(pairs: Sequence[tuple[T | None, T | None]]) -> list[tuple[T, T]]:
    """Return the pairs; none unless every one has both sides."""
    whole = [(base, head) for base, head in pairs if base and head]
    return whole if len(whole) == len(pairs) else []


def clock_of(processes: Iterable[Samples]) -> float | None:
    """Return the median clock of a run over its processes; None if one of them did not observe it."""
    clocks = [median(sorted(samples.clock_hz)) if samples.clock_hz else 0.0 for samples in processes]
    return median(sorted(clocks)) if clocks and min(clocks) > 0 else None


def accepted_clock(baseline: Baseline | None, entries: Sequence[HistoryEntry]) -> float | None:
    """Return the clock of a line, from the newest run of its commit that has one."""
    if baseline is None or not baseline.commit:
        return None
    same = (s for s in reversed(entries) if s.commit and _one_commit(s.commit, baseline.commit))
    return next((s.clock_hz for s in same if s.clock_hz), None)


def _one_commit(one: str, other: str) -> bool:
    """Return whether two names are one commit: the shorter begins the longer, and both or neither have changes."""
    first, second = one.removesuffix(DIRTY), other.removesuffix(DIRTY)
    alike = one.endswith(DIRTY) == other.endswith(DIRTY)
    return alike and (first.startswith(second) or second.startswith(first))


def paired_clocks(rounds: Iterable[tuple[Capture, Capture]]) -> tuple[float, float] | None:
    """Return the clocks of base and head over the rounds; None if one of them is unknown."""
    pairs = list(rounds)
    base = clock_of(samples for capture, _ in pairs for samples in capture.samples)
    head = clock_of(samples for _, capture in pairs for samples in capture.samples)
    return (base, head) if base is not None and head is not None else None
