"""This process: where it may run, with how many threads, and what surrounds it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable
from types import ModuleType
from typing import Any

from pytest_perfgate.adapters.bindings.touched import touched
from pytest_perfgate.adapters.devices.surroundings import probe_facts, probe_packages
from pytest_perfgate.model.ci_run import FACT, ci_run
from pytest_perfgate.model.measurement import Environment

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def probe_affinity() -> str:
    """The cores this process may use: ``all``, or ranges such as ``0-3,8``."""
    if not hasattr(os, "sched_getaffinity"):
        return "all"
    allowed = sorted(os.sched_getaffinity(0))
    return "all" if len(allowed) == os.cpu_count() else ranges(allowed)


def ranges(numbers: Iterable[int]) -> str:
    """``0-3,8`` for sorted whole numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def probe_threads() -> str:
    """What sets the size of thread pools: variables."""
    return " ".join(f"{name}={os.environ[name]}" for name in _THREADS if os.environ.get(name))


def probe_pools(call: object) -> str:
    """What torch was told, of a call that has torch within reach: another test may have loaded it here."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "get_num_threads"):
        return ""
    found = touched(call, (torch.Tensor, torch.nn.Module, ModuleType))
    own = any(not isinstance(thing, ModuleType) or thing.__name__.split(".")[0] == "torch" for thing in found)
    return f"torch={torch.get_num_threads()}" if own else ""


def probe_environment(declared: Callable[[], Collection[str]] = tuple) -> Environment:
    """Python, platform, and what else moves numbers: what the project declares to depend on, for one."""
    load = (("load", f"{os.getloadavg()[0]:.2f}"),) if hasattr(os, "getloadavg") else ()
    run = ((FACT, name),) if (name := ci_run(os.environ)) else ()
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=probe_packages(declared()),
        facts=(*probe_facts(), *load, *run),
    )
