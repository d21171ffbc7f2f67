"""A pytest run that only measures rounds with the same code on both sides, for a given time."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate import clock
from pytest_perfgate.app.compare_arms import ROUND, Comparison, phase_of
from pytest_perfgate.app.lockstep import Stage
from pytest_perfgate.core.judge.calibration import FORKED, INJECTED, LEAST
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.verdict import Arm, PairedRound
from pytest_perfgate.plugin import ROLE, is_gated
from pytest_perfgate.plugin.arms import one_core
from pytest_perfgate.plugin.child_arguments import child_job, child_spec
from pytest_perfgate.plugin.measuring import SLOWER
from pytest_perfgate.plugin.reporting import Progress
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.state import Settings
from pytest_perfgate.wiring import read_values, write_values

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import ChildSpec

NOT_FORKED = "no more forks: "

FILE, SECONDS, SLOWING = "PERFGATE_CALIBRATION", "PERFGATE_CALIBRATION_SECONDS", "PERFGATE_CALIBRATION_SLOWING"


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run rounds of all gated tests until the time is spent; no test runs by itself."""
    gate = GateSession(Settings(session.config))
    gate.collect([item for item in session.items if is_gated(item)])
    if gate.cases:
        Calibrating(gate, Path(os.environ[FILE])).run(float(os.environ[SECONDS]), slowing=SLOWING in os.environ)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Drop notes on the suite, whose record would take the place of the last run's."""
    role: Any = session.config.pluginmanager.get_plugin(ROLE)
    if role is not None:
        role.session.notes = ()
    yield


class Calibrating:
    """Measures rounds of one project and adds them to the stored ones."""

    def __init__(self, gate: GateSession, path: Path) -> None:
        self._gate, self._path = gate, path
        self._config = gate.settings.pytest
        self._by: float | None = None
        """The slowdown that is injected into the head now; ``None`` injects nothing."""
        self._forking = False
        """Whether both sides are forked now."""
        self._others: list[PairedRound] = []
        """Stored rounds of tests that this run did not select; they are kept."""

    def run(self, seconds: float, *, slowing: bool) -> None:
        """Measure unchanged code and slowed code in turns until the time is spent."""
        cases, until = list(self._gate.cases.values()), clock.seconds() + seconds
        progress = Progress(self._config, f"{plural(len(cases), 'case')}, the same code on both sides, {seconds:.0f} s")
        comparison = Comparison((_side("base"), _side("head")), cases, self._stage(progress), Design())
        rounds = read_values(self._path, PairedRound)
        sound = [round_ for round_ in rounds if not (round_.trouble or _why_not_forked(round_))]
        self._others = [round_ for round_ in sound if round_.nodeid not in comparison.cases]
        comparison.resume(sound)
        if comparison.rounds:
            count = len({(round_.phase, round_.number) for round_ in comparison.rounds})
            progress.tell(f"{plural(count, 'round')} of earlier calibrations are kept")
        forking = progress.tell if self._gate.settings.project.preload != "off" else None
        turns = self._turns(comparison, slowing=slowing, forking=forking)
        while clock.seconds() < until:
            phase, by = next(turns)
            self._by, self._forking = by, phase == FORKED
            count = _round_numbers(comparison, phase) + 1
            comparison.play(phase, dict.fromkeys(comparison.cases, count))
            if _round_numbers(comparison, phase) < count:
                troubles = dict.fromkeys(round_.trouble for round_ in comparison.rounds if round_.trouble)
                progress.tell(f"no test runs:  {'; '.join(troubles)}")
                break
            if why := next(filter(None, map(_why_not_forked, comparison.rounds)), ""):
                comparison.rounds = [round_ for round_ in comparison.rounds if not _why_not_forked(round_)]
                write_values(self._path, [*self._others, *comparison.rounds])
                progress.tell(f"{NOT_FORKED}{why}")
                turns = self._turns(comparison, slowing=slowing)
                continue
            remaining = max(0.0, until - clock.seconds())
            condition = "unchanged code in forks" if self._forking else _named(by)
            progress.tell(f"{condition}: {plural(count, 'round')}, {remaining:.0f} s left")
        comparison.next.close()
        progress.close()

    @staticmethod
    def _turns(
        comparison: Comparison, *, slowing: bool, forking: Callable[[str], None] | None = None
    ) -> Iterator[tuple[str, float | None]]:
        """Yield ``LEAST`` rounds of unchanged code first, then each time the kind with the fewest rounds.

        Forks are among them if ``forking`` is a function; it is told why they are not.
        """
        kinds: list[tuple[str, float | None]] = [(ROUND, None)]
        kinds += [(phase_of(by), by) for by in INJECTED] if slowing else []
        while True:
            if _round_numbers(comparison, ROUND) < LEAST:
                yield kinds[0]
                continue
            if forking is not None:
                hosts, devices = _by_clock(comparison)
                kinds += [(FORKED, None)] if devices and not hosts else []
                if devices and hosts:
                    forking(f"{NOT_FORKED}the host's clock measures {hosts[0]}, and a round forks all tests or none")
                forking = None
            yield min(kinds, key=lambda kind: _round_numbers(comparison, kind[0]))

    def _stage(self, progress: Progress) -> Stage:
        config, project = self._config, self._gate.settings.project
        return Stage(
            spawner=self._gate.gate_judge.tools.spawner,
            spec=self._spec,
            job=replace(child_job(config), cpus=one_core(list(self._gate.cases.values()))),
            timeout_s=project.timeout,
            say=progress.tell,
            keep=lambda rounds: write_values(self._path, [*self._others, *rounds]),
            clock=clock.seconds,
            forks=lambda key, device: 0.0 if self._forking else None,  # noqa: ARG005 - of each call alike
        )

    def _spec(self, arm: Arm, cases: Sequence[Case], seed: int) -> ChildSpec:
        plain = child_spec(self._config, self._gate.settings.project, cases)
        env = {**dict(plain.env), "PYTHONHASHSEED": str(seed)}
        if self._by is not None:
            env[SLOWER] = str(self._by if arm.name == "head" else 0.0)
        return replace(plain, env=tuple(sorted(env.items())), label=f"the {arm.name} side")


def _why_not_forked(round_: PairedRound) -> str:
    """Return why a round that was to be forked ran in fresh interpreters instead; "" for every other round."""
    from pytest_perfgate.model.protocol import FORK, START

    starts = [dict(samples.notes).get(START, "") for capture in round_.head for samples in capture.samples[-1:]]
    fresh = [start or "fresh interpreter" for start in starts if not start.startswith(FORK)]
    return fresh[0] if fresh and round_.phase == FORKED else ""


def _by_clock(comparison: Comparison) -> tuple[list[str], list[str]]:
    """Return the tests that the host's clock measures, and those of devices, without those that failed."""
    from pytest_perfgate.app.spread import on_devices

    running = [case for case in comparison.cases.values() if case.nodeid not in comparison.out]
    devices = [case.nodeid for case in running if on_devices([case], comparison.rounds)]
    return [case.nodeid for case in running if case.nodeid not in devices], devices


def _round_numbers(comparison: Comparison, phase: str) -> int:
    return len({round_.number for round_ in comparison.rounds if round_.phase == phase})


def _named(by: float | None) -> str:
    return "unchanged code" if by is None else f"one side {by * 100:.0f} % slower"


def _side(name: str) -> Arm:
    """Return an arm for the working copy as it is installed, without a build and without a check of its modules."""
    return Arm(
        name=name, revision="", tree="", dirty=False, mode="as installed", python="", launch=(), environment=(),
        cwd="", root="", modules=(), digest="",
    )  # fmt: skip


_OWED_NS = 20_000.0
"""The shortest wait: reading the clock takes hundreds of nanoseconds, so a wait cannot be finer than that."""


def slowed(call: Callable[[], Any], by: float) -> Callable[[], Any]:
    """Return the call with a busy wait in proportion to its time; short calls accumulate theirs.

    Both are CPU time of this thread: in wall time, other work on the core would multiply the injected slowdown. The
    side that is not slowed is wrapped too, by 0, so that reading the clock costs both the same.
    """
    read, owed = clock.HOST_CLOCK.thread, 0.0

    def longer() -> Any:
        nonlocal owed
        begun = read()
        result = call()
        now = read()
        owed += (now - begun) * by
        if owed >= _OWED_NS:
            until = now + owed
            while (now := read()) < until:
                pass
            owed = until - now
        return result

    return longer
