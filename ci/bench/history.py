"""A history of a million results: appending a run, reading the newest of every case, sixteen writers, kills.

python -m ci.bench.history                     SQLite, and PostgreSQL where a server is installed
python -m ci.bench.history --results 100000    a smaller one
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import multiprocessing
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.postgres import PostgresHistory
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore
from pytest_perfgate.model.values import Dimension, Interval
from tests import postgres_server

CASES, LAST, WRITERS, RUNS, KILLS = 500, 50, 16, 10, 20
START = dt.datetime(2021, 1, 1, tzinfo=dt.timezone.utc)
KEYS = [
    CaseKey(nodeid=f"tests/kernels/test_gemm.py::test_gemm_{n // 50}[bf16-n={64 * (1 + n % 50)}]") for n in range(CASES)
]

Open = Callable[[], HistoryStore]


def run(number: int, cases: int = CASES, name: str = "") -> list[Sitting]:
    """All that a run of the suite leaves."""
    dice = random.Random(number)
    shared = {
        "device": "NVIDIA-H200", "when": (START + dt.timedelta(hours=number)).isoformat(),
        "commit": f"{dice.getrandbits(160):040x}", "processes": 3, "identity": "clocks=lock, threads=OMP_NUM_THREADS=4",
        "run": name or f"run{number:08}", "outcome": "passed", "host": f"gpu-{number % 8}", "card": f"GPU-{number % 8}",
        "facts": (("nvidia driver", "580.10"), ("torch", "2.6.0"), ("python", "3.11.9")), "clock_hz": 1.98e9,
    }  # fmt: skip
    return [
        Sitting(key=key, time=time, metrics=_metrics(time), **shared) for key, time in zip(KEYS[:cases], _times(dice))
    ]


def _times(dice: random.Random) -> list[float]:
    return [1e5 * (1 + n % 40) * dice.gauss(1, 0.01) for n in range(CASES)]


def _metrics(time: float) -> tuple[Metric, ...]:
    return (
        Metric(name="time", value=time, dimension=Dimension.TIME, interval=Interval(low=time * 0.99, high=time * 1.01)),
        Metric(name="tflops", value=1e18 / time, dimension=Dimension.FLOPS),
        Metric(name="mfu", value=0.6, dimension=Dimension.FRACTION),
        Metric(name="peak_memory", value=1e7, dimension=Dimension.BYTES),
    )


def milliseconds(call: Callable[[], object], times: int) -> str:
    """The best, the middle and the longest: on a busy machine the best is nearest to what it takes."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        spent.append((time.perf_counter() - began) * 1e3)
    digits = 0 if statistics.median(spent) > 9 else 2
    return " | ".join(f"{one:.{digits}f} ms" for one in (min(spent), statistics.median(spent), max(spent)))


def figures(name: str, opened: Open, results: int) -> Iterator[str]:
    store, runs = opened(), results // CASES
    began = time.perf_counter()
    for number in range(runs):
        store.append(run(number))
    yield f"| {name} | filling, {runs:,} runs of {CASES} cases | {time.perf_counter() - began:.0f} s | | | |"
    coming = iter([run(number) for number in range(runs, runs + 20)])
    spent = milliseconds(lambda: store.append(next(coming)), 20)
    bound = 50 if name == "SQLite" else 100
    yield f"| {name} | appending a run of {CASES} cases | {spent} | {bound} ms |"
    spent = milliseconds(lambda: list(opened().lines(LAST)), 9)
    assert [len(line) for line in opened().lines(LAST)] == [LAST] * CASES
    yield f"| {name} | the newest {LAST} of {CASES} cases | {spent} | 100 ms |"
    spent = milliseconds(lambda: store.read(random.choice(KEYS), "NVIDIA-H200", LAST), 200)
    yield f"| {name} | the newest {LAST} of one case | {spent} | |"


def _write(opened: Open, writer: int) -> None:
    store = opened()
    for number in range(RUNS):
        store.append(run(10**6 + number, 100, f"writer{writer}.{number}"))
        store.append(run(10**6 + number, 100, f"shared.{number}"))


def writers(name: str, opened: Open) -> str:
    """Sixteen at once, each with runs of its own and all with the same ones."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_write, args=(opened, number)) for number in range(WRITERS)]
    began = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    spent = time.perf_counter() - began
    failed = sum(process.exitcode != 0 for process in processes)
    lines = [[s.run for s in line if s.run.startswith(("writer", "shared"))] for line in opened().lines()]
    wrong = sum(len(runs) != (WRITERS + 1) * RUNS or len(set(runs)) != len(runs) for runs in lines if runs)
    what = f"{WRITERS} writers, {RUNS} runs each and the same {RUNS}"
    return f"| {name} | {what} | {spent:.0f} s | {failed} failed, {wrong} cases wrong | | 0 |"


def killed_writer(opened: Open, seed: int) -> str:
    """What a writer that died had confirmed is there once; what it had not is there as a whole or not at all."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            store = opened()
            for number in range(1000):
                store.append(run(10**7 + number, 100, f"killed{seed}.{number}"))
                os.write(writing, b"x")
        os._exit(0)
    os.close(writing)
    time.sleep(random.Random(seed).uniform(0.02, 0.5))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    confirmed = 0
    while data := os.read(reading, 1 << 16):
        confirmed += len(data)
    os.close(reading)
    return fault(opened, f"killed{seed}.", confirmed)


def killed_server(server: postgres_server.Server, opened: Open, seed: int) -> str:
    """The same of a database that dies under a writer; what it refused comes again, and counts once."""
    confirmed, stop = [0], threading.Event()

    def write() -> None:
        store = opened()
        with contextlib.suppress(PerfgateError):
            for number in range(1000):
                store.append(run(10**7 + number, 100, f"server{seed}.{number}"))
                confirmed[0] += 1
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(random.Random(seed).uniform(0.02, 0.6))
    server.stop(kill=True)
    writer.join()
    server.start()
    return fault(opened, f"server{seed}.", confirmed[0]) if stop.is_set() else "the writer did not end"


def fault(opened: Open, prefix: str, confirmed: int) -> str:
    """What is wrong; empty where nothing is."""
    lines = [[s.run for s in line if s.run.startswith(prefix)] for line in opened().lines()]
    sizes = {len(runs) for runs in lines[:1]} | {len(runs) for runs in lines if runs}
    twice = any(len(set(runs)) != len(runs) for runs in lines)
    there = max(sizes, default=0)
    whole = sum(bool(runs) for runs in lines) in {0, 100} and len(sizes - {0}) <= 1
    again = opened().append([s for number in range(there) for s in run(10**7 + number, 100, f"{prefix}{number}")])
    if twice or not whole or there not in {confirmed, confirmed + 1} or again:
        return f"{confirmed} confirmed, {there} there, twice: {twice}, whole: {whole}, new when added again: {again}"
    return ""


def kills(name: str, what: str, killed: Callable[[int], str]) -> str:
    began = time.perf_counter()
    faults = [why for seed in range(KILLS) if (why := killed(seed))]
    for why in faults:
        print(why, flush=True)
    spent = time.perf_counter() - began
    return f"| {name} | {what} killed {KILLS} times | {spent:.0f} s | {len(faults)} lost, twice or half | | 0 |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--only", default="", choices=("", "sqlite", "postgres"))
    asked = parser.parse_args()
    results = asked.results
    print("| store | what | best | middle | longest | bound |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    if asked.only != "postgres":
        in_sqlite(results)
    if asked.only != "sqlite":
        in_postgres(results)


def in_sqlite(results: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ".perfgate" / "history.db"

        def sqlite() -> HistoryStore:
            return SqliteHistory(path)

        for line in figures("SQLite", sqlite, results):
            print(line, flush=True)
        path = Path(folder) / "small" / "history.db"
        print(writers("SQLite", sqlite), flush=True)
        print(kills("SQLite", "a writer", lambda seed: killed_writer(sqlite, seed)), flush=True)


def in_postgres(results: int) -> None:
    if why := postgres_server.missing():
        print(f"PostgreSQL: {why}")
        return
    with postgres_server.served() as server:

        def postgres() -> HistoryStore:
            return PostgresHistory(server.address)

        for line in figures("PostgreSQL", postgres, results):
            print(line, flush=True)
        server.emptied()
        print(writers("PostgreSQL", postgres), flush=True)
        print(kills("PostgreSQL", "a writer", lambda seed: killed_writer(postgres, seed)), flush=True)
        print(kills("PostgreSQL", "the server", lambda seed: killed_server(server, postgres, seed)), flush=True)


if __name__ == "__main__":
    main()
