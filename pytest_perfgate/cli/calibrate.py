"""How often the gate cries wolf here, and how small a slowdown it sees: measured with your tests on your machine."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate import wiring
from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import above_zero, from_zero, say, show, whole, write_file
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError

CALIBRATE_ABOUT = """Measure how often the gate raises a false alarm here, and how small a slowdown it sees.

It runs your tests on your machine.

Both sides run the same code. Rounds are kept: run again, it adds to them.
"""


def calibrate_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--minutes", type=from_zero, default=10.0, metavar="N", help="measure for so long; 0: not at all (default 10)"
    )
    parser.add_argument(
        "--limit", type=above_zero, default=3.0, metavar="PERCENT", help="the limit to judge by (default 3)"
    )
    parser.add_argument("--suites", type=whole, default=300, metavar="N", help="suites to resample (default 300)")
    parser.add_argument("--fresh", action="store_true", help="forget the rounds of earlier calibrations")
    parser.add_argument("--scaled-only", action="store_true", help="do not inject slowdowns, only scale times")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the power curve")
    add_root(parser)
    parser.add_argument("--pytest", default="", metavar="ARGS", help="arguments for pytest, in one text: '-k gemm'")


def run_calibrate(options: Namespace) -> int:
    from pytest_perfgate.core.judge.calibration import calibration, calibration_document, calibration_facts, curve
    from pytest_perfgate.core.render.drawing import alone

    result = calibration(_measured(options), options.limit / 100, suites=options.suites)
    if options.svg:
        write_file(options.svg, alone(curve(result).svg))
        say(f"wrote {options.svg}", options)
    if options.json:
        from pytest_perfgate.cli.output import write_json

        write_json(calibration_facts(result))
    else:
        show(calibration_document(result), options)
    return 0


def _measured(options: Namespace) -> Any:
    """Rounds of now and before, as one number a process."""
    from pytest_perfgate.app.compare_arms import ROUND, pairs_of
    from pytest_perfgate.core.judge.calibration import LEAST, Recorded
    from pytest_perfgate.model.verdict import PairedRound

    path = Project(options).root / ".perfgate" / "calibration.bin"
    path.parent.mkdir(exist_ok=True)
    if options.fresh:
        path.unlink(missing_ok=True)
    if options.minutes > 0:
        _pytest(options, str(path))
    rounds = wiring.read_values(path, PairedRound)
    paired = pairs_of(rounds, ROUND)
    measured = _enough(paired)
    if not measured:
        most = max((len(pairs.base) for pairs in paired.values()), default=0)
        raise PerfgateError(
            "calibration-wrong",
            f"{plural(most, 'round')} so far, and {LEAST} are the least to judge by",
            mend="run it again: the rounds that are here are kept",
        )
    return Recorded(pairs=measured, slowed=_slowed(rounds, measured), shares=_shares(rounds))


def _enough(found: Any) -> dict[str, Any]:
    """Tests with rounds enough to judge by."""
    from pytest_perfgate.core.judge.calibration import LEAST

    return {str(key): pairs for key, pairs in found.items() if len(pairs.base) >= LEAST}


def _slowed(rounds: Any, measured: Any) -> dict[float, Any]:
    """Rounds with an injected slowdown, of calls that the host's clock times: no other can be kept busy."""
    from pytest_perfgate.app.compare_arms import pairs_of, phase_of
    from pytest_perfgate.core.judge.calibration import INJECTED

    hosts = {str(c.key) for one in rounds for c in one.head if c.samples and c.samples[-1].timer == "host"}
    by_size = {by: _enough(pairs_of(rounds, phase_of(by))) for by in INJECTED}
    return {
        by: {name: pairs for name, pairs in shares.items() if name in measured and name in hosts}
        for by, shares in by_size.items()
    }


def _shares(rounds: Any) -> dict[str, float]:
    """Seconds of a round by test: its own, and its part of starting the processes."""
    from statistics import fmean

    from pytest_perfgate.app.compare_arms import ROUND

    taken: dict[str, list[float]] = {}
    for one in rounds:
        if one.phase == ROUND and one.share_s:
            taken.setdefault(one.nodeid, []).append(one.share_s)
    return {nodeid: fmean(shares) for nodeid, shares in taken.items()}


def _pytest(options: Namespace, path: str) -> None:
    arguments = ["-qq", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin.calibrating", "--perfgate=quick"]
    seconds = str(options.minutes * 60)
    ours = {"PERFGATE_CALIBRATION": path, "PERFGATE_CALIBRATION_SECONDS": seconds}
    slowing = {} if options.scaled_only else {"PERFGATE_CALIBRATION_SLOWING": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, *shlex.split(options.pytest)],
            cwd=options.root or None,
            env={**os.environ, **ours, **slowing},
            stdout=sys.stderr,
            check=False,
        )
    except KeyboardInterrupt:
        sys.stderr.write("perfgate: finished rounds are kept; run it again and it goes on\n")
        raise
    if done.returncode not in {0, 5}:
        raise PerfgateError("calibration-wrong", f"pytest ended with exit code {done.returncode}; it says why above")
