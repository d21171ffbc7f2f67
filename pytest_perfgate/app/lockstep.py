"""Measures one call in two processes in turns: base and head call by call, on one core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_perfgate.app.passes import WAITED, one_by_one
from pytest_perfgate.core.judge.context import limited
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import IDLE, Samples, Settled, Stop
from pytest_perfgate.model.protocol import (
    OWN,
    RECORD,
    STATIC,
    Answer,
    Bye,
    Capture,
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
)
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.core.changes.own_files import Versions
    from pytest_perfgate.model.plan import Case, CaseKey, Plan
    from pytest_perfgate.model.verdict import Arm, PairedRound

BASE, HEAD = 0, 1

_NOT_IN_TURNS = frozenset({"region", RECORD, "read", OWN, STATIC})
"""Timers of what a test takes itself, once, so that no second turn exists."""


@value
class TurnTiming:
    """The lengths of turns: ten of 5 ms with samples of a third of that on the host, of 20 ms on a device.

    A device needs longer turns, because its clocks and the other process change its state; shorter ones were not tried.
    At the power limit a long turn is added.
    """

    turns: int = 10
    pinned_ns: float = 5e6
    """The length of a turn on the host, of a call of one thread, which is kept to one core."""
    device_ns: float = 20e6
    """The length of any other turn."""
    sample_ns: float = 4e6
    """The longest sample of a batch."""
    warmup_ns: float = 20e6
    tail_ns: float = 1e9
    """The longest turn that takes the calls of a quantile."""
    settle_ns: float = 1e9
    """Load before the samples of a long turn, if the device is at its power limit."""
    settled_ns: float = 0.5e9  # sampling time of a long turn


@value
class PairedCall:
    """One test that ran in both processes."""

    nodeid: str
    finished: tuple[Finished, Finished]
    captures: tuple[tuple[Capture, ...], tuple[Capture, ...]]
    """Each with one process's samples for each key, those of the turns."""


class LeftEarly(Exception):
    """Raised when a side's call raised and so left the lock-step early."""

    def __init__(self, side: int, answer: Answer) -> None:
        super().__init__(side)
        self.side, self.answer = side, answer


class LockstepPair:
    """Runs the same tests in a base and a head child, in turns."""

    def __init__(
        self, children: tuple[Child, Child], timeout_s: float, timing: TurnTiming, *, head_first: bool
    ) -> None:
        self._children, self._timeout, self._timing = children, timeout_s, timing
        self._order = (HEAD, BASE) if head_first else (BASE, HEAD)
        self.standing = ""
        """The test that both sides are in; it leaves the round if one of them dies."""
        self.nodeids: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        self.untouched = False  # neither side used a device while it collected
        self.errors: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self.modules: tuple[tuple[tuple[str, str], ...], ...] = ((), ())
        self.beside: tuple[tuple[tuple[str, str], ...], ...] = ((), ())

    def play(
        self, jobs: Sequence[ChildJob], collected: Callable[[], None], timers: Mapping[CaseKey, str]
    ) -> Iterator[PairedCall]:
        """Yield every test that both sides collected, in order; ``collected`` is called after the collection.

        ``timers`` are those of earlier rounds, which a call near the border between two of them keeps.
        """
        plans = {case.nodeid: case.plan for case in jobs[HEAD].cases}
        for child, job in zip(self._children, jobs):
            child.send(job)
        self._receive_collections()
        collected()
        shared = self.nodeids[BASE] & self.nodeids[HEAD] & plans.keys()
        while True:
            base, head = (self._next_common(side, shared) for side in (BASE, HEAD))
            if not isinstance(base, Ready) or not isinstance(head, Ready):
                ended = [answer if isinstance(answer, Bye) else Bye() for answer in (base, head)]
                self.modules = tuple(bye.modules for bye in ended)
                self.beside = tuple(bye.beside for bye in ended)
                return
            self.standing = head.nodeid
            yield self._test(self.standing, plans[self.standing], timers)
            self.standing = ""

    def _receive_collections(self) -> None:
        collected = [self._next(side) for side in (BASE, HEAD)]
        if not all(isinstance(answer, Collected) for answer in collected):
            raise PerfgateError("child-garbled", "a child did not begin with what it collected")
        base, head = (answer for answer in collected if isinstance(answer, Collected))
        self.nodeids = (frozenset(base.nodeids), frozenset(head.nodeids))
        self.errors = (base.errors, head.errors)
        self.untouched = base.untouched and head.untouched

    def _next_common(self, side: int, shared: frozenset[str]) -> Answer:
        """Return the next test that both sides have, or the end; others are skipped."""
        while isinstance(answer := self._next(side), Ready) and answer.nodeid not in shared:
            self._children[side].send(Skip())
        return answer

    def _test(self, nodeid: str, plan: Plan, timers: Mapping[CaseKey, str]) -> PairedCall:
        for child in self._children:
            child.send(Go())
        sides: dict[CaseKey, tuple[Samples, Samples]] = {}
        messages = [self._next(side) for side in (BASE, HEAD)]
        while any(isinstance(answer, Entered) for answer in messages):
            base, head = messages
            if isinstance(base, Entered) and isinstance(head, Entered) and base.key == head.key:
                try:
                    leaning = replace(plan, leaning=timers.get(head.key, ""))
                    sides[head.key] = self._turns(one_by_one(leaning, (*plan.figures, *head.figures), 1))
                except LeftEarly as left:
                    messages = self._after(left, messages, plan)
            for side in self._order:  # one by one: a side times its call against its reference before the next message
                if isinstance(messages[side], Entered):
                    self._children[side].send(Finish(references=True))
                    messages[side] = self._next(side)
        ended = (self._finished(messages[BASE], nodeid), self._finished(messages[HEAD], nodeid))
        return PairedCall(
            nodeid=nodeid,
            finished=ended,
            captures=(_with_turns(ended[BASE], sides, BASE), _with_turns(ended[HEAD], sides, HEAD)),
        )

    def _after(self, early: LeftEarly, answers: list[Answer], plan: Plan) -> list[Answer]:
        """Return both answers after one side left its call; the other still makes its call for later ones."""
        other = HEAD if early.side == BASE else BASE
        after = {early.side: early.answer, other: answers[other]}
        try:
            self._measured(other, _warming(plan, self._timing))
        except LeftEarly as too:
            after[other] = too.answer
        return [after[BASE], after[HEAD]]

    def _turns(self, plan: Plan) -> tuple[Samples, Samples]:
        """Measure one call in both builds, with the same number of calls."""
        return Turns(self._measured, self._timing, self._order).sample(plan)

    def _measured(self, side: int, plan: Plan) -> Samples:
        self._children[side].send(Measure(plan=plan))
        answer = self._next(side)
        if isinstance(answer, (Finished, Entered)):
            raise LeftEarly(side, answer)
        if not isinstance(answer, Taken):
            raise PerfgateError("child-garbled", f"a child answered {type(answer).__name__} where samples were due")
        return answer.samples

    def _next(self, side: int) -> Answer:
        while isinstance(answer := self._children[side].receive(self._timeout), Waits):
            continue
        return answer

    @staticmethod
    def _finished(answer: Answer, nodeid: str) -> Finished:
        if not isinstance(answer, Finished) or answer.nodeid != nodeid:
            raise PerfgateError("child-garbled", f"a child answered {type(answer).__name__} at the end of {nodeid}")
        return answer


def timers_of(rounds: Iterable[PairedRound]) -> dict[CaseKey, str]:
    """Return the timer with which each call was first measured in turns."""
    timers: dict[CaseKey, str] = {}
    for capture in (capture for round_ in rounds for capture in round_.head):
        timers.setdefault(capture.key, capture.identity.timer)
    return timers


_FAR = 10.0
"""The slowdown from which the head decides how many calls a turn has."""


class Turns:
    """Two sides that are measured in turns; which of them is first alternates."""

    def __init__(
        self,
        measured: Callable[[int, Plan], Samples],
        timing: TurnTiming,
        order: tuple[int, int],
        *,
        alike: bool = True,
    ) -> None:
        self._take, self._timing, self._order = measured, timing, order
        self._alike = alike
        """Whether both sides run one call; two different calls may differ in time, so each has its own batch."""

    def _measured(self, side: int, plan: Plan) -> Samples:
        samples = self._take(side, plan)
        if not samples.durations:
            raise PerfgateError("no-samples", f"the {('base', 'head')[side]} took no samples by {samples.timer}")
        return samples

    def sample(self, plan: Plan) -> tuple[Samples, Samples]:
        """Warm up both sides, alternate between them, and return the joined turns of each."""
        warm = {side: self._measured(side, _warming(plan, self._timing)) for side in self._order}
        # Threads of one call would wait for each other on one core, so only calls of one thread are pinned.
        return self._sampled(replace(plan, one_core=not any(samples.threaded for samples in warm.values())), warm)

    def _sampled(self, plan: Plan, warm: Mapping[int, Samples]) -> tuple[Samples, Samples]:
        base, head = (median(warm[side].durations) for side in (BASE, HEAD))
        of_both = HEAD if head > _FAR * base else BASE  # as many calls as of a fast base would take a slow head minutes
        planned = [_turn(plan, self._timing, warm[of_both if self._alike else side]) for side in (BASE, HEAD)]
        timers = {samples.timer for samples in warm.values()}
        timer = min(timers - {"events"} or timers)  # of two choices the one that times both calls
        # near the least work that counts, one build would wait and the other not: a slowdown of the whole wait
        waits = self._alike and any(WAITED in samples.notes for samples in warm.values())
        turns = [replace(turn, leaning=timer, waits=waits) for turn, _ in planned]
        count, number = min(count for _, count in planned), 0
        sides: tuple[list[Samples], list[Samples]] = ([], [])
        while number < count:
            for side in self._order if number % 2 == 0 else self._order[::-1]:
                sides[side].append(self._measured(side, turns[side]))
            if plan.one_core and any(samples[-1].threaded for samples in sides):
                return self._sampled(replace(plan, one_core=False), warm)  # the warm-up was too short to show it
            count = _turns_to_take(count, sides[BASE][-1], sides[HEAD][-1])
            number += 1
        settled = self._long_turns(turns) if limited([*sides[BASE], *sides[HEAD]]) else {}
        return joined(sides[BASE], warm[BASE], settled.get(BASE)), joined(sides[HEAD], warm[HEAD], settled.get(HEAD))

    def _long_turns(self, turns: Sequence[Plan]) -> dict[int, Samples]:
        """Measure a long turn of each side: in short ones both share the clock that their joint power allows."""
        settle, sample = self._timing.settle_ns, self._timing.settled_ns
        return {
            side: self._measured(side, replace(turns[side], settle_ns=settle, budget_ns=sample)) for side in self._order
        }


def _warming(plan: Plan, timing: TurnTiming) -> Plan:
    """Return the plan of a short turn after the warm-up, which shows how long a call takes."""
    warmup = min(plan.warmup_ns, timing.warmup_ns)
    return replace(plan, warmup_ns=warmup, budget_ns=2e6, min_samples=3, spread=1.0, calls=plan.calls or 1)


def _turn(plan: Plan, timing: TurnTiming, samples: Samples) -> tuple[Plan, int]:
    """Return the plan of a turn and the number of turns; both sides sample the same number of calls."""
    call_ns = median(samples.durations) * samples.batch
    host = samples.timer == "host" and IDLE not in dict(samples.notes)
    turn_ns = min(timing.pinned_ns if host and plan.one_core else timing.device_ns, plan.budget_ns / timing.turns)
    if plan.least_samples:  # a quantile needs so many calls
        turn_ns = min(max(turn_ns, plan.least_samples / timing.turns * call_ns), timing.tail_ns)
    calls = plan.calls or 1
    if host and not plan.calls:
        in_a_turn = 3 if plan.one_core else 20  # either way a sample of one to two milliseconds
        calls = max(1, round(min(timing.sample_ns, turn_ns / in_a_turn) / max(call_ns, 1.0)))
    affordable = int(max(plan.budget_ns, 3 * call_ns) / max(turn_ns, call_ns))
    turn = replace(plan, warmup_ns=0, budget_ns=turn_ns, calls=calls, in_turns=True)
    turn = replace(turn, min_samples=plan.max_samples, spread=0.0)  # nothing but its length ends it
    return turn, max(3, min(timing.turns, affordable))


def _turns_to_take(planned: int, base: Samples, head: Samples) -> int:
    """Return the number of turns, one less after a repeated turn, but at least three of those planned.

    A turn that an instrument rejected was measured twice, and the budget of the case pays for both.
    """
    repeated = bool(base.discarded or head.discarded)
    return max(min(planned, 3), planned - repeated)


def settled_of(samples: Samples) -> Settled:
    """Return a long turn as one figure."""
    clock = median(samples.clock_hz) if samples.clock_hz else None
    return Settled(time=median(samples.durations), watts=samples.watts, clock_hz=clock)


def joined(turns: Sequence[Samples], warm: Samples, long: Samples | None = None) -> Samples:
    """Return the turns of a process as one process's samples, with the long turn and what only the warm-up sees."""
    timed = [*turns, long] if long else turns
    outside = [problem for problem in warm.problems if problem.code == "work-escaped"]
    return replace(
        turns[-1],
        durations=tuple(duration for turn in turns for duration in turn.durations),
        cpu=tuple(time for turn in turns for time in turn.cpu),
        waits=tuple(wait for turn in turns for wait in turn.waits),
        busy=tuple(time for turn in turns for time in turn.busy),
        turns=tuple(len(turn.durations) for turn in turns),
        settled=settled_of(long) if long else None,
        clock_hz=tuple(hz for turn in turns for hz in turn.clock_hz),
        watts=_mean(turn.watts for turn in turns),
        capped=_mean(turn.capped for turn in turns),
        unqueued=_mean(turn.unqueued for turn in turns),
        others=_mean(turn.others for turn in turns),
        blocked=_mean(turn.blocked for turn in turns),
        helpers=_mean(turn.helpers for turn in turns),
        stop=Stop.COUNT,
        launch_gap=warm.launch_gap,
        warmups=sum(turn.warmups for turn in turns),
        discarded=tuple(lost for turn in turns for lost in turn.discarded),
        problems=tuple(dict.fromkeys([*outside, *(problem for turn in timed for problem in turn.problems)])),
    )


def _mean(answers: Iterable[float | None]) -> float | None:
    """Return the mean over all turns; None if one of them has no value."""
    numbers = list(answers)
    present = [number for number in numbers if number is not None]
    return fmean(present) if len(present) == len(numbers) > 0 else None


def _with_turns(finished: Finished, sides: dict[CaseKey, tuple[Samples, Samples]], side: int) -> tuple[Capture, ...]:
    """Return the captures of a test, without calls that the two sides did not share."""
    turns = []
    for capture in finished.captures:
        if capture.key in sides:
            turns.append(replace(capture, samples=(sides[capture.key][side],)))
        elif capture.identity.timer in _NOT_IN_TURNS:
            turns.append(capture)
    return tuple(turns)


@array_value
class Stage:
    """What a comparison needs from outside."""

    spawner: ChildSpawner
    spec: Callable[[Arm, Sequence[Case], int], ChildSpec]
    """Specifies a child of an arm; the number of the round is the seed that both sides share."""
    job: ChildJob
    timeout_s: float
    say: Callable[[str], None]
    keep: Callable[[Sequence[PairedRound]], None]
    """Called after every round, so that an interrupted comparison can resume."""
    clock: Callable[[], float]
    timing: TurnTiming = TurnTiming()
    budget_s: float = 0.0  # zero: as much as the design asks for
    texts: Versions | None = None
    """Test files and conftests at the base and here, for those of the head that fail in the base arm."""
    show: Callable[[str, int, str], None] | None = None
    """Called for each test that both sides ran, with the round, the test's number in it and the test."""
    early: bool = False  # cores are free to start the next round's processes during this one
    forks: Callable[[CaseKey, str], float | None] | None = None
    """The scatter of A/A pairs of a call on a device, if forked pairs scatter no more."""
    hold: Callable[[Sequence[str]], AbstractContextManager[object]] = nullcontext
    """Holds leases on all of these devices, for the children to inherit."""
    overlaid: Sequence[str] = ()  # what both arms take from the working copy, besides the tests and their conftests


def base_alone(met: PairedCall) -> bool:
    """Return whether a test raised in the base arm and passed in the head's."""
    return met.finished[BASE].outcome == "failed" and met.finished[HEAD].outcome == "passed"


def equal_times(sides: Iterable[tuple[Capture, Capture]]) -> bool:
    """Return whether base and head recorded the same times in each round, as no two measurements do."""
    both = [pair for base, head in sides for pair in zip(base.samples, head.samples)]
    return all(one.stop is Stop.RECORDED and list(one.durations) == list(other.durations) for one, other in both)
