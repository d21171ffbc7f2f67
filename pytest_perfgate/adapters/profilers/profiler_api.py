"""The switch that opens and closes a capture range: cudaProfilerStart and its kin."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pytest_perfgate.adapters.bindings.border import quietly
from pytest_perfgate.model.errors import PerfgateError

Switch = Callable[[], object]
_RUNTIMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
_NO_DEVICE = frozenset({35, 100})
"""What the runtime answers where the driver is too old or absent, and where there is no device."""
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


def settle() -> None:
    """Wait until the device is idle."""
    _switches()[2]()


def _switches() -> tuple[Switch, Switch, Switch]:
    """From the library that the program has loaded, else from the runtime or the driver itself."""
    torch = sys.modules.get("torch")
    if torch is not None and quietly(torch.cuda.is_available)[0]:
        cudart = torch.cuda.cudart()
        return cudart.cudaProfilerStart, cudart.cudaProfilerStop, torch.cuda.synchronize
    runtime = _library(_RUNTIMES)
    if runtime is not None:
        if runtime.cudaDeviceSynchronize() in _NO_DEVICE:
            raise _no_device("the CUDA runtime finds no device or no driver here")
        return runtime.cudaProfilerStart, runtime.cudaProfilerStop, runtime.cudaDeviceSynchronize
    driver = _library(_DRIVERS)
    if driver is not None:
        return driver.cuProfilerStart, driver.cuProfilerStop, driver.cuCtxSynchronize
    raise _no_device("neither torch with CUDA, nor libcudart, nor libcuda can be loaded here")


def _no_device(why: str) -> PerfgateError:
    return PerfgateError(
        "profile-tool",
        f"this mode needs a GPU: {why}",
        why="the profiler waits for cudaProfilerStart, so nothing would be captured",
        mend="run on a machine with a GPU, or profile the host: --mode torch",
    )


def _library(names: Sequence[str]) -> ctypes.CDLL | None:
    return next((found for name in names if (found := _loaded(name)) is not None), None)


def _loaded(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
