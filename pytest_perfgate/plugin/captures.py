"""Kernels and files a test attaches."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.app.inspect import LOST, capture_failed, lacking, trusted, with_captures
from pytest_perfgate.app.profile import ProfileTools, profile
from pytest_perfgate.core.metric_kinds import CODE_NAMES
from pytest_perfgate.model.codes import Family
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Absent, Analysis, Finding, MetricSet, Problem
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.protocol import IN_PROCESS, STATIC, Assignment, Capture, external
from pytest_perfgate.model.values import first_of, value
from pytest_perfgate.plugin.benches import options_of
from pytest_perfgate.plugin.calls import Brought
from pytest_perfgate.plugin.child_arguments import arguments, child_job, environment
from pytest_perfgate.plugin.measuring import built_ins

if TYPE_CHECKING:
    from pytest_perfgate.app.profile import Profiled
    from pytest_perfgate.model.ports import Inspector, Profiler
    from pytest_perfgate.model.protocol import CaseResult
    from pytest_perfgate.plugin.state import SessionState


class Reader(Protocol):
    """What measures in this process, as far as machine code needs it."""

    def inspector(self, name: str) -> Inspector: ...

    def brought(self, plan: Plan, brought: Brought) -> Capture: ...


_ROOM = Path(".perfgate") / "kernels"

_HEAD_BYTES = 4096

_CODE = (".cubin", ".fatbin")

_CLAIM = ("handed", "as code")
"""The kind for bytes and objects: whatever their content, the test means a kernel."""

_NAMED = 5

_NOTHING = "the test attached no machine code"

_HAND_OVER = "perfgate.attach('kernel', THING): a cubin, a fatbin, an object file, a folder, or a kernel of Triton"


@value
class Code:
    """The analysis of a test's machine code."""

    metrics: MetricSet
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    handed: bool = True


def keep_attached(artifacts: list[Artifact], name: str, thing: Any, nodeid: str) -> None:
    """Add a thing's files one by one: under a profiler each that is added is copied beside the profile."""
    for artifact in attached_files(name, thing, nodeid):
        artifacts.append(artifact)  # noqa: PERF402 - extend would add them without the copy


def attached_files(name: str, thing: Any, nodeid: str) -> tuple[Artifact, ...]:
    """A thing that a test attaches, as the files behind it."""
    from pytest_perfgate.wiring.profiling import attachment_files

    stage = name.partition("/")[0] == "compiled"
    claim = () if isinstance(thing, (str, Path)) or stage else (_CLAIM,)
    return tuple(
        Artifact(kind="attachment", path=str(path.resolve()), parameters=(("name", stored), *claim))
        for stored, path in attachment_files(name, thing, _ROOM, nodeid)
    )


def with_code(
    case: Case, captures: tuple[Capture, ...], artifacts: Sequence[Artifact], measuring: Reader
) -> tuple[Capture, ...]:
    """Each call with the figures of the machine code; one capture of the code alone where nothing was called."""
    limits = [limit.text for limit in case.limits] + [text for capture in captures for text in capture.limits]
    analysis = code_of(artifacts, limits, measuring.inspector(STATIC))
    if captures:
        return tuple(
            replace(
                capture,
                metrics=capture.metrics | analysis.metrics,
                findings=(*capture.findings, *analysis.findings),
                problems=(*capture.problems, *analysis.problems),
            )
            for capture in captures
        )
    if not analysis.handed and all(limit.metric not in CODE_NAMES for limit in case.limits):
        return ()
    alone = Brought(CaseKey(nodeid=case.nodeid), STATIC, metrics=analysis.metrics)
    alone.findings, alone.problems = analysis.findings, analysis.problems
    return (measuring.brought(case.plan, alone),)


def code_of(artifacts: Sequence[Artifact], limits: Sequence[str], inspector: Inspector) -> Code:
    """What the machine code among these files says; what stops it from being read is said in every metric's place."""
    try:
        single = {artifact.path: artifact for artifact in artifacts}
        code = tuple(_stamped(path) for path, one in single.items() if _is_code(one, inspector))
        over = [_name(one) for path, one in single.items() if path not in dict(code)]
        if not code:
            why = f"none of {first_of(over, _NAMED)} is machine code" if over else _NOTHING
            return Code(metrics=_absent(why, _HAND_OVER), handed=False)
        inspector_of_code: Any = inspector
        analysis = _analysed(inspector_of_code, code, "\n".join(limits))
    except PerfgateError as fault:
        if fault.code.family is Family.TOOL:
            return Code(metrics=_absent(fault.what, fault.fix))
        where = f"{fault.place}: " if fault.place else ""
        fix = f"; {fault.fix}" if fault.fix else ""
        problem = Problem(code=fault.code.name, what=f"{where}{fault.what}{fix}", retry=False)
        return Code(metrics=_absent(fault.what, fault.fix), problems=(problem,))
    return Code(
        metrics=analysis.metrics, findings=(*analysis.findings, *_passed_over(over)), problems=analysis.problems
    )


def _passed_over(names: Sequence[str]) -> Iterator[Finding]:
    """Files that were attached beside machine code and judged by no limit."""
    if names:
        yield Finding(
            title="Not read",
            detail=f"attached, but not machine code: {first_of(names, _NAMED)}",
            trigger="capture=cubin",
        )


def _name(artifact: Artifact) -> str:
    return dict(artifact.parameters).get("name") or Path(artifact.path).name


@lru_cache(maxsize=8)
def _analysed(inspector: Any, stamped: tuple[tuple[str, int], ...], limits: str) -> Analysis:
    """Read once, however often the test looks at its figures."""
    analysis: Analysis = inspector.inspect([Path(path) for path, _ in stamped], options_of(inspector, limits))
    return analysis


def _stamped(path: str) -> tuple[str, int]:
    return path, Path(path).stat().st_mtime_ns


def _is_code(artifact: Artifact, inspector: Inspector) -> bool:
    """Whether a file claims to hold kernels, by how it came, by its name or by its content.

    Bytes and compiled kernels are handed over for that alone: damaged ones must not look like none.
    """
    path = Path(artifact.path)
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        return (
            _CLAIM in artifact.parameters
            or path.suffix in _CODE
            or (path.suffix != ".cu" and inspector.recognises(path, head))
        )
    except OSError as fault:
        raise PerfgateError("call-wrong", f"the attached file cannot be read: {fault}") from fault


def _absent(why: str, fix: str) -> MetricSet:
    return MetricSet(absent=tuple(Absent(name=name, why=why, fix=fix) for name in sorted(CODE_NAMES)))


FOLDER = Path(".perfgate") / "profiles"

_ODD = re.compile(r"[^\w.-]+")


def profilers_of(plan: Plan, profilers: Sequence[Profiler]) -> tuple[Profiler, ...]:
    """Those that the plan asks for and that work in this process."""
    return tuple(p for p in profilers if p.name in plan.captures and p.name in IN_PROCESS)


def folder(key: CaseKey, profiler: Profiler) -> Path:
    """Where this process keeps the profiles of one measurement."""
    return FOLDER / profiler.name / _ODD.sub("-", str(key)).strip("-")[-120:] / str(os.getpid())


@contextmanager
def profiled(key: CaseKey, profilers: Sequence[Profiler]) -> Iterator[None]:
    """Every profiler around the same stretch."""
    with ExitStack() as stack:
        for profiler in profilers:
            stack.enter_context(profiler.region(folder(key, profiler)))
        yield


def taken(
    key: CaseKey, profilers: Sequence[Profiler], inspectors: Sequence[Inspector], limits: str = ""
) -> tuple[MetricSet, tuple[Artifact, ...]]:
    """What the last profile of each says, and every artifact."""
    metrics = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    for profiler in profilers:
        files = profiler.artifacts(folder(key, profiler))
        artifacts += files
        if files:
            metrics |= trusted(_inspected(Path(files[-1].path), inspectors, limits))
    return metrics, artifacts


def untaken(case: Case) -> tuple[MetricSet, tuple[Finding, ...]]:
    """In quick mode: what only a run of its own captures, and how to have it."""
    modes = [name for name in external(case.plan.captures) if name not in IN_PROCESS]
    if not modes:
        return MetricSet(), ()
    quoted = shlex.quote(case.nodeid)
    why = "it needs a run of its own, and --perfgate=quick has none"
    commands = " or ".join(f"perfgate profile {quoted} --mode {mode}" for mode in modes)
    fix = f"pytest {quoted} --perfgate=full, or {commands}"
    findings = tuple(capture_failed(mode, why, fix) for mode in modes)
    return lacking(case, f"capture {' and '.join(modes)} {LOST}: {why}", fix), findings


def untimed(case: Case) -> MetricSet:
    """In quick mode a region under a profiler has no time of its own."""
    why = "the region ran under a profiler, which costs time"
    return lacking(case, why, "--perfgate=full times it first and captures it after")


def _inspected(path: Path, inspectors: Sequence[Inspector], limits: str) -> Analysis:
    with path.open("rb") as file:
        head = file.read(4096)
    inspector = next((one for one in inspectors if one.recognises(path, head)), None)
    if inspector is None:
        raise PerfgateError("artifact-unknown", "a capture left a file that no reader knows", place=str(path))
    return inspector.inspect([path], options_of(inspector, limits))


Say = Callable[[str], None]


def captured(session: SessionState, results: Mapping[str, CaseResult], say: Say) -> dict[str, CaseResult]:
    """The results with the captures that their cases ask for; one profiler at a time."""
    if not any(external(result.case.plan.captures) for result in results.values()):
        return dict(results)
    config = session.settings.pytest
    built_ins(config)
    tools = _tools(session)
    job = child_job(config)

    def take(case: Case, one: Capture, mode: str) -> Profiled:
        say(f"capture {mode} of {one.key}")
        assigned = Assignment(
            mode=mode, out="", call=one.key.name, clocks=case.plan.clocks.value, options=job.options,
            markers=job.markers, bare=True,
        )  # fmt: skip
        try:
            return profile(one.key, mode, case.plan, asking(tools, case), assigned)
        except OSError as fault:
            raise PerfgateError("profile-child", f"the profile could not be kept: {fault}") from fault

    return {nodeid: with_captures(result, take) for nodeid, result in results.items()}


def asking(tools: ProfileTools, case: Case) -> ProfileTools:
    """Tools that tell an inspector what the limits of a case ask for."""
    return replace(tools, inspect=partial(tools.inspect, limits="\n".join(limit.text for limit in case.limits)))


def _tools(session: SessionState) -> ProfileTools:
    from pytest_perfgate.wiring import interpreter
    from pytest_perfgate.wiring.profiling import prelude, profile_tools

    config = session.settings.pytest
    start = config.invocation_params.dir
    here = "" in sys.path or str(Path.cwd()) in sys.path

    def command(nodeid: str, assigned: Assignment) -> list[str]:
        """The arguments of a measuring child, with the one test in place of its file."""
        case = session.cases[nodeid]
        words = arguments(config, [case])[:-1]
        file, _, rest = nodeid.partition("::")
        node = f"{config.rootpath / file}::{rest}"
        return [*interpreter(here=here, prelude=prelude(assigned, start)), *words, node]

    tools: ProfileTools = profile_tools(config.rootpath, config.hook, command, environment(os.environ.items()))
    return tools
