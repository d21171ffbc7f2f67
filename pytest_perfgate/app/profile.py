"""Profiles one call of a test in a child, reads what the profiler wrote, and keeps it in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey, ClockPolicy, Plan
from pytest_perfgate.model.protocol import (
    FIRST_FAILURE,
    LOG,
    STATIC,
    TOLD,
    VARIABLE,
    Assignment,
    ProfilingResult,
    parse_profiling_result,
)
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Availability
    from pytest_perfgate.model.measurement import Artifact
    from pytest_perfgate.model.metric import Analysis, Document
    from pytest_perfgate.model.ports import Profiler

TIMED_OUT = 124  # the exit code of a child that was ended after its time, as of timeout(1)

_FINAL = frozenset({"ncu-permission"})
"""Errors that a second try would repeat."""


class Inspect(Protocol):
    """Reads the output of a profiler; limits select what an inspector computes."""

    def __call__(self, paths: Sequence[Path], limits: str = "") -> Analysis: ...


class RunLogged(Protocol):
    """Runs a child with its output in a file."""

    def __call__(
        self, argv: Sequence[str], log: Path, *, extra: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> int: ...


@array_value
class ProfileTools:
    """What profiling needs from outside."""

    profilers: Sequence[Profiler]
    folders: Folders
    execute: RunLogged
    inspect: Inspect
    command: Callable[[str, Assignment], Sequence[str]]
    """Returns the command line of a child that runs this test under its assignment."""
    root: Path
    timeout_s: float = 1800.0
    exclusively: Callable[[], AbstractContextManager[Any]] = nullcontext  # held during a run: one profiler at a time
    revision: Callable[[], str] = str  # the profiled commit
    only: tuple[str, int] = ("", 0)
    """The kernels with this in their name, and so many launches of them; empty and 0 select all."""


def profile(key: CaseKey, mode: str, plan: Plan, tools: ProfileTools, assigned: Assignment | None = None) -> Profiled:
    """Profile one test with one profiler; a named call restricts it to that call."""
    profiler, available = choose_profiler(mode, tools.profilers)
    profiler = narrowed(profiler, tools.only)
    folder = tools.folders.fresh(mode, _parameters_as_folder(key))
    assignment = assigned or Assignment(mode=mode, out="", call=key.name or None, clocks=plan.clocks.value)
    with tools.exclusively():
        result, again = _run(profiler, key, assignment, (folder, plan), tools)
        artifacts = profiler.artifacts(folder)
    taken_with = {**parameters(key, plan, result), "mode": mode, "profiler": available.version, "second_try": again}
    taken_with |= {"version": tools.revision(), "kernels": tools.only[0]}
    tools.folders.write_json(folder, "params.json", taken_with)
    analysis = tools.inspect([Path(artifact.path) for artifact in _read(artifacts)])
    profiled = Profiled(
        mode=mode, folder=folder, artifacts=artifacts, analysis=analysis, again=again, version=available.version
    )
    write_profile(profiled, tools.folders, taken_with)
    return profiled


def narrowed(profiler: Profiler, only: tuple[str, int]) -> Profiler:
    """Return the profiler for chosen kernels; raise if it cannot select any, since it would collect all."""
    from pytest_perfgate.model.device import SupportsKernels

    if only == ("", 0):
        return profiler
    if not isinstance(profiler, SupportsKernels):
        what = f"mode '{profiler.name}' cannot collect chosen kernels only"
        raise PerfgateError("profile-mode", what, fix="leave out --kernel and --launches, or --mode annotation or ncu")
    chosen: Profiler = profiler.only(*only)
    return chosen


def choose_profiler(mode: str, profilers: Sequence[Profiler]) -> tuple[Profiler, Availability]:
    """Return the profiler of that name; raise if it does not work here."""
    profiler = next((p for p in profilers if p.name == mode), None)
    if profiler is None:
        modes = ", ".join(sorted(p.name for p in profilers))
        raise PerfgateError("profile-mode", f"nothing here profiles in mode '{mode}'", fix=f"known here: {modes}")
    availability = profiler.availability()
    if not availability.usable:
        raise PerfgateError("profile-tool", f"{mode} does not work here: {availability.why}", fix=availability.fix)
    return profiler, availability


def _read(artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Return the last trace of one process, which has one for each entry into the region: by then it is warm."""
    return artifacts[-1:] if all(artifact.kind == "kineto" for artifact in artifacts) else artifacts


def _parameters_as_folder(key: CaseKey) -> str:
    """Return the node id with the call's name before the parameters, which become a folder of their own."""
    case, bracket, params = key.nodeid.partition("[")
    return f"{case}{f'#{key.name}' if key.name else ''}{bracket}{params}"


def _run(
    profiler: Profiler, key: CaseKey, assignment: Assignment, where: tuple[Path, Plan], tools: ProfileTools
) -> tuple[ProfilingResult, bool]:
    """Run the child; a failure, which may follow autotuning, is retried once and reported."""
    folder, plan = where
    clocks = assignment.clocks or ClockPolicy.OBSERVE.value
    assigned = replace(assignment, mode=profiler.name, out=str(folder.absolute()), clocks=clocks)
    command = list(profiler.command(tools.command(key.nodeid, assigned), folder, plan))
    extra = {VARIABLE: assigned.text()}
    result, code = ProfilingResult(), 0
    for attempt in range(2):
        code = tools.execute(command, folder / LOG, extra=extra, cwd=tools.root, timeout_s=tools.timeout_s)
        result = parse_profiling_result(tools.folders.read_json(folder, TOLD))
        if code == 0 and result.outcome != "failed":
            _check_entered(result, key, assigned)
            return result, attempt > 0 or FIRST_FAILURE in dict(result.facts)
        if not attempt:
            _raise_final(profiler, result, code, folder, tools)
    how = f"failed: {result.text}" if result.text else f"ended with exit code {code}"
    what = f"the test under {profiler.name} {how}; it failed twice"
    raise PerfgateError("profile-child", what + _output(folder, tools), place=str(folder / LOG))


def _check_entered(child: ProfilingResult, key: CaseKey, assigned: Assignment) -> None:
    """Refuse a test that was skipped, or that never reached the profiled call."""
    if child.outcome == "skipped":
        raise PerfgateError("profile-child", f"the test was skipped: {child.text}", place=str(Path(assigned.out) / LOG))
    if child.outcome and not child.entered and assigned.mode != STATIC:
        named = f" named '{key.name}'" if key.name else ""
        calls = ", ".join(repr(name) if name else "one without a name" for name in child.calls)
        what = f"the test made no call{named} and entered no region{named}{calls and f'; its calls are {calls}'}"
        raise PerfgateError("profile-child", what, fix="perfgate(fn), or with perfgate.region()", place=key.nodeid)


def _raise_final(profiler: Profiler, child: ProfilingResult, code: int, folder: Path, tools: ProfileTools) -> None:
    """Raise for what a second try cannot fix: a missing permission, no device, a timeout."""
    if code == TIMED_OUT:
        what = f"the test under {profiler.name} took over {tools.timeout_s:.0f} s and was ended{_output(folder, tools)}"
        raise PerfgateError("profile-child", what, place=str(folder / LOG))
    name, what, fix = child.error
    if name:
        raise PerfgateError("profile-tool", f"{profiler.name}: {what}", fix=fix, place=str(folder / LOG))
    try:
        profiler.artifacts(folder)
    except PerfgateError as error:
        if error.code.name in _FINAL:
            raise


def _output(folder: Path, tools: ProfileTools) -> str:
    tail = tools.folders.tail(folder, LOG)
    return f"; it said:\n{tail}" if tail else " and said nothing"


AGAIN = "The first try failed right after autotuning; this is the second."

_COMPACT = ("contract", "report", "overview", "bottleneck")


class Folders(Protocol):
    """Where profiles are stored."""

    def fresh(self, mode: str, nodeid: str) -> Path: ...

    def write_text(self, folder: Path, name: str, text: str) -> None: ...

    def write_json(self, folder: Path, name: str, value: Any) -> None: ...

    def read_json(self, folder: Path, name: str) -> dict[str, Any]:
        """Return what the child wrote; empty if it wrote nothing."""

    def tail(self, folder: Path, name: str) -> str:
        """Return the last lines of a log, indented; "" if there are none."""

    def write_pages(self, folder: Path, views: Mapping[str, Any]) -> None:
        """Write tables as CSV, pictures as SVG, and all views as one page."""


@array_value
class Profiled:
    """The result of a profile."""

    mode: str
    folder: Path
    artifacts: tuple[Artifact, ...]
    analysis: Analysis
    again: bool = False  # whether it took a second try
    version: str = ""  # the profiler's own

    @property
    def evidence(self) -> str:
        """Return the source of its figures in one line."""
        again = "; the first try failed right after autotuning, this is the second" if self.again else ""
        window = f"{self.analysis.window}; " if self.analysis.window else ""
        return f"{window}kept in {self.folder}{again}"


def parameters(key: CaseKey, plan: Plan, child: ProfilingResult) -> dict[str, Any]:
    """Return the conditions of the profile; they are written before its figures are read."""
    _, _, params = key.nodeid.partition("[")
    return {
        "nodeid": key.nodeid,
        "call": key.name,
        "parameters": params.removesuffix("]"),
        "clocks": {"policy": plan.clocks.value},
        **dict(child.facts),
    }


def write_profile(profiled: Profiled, folders: Folders, taken_with: Mapping[str, Any]) -> None:
    """Write ``params.json``, ``report.md``, ``metrics.json``, and all views in ``report-verbose.md``."""
    folder, analysis = profiled.folder, profiled.analysis
    archs = {dict(m.labels).get("arch", "") for m in analysis.metrics.metrics} - {""}
    facts = {"devices": sorted(archs), "window": analysis.window}
    folders.write_json(folder, "params.json", {**taken_with, **facts})
    compact = next((name for name in _COMPACT if name in analysis.views), next(iter(analysis.views)))
    from pytest_perfgate.core.render.html import render_markdown

    page = render_markdown(analysis.views[compact](), level=2)
    folders.write_text(folder, "report.md", f"{page}\n{AGAIN}\n" if profiled.again else page)
    folders.write_json(folder, "metrics.json", metrics_data(analysis))
    views, empty = _views(analysis)
    folders.write_pages(folder, {**_pictures(analysis), **views})
    for name, build in {**analysis.files, **analysis.data}.items():
        folders.write_text(folder, name, build())
    if len(analysis.views) > 1:
        text = "\n".join([*map(render_markdown, views.values()), *empty])
        folders.write_text(folder, "report-verbose.md", text)


def _pictures(analysis: Analysis) -> dict[str, Document]:
    """Return a first page with all pictures; empty if there is none."""
    from pytest_perfgate.app.inspections import PICTURES, pictures_document

    return {PICTURES: pictures_document(analysis)} if analysis.pictures else {}


def _views(analysis: Analysis) -> tuple[dict[str, Document], list[str]]:
    """Return every view that applies, and a line for each of the others."""
    views: dict[str, Document] = {}
    empty: list[str] = []
    for name, build in analysis.views.items():
        try:
            views[name] = build()
        except PerfgateError as fault:  # noqa: PERF203 - a view that does not apply leaves the others
            empty.append(f"No view `{name}`: {fault.what}.")
    return views, empty


def metrics_data(analysis: Analysis) -> dict[str, Any]:
    """Return every metric with its labels; absent ones are listed with a way to collect them."""
    return {
        "kind": analysis.kind,
        "window": analysis.window,
        "problems": [{"code": p.code, "what": p.what} for p in analysis.problems],
        "metrics": [
            {"name": m.name, "value": m.value, "dimension": m.dimension.value, "labels": dict(m.labels), "note": m.note}
            for m in analysis.metrics.metrics
        ],
        "absent": [
            {"name": a.name, "labels": dict(a.labels), "why": a.why, "fix": a.fix}
            for a in analysis.metrics.absent_once()
        ],
    }
