"""How often the gate cries wolf here, and how small a slowdown it sees: measured with your tests on your machine.

Both sides run the same code. Rounds are kept: run again, it adds to them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate import wiring
from pytest_perfgate.cli.output import plain, show, write_file
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="measure for so long (default 10)")
    parser.add_argument("--limit", type=float, default=3.0, metavar="PERCENT", help="the limit to judge by (default 3)")
    parser.add_argument("--suites", type=int, default=300, metavar="N", help="suites to resample (default 300)")
    parser.add_argument("--fresh", action="store_true", help="forget the rounds of earlier calibrations")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the power curve")
    add_root(parser)
    parser.add_argument("--pytest", default="", metavar="ARGS", help="arguments for pytest, in one text: '-k gemm'")


def run(options: Namespace) -> int:
    from pytest_perfgate.core.gate.calibration import calibration
    from pytest_perfgate.core.render.calibration import calibration_document, curve

    found = calibration(_measured(options), options.limit / 100, suites=options.suites)
    if options.svg:
        write_file(options.svg, curve(found).svg)
    if options.json:
        from pytest_perfgate.cli.looking import write_json

        write_json(plain(found))
    else:
        show(calibration_document(found), options)
    return 0


def _measured(options: Namespace) -> Any:
    """Rounds of now and before, as one number a process."""
    from pytest_perfgate.app.compare_arms import SCREEN, pairs_of
    from pytest_perfgate.core.gate.calibration import LEAST
    from pytest_perfgate.model.paired import PairedRound

    path = Project(options).root / ".perfgate" / "calibration.bin"
    path.parent.mkdir(exist_ok=True)
    if options.fresh:
        path.unlink(missing_ok=True)
    if options.minutes > 0:
        _pytest(options, str(path))
    found = pairs_of(wiring.read_values(path, PairedRound), SCREEN)
    measured = {str(key): pairs for key, pairs in found.items() if len(pairs.base) >= LEAST}
    if not measured:
        rounds = max((len(pairs.base) for pairs in found.values()), default=0)
        raise PerfgateError(
            "calibration-wrong",
            f"{rounds} rounds so far, and {LEAST} are the least to judge by",
            mend="run it again: the rounds that are here are kept",
        )
    return measured


def _pytest(options: Namespace, path: str) -> None:
    told = ["-q", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin.calibrating", "--perfgate=quick"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *told, *shlex.split(options.pytest)],
        cwd=options.root or None,
        env={**os.environ, "PERFGATE_CALIBRATION": path, "PERFGATE_CALIBRATION_SECONDS": str(options.minutes * 60)},
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode not in {0, 5}:
        raise PerfgateError("calibration-wrong", f"pytest ended with exit code {done.returncode}; it says why above")
