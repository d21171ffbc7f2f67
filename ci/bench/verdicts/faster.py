"""How surely a speed-up is judged, by recorded processes.

``python ci/bench/verdicts/faster.py --write docs/rates.md`` draws the table. ``--record 60`` adds so many fresh
processes a condition (quiet, and beside two bursty hogs) to ``recordings/faster.jsonl``: in each, every kernel takes
turns with a reference of half as much work again, as it is and with 10 % more of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
from kernels import UNITS, kernels  # noqa: E402
from replay import write_table  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.app.first_run import MOST  # noqa: E402
from pytest_perfgate.core.judge.context import JudgeContext  # noqa: E402
from pytest_perfgate.core.judge.judge import judge  # noqa: E402
from pytest_perfgate.core.limits.grammar import parse_limit  # noqa: E402
from pytest_perfgate.core.metric_kinds import by_name  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402
from pytest_perfgate.model.device import Device  # noqa: E402
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement, Reference, Samples, Stop  # noqa: E402
from pytest_perfgate.model.metric import Figure  # noqa: E402
from pytest_perfgate.model.plan import CaseKey, Outcome, Plan  # noqa: E402
from pytest_perfgate.model.values import Dimension  # noqa: E402
from pytest_perfgate.model.verdict import Verdict  # noqa: E402

TAPE = HERE / "recordings" / "faster.jsonl"
TESTS, SLOW_TESTS = 40, 4
FEWEST = 3
REFERENCE, SLOWED = 1.5, 1.1
KEY = CaseKey(nodeid="t.py::t", name="ours")
HOST = Device(key="host", name="host", kind="host")
CALLS = {"as it is": 0, "10 % more work": 1}
CONDITIONS = ("quiet", "hogs")
UNLIKE = ("quiet, unlike", "hogs, unlike")
LIMITS = {"of the accepted": "change(speedup(over=eager)) >= -5%", "absolute": "speedup(over=eager) >= {floor:.6f}"}

Turn = tuple[float, float]
"""What the call and its reference took in one process."""


@dataclass
class Call:
    """One kernel with so much work, as the package's turns want it."""

    key: CaseKey
    run: Any
    setup: Any = None
    limits: tuple[str, ...] = ()

    @property
    def fn(self) -> Any:
        return self.run


def child(*, unlike: bool) -> None:
    """One fresh process: every kernel beside its reference, by the package's own timer and turns.

    ``unlike`` takes another kernel for the reference: neighbours may slow the two by different amounts.
    """
    from pytest_perfgate.adapters.devices.host import probe_host
    from pytest_perfgate.adapters.runtimes.host import HostRuntime
    from pytest_perfgate.adapters.timers.host import HostTimer
    from pytest_perfgate.app.passes import in_turns
    from pytest_perfgate.core.stats.summary import Stopping, WarmUp

    timer, runtime, turns_by_name = HostTimer(Stopping(), WarmUp()), HostRuntime(probe_host), {}
    calls = kernels()
    others = dict(zip(calls, [*list(calls.values())[1:], *list(calls.values())[:1]])) if unlike else calls
    for name, kernel in calls.items():
        theirs = Call(CaseKey(nodeid="t.py::t", name="eager"), partial(others[name], round(UNITS * REFERENCE)))
        turns_by_name[name] = []
        for work in (1.0, SLOWED):
            ours = Call(KEY, partial(kernel, round(UNITS * work)))
            one = in_turns(ours, theirs, Plan(), lambda call, plan: timer.measure(call.fn, plan, runtime))
            turns_by_name[name].append([round(one.ours[0], 1), round(one.theirs[0], 1)])
    print(json.dumps(turns_by_name))


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Processes beside it that work and pause."""
    worker = str(HERE / "worker.py")
    others = [subprocess.Popen([sys.executable, worker, "hog", str(seed)]) for seed in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def record(processes: int, *, unlike: bool) -> None:
    """Conditions take turns, so that stopping early leaves as many of each."""
    TAPE.parent.mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(processes):
        for condition in CONDITIONS:
            with hogs(2 if condition == "hogs" else 0):
                words = [sys.executable, __file__, "--child", *(["--unlike"] if unlike else [])]
                done = subprocess.run(words, capture_output=True, check=True, env=env)
            title = f"{condition}, unlike" if unlike else condition
            with TAPE.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"condition": title, "turns": json.loads(done.stdout)}) + "\n")


def tape(condition: str) -> list[dict[str, list[Turn]]]:
    lines = map(json.loads, TAPE.read_text(encoding="utf-8").splitlines())
    return [line["turns"] for line in lines if line["condition"] == condition]


def one_run(turns: list[Turn], others: float = 0.0) -> Measurement:
    """Processes in a row as one measurement, whose time is that of the turns."""
    ours, theirs = zip(*turns)
    samples = tuple(
        Samples(durations=(time,) * 3, timer="host", stop=Stop.COUNT, unqueued=time, others=others) for time in ours
    )
    reference = Reference(over="eager", ours=ours, theirs=theirs)
    return Measurement(
        key=KEY, processes=samples, device=HOST, identity=Identity(device="host"), references=(reference,)
    )


def line_of(turns: list[Turn]) -> Baseline:
    """What accepting such a run writes."""
    ratio, time = median(theirs / ours for ours, theirs in turns), median(ours for ours, _ in turns)
    figure = Figure(name="speedup", value=ratio, dimension=Dimension.RATIO, labels=(("over", "eager"),))
    identity = Identity(device="host")
    return Baseline(key=KEY, device="host", time=time, identity=identity, commit="a1b2c3d4e5", figures=(figure,))


def judged(limit: str, turns: list[Turn], line: Baseline | None, *, others: float = 0.0) -> Verdict:
    """By the package's own judge."""
    floor = 0.95 * line.figures[0].value if line else 1.0
    parsed = parse_limit(limit.format(floor=floor), kinds=by_name())
    return judge(one_run(turns, others), (parsed,), baseline=line, context=JudgeContext(gates=TESTS)).verdicts[0]


def accepted(turns: list[Turn]) -> Baseline:
    """A first run goes on until the speed-up is known to half of its limit, as the gate's does."""
    count = FEWEST
    while count < MOST:
        metric = judged(LIMITS["of the accepted"], turns[:count], None).metric
        if metric is not None and math.log(metric.high / metric.low) / 2 <= 0.05 / 2:
            break
        count += 1
    return line_of(turns[:count])


def outcome(limit: str, line: Baseline, turns: list[Turn], others: float = 0.0) -> tuple[Outcome, int]:
    """A run of three processes, and of more while these leave it open; and how many it took."""
    for count in range(FEWEST, MOST + 1):
        verdict = judged(limit, turns[:count], line, others=others).outcome
        if verdict not in {Outcome.UNDECIDED, Outcome.SUSPECT}:
            break
    return verdict, count


def drawn(rounds: list[dict[str, list[Turn]]], work: int, dice: random.Random) -> tuple[list[Turn], list[Turn]]:
    """Processes in a row to be accepted, and others, of one kernel; a tape is a ring."""
    name = dice.choice(sorted(rounds[0]))
    then = dice.randrange(len(rounds))
    now = then + MOST + dice.randrange(len(rounds) - 2 * MOST + 1)
    before, after = ([rounds[(start + at) % len(rounds)] for at in range(MOST)] for start in (then, now))
    return [tuple(one[name][0]) for one in before], [tuple(one[name][work]) for one in after]


ALARMS = frozenset({Outcome.REGRESSED, Outcome.BROKEN})
KEPT = frozenset({Outcome.PASSED, Outcome.IMPROVED, Outcome.MOVED})


def rates(condition: str, limit: str, suites: int, others: float) -> str:
    """One row: clean suites that alarm, clean tests left open, slowed ones that are seen, and that pass."""
    rounds, dice = tape(condition), random.Random(1)
    loud, clean, slow, processes = 0, Counter[Outcome](), Counter[Outcome](), 0
    for _ in range(suites):
        outcomes = []
        for _ in range(TESTS):
            then, now = drawn(rounds, CALLS["as it is"], dice)
            verdict, count = outcome(limit, accepted(then), now, others)
            outcomes.append(verdict)
            processes += count
        loud += any(one in ALARMS for one in outcomes)
        clean.update(outcomes)
        for _ in range(SLOW_TESTS):
            then, now = drawn(rounds, CALLS["10 % more work"], dice)
            slow[outcome(limit, accepted(then), now, others)[0]] += 1
    tests, slowed = suites * TESTS, suites * SLOW_TESTS
    open_tests = sum(count for one, count in clean.items() if one not in ALARMS | KEPT)
    hits, passed = (sum(slow[one] for one in group) for group in (ALARMS, KEPT))
    bound = f"{loud}/{suites} (≤ {upper_bound(loud, suites):.1%})"
    power = f"{hits / slowed:.1%} (≥ {clopper_pearson(hits, slowed).low:.1%})"
    return f"{bound} | {open_tests / tests:.1%} | {power} | {passed / slowed:.1%} | {processes / tests:.1f}"


def table(suites: int) -> str:
    """Neighbours are seen where the reference is another kernel: that is what they slow by another amount."""
    titles = (
        "limit, condition, neighbours, recorded, clean suites that alarm, left open, sees +10 %, passes it, processes"
    )
    rows = [f"| {titles.replace(', ', ' | ')} |", "|" + " --- |" * 9]
    for title, limit in LIMITS.items():
        for condition in (*CONDITIONS, *UNLIKE):
            others = 1.5 if condition in UNLIKE else 0.0
            row, neighbours = rates(condition, limit, suites, others), "seen" if others else "not seen"
            shown = condition.replace("unlike", "another kernel")
            rows.append(f"| {title} | {shown} | {neighbours} | {len(tape(condition))} | {row} |")
    return "\n".join(rows) + "\n"


ESTIMATES = {"median": 0.5, "second least": 0.15, "least": 0.0}
"""Of ten processes: the median of their ratios, or the ratio of two times that neighbours touched least."""


def estimated(turns: list[Turn], rank: float) -> float:
    """The ratio of a run, as a logarithm, by one of these."""
    if rank == ESTIMATES["median"]:
        return math.log(median(theirs / ours for ours, theirs in turns))
    ours, theirs = (sorted(side)[int(rank * len(turns))] for side in zip(*turns))
    return math.log(theirs / ours)


def spread() -> str:
    """Ten processes against ten others: the lowest hundredth of clean ratios, and the middle of slowed ones."""
    rows = ["| condition | ratio of | lowest 1 % of clean ones | middle of slowed ones |", "|" + " --- |" * 4]
    for condition in (*CONDITIONS, *UNLIKE):
        rounds = tape(condition)
        windows = [[rounds[(at + step) % len(rounds)] for step in range(MOST)] for at in range(len(rounds))]
        for title, rank in ESTIMATES.items():
            moved: dict[int, list[float]] = {0: [], 1: []}
            for at, then in enumerate(windows):
                for apart in {MOST, len(rounds) // 2}:
                    now = windows[(at + apart) % len(rounds)]
                    for name in rounds[0]:
                        before = estimated([tuple(one[name][0]) for one in then], rank)
                        for work, shifts in moved.items():
                            shifts.append(estimated([tuple(one[name][work]) for one in now], rank) - before)
            clean, slow = (sorted(math.expm1(one) for one in moved[work]) for work in (0, 1))
            shown = condition.replace("unlike", "another kernel")
            rows.append(f"| {shown} | {title} | {clean[len(clean) // 100]:+.1%} | {median(slow):+.1%} |")
    return "\n".join(rows) + "\n"


SUITE = """
import os
from functools import partial

import pytest
from kernels import UNITS, kernels

WORK = float(os.environ.get("WORK", "1"))
KERNELS = kernels()


@pytest.mark.perfgate("change(speedup(over=eager)) >= -5%")
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernel(perfgate, name):
    perfgate(partial(KERNELS[name], round(UNITS * WORK)), name="ours")
    perfgate(partial(KERNELS[name], round(UNITS * {reference})), name="eager")
"""


def live(suites: int) -> str:
    """Whole runs of pytest against a line that the first of them accepted: clean ones, and with 10 % more work."""
    from pytest_perfgate.adapters.stores.records import read_record

    counts = {work: Counter[str]() for work in (1.0, SLOWED)}
    with TemporaryDirectory() as name:
        root = Path(name)
        (root / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["*"]\n', encoding="utf-8")
        (root / "test_kernels.py").write_text(SUITE.format(reference=REFERENCE), encoding="utf-8")
        (root / "kernels.py").write_text((HERE / "kernels.py").read_text(encoding="utf-8"), encoding="utf-8")
        env = {name: text for name, text in os.environ.items() if name != "CI"}
        pytest = [sys.executable, "-m", "pytest", "-q", "--perfgate=full", "--perfgate-json=run.json"]
        accept = "from pytest_perfgate.cli import main; main()"
        subprocess.run(pytest, cwd=root, env=env, capture_output=True, check=False)
        subprocess.run([sys.executable, "-c", accept, "accept", "--new"], cwd=root, env=env, check=False)
        for number in range(suites):
            for work, counted in counts.items():
                subprocess.run(pytest, cwd=root, env={**env, "WORK": str(work)}, capture_output=True, check=False)
                cases = read_record(root / "run.json").cases
                outcomes = [case.worst.value for case in cases if case.key.name == "ours"]
                counted.update(outcomes)
                print(number, work, Counter(outcomes), flush=True)
    return "\n".join(f"{work}: {dict(counted)}" for work, counted in counts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--unlike", action="store_true", help="with --record: another kernel as the reference")
    parser.add_argument("--live", type=int, default=0)
    parser.add_argument("--spread", action="store_true", help="what ratios of ten processes can tell apart")
    parser.add_argument("--suites", type=int, default=300)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.child:
        child(unlike=options.unlike)
        return
    if options.spread:
        print(spread())
        return
    if options.live:
        print(live(options.live))
        return
    if options.record:
        record(options.record, unlike=options.unlike)
        return
    text = table(options.suites)
    print(text)
    if options.write:
        write_table(options.write, "faster", text)


if __name__ == "__main__":
    main()
