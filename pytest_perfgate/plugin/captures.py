"""Captures of a test: the machine code and files that it attaches, and the profiles that it asks for."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.app.inspections import LOST, absent_metrics, capture_failed, trusted, with_captures
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
from pytest_perfgate.plugin.child_arguments import arguments, child_job, environment, own_interpreter
from pytest_perfgate.plugin.measuring import built_ins

if TYPE_CHECKING:
    from pytest_perfgate.app.profile import Profiled
    from pytest_perfgate.model.ports import Inspector, Profiler
    from pytest_perfgate.model.protocol import CaseResult
    from pytest_perfgate.plugin.state import SessionState


class Reader(Protocol):
    """What measures in this process, as far as the analysis of machine code uses it."""

    def inspector(self, name: str) -> Inspector: ...

    def capture_brought(self, plan: Plan, brought: Brought) -> Capture: ...


_ROOM = Path(".perfgate") / "kernels"

_HEAD_BYTES = 4096

_CODE = (".cubin", ".fatbin")

_CLAIM = ("handed", "as code")
"""The kind of attached bytes and objects: whatever their content, they count as a kernel."""

_NAMED = 5

_NOTHING = "the test attached no machine code"

_HAND_OVER = "perfgate.attach('kernel', THING): a cubin, a fatbin, an object file, a folder, or a kernel of Triton"


@value
class MachineCode:
    """The analysis of a test's machine code."""

    metrics: MetricSet
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    handed: bool = True


def keep_attached(artifacts: list[Artifact], name: str, thing: Any, nodeid: str) -> None:
    """Add the files of a thing one by one, since a profiled test copies each added file beside the profile."""
    for artifact in attached_files(name, thing, nodeid):
        artifacts.append(artifact)  # noqa: PERF402 - extend would add them without the copy


def attached_files(name: str, thing: Any, nodeid: str) -> tuple[Artifact, ...]:
    """Return the files behind a thing that a test attaches."""
    from pytest_perfgate.wiring.profiling import attachment_files

    stage = name.partition("/")[0] == "compiled"
    claim = () if isinstance(thing, (str, Path, dict, list)) or stage else (_CLAIM,)
    return tuple(
        Artifact(kind="attachment", path=str(path.resolve()), parameters=(("name", stored), *claim))
        for stored, path in attachment_files(name, thing, _ROOM, nodeid)
    )


def with_code(
    case: Case, captures: tuple[Capture, ...], artifacts: Sequence[Artifact], measuring: Reader
) -> tuple[Capture, ...]:
    """Return each call with the figures of the machine code, or one capture of the code alone if there was no call."""
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
    return (measuring.capture_brought(case.plan, alone),)


def code_of(artifacts: Sequence[Artifact], limits: Sequence[str], inspector: Inspector) -> MachineCode:
    """Analyse the machine code among these files; if it cannot be read, every metric is absent with the reason."""
    try:
        single = {artifact.path: artifact for artifact in artifacts}
        files = [path for path, file in single.items() if _is_code(file, inspector)]
        code = tuple((path, Path(path).stat().st_mtime_ns) for path in files)
        over = [_name(file) for path, file in single.items() if path not in files]
        if not code:
            why = f"none of {first_of(over, _NAMED)} is machine code" if over else _NOTHING
            return MachineCode(metrics=_absent(why, _HAND_OVER), handed=False)
        inspector_of_code: Any = inspector
        analysis = _analysed(inspector_of_code, code, "\n".join(limits))
    except PerfgateError as fault:
        if fault.code.family is Family.TOOL:
            return MachineCode(metrics=_absent(fault.what, fault.fix))
        where = f"{fault.place}: " if fault.place else ""
        fix = f"; {fault.fix}" if fault.fix else ""
        problem = Problem(code=fault.code.name, what=f"{where}{fault.what}{fix}", retry=False)
        return MachineCode(metrics=_absent(fault.what, fault.fix), problems=(problem,))
    return MachineCode(
        metrics=analysis.metrics, findings=(*analysis.findings, *_passed_over(over)), problems=analysis.problems
    )


def _passed_over(names: Sequence[str]) -> Iterator[Finding]:
    """Yield the attached files that are not machine code, which no limit judged."""
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
    """Analyse the files once, however often the test reads its figures."""
    analysis: Analysis = inspector.inspect([Path(path) for path, _ in stamped], options_of(inspector, limits))
    return analysis


def _is_code(artifact: Artifact, inspector: Inspector) -> bool:
    """Return whether a file claims to hold kernels, by its kind, its name or its content.

    Bytes and compiled kernels always do: if they are damaged, that must be reported, not overlooked.
    """
    path = Path(artifact.path)
    try:
        claims, head = _CLAIM in artifact.parameters or path.suffix in _CODE, _head(path)
        return claims or (path.suffix != ".cu" and inspector.recognises(path, head))
    except OSError as fault:
        raise PerfgateError("call-wrong", f"the attached file cannot be read: {fault}") from fault


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def _absent(why: str, fix: str) -> MetricSet:
    return MetricSet(absent=tuple(Absent(name=name, why=why, fix=fix) for name in sorted(CODE_NAMES)))


FOLDER = Path(".perfgate") / "profiles"

_ODD = re.compile(r"[^\w.-]+")


def profilers_of(plan: Plan, profilers: Sequence[Profiler]) -> tuple[Profiler, ...]:
    """Return the profilers that the plan asks for and that work in this process."""
    return tuple(p for p in profilers if p.name in plan.captures and p.name in IN_PROCESS)


def folder(key: CaseKey, profiler: Profiler) -> Path:
    """Return the folder in which this process keeps the profiles of one measurement."""
    return FOLDER / profiler.name / _ODD.sub("-", str(key)).strip("-")[-120:] / str(os.getpid())


@contextmanager
def profiled(key: CaseKey, profilers: Sequence[Profiler]) -> Iterator[None]:
    """Run every profiler around the same block."""
    with ExitStack() as stack:
        for profiler in profilers:
            stack.enter_context(profiler.region(folder(key, profiler)))
        yield


def profile_metrics(
    key: CaseKey, profilers: Sequence[Profiler], inspectors: Sequence[Inspector], limits: str
) -> tuple[MetricSet, tuple[Artifact, ...]]:
    """Return the metrics of each profiler's last profile, and all artifacts."""
    metrics = MetricSet()
    artifacts: tuple[Artifact, ...] = ()
    for profiler in profilers:
        files = profiler.artifacts(folder(key, profiler))
        artifacts += files
        if files:
            metrics |= trusted(_inspected(Path(files[-1].path), inspectors, limits))
    return metrics, artifacts


def absent_captures(case: Case) -> tuple[MetricSet, tuple[Finding, ...]]:
    """Return, for quick mode, the metrics that need a run of their own, and how to get them."""
    modes = [name for name in external(case.plan.captures) if name not in IN_PROCESS]
    if not modes:
        return MetricSet(), ()
    quoted = shlex.quote(case.nodeid)
    why = "it needs a run of its own, and --perfgate=quick has none"
    commands = " or ".join(f"perfgate profile {quoted} --mode {mode}" for mode in modes)
    fix = f"pytest {quoted} --perfgate=full, or {commands}"
    findings = tuple(capture_failed(mode, why, fix) for mode in modes)
    return absent_metrics(case, f"capture {' and '.join(modes)} {LOST}: {why}", fix), findings


def untimed(case: Case) -> MetricSet:
    """Return the absent time of a region in quick mode, where it ran under a profiler."""
    why = "the region ran under a profiler, which costs time"
    return absent_metrics(case, why, "--perfgate=full times it first and captures it after")


def _inspected(path: Path, inspectors: Sequence[Inspector], limits: str) -> Analysis:
    head = _head(path)
    inspector = next((candidate for candidate in inspectors if candidate.recognises(path, head)), None)
    if inspector is None:
        raise PerfgateError("artifact-unknown", "a capture left a file that no reader knows", place=str(path))
    return inspector.inspect([path], options_of(inspector, limits))


Say = Callable[[str], None]


def captured(session: SessionState, results: Mapping[str, CaseResult], say: Say) -> dict[str, CaseResult]:
    """Return the results with the captures that their cases ask for; one profiler runs at a time."""
    if not any(external(result.case.plan.captures) for result in results.values()):
        return dict(results)
    config = session.settings.pytest
    built_ins(config)
    tools = _tools(session)
    job = child_job(config)

    def take(case: Case, capture: Capture, mode: str) -> Profiled:
        say(f"capture {mode} of {capture.key}")
        assigned = Assignment(
            mode=mode, out="", call=capture.key.name, clocks=case.plan.clocks.value, options=job.options,
            markers=job.markers, plain=True,
        )  # fmt: skip
        try:
            return profile(capture.key, mode, case.plan, with_limits(tools, case), assigned)
        except OSError as fault:
            raise PerfgateError("profile-child", f"the profile could not be kept: {fault}") from fault

    return {nodeid: with_captures(result, take) for nodeid, result in results.items()}


def with_limits(tools: ProfileTools, case: Case) -> ProfileTools:
    """Return tools that pass the limits of a case to the inspector."""
    return replace(tools, inspect=partial(tools.inspect, limits="\n".join(limit.text for limit in case.limits)))


def _tools(session: SessionState) -> ProfileTools:
    from pytest_perfgate.wiring.profiling import prelude, profile_tools

    config = session.settings.pytest
    start = config.invocation_params.dir

    def command(nodeid: str, assigned: Assignment) -> list[str]:
        """Return the arguments of a measuring child, with the one test in place of its file."""
        case = session.cases[nodeid]
        words = arguments(config, [case])[:-1]
        file, _, rest = nodeid.partition("::")
        node = f"{config.rootpath / file}::{rest}"
        return [*own_interpreter(prelude(assigned, start)), *words, node]

    tools: ProfileTools = profile_tools(config.rootpath, config.hook, command, environment(os.environ.items()))
    return tools
