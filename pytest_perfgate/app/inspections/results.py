"""Other tools' results, records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.results import (
    benchmark_comparison_table,
    compared,
    comparison_metrics,
    comparison_table,
    differing,
    dropped,
    metrics_of,
    metrics_of_run,
    result_table,
    unread,
)
from pytest_perfgate.core.judge.against_limit import BELIEVED, FAR_PAST_CEILING, OF_A_PEAK
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.core.render.words import distinct_names, pair_of_names, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Document, Problem
from pytest_perfgate.model.verdict import RunReport

if TYPE_CHECKING:
    from pytest_perfgate.model.profiles import BenchReader, BenchResult

_NVBENCH = ((b'"nvbench"',), (b'"sm_version"', b'"devices"'), (b'"meta"', b'"argv"'))

_PYTEST = ((b'"machine_info"', b'"commit_info"'), (b'"machine_info"', b'"python_'))

_GOOGLE = ((b'"context"', b'"num_cpus"'), (b'"context"', b'"library_'))

_ASV = ((b'"commit_hash"', b'"env_name"'), (b'"commit_hash"', b'"results"'))
"""Keys that a file begins with; beside them, what it begins with once something has sorted its keys."""


class Benchmarks:
    """One tool's files, by the keys that they begin with."""

    views = ("results",)
    options: tuple[tuple[str, str], ...] = ()

    def __init__(self, name: str, signs: Sequence[Sequence[bytes]], read: BenchReader) -> None:
        self.name, self._signs, self._read = name, signs, read

    def recognises(self, path: Path, head: bytes) -> bool:
        del path
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return text.startswith(b"{") and any(all(sign in text for sign in signs) for signs in self._signs)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        results, window, untimed = self._results(paths)
        document = Document(title=f"{self.name}: {_names(paths)}", subtitle=window, blocks=(result_table(results),))
        return Analysis(
            kind=self.name,
            subject=_names(paths),
            metrics=metrics_of(results),
            views={"results": lambda: document},
            findings=unread(untimed),
            window=window,
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        (old, _, _), (new, window, _) = self._results(before), self._results(after)
        table = benchmark_comparison_table(old, new)
        if not table.rows:
            title = _pair(before, after)
            mend = "compare files of the same benchmarks, or look at each: perfgate inspect FILE"
            raise PerfgateError("artifact-mixed", "the two have no benchmark in common", place=title, mend=mend)
        findings, problems = differing(old, new)
        document = Document(title=f"{self.name}: {_pair(before, after)}", blocks=(table,))
        return Analysis(
            kind=self.name,
            subject=_pair(before, after),
            metrics=comparison_metrics(old, new),
            views={"results": lambda: document},
            findings=findings,
            problems=problems,
            window=window,
        )

    def _results(self, paths: Sequence[Path]) -> tuple[tuple[BenchResult, ...], str, int]:
        """(what was timed, where and when, how many have another unit)."""
        files = [self._read(path) for path in paths]
        results = tuple(result for file in files for result in file.results)
        untimed = sum(file.untimed for file in files)
        if not results:
            what = f"it holds no time, and {untimed} of memory or another unit" if untimed else "it holds no benchmark"
            raise PerfgateError("artifact-unreadable", what, place=_names(paths))
        origins = sorted({" ".join(filter(None, (f.machine, f.commit[:7], f.when[:16]))) for f in files})
        return results, "; ".join(filter(None, origins)), untimed


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(distinct_names([str(path) for path in paths]))


def _pair(before: Sequence[Path], after: Sequence[Path]) -> str:
    return pair_of_names([str(path) for path in before], [str(path) for path in after])


def nvbench(read: BenchReader) -> Benchmarks:
    return Benchmarks("nvbench", (*_NVBENCH, (b'"benchmarks"', b'"axes"')), read)


def pytest_benchmark(read: BenchReader) -> Benchmarks:
    return Benchmarks("pytest-benchmark", (*_PYTEST, (b'"benchmarks"', b'"fullname"')), read)


def google_benchmark(read: BenchReader) -> Benchmarks:
    return Benchmarks("google-benchmark", (*_GOOGLE, (b'"benchmarks"', b'"cpu_time"', b'"real_time"')), read)


def asv(read: BenchReader) -> Benchmarks:
    return Benchmarks("asv", (*_ASV, (b'"benchmark_version"',)), read)


def _past_every_peak(run: RunReport) -> Iterator[Problem]:
    """Shares of a peak that no noise of a ceiling explains: of wrong work, or of a record that somebody edited."""
    for case in run.cases:
        for metric in case.measurement.metrics.metrics if case.measurement is not None else ():
            if (metric.name in OF_A_PEAK or metric.name.endswith("_ceiling")) and metric.value > BELIEVED:
                what = f"{case.key}: {metric.name} is {quantity(metric.value, metric.dimension)}, {FAR_PAST_CEILING}"
                yield Problem(code="above-peak", what=what, retry=False)


ReadRecord = Callable[[Path], RunReport]


class Runs:
    """The record that every run leaves."""

    name = "record"
    views = ("report", "verdicts")
    options: tuple[tuple[str, str], ...] = ()

    def __init__(self, read: ReadRecord) -> None:
        self._read = read

    def recognises(self, path: Path, head: bytes) -> bool:
        del path
        return head.startswith(b'{"perfgate":')

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
            problems=(*(p for case in run.cases for p in case.problems), *_past_every_peak(run)),
            window=run.started,
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        old, new = self._joined(before), self._joined(after)
        title = _pair(before, after)
        table = comparison_table(old, new)
        if not table.rows:
            raise PerfgateError("artifact-mixed", "the two runs have no case of one device in common", place=title)
        return Analysis(
            kind=self.name,
            subject=title,
            metrics=compared(old, new),
            views={"difference": lambda: Document(title=title, blocks=(table,))},
            problems=dropped(old, new),
            window=f"{old.started} and {new.started}",
        )

    def _joined(self, paths: Sequence[Path]) -> RunReport:
        """Several records as one run: the shards of a job."""
        runs = [self._read(path) for path in paths]
        return replace(runs[0], cases=tuple(case for run in runs for case in run.cases))
