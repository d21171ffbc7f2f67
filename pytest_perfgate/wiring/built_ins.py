"""Our own instruments, added by the same hooks as a plugin's, each created on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.device import SupportsOperators
from pytest_perfgate.wiring import devices

if TYPE_CHECKING:
    from pytest_perfgate.app.inspections.results import Benchmarks
    from pytest_perfgate.model.device import DeviceSpec
    from pytest_perfgate.model.metric import Table
    from pytest_perfgate.model.ports import Catalogue, Delivery, Inspector, Profiler, Runtime, Timer
    from pytest_perfgate.model.project import Config
    from pytest_perfgate.model.verdict import RunReport

    Lookup = Callable[[str], DeviceSpec | None]


class Deferred:
    """An inspector that is imported with the first file that may be its own, since most commands read one kind."""

    def __init__(
        self, name: str, make: Callable[[], Inspector], maybe: Callable[[Path, bytes], bool] = lambda *_: True
    ) -> None:
        self.name = name
        self.operators: Mapping[str, Any] = {}
        self._make, self._maybe = make, maybe

    @cached_property
    def inspector(self) -> Inspector:
        """The inspector itself."""
        inspector = self._make()
        if self.operators and isinstance(inspector, SupportsOperators):
            inspector.operators = self.operators
        return inspector

    @property
    def views(self) -> Sequence[str]:
        return self.inspector.views

    @property
    def options(self) -> Sequence[tuple[str, str]]:
        return self.inspector.options

    def recognises(self, path: Path, head: bytes) -> bool:
        return self._maybe(path, head) and self.inspector.recognises(path, head)

    @property
    def inspect(self) -> Any:
        """The inspector's own method, so that callers call it directly."""
        return self.inspector.inspect

    @property
    def compare(self) -> Any:
        return self.inspector.compare


_CODE = (b"NVR\0", b"\x7fELF")
"""The first bytes of a report of Nsight Compute, and of an object file."""


def _maybe_nsys(path: Path, head: bytes) -> bool:
    """Return False for code, and for JSON and CSV by name and first bytes, which are not nsys exports."""
    packed_or_json = path.suffix in {".json", ".gz"} and (head[:2] == b"\x1f\x8b" or head.lstrip()[:1] in {b"{", b"["})
    return not (packed_or_json or head.startswith(_CODE) or _is_csv(path, head))


def _maybe_kineto(path: Path, head: bytes) -> bool:
    return not (head.startswith(_CODE) or _is_csv(path, head))


def _maybe_cubin(path: Path, head: bytes) -> bool:
    """Return False for a CSV too, unless it has the name of a compiler's log."""
    return not (head.startswith(_CODE[0]) or (_is_csv(path, head) and b"ptxas" not in head))


def _is_csv(path: Path, head: bytes) -> bool:
    """Return whether a file is a CSV, by its name and a first letter that no other known kind has."""
    return path.suffix == ".csv" and head[:1] in {b'"', b"=", b"I", b"K", b"C", b"D", b"p"}


class BuiltIns:
    """The built-in members of each hook, in the order of preference, with the project's own devices."""

    def __init__(self, project: Config | None = None) -> None:
        self.project = project

    def pytest_perfgate_runtimes(self) -> list[Runtime]:
        from pytest_perfgate.adapters.runtimes.cuda import CudaCoreRuntime, CupyRuntime
        from pytest_perfgate.adapters.runtimes.opencl import OpenClRuntime
        from pytest_perfgate.adapters.runtimes.torch import TorchRuntime

        lookup = self._lookup()
        return [TorchRuntime(lookup), CupyRuntime(lookup), CudaCoreRuntime(lookup), OpenClRuntime(lookup)]

    def pytest_perfgate_timers(self) -> list[Timer]:
        return [
            devices.auto_timer(),
            devices.events_timer(),
            devices.blocking_timer(),
            devices.graph_timer(),
            devices.cupti_timer(),
        ]

    def pytest_perfgate_profilers(self) -> list[Profiler]:
        from pytest_perfgate.adapters.bindings.cupti import CuptiRecorder
        from pytest_perfgate.adapters.profilers.in_process import CubinKeeper, Cupti, EventTimes, Torch
        from pytest_perfgate.adapters.profilers.tools import NcuProfiler, NsysProfiler, recording
        from pytest_perfgate.wiring import configuration
        from pytest_perfgate.wiring.profiling import scrubber

        config = configuration(Path.cwd())
        return [
            NsysProfiler(scrubber(), config.launcher, config.timeout),
            Torch(),
            Cupti(CuptiRecorder()),
            EventTimes(),
            NcuProfiler(recording, config.launcher, name="annotation"),
            NcuProfiler(recording, config.launcher, name="ncu"),
            CubinKeeper(),
        ]

    def pytest_perfgate_inspectors(self) -> list[Inspector]:
        return [
            Deferred("nsys", nsys_inspector, _maybe_nsys),
            Deferred("kineto", self._kineto, _maybe_kineto),
            Deferred("cubin", self._cubin, _maybe_cubin),
            Deferred("ncu", self._ncu),
            Deferred("rocprof", self._rocprof),
            Deferred("record", _runs),
            *(Deferred(tool, partial(benchmarks_of, tool)) for tool in BENCHMARK_TOOLS),
        ]

    def pytest_perfgate_deliveries(self) -> list[Delivery]:
        from pytest_perfgate.adapters.delivery import (
            File,
            GithubAnnotations,
            GithubCheck,
            GithubComment,
            GitlabComment,
            Webhook,
        )
        from pytest_perfgate.adapters.stores.records import render_record
        from pytest_perfgate.core.render.exports import FORMS
        from pytest_perfgate.core.render.html import CommentWords, render_comment, render_html
        from pytest_perfgate.core.render.report import PAGE, run_document
        from pytest_perfgate.wiring.stores import tables

        return [
            GithubComment(CommentWords()),
            GithubCheck(CommentWords()),
            GithubAnnotations(CommentWords()),
            GitlabComment(CommentWords()),
            Webhook(CommentWords()),
            File("json", render_record),
            File("html", lambda report: render_html(run_document(report, width=PAGE)).encode("utf-8")),
            File("markdown", lambda report: render_comment(report).encode("utf-8")),
            *(File(name, partial(_encoded, render)) for name, render in FORMS.items()),
            *(File(name, partial(_table, write)) for name, write in tables().items()),
        ]

    def _kineto(self) -> Inspector:
        from pytest_perfgate.adapters.readers.kineto import looks_like_kineto, read_kineto
        from pytest_perfgate.app.inspections.kineto import Kineto

        catalogue = self._catalogue()
        return Kineto(read_kineto, looks_like_kineto, catalogue, _write_replay, _spread, self._communication)

    def _cubin(self) -> Inspector:
        from pytest_perfgate.adapters.readers.cubin import read_cubins
        from pytest_perfgate.adapters.system.files import read_once
        from pytest_perfgate.app.inspections.cubin import Cubin

        return Cubin(read_once(read_cubins), self._catalogue())

    def _ncu(self) -> Inspector:
        from pytest_perfgate.adapters.readers.ncu_report import long_head, read_ncu
        from pytest_perfgate.app.inspections.ncu import Ncu

        return Ncu(read_ncu, self._catalogue(), long_head)

    def _rocprof(self) -> Inspector:
        from pytest_perfgate.adapters.readers.rocprof import read_rocprof
        from pytest_perfgate.app.inspections.ncu import Rocprof

        return Rocprof(read_rocprof, self._catalogue())

    def _catalogue(self) -> Callable[[], Catalogue]:
        """Return a function for the data sheets, which are read on first use, the project's own first."""
        if self.project is None or not self.project.device:
            return devices.project_catalogue
        return cache(partial(devices.catalogue, self.project))

    def _lookup(self) -> Lookup:
        if self.project is not None and self.project.device:
            catalogue = self._catalogue()
            return lambda name: catalogue().lookup(name)
        from pytest_perfgate.adapters.devices.visible import lookup_spec

        return lookup_spec

    def _communication(self) -> tuple[str, ...]:
        """Return the patterns of communication kernels, of the given project or of the current one."""
        from pytest_perfgate.wiring import configuration

        return (self.project or configuration(Path.cwd())).communication


def nsys_inspector() -> Inspector:
    """Return the inspector of Nsight Systems' exports, with the patterns of the current project."""
    from pytest_perfgate.adapters.readers.nsys_report import read_nsys
    from pytest_perfgate.app.inspections.nsys import Nsys
    from pytest_perfgate.wiring import configuration

    project = configuration(Path.cwd())
    communication = "|".join(f"(?:{pattern})" for pattern in project.communication)
    patterns = {**({"communication": communication} if communication else {}), **dict(project.nsys)}
    return Nsys(read_nsys, patterns, devices.project_catalogue)


def _runs() -> Inspector:
    from pytest_perfgate.adapters.stores.records import read_record
    from pytest_perfgate.app.inspections.results import Runs

    return Runs(read_record)


def _spread(workers: str) -> Any:
    from pytest_perfgate.adapters.children.spawn import mapper

    return mapper(workers)


def _write_replay(path: Path, text: str) -> Path:
    from pytest_perfgate.adapters.formats import write_replay

    return write_replay(path, text)


BENCHMARK_TOOLS: Mapping[str, str] = {
    "nvbench": "NVBench",
    "pytest-benchmark": "pytest-benchmark",
    "google-benchmark": "Google Benchmark",
    "asv": "asv",
    "hyperfine": "hyperfine",
}
"""Other benchmark tools by kind of file: the name for sentences."""


def benchmarks_of(tool: str) -> Benchmarks:
    """Return the inspector of another benchmark tool's results."""
    from pytest_perfgate.adapters.readers.benchmarks import READERS
    from pytest_perfgate.app.inspections.results import Benchmarks

    return Benchmarks(tool, READERS[tool])


def _encoded(render: Callable[[RunReport], str], report: RunReport) -> bytes:
    return render(report).encode("utf-8", "replace")


def _table(write: Callable[[Table], bytes], report: RunReport) -> bytes:
    """Return every figure of a run as a table file."""
    from pytest_perfgate.app.accepted import entries
    from pytest_perfgate.core.render.exports import figures_table

    return write(figures_table(entries(report)))
