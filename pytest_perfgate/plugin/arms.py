"""Comparisons of two arms, base and head, in a session."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.app.changed_project import with_files
from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.conclude import as_at_base, in_open_means
from pytest_perfgate.app.judge import gates_of
from pytest_perfgate.app.lockstep import Stage, TurnTiming
from pytest_perfgate.app.measure import measurements
from pytest_perfgate.app.screening import InOpenMeans, Screening, ToDecide
from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.core.judge.against_revision import arm_limit, arms_of, limit_to_decide, not_compared
from pytest_perfgate.core.judge.policy import by_commit, verdicts_to_decide, with_base
from pytest_perfgate.core.judge.rounds import IN_CI, OFTEN, Design
from pytest_perfgate.core.limits.merge import limits_for
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.core.stats.costs import PairTimes, first_wants, known_wants, pair_cost, starting_guess
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import DIRTY
from pytest_perfgate.model.plan import Compare
from pytest_perfgate.model.protocol import ChildSpec
from pytest_perfgate.model.verdict import Paired, PairedRound
from pytest_perfgate.plugin.child_arguments import (
    arm_arguments,
    child_job,
    code_folders,
    cold_for,
    environment,
    has_free_cores,
    paired_line,
    possible_differences,
    proven_forks,
)
from pytest_perfgate.plugin.reporting import Progress
from pytest_perfgate.plugin.state import share_of
from pytest_perfgate.wiring import read_values, write_values
from pytest_perfgate.wiring.devices import fleet
from pytest_perfgate.wiring.stores import arms, costs_path, read_costs, write_costs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.plan import Case, CaseKey, Limit
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.verdict import Arm, CaseReport
    from pytest_perfgate.plugin.state import SessionState

MERGE_BASE = "@merge-base"
DEVICE_WARMUP_NS = 60e6  # more than on a host: a device takes longer to reach its clocks than caches take to fill


class ArmRunner:
    """Builds base and head, and measures cases in both."""

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self._config, self._project = session.settings.pytest, session.settings.project
        self._progress: Progress | None = None
        self.stopped: dict[CaseKey, str] = {}  # calls left open by a test that failed in a build, with the error
        self.waited: dict[str, str] = {}  # tests whose first round the budget did not reach, with what may decide them
        root, paths = self._config.rootpath, [case.path for case in session.cases.values()]
        self._costs = costs_path(root)
        self._store = arms(root, self._project, paths, code_folders(self._config, paths))
        self._store.tell = lambda text: Progress(self._config, text).close()
        self.arm = cache(self._store.prepare)
        """Returns a build by its name and its revision; of the work tree without one."""

    def against(self, revision: str, cases: Sequence[Case]) -> tuple[Comparison, Mapping[CaseKey, Paired]]:
        """Measure every case in both builds until it is decided."""
        self.session.gate_judge.revision = self._store.git.revision(revision).commit  # raises before costs are said
        design = design_of(self.session)
        comparison = self._comparison(revision, cases, design)
        expected = known_wants((case.nodeid for case in cases), read_costs(self._costs), design.looks[0])
        bounds = Bounds(self.session.gate_judge, comparison)
        screening = Screening(comparison, bounds, 0, bounds.to_decide, expected, in_means(self.session, bounds))
        compared = self._decided(comparison, screening, revision=True)
        self.waited = screening.late.waiting()
        return comparison, compared

    def confirm(self, reports: Mapping[CaseKey, CaseReport], cases: Mapping[str, Case]) -> Mapping[CaseKey, CaseReport]:
        """Decide the cases that the accepted times left open, against the change's base or the commit of a line."""
        gate_judge, ci = self.session.gate_judge, self.session.settings.ci
        base = gate_judge.accepted.base.commit
        means = in_open_means(gate_judge, reports, cases)
        by_its_commit = by_commit(reports, means, ci=ci, base=base)
        changed = as_at_base(gate_judge, self._project.baselines, by_its_commit, reports, cases)
        rest = {commit: [key for key in keys if key not in changed] for commit, keys in by_its_commit.items()}
        to_build = with_base({at: keys for at, keys in rest.items() if keys}, base, partial(same_build, self))
        among = sum(map(len, to_build.values()))
        for commit, keys in to_build.items():
            if self.session.interrupted:  # in the rounds of an earlier commit
                break
            own = {key: (cases[key.nodeid], reports[key]) for key in keys}
            changed.update(self._judged(commit, own, among, means))
        return changed

    def _judged(
        self, commit: str, own: Mapping[CaseKey, tuple[Case, CaseReport]], among: int, means: Collection[CaseKey]
    ) -> Iterator[tuple[CaseKey, CaseReport]]:
        """Yield the cases of one commit, judged by rounds, or, if it cannot be built, by their accepted times alone."""
        try:
            some = [case for case, _ in own.values()], [report for _, report in own.values()]
            result, troubles = self._compare(commit, *some, among, means)
        except PerfgateError as fault:
            report_unbuilt(self._config, commit, len(own), fault)
            for key, (case, report) in own.items():
                if verdicts_to_decide(report, ci=self.session.settings.ci):
                    yield key, self.session.gate_judge.without_arms(case, report, fault)
            return
        for key, (case, report) in own.items():
            if key in result or not self.session.interrupted:
                yield key, judged_by_rounds(self, case, report, result.get(key), troubles.get(key.nodeid, ""))

    def _announced(self, cases: Sequence[Case], design: Design) -> str:
        """Return what the comparison will take, by the costs of earlier ones."""
        costs = {**starting_guess(HOST_CLOCK.process() / 1e9), **read_costs(self._costs)}
        nodeids = {case.nodeid for case in cases}
        return paired_line(len(nodeids), design, self.session.left_s(), pair_cost(nodeids, costs))

    def _compare(
        self, commit: str, cases: Sequence[Case], reports: Sequence[CaseReport], among: int, means: Collection[CaseKey]
    ) -> tuple[Mapping[CaseKey, Paired], Mapping[str, str]]:
        """Return the results of base and head for some of the open cases, and the errors of tests that failed there."""
        if not commit:
            raise PerfgateError("arm-no-commit", "the baseline names no commit to compare with")
        substitute, why = substitute_commit(self.session, commit)
        is_base = substitute == self.session.gate_judge.accepted.base.commit
        whose = f"{substitute[:10]}, {'the base of the change' if is_base else 'which the accepted times name'}"
        design = replace(design_of(self.session), clears_same=True)
        comparison = self._comparison(substitute, list(dict.fromkeys(cases)), design, whose)
        others = Bounds(self.session.gate_judge, comparison)
        rounds = 1 if all(map(comparison.has_same_code, comparison.cases)) else design.looks[0]
        needs, open_ = first_wants(reports, read_costs(self._costs), rounds), in_means(self.session, others, means)
        screening = Screening(comparison, bounds_of(reports, others), among, others.to_decide, needs, open_)
        compared = self._decided(comparison, screening, revision=False)
        troubles = screening.late.waiting() | comparison.troubles()
        return {key: replace(paired, stands_in=why) for key, paired in compared.items()}, troubles

    def _decided(self, comparison: Comparison, screening: Screening, *, revision: bool) -> Mapping[CaseKey, Paired]:
        """Run a comparison to its end and delete its finished rounds; of an interrupted one, return what it decided."""
        try:
            screening.decide()
        except KeyboardInterrupt:
            self.session.interrupted = True
        finally:
            if self._progress is not None:
                self._progress.close()
            write_costs(self._costs, PairTimes(comparison.rounds).costs)
            for round_ in comparison.rounds:
                self.session.costs[round_.nodeid] = self.session.costs.get(round_.nodeid, 0.0) + 2 * round_.seconds
        if self.session.interrupted:
            result, untimed = screening.settled(revision=revision), {}
        else:
            rounds_path(self._config.rootpath, comparison.arms).unlink(missing_ok=True)
            result, untimed = screening.paired(revision=revision), screening.untimed(revision=revision)
            self.session.resumable = False
        self.stopped.update(screening.stopped())
        repository, baselines = self.session.gate_judge.tools.repository, self._project.baselines
        tests = {case.path for case in self.session.cases.values()}
        return {**untimed, **with_files(result, comparison, tests, self._config.rootpath, repository, baselines)}

    def _comparison(self, revision: str, cases: Sequence[Case], design: Design, whose: str = "") -> Comparison:
        both = self.arm("base", revision), self.arm("head", "")
        comparison = Comparison(both, cases, self._stage(both), design)
        once = design.clears_same and all(map(comparison.has_same_code, comparison.cases))
        text = f"{plural(len(cases), 'test')} in one round of the same code" if once else self._announced(cases, design)
        self._progress = Progress(self._config, (whose and f"against {whose}: ") + text)
        comparison.resume(finished_rounds(rounds_path(self._config.rootpath, both), self._write_progress))
        if finished := len({(round_.phase, round_.number) for round_ in comparison.rounds}):
            self._write_progress(f"{plural(finished, 'round')} of a run that was cut short")
        if comparison.same:
            self._write_progress(possible_differences(self.session, comparison))
        return comparison

    def _stage(self, both: tuple[Arm, Arm]) -> Stage:
        remaining, cpus = self.session.left_s(), one_core(list(self.session.cases.values()))
        return Stage(
            spawner=self.session.gate_judge.tools.spawner,
            spec=partial(arm_spec, self._config, self._project),
            job=replace(child_job(self._config), cpus=cpus),
            timeout_s=self._project.timeout,
            budget_s=max(remaining, 1.0) if isfinite(remaining) else 0.0,
            clock=seconds,
            timing=TurnTiming() if cpus else TurnTiming(warmup_ns=DEVICE_WARMUP_NS),
            early=has_free_cores(),
            hold=fleet(self._write_progress).hold,
            forks=proven_forks(self._project, self._config.rootpath),
            overlaid=self._project.test_paths,
            texts=file_texts(self.session, both[0].revision),
            say=self._write_progress,
            show=lambda *at: self._progress.show_pair(*at) if self._progress is not None else None,
            keep=FinishedRounds(rounds_path(self._config.rootpath, both), self.session, self._write_progress),
        )

    def _write_progress(self, text: str) -> None:
        if self._progress is not None:
            self._progress.tell(text)


def arm_spec(config: Any, project: Config, arm: Arm, cases: Sequence[Case], seed: int) -> ChildSpec:
    """Return the process of one build for a round; the seed is that of its hashes."""
    env = {**environment(os.environ.items(), arm.cwd), **dict(arm.environment), **cold_for(cases)}
    env |= {"PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}  # compile nothing in the user's folders
    env.pop("PYTHONPYCACHEPREFIX", None)
    return ChildSpec(
        argv=tuple(arm_arguments(config, cases, arm)),
        python=arm.launch,
        label=f"the {arm.name} build",
        cwd=Path(arm.cwd),
        env=tuple(sorted(env.items())),
        prefix=project.launcher,
    )


def judged_by_rounds(runner: ArmRunner, case: Case, report: CaseReport, paired: Paired | None, why: str) -> CaseReport:
    """Return a case judged by its rounds; ``why`` says what prevented them."""
    gate_judge, key = runner.session.gate_judge, report.key
    if not verdicts_to_decide(report, ci=runner.session.settings.ci):  # it counts in a mean
        return replace(report, builds=arms_of(paired, revision=False))
    if failure := runner.stopped.get(key):
        return replace(gate_judge.unmeasured(case, key, failure), measurement=report.measurement)
    if paired is None:
        return gate_judge.without_arms(case, report, None, why)
    if paired.edited:
        return gate_judge.without_arms(case, report, None, not_compared(paired))
    return gate_judge.with_arms(case, report, paired)


def report_unbuilt(config: Any, commit: str, cases: int, fault: PerfgateError) -> None:
    """Say once, before the tests run, that base and head cannot be built, and why."""
    by_builds = f"by base and head ({commit[:10]})" if commit else "by base and head"
    text = f"{plural(cases, 'case')} not decided {by_builds}: {fault.what.splitlines()[0]}; only accepted times judge"
    Progress(config, text).close()


def design_of(session: SessionState) -> Design:
    """Return the number of rounds and the error rate; a shard has its part of the run's false-alarm rate."""
    from pytest_perfgate.core.judge.family import family_limits, rounds_needed

    rounds = session.settings.options.perfgate_rounds or 0
    most = rounds if rounds > OFTEN else IN_CI if session.settings.ci else OFTEN
    means = sum(map(len, family_limits(session.cases.values()).values()))
    share = share_of(session.settings.pytest)
    return Design(most=most, alpha=Design().alpha * share, least=rounds_needed(means / share) if means else 0)


def in_means(session: SessionState, bounds: Bounds, among: Collection[CaseKey] | None = None) -> InOpenMeans:
    """Return the function that finds the cases of means that rounds leave open, of all means or among some cases."""
    from pytest_perfgate.core.judge.family import family_limits, open_in_rounds

    families, context = family_limits(session.cases.values()), session.gate_judge.context

    def in_open_means(differences: Mapping[CaseKey, tuple[float, ...]]) -> set[CaseKey]:
        played = {key: rounds for key, rounds in differences.items() if among is None or key in among}
        measured = {key: (bounds.of(key).measurement, rounds) for key, rounds in played.items()}
        return open_in_rounds(families, context, measured)

    return in_open_means


class CallLimits(NamedTuple):
    """What one call has to keep."""

    slowdown: float  # the one that it may have, by all its limits
    limits: tuple[Limit, ...]
    measurement: Measurement  # the first one, for which the limits were read


class Bounds:
    """The slowdown that each call may have, known once the call was measured."""

    def __init__(self, gate_judge: GateJudge, comparison: Comparison) -> None:
        self._gate_judge, self._comparison = gate_judge, comparison
        self._known: dict[CaseKey, CallLimits] = {}
        self._to_decide: dict[CaseKey, ToDecide] = {}
        self._gates: dict[int, int] = {}

    def __call__(self, key: CaseKey) -> float:
        return self.of(key).slowdown

    def to_decide(self, key: CaseKey) -> ToDecide:
        """Return what the limits of a call require of a comparison."""
        if key not in self._to_decide:
            limits = limits_for(self.of(key).limits, key)
            changes = tuple(limit for limit in limits if limit.compare is not Compare.FIGURE)
            times = any("slowdown" in limit.text for limit in limits)
            self._to_decide[key] = ToDecide(time=times, changes=changes, gates=self._gates_so_far())
        return self._to_decide[key]

    def _gates_so_far(self) -> int:
        """Return how many figures share the false-alarm rate; counted once a round, since calls appear with rounds."""
        played, context = len(self._comparison.rounds), self._gate_judge.context
        if played not in self._gates:
            gates = gates_of(self._comparison.results().values(), context.share)
            self._gates = {played: max(context.gates, gates)}
        return self._gates[played]

    def of(self, key: CaseKey) -> CallLimits:
        if key not in self._known:
            for result in self._comparison.results().values():
                for each in measurements(result, self._gate_judge.tools):
                    limits = self._limits(result.case, each)
                    self._known[each.key] = CallLimits(arm_limit(limits, each.key, each.device), limits, each)
        return self._known[key]

    def _limits(self, case: Case, measurement: Measurement) -> tuple[Limit, ...]:
        try:
            return self._gate_judge.limits(case, measurement)
        except PerfgateError:  # an unreadable limit fails its test when that is judged
            return case.limits


def bounds_of(reports: Sequence[CaseReport], others: Bounds) -> Callable[[CaseKey], float]:
    """Return the slowdown that calls may have: by their verdicts; other calls of the same tests by their limits."""
    judged = {report.key: limit_to_decide(report) for report in reports}
    return lambda key: judged[key] if key in judged else others(key)


def rounds_path(root: Path, both: tuple[Arm, Arm]) -> Path:
    """Return the file of finished rounds of these two trees, from which an interrupted run resumes."""
    return root / ".perfgate" / "rounds" / f"{'-'.join(arm.digest[:10] for arm in both)}.bin"


def same_build(runner: ArmRunner, commit: str, base: str) -> bool:
    """Return whether two commits hold the same code; False if one cannot be built, which its comparison reports."""
    try:
        then, now = runner.arm("accepted", substitute_commit(runner.session, commit)[0]), runner.arm("base", base)
    except PerfgateError:
        return False
    return bool(then.content) and (then.content, then.modules) == (now.content, now.modules)


def one_core(cases: Sequence[Case]) -> tuple[int, ...]:
    """Return the core that both sides share: without pinning, rounds scatter several times as much."""
    elsewhere = any(case.plan.runtime not in {"auto", "host"} or case.plan.devices > 1 for case in cases)
    if elsewhere or not hasattr(os, "sched_getaffinity"):
        return ()
    return (max(os.sched_getaffinity(0)),)


def finished_rounds(path: Path, say: Callable[[str], None]) -> list[PairedRound]:
    """Return the finished rounds of the same two trees; an unreadable file is reported and counts as empty."""
    try:
        return read_values(path, PairedRound)
    except PerfgateError as fault:
        say(f"rounds of an earlier run cannot be read and are measured again: {fault.what}")
        return []


class FinishedRounds:
    """Writes the finished rounds after each round; if that fails, the run goes on and cannot be resumed."""

    def __init__(self, path: Path, session: SessionState, say: Callable[[str], None]) -> None:
        self._path, self._session, self._write_progress, self._refused = path, session, say, False

    def __call__(self, rounds: Sequence[PairedRound]) -> None:
        try:
            write_values(self._path, rounds)
        except PerfgateError as fault:
            self._session.resumable = False
            if not self._refused:
                self._write_progress(f"finished rounds cannot be kept for an interrupted run: {fault.what}")
            self._refused = True
        else:
            self._session.resumable = True


def substitute_commit(session: SessionState, commit: str) -> tuple[str, str]:
    """Return the commit of a line, or the commit that brought the line in if this clone lacks it, with the reason.

    Commits of the change under test do not qualify: then both arms would hold the code that is judged.
    """
    repository = session.gate_judge.tools.repository
    if repository is None or commit.endswith(DIRTY) or commit not in repository.missing((commit,)):
        return commit, ""
    base = session.gate_judge.accepted.base.commit or "HEAD"
    commits = repository.brought(commit, session.settings.project.baselines, base)
    brought_in = f"{commit[:10]} is not in this clone; {commits[:10]} brought its line in"
    return (commits, brought_in) if commits else (commit, "")


def file_texts(session: SessionState, base: str) -> Callable[[str], tuple[str | None, str]]:
    """Return a function that reads a file of the tests at the base, or None if it is not there, and here."""
    repository, root = session.gate_judge.tools.repository, session.settings.pytest.rootpath

    def texts(path: str) -> tuple[str | None, str]:
        then, here = repository.show(base, path) if repository is not None else None, root / path
        return then, here.read_text(encoding="utf-8", errors="replace") if here.is_file() else ""

    return texts
