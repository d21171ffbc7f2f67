"""Nsight Compute around a child: targeted sections of the kernels inside the region alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pytest_perfgate.adapters.profilers.nsys import behind
from pytest_perfgate.adapters.system.commands import run_captured
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Plan

SECTIONS = (
    "SpeedOfLight", "LaunchStats", "Occupancy", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "WarpStateStats",
)  # fmt: skip
"""What classification rests on; a full set collects thousands of metrics and replays each kernel dozens of times."""
DEEP = (*SECTIONS, "SourceCounters", "SchedulerStats", "InstructionStats", "MemoryWorkloadAnalysis_Tables")
LOG, STEM = "profiler.log", "kernels"
_VERSION = re.compile(r"Version (\d{4}\.\d+\.\d+)")

Switch = Callable[[], AbstractContextManager[None]]


class Ncu:
    """``annotation`` asks for the sections that classify; ``ncu`` for source and machine code too."""

    def __init__(self, switch: Switch, launcher: Sequence[str] = (), *, name: str = "annotation") -> None:
        self.name = name
        self._switch, self._launcher = switch, tuple(launcher)
        self._deep = name == "ncu"

    def availability(self) -> Availability:
        """Asks ncu for its version where it will run: behind the launcher."""
        mend = "install Nsight Compute, or name the launcher in front of it: [tool.perfgate] launcher"
        argv = behind(self._launcher, ["ncu", "--version"])
        if shutil.which(argv[0]) is None:
            return Availability(name=self.name, usable=False, why=f"{argv[0]} is not on the PATH", mend=mend)
        try:
            done = run_captured(argv, 60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Availability(name=self.name, usable=False, why=f"ncu --version: {error}", mend=mend)
        found = _VERSION.search(done.stdout.decode("utf-8", "replace"))
        if done.returncode or found is None:
            return Availability(name=self.name, usable=False, why="ncu --version says no version", mend=mend)
        return Availability(name=self.name, usable=True, version=found[1])

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        """The child behind ncu, region by cudaProfilerStart; ncu itself leaves the clocks alone."""
        del plan
        asked = [word for section in (DEEP if self._deep else SECTIONS) for word in ("--section", section)]
        source = ["--import-source", "yes"] if self._deep else []
        return behind(
            self._launcher,
            ["ncu", "--profile-from-start", "off", "--target-processes", "all", "--clock-control", "none",
             *asked, *source, "--force-overwrite", "--export", str(out.absolute() / STEM), *argv],
        )  # fmt: skip

    def region(self, out: Path) -> AbstractContextManager[None]:
        del out
        return self._switch()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        """The report; where there is none, what ncu said decides which error it is."""
        report = out / f"{STEM}.ncu-rep"
        log = out / LOG
        said = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        if "ERR_NVGPUCTRPERM" in said:
            raise PerfgateError("ncu-permission", "ncu may not read this device's counters: ERR_NVGPUCTRPERM")
        if not report.is_file():
            lines = [line for line in said.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
            raise PerfgateError("ncu-nothing", lines[-1] if lines else "ncu left no report", place=str(out))
        return (Artifact(kind="ncu", path=str(report), parameters=(("mode", self.name),)),)
