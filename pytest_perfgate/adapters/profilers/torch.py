"""PyTorch's own profiler, in process: one trace for each time the region is entered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Plan

_STEM = "torch-"


class Torch:
    """Records operators with their shapes, and kernels where there is a device."""

    name = "torch"

    def availability(self) -> Availability:
        """Whether torch can be imported; importing it is left to the test."""
        if find_spec("torch") is None:
            return Availability(
                name=self.name, usable=False, why="torch is not installed", mend="pip install torch, or capture='nsys'"
            )
        return Availability(name=self.name, usable=True, version=_version())

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:  # noqa: ARG002 - the port's
        return argv

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:
        """Profile what runs inside; the trace is written when it ends well."""
        available = self.availability()
        if not available.usable:
            raise PerfgateError("torch-tool", available.why, mend=available.mend)
        import torch
        from torch.profiler import ProfilerActivity, profile

        has_device = torch.cuda.is_available()
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_device else [])]
        settle = torch.cuda.synchronize if has_device else _nothing
        settle()
        with profile(activities=activities, record_shapes=True) as recorded:
            yield
            settle()
        recorded.export_chrome_trace(str(self._next(out)))

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        return tuple(Artifact(kind="kineto", path=str(path)) for path in self._written(out))

    def _next(self, out: Path) -> Path:
        out.mkdir(parents=True, exist_ok=True)
        return out / f"{_STEM}{len(self._written(out))}.json"

    @staticmethod
    def _written(out: Path) -> list[Path]:
        """In the order in which the region was entered."""
        found = out.glob(f"{_STEM}*.json") if out.is_dir() else ()
        return sorted(found, key=lambda path: int(path.stem.removeprefix(_STEM)))


def _version() -> str:
    """What is installed, without importing it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _nothing() -> None:
    """No device to wait for."""
