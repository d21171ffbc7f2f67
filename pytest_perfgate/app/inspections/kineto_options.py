"""What ``--set NAME=VALUE`` may say to the inspector of traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pytest_perfgate.core.analysis.trace.figures import names_rows
from pytest_perfgate.core.analysis.trace.survey import Settings
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work

OPTIONS = (
    ("window", "whole, steps, step=N, annotation=NAME or a range such as 2ms..5ms"),
    ("step", "a profiler step: short for window=step=N"),
    ("compat", "tracelens: the reference tool's tables and figures, its omissions included"),
    ("device", "the device's name in the catalogue, where the trace does not say it or says it wrong"),
    ("reference", "the reference's device in the catalogue, when comparing"),
    ("peak", "peaks by dtype: bf16=708TFLOPS,fp32=163TFLOPS"),
    ("bandwidth", "memory bandwidth: 5.3TB/s"),
    ("rates", "datasheet or achievable: which column of the catalogue is the roof"),
    ("communication", "a pattern of kernel names that communicate, beside the known ones"),
    ("micro", "the longest gap that counts as micro idle, in microseconds"),
    ("floor", "coverage under which limits are INVALID; 0.9"),
    ("top", "how many operators a report looks at; 6"),
    ("replay", "write a replay package of the operation, or of those worth one, to this zip file"),
    ("workers", "look at many files on a Dask cluster: tcp://HOST:PORT of its scheduler, or local"),
    ("limits", "the limits to judge: figures of single rows are worked out where one names them"),
    ("op", "the operation that --view stack prints: a name, a pattern or an event number"),
)


@value
class Asked:
    """The options, parsed."""

    settings: Settings
    window: str = ""
    device: str = ""
    reference: str = ""
    peak: str = ""
    bandwidth: str = ""
    rates: str = "datasheet"
    op: str = ""
    compat: str = ""
    replay: str = ""
    workers: str = ""
    rows: bool = True
    """Whether figures of single rows are wanted."""


def parse_options(
    options: Mapping[str, str], models: Mapping[str, Callable[..., Work]], project: Sequence[str] = ()
) -> Asked:
    """Options as values, beside the project's own patterns of communication.

    An unknown or unreadable option is an error that names the known.
    """
    unknown = sorted(set(options) - {name for name, _ in OPTIONS})
    if unknown:
        known = ", ".join(name for name, _ in OPTIONS)
        raise PerfgateError("trace-option", f"unknown option {unknown[0]!r}", mend=f"one of {known}")
    rates = options.get("rates", "datasheet")
    if rates not in {"datasheet", "achievable"}:
        raise PerfgateError("trace-option", f"rates={rates!r}", mend="datasheet or achievable")
    settings = Settings(
        communication=_patterns(options.get("communication", ""), project),
        micro_ns=round(1e3 * _number(options, "micro", 10.0)),
        floor=_number(options, "floor", 0.9, most=1.0, mend="a fraction from 0 to 1, such as 0.9"),
        top=round(_number(options, "top", 6, least=1)),
        models=models,
    )
    named = {
        name: options[name]
        for name in ("window", "device", "reference", "peak", "bandwidth", "op", "replay", "workers")
        if name in options
    }
    if options.get("compat", "tracelens") != "tracelens":
        raise PerfgateError("trace-option", f"compat={options['compat']!r}", mend="tracelens")
    if "step" in options:
        named["window"] = f"step={options['step']}"
    rows = "limits" not in options or names_rows(options["limits"])
    return Asked(settings=settings, rates=rates, compat=options.get("compat", ""), rows=rows, **named)


def _patterns(asked: str, project: Sequence[str]) -> tuple[str, ...]:
    """Patterns of communication, those of the project first."""
    for pattern in project:
        _check_pattern(pattern, "tool.perfgate.communication")
    _check_pattern(asked)
    return tuple(filter(None, (*project, asked)))


def _check_pattern(pattern: str, place: str = "") -> None:
    try:
        re.compile(pattern)
    except re.error as odd:
        raise PerfgateError("trace-option", f"communication={pattern!r} is no pattern: {odd}", place=place) from odd


def refuse_workers(asked: Asked, why: str) -> None:
    """A cluster that would be asked for nothing is a misunderstanding."""
    if asked.workers:
        raise PerfgateError("trace-option", f"workers={asked.workers!r} spreads the files of many ranks, and {why}")


def _number(
    options: Mapping[str, str], name: str, default: float, *, least: float = 0.0, most: float = 1e12, mend: str = ""
) -> float:
    text = options.get(name, "")
    try:
        found = float(text) if text else default
    except ValueError as odd:
        raise PerfgateError("trace-option", f"{name}={text!r} is no number", mend=mend) from odd
    if not least <= found <= most:
        raise PerfgateError("trace-option", f"{name}={text!r} is out of range", mend=mend)
    return found
