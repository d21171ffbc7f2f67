"""What reading a large export costs: 2 M kernels, 4 M runtime calls, 1 M ranges.

    python ci/bench/nsys.py [--kernels N] [--keep FILE]

Every contender runs in a process of its own and reads the same file in the same run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nsys_file import write_export

KERNEL = "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"


def overlap(path: Path, **options: str) -> None:
    from pytest_perfgate.adapters.readers.nsys_report import read_nsys
    from pytest_perfgate.app.inspections.nsys import Nsys
    from pytest_perfgate.core.render.text import render_text

    analysis = Nsys(read_nsys).inspect([path], options)
    assert "stage2_f" in render_text(analysis.views["overlap"]())


def overlap_whole(path: Path) -> None:
    overlap(path, start="0", end="10s")


def summary(path: Path) -> None:
    from pytest_perfgate.adapters.readers.nsys_report import read_nsys

    assert len(read_nsys(path).kernel_totals(0, 1 << 62)) > 1000


def pandas_tables(path: Path) -> None:
    """Read the three tables as frames, as a notebook does before any question."""
    import sqlite3

    import pandas as pd

    with sqlite3.connect(path) as connection:
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            pd.read_sql(f"SELECT * FROM {table}", connection)


def pandas_summary(path: Path) -> None:
    import sqlite3

    import pandas as pd

    with sqlite3.connect(path) as connection:
        frame = pd.read_sql(KERNEL, connection)
    frame["length"] = frame["end"] - frame["start"]
    frame.groupby(["globalPid", "deviceId", "shortName"])["length"].agg(["count", "sum", "min", "max"])


CONTENDERS = {call.__name__: call for call in (overlap, overlap_whole, summary, pandas_tables, pandas_summary)}
LIMITS = {"overlap": (6.0, 600.0), "summary": (2.0, 100.0)}


def measure_one(name: str, path: Path) -> None:
    began, spent = time.perf_counter(), time.process_time()
    CONTENDERS[name](path)
    took, spent = time.perf_counter() - began, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": took, "cpu": spent, "mb": peak}))


def measured(path: Path) -> dict[str, dict[str, float]]:
    costs = {}
    for name in CONTENDERS:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, "--keep", str(path)], check=True, capture_output=True, text=True
        )
        costs[name] = json.loads(done.stdout)
        row = costs[name]
        print(f"{name:<16} {row['seconds']:7.2f} s  {row['cpu']:7.2f} s CPU  {row['mb']:7.0f} MB", flush=True)
    return costs


def verdict(costs: dict[str, dict[str, float]]) -> int:
    """Print ratios of one run and the budgets; return 1 if one is exceeded."""
    late = 0
    for ours, theirs in (
        ("summary", "pandas_summary"),
        ("overlap", "pandas_tables"),
        ("overlap_whole", "pandas_tables"),
    ):
        wall, cpu = (costs[theirs][key] / costs[ours][key] for key in ("seconds", "cpu"))
        print(f"{ours} against {theirs}: {wall:.1f}x, {cpu:.1f}x in CPU time")
    for name, (seconds, megabytes) in LIMITS.items():  # CPU time: a busy machine is no slower program
        within = costs[name]["cpu"] < seconds and costs[name]["mb"] < megabytes
        print(f"{name}: under {seconds:g} s of CPU and {megabytes:g} MB: {'yes' if within else 'NO'}")
        late += not within
    return 1 if late else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=2_000_000)
    parser.add_argument("--keep", type=Path, help="where the file is, or is put and left")
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure_one(options.one, options.keep)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "large.sqlite"
        if not path.exists():
            write_export(path, options.kernels)
        print(f"{path.stat().st_size / 1e6:.0f} MB: {options.kernels:,} kernels, {2 * options.kernels:,} calls, "
              f"{options.kernels // 2:,} ranges")  # fmt: skip
        return verdict(measured(path))


if __name__ == "__main__":
    sys.exit(main())
