"""Profile one test and keep what came out of it under .perfgate/profiles."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate.app.profile import profile
from pytest_perfgate.app.profiled import metrics_data
from pytest_perfgate.cli import looking
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.plan import ClockPolicy, Plan, parse_case_key

PROFILE_ABOUT = """Profile one test and keep what came out of it under .perfgate/profiles.

  perfgate profile 'tests/test_gemm.py::test_gemm[4096]'
  perfgate profile 'tests/test_gemm.py::test_gemm[4096]#backward' --mode ncu --mode nsys

The test runs in a child of its own: each call once to compile and tune, once under the profiler. With #NAME only the
call of that name is watched. Modes: annotation (the default: what classifies a kernel), ncu (deep: source and machine
code), nsys (timeline, overlap, launch order), torch (operators), cupti (kernel records without a tool), event (time by
the device's own events), cubin (machine code that the test attaches), and those that other profilers bring.
"""


def profile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodeid", metavar="NODEID[#CALL]")
    parser.add_argument("--mode", action="append", default=[], metavar="MODE", help="may be given several times")
    parser.add_argument(
        "--clocks",
        choices=[policy.value for policy in ClockPolicy],
        default="observe",
        help="of the device (default: observe)",
    )


def run_profile(options: argparse.Namespace) -> int:
    from pytest_perfgate.wiring.profiling import profile_tools

    tools = profile_tools(Path.cwd())
    plan = Plan(clocks=ClockPolicy(options.clocks))
    key = parse_case_key(options.nodeid)
    done = [profile(key, mode, plan, tools) for mode in options.mode or ["annotation"]]
    if getattr(options, "json", False):
        looking.write_json(looking.finite([{"folder": str(one.folder), **metrics_data(one.analysis)} for one in done]))
        return 0
    for one in done:
        looking.write(render_text(next(iter(one.analysis.views.values()))(), looking.columns(), looking.room()))
        for problem in one.analysis.problems:
            looking.write(f"not to be trusted: {problem.what}  [{problem.code}]")
        if one.again:
            looking.write("the first try failed right after autotuning; this is the second")
        looking.write(f"kept in {one.folder}")
    return 0
