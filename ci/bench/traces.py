"""The default report of a generated trace beside json.load, in one run; sizes from 10 MB up for the cost per event.

    python ci/bench/traces.py                        # 300 MB against json.load
    python ci/bench/traces.py --sizes 10 30 100 300  # the cost per event
    python ci/bench/traces.py --sizes 10 30 100 300 1000 --plot docs/figures/trace-cost.svg
    python ci/bench/traces.py --reference VENV/bin/python --file T.json.gz                # beside TraceLens and HTA
    python ci/bench/traces.py --reference VENV/bin/python --repeat T.json.gz --megabytes 62

Whole commands run in turns, --repeats rounds of them, and the least of each counts; a tiny trace shows the start.
The environment has TraceLens (github.com/AMD-AGI/TraceLens) and HolisticTraceAnalysis installed. What is timed is whole
commands: TraceLens' own report with its defaults, written as CSV; HTA's temporal and kernel breakdown and its overlap.

Each measurement is a fresh process. Wall time needs two idle cores to mean anything; processor time is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cost_plot import write_plot
from trace_maker import repeat_trace, write_trace

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
TRACELENS = """
import sys, tempfile
from TraceLens.Reporting.generate_perf_report_pytorch import generate_perf_report_pytorch
with tempfile.TemporaryDirectory() as out:
    generate_perf_report_pytorch(sys.argv[1], output_csvs_dir=out)
"""
HTA = """
import os, sys
from hta.trace_analysis import TraceAnalysis
path = os.path.abspath(sys.argv[1])
analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
"""
MAIN = "import sys; from pytest_perfgate.cli import main; sys.exit(main(sys.argv[1:]))"
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
        cost = measured(OURS, PATH=str(path))
        print(
            f"{path.stat().st_size / 1e6:6.0f} {events:10,} {cost['wall']:8.2f} {cost['cpu']:8.2f} "
            f"{cost['cpu'] / events * 1e6:9.2f} {cost['megabytes']:8.0f}",
            flush=True,
        )
        real = path.stat().st_size / 1e6
        seconds.append((real, cost["cpu"]))
        memory.append((real, cost["megabytes"]))
    if plot:
        subtitle = f"{os.cpu_count()} cores, load {load:.1f} at the start; dashed: linear through the largest"
        write_plot(Path(plot), seconds, memory, subtitle)


def command(argv: list[str]) -> dict[str, float]:
    """Return times and memory of a whole process, its start included."""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    running = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables)
    _, status, used = os.wait4(running.pid, 0)
    if status:
        raise SystemExit(f"{argv[-3:]} ended with {status}")
    processor = used.ru_utime + used.ru_stime
    return {
        "wall": time.perf_counter() - begun,
        "cpu": processor,
        "own": processor,
        "megabytes": used.ru_maxrss / 1e3,
    }


def in_turns(commands: dict[str, list[str]], repeats: int) -> dict[str, dict[str, float]]:
    """Return the shortest of several rounds for each: a neighbour in one round slows all of it."""
    rounds = [{name: command(argv) for name, argv in commands.items()} for _ in range(repeats)]
    return {name: {part: min(one[name][part] for one in rounds) for part in rounds[0][name]} for name in commands}


def against_reference(path: str, python: str, repeats: int) -> None:
    """Time whole commands in turn; python is that of an environment with TraceLens and HolisticTraceAnalysis."""
    inspect = [sys.executable, "-c", MAIN, "inspect", path]
    with tempfile.TemporaryDirectory() as out:
        tiny = Path(out) / "tiny.json"
        write_trace(tiny, 60)
        commands = {
            "perfgate inspect": inspect,
            "TraceLens, all tables": [python, "-c", TRACELENS, path],
            "--compat tracelens --csv": [*inspect, "--compat", "tracelens", "--csv", out],
            "HTA, breakdowns, overlap": [python, "-c", HTA, path],
            "inspect, a tiny trace": [*inspect[:-1], str(tiny)],
            "python and numpy alone": [sys.executable, "-c", "import numpy"],
        }
        command(inspect)  # byte code and the file in memory, for whoever comes first
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        times = in_turns(commands, repeats)
    for name, figures in times.items():
        row(name, figures)
    ours, theirs, same, hta, *_ = times.values()
    for name, one, other in (
        ("TraceLens / report", theirs, ours),
        ("TraceLens / its tables", theirs, same),
        ("HTA / report", hta, ours),
    ):
        ratios = [one[part] / other[part] for part in ("wall", "cpu", "megabytes")]
        print(f"{name:24} wall {ratios[0]:.1f} x   processor {ratios[1]:.1f} x   memory {ratios[2]:.1f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--plot", default="", help="with --sizes: write the cost against the size as SVG")
    parser.add_argument("--file", default="", help="with --reference: the trace that all read")
    parser.add_argument("--repeat", default="", help="with --reference: a trace that is repeated to the size")
    parser.add_argument("--reference", default="", help="python of an environment with TraceLens and HTA")
    options = parser.parse_args()
    if options.reference:
        with tempfile.TemporaryDirectory() as name:
            path = options.file or str(Path(name) / "trace.json.gz")
            if options.repeat:
                # in a process of its own: the kernel counts the memory of whoever starts a command as the command's
                with ProcessPoolExecutor(1) as apart:
                    apart.submit(repeat_trace, Path(options.repeat), Path(path), options.megabytes).result()
            elif not options.file:
                write_trace(Path(path := path.removesuffix(".gz")), int(options.megabytes * 1e6 / BYTES_AN_EVENT))
            against_reference(path, options.reference, options.repeats)
        return
    with tempfile.TemporaryDirectory() as name:
        if options.sizes:
            linear(Path(name), options.sizes, options.plot)
        else:
            against_json(Path(name), options.megabytes, options.repeats)


if __name__ == "__main__":
    main()
