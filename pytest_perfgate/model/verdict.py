"""Verdict, case report, paired comparison, arm."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from pytest_perfgate.model.measurement import Baseline, Environment, Measurement
from pytest_perfgate.model.metric import Figure, FigurePairs, Interval, Metric, Problem
from pytest_perfgate.model.plan import CaseKey, Decision, Effect, Limit, Outcome, Policy
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.values import first_of, value

THEN = "then"
"""The name of the fact that stands where a stored baseline would: what the other arm took."""


@value
class Verdict:
    """One limit judged: outcome, the numbers it rests on, what to do next."""

    limit: Limit
    outcome: Outcome
    effect: Effect
    metric: Metric | None = None
    baseline: Baseline | None = None
    visible: float | None = None
    """The smallest slowdown this measurement could have seen."""
    sentence: str = ""
    """Why, in one sentence."""
    next: tuple[str, ...] = ()
    """Commands that help."""
    evidence: tuple[tuple[str, str], ...] = ()
    """Labelled facts for the block: ``("why", "shared memory 96 -> 114 KiB")``."""
    rounds: int = 0
    interval: Interval | None = None
    raised: float | None = None
    """What the absolute floor raised the limit to: less, a timer of short calls cannot tell."""
    figure: Figure | None = None
    """Of a limit on a change: the accepted figure that ``metric`` was held against."""

    def without_figures(self, why: str) -> Verdict:
        """What it came to, for a record that cannot hold its figures."""
        return Verdict(limit=self.limit, outcome=self.outcome, effect=self.effect, sentence=f"{self.sentence}; {why}")


class Excuse(str, Enum):
    """What became of a test that keeps its verdicts from failing the run."""

    NONE = ""
    NOT_RUN = "not run"
    """Skipped, or failed by itself: pytest says so, and the gate adds no failure of its own."""
    EXPECTED_TO_FAIL = "expected to fail"
    """``xfail``: its failures are warnings."""

    def soften(self, effect: Effect) -> Effect:
        """What is left of the effect of a verdict."""
        if self is Excuse.NOT_RUN:
            return Effect.PASS
        return Effect.WARN if self is Excuse.EXPECTED_TO_FAIL and effect is Effect.FAIL else effect


@value
class Arms:
    """The arms that a slowdown rests on, where the user named a revision: no accepted time is asked then."""

    base: str
    same: bool = False
    """Both ran the same code: whatever is slower then, it is not the code."""
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
    unheld: str = ""
    """Why its slowdown speaks for nothing, such as an accepted time that was measured differently."""
    accepts: Baseline | None = None
    """The line with which the change under test accepts another time, with a reason of its own."""
    arms: Arms | None = None
    """What its slowdown is against; nothing where that is the accepted time."""
    excuse: Excuse = Excuse.NONE

    def effect_of(self, verdict: Verdict) -> Effect:
        """What one of its verdicts does to the run."""
        return self.excuse.soften(verdict.effect)

    @property
    def effect(self) -> Effect:
        effects = {self.effect_of(v) for v in self.verdicts}
        return next((e for e in (Effect.FAIL, Effect.WARN) if e in effects), Effect.PASS)

    @property
    def worst(self) -> Outcome:
        order = list(Outcome)
        return max((v.outcome for v in self.verdicts), key=order.index, default=Outcome.NOT_MEASURED)


@value
class SuiteNote:
    """A verdict on the suite: dropped tests, unused baselines, limits that apply nowhere."""

    kind: str
    effect: Effect
    text: str
    names: tuple[str, ...] = ()

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Names that the text does not have."""
        return tuple(name for name in self.names if name not in self.text)

    @property
    def sentence(self) -> str:
        """The text, and ten of the names at most."""
        return f"{self.text}: {first_of(self.unsaid, 10)}" if self.unsaid else self.text


@value
class Universe:
    """Every gated test that a run collected before it was divided into shards, and what they are held to."""

    cases: tuple[tuple[str, tuple[Limit, ...]], ...] = ()
    """Node ids, sorted, with their limits."""
    policy: Policy = Policy()


@value
class Shard:
    """The part of a run that one pytest process measured; a run that was not divided is shard 1 of 1."""

    run: str = ""
    """An id that no other process has."""
    index: int = 1
    count: int = 1
    universe: Universe = Universe()
    chosen: tuple[int, ...] = ()
    """Which cases of the universe are its own, by their place there."""
    split: str = ""
    """Digest of the costs by which the run was divided; empty where it was divided by names alone."""
    host: str = ""
    device: str = ""
    """Key of the device that it measured on, or would have."""
    cards: tuple[str, ...] = ()
    """Devices that it measured on: UUID, or PCI address where there is none."""
    changes: str = ""
    """Digest of what made its work tree other than the commit."""
    facts: str = ""
    """Digest of what surrounded the measurements."""
    environment: Environment = Environment()
    started: str = ""
    seconds: float = 0.0
    complete: bool = True
    filtered: bool = False
    """The command line left tests out before the run was divided."""
    status: int = 0
    costs: tuple[tuple[str, float], ...] = ()
    """Seconds that measuring each of its tests took."""

    @property
    def names(self) -> tuple[str, ...]:
        """Node ids of its own cases."""
        return tuple(self.universe.cases[at][0] for at in self.chosen)

    @property
    def share(self) -> float:
        """The part of the run that is its own: what it may spend of the chance of a false alarm."""
        return len(self.chosen) / len(self.universe.cases) if self.universe.cases else 1.0


@value
class RunReport:
    """All of a run: what the record file holds and every report is rendered from."""

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
    """How pytest ended, for tests that failed for another reason than their limits."""
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
    """Names the comment that is edited; empty for that of the job and its devices."""
    only_changes: bool = False
    dry_run: bool = False


@value
class Annotation:
    """A remark beside a test in the view of a change."""

    path: str
    test: str
    """The name of its function."""
    level: str
    """``failure`` or ``warning``."""
    title: str
    message: str


@value
class PowerLimited:
    """Base and head of a comparison on a device at its power limit, as far as it tells."""

    clocks_hz: tuple[float, float] | None = None
    watts: tuple[float, float] | None = None
    decides: bool = False
    """Whether turns of a second or more decided: the sides differ in them, and short turns share one clock."""


@value
class Paired:
    """One case in two arms. Convictions across a suite are corrected before they get here."""

    decision: Decision
    differences: tuple[float, ...]
    """Logarithms of head over base, one a round, in order."""
    shift: float
    """The Hodges-Lehmann shift as a fraction: 0.05 is 5 % slower."""
    interval: Interval | None = None
    """Of the shift, as fractions."""
    base: str = ""
    """The commit or revision of the other arm."""
    revision: bool = False
    """True when the user named a revision: it is then judged by, and no stored baseline is asked."""
    p: float | None = None
    """Of the exact one-sided signed-rank test."""
    threshold: float | None = None
    """What ``p`` had to stay below, after Holm."""
    visible: float | None = None
    moved: tuple[tuple[str, str, str], ...] = ()
    """(name, then, now) of the driver, the dependency, the machine: what else differs."""
    problems: tuple[Problem, ...] = ()
    """An arm that loaded the other's files, and the like: INVALID, never a verdict."""
    unstable: bool = False
    """Processes of a side stand in groups: where nothing is confirmed, that is the verdict."""
    same: bool = False
    """Both sides ran the same code: whatever is slower then, it is not the code."""
    faster: bool = False
    """Shown faster, as a regression would be shown."""
    slow: tuple[int, int] | None = None
    """Slow processes of head and base, where those are what was found slower."""
    tunings: tuple[tuple[str, str], ...] = ()
    """What is said of kernels whose tuning chose otherwise on one of the sides."""
    wants_s: float = 0.0
    """Seconds of further rounds that would decide what is undecided; 0 where none are known to help."""

    stands_in: str = ""
    """Where the other arm is not the commit that the baseline names: which it is, and why."""
    bare: bool = False
    """The test loads nothing of the package, and the same files beside it on both sides."""
    edited: tuple[str, ...] = ()
    """Files beside such a test that the change edits: they are the head's in both arms, and were not compared."""
    shared: tuple[str, ...] = ()
    """Files that are other ones since the base, and that both arms take from the head: nobody compared what they do."""
    own_file: str = ""
    """Why the base arm ran its own revision's test file: it could not collect the head's, or failed at this test."""
    own_test: bool = False
    """The test itself is another one there: both versions of it are part of what was compared."""
    base_ns: float = 0.0
    """What a call took in the base arm, the middle of its processes; 0 where nobody knows."""
    clocks_hz: tuple[float, float] | None = None
    """The clocks that base and head ran at, where both are known."""
    limited: PowerLimited | None = None
    """What the sides drew and ran at, where the power limit held their clocks."""
    figures: tuple[FigurePairs, ...] = ()
    """Figures that limits on a change are about, as both sides read them."""

    @property
    def rounds(self) -> int:
        return len(self.differences)

    @property
    def unbuilt(self) -> bool:
        """Neither side was built: the change edits nothing that code loads or reads."""
        return self.same and self.decision is Decision.NOT_SLOWER and not self.differences


@value
class PairedRound:
    """One case, once in two fresh processes that took turns."""

    nodeid: str
    phase: str
    """``round``, or that of a calibration in which one side was kept busy."""
    number: int
    base: tuple[Capture, ...] = ()
    head: tuple[Capture, ...] = ()
    trouble: str = ""
    """Why a side has nothing to compare: it failed there, or the test is on the other side only."""
    seconds: float = 0.0
    share_s: float = 0.0
    """Its share of the wall time of the whole round, the starting of processes included."""
    raised: tuple[tuple[CaseKey, str], ...] = ()
    """What calls of the head raised while the test caught it."""
    died: bool = False
    """A child ended in this test, and did not say so."""
    own: str = ""
    """Why the base ran its own version of the test file."""
    base_alone: bool = False
    """The test raised in the base arm and passed in the head's."""


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
    """(project, command) of projects that are built by a command of their own."""
    packages: tuple[str, ...] = ()
    """Import names that the proof of an arm speaks of; none means all that was built."""
    accepted: str = "baselines"
    """Folder of the baselines below the root, which a build must not take for a package."""


@value
class Arm:
    """A prepared side: how to start pytest in it, and what it must prove to have loaded."""

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
    """Hash of all files that this side may load as the package under test; empty where it was not taken."""
    sources: tuple[tuple[str, str], ...] = ()
    """(file, hash) of the code that was built: what is loaded must be that."""


@value
class Leftover:
    """Something that an interrupted run left behind."""

    path: str
    what: str
    fix: str


class ArmStore(Protocol):
    """Makes arms, keeps them for the next run, and finds what was left behind."""

    def prepare(self, name: str, revision: str) -> Arm:
        """The arm of a commit; an empty revision means the working copy as it stands."""

    def leftovers(self) -> tuple[Leftover, ...]: ...

    def remove(self) -> None:
        """Delete every arm and its registration."""
