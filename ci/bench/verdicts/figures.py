"""Alarms and power of figures beside time, on this host: ``python ci/bench/verdicts/figures.py --processes 60``.

Each process takes every figure of the calls of ``examples/planted_regressions``, clean or with the regressions
planted; the tape is judged as suites: an accepted run and another one, of processes drawn from it. ``--tape FILE``
reads a tape, ``--write docs/rates.md`` puts the table between the page's markers ``figures``.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
EXAMPLE = ROOT / "examples" / "planted_regressions"
sys.path[:0] = [str(HERE), str(ROOT)]
from replay import write_table  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.adapters.system.processes import ProcessMemory, queued_ns  # noqa: E402
from pytest_perfgate.app.passes import one_by_one  # noqa: E402
from pytest_perfgate.core.judge.context import JudgeContext  # noqa: E402
from pytest_perfgate.core.judge.judge import judge  # noqa: E402
from pytest_perfgate.core.judge.readings import figures_of  # noqa: E402
from pytest_perfgate.core.limits.grammar import parse_limit  # noqa: E402
from pytest_perfgate.core.metric_kinds import by_name  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402
from pytest_perfgate.model.device import Device  # noqa: E402
from pytest_perfgate.model.measurement import (  # noqa: E402
    Baseline,
    Identity,
    Measurement,
    Reading,
    Samples,
    Stop,
)
from pytest_perfgate.model.metric import Figure  # noqa: E402
from pytest_perfgate.model.plan import CaseKey, Outcome, Plan  # noqa: E402
from pytest_perfgate.model.values import Dimension  # noqa: E402
from pytest_perfgate.wiring import devices  # noqa: E402

PLANTED = "memory tail compile"
HOST = Device(key="host", name="host", kind="host")
KEY = CaseKey(nodeid="t.py::t")
PROCESSES, COMPILING = 3, 6
"""Of a run: as many as a run takes by itself, and as the example asks for where a process is one sample."""
CASES = {
    "memory +10 %": ("memory", "change(peak_memory) <= 1%", PROCESSES),
    "99 %, a call that waits 10 ms": ("wait", "change(time(q=99%)) <= 50%", PROCESSES),
    "99 %, a call that computes 0.3 ms": ("spin", "change(time(q=99%)) <= 50%", PROCESSES),
    "compile time x 2": ("compile", "change(compile_time) <= 50%", COMPILING),
}
"""What is planted, what of the tape shows it, the limit, and the processes of a run."""
Process = dict[str, Any]


def worker() -> None:
    """Print every figure of the example's calls in one fresh process; times are in microseconds."""
    spec = spec_from_file_location("planted", EXAMPLE / "kernels.py")
    assert spec is not None
    assert spec.loader is not None
    kernels = module_from_spec(spec)
    spec.loader.exec_module(kernels)
    busy, queued, begun = time.thread_time_ns(), queued_ns(), time.perf_counter_ns()
    kernels.lookup()
    took = time.perf_counter_ns() - begun - (queued_ns() - queued)
    first = max(took, time.thread_time_ns() - busy)
    memory, timer, runtime = ProcessMemory(), devices.host_timer(), devices.host_runtime()
    plan = one_by_one(Plan(warmup_ns=0, budget_ns=1e9), ("q=99%",), PROCESSES)
    count = itertools.count()

    def spin() -> int:
        return sum(range(24_000 if "tail" in kernels.PLANTED and next(count) % 20 == 0 else 8_000))

    taken = {
        "compile": first,
        "traced": [memory.traced(kernels.scaled) for _ in range(3)],
        "resident": [memory.resident(kernels.scaled) for _ in range(3)],
        "wait": times_of(timer.measure(kernels.request, plan, runtime)),
        "spin": times_of(timer.measure(spin, plan, runtime)),
    }
    print(json.dumps(taken))


def times_of(samples: Samples) -> Process:
    """Return the times that the verdict examines."""
    times, waits = ([round(one / 1e3) for one in them] for them in (samples.durations, samples.waits))
    return {"times": times, "waits": waits}


def recorded(path: Path, processes: int) -> None:
    """Record clean and slowed processes in turns, one line each."""
    with gzip.open(path, "wt", encoding="utf-8") as tape:
        for number in range(2 * processes):
            planted = PLANTED if number % 2 else ""
            command = [sys.executable, __file__, "--worker"]
            env = {**os.environ, "PLANTED": planted}
            out = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
            tape.write(json.dumps({"planted": bool(planted), **json.loads(out)}) + "\n")
            tape.flush()


def measurement(part: str, processes: list[Process]) -> Measurement:
    """Return the measurement of one case in these processes."""
    still: Process = {"times": [1000, 1001], "waits": []}
    taken = [one[part] if part in {"wait", "spin"} else still for one in processes]
    samples = tuple(
        Samples(
            durations=tuple(1e3 * number for number in one["times"]),
            waits=tuple(1e3 * number for number in one["waits"]),
            timer="host",
            stop=Stop.COUNT,
        )
        for one in taken
    )
    return Measurement(
        key=KEY, processes=samples, device=HOST, identity=Identity(device="host"),
        metrics=figures_of([list(readings(part, one)) for one in processes]),
    )  # fmt: skip


def readings(part: str, process: Process) -> Iterator[Reading]:
    if part == "compile":
        yield Reading(name="compile_time", values=(float(process["compile"]),), dimension=Dimension.TIME)
    if part == "memory":
        for by in ("traced", "resident"):
            values = tuple(float(one) for one in process[by] if one is not None)
            if values:
                yield Reading(name="peak_memory", values=values, dimension=Dimension.BYTES, labels=(("by", by),))


def verdict(part: str, text: str, then: list[Process], now: list[Process]) -> Outcome:
    """Return the gate's outcome of the second run after the first was accepted."""
    limit = parse_limit(text, kinds=by_name())
    context = JudgeContext(gates=len(CASES))
    before = judge(measurement(part, then), [limit], baseline=None, context=context).measurement
    assert before is not None
    figures = tuple(
        Figure(name=one.name, value=float(f"{one.value:.5g}"), dimension=one.dimension, labels=one.labels)
        for one in before.metrics.find(limit.metric, limit.labels)
    )
    line = Baseline(key=KEY, device="host", time=before.metrics.find("time")[0].value, figures=figures,
                    identity=before.identity)  # fmt: skip
    (ruling,) = judge(measurement(part, now), [limit], baseline=line, context=context).verdicts
    return ruling.outcome


def row(name: str, tape: list[Process], suites: int, dice: random.Random) -> tuple[list[str], list[bool]]:
    """Return one line of the table, and which suites alarmed."""
    part, text, count = CASES[name]
    clean, slow = ([one for one in tape if one["planted"] is planted] for planted in (False, True))
    alarms, outcomes, open_ = [], Counter[Outcome](), 0
    for _ in range(suites):
        both = dice.sample(clean, 2 * count)
        then, same = both[:count], both[count:]
        outcome = verdict(part, text, then, same)
        alarms.append(outcome is Outcome.REGRESSED)
        open_ += outcome in {Outcome.UNDECIDED, Outcome.SUSPECT}
        outcomes[verdict(part, text, then, dice.sample(slow, count))] += 1
    regressed = outcomes[Outcome.REGRESSED]
    least = clopper_pearson(regressed, suites, 0.9).low
    cells = [name, f"`{text}`", f"{count}", f"{sum(alarms)}/{suites} (≤ {upper_bound(sum(alarms), suites):.1%})"]
    cells += [f"{open_ / suites:.1%}", f"{regressed / suites:.0%} (≥ {least:.0%})"]
    return cells, alarms


def table(tape: list[Process], suites: int, seed: int) -> str:
    dice = random.Random(seed)
    rows, alarms = zip(*(row(name, tape, suites, dice) for name in CASES))
    heads = ["planted", "limit", "processes a run", "false alarms", "clean ones left open", "seen"]
    lines = [heads, ["---"] * len(heads), *rows]
    alarmed = sum(map(any, zip(*alarms)))
    clean = sum(not one["planted"] for one in tape)
    text = (
        f"{suites} suites of {len(CASES)} figures, drawn from {clean} clean and {len(tape) - clean} planted processes"
    )
    text += f"; {alarmed} clean suites alarm (≤ {upper_bound(alarmed, suites):.1%}); seed {seed}.\n\n"
    return text + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, default=0, help="record so many of each kind")
    parser.add_argument("--tape", type=Path, default=HERE / "recordings" / "figures.jsonl.gz")
    parser.add_argument("--suites", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.worker:
        return worker()
    if options.processes:
        recorded(options.tape, options.processes)
    with gzip.open(options.tape, "rt", encoding="utf-8") as lines:
        tape = [json.loads(line) for line in lines]
    text = table(tape, options.suites, options.seed)
    print(text)
    if options.write:
        write_table(options.write, "figures", text)
    return None


if __name__ == "__main__":
    main()
