"""ncu's own duration of a kernel beside ours; its report is a recording."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from ci.gpu.card import under_bar, watched_clocks
from ci.gpu.parts import Check, Row
from pytest_perfgate.adapters.system.processes import run_captured

METRIC = "gpu__time_duration.sum"
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy")
PLACES = (("/usr/local", "cuda*/bin/ncu"), ("/opt/nvidia/nsight-compute", "*/ncu"))
"""Where installers put it, which is not always on the PATH."""
SHOWING_S = 15.0
"""What is kept for reading the report."""
PAUSE_S = 0.003
SOFTMAX = (
    "import torch\n"
    "rows = torch.randn(4096, 4096, device='cuda')\n"
    "for _ in range(3):\n"
    "    torch.softmax(rows, 1)\n"
    "torch.cuda.synchronize()\n"
)
_UNITS = {"n": 1.0, "u": 1e3, "m": 1e6, "s": 1e9}
"""By the first letter: releases write ``nsecond`` or ``ns``, ``second`` or ``s``."""


def profiler(check: Check, out: Path) -> Iterator[Row]:
    """Yield ncu's duration of a kernel beside ours; if ncu does not work, its own message says why."""
    ncu, report = program(), out / "recordings" / "softmax.ncu-rep"
    if not ncu:
        yield {
            "what": "ncu",
            "refused": "not installed",
            "why": "ncu is neither on the PATH nor where installers put it",
        }
        return
    report.parent.mkdir(parents=True, exist_ok=True)
    script = out / "softmax.py"
    script.write_text(SOFTMAX, encoding="utf-8")
    with watched_clocks(check) as problems:
        code, output = run_program(
            [*command(ncu, report), sys.executable, str(script)], check.ends - time.monotonic() - SHOWING_S
        )
    (out / "ncu.txt").write_text(output, encoding="utf-8")
    if not report.is_file():
        yield {"what": "ncu", "refused": f"exit code {code}", "why": complaint(output)}
        return
    shown = run_program([ncu, "--import", str(report), "--csv", "--page", "raw", "--metrics", METRIC], SHOWING_S)[1]
    yield ncu_row(check, duration(shown), report.stat().st_size, problems)
    yield read(report)


def read(report: Path) -> Row:
    """Return the report as captures read it, with an installed module or the one that Nsight Compute brings.

    Another process reads it, so what is named is what that process takes.
    """
    from pytest_perfgate.adapters.readers.ncu_report import module_folders, read_ncu
    from pytest_perfgate.model.errors import PerfgateError

    row: Row = {"what": "its report, read", "bar": "module"}
    try:
        kernels = read_ncu([report])
    except PerfgateError as error:
        return {**row, "held": False, "why": error.what}
    installed = find_spec("ncu_report")
    place = installed.origin if installed else next(iter(module_folders()), "")
    named = [kernel.name for kernel in kernels]
    return {**row, "module": place, "kernels": ", ".join(named)[:200], "held": len(named) == 1}


def complaint(output: str) -> str:
    """Return ncu's errors, which precede much other output; without any, its last lines."""
    errors = [line.partition("==ERROR==")[2].strip() for line in output.splitlines() if "==ERROR==" in line]
    return "; ".join(errors)[:300] or output.strip()[-300:]


def command(ncu: str, report: Path) -> list[str]:
    """Return ncu's command line for the second softmax of a program, without changes to the card."""
    sections = [word for name in SECTIONS for word in ("--section", name)]
    chosen = ["--kernel-name", "regex:[Ss]oft[Mm]ax", "--launch-skip", "1", "--launch-count", "1"]
    alone = ["--clock-control", "none", "--cache-control", "none", "--target-processes", "all"]
    return [ncu, *alone, *chosen, *sections, "--force-overwrite", "--export", str(report)]


def ncu_row(check: Check, theirs: float | None, size: int, problems: Sequence[str] = ()) -> Row:
    """Return ncu's duration beside that of CUPTI, or of another timer that fits.

    ncu runs a kernel alone. Under load near the power limit the same softmax took 7 % longer, so calls are apart here.
    """
    rows = check.runtime_module().randn(4096, 4096, device="cuda")
    softmax = check.runtime_module().softmax
    ours = check.measured("softmax", lambda: softmax(rows, 1), "cupti", setup=pause)
    if "ns" not in ours:
        ours = check.measured("softmax", lambda: softmax(rows, 1), "auto", setup=pause)
    row: Row = {"what": "ncu", "bytes": size, "ncu_ns": theirs}
    if not theirs or "ns" not in ours:
        return {**row, "why": ours.get("why", "the report tells no duration")}
    off = ours["ns"] / theirs - 1
    row |= {"timer": ours["timer"], "ns": ours["ns"], "off": off}
    return under_bar(row, "ncu", abs(off) <= 0.05, [*problems, *ours.get("invalid", ())])


def pause() -> None:
    """Let the device finish and rest."""
    time.sleep(PAUSE_S)


def run_program(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Return the exit code and output of a program; one that hangs is ended with the program that it profiles."""
    try:
        done = run_captured(command, max(1.0, timeout_s))
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, f"{type(error).__name__}: {error}"
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def program() -> str:
    """Return ncu from the PATH, or the newest that an installer left."""
    programs = sorted((str(path) for root, pattern in PLACES for path in Path(root).glob(pattern)), reverse=True)
    return shutil.which("ncu") or next((path for path in programs if os.access(path, os.X_OK)), "")


def duration(text: str) -> float | None:
    """Return the nanoseconds of the last kernel in ncu's table: a line of names, one of units, one for each kernel."""
    lines = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    at = next((line.index(METRIC) for line in lines if METRIC in line), None)
    if at is None or len(lines) < 3:
        return None
    try:
        return float(lines[-1][at].replace(",", "")) * _UNITS[lines[1][at][:1]]
    except (ValueError, IndexError, KeyError):
        return None
