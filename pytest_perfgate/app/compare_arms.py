"""Runs rounds of two builds, base and head: their times, their figures, and the tests that fail in one."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.lockstep import BASE, HEAD, LockstepPair, PairedCall, base_alone, timers_of
from pytest_perfgate.app.measure import FATAL, metrics_of_capture, one_child_each
from pytest_perfgate.app.spread import NextRound, leases, one_a_draw, widen_scatter
from pytest_perfgate.core.changes.own_files import OwnFiles
from pytest_perfgate.core.judge.against_revision import foreign_modules, same_code
from pytest_perfgate.core.judge.samples import pair_of, untimed
from pytest_perfgate.core.limits.merge import scope_within, tails_in
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.core.stats.costs import PairTimes, left_words
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import FigurePairs, matches
from pytest_perfgate.model.plan import LEAST, Case, CaseKey
from pytest_perfgate.model.protocol import Capture, CaseResult, ChildJob, code_alone
from pytest_perfgate.model.verdict import Arm, PairedRound

if TYPE_CHECKING:
    from pytest_perfgate.app.lockstep import Stage
    from pytest_perfgate.core.judge.rounds import Design, Pairs
    from pytest_perfgate.model.metric import Labels, Metric, Problem
    from pytest_perfgate.model.plan import Limit

ROUND = "round"


def _missing(arm: Arm, error: str) -> str:
    inside = "set build in [tool.perfgate] to the commands that make it: a checkout has no file that git ignores"
    other = "list its folder in [tool.perfgate]: in 'projects' if it is in this repository, else in 'editable'"
    if "ModuleNotFoundError" in error:
        return f"; next: {arm.missing or (inside if arm.mode == 'worktree' else other)}"
    return f"; next: {inside}" if arm.mode == "worktree" and "no such file" in error.lower() else ""


def phase_of(by: float) -> str:
    """Return the phase of calibration rounds in which the head was slowed by this part."""
    return f"slower {by:g}"


Figures = Mapping["tuple[str, Labels]", "Metric"]

Over = Callable[[], Iterable[str]]  # returns cases for which further rounds change nothing; called after each round


class Comparison:
    """Rounds of a base and a head arm over some cases."""

    def __init__(self, arms: tuple[Arm, Arm], cases: Sequence[Case], stage: Stage, design: Design) -> None:
        self.arms, self.stage, self.design = arms, stage, design
        self.cases = {case.nodeid: case for case in cases}
        self.rounds: list[PairedRound] = []
        self.problems: dict[str, Problem] = {}
        self.same = bool(arms[BASE].content) and arms[BASE].content == arms[HEAD].content  # and loaded the same so far
        self.out, self.start_s = set[str](), 0.0  # seconds of the last round, outside its tests
        self.bare = set[str]()  # tests that load the same files on both sides and none of the package
        self.beside: dict[str, tuple[str, ...]] = {}  # files below the root, of no package, that a test's head loaded
        self.own = OwnFiles(stage.texts, cases if self.same else ())
        self.next = NextRound(stage, arms, self.own)
        self.figures: dict[tuple[int, int, CaseKey], Figures] = {}  # of a side's call, by the position of its round
        self.times, self.begun, self.waits = PairTimes(()), 0.0, False  # whether tests waited for others, by the budget
        self._seconds: Mapping[str, float] = {}
        self._reckoned = self._last = 0  # rounds of the part that is played
        self._until = stage.clock() + stage.budget_s if stage.budget_s else math.inf

    def resume(self, rounds: Iterable[PairedRound]) -> None:
        """Continue with the rounds that an interrupted run of the same arms kept."""
        self.rounds, self._reckoned = [round_ for round_ in rounds if round_.nodeid in self.cases], 0
        self.out = {round_.nodeid for round_ in self.rounds if _fails(self.rounds, round_.nodeid)}
        self.own.take_again([(self.cases[round_.nodeid], round_.own) for round_ in self.rounds])
        self.beside = {round_.nodeid: round_.beside for round_ in self.rounds}
        self.bare = {round_.nodeid for round_ in self.rounds if round_.bare}
        self.same = self.same and all(round_.same for round_ in self.rounds)
        _take_edited(self, self.cases.values())

    def has_same_code(self, nodeid: str) -> bool:
        """Return whether both sides have the same code of a test, its own file included."""
        return self.same and not self.own.reason(nodeid)

    @property
    def left_s(self) -> float:
        """Return the seconds that are left of the budget."""
        return self._until - self.stage.clock()

    def cost(self, nodeid: str) -> float:
        """Return the seconds of a case in one round so far; all are computed again only after new rounds."""
        if self._reckoned != len(self.rounds):
            self._seconds, self._reckoned = PairTimes(self.rounds).usual, len(self.rounds)
        return self._seconds.get(nodeid, 0.0)

    def play(self, phase: str, counts: Mapping[str, int], over: Over = lambda: ()) -> None:
        """Run this many rounds of each open case together; the budget may end them between two rounds."""
        self._last = max(counts.values(), default=0)
        for number in range(self._last):
            done = {round_.nodeid for round_ in self.rounds if (round_.phase, round_.number) == (phase, number)}
            ended = done | self.out | _read(self.rounds) | set(over())
            remaining = [self.cases[name] for name, count in counts.items() if count > number and name not in ended]
            if remaining and self.start_s + sum(self.cost(case.nodeid) for case in remaining) > self.left_s:
                return
            while remaining:
                group = next(filter(None, one_child_each(self.own.same_version(remaining))))
                remaining = [*self._run_round(phase, number, group), *(case for case in remaining if case not in group)]
            if not self.problems:  # rounds of an arm that loaded foreign files are not kept
                self.stage.keep(self.rounds)

    def pairs(self, phase: str) -> dict[CaseKey, Pairs]:
        """Return one number for each process, by key."""
        captures = captures_of(self.rounds, phase)
        return {key: widen_scatter(pair_of(both), both[-1][HEAD], self.stage.forks) for key, both in captures.items()}

    def results(self) -> dict[str, CaseResult]:
        """Return the head's results in the form of a measuring run."""
        return _results(self.cases, self.rounds)

    def troubles(self) -> dict[str, str]:
        """Return the first reason of each test that did not run on both sides, or was not timed there."""
        return _troubles(self.arms, self.rounds)

    def _run_round(self, phase: str, number: int, cases: list[Case]) -> list[Case]:
        """Run all cases in two fresh processes; if one dies, return the rest for new ones."""
        seed, self.begun, before = 1 + number, self.stage.clock(), len(self.rounds)  # both sides have the seed
        wanted, children = self.next.open(cases, seed, self.rounds)
        early, version = bool(children), self.own.version(cases[0].nodeid)
        try:
            for start in wanted[len(children) :]:  # one by one: the first is ended if the second does not start
                children.append(self.stage.spawner.spawn(start.spec))
            sides = (children[BASE], children[HEAD])
            pair = LockstepPair(sides, self.stage.timeout_s, self.stage.timing, head_first=seed % 2 == 0)
            finished = self._played(pair, phase, number, cases, [start.job for start in wanted])
        except PerfgateError as fault:
            standing = pair.standing if len(children) > 1 else ""
            if early and not standing and len(self.rounds) == before:
                return self.next.refuse(fault, cases)  # newly started ones show whether the waiting was the cause
            return self._after_death(fault, standing, (phase, number), cases)
        finally:
            for child in children:
                child.close()
        if finished:
            self._check_modules(pair, cases, own=any(version))
        edited = _take_edited(self, cases)
        self.rounds[before:] = [round_ for round_ in self.rounds[before:] if round_.nodeid not in edited]
        lost = [case for case in cases if case.nodeid not in finished - edited]
        self.own.take([case for case in lost if case.nodeid in pair.nodeids[HEAD]], pair.errors[BASE])
        again = [case for case in lost if self.own.version(case.nodeid) != version]
        for case in (case for case in lost if case not in again):
            self._note(phase, number, case.nodeid, _one_sided(pair, case.nodeid, self.arms, self.own.reason))
        self.start_s, self.rounds[before:] = _shared(self, self.rounds[before:])
        return again

    def _played(
        self, pair: LockstepPair, phase: str, number: int, cases: Sequence[Case], jobs: Sequence[ChildJob]
    ) -> set[str]:
        def ahead() -> None:
            if pair.untouched and number + 1 < self._last:
                self.next.begin(cases, number + 2, self.rounds)

        finished, last = set(), max(self._last, self.design.last if phase == ROUND else 0)
        for call in pair.play(jobs, ahead, timers_of(self.rounds)):
            if base_alone(call) and self.own.falls_back(self.cases[call.nodeid], call.finished[BASE].text):
                continue
            self.rounds.append(_round(call, phase, number, self.own.reason(call.nodeid), self.arms))
            finished.add(call.nodeid)
            if self.stage.show is not None:
                place = f"round {number + 1} of up to {last}{_eta(self, (phase, number), cases, len(finished))}"
                self.stage.show(place, len(finished), call.nodeid)
            if self.rounds[-1].trouble and _fails(self.rounds, call.nodeid):
                self.out.add(call.nodeid)
        return finished

    def _after_death(self, fault: PerfgateError, standing: str, at: tuple[str, int], cases: list[Case]) -> list[Case]:
        has = {round_.nodeid for round_ in self.rounds if (round_.phase, round_.number) == at}
        if not standing and has.isdisjoint(c.nodeid for c in cases) and self.own.take_conftests(cases, fault.what):
            return cases  # those that share a version of their files start again together
        lost = [standing] if standing else [case.nodeid for case in cases if case.nodeid not in has]
        why = fault.what + ("" if standing else _missing(self.arms[BASE], fault.what))
        for nodeid in lost:
            self._note(*at, nodeid, why, died=bool(standing) and fault.code.name in FATAL)
        return [case for case in cases if case.nodeid not in {*lost, *has}]

    def _note(self, phase: str, number: int, nodeid: str, why: str, *, died: bool = False) -> None:
        self.out.add(nodeid)
        self.rounds.append(PairedRound(nodeid=nodeid, phase=phase, number=number, trouble=why, died=died))

    def _check_modules(self, pair: LockstepPair, cases: Iterable[Case], *, own: bool) -> None:
        """Check what both arms loaded: an arm with files of the other makes the comparison invalid."""
        files = tuple(path for path, _ in pair.beside[HEAD])
        self.beside.update({case.nodeid: files for case in cases})
        if len({bool(arm.modules) for arm in self.arms}) == 1 and not any(pair.modules):
            if alike := pair.beside[BASE] == pair.beside[HEAD]:
                self.bare.update(case.nodeid for case in cases)
            self.same = self.same and (alike or own)
            return
        foreign = ((arm, foreign_modules(arm, loaded, own=own)) for arm, loaded in zip(self.arms, pair.modules))
        self.problems.update({arm.name: problem for arm, problem in foreign if problem is not None})
        self.same = self.same and (own or same_code(*pair.modules))  # own files may import other modules


def _take_edited(comparison: Comparison, cases: Iterable[Case]) -> frozenset[str]:
    alone = [case for case in cases if comparison.same or case.nodeid in comparison.bare]
    return comparison.own.take_edited(alone, comparison.beside if comparison.arms[BASE].mode == "overlay" else {})


@contextmanager
def hold_leases(comparison: Comparison) -> Iterator[None]:
    """Hold the leases of the cases' devices until the last round, since contexts stay on them."""
    with comparison.stage.hold(leases(comparison.rounds)), closing(comparison.next):
        yield


def _fails(rounds: Iterable[PairedRound], nodeid: str) -> bool:
    """Return whether a test failed in more than half of its rounds: a single process decides nothing."""
    failed = [bool(round_.trouble) for round_ in rounds if round_.nodeid == nodeid]
    return 2 * sum(failed) > len(failed)


def stopped(comparison: Comparison) -> dict[str, str]:
    """Return tests that get no further rounds although they ran in both arms before, with the error."""
    ran = {round_.nodeid for round_ in comparison.rounds if not round_.trouble}
    return {nodeid: why for nodeid, why in comparison.troubles().items() if nodeid in comparison.out & ran}


def _read(rounds: Iterable[PairedRound]) -> set[str]:
    """Return cases of machine code alone: one round is enough, since it is the same in every process."""
    return {round_.nodeid for round_ in rounds if code_alone(round_.head)}


def _shared(comparison: Comparison, fresh: Sequence[PairedRound]) -> tuple[float, list[PairedRound]]:
    """Return a round's time outside its tests, and its results with an equal share of it and what they loaded."""
    start_s = max(0.0, comparison.stage.clock() - comparison.begun - sum(round_.seconds for round_ in fresh))
    share_s, beside, bare, same = start_s / max(len(fresh), 1), comparison.beside, comparison.bare, comparison.same
    shared = []
    for round_ in fresh:
        nodeid, spent_s = round_.nodeid, round_.seconds + share_s
        shared.append(replace(round_, beside=beside.get(nodeid, ()), bare=nodeid in bare, same=same, share_s=spent_s))
    return start_s, shared


def _eta(comparison: Comparison, at: tuple[str, int], cases: Sequence[Case], finished: int) -> str:
    """Return ``, test 1 of 3, at least 8 s, at most 6 min left``; the estimate from the second round on."""
    (phase, number), place = at, f", test {finished:,} of {len(cases):,}"
    if phase != ROUND or not number or not comparison.start_s:
        return place
    if finished == 1:
        started_s = comparison.stage.clock() - comparison.begun - comparison.rounds[-1].seconds
        comparison.times = PairTimes(comparison.rounds, started_s)
    else:
        comparison.times.add(comparison.rounds[-1])
    rounds = (max(0, LEAST - number - 1), max(0, comparison.design.last - number - 1))
    least_s, most_s = comparison.times.left_s([case.nodeid for case in cases], finished, rounds)
    most_s = max(0.0, min(math.inf if comparison.waits else most_s, comparison.left_s))
    return f"{place}, {left_words(min(least_s, most_s), most_s)}"


def _troubles(arms: Sequence[Arm], rounds: Sequence[PairedRound]) -> dict[str, str]:
    untimed = {key.nodeid: why for key, why in untimed_in(arms, rounds).items()}
    return untimed | {round_.nodeid: round_.trouble for round_ in reversed(rounds) if round_.trouble}


def _results(cases: Mapping[str, Case], rounds: Iterable[PairedRound]) -> dict[str, CaseResult]:
    by_case = defaultdict[str, "list[PairedRound]"](list)
    for round_ in rounds:
        by_case[round_.nodeid].append(round_)
    return {nodeid: _result(case, by_case[nodeid]) for nodeid, case in cases.items()}


def _result(case: Case, rounds: Sequence[PairedRound]) -> CaseResult:
    """Return the head's side of the rounds of a test; a side that died or crashed has no captures."""
    lost = [round_ for round_ in rounds if round_.trouble and not round_.head]
    outcome = "crashed" if lost else "passed"
    return CaseResult(
        case=case,
        captures=tuple(round_.head for round_ in rounds if round_.head),
        trouble=tuple(round_.trouble for round_ in lost),
        outcome="died" if any(round_.died for round_ in lost) else outcome,
        seconds=max((round_.seconds for round_ in rounds), default=0.0),
        raised=tuple(dict(error for round_ in rounds for error in round_.raised).items()),
    )


def captures_of(rounds: Iterable[PairedRound], phase: str) -> dict[CaseKey, list[tuple[Capture, Capture]]]:
    """Return base and head of every round of a phase in which both took times, by key."""
    captures: dict[CaseKey, list[tuple[Capture, Capture]]] = {}
    for round_ in rounds:
        bases, heads = (timed(round_.base), timed(round_.head)) if round_.phase == phase else ({}, {})
        for key in bases.keys() & heads.keys():
            captures.setdefault(key, []).append((bases[key], heads[key]))
    return captures


def pairs_of(rounds: Iterable[PairedRound], phase: str) -> dict[CaseKey, Pairs]:
    """Return one number for each process and side."""
    return {key: pair_of(captures) for key, captures in captures_of(rounds, phase).items()}


def _round(call: PairedCall, phase: str, number: int, own: str, arms: Sequence[Arm]) -> PairedRound:
    why = [f"{arm.name}: {end.outcome}: {end.text}" for arm, end in zip(arms, call.finished) if end.outcome != "passed"]
    return PairedRound(
        nodeid=call.nodeid,
        phase=phase,
        number=number,
        base=call.captures[BASE],
        head=call.captures[HEAD],
        trouble="; ".join(why) + _missing(arms[HEAD], call.finished[HEAD].text),
        seconds=sum(finished.seconds for finished in call.finished) / 2,
        raised=call.finished[HEAD].raised,
        own=own,
        base_alone=base_alone(call),
    )


def _one_sided(pair: LockstepPair, nodeid: str, arms: Sequence[Arm], own: Callable[[str], str]) -> str:
    """Return which arm could not collect a test, and its error or its files."""
    for side, arm in enumerate(arms):
        if nodeid not in pair.nodeids[side]:
            why = own(nodeid) if side == BASE else ""
            errors = [error for error in pair.errors[side] if error.startswith(nodeid.partition("::")[0])]
            reason = "; ".join(errors or pair.errors[side]) or (f"it {why}" if why else "it is missing")
            hint = "" if why or nodeid in pair.nodeids[HEAD] else _missing(arm, reason)  # else the change adds it
            return f"the {arm.name} build could not collect it: {reason}{hint}"
    return "the children ended before it"


Side = tuple[Capture, ...]

Untimed = dict[CaseKey, str]


def timed(side: Side) -> dict[CaseKey, Capture]:
    """Return what one process timed, without times that are zero or not finite: they have no logarithm."""
    return {capture.key: capture for capture in side if capture.samples and not _fault(capture)}


def untimed_in(arms: Sequence[Arm], rounds: Sequence[PairedRound], sides: Sequence[int] = (HEAD, BASE)) -> Untimed:
    """Return calls without a comparable time on these sides, with the arm and the reason."""
    untimed = {side: untimed_on(side, rounds) for side in sides}
    return {key: f"{arms[side].name}: {why}" for side, reasons in untimed.items() for key, why in reasons.items()}


def untimed_on(side: int, rounds: Iterable[PairedRound]) -> Untimed:
    """Return calls that one side timed in some rounds and not properly in all, with the first fault."""
    ran: Counter[str] = Counter()
    faults: dict[CaseKey, list[str]] = {}
    for round_ in rounds:
        if not round_.trouble:
            ran[round_.nodeid] += 1
            for capture in (round_.base, round_.head)[side]:
                if capture.samples:
                    faults.setdefault(capture.key, []).append(_fault(capture))
    reasons = ((key, next(filter(None, own), _why_rare(len(own), ran[key.nodeid]))) for key, own in faults.items())
    return {key: why for key, why in reasons if why}


def _fault(capture: Capture) -> str:
    return next(filter(None, map(untimed, capture.samples)), "")


def _why_rare(count: int, rounds: int) -> str:
    return f"timed in {count} of {plural(rounds, 'round')}: the call does not always happen" if count < rounds else ""


def figure_pairs(comparison: Comparison, key: CaseKey, changes: Sequence[Limit]) -> Iterator[FigurePairs]:
    """Yield the figures of these limits that both sides took in every round."""
    if not changes:
        return
    scopes = [(limit.metric, scope_within(limit, key)) for limit in changes]
    tails = tails_in(limit.text for limit in changes)
    rounds = one_a_draw(comparison.rounds, ROUND, key.nodeid)
    sides = [[_figures(comparison, (at, side, key), tails) for side in (BASE, HEAD)] for at, _ in rounds]
    both = [(base, head) for base, head in sides if base and head]
    first_head = both[0][HEAD] if both else {}
    common = [at for at in first_head if all(at in base and at in head for base, head in both)]
    for name, labels in common:
        if any(name == metric and matches(labels, scope) for metric, scope in scopes):
            pairs = [(base[name, labels], head[name, labels]) for base, head in both]
            yield FigurePairs(
                name=name,
                labels=labels,
                dimension=pairs[-1][1].dimension,
                base=tuple(base.value for base, _ in pairs),
                head=tuple(head.value for _, head in pairs),
            )


def _figures(comparison: Comparison, at: tuple[int, int, CaseKey], tails: Sequence[Labels]) -> Figures:
    """Return the figures that a process of a round read of a call; they are read once and kept."""
    if at not in comparison.figures:
        number, side, key = at
        captures = (comparison.rounds[number].base, comparison.rounds[number].head)[side]
        capture = next((capture for capture in captures if capture.key == key), None)
        metrics = metrics_of_capture(capture, tails).metrics if capture is not None else ()
        comparison.figures[at] = {(m.name, m.labels): m for m in metrics if math.isfinite(m.value)}
    return comparison.figures[at]
