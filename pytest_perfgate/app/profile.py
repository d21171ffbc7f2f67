"""Profile one test: run it under an instrument, read what that left, write a folder people can keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pytest_perfgate.core.render.markdown import render_markdown
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import Profiler
from pytest_perfgate.model.values import array_value

VARIABLE = "PERFGATE_PROFILE"
"""Tells the child which profiler to enter around the region, and where its folder is."""
LOG = "profiler.log"
_COMPACT = ("contract", "report", "overview", "bottleneck")
_FAILED_TWICE = "it failed twice"

Inspect = Callable[[Sequence[Path]], Analysis]


class Folders(Protocol):
    """Where profiles are kept."""

    def fresh(self, mode: str, nodeid: str) -> Path: ...

    def write_text(self, folder: Path, name: str, text: str) -> None: ...

    def write_json(self, folder: Path, name: str, value: Any) -> None: ...


class RunLogged(Protocol):
    """Runs a child with its output in a file."""

    def __call__(
        self, argv: Sequence[str], log: Path, *, extra: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> int: ...


@array_value
class ProfileTools:
    """What profiling asks of the world."""

    profilers: Sequence[Profiler]
    folders: Folders
    execute: RunLogged
    inspect: Inspect
    interpreter: tuple[str, ...]
    root: Path
    timeout_s: float = 1800.0


@array_value
class Profiled:
    """What a profile came to."""

    folder: Path
    artifacts: tuple[Artifact, ...]
    analysis: Analysis
    again: bool = False
    """Whether it took a second try."""


def profile(nodeid: str, mode: str, plan: Plan, tools: ProfileTools) -> Profiled:
    """One test under one instrument."""
    profiler = choose_profiler(mode, tools.profilers)
    folder = tools.folders.fresh(mode, nodeid)
    argv = [*tools.interpreter, nodeid, "--perfgate=off", "-q", "--no-header", "-p", "no:cacheprovider"]
    again = _run(profiler, argv, folder, plan, tools)
    artifacts = profiler.artifacts(folder)
    analysis = tools.inspect([Path(artifact.path) for artifact in artifacts])
    _write(folder, analysis, tools.folders, _parameters(nodeid, mode, plan, profiler, analysis, again=again))
    return Profiled(folder=folder, artifacts=artifacts, analysis=analysis, again=again)


def choose_profiler(mode: str, profilers: Sequence[Profiler]) -> Profiler:
    """The profiler of that name, usable here."""
    found = next((p for p in profilers if p.name == mode), None)
    if found is None:
        known = ", ".join(sorted(p.name for p in profilers))
        raise PerfgateError("profile-mode", f"nothing here profiles in mode '{mode}'", mend=f"known here: {known}")
    said = found.availability()
    if not said.usable:
        raise PerfgateError("profile-tool", f"{mode} does not work here: {said.why}", mend=said.mend)
    return found


def _run(profiler: Profiler, argv: Sequence[str], folder: Path, plan: Plan, tools: ProfileTools) -> bool:
    """Run the child; what fails right after autotuning is tried once more, and that is said."""
    command = list(profiler.command(argv, folder, plan))
    extra = {VARIABLE: f"{profiler.name}:{folder.absolute()}"}
    for attempt in range(2):
        code = tools.execute(command, folder / LOG, extra=extra, cwd=tools.root, timeout_s=tools.timeout_s)
        if code == 0:
            return attempt > 0
        if not attempt:
            _raise_known(profiler, folder)
    raise PerfgateError(
        "profile-child",
        f"the test under {profiler.name} ended with exit code {code}; {_FAILED_TWICE}",
        place=str(folder / LOG),
    )


def _raise_known(profiler: Profiler, folder: Path) -> None:
    """A permission that is missing is missing at the second try as well."""
    try:
        profiler.artifacts(folder)
    except PerfgateError as error:
        if error.code.name == "ncu-permission":
            raise


def _parameters(
    nodeid: str, mode: str, plan: Plan, profiler: Profiler, analysis: Analysis, *, again: bool
) -> dict[str, Any]:
    """Everything the profile was taken with; read before its figures."""
    _, _, params = nodeid.partition("[")
    return {
        "nodeid": nodeid,
        "parameters": params.rstrip("]"),
        "mode": mode,
        "profiler": profiler.availability().version,
        "clocks": plan.clocks.value,
        "devices": sorted({dict(m.labels).get("arch", "") for m in analysis.metrics.metrics} - {""}),
        "window": analysis.window,
        "second_try": again,
    }


def _write(folder: Path, analysis: Analysis, folders: Folders, parameters: Mapping[str, Any]) -> None:
    """``params.json``, ``report.md``, ``metrics.json``, and every view for those who look deeper."""
    folders.write_json(folder, "params.json", parameters)
    compact = next((name for name in _COMPACT if name in analysis.views), next(iter(analysis.views)))
    folders.write_text(folder, "report.md", render_markdown(analysis.views[compact](), level=2))
    folders.write_json(folder, "metrics.json", metrics_data(analysis))
    if len(analysis.views) > 1:
        text = "\n".join(render_markdown(build()) for build in analysis.views.values())
        folders.write_text(folder, "report-verbose.md", text)


def metrics_data(analysis: Analysis) -> dict[str, Any]:
    """Every metric with its labels; what is absent is listed with the way to collect it."""
    return {
        "kind": analysis.kind,
        "window": analysis.window,
        "metrics": [
            {"name": m.name, "value": m.value, "dimension": m.dimension.value, "labels": dict(m.labels), "note": m.note}
            for m in analysis.metrics.metrics
        ],
        "absent": [
            {"name": a.name, "labels": dict(a.labels), "why": a.why, "mend": a.mend} for a in analysis.metrics.absent
        ],
    }
