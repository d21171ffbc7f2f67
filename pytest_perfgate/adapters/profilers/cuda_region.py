"""The region that ncu profiles, opened and closed by cudaProfilerStart and cudaProfilerStop."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pytest_perfgate.model.errors import PerfgateError

_LIBRARIES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12")


@contextmanager
def cuda_region() -> Iterator[None]:
    """Work from before has ended when it opens, and its own work has ended when it closes."""
    runtime, settle = _runtime()
    settle()
    runtime.cudaProfilerStart()
    try:
        yield
    finally:
        settle()
        runtime.cudaProfilerStop()


def _runtime() -> tuple[Any, Any]:
    """Of the framework that the test has loaded, else the toolkit's own library."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.cudart(), torch.cuda.synchronize
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return library, library.cudaDeviceSynchronize
    raise PerfgateError("ncu-nothing", "neither torch with CUDA nor libcudart is here to open the region with")
