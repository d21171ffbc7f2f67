"""Files as cases: what a trace, an export, a report or machine code says, against accepted lines or another file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.app.accepted import sittings
from pytest_perfgate.app.inspect import trusted
from pytest_perfgate.app.judge import GateJudge
from pytest_perfgate.core.judge.accepting_figures import accepted_figure
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import OF_FILE, Case, CaseKey, Compare, Limit, Plan
from pytest_perfgate.model.protocol import READ
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.core.limits.grammar import Kinds
    from pytest_perfgate.model.metric import Analysis
    from pytest_perfgate.model.plan import Policy
    from pytest_perfgate.model.ports import GateTools

CHECKED = "check"
"""The mode of a record that no test run left."""

ANYWHERE = "any-device"
"""The device of a file that names none."""

_ODD = re.compile(r"[^0-9A-Za-z._+]+")


@value
class FileGate:
    """What holding files against accepted lines needs."""

    tools: GateTools
    policy: Policy
    root: Path
    started: str
    """ISO, to the second."""


def changes_of(limits: Iterable[Limit], metrics: MetricSet) -> tuple[Limit, ...]:
    """The limits on a change; a slowdown is the change of a time that the file has, as of another tool's results."""
    timed = bool(metrics.find("time"))
    return tuple(
        replace(limit, metric="time", compare=Compare.RELATIVE) if limit.metric == "slowdown" and timed else limit
        for limit in limits
        if limit.compare is not Compare.FIGURE or (limit.metric == "slowdown" and timed)
    )


def case_name(paths: Sequence[Path], root: Path, given: str = "") -> str:
    """What a file is called in the baselines: its path from the root; of a job of several files their folder."""
    if given:
        return PurePosixPath(given).as_posix()
    places = [path.absolute() for path in paths]
    place = places[0] if len(places) == 1 else _folder(places)
    if not place.is_relative_to(root):
        mend = "name the case: --case traces/step"
        raise PerfgateError("command-usage", f"{place} lies outside of {root}, so it has no name there", mend=mend)
    name = place.relative_to(root).as_posix()
    return name if name != "." else "files"


def _folder(places: Sequence[Path]) -> Path:
    shared = set(places[0].parents).intersection(*(place.parents for place in places[1:]))
    return max(shared, key=lambda path: len(path.parts))


def device_of(analysis: Analysis) -> Device:
    """The device that a file is of, by the name that it gives."""
    names = tuple(dict.fromkeys(name for name in analysis.devices if name))
    key = "+".join(sorted(_ODD.sub("-", name).strip("-") for name in names)) or ANYWHERE
    return Device(key=key, name=", ".join(names) or "a file that names no device", kind="gpu")


def measured_file(analysis: Analysis, name: str) -> Measurement:
    """A file as the measurement of a case."""
    device = device_of(analysis)
    return Measurement(
        key=CaseKey(nodeid=f"{name}::{OF_FILE}"),
        processes=(),
        device=device,
        identity=Identity(device=device.key, timer=READ),
        metrics=trusted(analysis),
        findings=analysis.findings,
        problems=analysis.problems,
    )


def gate_file(analysis: Analysis, name: str, limits: Sequence[Limit], gate: FileGate) -> RunReport:
    """The changes of a file held against the accepted lines, as a record that can be accepted."""
    context = JudgeContext(
        policy=gate.policy, kinds=gate.tools.kinds, gates=max(1, len(limits)), today=gate.started[:10]
    )  # fmt: skip
    measurement = measured_file(analysis, name)
    kept = _kept(measurement.metrics, {limit.metric for limit in limits})
    measurement = replace(measurement, environment=gate.tools.environment(), metrics=kept)
    case = Case(nodeid=measurement.key.nodeid, limits=tuple(limits), plan=Plan(), path=measurement.key.path)
    judging = GateJudge(gate.tools, context)
    judging.read_baselines([case])
    return RunReport(
        cases=(judging.judged(case, measurement),),
        environment=measurement.environment,
        mode=CHECKED,
        started=gate.started,
        root=str(gate.root),
        filtered=True,
    )


def _kept(metrics: MetricSet, names: Collection[str]) -> MetricSet:
    """What a record keeps of a file: what limits name, and the figures of the whole."""
    return MetricSet(
        metrics=tuple(m for m in metrics.metrics if m.name in names or not m.labels),
        absent=tuple(a for a in metrics.absent if a.name in names),
    )


def keep_file(report: RunReport, gate: FileGate) -> Path | None:
    """Its record, and its part of the history."""
    if gate.tools.history is not None:
        gate.tools.history.append(tuple(sittings(report)))
    return gate.tools.records.write(report) if gate.tools.records is not None else None


def compared_files(
    before: Analysis, after: Analysis, limits: Sequence[Limit], policy: Policy, kinds: Kinds
) -> tuple[Verdict, ...]:
    """The changes from one file to another."""
    measurement = measured_file(after, after.subject)
    then = trusted(before)
    names = {limit.metric for limit in limits}
    figures = tuple(accepted_figure(metric) for metric in then.metrics if metric.name in names)
    line = Baseline(key=measurement.key, device=measurement.device.key, figures=figures, identity=measurement.identity)
    context = JudgeContext(policy=policy, kinds=kinds, gates=max(1, len(limits)), two_files=True)
    return judge(measurement, limits, baseline=line, context=context).verdicts


def ungated(limits: Iterable[Limit]) -> None:
    """Refuse a change where there is nothing to hold it against."""
    for limit in limits:
        if limit.compare is not Compare.FIGURE:
            what = f"'{limit.text}' is held against an accepted value"
            mend = "perfgate check FILE LIMIT --baseline, or perfgate compare BEFORE AFTER LIMIT"
            raise PerfgateError("limit-missing", what, mend=mend)


def in_order(limits: Sequence[Limit], plain: Sequence[Verdict], report: CaseReport | None) -> tuple[Verdict, ...]:
    """All verdicts in the order in which their limits were given."""
    texts = [limit.text for limit in limits]
    return tuple(sorted((*plain, *(report.verdicts if report else ())), key=lambda v: texts.index(v.limit.text)))
