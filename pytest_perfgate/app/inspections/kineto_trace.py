"""A PyTorch trace, each of whose figures is computed once, a job of several, and their options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.roofline import RATES, given_roof, sheet_roof
from pytest_perfgate.core.analysis.trace.bottleneck import (
    coverage_findings,
    host_metrics,
    step_metrics_of_all,
    window_class,
    window_findings,
)
from pytest_perfgate.core.analysis.trace.figures import names_rows, row_metrics
from pytest_perfgate.core.analysis.trace.findings import findings
from pytest_perfgate.core.analysis.trace.job import RankFigures, TraceJob
from pytest_perfgate.core.analysis.trace.metrics import (
    kernel_metrics,
    operator_metrics,
    scopes_of,
    step_metrics,
    timeline_metrics,
    without_operators,
)
from pytest_perfgate.core.analysis.trace.operators import KernelRow, OperatorRow, collectives, kernels, operators
from pytest_perfgate.core.analysis.trace.rates import impact_metrics, throughput_metrics, utilisation
from pytest_perfgate.core.analysis.trace.survey import (
    MOST,
    AnalysisSettings,
    Survey,
    in_windows,
    pooled,
    scoped_metrics,
    steps_of,
    survey,
    timelines,
    windows_of,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Finding, Labels, MetricSet, Problem, labels
from pytest_perfgate.model.values import Work, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.classify import Classification
    from pytest_perfgate.core.analysis.trace.timeline import Timeline
    from pytest_perfgate.model.device import DeviceSpec, Roof
    from pytest_perfgate.model.ports import Catalogue
    from pytest_perfgate.model.profiles import Trace


Stacks = Callable[[Path], "tuple[Trace, ...]"]
"""Reads a trace with the frames of Python."""


class TraceView:
    """A survey of a trace with its tables, roof, findings and figures, computed when needed."""

    def __init__(self, survey: Survey, options: TraceOptions, catalogue: Catalogue, stacks: Stacks) -> None:
        self.whole = survey
        self.options = options
        self._catalogue = catalogue
        self._stacks = stacks

    @cached_property
    def windows(self) -> tuple[Survey, ...]:
        """The requested windows; without any, the whole trace."""
        windows = windows_of(self.whole, self.options.window)
        return tuple(in_windows(self.whole, windows)) or (self.whole,)

    @cached_property
    def steps(self) -> tuple[Survey, ...]:
        """The trace cut at each of its steps."""
        return tuple(in_windows(self.whole, steps_of(self.whole)))

    @property
    def stretches(self) -> tuple[Survey, ...]:
        """What is examined separately: several requested windows, else the steps."""
        return self.windows if len(self.windows) > 1 else self.steps

    @property
    def survey(self) -> Survey:
        return self.windows[0] if len(self.windows) == 1 else self.whole

    @cached_property
    def stacked(self) -> Survey:
        """The same window of the trace with Python's frames in its tree, read again when shown."""
        trace = self.whole.trace
        traces = self._stacks(Path(trace.path)) if trace.frames else ()
        framed = next((one for one in traces if one.rank == trace.rank), None)
        if framed is None:
            return self.survey
        return TraceView(survey(framed, self.options.settings), self.options, self._catalogue, self._stacks).survey

    @cached_property
    def rows(self) -> tuple[OperatorRow, ...]:
        return operators(self.survey)

    @cached_property
    def kernels(self) -> tuple[KernelRow, ...]:
        return kernels(self.survey)

    @cached_property
    def line(self) -> Timeline | None:
        return pooled(list(timelines(self.survey).values()))

    @cached_property
    def roof(self) -> Roof | None:
        """The given peaks; what is left out of them is the catalogue's for the named device or for the trace's own."""
        peaks = self.options.peak, self.options.bandwidth
        if all(peaks):
            return given_roof(*peaks, None)
        devices = set(self.survey.trace.devices)
        name = self.options.device or (devices.pop() if len(devices) == 1 else "")
        spec = self._catalogue.lookup(name) if name else None
        if spec is None and self.options.device:
            spec = _find_device(self._catalogue, self.options.device)
        return given_roof(*peaks, sheet_roof(spec, self.options.rates) if spec else None)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        others = findings(self.survey, self.line, self.rows, self.kernels, self.roof)
        inside = self.windows if len(self.windows) == 1 else self.steps
        stepped = coverage_findings(self.whole, inside) if self.options.window else ()
        limiting = tuple(window_findings(self.bottleneck))
        wrong = any(finding.trigger == "class=invalid" for finding in limiting)
        return (*limiting, *stepped, *others) if wrong else (*stepped, *others, *limiting)

    @cached_property
    def bottleneck(self) -> Classification | None:
        """What limits the window; None for several devices, or for a program on the host."""
        return window_class(self.survey, self.rows, self.roof, self.problems)

    def metrics(self, scopes: Sequence[Labels] = (), most: int = MOST) -> MetricSet:
        """Return its figures under these scopes; by default without a rank, and with it if known."""
        scopes = scopes or scopes_of(self.whole.trace.rank)
        several = len(self.windows) > 1
        inner = self.windows
        if not several:
            inner = () if self.options.window else self.steps
        parts = step_metrics(inner, scopes) | scoped_metrics(self.survey, inner, scopes, most)
        rates = utilisation(self.survey, self.rows, inner, self.roof, scopes)
        named = operator_metrics(self.rows, self.roof, scopes, on_host=self.survey.on_host)
        overall = (
            timeline_metrics(self.survey, scopes)
            | rates
            | (named if self.rows else without_operators(self.survey, scopes))
            | kernel_metrics(self.kernels, self.survey, scopes)
            | self._of_rows(scopes, most)
            | self._of_host(inner, scopes)
        )
        return _of_each(overall, parts) if several else overall | parts

    def _of_host(self, steps: Sequence[Survey], scopes: Sequence[Labels]) -> MetricSet:
        """Return the host's figures beside the device, in the window and in each step."""
        parts = [(self.survey, scope) for scope in scopes]
        for part in steps:
            if part.window is not None:
                where = labels(step=part.window.step)
                parts += [(part, tuple(sorted((*scope, *where)))) for scope in scopes]
        step_metrics = step_metrics_of_all(self.whole, self.steps, scopes)
        rate = throughput_metrics(self.whole, self.steps, self.options.items, scopes)
        return MetricSet(metrics=(*host_metrics(parts), *step_metrics)) | rate

    def _of_rows(self, scopes: Sequence[Labels], most: int) -> MetricSet:
        """Return figures of single rows, unless the judged limits name none."""
        if not self.options.rows:
            return MetricSet()
        total = self.line.total if self.line else 0
        metrics = row_metrics(self.survey, self.rows, self.kernels, self.roof, scopes, most)
        return metrics | impact_metrics(self.rows, self.options.settings.top, self.roof, total, scopes)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return why no limit on this trace can be judged."""
        coverage, unread, least = self.survey.coverage, self.survey.unread, self.options.settings.floor
        floor = f"the floor is {least * 100:.0f} %"
        problems = []
        if coverage is not None and coverage < least:
            what = f"only {coverage * 100:.1f} % of the GPU time is linked to a launch; {floor}"
            problems.append(("trace-coverage", what))
        if unread > 1 - least:
            what = f"{unread * 100:.1f} % of the GPU events or their time has no readable duration; {floor}"
            problems.append(("trace-durations", what))
        place = (("trace", self.whole.trace.path),)
        return tuple(Problem(code=code, what=what, evidence=place, retry=False) for code, what in problems)

    def figures(self, number: int, most: int = MOST) -> RankFigures:
        """Return its figures as one of several ranks; a trace without a rank is identified by its position."""
        own_rank = self.whole.trace.rank
        rank = own_rank if own_rank is not None else number
        return RankFigures(
            rank=rank,
            path=self.whole.trace.path,
            window=self.survey.label,
            metrics=self.metrics((labels(rank=rank),), most),
            lines=tuple(timelines(self.survey).items()),
            collectives=collectives(self.survey, rank),
            findings=self.findings,
            problems=self.problems,
            on_host=self.survey.on_host,
            placed=own_rank is None,
            world=self.whole.trace.world or 0,
            devices=self.whole.trace.devices,
        )


def _find_device(catalogue: Catalogue, name: str) -> DeviceSpec:
    """Return the device that the name may mean; the error lists several, or those that share a word with it."""
    specs = catalogue.find(name)
    if len(specs) == 1:
        return specs[0]
    words = set(name.casefold().split())
    names = [spec.name for spec in specs or catalogue if specs or words & set(spec.name.casefold().split())]
    fix = f"one of: {', '.join(names[:8])}" if names else "perfgate devices lists the catalogue"
    what = f"{name!r} may be several devices" if specs else f"no device {name!r}"
    raise PerfgateError("trace-option", f"{what} in the catalogue", fix=fix)


def _of_each(overall: MetricSet, parts: MetricSet) -> MetricSet:
    """Return the figures of several windows; those of the whole trace are left out if the windows have them."""
    stepped = {"step"}
    names = {m.name for m in (*parts.metrics, *overall.metrics) if stepped <= dict(m.labels).keys()}
    metrics = (m for m in overall.metrics if m.name not in names or stepped <= dict(m.labels).keys())
    return MetricSet(metrics=tuple(metrics), absent=overall.absent) | parts


OPTIONS = (
    ("window", "whole, steps, step=N, annotation=NAME or a range such as 2ms..5ms"),
    ("step", "a profiler step: short for window=step=N"),
    ("compat", "tracelens: TraceLens's tables and figures, with the same omissions"),
    ("device", "the device's name in the catalogue instead of the trace's; of the target, when comparing"),
    ("reference", "the reference's device in the catalogue, when comparing"),
    ("peak", "peaks by dtype: bf16=708TFLOPS,fp32=163TFLOPS; of the target, when comparing"),
    ("bandwidth", "memory bandwidth: 5.3TB/s; of the target, when comparing"),
    ("reference_peak", "the reference's peaks by dtype, when comparing"),
    ("reference_bandwidth", "the reference's memory bandwidth, when comparing"),
    ("items", "what a step works on, such as '64 samples': the unit of throughput"),
    ("rates", "datasheet or achievable: which column of the catalogue is the roof"),
    ("communication", "a pattern of kernel names that communicate, beside the known ones"),
    ("micro", "the longest gap that counts as micro idle, in microseconds"),
    ("floor", "coverage under which limits are INVALID; 0.9"),
    ("top", "how many operators a report looks at; 6"),
    ("replay", "write a replay package of the operation, or of those worth one, to this zip file"),
    ("workers", "read many files on a Dask cluster: tcp://HOST:PORT of its scheduler, or local"),
    ("limits", "the limits to judge: figures of single rows are worked out where one names them"),
    ("op", "the operation that --view stack prints: a name, a pattern or an event number"),
)


@value
class TraceOptions:
    """The parsed options."""

    settings: AnalysisSettings
    window: str = ""
    device: str = ""
    reference: str = ""
    peak: str = ""
    bandwidth: str = ""
    reference_peak: str = ""
    reference_bandwidth: str = ""
    rates: str = "datasheet"
    op: str = ""
    items: str = ""
    compat: str = ""
    replay: str = ""
    workers: str = ""
    rows: bool = True
    """Whether figures of single rows are needed."""

    @property
    def of_reference(self) -> TraceOptions:
        """Return the options for the reference of a comparison, with the device and peaks of the reference."""
        return replace(self, device=self.reference, peak=self.reference_peak, bandwidth=self.reference_bandwidth)

    def has_reference_hardware(self) -> bool:
        """Return whether the options describe the reference's hardware."""
        return bool(self.reference or self.reference_peak or self.reference_bandwidth)


_NAMED = (
    "window", "device", "op", "items", "replay", "workers", "peak", "bandwidth", "reference", "reference_peak",
    "reference_bandwidth",
)  # fmt: skip
"""Options that need no parsing."""


def parse_options(
    options: Mapping[str, str], models: Mapping[str, Callable[..., Work]], project: Sequence[str]
) -> TraceOptions:
    """Return options as values, with the project's own patterns of communication.

    An unknown or unreadable option is an error that lists the known ones.
    """
    unknown = sorted(set(options) - {name for name, _ in OPTIONS})
    if unknown:
        names = ", ".join(name for name, _ in OPTIONS)
        raise PerfgateError("trace-option", f"unknown option {unknown[0]!r}", fix=f"one of {names}")
    rates = options.get("rates", "datasheet")
    if rates not in RATES:
        raise PerfgateError("trace-option", f"rates={rates!r}", fix=" or ".join(RATES))
    settings = AnalysisSettings(
        communication=_patterns(options.get("communication", ""), project),
        micro_ns=round(1e3 * _number(options, "micro", 10.0)),
        floor=_number(options, "floor", 0.9, most=1.0, fix="a fraction from 0 to 1, such as 0.9"),
        top=round(_number(options, "top", 6, least=1)),
        models=models,
    )
    named = {name: options[name] for name in _NAMED if name in options}
    if options.get("compat", "tracelens") != "tracelens":
        raise PerfgateError("trace-option", f"compat={options['compat']!r}", fix="tracelens")
    if "step" in options:
        named["window"] = f"step={options['step']}"
    rows = "limits" not in options or names_rows(options["limits"])
    return TraceOptions(settings=settings, rates=rates, compat=options.get("compat", ""), rows=rows, **named)


def _patterns(text: str, project: Sequence[str]) -> tuple[str, ...]:
    """Return patterns of communication, those of the project first."""
    for pattern in project:
        _check_pattern(pattern, "tool.perfgate.communication")
    _check_pattern(text)
    return tuple(filter(None, (*project, text)))


def _check_pattern(pattern: str, place: str = "") -> None:
    try:
        re.compile(pattern)
    except re.error as odd:
        raise PerfgateError("trace-option", f"communication={pattern!r} is not a pattern: {odd}", place=place) from odd


def _number(
    options: Mapping[str, str], name: str, default: float, *, least: float = 0.0, most: float = 1e12, fix: str = ""
) -> float:
    text = options.get(name, "")
    try:
        number = float(text) if text else default
    except ValueError as odd:
        raise PerfgateError("trace-option", f"{name}={text!r} is not a number", fix=fix) from odd
    if not least <= number <= most:
        raise PerfgateError("trace-option", f"{name}={text!r} is out of range", fix=fix)
    return number


Numbered = tuple[int, Path]

Ranks = tuple[RankFigures, ...]

Spread = Callable[[Callable[[Numbered], Ranks], Sequence[Numbered]], Iterable[Ranks]]
"""Applies a function to every file, here or on a cluster; the order of answers may vary."""


@value
class TraceReader:
    """How a trace is read, in any process."""

    read: Callable[[Path], tuple[Trace, ...]]
    stacks: Stacks
    catalogue: Catalogue
    options: TraceOptions
    most: int
    """The most figures of steps for one rank."""

    def view_of(self, trace: Trace) -> TraceView:
        return TraceView(survey(trace, self.options.settings), self.options, self.catalogue, self.stacks)

    def figures(self, trace: Trace, number: int) -> RankFigures:
        """Return the figures of a trace with its number among the files."""
        return self.view_of(trace).figures(number, self.most)

    def ranks_of(self, numbered: Numbered) -> Ranks:
        """Return the ranks in one file; it depends only on its arguments, so that any process may run it."""
        number, path = numbered
        return tuple(self.figures(trace, number + at) for at, trace in enumerate(self.read(path)))

    def reread(self, job: TraceJob) -> Iterator[TraceView]:
        """Yield the traces once more, in the order of ranks."""
        path: str = ""
        traces: tuple[Trace, ...] = ()
        for rank in job.ranks:
            if rank.path != path:
                path, traces = rank.path, self.read(Path(rank.path))
            fitting = [trace for trace in traces if trace.rank in (rank.rank, None)]
            if not fitting:
                raise PerfgateError("trace-ranks", f"rank {rank.rank} is no longer in the file", place=path)
            yield self.view_of(fitting[0])


def job_of(ranks: Iterable[RankFigures]) -> TraceJob:
    """Return the ranks, given in any order, as a job."""
    return TraceJob.of(ranks).settled
