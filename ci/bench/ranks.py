"""A job of many ranks on a Dask cluster of this machine: ``python -m ci.bench.ranks --ranks 4096 --workers 2``.

Prints the time, what the client's memory grew by, and what a rank adds to it; then once more with a worker that is
killed on the way, which must change no figure, and with a file cut in half, which must be named.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path

from distributed import LocalCluster

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis
from pytest_perfgate.wiring import command_line_tools
from tests.kineto_job import job


def look(paths: list[Path], address: str) -> Analysis:
    """Return the analysis by the command line's own inspector."""
    from pytest_perfgate.app.inspections import inspect

    tools = command_line_tools(Path.cwd())
    return inspect(paths, {"workers": address}, inspectors=tools.inspectors, peek=tools.peek)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figures(analysis: Analysis) -> list[tuple[object, ...]]:
    return sorted((m.name, str(m.labels), m.value) for m in analysis.metrics.metrics)


def timed(label: str, paths: list[Path], address: str) -> list[tuple[object, ...]]:
    before, begun = peak_mib(), time.monotonic()
    analysis = look(paths, address)
    took, grown = time.monotonic() - begun, peak_mib() - before
    print(f"{label}: {analysis.subject}, {took:.1f} s, client peak {peak_mib():.0f} MiB (+{grown:.0f})")
    return figures(analysis)


def kill_later(cluster: LocalCluster, after_s: float) -> threading.Timer:
    """Kill the first worker on the way."""
    pid = next(iter(cluster.workers.values())).process.pid
    timer = threading.Timer(after_s, lambda: os.kill(pid, signal.SIGKILL))
    timer.start()
    return timer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        paths = job(Path(scratch), options.ranks)
        with LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster:
            address = cluster.scheduler_address
            timed("a quarter", paths[: options.ranks // 4], address)
            whole = timed("all", paths, address)
            kill_later(cluster, 5.0)
            assert timed("all, a worker killed", paths, address) == whole
            half = paths[options.ranks // 2]
            half.write_bytes(half.read_bytes()[:1000])
            try:
                look(paths, address)
            except PerfgateError as error:
                print(f"one file cut in half: {error.code.name}, {Path(error.place).name}")


if __name__ == "__main__":
    main()
