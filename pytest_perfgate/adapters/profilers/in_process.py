"""Profilers that work inside the process: torch's, and CUPTI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.adapters.bindings.border import with_warning
from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.bindings.cupti import prove
from pytest_perfgate.adapters.profilers.tools import settle
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.profiles import CODE_SUFFIXES
from pytest_perfgate.model.protocol import TIMED

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan


class AttachedProfiler:
    """Everything of a profiler except its artifacts."""

    name: str

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        del out, plan
        return list(argv)

    def region(self, out: Path) -> AbstractContextManager[None]:
        del out
        return nullcontext()


class OwnTraces:
    """Where an in-process profiler stores its traces."""

    stem: str
    """The prefix of their names."""

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:  # noqa: ARG002 - the port's
        """Return the plain command: the child profiles itself."""
        return argv

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        return tuple(Artifact(kind="kineto", path=str(path)) for path in self._written(out))

    def next_path(self, out: Path) -> Path:
        out.mkdir(parents=True, exist_ok=True)
        return out / f"{self.stem}{len(self._written(out))}.json"

    def _written(self, out: Path) -> list[Path]:
        files = out.glob(f"{self.stem}*.json") if out.is_dir() else ()
        return sorted(files, key=lambda path: int(path.stem.removeprefix(self.stem)))


class Torch(OwnTraces):
    """Records operators with their shapes, and kernels if there is a device."""

    name = "torch"
    stem = "torch-"

    def availability(self) -> Availability:
        """Return whether torch is installed; the test itself imports it."""
        if find_spec("torch") is None:
            return Availability(
                name=self.name, usable=False, why="torch is not installed", fix="pip install torch, or capture='nsys'"
            )
        return Availability(name=self.name, usable=True, version=_version())

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:
        """Profile the block; the trace is written if it ends without an error."""
        available = self.availability()
        if not available.usable:
            raise PerfgateError("torch-tool", available.why, fix=available.fix)
        import torch
        from torch.profiler import ProfilerActivity, profile

        has_device = with_warning(torch.cuda.is_available)[0]
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if has_device else [])]
        wait = torch.cuda.synchronize if has_device else _no_action
        wait()
        with profile(activities=activities, record_shapes=True) as recorded:
            yield
            wait()
        recorded.export_chrome_trace(str(self.next_path(out)))


def _version() -> str:
    """Return the installed version without importing the package."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _no_action() -> None:
    """Do nothing: there is no device to wait for."""


_BUFFER = 8 << 20

_CATEGORIES = {"kernel": "kernel", "copy": "gpu_memcpy", "set": "gpu_memset"}


class Recorder(Protocol):
    """The part of the CUPTI binding that is needed."""

    def availability(self) -> Availability: ...

    def opened(self, size: int) -> AbstractContextManager[Any]: ...

    def drain(self) -> Iterable[Any]: ...

    def dropped(self) -> int: ...

    def counts_drops(self, call: Callable[[], object]) -> bool: ...


class Cupti(OwnTraces):
    """Overlap, idle time and kernels of any program on CUDA."""

    name = "cupti"
    stem = "cupti-"

    def __init__(self, recorder: Recorder, touch: Callable[[], object] | None = None) -> None:
        self._recorder = recorder
        self._touch = touch or CudaDriver().touch

    def availability(self) -> Availability:
        availability = self._recorder.availability()
        return (
            availability
            if availability.usable
            else replace(availability, why=f"it needs a GPU and its driver: {availability.why}")
        )

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:
        """Record the block; its launches finish before the records are read."""
        available = self.availability()
        if not available.usable:
            raise PerfgateError("profile-tool", f"cupti: {available.why}", fix=available.fix)
        settle()
        with self._recorder.opened(_BUFFER):
            yield
            settle()
            records, lost = list(self._recorder.drain()), self._recorder.dropped()
            prove(self._recorder, self._touch)
        if lost:
            raise PerfgateError("cupti-dropped", f"{lost:,} records of the region were lost")
        if not records:
            raise PerfgateError("profile-child", "the region launched nothing that CUPTI saw", place=str(out))
        self.next_path(out).write_text(render_trace(records), encoding="utf-8")


def render_trace(records: Sequence[Any]) -> str:
    """Return the records as the events of a trace, in microseconds from the first of them."""
    first = min(record.start for record in records)
    events = [
        {
            "ph": "X",
            "cat": _CATEGORIES.get(record.kind, "kernel"),
            "name": record.name or record.kind,
            "pid": record.device,
            "tid": record.stream,
            "ts": (record.start - first) / 1e3,
            "dur": (record.end - record.start) / 1e3,
            "args": {"device": record.device, "stream": record.stream, "correlation": number},
        }
        for number, record in enumerate(records, 1)
    ]
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": first, "traceEvents": events})


TIMES = "event.json"


class EventTimes(AttachedProfiler):
    """Timing by the events timer of the child, on a device with events."""

    name = TIMED

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        path = out / TIMES
        if not path.is_file():
            raise PerfgateError("profile-child", "no call was timed", fix="perfgate(fn) in the test", place=str(out))
        return (Artifact(kind="record", path=str(path)),)


class CubinKeeper(AttachedProfiler):
    """Keeps what the test in the child attaches."""

    name = "cubin"

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        cubins = sorted(path for path in out.rglob("*") if path.suffix in CODE_SUFFIXES)
        if not cubins:
            raise PerfgateError(
                "kernel-none",
                "the test attached no machine code",
                fix="perfgate.attach('kernel.cubin', path), or perfgate.attach('kernel', compiled) for Triton",
                place=str(out),
            )
        return tuple(Artifact(kind="cubin", path=str(path)) for path in cubins)
