"""Nsight Systems around a child: the region alone is captured, and what is kept holds no environment."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_perfgate.adapters.profilers.profiler_api import switched
from pytest_perfgate.adapters.system.commands import abridged, run_captured
from pytest_perfgate.adapters.system.files import indented, last_lines
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.nsys import REPORTS, Scrub
from pytest_perfgate.model.plan import Plan

OLDEST = (2022, 2)
"""Before it, --capture-range-end and node-level graph tracing are missing."""
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


class Nsys:
    """One capture at a time; ``scrub`` is given, for what is kept must be clean."""

    name = "nsys"

    def __init__(
        self, scrub: Scrub, launcher: Sequence[str] = (), timeout_s: float = 1800.0, *, ranged: bool = True
    ) -> None:
        self._scrub, self._launcher, self._timeout = scrub, tuple(launcher), timeout_s
        self._range = RANGE if ranged else ()

    def availability(self) -> Availability:
        """Asks nsys for its version where it will run: behind the launcher."""
        mend = "install Nsight Systems, or name the launcher in front of it: [tool.perfgate] launcher"
        try:
            done = _ran(behind(self._launcher, ["nsys", "--version"]), 60.0)
        except PerfgateError as error:
            return Availability(name=self.name, usable=False, why=error.what, mend=mend)
        found = _VERSION.search(done)
        if found is None:
            return Availability(name=self.name, usable=False, why=f"nsys --version says {done.strip()!r}", mend=mend)
        if (int(found.group(1)), int(found.group(2))) < OLDEST:
            why = f"nsys {found.group()} is older than {OLDEST[0]}.{OLDEST[1]}"
            return Availability(name=self.name, usable=False, why=why, mend=mend, version=found.group())
        return Availability(name=self.name, usable=True, version=found.group())

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> Sequence[str]:  # noqa: ARG002 - the port's
        """The child behind nsys, and both behind the launcher."""
        profile = ["nsys", "profile", *FLAGS, *self._range, f"--output={_stem(out)}", *argv]
        return behind(self._launcher, profile)

    @contextmanager
    def region(self, out: Path) -> Iterator[None]:  # noqa: ARG002 - the port's
        """Opens and closes the capture range from inside the child."""
        with switched():
            yield

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """The clean export of each report; the report and the raw export hold the environment and go."""
        for stream in sorted(out.glob("*.qdstrm")):
            _import(stream, self._timeout)
        reports = sorted(path for path in out.glob("*") if path.suffix in REPORTS)
        if not reports:
            why = "the capture range never opened" if self._range else "nsys wrote nothing"
            mend = "enter perfgate.region() in the test, with work on the GPU inside"
            raise PerfgateError("nsys-child", f"no report in {out}: {why}", mend=mend)
        return tuple(self._kept(report) for report in reports)

    def _kept(self, report: Path) -> Artifact:
        raw, clean = report.with_suffix(".raw.sqlite"), report.with_suffix(".sqlite")
        export = ["nsys", "export", "--type=sqlite", "--force-overwrite=true", f"--output={raw}", str(report)]
        try:
            _ran(behind(self._launcher, export), self._timeout)
            done = self._scrub(raw, clean)
        finally:
            raw.unlink(missing_ok=True)
            report.unlink(missing_ok=True)
        dropped = ", ".join(done.tables)
        return Artifact(kind="nsys", path=str(clean), parameters=(("flags", " ".join(FLAGS)), ("dropped", dropped)))


def behind(launcher: Sequence[str], argv: Sequence[str]) -> list[str]:
    """A command behind its launcher; a remote shell reads one line, so its words are quoted for it."""
    if not launcher:
        return list(argv)
    if Path(launcher[0]).name in _REMOTE:
        return [*launcher, " ".join(shlex.quote(word) for word in argv)]
    return [*launcher, *argv]


def _stem(out: Path) -> Path:
    return out.absolute() / "capture"


def _ran(argv: Sequence[str], timeout_s: float) -> str:
    """What a command printed; its tail is in the error when it fails, and its whole group ends with it."""
    if shutil.which(argv[0]) is None:
        raise PerfgateError("nsys-tool", f"{argv[0]} is not on the PATH")
    try:
        done = run_captured(argv, timeout_s)
    except subprocess.TimeoutExpired as late:
        said = (late.output or b"") + (late.stderr or b"")
        raise PerfgateError("nsys-child", f"{abridged(argv)} took over {timeout_s:.0f} s{_tail(said)}") from late
    output = done.stdout + done.stderr
    if done.returncode:
        what = f"{abridged(argv)} ended with exit code {done.returncode}{_tail(output)}"
        raise PerfgateError("nsys-child", what)
    return output.decode("utf-8", "replace")


def _import(stream: Path, timeout_s: float) -> None:
    """Some distributions keep the importer where nsys does not look; it is called by hand then."""
    report = stream.with_suffix(".nsys-rep")
    try:
        if not report.exists():
            _ran([str(_importer(stream)), "--input-file", str(stream), "--output-file", str(report)], timeout_s)
    finally:
        stream.unlink(missing_ok=True)


def _importer(stream: Path) -> Path:
    found = shutil.which(_IMPORTER)
    beside = (Path(shutil.which("nsys") or "nsys").resolve().parent.parent, Path("/usr/lib/nsight-systems"))
    places = [Path(found)] if found else [place for root in beside for place in root.glob(f"host-*/{_IMPORTER}")]
    if not places:
        what = f"nsys left {stream.name} and no {_IMPORTER} turns it into a report"
        raise PerfgateError("nsys-child", what, mend="install the host part of Nsight Systems beside the target part")
    return places[0]


def _tail(output: bytes) -> str:
    lines = last_lines(output.decode("utf-8", "replace"), _TAIL_LINES)
    return f"; its last lines:{indented(lines)}" if lines else " and printed nothing"
