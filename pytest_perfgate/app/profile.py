"""Profile one test: run it under an instrument, read what that left, write a folder people can keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from pytest_perfgate.app.profiled import Folders, Profiled, parameters, write_profile
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import CaseKey, ClockPolicy, Plan
from pytest_perfgate.model.ports import Profiler
from pytest_perfgate.model.profiling import LOG, STATIC, TOLD, VARIABLE, Assignment, Told, parse_told
from pytest_perfgate.model.values import array_value

TIMED_OUT = 124
"""The exit code of a child that had to be ended, as timeout(1) gives it."""
_FINAL = frozenset({"ncu-permission"})
"""What is missing at the first try is missing at the second as well."""


class Inspect(Protocol):
    """Reads what an instrument left; the text of limits tells an inspector what to work out."""

    def __call__(self, paths: Sequence[Path], limits: str = "") -> Analysis: ...


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
    command: Callable[[str, Assignment], Sequence[str]]
    """The command line of a child that runs this test and does as it is assigned."""
    root: Path
    timeout_s: float = 1800.0
    alone: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Held around a run: one profiler at a time."""


def profile(key: CaseKey, mode: str, plan: Plan, tools: ProfileTools, assigned: Assignment | None = None) -> Profiled:
    """One test under one instrument; with a named call that one alone is watched."""
    profiler, available = choose_profiler(mode, tools.profilers)
    folder = tools.folders.fresh(mode, _foldered(key))
    given = assigned or Assignment(mode=mode, out="", call=key.name or None, clocks=plan.clocks.value)
    with tools.alone():
        told, again = _run(profiler, key, given, (folder, plan), tools)
        artifacts = profiler.artifacts(folder)
    taken_with = {**parameters(key, plan, told), "mode": mode, "profiler": available.version, "second_try": again}
    tools.folders.write_json(folder, "params.json", taken_with)
    analysis = tools.inspect([Path(artifact.path) for artifact in _read(artifacts)])
    done = Profiled(
        mode=mode, folder=folder, artifacts=artifacts, analysis=analysis, again=again, version=available.version
    )
    write_profile(done, tools.folders, taken_with)
    return done


def choose_profiler(mode: str, profilers: Sequence[Profiler]) -> tuple[Profiler, Availability]:
    """The profiler of that name, usable here."""
    found = next((p for p in profilers if p.name == mode), None)
    if found is None:
        known = ", ".join(sorted(p.name for p in profilers))
        raise PerfgateError("profile-mode", f"nothing here profiles in mode '{mode}'", mend=f"known here: {known}")
    said = found.availability()
    if not said.usable:
        raise PerfgateError("profile-tool", f"{mode} does not work here: {said.why}", mend=said.mend)
    return found, said


def _read(artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Of the traces that one process left, one for each time the region was entered, the last is the settled one."""
    return artifacts[-1:] if all(artifact.kind == "kineto" for artifact in artifacts) else artifacts


def _foldered(key: CaseKey) -> str:
    """The node id with the name of the call before its parameters, for they are a folder of their own."""
    case, bracket, params = key.nodeid.partition("[")
    return f"{case}{f'#{key.name}' if key.name else ''}{bracket}{params}"


def _run(
    profiler: Profiler, key: CaseKey, given: Assignment, where: tuple[Path, Plan], tools: ProfileTools
) -> tuple[Told, bool]:
    """Run the child; what fails right after autotuning is tried once more, and that is said."""
    folder, plan = where
    assigned = _assigned(given, profiler.name, folder)
    command = list(profiler.command(tools.command(key.nodeid, assigned), folder, plan))
    extra = {VARIABLE: assigned.text()}
    told, code = Told(), 0
    for attempt in range(2):
        code = tools.execute(command, folder / LOG, extra=extra, cwd=tools.root, timeout_s=tools.timeout_s)
        told = parse_told(tools.folders.read_json(folder, TOLD))
        if code == 0 and told.outcome != "failed":
            _check_entered(told, key, assigned)
            return told, attempt > 0
        if not attempt:
            _raise_final(profiler, told, code, folder, tools)
    how = f"failed: {told.text}" if told.text else f"ended with exit code {code}"
    what = f"the test under {profiler.name} {how}; it failed twice"
    raise PerfgateError("profile-child", what + _said(folder, tools), place=str(folder / LOG))


def _assigned(given: Assignment, mode: str, folder: Path) -> Assignment:
    return Assignment(
        mode=mode,
        out=str(folder.absolute()),
        call=given.call,
        clocks=given.clocks or ClockPolicy.OBSERVE.value,
        options=given.options,
        markers=given.markers,
        bare=given.bare,
    )


def _check_entered(told: Told, key: CaseKey, assigned: Assignment) -> None:
    """A test that was left out, or never came to what is to be watched, leaves nothing to read."""
    if told.outcome == "skipped":
        raise PerfgateError("profile-child", f"the test was skipped: {told.text}", place=str(Path(assigned.out) / LOG))
    if told.outcome and not told.entered and assigned.mode != STATIC:
        named = f" named '{key.name}'" if key.name else ""
        there = f"; its calls are {', '.join(repr(name) for name in told.seen)}" if told.seen else ""
        what = f"the test made no call{named} and entered no region{named}{there}"
        raise PerfgateError("profile-child", what, mend="perfgate(fn), or with perfgate.region()", place=key.nodeid)


def _raise_final(profiler: Profiler, told: Told, code: int, folder: Path, tools: ProfileTools) -> None:
    """What a second try cannot mend: a missing permission, no device, time that ran out."""
    if code == TIMED_OUT:
        what = f"the test under {profiler.name} took over {tools.timeout_s:.0f} s and was ended{_said(folder, tools)}"
        raise PerfgateError("profile-child", what, place=str(folder / LOG))
    name, what, mend = told.error
    if name:
        raise PerfgateError("profile-tool", f"{profiler.name}: {what}", mend=mend, place=str(folder / LOG))
    try:
        profiler.artifacts(folder)
    except PerfgateError as error:
        if error.code.name in _FINAL:
            raise


def _said(folder: Path, tools: ProfileTools) -> str:
    tail = tools.folders.tail(folder, LOG)
    return f"; it said:\n{tail}" if tail else " and said nothing"
