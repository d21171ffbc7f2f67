"""Kernels that a test hands over: their machine code is judged beside whatever the test timed, or alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pytest_perfgate.core.metrics.kernel import CODE_NAMES
from pytest_perfgate.core.render.plural import first_of
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.codes.family import Family
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Absent, MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import Inspector
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.profiling import STATIC
from pytest_perfgate.model.values import value
from pytest_perfgate.plugin.asked import Brought
from pytest_perfgate.plugin.reading import options_of


class Reader(Protocol):
    """What measures in this process, as far as machine code needs it."""

    def inspector(self, name: str) -> Inspector: ...

    def brought(self, plan: Plan, brought: Brought) -> Capture: ...


_ROOM = Path(".perfgate") / "kernels"
_HEAD_BYTES = 4096
_CODE = (".cubin", ".fatbin")
_CLAIM = ("handed", "as code")
"""Of bytes and objects: whatever their content, the test meant a kernel."""
_NAMED = 5
_NOTHING = "the test handed over no machine code"
_HAND_OVER = "perfgate.attach('kernel', THING): a cubin, a fatbin, an object file, a folder, or a kernel of Triton"


@value
class Code:
    """What the machine code of a test came to."""

    metrics: MetricSet
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    handed: bool = True


def handed_over(name: str, thing: Any, nodeid: str) -> tuple[Artifact, ...]:
    """A thing that a test attaches, as the files behind it."""
    from pytest_perfgate.wiring.profiling import handed_files

    stage = name.partition("/")[0] == "compiled"
    claim = () if isinstance(thing, (str, Path)) or stage else (_CLAIM,)
    return tuple(
        Artifact(kind="attachment", path=str(path.resolve()), parameters=(("name", kept), *claim))
        for kept, path in handed_files(name, thing, _ROOM, nodeid)
    )


def with_code(
    case: Case, captures: tuple[Capture, ...], artifacts: Sequence[Artifact], measuring: Reader
) -> tuple[Capture, ...]:
    """Each call with the figures of the machine code; one capture of the code alone where nothing was called."""
    limits = [limit.text for limit in case.limits] + [text for capture in captures for text in capture.limits]
    told = code_of(artifacts, limits, measuring.inspector(STATIC))
    if captures:
        return tuple(
            replace(
                capture,
                metrics=capture.metrics | told.metrics,
                findings=(*capture.findings, *told.findings),
                problems=(*capture.problems, *told.problems),
            )
            for capture in captures
        )
    if not told.handed and all(limit.metric not in CODE_NAMES for limit in case.limits):
        return ()
    alone = Brought(CaseKey(nodeid=case.nodeid), STATIC, metrics=told.metrics)
    alone.findings, alone.problems = told.findings, told.problems
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
        kept: Any = inspector
        told = _analysed(kept, code, "\n".join(limits))
    except PerfgateError as fault:
        if fault.code.family is Family.TOOL:
            return Code(metrics=_absent(fault.what, fault.mend))
        where = f"{fault.place}: " if fault.place else ""
        mend = f"; {fault.mend}" if fault.mend else ""
        problem = Problem(code=fault.code.name, what=f"{where}{fault.what}{mend}", retry=False)
        return Code(metrics=_absent(fault.what, fault.mend), problems=(problem,))
    return Code(metrics=told.metrics, findings=(*told.findings, *_passed_over(over)), problems=told.problems)


def _passed_over(names: Sequence[str]) -> Iterator[Finding]:
    """Files that were attached beside machine code and judged by no limit."""
    if names:
        yield Finding(
            title="Not read",
            detail=f"attached, and no machine code: {first_of(names, _NAMED)}",
            trigger="capture=cubin",
        )


def _name(artifact: Artifact) -> str:
    return dict(artifact.parameters).get("name") or Path(artifact.path).name


@lru_cache(maxsize=8)
def _analysed(inspector: Any, stamped: tuple[tuple[str, int], ...], limits: str) -> Analysis:
    """Read once, however often the test looks at its figures."""
    found: Analysis = inspector.inspect([Path(path) for path, _ in stamped], options_of(inspector, limits))
    return found


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
        return _CLAIM in artifact.parameters or path.suffix in _CODE or inspector.recognises(path, head)
    except OSError as fault:
        raise PerfgateError("call-wrong", f"what was attached cannot be read: {fault}") from fault


def _absent(why: str, mend: str) -> MetricSet:
    return MetricSet(absent=tuple(Absent(name=name, why=why, mend=mend) for name in sorted(CODE_NAMES)))
