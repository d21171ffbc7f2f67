"""Other tools' results, records, and files as cases that are compared with accepted lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.app.accepted import entries
from pytest_perfgate.app.inspections import trusted
from pytest_perfgate.app.judge import GateJudge
from pytest_perfgate.core.analysis.results import (
    benchmark_comparison_table,
    compared,
    comparison_metrics,
    comparison_table,
    differing,
    dropped,
    limited_as,
    metrics_of,
    metrics_of_run,
    result_table,
)
from pytest_perfgate.core.judge.accepting_figures import accepted_figure
from pytest_perfgate.core.judge.against_limit import BELIEVED, FAR_PAST_CEILING, OF_A_PEAK
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.core.render.words import distinct_names, pair_of_names, value_text
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement
from pytest_perfgate.model.metric import Analysis, Column, Document, MetricSet, Problem, Table
from pytest_perfgate.model.plan import OF_FILE, Case, CaseKey, Compare, Limit, Plan, parse_case_key
from pytest_perfgate.model.protocol import READ
from pytest_perfgate.model.values import grouped, value
from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.core.limits.grammar import Kinds
    from pytest_perfgate.model.plan import Policy
    from pytest_perfgate.model.ports import BaselineStore, GateTools
    from pytest_perfgate.model.profiles import BenchFile, BenchReader, BenchResult


_SIGNS: Mapping[str, Sequence[bytes]] = {
    "nvbench": (b'"nvbench"', b'"sm_version" "devices"', b'"meta" "argv"', b'"benchmarks" "axes"'),
    "pytest-benchmark": (
        b'"machine_info" "commit_info"',
        b'"machine_info" "python_',
        b'"benchmarks" "fullname"',
    ),
    "google-benchmark": (
        b'"context" "num_cpus"',
        b'"context" "library_',
        b'"benchmarks" "cpu_time" "real_time"',
    ),
    "asv": (b'"commit_hash" "env_name"', b'"commit_hash" "results"', b'"benchmark_version"'),
    "hyperfine": (
        b'"results" "command" "stddev" "user" "system"',
        b'"results" "command" "exit_codes"',
        b'"hyperfine_version" "results" "command"',
    ),
}
"""The first keys of each tool's files, and those after a program has sorted the keys; one text is enough."""


class Benchmarks:
    """One tool's files, recognised by their first keys."""

    views = ("results",)
    options: tuple[tuple[str, str], ...] = ()

    def __init__(self, name: str, read: BenchReader) -> None:
        self.name, self._signs, self.read = name, _SIGNS[name], read

    def recognises(self, path: Path, head: bytes) -> bool:
        del path
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return text.startswith(b"{") and any(all(key in text for key in row.split()) for row in self._signs)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        results, window = self._results(paths)
        metrics = metrics_of(results)
        blocks = tuple(table for table in (result_table(results), _figures(metrics)) if table.rows)
        document = Document(title=f"{self.name}: {_names(paths)}", subtitle=window, blocks=blocks)
        return Analysis(
            kind=self.name,
            subject=_names(paths),
            metrics=metrics,
            views={"results": lambda: document},
            window=window,
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        (old, _), (new, window) = self._results(before), self._results(after)
        tables = benchmark_comparison_table(old, new), _figures(metrics_of(new), metrics_of(old))
        pair = _pair(before, after)
        if not any(table.rows for table in tables):
            fix = "compare files of the same benchmarks, or look at each: perfgate inspect FILE"
            raise PerfgateError("artifact-mixed", "the two have no benchmark in common", place=pair, fix=fix)
        findings, problems = differing(old, new)
        document = Document(title=f"{self.name}: {pair}", blocks=(tables[0], *(t for t in tables[1:] if t.rows)))
        return Analysis(
            kind=self.name,
            subject=pair,
            metrics=comparison_metrics(old, new),
            views={"results": lambda: document},
            findings=findings,
            problems=problems,
            window=window,
        )

    def _results(self, paths: Sequence[Path]) -> tuple[tuple[BenchResult, ...], str]:
        """Return (results, where and when)."""
        files = [self.read(path) for path in paths]
        results = tuple(result for file in files for result in file.results)
        if not results:
            raise PerfgateError("artifact-unreadable", "it holds no benchmark", place=_names(paths))
        origins = sorted({" ".join(filter(None, (f.machine, f.commit[:7], f.when[:16]))) for f in files})
        return results, "; ".join(filter(None, origins))


def _figures(now: MetricSet, then: MetricSet | None = None) -> Table:
    """Return the figures of benchmarks beside their times; with earlier ones, those that both have, in their order."""
    before = grouped(reversed(then.metrics if then else ()), lambda metric: (metric.name, metric.labels))
    figures = [(m, before.get((m.name, m.labels), [])) for m in now.metrics if m.name != "time"]
    rows = [
        (dict(m.labels)["case"], limited_as(m), value_text(was.pop()) if was else "", value_text(m))
        for m, was in figures
        if was or then is None
    ]
    columns = Column.header(f"benchmark | figure | before | {'after' if then else 'value'}")
    return Table(columns=columns, rows=tuple(rows))


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(distinct_names([str(path) for path in paths]))


def _pair(before: Sequence[Path], after: Sequence[Path]) -> str:
    return pair_of_names([str(path) for path in before], [str(path) for path in after])


def _impossible(run: RunReport) -> Iterator[Problem]:
    """Yield impossible figures of a run: from a wrong work count, or from a damaged or edited record."""
    for case in run.cases:
        for metric in case.measurement.metrics.metrics if case.measurement is not None else ():
            of_a_peak = metric.name in OF_A_PEAK or metric.name.endswith("_ceiling")
            what = f"{case.key}: {metric.name} is {value_text(metric)}"
            if of_a_peak and metric.value > BELIEVED:
                yield Problem(code="above-peak", what=f"{what}, {FAR_PAST_CEILING}", retry=False)
            elif metric.value < 0 and (of_a_peak or metric.name == "time"):
                yield Problem(code="record-unreadable", what=f"{what}, and no run writes that", retry=False)


ReadRecord = Callable[[Path], RunReport]


_RECORD = re.compile(rb'\s*\{\s*"perfgate"\s*:\s*[0-9]')
"""The start of a record, with any indentation."""


class Runs:
    """The record of a run."""

    name = "record"
    views = ("report", "verdicts")
    options: tuple[tuple[str, str], ...] = ()

    def __init__(self, read: ReadRecord) -> None:
        self._read = read

    def recognises(self, path: Path, head: bytes) -> bool:
        from pytest_perfgate.core.analysis.foreign_files import GZIP, unpacked_head

        del path
        return _RECORD.match(unpacked_head(head) if head.startswith(GZIP) else head) is not None

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        run = self._joined(paths)
        return Analysis(
            kind=self.name,
            subject=_names(paths),
            metrics=metrics_of_run(run),
            views={
                "report": lambda: run_document(run),
                "verdicts": lambda: Document(title=_names(paths), blocks=(verdict_table(run.cases),)),
            },
            problems=(*(p for case in run.cases for p in case.problems), *_impossible(run)),
            window=run.started,
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        old, new = self._joined(before), self._joined(after)
        title = _pair(before, after)
        table = comparison_table(old, new)
        if not table.rows:
            what, why = (
                "the two runs have no case of one device in common",
                "a case is held against itself on one device",
            )
            raise PerfgateError("artifact-mixed", what, why=why, fix="name two runs of one device", place=title)
        return Analysis(
            kind=self.name,
            subject=title,
            metrics=compared(old, new),
            views={"difference": lambda: Document(title=title, blocks=(table,))},
            problems=dropped(old, new),
            window=f"{old.started} and {new.started}",
        )

    def _joined(self, paths: Sequence[Path]) -> RunReport:
        """Return several records, the shards of a job, as one run."""
        runs = [self._read(path) for path in paths]
        return replace(runs[0], cases=tuple(case for run in runs for case in run.cases))


CHECKED = "check"
"""The mode of a record that is not of a test run."""

ANYWHERE = "any-device"
"""The device of a file that names none."""

_ODD = re.compile(r"[^0-9A-Za-z._+]+")


@value
class FileGate:
    """What is needed to compare files with accepted lines."""

    tools: GateTools
    policy: Policy
    root: Path
    started: str
    """ISO 8601, to the second."""


def changes_of(limits: Iterable[Limit], metrics: MetricSet) -> tuple[Limit, ...]:
    """Return the limits on a change; a slowdown is one if the file has a time, as other tools' results do."""
    timed = bool(metrics.find("time"))
    return tuple(
        replace(limit, metric="time", compare=Compare.RELATIVE) if limit.metric == "slowdown" and timed else limit
        for limit in limits
        if limit.compare is not Compare.FIGURE or (limit.metric == "slowdown" and timed)
    )


def case_name(paths: Sequence[Path], root: Path, stated: str = "") -> str:
    """Return a file's name in the baselines: its path from the root, or for several files, that of their folder."""
    if stated:
        return PurePosixPath(stated).as_posix()
    places = [path.absolute() for path in paths]
    place = places[0] if len(places) == 1 else _folder(places)
    if not place.is_relative_to(root):
        fix = "name the case: --case traces/step"
        raise PerfgateError("command-usage", f"{place} lies outside of {root}, so it has no name there", fix=fix)
    name = place.relative_to(root).as_posix()
    return name if name != "." else "files"


def _folder(places: Sequence[Path]) -> Path:
    shared = set(places[0].parents).intersection(*(place.parents for place in places[1:]))
    return max(shared, key=lambda path: len(path.parts))


def device_of(analysis: Analysis) -> Device:
    """Return the device of a file, by the name in it."""
    names = tuple(dict.fromkeys(name for name in analysis.devices if name))
    key = "+".join(sorted(_ODD.sub("-", name).strip("-") for name in names)) or ANYWHERE
    return Device(key=key, name=", ".join(names) or "a file that names no device", kind="gpu")


def measured_file(analysis: Analysis, name: str) -> Measurement:
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
    """Compare a file with the accepted lines, as a record that can be accepted."""
    context = JudgeContext(
        policy=gate.policy, kinds=gate.tools.kinds, gates=max(1, len(limits)), today=gate.started[:10]
    )  # fmt: skip
    measurement = measured_file(analysis, name)
    metrics = _recorded_metrics(measurement.metrics, {limit.metric for limit in limits})
    measurement = replace(measurement, environment=gate.tools.environment(), metrics=metrics)
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


def _recorded_metrics(metrics: MetricSet, names: Collection[str]) -> MetricSet:
    """Return the metrics of a file for its record: those of the limits, and those of the whole."""
    return MetricSet(
        metrics=tuple(m for m in metrics.metrics if m.name in names or not m.labels),
        absent=tuple(a for a in metrics.absent if a.name in names),
    )


def keep_file(report: RunReport, gate: FileGate) -> Path | None:
    """Write its record and its entry of the history."""
    if gate.tools.history is not None:
        gate.tools.history.append(tuple(entries(report)))
    return gate.tools.records.write(report) if gate.tools.records is not None else None


def compared_files(
    before: Analysis, after: Analysis, limits: Sequence[Limit], policy: Policy, kinds: Kinds
) -> tuple[Verdict, ...]:
    """Judge limits on the changes from one file to another."""
    measurement = measured_file(after, after.subject)
    then = trusted(before)
    names = {limit.metric for limit in limits}
    figures = tuple(accepted_figure(metric) for metric in then.metrics if metric.name in names)
    line = Baseline(key=measurement.key, device=measurement.device.key, figures=figures, identity=measurement.identity)
    context = JudgeContext(policy=policy, kinds=kinds, gates=max(1, len(limits)), two_files=True)
    return judge(measurement, limits, baseline=line, context=context).verdicts


def refuse_changes_without_base(limits: Iterable[Limit]) -> None:
    """Refuse limits on a change without anything to compare with."""
    for limit in limits:
        if limit.compare is not Compare.FIGURE:
            what = f"'{limit.text}' is held against an accepted value"
            fix = "perfgate check FILE LIMIT --baseline, or perfgate compare BEFORE AFTER LIMIT"
            raise PerfgateError("limit-missing", what, fix=fix)


def in_order(limits: Sequence[Limit], plain: Sequence[Verdict], report: CaseReport | None) -> tuple[Verdict, ...]:
    texts = [limit.text for limit in limits]
    return tuple(sorted((*plain, *(report.verdicts if report else ())), key=lambda v: texts.index(v.limit.text)))


@value
class Imported:
    """The result of an import."""

    lines: tuple[Baseline, ...]
    unchanged: tuple[str, ...] = ()
    """Cases that had a line already."""
    omitted: tuple[str, ...] = ()
    """Benchmarks without a time."""


def imported(file: BenchFile, device: str, store: BaselineStore, *, author: str, when: str) -> Imported:
    """Return the lines that an import would write."""
    if file.tool == "nvbench" and device.startswith("host-"):
        fix = f"--device KEY, with the key that perfgate doctor shows for {file.machine or 'the card'}"
        raise PerfgateError("command-usage", f"NVBench measured a GPU, and {device} is a host", fix=fix)
    accepted = store.read_all(device)
    lines, unchanged, omitted = [], [], []
    for result in file.results:
        key = _case_key(file.tool, result)
        if not result.time:
            omitted.append(result.name)
        elif str(key) in accepted:
            unchanged.append(str(key))
        else:
            lines.append(_imported_line(key, result, file, device))
    signed = tuple(replace(line, who=author, when=when) for line in _distinct(lines))
    return Imported(lines=signed, unchanged=tuple(unchanged), omitted=tuple(omitted))


def _case_key(tool: str, result: BenchResult) -> CaseKey:
    """Return a node id if the tool has them, otherwise a file named after the tool."""
    name = result.name if re.match(r"[^:\[]+\.py::", result.name) else f"{tool}::{result.name}"
    return parse_case_key(name)


def _imported_line(key: CaseKey, result: BenchResult, file: BenchFile, device: str) -> Baseline:
    commit = file.commit if re.fullmatch(r"[0-9a-f]{7,40}", file.commit) else ""
    why = f"imported from {file.tool}, {result.statistic}"
    return Baseline(key=key, device=device, time=result.time or 0.0, commit=commit, why=why)


def _distinct(lines: Sequence[Baseline]) -> list[Baseline]:
    """Return the first of several lines with one name, since another tool's devices may share names."""
    return list({str(line.key): line for line in reversed(lines)}.values())[::-1]
