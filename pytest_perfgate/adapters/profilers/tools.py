"""nsys, ncu and cubin around a child."""

from __future__ import annotations

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.bindings.border import with_warning
from pytest_perfgate.adapters.system.files import indented, last_lines
from pytest_perfgate.adapters.system.processes import abridged, run_captured
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.profiles import REPORTS

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.profiles import Scrub

OLDEST = (2022, 2)
"""The first version with --capture-range-end and node-level graph tracing."""

FLAGS = (
    "--trace=cuda,nvtx",
    "--cuda-graph-trace=node",
    "--sample=none",
    "--cpuctxsw=none",
    "--force-overwrite=true",
)

RANGE = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")

_VERSION = re.compile(r"(20\d\d)\.(\d+)(?:\.\d+)*")

_IMPORTER = "QdstrmImporter"

_TAIL_LINES = 20

_REMOTE = frozenset({"ssh", "rsh"})


class NsysProfiler:
    """One capture of nsys at a time; ``scrub`` removes secrets from what is kept."""

    name = "nsys"

    def __init__(
        self, scrub: Scrub, launcher: Sequence[str] = (), timeout_s: float = 1800.0, *, ranged: bool = True
    ) -> None:
        self._scrub, self._launcher, self._timeout = scrub, tuple(launcher), timeout_s
        self._range = RANGE if ranged else ()

    def availability(self) -> Availability:
        """Return nsys's version as it runs: behind the launcher."""
        fix = "install Nsight Systems, or set [tool.perfgate] launcher"
        try:
            answer = _run(with_launcher(self._launcher, ["nsys", "--version"]), 60.0)
        except PerfgateError as error:
            return Availability(name=self.name, usable=False, why=error.what, fix=fix)
        match = _VERSION.search(answer)
        if match is None:
            return Availability(name=self.name, usable=False, why=f"nsys --version says {answer.strip()!r}", fix=fix)
        if (int(match.group(1)), int(match.group(2))) < OLDEST:
            why = f"nsys {match.group()} is older than {OLDEST[0]}.{OLDEST[1]}"
            return Availability(name=self.name, usable=False, why=why, fix=fix, version=match.group())
        return Availability(name=self.name, usable=True, version=match.group())

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:  # noqa: ARG002 - the port's
        """Return the child's command behind nsys, and both behind the launcher."""
        profile = ["nsys", "profile", *FLAGS, *self._range, f"--output={out.absolute() / 'capture'}", *argv]
        return with_launcher(self._launcher, profile)

    def region(self, out: Path) -> AbstractContextManager[None]:  # noqa: ARG002 - the port's
        """Open and close the capture range from inside the child."""
        return recording()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """Return the clean export of each report; report and raw export hold the environment and are deleted."""
        for stream in sorted(out.glob("*.qdstrm")):
            _import(stream, self._timeout)
        reports = sorted(path for path in out.glob("*") if path.suffix in REPORTS)
        if not reports:
            why = "the capture range never started" if self._range else "nsys wrote nothing"
            fix = "enter perfgate.region() in the test, with work on the GPU inside"
            raise PerfgateError("nsys-child", f"no report in {out}: {why}", fix=fix)
        return tuple(self._export(report) for report in reports)

    def _export(self, report: Path) -> Artifact:
        raw, clean = report.with_suffix(".raw.sqlite"), report.with_suffix(".sqlite")
        export = ["nsys", "export", "--type=sqlite", "--force-overwrite=true", f"--output={raw}", str(report)]
        try:
            _run(with_launcher(self._launcher, export), self._timeout)
            scrubbed = self._scrub(raw, clean)
        finally:
            raw.unlink(missing_ok=True)
            report.unlink(missing_ok=True)
        dropped = ", ".join(scrubbed.tables)
        return Artifact(kind="nsys", path=str(clean), parameters=(("flags", " ".join(FLAGS)), ("dropped", dropped)))


def with_launcher(launcher: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return a command behind its launcher, quoted as one line for a remote shell."""
    if not launcher:
        return list(argv)
    if Path(launcher[0]).name in _REMOTE:
        return [*launcher, " ".join(shlex.quote(word) for word in argv)]
    return [*launcher, *argv]


def _run(argv: Sequence[str], timeout_s: float) -> str:
    """Return the output of a command; on failure raise with its end, and end its whole process group."""
    if shutil.which(argv[0]) is None:
        raise PerfgateError("nsys-tool", f"{argv[0]} is not on the PATH")
    try:
        result = run_captured(argv, timeout_s)
    except subprocess.TimeoutExpired as late:
        printed = (late.output or b"") + (late.stderr or b"")
        raise PerfgateError("nsys-child", f"{abridged(argv)} took over {timeout_s:.0f} s{_tail(printed)}") from late
    output = result.stdout + result.stderr
    if result.returncode:
        raise PerfgateError("nsys-child", f"{abridged(argv)} ended with exit code {result.returncode}{_tail(output)}")
    return output.decode("utf-8", "replace")


def _import(stream: Path, timeout_s: float) -> None:
    """Run the importer directly, because some distributions keep it where nsys does not search."""
    report = stream.with_suffix(".nsys-rep")
    try:
        if not report.exists():
            _run([str(_importer(stream)), "--input-file", str(stream), "--output-file", str(report)], timeout_s)
    finally:
        stream.unlink(missing_ok=True)


def _importer(stream: Path) -> Path:
    program = shutil.which(_IMPORTER)
    roots = (Path(shutil.which("nsys") or "nsys").resolve().parent.parent, Path("/usr/lib/nsight-systems"))
    places = [Path(program)] if program else [place for root in roots for place in root.glob(f"host-*/{_IMPORTER}")]
    if not places:
        what = f"nsys left {stream.name} and there is no {_IMPORTER} to turn it into a report"
        raise PerfgateError("nsys-child", what, fix="install the host part of Nsight Systems too")
    return places[0]


def _tail(output: bytes) -> str:
    lines = last_lines(output.decode("utf-8", "replace"), _TAIL_LINES)
    return f"; its last lines:{indented(lines)}" if lines else " and printed nothing"


Switch = Callable[[], object]

_RUNTIMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")

_NO_DEVICE = frozenset({35, 100})
"""The runtime's status if the driver is too old or absent, and without a device."""

_DRIVERS = ("libcuda.so.1", "libcuda.so")


@contextmanager
def recording() -> Iterator[None]:
    """Record the block; its launches finish before the range closes."""
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
    """Return the profiler switches from the library that the program has loaded, else from runtime or driver."""
    torch = sys.modules.get("torch")
    if torch is not None and with_warning(torch.cuda.is_available)[0]:
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
        fix="run on a machine with a GPU, or profile the host: --mode torch",
    )


def _library(names: Sequence[str]) -> ctypes.CDLL | None:
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


SECTIONS = (
    "SpeedOfLight", "SpeedOfLight_RooflineChart", "LaunchStats", "Occupancy", "ComputeWorkloadAnalysis",
    "MemoryWorkloadAnalysis", "WarpStateStats", "InstructionStats",
)  # fmt: skip
"""What classes and rooflines need; a full set collects thousands of metrics with dozens of replays of each kernel."""
DEEP = (*SECTIONS, "SourceCounters", "SchedulerStats", "MemoryWorkloadAnalysis_Tables")

LOG, STEM = "profiler.log", "kernels"

_NCU_VERSION = re.compile(r"Version (\d{4}\.\d+\.\d+)")

NcuSwitch = Callable[[], AbstractContextManager[None]]


class NcuProfiler:
    """``annotation`` requests the sections for classification; ``ncu`` also source and machine code."""

    def __init__(
        self, switch: NcuSwitch, launcher: Sequence[str] = (), *, name: str = "annotation", filters: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._switch, self._launcher = switch, tuple(launcher)
        self._deep = name == "ncu"
        self._filters = tuple(filters)

    def only(self, kernel: str, launches: int = 0) -> NcuProfiler:
        """Return it for kernels with this in their name, and so many launches, since each one is replayed."""
        named = ("--kernel-name", f"regex:{re.escape(kernel)}") if kernel else ()
        counted = ("--launch-count", str(launches)) if launches else ()
        return NcuProfiler(self._switch, self._launcher, name=self.name, filters=(*named, *counted))

    def availability(self) -> Availability:
        """Return ncu's version as it runs: behind the launcher."""
        fix = "install Nsight Compute, or set [tool.perfgate] launcher"
        argv = with_launcher(self._launcher, ["ncu", "--version"])
        if shutil.which(argv[0]) is None:
            return Availability(name=self.name, usable=False, why=f"{argv[0]} is not on the PATH", fix=fix)
        try:
            result = run_captured(argv, 60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Availability(name=self.name, usable=False, why=f"ncu --version: {error}", fix=fix)
        match = _NCU_VERSION.search(result.stdout.decode("utf-8", "replace"))
        if result.returncode or match is None:
            return Availability(name=self.name, usable=False, why="ncu --version names no version", fix=fix)
        return Availability(name=self.name, usable=True, version=match[1])

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:  # noqa: ARG002 - the port's
        """Return the child's command behind ncu, which waits for cudaProfilerStart and leaves the clocks alone."""
        sections = [word for section in (DEEP if self._deep else SECTIONS) for word in ("--section", section)]
        source = ["--import-source", "yes"] if self._deep else []
        return with_launcher(
            self._launcher,
            ["ncu", "--profile-from-start", "off", "--target-processes", "all", "--clock-control", "none",
             *sections, *source, *self._filters, "--force-overwrite", "--export", str(out.absolute() / STEM), *argv],
        )  # fmt: skip

    def region(self, out: Path) -> AbstractContextManager[None]:  # noqa: ARG002 - the port's
        return self._switch()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """Return the report; without one, raise the error that ncu's output shows."""
        report = out / f"{STEM}.ncu-rep"
        log = out / LOG
        log_text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        if "ERR_NVGPUCTRPERM" in log_text:
            what = "ncu has no permission to read this device's counters: ERR_NVGPUCTRPERM"
            raise PerfgateError("ncu-permission", what)
        if not report.is_file():
            lines = [line for line in log_text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
            errors = [line for line in lines if line.startswith("==ERROR==")]  # the first is the cause of the others
            raise PerfgateError("ncu-nothing", (errors[:1] or lines[-1:] or ["ncu wrote no report"])[0], place=str(out))
        return (Artifact(kind="ncu", path=str(report), parameters=(("mode", self.name),)),)
