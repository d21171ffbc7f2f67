"""False alarms and power of ``change(METRIC)`` for measured figures: ``python -m ci.bench.verdicts.changes``.

Readings are of fresh processes: the peak memory that each of them held, taken live, and drawn ones whose scatter is
known. Suites of 40 figures are drawn from them with replacement and go through the judge: against a line of one
accepted run, against one of four, and beside the other build in rounds. A regression is a reading times 1.1.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence

from pytest_perfgate.core.judge.accepting_figures import accepted_figure, with_run
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.readings import figures_of
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name, own_reading
from pytest_perfgate.core.stats.inference import clopper_pearson
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement
from pytest_perfgate.model.metric import FigurePairs
from pytest_perfgate.model.plan import CaseKey, Decision, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Paired

FIGURES, PROCESSES = 40, 3

_LIVE = (
    "import random, resource; random.seed(); x = [bytes(random.randrange(900, 1100)) for _ in range(20000)];"
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
)

KEY, DEVICE = CaseKey(nodeid="tests/bench.py::test_memory"), Device(key="host-bench", name="bench", kind="host")

IDENTITY = Identity(device=DEVICE.key)

KINDS = by_name()

Run = Callable[[random.Random], list[float]]
"""The readings of the processes of one run."""


def live(count: int) -> list[float]:
    """Return the peak memory of so many fresh processes."""
    command = [sys.executable, "-S", "-c", _LIVE]
    return [float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(count)]


def drawn(within: float, between: float) -> Run:
    """Return a source of readings around 100 MB, with a scatter of processes and one of runs."""

    def one_run(source: random.Random) -> list[float]:
        level = 1e8 * math.exp(source.gauss(0, between))
        return [level * math.exp(source.gauss(0, within)) for _ in range(PROCESSES)]

    return one_run


def recorded(pool: Sequence[float]) -> Run:
    return lambda source: source.choices(pool, k=PROCESSES)


def measured(readings: Sequence[float]) -> Measurement:
    metrics = figures_of([[own_reading("memory", reading, unit="B")] for reading in readings])
    return Measurement(key=KEY, processes=(), device=DEVICE, identity=IDENTITY, metrics=metrics)


def line(runs: Sequence[Sequence[float]]) -> Baseline:
    """Return the line after these runs were accepted, one after the other."""
    metrics = [measured(readings).metrics.find("memory")[0] for readings in runs]
    figure = accepted_figure(metrics[0])
    for metric in metrics[1:]:
        figure = with_run(figure, metric.value)
    return Baseline(key=KEY, device=DEVICE.key, figures=(figure,), identity=IDENTITY)


def paired(base: Sequence[float], head: Sequence[float]) -> Paired:
    pairs = FigurePairs(name="memory", labels=(), dimension=Dimension.BYTES, base=tuple(base), head=tuple(head))
    return Paired(decision=Decision.UNDECIDED, differences=(), shift=0.0, base="base", revision=True, figures=(pairs,))


def outcome(way: str, one_run: Run, source: random.Random, factor: float, text: str) -> Outcome:
    """Return the outcome of one figure that was accepted and measured again."""
    now = measured([factor * reading for reading in one_run(source)])
    context, limits = JudgeContext(gates=FIGURES, kinds=KINDS), [parse_limit(text, kinds=KINDS)]
    if way == "two builds":
        rounds = Design(cases=FIGURES).last  # the first look that decides stands
        base, head = ([one_run(source)[0] for _ in range(rounds)] for _ in range(2))
        heard = paired(base, [factor * reading for reading in head])
        return judge(now, limits, baseline=None, context=context, paired=heard).verdicts[0].outcome
    runs = 4 if way == "a line of 4 runs" else 1
    return (
        judge(now, limits, baseline=line([one_run(source) for _ in range(runs)]), context=context).verdicts[0].outcome
    )


WAYS = ("a line of 1 run", "a line of 4 runs", "two builds")


def row(name: str, one_run: Run, way: str, suites: int, limit: float) -> str:
    """Return one line of the table: clean suites that alarm, and how often +10 % is detected."""
    source, text = random.Random(f"{name} {way}"), f"change(metric(memory)) <= {limit:g}%"
    clean = [[outcome(way, one_run, source, 1.0, text) for _ in range(FIGURES)] for _ in range(suites)]
    alarms = sum(Outcome.REGRESSED in suite for suite in clean)
    slower = [outcome(way, one_run, source, 1.1, text) for _ in range(suites)]
    hits = sum(one is Outcome.REGRESSED for one in slower)
    reported = sum(one in {Outcome.REGRESSED, Outcome.SUSPECT, Outcome.UNDECIDED} for one in slower)
    high, low = clopper_pearson(alarms, suites).high, clopper_pearson(hits, suites).low
    cells = [f"{alarms}/{suites} (≤ {high:.1%})", f"{hits / suites:.0%} (≥ {low:.0%})", f"{reported / suites:.0%}"]
    return f"| {name} | {way} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=400)
    parser.add_argument("--processes", type=int, default=120, help="fresh processes of the live pool")
    options = parser.parse_args()
    pool = live(options.processes)
    middle = sorted(pool)[len(pool) // 2]
    print(
        f"live: {len(pool)} processes, {min(pool) / middle - 1:+.2%} to {max(pool) / middle - 1:+.2%} of their middle"
    )
    sources = {
        "peak memory, live": recorded(pool),
        "processes 1 %": drawn(0.01, 0.0),
        "processes 0.5 %, runs 1 %": drawn(0.005, 0.01),
    }
    print("| readings | held against | clean suites of 40 that alarm | +10 % is REGRESSED | or told |")
    print("| --- | --- | --- | --- | --- |")
    for name, one_run in sources.items():
        for way in WAYS:
            print(row(name, one_run, way, options.suites, 5))


if __name__ == "__main__":
    main()
