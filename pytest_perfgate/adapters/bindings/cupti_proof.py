"""CUPTI's counter of lost records, proved in a process of its own: with buffers too small for a record it may die.

What was proved once is kept in a folder, for the driver and the packages that it was seen with.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.bindings.cupti import BUFFER, CuptiRecorder, prove
from pytest_perfgate.adapters.system.commands import run_captured
from pytest_perfgate.model.errors import PerfgateError

PATIENCE_S = 60.0
DRIVER = Path("/proc/driver/nvidia/version")
_PACKAGES = ("cupti-python", "nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12")


@cache
def unproved_elsewhere(kept: Path | None = None) -> str:
    """Why the counter is not to be believed on this machine; empty where it was seen to count.

    Tried once in a process, and no more where the folder says that it was seen to count before.
    """
    mark = kept / f"cupti-{name}.proved" if kept and (name := _setting()) else None
    if mark and mark.exists():
        return ""
    why = _tried()
    if mark and not why:
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return why


def _setting() -> str:
    """The driver and the packages by one name; none where the driver does not tell which it is."""
    try:
        driver = DRIVER.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return hashlib.sha256("|".join([driver, *map(_installed, _PACKAGES)]).encode()).hexdigest()[:16]


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _tried() -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = run_captured([sys.executable, "-m", __name__], PATIENCE_S, env=env)
    except subprocess.TimeoutExpired:
        return f"the proof of its counter did not end within {PATIENCE_S:g} s"
    if done.returncode < 0:
        return f"the proof of its counter died of signal {-done.returncode}"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return said[-1] if done.returncode else ""


def prove_alone() -> None:
    """On the first device that this process sees; ends with the reason where it is not proved."""
    driver, recorder = CudaDriver(), CuptiRecorder()
    driver.enter()
    try:
        with recorder.opened(BUFFER):
            prove(recorder, driver.touch)
    except PerfgateError as error:
        raise SystemExit(error.what) from error


if __name__ == "__main__":
    prove_alone()
