"""What a judge knows besides the measurement; comparability."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.policy import LOCAL, effect
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.core.stats.summary import Summary, median
from pytest_perfgate.model.measurement import (
    DIRTY,
    Baseline,
    Environment,
    Identity,
    Measurement,
    Samples,
    Settled,
    Sitting,
    Stop,
)
from pytest_perfgate.model.plan import ANCHOR, Effect, Limit, Mode, Outcome, Policy
from pytest_perfgate.model.values import Dimension, value
from pytest_perfgate.model.verdict import Paired, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.metric import Figure, Metric, MetricKind, MetricSet, Problem
    from pytest_perfgate.model.protocol import Capture

_BUILT_IN = by_name()


@value
class Unpaired:
    """Why the two builds of a case could not be compared, so that its stored line judges it."""

    why: str
    step: str = ""
    """What would make the comparison possible."""
    base_missing: bool = False
    """Whether no clone has the commit: nothing that is fetched brings it."""


@value
class JudgeContext:
    """The policy and the circumstances of a run, or of one case in it."""

    policy: Policy = LOCAL
    mode: Mode = Mode.FULL
    kinds: Mapping[str, MetricKind] = field(default_factory=lambda: _BUILT_IN, repr=False)
    gates: int = 1
    """How many slowdown gates the run has, those of its other shards among them: the price of asking often."""
    share: float = 1.0
    """The part of the gates that this shard judges, and of the chance of a false alarm that it may spend."""
    scatter: float | None = None
    """Relative scatter between runs from the history; the baseline's own where unknown."""
    sittings: int = 0
    """Sittings behind ``scatter``."""
    own_shift: float = 0.0
    """The 99th percentile of this case's own A/A shift, where it was calibrated."""
    floor_ns: float = 0.0
    """Smaller differences do not count, per timed sample: a batch of calls divides it."""
    paired_available: bool = False
    """Whether a suspect will be confirmed in two arms: then nothing else confirms it."""
    edited: Baseline | None = None
    """The line of the work tree where this change edits it; ``baseline`` is the merge base's."""
    replaced: Baseline | None = None
    """The merge base's line, where it cannot be compared and ``baseline`` is the one that this change accepts."""
    anchor: float = ANCHOR
    """How far accepted steps may take a line from its anchor, as a fraction."""
    today: str = ""
    """ISO date, against which an acceptance expires."""
    facts: str = "shown"
    """How closely the versions around a device must agree with the baseline's: one of ``LEVELS``."""
    then_hz: float | None = None
    """The clock of the runs that were accepted, where the history knows it."""
    environment_edits: EnvironmentEdits = EnvironmentEdits()
    """What the change under test edits of what is installed."""
    unpaired: Unpaired | None = None
    """Why this case was not compared between two builds, where it should have been."""
    unbaselined: str = ""
    """Why there is no baseline, where the caller knows more than that."""
    pytest: str = "pytest"
    """How this run was started, as far as the next one must be started so too."""
    two_files: bool = False
    """Whether one file is held against another: then there is nothing to accept."""


REASON = ' --reason "..."'


class JudgedMeasurement(NamedTuple):
    """One measurement on the bench: what was seen, what it is held against, what is wrong with it."""

    measurement: Measurement
    context: JudgeContext
    metrics: MetricSet
    problems: tuple[Problem, ...]
    baseline: Baseline | None
    seen: Summary | None
    modes: bool
    paired: Paired | None
    unheld: str = ""
    """Why nothing can be held against the line; empty where it can, and where there is none for want of a reason."""
    references: frozenset[str] = frozenset()
    """The calls that limits of its test hold others against."""

    @property
    def name(self) -> str:
        """The case, quoted for a shell."""
        return shlex.quote(str(self.measurement.key))

    @property
    def profiles(self) -> tuple[str, ...]:
        """The command that looks into this test; what runs on the host alone has no kernels to look into."""
        return (f"perfgate profile {self.name}",) if self.measurement.device.kind != "host" else ()

    @property
    def rerun(self) -> str:
        """The command that runs this test once more, which pytest knows without its calls; more stands behind it."""
        return f"{self.context.pytest} {shlex.quote(self.measurement.key.nodeid)}"

    def accepting(self, option: str = "") -> str:
        """The command that accepts this time; where CI refuses to write, from the record that it leaves."""
        source = "--from RECORD " if self.context.policy.ci else ""
        return f"perfgate accept {source}{self.name}{option}"


class Ruling(NamedTuple):
    """An outcome with its reason; becomes a verdict beside its limit."""

    outcome: Outcome
    sentence: str
    next: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    metric: Metric | None = None
    visible: float | None = None
    rounds: int = 0
    against: bool = False
    """Whether the baseline was asked."""
    raised: float | None = None
    """What the absolute floor raised the limit to."""
    fails: bool = False
    """Fails whatever the policy says."""
    policy: str = ""
    """A policy that may fail it, beside that of its outcome."""
    figure: Figure | None = None
    """The accepted figure, where the limit is on its change."""


def verdict(limit: Limit, ruling: Ruling, context: JudgeContext, trial: JudgedMeasurement | None = None) -> Verdict:
    """The ruling as a verdict, its effect taken from the policy."""
    done = effect(ruling.outcome, context.policy, context.mode)
    if ruling.fails or (ruling.policy and context.policy.effect(ruling.policy) is Effect.FAIL):
        done = Effect.FAIL
    return Verdict(
        limit=limit,
        outcome=ruling.outcome,
        effect=done,
        metric=ruling.metric,
        baseline=trial.baseline if trial and ruling.against else None,
        visible=_visible(ruling, trial),
        sentence=ruling.sentence,
        next=ruling.next,
        evidence=ruling.evidence,
        rounds=ruling.rounds,
        raised=ruling.raised,
        interval=ruling.metric.interval if ruling.metric else None,
        figure=ruling.figure,
    )


def _visible(ruling: Ruling, trial: JudgedMeasurement | None) -> float | None:
    """What could have been seen: the ruling's own figure, else that of the run."""
    if ruling.visible is not None or ruling.figure is not None:
        return ruling.visible
    unbuilt = trial is not None and trial.paired is not None and trial.paired.unbuilt
    return trial.seen.visible if trial and trial.seen and not unbuilt else None


FLOOR_AT_MOST = 0.5
"""The absolute floor never hides more than this: a doubled time is seen however short the call."""


class Tolerance(NamedTuple):
    """All as fractions of the accepted time."""

    asked: float
    """The limit, or the absolute floor where that is larger."""
    own: float
    """What unchanged code moves by here: its own A/A shift, or a tick of the timer."""
    raised: float | None = None
    """What the floor raised the limit to, where it did."""
    blind: float = 0.0
    """What the accepted run could not see: the accepted time may be off by as much."""

    @property
    def threshold(self) -> float:
        """τ: what is smaller is no slowdown."""
        return max(self.asked, self.own)


def tolerance(limit: Limit, trial: JudgedMeasurement, summary: Summary, then: float, blind: float = 0.0) -> Tolerance:
    """τ of one limit. The floor is of what the timer was shown: a batch of calls divides it.

    No floor raises a demanded improvement: it excuses a slowdown that is too short to time, and that is none.
    """
    floor = min(_floor(trial) / summary.batch / then, FLOOR_AT_MOST) if limit.bound >= 0 else limit.bound
    return Tolerance(
        asked=max(limit.bound, floor),
        own=max(trial.context.own_shift, summary.resolution / then),
        raised=floor if floor > limit.bound else None,
        blind=blind,
    )


def _floor(trial: JudgedMeasurement) -> float:
    """Times that were measured elsewhere: the resolution of their timer is unknown."""
    floor = trial.context.floor_ns
    return 0.0 if floor and all(one.stop is Stop.RECORDED for one in trial.measurement.processes) else floor


def incomparable(baseline: Baseline | None, measurement: Measurement, context: JudgeContext) -> str:
    """Why the baseline may not be compared with this measurement; empty when it may."""
    if baseline is None:
        return context.unbaselined or "there is no baseline for this device"
    if not (baseline.time > 0 and math.isfinite(baseline.time)) and not baseline.figures:
        return f"the accepted time is {baseline.time} ns"
    if baseline.device != measurement.device.key:
        return f"the baseline is of {baseline.device}, and this device is {measurement.device.key}: not compared"
    return measured_differently(baseline, measurement) or _surroundings(baseline, measurement, context.facts)


def measured_differently(baseline: Baseline, measurement: Measurement) -> str:
    """What differs between how a line was measured and how this was."""
    if baseline.identity is None or baseline.identity == measurement.identity:
        return ""
    then, now = baseline.identity, measurement.identity
    names = [name for name, _, _ in now.differences(then)]
    text = ", ".join(f"{name} {_part(getattr(then, name))} -> {_part(getattr(now, name))}" for name in names)
    return f"measured differently, not compared: {text}" if text else ""


def _part(part: object) -> str:
    """A part of an identity as a person writes it; notes are pairs."""
    text = ", ".join(f"{name}={note}" for name, note in part) if isinstance(part, tuple) else str(part)
    return text or "none"


def _surroundings(baseline: Baseline, measurement: Measurement, level: str) -> str:
    if level in {"off", "shown"}:
        return ""
    differences = moves(accepted_facts(baseline), facts_of(measurement.device), level)
    text = ", ".join(f"{name} {then} -> {now}" for name, then, now in differences)
    return f"measured with other versions, not compared: {text}" if text else ""


KEPT = ("driver", "toolkit", "framework", "ptxas")

LEVELS = ("off", "shown", "major", "minor", "exact")
"""How closely versions must agree for a baseline to be compared; ``shown`` only tells what differs."""

Fact = tuple[str, str]

Move = tuple[str, str, str]
"""(name, then, now)"""

_VERSION = re.compile(r"(.*?)(\d+)(?:\.(\d+))?")


def facts_of(device: Device) -> tuple[Fact, ...]:
    """The versions that a baseline keeps."""
    facts = dict(device.facts)
    return tuple((name, facts[name]) for name in KEPT if facts.get(name))


def accepted_facts(baseline: Baseline) -> tuple[Fact, ...]:
    """Those around the accepted run; none where the line kept no environment."""
    then = dict(baseline.surroundings.facts) if baseline.surroundings else {}
    facts = ((name, then.get(f"device {name}") or then.get(name, "")) for name in KEPT)
    return tuple((name, text) for name, text in facts if text)


def moves(then: Iterable[Fact], now: Iterable[Fact], level: str = "exact") -> tuple[Move, ...]:
    """What differs at this level; what one side does not know is no difference."""
    here = dict(now)
    both = ((name, was, here[name]) for name, was in then if name in here)
    return tuple(move for move in both if rounded(move[1], level) != rounded(move[2], level))


def rounded(text: str, level: str) -> tuple[str, ...]:
    """A version as far as this level looks: ``torch 2.13.0`` is ``torch``, 2, 13 at ``minor``."""
    match = _VERSION.match(text) if level != "exact" else None
    if match is None:
        return (text,)
    name, major, minor = match.group(1), match.group(2), match.group(3) or ""
    return (name, major) if level == "major" else (name, major, minor)


APART = 0.02
"""Clocks nearer than this are the same."""

UNKNOWN = "unknown: the line was accepted without its environment"

Facts = tuple[tuple[str, str, str], ...]
"""(name, then, now)"""


def surroundings(measurement: Measurement) -> Environment:
    """What is kept beside an accepted time: what outlives the run, the device's own facts among it."""
    around = measurement.environment.lasting
    facts = dict(around.facts)
    device = ((f"device {name}", text) for name, text in measurement.device.facts if text and name not in facts)
    return replace(around, facts=(*around.facts, *device))


def moved(baseline: Baseline | None, measurement: Measurement, sittings: Sequence[Sitting] = ()) -> Facts:
    """Everything that differs between the accepted run and this one."""
    if baseline is None:
        return ()
    then = baseline.surroundings
    facts = then.differences(surroundings(measurement)) if then is not None else ()
    return (*_clocks(baseline, measurement, sittings), *facts)


def named(baseline: Baseline | None, facts: Facts) -> str:
    """The facts in one line; that nothing is known is not that nothing differs."""
    if facts:
        return ", ".join(f"{name} {then} -> {now}" for name, then, now in facts)
    recorded = baseline is not None and baseline.surroundings is not None
    return "none of the facts that perfgate records" if recorded else UNKNOWN


def _clocks(baseline: Baseline, measurement: Measurement, sittings: Sequence[Sitting]) -> Facts:
    now, then = clock_of(measurement.processes), accepted_clock(baseline, sittings)
    if now is None or then is None or abs(now / then - 1) <= APART:
        return ()
    return (("clock", quantity(then, Dimension.CLOCK), quantity(now, Dimension.CLOCK)),)


LIMITED = 0.1
"""The share of the sampling at the power limit from which on that is the state of a process."""


def limited(processes: Iterable[Samples]) -> bool | None:
    """Whether a run was at the power limit, as half of its processes were; ``None`` where it was not observed."""
    shares = [process.capped for process in processes if process.capped is not None]
    return median(sorted(shares)) >= LIMITED if shares else None


def how_measured(identity: Identity, *, at_limit: bool | None) -> str:
    """The identity of a run with its state of power: the runs of one state scatter by what is theirs."""
    return f"{identity.text()}{', power=limited' if at_limit else ''}"


def settled_turns(rounds: Iterable[tuple[Capture, Capture]]) -> list[tuple[Settled, Settled]]:
    """The long turns of base and head, round by round; none unless every round has both."""
    turns = [[capture.samples[-1].settled for capture in both] for both in rounds]
    return [(base, head) for base, head in turns if base and head] if all(map(all, turns)) else []


def clock_of(processes: Iterable[Samples]) -> float | None:
    """The clock that a run ran at: the median over its processes; unknown where one of them did not see it."""
    clocks = [median(sorted(one.clock_hz)) if one.clock_hz else 0.0 for one in processes]
    return median(sorted(clocks)) if clocks and min(clocks) > 0 else None


def accepted_clock(baseline: Baseline | None, sittings: Sequence[Sitting]) -> float | None:
    """The clock at which a line was measured: that of the newest run of its commit that knows one."""
    if baseline is None or not baseline.commit:
        return None
    same = (s for s in reversed(sittings) if s.commit and _one_commit(s.commit, baseline.commit))
    return next((s.clock_hz for s in same if s.clock_hz), None)


def _one_commit(one: str, other: str) -> bool:
    """Hashes of different lengths name one commit when the shorter begins the longer; changes are changes to both."""
    first, second = one.removesuffix(DIRTY), other.removesuffix(DIRTY)
    alike = one.endswith(DIRTY) == other.endswith(DIRTY)
    return alike and (first.startswith(second) or second.startswith(first))


def paired_clocks(rounds: Iterable[tuple[Capture, Capture]]) -> tuple[float, float] | None:
    """The clocks of base and head over the rounds of two arms; nothing where one of them is not known."""
    sides = list(zip(*rounds))
    base, head = (clock_of(s for capture in side for s in capture.samples) for side in sides) if sides else (None, None)
    return (base, head) if base is not None and head is not None else None


def run_out(baseline: Baseline) -> str:
    """When the acceptance of a line ended, and what it was for."""
    why = f': "{baseline.why}"' if baseline.why else ""
    return f"the acceptance expired on {baseline.expires}{why}"
