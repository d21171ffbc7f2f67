"""The switch that opens and closes a capture range: cudaProfilerStart and its kin."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pytest_perfgate.model.errors import PerfgateError

Switch = Callable[[], object]
_RUNTIMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
_DRIVERS = ("libcuda.so.1", "libcuda.so")


@contextmanager
def switched() -> Iterator[None]:
    """Everything that was launched inside has finished before the range closes."""
    start, stop, settle = _switches()
    settle()
    start()
    try:
        yield
    finally:
        settle()
        stop()


def _switches() -> tuple[Switch, Switch, Switch]:
    """From the library that the program has loaded, else from the runtime or the driver itself."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        cudart = torch.cuda.cudart()
        return cudart.cudaProfilerStart, cudart.cudaProfilerStop, torch.cuda.synchronize
    runtime = _library(_RUNTIMES)
    if runtime is not None:
        return runtime.cudaProfilerStart, runtime.cudaProfilerStop, runtime.cudaDeviceSynchronize
    driver = _library(_DRIVERS)
    if driver is not None:
        return driver.cuProfilerStart, driver.cuProfilerStop, driver.cuCtxSynchronize
    what = "neither torch with CUDA, nor libcudart, nor libcuda can be loaded"
    why = "nsys waits for cudaProfilerStart, so nothing would be captured"
    raise PerfgateError("nsys-tool", what, why=why, mend="run on a machine with a driver, or capture='torch'")


def _library(names: Sequence[str]) -> ctypes.CDLL | None:
    return next((found for name in names if (found := _loaded(name)) is not None), None)


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
