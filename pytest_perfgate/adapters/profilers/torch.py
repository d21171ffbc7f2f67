"""PyTorch's own profiler, in process: one trace for each time the region is entered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pytest_perfgate.adapters.bindings.border import quietly
from pytest_perfgate.adapters.profilers.traces import OwnTraces
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError


class Torch(OwnTraces):
    """Records operators with their shapes, and kernels where there is a device."""

    name = "torch"
    stem = "torch-"

    def availability(self) -> Availability:
        """Whether torch can be imported; importing it is left to the test."""
        if find_spec("torch") is None:
            return Availability(
                name=self.name, usable=False, why="torch is not installed", mend="pip install torch, or capture='nsys'"
            )
        return Availability(name=self.name, usable=True, version=_version())

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:
        """Profile what runs inside; the trace is written when it ends well."""
        available = self.availability()
        if not available.usable:
            raise PerfgateError("torch-tool", available.why, mend=available.mend)
        import torch
        from torch.profiler import ProfilerActivity, profile

        has_device = quietly(torch.cuda.is_available)[0]
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_device else [])]
        settle = torch.cuda.synchronize if has_device else _nothing
        settle()
        with profile(activities=activities, record_shapes=True) as recorded:
            yield
            settle()
        recorded.export_chrome_trace(str(self.following(out)))


def _version() -> str:
    """What is installed, without importing it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _nothing() -> None:
    """No device to wait for."""
