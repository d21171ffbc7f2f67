"""Replays what an H100 did at and below its power limit through the rule: ``python ci/bench/verdicts/power.py``.

``--write docs/rates.md`` puts the table of pairs between the page's markers ``h100-pairs``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
from replay import write_table  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.core.judge.context import JudgeContext  # noqa: E402
from pytest_perfgate.core.judge.judge import judge  # noqa: E402
from pytest_perfgate.core.judge.rounds import Design, Pairs, all_looks, more_slow  # noqa: E402
from pytest_perfgate.core.judge.samples import pair_of  # noqa: E402
from pytest_perfgate.core.limits.grammar import parse_limit  # noqa: E402
from pytest_perfgate.core.metric_kinds import by_name  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402
from pytest_perfgate.model.device import Device  # noqa: E402
from pytest_perfgate.model.measurement import (  # noqa: E402
    Baseline,
    Identity,
    Measurement,
    Samples,
    Stop,
)
from pytest_perfgate.model.plan import CaseKey, Decision  # noqa: E402
from pytest_perfgate.model.protocol import Capture  # noqa: E402

TAPES = HERE / "recordings" / "h100"
CARD = Device(key="NVIDIA-H100-observe", name="NVIDIA H100 80GB HBM3", kind="gpu")
HOW = Identity(device=CARD.key, clocks="observe", timer="events")
KEY = CaseKey(nodeid="t.py::t")
TESTS, SLOWED = 40, 2
Round = tuple[Capture, Capture]
PAIRS = {
    "softmax, free": "softmax/100",
    "GEMM 4096, 0.1 s of warm-up": "gemm/100",
    "GEMM 4096, at the limit": "gemm/1000",
    "SDPA, 0.1 s of warm-up": "sdpa/100",
    "SDPA, at the limit": "sdpa/1000",
}
RUNS = {"copy 256 MB": "copy256", "softmax": "softmax", "GEMM 4096": "gemm4096", "SDPA": "sdpa"}


def capture(times: list[float]) -> Capture:
    samples = Samples(
        durations=tuple(1e3 * t for t in times), timer="events", stop=Stop.BUDGET, turns=(1,) * len(times)
    )
    return Capture(key=KEY, samples=(samples,), device=CARD, identity=HOW)


def recorded(name: str) -> list[Round]:
    """Return every pair of processes on tape, each with ten turns a side."""
    lines = (TAPES / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    turns = [json.loads(line)[PAIRS[name]] for line in lines]
    return [(capture([b[0] for b, _ in one]), capture([h[0] for _, h in one])) for one in turns]


def drawn(tape: list[Round], count: int, slower: float, dice: random.Random) -> Pairs:
    """Return rounds drawn from the tape, either process being the base."""
    rounds = [dice.choice(tape) for _ in range(count)]
    pairs = pair_of([one if dice.random() < 0.5 else one[::-1] for one in rounds])
    return replace(pairs, head=tuple(time * (1 + slower) for time in pairs.head))


def suite(tape: list[Round], limit: float, slower: float, dice: random.Random) -> tuple[int, int, int]:
    """Return counts of 40 tests: alarms of unchanged, confirmations of slowed, and undecided unchanged ones."""
    design = Design(cases=TESTS)
    by = {at: slower if at < SLOWED else 0.0 for at in range(TESTS)}
    counts = dict.fromkeys(by, limit)
    pairs = {at: drawn(tape, design.last, s, dice) for at, s in by.items()}
    findings = {at: all_looks(None, one, limit, design) for at, one in pairs.items()}
    played = {at: pairs[at].first(one.rounds) for at, one in findings.items()}
    findings = more_slow(findings, played, counts, design.alpha)
    alarms = [at for at, one in findings.items() if one.decision is Decision.SLOWER]
    unseen = sum(f.decision is Decision.UNDECIDED for at, f in findings.items() if at >= SLOWED)
    return sum(at >= SLOWED for at in alarms), sum(at < SLOWED for at in alarms), unseen


def pairs_table(suites: int, seed: int) -> str:
    rows = [
        "| kernel | limit | scatter of a pair | suites that alarm | sees +2 % | sees +5 % | undecided |",
        "|" + " --- |" * 7,
    ]
    for name in PAIRS:
        tape = recorded(name)
        d = pair_of(tape).differences
        scatter = math.sqrt(sum(x * x for x in d) / len(d))
        for limit in (0.01, 0.03):
            dice = random.Random(seed)
            runs = {by: [suite(tape, limit, by, dice) for _ in range(suites)] for by in (0.02, 0.05)}
            both = [run for outcomes in runs.values() for run in outcomes]
            loud, slowed = sum(alarms > 0 for alarms, _, _ in both), SLOWED * suites
            hits_by_size = [sum(confirmations for _, confirmations, _ in outcomes) for outcomes in runs.values()]
            rates = [f"{hits / slowed:.0%} (≥ {clopper_pearson(hits, slowed).low:.0%})" for hits in hits_by_size]
            calm = sum(unseen for _, _, unseen in both) / (len(both) * (TESTS - SLOWED))
            alarms = f"{loud}/{len(both)} (≤ {upper_bound(loud, len(both)):.1%})"
            rows.append(f"| {name} | {limit:.0%} | {scatter:.2%} | {alarms} | {rates[0]} | {rates[1]} | {calm:.1%} |")
    return "\n".join(rows) + "\n"


def one_run(processes: list[list[float]], slower: float) -> Measurement:
    taken = tuple(
        Samples(durations=tuple(1e3 * t * (1 + slower) for t in one), timer="events", stop=Stop.COUNT)
        for one in processes
    )
    return Measurement(key=KEY, processes=taken, device=CARD, identity=HOW)


def runs_table(draws: int, seed: int) -> str:
    """Return the table of three processes against a line of three others, with two builds for the open ones."""
    rows = ["| kernel | code | the line clears | goes to two builds | confirmed by the line |", "|" + " --- |" * 5]
    lines = (TAPES / "processes.jsonl").read_text(encoding="utf-8").splitlines()
    limit = parse_limit("slowdown <= 3%", kinds=by_name())
    for name, field in RUNS.items():
        tape = [json.loads(line)[field]["us"] for line in lines]
        for slower in (0.0, 0.02, 0.05):
            dice, outcomes = random.Random(seed), Counter[str]()
            for _ in range(draws):
                chosen = dice.sample(tape, 6)
                before = judge(one_run(chosen[:3], 0.0), (limit,), baseline=None, context=JudgeContext())
                assert before.measurement is not None
                time = before.measurement.metrics.find("time")[0].value
                line = Baseline(key=KEY, device=CARD.key, time=time, identity=HOW, commit="a1b2c3d4e5")
                context = JudgeContext(paired_available=True, gates=TESTS)
                (verdict,) = judge(one_run(chosen[3:], slower), (limit,), baseline=line, context=context).verdicts
                outcomes[verdict.outcome.value] += 1
            cleared, wrong = outcomes["passed"] + outcomes["improved"], outcomes["regressed"]
            others = (draws - cleared - wrong) / draws
            rows.append(f"| {name} | +{slower:.0%} | {cleared / draws:.1%} | {others:.1%} | {wrong} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=150)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    pairs = pairs_table(options.suites, options.seed)
    print(pairs, runs_table(options.draws, options.seed), sep="\n")
    if options.write:
        write_table(options.write, "h100-pairs", pairs)


if __name__ == "__main__":
    main()
