"""Verdicts, case reports, paired comparisons, arms."""

from __future__ import annotations

from enum import Enum

from pytest_perfgate.model.measurement import Baseline, Environment, Measurement
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval, Metric, Problem
from pytest_perfgate.model.plan import CaseKey, Decision, Effect, Limit, Outcome, Policy
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.values import first_of, value

EQUAL_TIMES = "base and head recorded equal times in each round, as they do if both read the file of an earlier run"

THEN = "then"
"""The name of the fact in place of a stored baseline: the time of the other arm."""


@value
class Verdict:
    """One limit judged: outcome, the numbers it is based on, what to do next."""

    limit: Limit
    outcome: Outcome
    effect: Effect
    metric: Metric | None = None
    baseline: Baseline | None = None
    visible: float | None = None
    """The smallest slowdown that this measurement could detect."""
    sentence: str = ""
    """Why, in one sentence."""
    next: tuple[str, ...] = ()
    """Commands that help."""
    evidence: tuple[tuple[str, str], ...] = ()
    """Labelled facts for the block: ``("why", "shared memory 96 -> 114 KiB")``."""
    rounds: int = 0
    interval: Interval | None = None
    raised: float | None = None
    """The value to which the absolute floor raised the limit, since short calls cannot be timed more finely."""
    figure: Figure | None = None
    """For a limit on a change: the accepted figure that ``metric`` was compared with."""

    def without_figures(self, why: str) -> Verdict:
        """Return its outcome for a record that cannot hold its figures."""
        return Verdict(limit=self.limit, outcome=self.outcome, effect=self.effect, sentence=f"{self.sentence}; {why}")


class Excuse(str, Enum):
    """Why a test's verdicts do not fail the run."""

    NONE = ""
    NOT_RUN = "not run"
    """Skipped, or failed by itself: pytest reports that, and the gate adds no failure of its own."""
    EXPECTED_TO_FAIL = "expected to fail"
    """``xfail``: its failures are warnings."""

    def remaining(self, effect: Effect) -> Effect:
        """Return the remaining effect of a verdict."""
        if self is Excuse.NOT_RUN:
            return Effect.PASS
        return Effect.WARN if self is Excuse.EXPECTED_TO_FAIL and effect is Effect.FAIL else effect


@value
class Arms:
    """The rounds of base and head."""

    base: str
    same: bool = False
    """Whether both ran the same code, so that a slowdown is not the code's."""
    differences: tuple[float, ...] = ()
    """Logarithms of head over base, one a round, in order."""


@value
class CaseReport:
    """One measurement with all its verdicts."""

    key: CaseKey
    verdicts: tuple[Verdict, ...]
    measurement: Measurement | None = None
    baseline: Baseline | None = None
    problems: tuple[Problem, ...] = ()
    incomparable: str = ""
    """Why its slowdown is not comparable, such as an accepted time that was measured differently."""
    accepts: Baseline | None = None
    """The line with which the change under test accepts another time, with a reason of its own."""
    arms: Arms | None = None
    """What its slowdown is against; None if that is the accepted time."""
    builds: Arms | None = None
    """The rounds of base and head that were measured beside an accepted time."""
    excuse: Excuse = Excuse.NONE

    @property
    def device(self) -> str:
        """The key of the device that it was measured on; "" if it was not."""
        return self.measurement.device.key if self.measurement is not None else ""

    def effect_of(self, verdict: Verdict) -> Effect:
        """Return what one of its verdicts does to the run."""
        return self.excuse.remaining(verdict.effect)

    @property
    def effect(self) -> Effect:
        effects = {self.effect_of(v) for v in self.verdicts}
        return next((e for e in (Effect.FAIL, Effect.WARN) if e in effects), Effect.PASS)

    @property
    def worst(self) -> Outcome:
        """The worst outcome; a limit that does not apply counts only where none does, or where none was given."""
        order = [Outcome.NOT_APPLICABLE, *(one for one in Outcome if one is not Outcome.NOT_APPLICABLE)]
        alone = Outcome.NOT_MEASURED if self.measurement is None else Outcome.NOT_APPLICABLE
        return max((v.outcome for v in self.verdicts), key=order.index, default=alone)


@value
class SuiteNote:
    """A verdict on the suite: dropped tests, unused baselines, limits that apply nowhere."""

    kind: str
    effect: Effect
    text: str
    names: tuple[str, ...] = ()

    @property
    def unstated(self) -> tuple[str, ...]:
        """Return the names that are missing from the text."""
        return tuple(name for name in self.names if name not in self.text)

    @property
    def sentence(self) -> str:
        """Return the text with at most ten of the names."""
        return f"{self.text}: {first_of(self.unstated, 10)}" if self.unstated else self.text


@value
class Universe:
    """Every gated test that a run collected before it was divided into shards, with their limits."""

    cases: tuple[tuple[str, tuple[Limit, ...]], ...] = ()
    """Node ids, sorted, with their limits."""
    policy: Policy = Policy()


@value
class Shard:
    """The part of a run that one pytest process measured; an undivided run is shard 1 of 1."""

    run: str = ""
    """An id that no other process has."""
    index: int = 1
    count: int = 1
    universe: Universe = Universe()
    chosen: tuple[int, ...] = ()
    """Its cases, by their positions in the universe."""
    split: str = ""
    """Digest of the costs by which the run was divided; "" if it was divided by names alone."""
    host: str = ""
    device: str = ""
    """Key of the device that it measured on, or would have."""
    cards: tuple[str, ...] = ()
    """Devices that it measured on: UUID, or PCI address without one."""
    changes: str = ""
    """Digest of its work tree's differences from the commit."""
    facts: str = ""
    """Digest of the measurements' environment."""
    environment: Environment = Environment()
    started: str = ""
    seconds: float = 0.0
    complete: bool = True
    filtered: bool = False
    """Whether the command line left tests out before the run was divided."""
    status: int = 0
    costs: tuple[tuple[str, float], ...] = ()
    """Seconds that measuring each of its tests took."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the node ids of its own cases."""
        return tuple(self.universe.cases[at][0] for at in self.chosen)

    @property
    def share(self) -> float:
        """The part of the run that is its own, which is also its part of the false-alarm rate."""
        return len(self.chosen) / len(self.universe.cases) if self.universe.cases else 1.0


@value
class RunReport:
    """A whole run: the content of the record file, from which every report is rendered."""

    cases: tuple[CaseReport, ...]
    environment: Environment
    mode: str
    started: str
    seconds: float = 0.0
    complete: bool = True
    """False when interrupted: the record is partial."""
    filtered: bool = False
    """True under ``-k``, ``-m``, node ids: suite verdicts are not drawn."""
    notes: tuple[SuiteNote, ...] = ()
    status: int = 0
    """pytest's exit status, for tests that failed for another reason than their limits."""
    root: str = ""
    shards: tuple[Shard, ...] = ()
    """The processes that measured it: one, or those that were merged."""
    schema: int = 1
    tables: tuple[str, ...] = ()
    """Pairs of parameters that reports show as tables: ``n x dtype``."""


@value
class Posting:
    """How a report is posted where people discuss a change."""

    key: str = ""
    """The name of the comment that is edited; "" for that of the job and its devices."""
    only_changes: bool = False
    dry_run: bool = False


@value
class Annotation:
    """An annotation on a test in the view of a change."""

    path: str
    test: str
    """The name of its function."""
    level: str
    """``failure`` or ``warning``."""
    title: str
    message: str


@value
class PowerLimited:
    """Base and head of a comparison on a device at its power limit, as far as it reports them."""

    clocks_hz: tuple[float, float] | None = None
    watts: tuple[float, float] | None = None
    decides: bool = False
    """Whether turns of a second or more decided: in them the sides differ, while short turns share one clock."""


@value
class Paired:
    """One case in two arms. Confirmations are already corrected for the number of cases."""

    decision: Decision
    differences: tuple[float, ...] = ()
    """Logarithms of head over base, one a round, in order."""
    shift: float = 0.0
    """The Hodges-Lehmann shift as a fraction: 0.05 is 5 % slower; the mean where slow processes were found."""
    interval: Interval | None = None
    """Of the shift, as fractions."""
    base: str = ""
    """The commit or revision of the other arm."""
    revision: bool = False
    """Whether the user named a revision: it then judges, and no stored baseline is used."""
    p: float | None = None
    """Of the exact one-sided signed-rank test."""
    threshold: float | None = None
    """The level that ``p`` had to stay below, after Holm."""
    visible: float | None = None
    moved: tuple[tuple[str, str, str], ...] = ()
    """(name, then, now) of what else differs: driver, dependency, machine."""
    problems: tuple[Problem, ...] = ()
    """Problems such as an arm that loaded the other's files, which make it INVALID."""
    unstable: bool = False
    """Whether processes of a side form groups, which is the verdict unless one is confirmed."""
    same: bool = False
    """Whether both sides ran the same code, so that a slowdown is not the code's."""
    faster: bool = False
    """Whether it was shown faster, by the test for regressions; builds of the same code cannot show that."""
    slow: tuple[int, int] | None = None
    """Slow processes of head and base, if those were found slower."""
    tunings: tuple[tuple[str, str], ...] = ()
    """Notes on kernels that were tuned differently on one of the sides."""
    wants_s: float = 0.0
    """Seconds of further rounds that would decide an undecided case; 0 if none are known to help."""
    stands_in: str = ""
    """Which commit is the other arm, and why, if it is not the baseline's."""
    outside: bool = False
    """Whether the test loads nothing of the package, and the same other files on both sides."""
    edited: tuple[str, ...] = ()
    """Files of such a test that the change edits: both arms use the head's, so they were not compared."""
    shared: tuple[str, ...] = ()
    """Files changed since the base that both arms take from the head, so that they were not compared."""
    own_file: str = ""
    """Why the base ran files of its own revision, and which: it could not run the head's, or the edit is in them."""
    own_test: bool = False
    """Whether the test itself differs there, so that both of its versions are part of the comparison."""
    base_ns: float = 0.0  # the median time of a call in the base arm's processes; 0 if unknown
    clocks_hz: tuple[float, float] | None = None
    """The clocks of base and head, if both are known."""
    limited: PowerLimited | None = None
    """Power and clock of both sides, if the power limit held their clocks."""
    figures: tuple[FigurePairs, ...] = ()  # of limits on a change, as both sides read them
    most: int = 30  # the rounds after which an open figure stays open
    further: tuple[float, ...] = ()  # differences of rounds after its decision, which count in a mean over its family

    @property
    def rounds(self) -> int:
        return len(self.differences)

    @property
    def without_rounds(self) -> bool:
        """Whether it was cleared because its code is the same in the base, and no rounds were played."""
        return self.same and self.decision is Decision.NOT_SLOWER and not self.differences


@value
class PairedRound:
    """One case, once in two fresh processes that took turns."""

    nodeid: str
    phase: str
    """``round``, or the phase of a calibration in which one side was kept busy."""
    number: int
    base: tuple[Capture, ...] = ()
    head: tuple[Capture, ...] = ()
    trouble: str = ""
    """Why a side has nothing to compare: it failed there, or the test is only on the other side."""
    seconds: float = 0.0
    share_s: float = 0.0
    """Its share of the wall time of the whole round, including the starts of processes."""
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """What calls of the head raised although the test caught it."""
    died: bool = False
    """Whether a child ended in this test without a message."""
    own: str = ""
    """Why the base ran files of its own revision for the test, and which."""
    base_alone: bool = False
    """Whether the test raised in the base arm and passed in the head's."""
    loaded: tuple[str, ...] = ()
    """Files below the root, of no package, that the head loaded."""
    outside: bool = False  # both sides loaded the same ones, and none of the package
    same: bool = True  # both sides loaded the same code


@value
class ArmSettings:
    """How arms are made, from ``[tool.perfgate]``."""

    mode: str = "auto"
    """``overlay`` installs the package beside its dependencies; ``worktree`` runs inside a checkout."""
    projects: tuple[str, ...] = (".",)
    """Folders with a ``pyproject.toml`` or ``setup.py``, relative to the repository."""
    build: tuple[str, ...] = ()
    """Commands instead of a wheel build; ``{source}``, ``{site}`` and ``{python}`` are filled in."""
    editable: tuple[str, ...] = ()
    """Source folders of other editable dependencies, which an overlay cannot see by itself."""
    tests: tuple[str, ...] = ()
    """Paths that a worktree arm takes from the working copy."""
    timeout_s: float = 900.0
    builds: tuple[tuple[str, str], ...] = ()
    """(project, command) of projects with a build command of their own."""
    packages: tuple[str, ...] = ()
    """Import names by which an arm is checked; empty for all that was built."""
    accepted: str = "baselines"
    """Folder of the baselines below the root, which a build must not take for a package."""
    imported: tuple[str, ...] = ()  # folders below the root that pytest's setting pythonpath names
    missing: str = ""  # the setting that brings in packages of this repository that an overlay hides


@value
class Arm:
    """A prepared side: how to start pytest in it, and what it must have loaded."""

    name: str
    revision: str
    tree: str
    dirty: bool
    mode: str
    python: str
    launch: tuple[str, ...]
    """The command line up to and including pytest."""
    environment: tuple[tuple[str, str], ...]
    """Variables set on top of the caller's: caches that the arms must not share."""
    cwd: str
    root: str
    """Every module of the package under test must lie below this folder."""
    modules: tuple[str, ...]
    """Top-level import names of the package under test."""
    digest: str
    reused: bool = False
    content: str = ""
    """Hash of all files that this side may load as the package under test; "" if it was not taken."""
    sources: tuple[tuple[str, str], ...] = ()
    """(file, hash) of the built code, with which loaded files must agree."""
    missing: str = ""  # what to set where it does not find a module; "" if that is not known


@value
class Leftover:
    """Something that an interrupted run left behind."""

    path: str
    what: str
    fix: str
