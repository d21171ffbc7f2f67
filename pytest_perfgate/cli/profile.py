"""Profile one test and keep what came out of it under .perfgate/profiles.

  perfgate profile 'tests/test_gemm.py::test_gemm[4096]'
  perfgate profile 'tests/test_gemm.py::test_gemm[4096]' --mode ncu

The test runs twice in a child of its own: once to compile and tune, once under the profiler. Modes: annotation (the
default: what classifies a kernel), ncu (deep: source and machine code), cubin (machine code that the test attaches),
and those that other profilers bring.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate.app.profile import metrics_data, profile
from pytest_perfgate.cli import looking
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.plan import ClockPolicy, Plan


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodeid", metavar="NODEID")
    parser.add_argument("--mode", action="append", default=[], metavar="MODE", help="may be given several times")
    parser.add_argument("--clocks", choices=[policy.value for policy in ClockPolicy], default="observe")


def run(options: argparse.Namespace) -> int:
    from pytest_perfgate.wiring.profiling import profile_tools

    tools = profile_tools(Path.cwd())
    plan = Plan(clocks=ClockPolicy(options.clocks))
    done = [profile(options.nodeid, mode, plan, tools) for mode in options.mode or ["annotation"]]
    if getattr(options, "json", False):
        looking.write_json([{"folder": str(one.folder), **metrics_data(one.analysis)} for one in done])
        return 0
    for one in done:
        looking.write(render_text(next(iter(one.analysis.views.values()))()))
        if one.again:
            looking.write("the first try failed right after autotuning; this is the second")
        looking.write(f"kept in {one.folder}")
    return 0
