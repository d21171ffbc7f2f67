"""Kernel records in process, without a framework or a tool: one trace for each time the region is entered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.bindings.cupti import prove
from pytest_perfgate.adapters.profilers.profiler_api import settle
from pytest_perfgate.adapters.profilers.traces import OwnTraces
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError

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
    """Overlap, idle time and kernels of whatever launches on CUDA."""

    name = "cupti"
    stem = "cupti-"

    def __init__(self, recorder: Recorder, touch: Callable[[], object] | None = None) -> None:
        self._recorder = recorder
        self._touch = touch or CudaDriver().touch

    def availability(self) -> Availability:
        found = self._recorder.availability()
        return found if found.usable else replace(found, why=f"it needs a GPU and its driver: {found.why}")

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:
        """Everything that was launched inside has finished before the records are read."""
        available = self.availability()
        if not available.usable:
            raise PerfgateError("profile-tool", f"cupti: {available.why}", mend=available.mend)
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
        self.following(out).write_text(render_trace(records), encoding="utf-8")


def render_trace(records: Sequence[Any]) -> str:
    """The records as the events of a trace: microseconds from the first of them."""
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
