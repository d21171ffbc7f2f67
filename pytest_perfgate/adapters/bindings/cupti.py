"""CUPTI's activity records, and a check of its counter of lost records."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.bindings.border import BORDER, probe_availability, quiet_import, sentence
from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.system.processes import mapped_libraries, run_captured
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Availability

_KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMSET", "EXTERNAL_CORRELATION", "RUNTIME", "DRIVER")

_WORK = ("CONCURRENT_KERNEL", "KERNEL", "MEMCPY", "MEMSET")

_NOUNS = {"MEMCPY": "copy", "MEMSET": "set"}

BUFFER = 256 * 1024
"""The initial size of a buffer."""

TOO_SMALL = (64, 8)
"""Buffer sizes in which no record of device work fits; in the smaller one, no record at all."""

TURNS = 3
"""Calls for each size, since buffers requested earlier have the old size and are used first."""


@value
class KernelRecord:
    """One piece of device work; its fields are copied, because CUPTI reuses the buffer."""

    start: int
    end: int
    stream: int
    device: int
    call: int | None
    """The external id that was pushed at its launch; None for work outside of a call."""
    name: str = ""
    """Set for a kernel; copies and sets have none."""
    kind: str = "kernel"
    """kernel, copy or set."""


class CuptiRecorder:
    """The only subscriber of this process while it is open."""

    def __init__(self, load: Callable[[], Any] = lambda: quiet_import("cupti.cupti")) -> None:
        self._load = load
        self._cupti: Any = None
        self._size = 0
        self._work: list[tuple[int, int, int, int, int, str, str]] = []
        self._calls: dict[int, int] = {}

    def availability(self) -> Availability:
        return probe_availability(
            "cupti", self._probe, also=self._errors, fix="pip install cupti-python (it needs a driver)"
        )

    def _probe(self) -> str:
        cupti = self._load()
        cupti.activity_enable(cupti.ActivityKind.CONCURRENT_KERNEL)
        cupti.activity_disable(cupti.ActivityKind.CONCURRENT_KERNEL)
        return _installed("cupti-python") if cupti.__name__ == "cupti.cupti" else ""

    def _errors(self) -> tuple[type[Exception], ...]:
        return (self._load().cuptiError,)

    @contextmanager
    def opened(self, size: int) -> Iterator[CuptiRecorder]:
        """Collect records in buffers of this many bytes; raise if CUPTI is otherwise in use."""
        cupti = self._cupti = self._load()
        self._size = size
        try:
            cupti.activity_register_callbacks(self._requested, self._completed)
            for kind in _KINDS:
                cupti.activity_enable(getattr(cupti.ActivityKind, kind))
        except (*BORDER, *self._errors()) as error:
            with suppress(*BORDER, *self._errors()):
                self._disable()
            raise PerfgateError("cupti-busy", f"CUPTI did not start: {sentence(error)}") from error
        try:
            self.dropped()
            yield self
        finally:
            self._disable()
            cupti.activity_flush_all(1)
            self._work, self._calls = [], {}

    def _disable(self) -> None:
        """Stop recording, so that later work is not slowed."""
        for kind in _KINDS:
            self._cupti.activity_disable(getattr(self._cupti.ActivityKind, kind))

    def push(self, call: int) -> None:
        """Assign the launches from here on to this call."""
        self._cupti.activity_push_external_correlation_id(self._cupti.ExternalCorrelationKind.CUSTOM0, call)

    def pop(self) -> None:
        self._cupti.activity_pop_external_correlation_id(self._cupti.ExternalCorrelationKind.CUSTOM0)

    def drain(self) -> list[KernelRecord]:
        """Return everything recorded since the last time; the device must be idle."""
        self._cupti.activity_flush_all(1)
        work, calls = self._work, self._calls
        self._work, self._calls = [], {}
        return [
            KernelRecord(
                start=start, end=end, stream=stream, device=device, call=calls.get(correlation), name=name, kind=kind
            )
            for start, end, stream, device, correlation, name, kind in work
        ]

    def dropped(self) -> int:
        """Return the number of records lost since the last time."""
        count = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(count))
        return count.value

    def counts_drops(self, call: Callable[[], object]) -> bool:
        """Return whether the counter works: with buffers that are too small it must count."""
        return any(self._lost_in(size, call) for size in TOO_SMALL)

    def _lost_in(self, size: int, call: Callable[[], object]) -> bool:
        """Return whether the counter counted a call's records that did not fit."""
        size, self._size = self._size, size
        try:
            self._cupti.activity_flush_all(1)
            for _ in range(TURNS):
                call()
                self._cupti.activity_flush_all(1)
        finally:
            self._size = size
        self._work, self._calls = [], {}
        return self.dropped() > 0

    def _requested(self) -> tuple[int, int]:
        return self._size, 0

    def _completed(self, activities: list[Any]) -> None:
        kinds = self._cupti.ActivityKind
        work = {getattr(kinds, name): _NOUNS.get(name, "kernel") for name in _WORK if hasattr(kinds, name)}
        for activity in activities:
            if activity.kind in work:
                noun = work[activity.kind]
                name = str(getattr(activity, "name", "") or "") if noun == "kernel" else ""
                where = (activity.stream_id, activity.device_id, activity.correlation_id)
                self._work.append((activity.start, activity.end, *where, name, noun))
            elif activity.kind == kinds.EXTERNAL_CORRELATION:
                self._calls[activity.correlation_id] = activity.external_id


def prove(recorder: Any, touch: Callable[[], object]) -> None:
    """Check with an open recorder and a current context that the counter counts, or its zeros mean nothing."""
    why = "a record without room was lost, and it was not counted"
    try:
        counts = recorder.counts_drops(touch)
    except (RuntimeError, OSError, AttributeError) as error:
        counts, why = False, sentence(error)
    if not counts:
        raise PerfgateError("cupti-unproved", why)


PATIENCE_S = 60.0

DRIVER = Path("/proc/driver/nvidia/version")

_PACKAGES = ("cupti-python", "nvidia-cuda-cupti", "nvidia-cuda-cupti-cu12")


@cache
def proof_failure(folder: Path | None = None) -> str:
    """Return why the counter is not to be trusted on this machine; "" if it was seen to count.

    The check runs once a process, and not at all if the folder records an earlier success.
    """
    mark = folder / f"cupti-{name}.proved" if folder and (name := _setting()) else None
    if mark and mark.exists():
        return ""
    why = _proof_error()
    if mark and not why:
        with suppress(OSError):
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    return why


def _setting() -> str:
    """Return one name for the versions of driver and packages; "" if the driver's is unknown.

    Some sandboxes, and WSL, have no such file; there the library's own path names its version.
    """
    try:
        driver = DRIVER.read_text(encoding="utf-8", errors="replace")
    except OSError:
        driver = "|".join(sorted(path for path in mapped_libraries() if "/libcuda.so" in path))
    if not driver:
        return ""
    return hashlib.sha256("|".join([driver, *map(_installed, _PACKAGES)]).encode()).hexdigest()[:16]


def _installed(package: str) -> str:
    """Return a package's version, which its module itself may not have; "" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _proof_error() -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        result = run_captured([sys.executable, "-m", __name__], PATIENCE_S, env=env)
    except subprocess.TimeoutExpired:
        return f"the proof of its counter did not end within {PATIENCE_S:g} s"
    if result.returncode < 0:
        return f"the proof of its counter died of signal {-result.returncode}"
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {result.returncode}"]
    return lines[-1] if result.returncode else ""


def prove_alone() -> None:
    """Check on the first visible device; end the process with the reason if it fails."""
    driver, recorder = CudaDriver(), CuptiRecorder()
    driver.enter()
    try:
        with recorder.opened(BUFFER):
            prove(recorder, driver.touch)
    except PerfgateError as error:
        raise SystemExit(error.what) from error


if __name__ == "__main__":
    prove_alone()
