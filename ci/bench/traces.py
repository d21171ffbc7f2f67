"""The default report of a generated trace beside json.load, in one run; sizes from 10 MB up for the cost per event.

    python ci/bench/traces.py                        # 300 MB against json.load
    python ci/bench/traces.py --sizes 10 30 100 300  # the cost per event
    python ci/bench/traces.py --sizes 10 30 100 300 1000 --plot docs/figures/trace-cost.svg
    python ci/bench/traces.py --file T.json.gz --reference FOLDER   # beside the reference tool, from its checkout
    python ci/bench/traces.py --megabytes 30 --reference FOLDER     # the same on a generated trace

The checkout is one of github.com/AMD-AGI/TraceLens, in an environment that has what its setup.py requires; what is
timed is its own ``generate_perf_report_pytorch`` with its defaults, written as CSV.

Each measurement is a fresh process. Wall time needs two idle cores to mean anything; processor time is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cost_plot import write_plot
from trace_maker import write_trace

BYTES_AN_EVENT = 299.5
OURS = """
from pathlib import Path
from pytest_perfgate.wiring import built_ins
from pytest_perfgate.core.render.text import render_text
kineto = next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")
analysis = kineto.inspect([Path(PATH)], {})
text = render_text(analysis.views["report"]())
assert "Where the time went" in text
"""
JSON = """
import gzip, json
opened = gzip.open(PATH) if PATH.endswith(".gz") else open(PATH, "rb")
events = json.load(opened)["traceEvents"]
"""
REFERENCE = """
import sys, tempfile
sys.path.insert(0, FOLDER)
try:
    from TraceLens.Reporting.generate_perf_report_pytorch import generate_perf_report_pytorch
except ImportError:  # before it had a function for its report
    from TraceLens.TreePerf import TreePerfAnalyzer
    analyzer = TreePerfAnalyzer.from_file(PATH)
    launchers = analyzer.get_df_kernel_launchers(include_kernel_details=True)
    analyzer.get_df_gpu_timeline()
    analyzer.get_df_kernel_launchers_summary(launchers)
    analyzer.get_df_kernel_launchers_unique_args(launchers)
else:
    with tempfile.TemporaryDirectory() as out:
        generate_perf_report_pytorch(PATH, output_csvs_dir=out)
"""
WRAP = """
import json, os, resource, time
begun = time.perf_counter()
exec(compile(CODE, "<measured>", "exec"), NAMES)
own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print("MEASURED" + json.dumps({
    "wall": time.perf_counter() - begun,
    "cpu": own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
    "own": own.ru_utime + own.ru_stime,
    "megabytes": (own.ru_maxrss + children.ru_maxrss) / 1e3,
}))
"""


def measured(code: str, **names: str) -> dict[str, float]:
    program = f"CODE = {code!r}\nNAMES = {names!r}\n{WRAP}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.rpartition("MEASURED")[2])


def row(name: str, figures: dict[str, float]) -> None:
    print(
        f"{name:24} wall {figures['wall']:7.2f} s   longest process {figures['own']:6.2f} s   "
        f"all processors {figures['cpu']:6.2f} s   peak {figures['megabytes']:6.0f} MB"
    )


def against_json(folder: Path, megabytes: int, repeats: int) -> None:
    path = folder / "trace.json"
    events = write_trace(path, int(megabytes * 1e6 / BYTES_AN_EVENT))
    print(
        f"{events:,} events, {path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    ours = min((measured(OURS, PATH=str(path)) for _ in range(repeats)), key=lambda f: f["wall"])
    theirs = min((measured(JSON, PATH=str(path)) for _ in range(repeats)), key=lambda f: f["wall"])
    row("full default report", ours)
    row("json.load alone", theirs)
    wall, processor = theirs["wall"] / ours["wall"], theirs["own"] / ours["own"]
    print(f"json.load alone / full report: {wall:.1f} x wall, {processor:.1f} x the longest process")


def linear(folder: Path, sizes: list[int], plot: str) -> None:
    seconds, memory, load = [], [], os.getloadavg()[0]
    print(f"{'MB':>6} {'events':>10} {'wall s':>8} {'cpu s':>8} {'us/event':>9} {'peak MB':>8}")
    for megabytes in sizes:
        path = folder / "trace.json"
        events = write_trace(path, int(megabytes * 1e6 / BYTES_AN_EVENT))
        found = measured(OURS, PATH=str(path))
        print(
            f"{path.stat().st_size / 1e6:6.0f} {events:10,} {found['wall']:8.2f} {found['cpu']:8.2f} "
            f"{found['cpu'] / events * 1e6:9.2f} {found['megabytes']:8.0f}",
            flush=True,
        )
        real = path.stat().st_size / 1e6
        seconds.append((real, found["cpu"]))
        memory.append((real, found["megabytes"]))
    if plot:
        subtitle = f"{os.cpu_count()} cores, load {load:.1f} at the start; dashed: linear through the largest"
        write_plot(Path(plot), seconds, memory, subtitle)


def against_reference(path: str, folder: str) -> None:
    if not (Path(folder) / "TraceLens").is_dir():
        raise SystemExit(f"{folder} is no checkout of the reference tool: it has no folder TraceLens")
    ours, theirs = measured(OURS, PATH=path), measured(REFERENCE, PATH=path, FOLDER=folder)
    row("full default report", ours)
    row("reference tool", theirs)
    print(f"reference / ours: {theirs['wall'] / ours['wall']:.1f} x wall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--plot", default="", help="with --sizes: write the cost against the size as SVG")
    parser.add_argument("--file", default="", help="with --reference: the trace that both read")
    parser.add_argument("--reference", default="", help="a checkout of the reference tool")
    asked = parser.parse_args()
    if asked.reference:
        with tempfile.TemporaryDirectory() as name:
            path = asked.file or str(Path(name) / "trace.json")
            if not asked.file:
                write_trace(Path(path), int(asked.megabytes * 1e6 / BYTES_AN_EVENT))
            against_reference(path, asked.reference)
        return
    with tempfile.TemporaryDirectory() as name:
        if asked.sizes:
            linear(Path(name), asked.sizes, asked.plot)
        else:
            against_json(Path(name), asked.megabytes, asked.repeats)


if __name__ == "__main__":
    main()
