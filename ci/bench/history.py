"""A history of a million results: appending a run, reading the newest of every case, sixteen writers.

python -m ci.bench.history                     SQLite, and PostgreSQL where a server is installed
python -m ci.bench.history --results 100000    a smaller one
python -m ci.bench.history --site 500          pages of 1,000 cases and so many runs, from records and from the index

Each row is of one run: what the clock showed, what was computed meanwhile by this process and the server, and the
load, their ratio: 1 where nobody else computed and no disk was waited for. `ci/kill --only history` kills the writers.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import multiprocessing
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.postgres import PostgresHistory
from pytest_perfgate.adapters.stores.records import Records, render_record
from pytest_perfgate.app.accepted import append_records
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry
from pytest_perfgate.model.metric import Figure, Interval, Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import RunReport
from pytest_perfgate.wiring import configuration
from pytest_perfgate.wiring.stores import baseline_store
from tests import postgres_server, reports

CASES, LAST, WRITERS, RUNS = 500, 50, 16, 10
START = dt.datetime(2021, 1, 1, tzinfo=dt.timezone.utc)
KEYS = [
    CaseKey(nodeid=f"tests/kernels/test_gemm.py::test_gemm_{n // 50}[bf16-n={64 * (1 + n % 50)}]") for n in range(CASES)
]

Open = Callable[[], HistoryStore]


def run(number: int, cases: int = CASES, name: str = "") -> list[HistoryEntry]:
    """Return all entries that a run of the suite adds."""
    dice = random.Random(number)
    shared = {
        "device": "NVIDIA-H200", "when": (START + dt.timedelta(hours=number)).isoformat(),
        "commit": f"{dice.getrandbits(160):040x}", "processes": 3, "identity": "clocks=lock, threads=OMP_NUM_THREADS=4",
        "run": name or f"run{number:08}", "outcome": "passed", "host": f"gpu-{number % 8}", "card": f"GPU-{number % 8}",
        "facts": (("nvidia driver", "580.10"), ("torch", "2.6.0"), ("python", "3.11.9")), "clock_hz": 1.98e9,
    }  # fmt: skip
    return [
        HistoryEntry(key=key, time=time, metrics=_metrics(time), **shared)
        for key, time in zip(KEYS[:cases], _times(dice))
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


class Cost(NamedTuple):
    """What a call took, in milliseconds."""

    wall: float
    client: float
    server: float

    @property
    def computed(self) -> float:
        return self.client + self.server


Computed = Callable[[], float]
"""Milliseconds that a server has computed so far."""


def costs(call: Callable[[], object], times: int, server: Computed) -> list[Cost]:
    """Return what each of these calls took."""
    spent = []
    for _ in range(times):
        before = time.perf_counter(), time.process_time(), server()
        call()
        wall, client = time.perf_counter() - before[0], time.process_time() - before[1]
        spent.append(Cost(wall * 1e3, client * 1e3, server() - before[2]))
    return spent


def row(store: str, what: str, spent: list[Cost], bound: str = "") -> str:
    """Return a row: the best and the middle by the clock, the processor time in the middle, and the load."""
    wall, client = statistics.median(cost.wall for cost in spent), statistics.median(cost.client for cost in spent)
    served = statistics.fmean(cost.server for cost in spent)
    best = min(cost.wall for cost in spent)
    cells = (f"{best:.1f} ms", f"{wall:.1f} ms", f"{client:.1f} + {served:.1f} ms", f"{wall / (client + served):.1f}")
    return f"| {store} | {what} | {' | '.join(cells)} | {bound} |"


def figures(
    name: str, opened: Open, results: int, server: Computed, settled: Callable[[], None] = lambda: None
) -> Iterator[str]:
    store, runs = opened(), results // CASES
    began = time.perf_counter()
    for number in range(runs):
        store.append(run(number))
    yield f"| {name} | filling, {runs:,} runs of {CASES} cases | {time.perf_counter() - began:.0f} s | | | | |"
    coming = iter([run(number) for number in range(runs, runs + 20)])
    bound = "50 ms" if name == "SQLite" else "100 ms"
    yield row(name, f"appending a run of {CASES} cases", costs(lambda: store.append(next(coming)), 20, server), bound)
    settled()
    spent = costs(lambda: list(opened().lines(LAST)), 9, server)
    assert [len(line) for line in opened().lines(LAST)] == [LAST] * CASES
    yield row(name, f"the newest {LAST} of {CASES} cases", spent, "100 ms")
    spent = costs(lambda: store.read(random.choice(KEYS), "NVIDIA-H200", LAST), 200, server)
    yield row(name, f"the newest {LAST} of one case", spent)
    with tempfile.TemporaryDirectory() as folder:
        spent = costs(_records(opened, Path(folder)), 9, server)
    yield row(name, "adding a record of 1,000 cases", spent)


def _records(opened: Open, folder: Path) -> Callable[[], object]:
    """Add one record after the other, as ``perfgate history add`` does."""
    for number in range(9):
        cases = (reports.case(f"test_{n}", 1e5 + n + number, 1e5) for n in range(1000))
        report = reports.run(*cases, started=f"2031-01-{1 + number:02}T00:00:00+00:00")
        (folder / f"{number}.json").write_bytes(render_record(report))
    coming = Records(folder).sources([str(folder)])
    return lambda: list(append_records(opened(), [next(coming)]))


def _write(opened: Open, writer: int) -> None:
    store = opened()
    for number in range(RUNS):
        store.append(run(10**6 + number, 100, f"writer{writer}.{number}"))
        store.append(run(10**6 + number, 100, f"shared.{number}"))


def writers(name: str, opened: Open) -> str:
    """Return the row of sixteen writers at once, each with runs of its own and all with some runs in common."""
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
    return f"| {name} | {what} | {spent:.0f} s | {failed} failed, {wrong} cases wrong | | | 0 |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--only", default="", choices=("", "sqlite", "postgres"))
    parser.add_argument("--site", type=int, default=0, metavar="RUNS")
    options = parser.parse_args()
    if options.site:
        for figured in (False, True):
            for line in site(options.site, figured=figured):
                print(line, flush=True)
        return
    results = options.results
    print("| store | what | best | middle | computed: client + server | load | bound |", flush=True)
    print("| --- " * 7 + "|", flush=True)
    if options.only != "postgres":
        in_sqlite(results)
    if options.only != "sqlite":
        in_postgres(results)


def in_sqlite(results: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ".perfgate" / "history.db"

        def sqlite() -> HistoryStore:
            return SqliteHistory(path)

        for line in figures("SQLite", sqlite, results, lambda: 0.0):
            print(line, flush=True)
        path = Path(folder) / "small" / "history.db"
        print(writers("SQLite", sqlite), flush=True)


def in_postgres(results: int) -> None:
    if why := postgres_server.missing():
        print(f"PostgreSQL: {why}")
        return
    with postgres_server.served() as server:

        def postgres() -> HistoryStore:
            return PostgresHistory(server.address)

        for line in figures("PostgreSQL", postgres, results, lambda: computed_by(server), server.vacuum):
            print(line, flush=True)
        server.emptied()
        print(writers("PostgreSQL", postgres), flush=True)


_BESIDE = (
    ("peak_memory", 1e7, Dimension.BYTES, 0.01), ("registers", 128.0, Dimension.COUNT, 0.0),
    ("overlap", 0.8, Dimension.FRACTION, 0.01), ("allocations", 300.0, Dimension.COUNT, 0.0),
)  # fmt: skip
"""What is accepted beside the time: name, value, dimension, scatter. Of every ninth case all of them move once."""


def site(runs: int, *, figured: bool, cases: int = 1000) -> Iterator[str]:
    """Yield the cost of pages of so many records, in which every seventh case got slower, then of their history."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["*"]\n', encoding="utf-8")
        (root / "runs").mkdir()
        for number in range(runs):
            report = _report(number, runs, cases, _BESIDE if figured else ())
            (root / "runs" / f"{number:04}.json").write_bytes(render_record(report))
        accepted = tuple(Figure(name=name, value=at, dimension=kind) for name, at, kind, _ in _BESIDE)
        if figured:
            lines = [Baseline(key=c.key, device="NVIDIA-H200", time=1e5, figures=accepted) for c in report.cases]
            baseline_store(root, configuration(root)).write(lines)
        name = f"{runs} runs of {cases} cases{', four accepted figures each' * figured}"
        command = [sys.executable, "-c", "from pytest_perfgate.cli import main; raise SystemExit(main())", "site"]
        commits = ["--commits", "https://github.com/owner/kernels/commit/{}"]
        for what, sources in (("from records", ["runs"]), ("from the index", []), ("a page that is gone", [])):
            began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [*command, "public", *sources, *commits], cwd=root, check=True, stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            )  # fmt: skip
            spent, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            size = sum(path.stat().st_size for path in (root / "public").rglob("*") if path.is_file()) / 1e6
            yield f"| {name} | {what} | {spent:.1f} s | {computed:.1f} s | {size:.1f} MB |"
            if what == "from records":
                shutil.rmtree(root / "public")
            else:
                (root / "public" / "index.html").unlink()
        yield f"| {name} | memory of the largest process | {after.ru_maxrss >> 10} MB | | |"


def _report(number: int, runs: int, cases: int, beside: tuple[tuple[str, float, Dimension, float], ...]) -> RunReport:
    dice, every = random.Random(number), []
    for at in range(cases):
        base = 1e5 * (1 + at % 40)
        time_ns = base * (1.1 if at % 7 == 0 and number > 0.6 * runs else 1) * dice.gauss(1, 0.01)
        moved = 1.05 if at % 9 == 0 and number > 0.5 * runs else 1.0
        own = tuple(
            Metric(name=name, value=round(value * moved * dice.gauss(1, scatter), 4), dimension=kind)
            for name, value, kind, scatter in beside
        )
        case = reports.case(f"test_gemm_{at // 50}[bf16-n={64 * (1 + at % 50)}]", time_ns, base)
        metrics = MetricSet(metrics=case.measurement.metrics.metrics + own)
        every.append(replace(case, measurement=case.measurement.with_metrics(metrics)))
    environment = Environment(python="3.11", platform="Linux", commit=f"{dice.getrandbits(160):040x}")
    return reports.run(*every, started=(START + dt.timedelta(hours=12 * number)).isoformat(), environment=environment)


def computed_by(server: postgres_server.Server) -> float:
    """Return milliseconds of processor time of a server and its children; 0 if the system does not say."""
    first = server.running.pid if server.running else 0
    ticks = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            own = int(place.name) == first
            if own or int(fields[1]) == first:
                ticks += sum(map(int, fields[11 : 15 if own else 13]))
    return ticks * 1e3 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
