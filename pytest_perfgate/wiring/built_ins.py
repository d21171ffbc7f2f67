"""Our own instruments: they come in by the same hooks as anybody's, each made where it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.wiring import devices

if TYPE_CHECKING:
    from pytest_perfgate.app.inspections.results import Benchmarks
    from pytest_perfgate.model.device import DeviceSpec
    from pytest_perfgate.model.ports import Catalogue, Delivery, Inspector, Profiler, Runtime, Timer
    from pytest_perfgate.model.profiles import BenchReader
    from pytest_perfgate.model.project import Config

    Lookup = Callable[[str], DeviceSpec | None]


class BuiltIns:
    """The built-in members of each hook, in the order of preference; they know the project's own devices."""

    def __init__(self, project: Config | None = None) -> None:
        self._project = project

    def pytest_perfgate_runtimes(self) -> list[Runtime]:
        from pytest_perfgate.adapters.runtimes.cuda_core import CudaCoreRuntime
        from pytest_perfgate.adapters.runtimes.cupy import CupyRuntime
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
        from pytest_perfgate.adapters.profilers.in_process import Cupti, EventTimes, Torch
        from pytest_perfgate.adapters.profilers.tools import CubinKeeper, Ncu, Nsys, switched
        from pytest_perfgate.wiring import configuration
        from pytest_perfgate.wiring.profiling import scrubber

        here = configuration(Path.cwd())
        return [
            Nsys(scrubber(), here.launcher, here.timeout),
            Torch(),
            Cupti(CuptiRecorder()),
            EventTimes(),
            Ncu(switched, here.launcher, name="annotation"),
            Ncu(switched, here.launcher, name="ncu"),
            CubinKeeper(),
        ]

    def pytest_perfgate_inspectors(self) -> list[Inspector]:
        from pytest_perfgate.adapters.children.spawn import spread
        from pytest_perfgate.adapters.formats.files import write_replay
        from pytest_perfgate.adapters.readers.cubin import read_cubins
        from pytest_perfgate.adapters.readers.kineto import looks_like_kineto, read_kineto
        from pytest_perfgate.adapters.readers.ncu_report import long_head, read_ncu
        from pytest_perfgate.adapters.readers.rocprof import read_rocprof
        from pytest_perfgate.adapters.stores.records import read_record
        from pytest_perfgate.app.inspections.cubin import Cubin
        from pytest_perfgate.app.inspections.kineto import Kineto
        from pytest_perfgate.app.inspections.ncu import Ncu, Rocprof
        from pytest_perfgate.app.inspections.results import Runs

        catalogue = self._catalogue()
        return [
            nsys_inspector(),
            Kineto(read_kineto, looks_like_kineto, catalogue, write_replay, spread, self._communication),
            Cubin(read_cubins, catalogue),
            Ncu(read_ncu, catalogue, long_head),
            Rocprof(read_rocprof, catalogue),
            Runs(read_record),
            *(inspector for inspector, _ in benchmark_inspectors()),
        ]

    def pytest_perfgate_deliveries(self) -> list[Delivery]:
        from pytest_perfgate.adapters.delivery import File, GithubComment, GitlabComment, Webhook
        from pytest_perfgate.adapters.stores.records import render_record
        from pytest_perfgate.core.render.html import render_comment, render_html
        from pytest_perfgate.core.render.report import run_document

        return [
            GithubComment(render_comment),
            GitlabComment(render_comment),
            Webhook(render_comment),
            File("json", render_record),
            File("html", lambda report: render_html(run_document(report)).encode("utf-8")),
            File("markdown", lambda report: render_comment(report).encode("utf-8")),
        ]

    def _catalogue(self) -> Callable[[], Catalogue]:
        """The data sheets, read when the first device is looked up: a project's own stand before the shipped ones."""
        if self._project is None or not self._project.device:
            return devices.project_catalogue
        return cache(partial(devices.catalogue, self._project))

    def _lookup(self) -> Lookup:
        if self._project is not None and self._project.device:
            catalogue = self._catalogue()
            return lambda name: catalogue().lookup(name)
        from pytest_perfgate.adapters.devices.catalogue import lookup_spec

        return lookup_spec

    def _communication(self) -> tuple[str, ...]:
        """Patterns of communication kernels, of the project or of the one that is worked in."""
        from pytest_perfgate.wiring import configuration

        return (self._project or configuration(Path.cwd())).communication


def nsys_inspector() -> Inspector:
    """The reader of Nsight Systems' exports, with the patterns of the project that is worked in."""
    from pytest_perfgate.adapters.readers.nsys_report import read_nsys
    from pytest_perfgate.app.inspections.nsys import Nsys
    from pytest_perfgate.wiring import configuration

    project = configuration(Path.cwd())
    known = "|".join(f"(?:{pattern})" for pattern in project.communication)
    return Nsys(read_nsys, {**({"communication": known} if known else {}), **dict(project.nsys)})


def benchmark_inspectors() -> list[tuple[Benchmarks, BenchReader]]:
    """What recognises the results of other benchmark tools, each with what reads them."""
    from pytest_perfgate.adapters.readers import benchmarks as read
    from pytest_perfgate.app.inspections import results

    return [
        (results.nvbench(read.read_nvbench), read.read_nvbench),
        (results.pytest_benchmark(read.read_pytest_benchmark), read.read_pytest_benchmark),
        (results.google_benchmark(read.read_google_benchmark), read.read_google_benchmark),
        (results.asv(read.read_asv), read.read_asv),
    ]
