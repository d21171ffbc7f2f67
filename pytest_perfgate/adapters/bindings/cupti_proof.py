"""CUPTI's counter of lost records, proved in a process of its own: with buffers too small for a record it may die."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.bindings.cupti import BUFFER, CuptiRecorder, prove
from pytest_perfgate.model.errors import PerfgateError

PATIENCE_S = 60.0


@cache
def unproved_elsewhere() -> str:
    """Why the counter is not to be believed on this machine; empty where it was seen to count. Tried once."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            env=env, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"the proof of its counter did not end within {PATIENCE_S:g} s"
    if done.returncode < 0:
        return f"the proof of its counter died of signal {-done.returncode}"
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
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
