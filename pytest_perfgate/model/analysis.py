"""What an artifact came to: metrics for limits, findings, and views for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from pytest_perfgate.model.document import Document
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.values import array_value


@array_value
class Analysis:
    """One artifact, or the several of one job, analysed. Views are built when asked for."""

    kind: str
    subject: str
    metrics: MetricSet
    views: Mapping[str, Callable[[], Document]]
    """The first is the default."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Whatever makes every limit on it INVALID: coverage under the floor, for one."""
    window: str = ""
    """Where the figures are from; always printed beside them."""
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts that belong beside the artifact, by relative path: annotated source, machine code. Built when asked for."""
    kept: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Texts that a profile keeps beside its report, by relative path, for other programs. Built when asked for."""
    reports: Mapping[str, str] = field(default_factory=dict)
    """Written reports: the name of the file, without its ending, and the view that it holds."""
    tables: tuple[str, ...] = ()
    """Views whose tables are worth exporting; all of them where none is named."""
