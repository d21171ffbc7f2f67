"""Calls with a constant time. ``PLANTED`` names the figures that get worse."""

from __future__ import annotations

import itertools
import os
import time
from functools import cache
from pathlib import Path

import numpy as np

PLANTED = os.environ.get("PLANTED", "").split()

ROWS = np.ones(200_000)

_turn = itertools.count()


def scaled() -> np.ndarray:
    """Doubles the rows. The planted regression is a scratch buffer of a tenth of them."""
    scratch = np.empty(ROWS.size // 10 if "memory" in PLANTED else 0)
    doubled = ROWS * 2
    return doubled[scratch.size :]


def request() -> None:
    """Waits for 10 ms, as for a device or a lock. Planted: one call in twenty takes three times as long."""
    slow = "tail" in PLANTED and next(_turn) % 20 == 0
    time.sleep(0.03 if slow else 0.01)


@cache
def compiled() -> list[int]:
    """The first call makes this and later calls reuse it. Planted: twice as much."""
    count = 2 if "compile" in PLANTED else 1
    return [n * n % 7 for n in range(count * 600_000)]


def lookup() -> int:
    return compiled()[11]


def bytes_sent() -> int:
    """A figure that the code itself knows. Planted: one more message."""
    return 4096 + (64 if "bytes" in PLANTED else 0)


def compiled_kernel(log: Path) -> Path:
    """The output of ``nvcc -Xptxas -v`` for a kernel, as a build keeps it. Planted: one more register."""
    registers = 33 if "registers" in PLANTED else 32
    log.write_text(
        "ptxas info    : Compiling entry function 'scale' for 'sm_90'\n"
        "ptxas info    : Function properties for scale\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        f"ptxas info    : Used {registers} registers, used 0 barriers, 400 bytes cmem[0]\n"
    )
    return log
