"""Two arms compared: screening for all, fresh rounds for suspects, verdicts for the suite together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.app.duet import BASE, HEAD, Beat, Duet, Met
from pytest_perfgate.core.gate.cycles import paired_clocks
from pytest_perfgate.core.gate.proof import foreign_modules
from pytest_perfgate.core.gate.rounds import Design, Pairs, confirming_rounds, convicted, finding, suspected
from pytest_perfgate.core.gate.witness import pair_of
from pytest_perfgate.model.arm import Arm
from pytest_perfgate.model.children import Capture, CaseResult, ChildSpec, Job, Nursery
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.paired import Paired, PairedRound
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.problem import Problem
from pytest_perfgate.model.values import array_value

SCREEN, CONFIRM = "screen", "confirm"


@array_value
class Stage:
    """What a comparison needs of the world."""

    nursery: Nursery
    spec: Callable[[Arm, Sequence[Case], int], ChildSpec]
    """A child of an arm; the number of the round is the seed that both sides share."""
    job: Job
    timeout_s: float
    say: Callable[[str], None]
    keep: Callable[[Sequence[PairedRound]], None]
    """Called after every round: an interrupted comparison goes on where it stopped."""
    clock: Callable[[], float]
    beat: Beat = Beat()
    budget_s: float = 0.0
    """Zero spends what the design asks for."""


class Comparison:
    """Rounds of a base and a head arm over some cases."""

    def __init__(self, arms: tuple[Arm, Arm], cases: Sequence[Case], stage: Stage, design: Design) -> None:
        self.arms, self._stage, self.design = arms, stage, design
        self.cases = {case.nodeid: case for case in cases}
        self.rounds: list[PairedRound] = []
        self.problems: dict[str, Problem] = {}
        self._out: set[str] = set()

    def resume(self, kept: Iterable[PairedRound]) -> None:
        """Take up what an interrupted run of the same arms has left."""
        self.rounds = [one for one in kept if one.nodeid in self.cases]
        self._out = {one.nodeid for one in self.rounds if one.trouble}

    def screen(self) -> None:
        """Rounds for every case."""
        self.play(SCREEN, list(self.cases.values()), self.design.screen)

    def confirm(self, suspects: Iterable[str], count: int) -> None:
        """Fresh rounds for some."""
        self.play(CONFIRM, [self.cases[nodeid] for nodeid in suspects], count)

    def play(self, phase: str, cases: Sequence[Case], count: int) -> None:
        for number in range(count):
            done = {one.nodeid for one in self.rounds if (one.phase, one.number) == (phase, number)}
            left = [case for case in cases if case.nodeid not in done | self._out]
            while left:
                left = self._lap(phase, number, left)
            self._stage.keep(self.rounds)

    def captures(self, phase: str) -> dict[CaseKey, list[tuple[Capture, Capture]]]:
        """Base and head of every round by key."""
        return captures_of(self.rounds, phase)

    def pairs(self, phase: str) -> dict[CaseKey, Pairs]:
        """One number a process."""
        return pairs_of(self.rounds, phase)

    def results(self) -> dict[str, CaseResult]:
        """The head's side as any measuring run leaves it."""
        return {nodeid: self._result(case) for nodeid, case in self.cases.items()}

    def _result(self, case: Case) -> CaseResult:
        mine = [one for one in self.rounds if one.nodeid == case.nodeid]
        return CaseResult(
            case=case,
            captures=tuple(one.head for one in mine if one.head),
            trouble=tuple(one.trouble for one in mine if one.trouble and not one.head),
            outcome="crashed" if any(one.trouble and not one.head for one in mine) else "passed",
            seconds=max((one.seconds for one in mine), default=0.0),
        )

    def _lap(self, phase: str, number: int, cases: list[Case]) -> list[Case]:
        """Two fresh processes through all cases; where one dies, the rest goes on in new ones."""
        seed = 1 + number + (1000 if phase == CONFIRM else 0)
        children = []
        try:
            children += [self._stage.nursery.spawn(self._stage.spec(arm, cases, seed)) for arm in self.arms]
            duet = Duet(
                (children[BASE], children[HEAD]), self._stage.timeout_s, self._stage.beat, head_first=seed % 2 == 0
            )
            done = self._played(duet, phase, number, cases)
        except PerfgateError as fault:
            return self._after_death(fault, duet.standing if len(children) > 1 else "", (phase, number), cases)
        finally:
            for child in children:
                child.close()
        self._prove(duet)
        for case in cases:
            if case.nodeid not in done:
                self._note(phase, number, case.nodeid, _one_sided(duet, case.nodeid, self.arms))
        return []

    def _played(self, duet: Duet, phase: str, number: int, cases: Sequence[Case]) -> set[str]:
        jobs = tuple(replace(self._stage.job, cases=tuple(cases), modules=arm.modules) for arm in self.arms)
        done = set()
        for met in duet.play((jobs[BASE], jobs[HEAD])):
            self.rounds.append(_round(met, phase, number))
            done.add(met.nodeid)
            if self.rounds[-1].trouble:
                self._out.add(met.nodeid)
        return done

    def _after_death(self, fault: PerfgateError, standing: str, at: tuple[str, int], cases: list[Case]) -> list[Case]:
        lost = [standing] if standing else [case.nodeid for case in cases if not self._has(at, case.nodeid)]
        for nodeid in lost:
            self._note(*at, nodeid, fault.what)
        return [case for case in cases if case.nodeid not in lost and not self._has(at, case.nodeid)]

    def _has(self, at: tuple[str, int], nodeid: str) -> bool:
        return any((one.phase, one.number, one.nodeid) == (*at, nodeid) for one in self.rounds)

    def _note(self, phase: str, number: int, nodeid: str, why: str) -> None:
        self._out.add(nodeid)
        self.rounds.append(PairedRound(nodeid=nodeid, phase=phase, number=number, trouble=why))

    def _prove(self, duet: Duet) -> None:
        """An arm that loaded the other's files makes every verdict of the comparison invalid."""
        for arm, loaded in zip(self.arms, duet.modules):
            problem = foreign_modules(arm, loaded) if arm.modules else None
            if problem is not None:
                self.problems[arm.name] = problem


def captures_of(rounds: Iterable[PairedRound], phase: str) -> dict[CaseKey, list[tuple[Capture, Capture]]]:
    """Base and head of every round of a phase, by key."""
    found: dict[CaseKey, list[tuple[Capture, Capture]]] = {}
    for one in rounds:
        heads = {capture.key: capture for capture in one.head if capture.samples}
        for capture in one.base:
            if one.phase == phase and capture.samples and capture.key in heads:
                found.setdefault(capture.key, []).append((capture, heads[capture.key]))
    return found


def pairs_of(rounds: Iterable[PairedRound], phase: str) -> dict[CaseKey, Pairs]:
    """One number a process and side."""
    return {key: pair_of(found) for key, found in captures_of(rounds, phase).items()}


def _round(met: Met, phase: str, number: int) -> PairedRound:
    failed = [
        f"{side}: {one.outcome}: {one.text}"
        for side, one in zip(("base", "head"), met.finished)
        if one.outcome != "passed"
    ]
    return PairedRound(
        nodeid=met.nodeid,
        phase=phase,
        number=number,
        base=met.captures[BASE],
        head=met.captures[HEAD],
        trouble="; ".join(failed),
        seconds=sum(one.seconds for one in met.finished) / 2,
    )


def _one_sided(duet: Duet, nodeid: str, arms: Sequence[Arm]) -> str:
    """A test that only one arm could collect, and what the other said."""
    for side, arm in enumerate(arms):
        if nodeid not in duet.found[side]:
            said = "; ".join(duet.errors[side]) or "it is not there"
            return f"the {arm.name} arm could not collect it: {said}"
    return "the children ended before it"


def trial(
    comparison: Comparison, counts: Callable[[CaseKey], float], *, screened: bool, revision: str
) -> Mapping[CaseKey, Paired]:
    """All of it: screening unless that was done elsewhere, then the suspects, tried together."""
    say, design = comparison._stage.say, comparison.design  # noqa: SLF001 - the trial is the comparison's other half
    found = {}
    pairs: dict[CaseKey, Pairs] = {}
    if screened:
        suspects = list(comparison.cases)
    else:
        comparison.screen()
        pairs = comparison.pairs(SCREEN)
        found = {key: finding(pair, counts(key)) for key, pair in pairs.items()}
        beyond = suspected(found, {key: counts(key) for key in found})
        suspects = list(dict.fromkeys(key.nodeid for key in beyond))
    if suspects:
        more = confirming_rounds(len(suspects), design)
        say(f"{len(suspects)} of {len(comparison.cases)} suspected: {more} fresh rounds each")
        comparison.confirm(suspects, more)
        fresh = {k: p for k, p in comparison.pairs(CONFIRM).items() if screened or k in beyond}
        found |= convicted(fresh, {key: counts(key) for key in fresh}, design)
        pairs |= fresh
    problems = tuple(comparison.problems.values())
    met = {**comparison.captures(SCREEN), **comparison.captures(CONFIRM)}
    return {
        key: Paired(
            decision=one.decision,
            differences=pairs[key].differences,
            shift=one.shift,
            interval=one.interval,
            base=comparison.arms[BASE].revision[:10],
            revision=bool(revision),
            p=one.p,
            threshold=design.alpha,
            visible=one.visible,
            problems=problems,
            unstable=one.unstable,
            clocks_hz=paired_clocks(met.get(key, ())),
        )
        for key, one in found.items()
    }
