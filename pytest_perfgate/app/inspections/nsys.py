"""Nsight Systems exports: overlap per stage and rank, of one file or of all files of a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.foreign_files import foreign
from pytest_perfgate.core.analysis.intervals import BLOCKS, LAUNCHES
from pytest_perfgate.core.analysis.nsys import overlap, views
from pytest_perfgate.core.analysis.nsys.compare import comparison, comparison_metrics, difference, window_texts
from pytest_perfgate.core.analysis.nsys.lanes import ExportContent, by_namespace, check_copies, check_distinct, lanes
from pytest_perfgate.core.analysis.nsys.metrics import (
    findings,
    invalid_findings,
    metrics,
    problems,
    window_findings,
    window_text,
)
from pytest_perfgate.core.analysis.nsys.setup import OPTIONS, order, ranks, reading, windows
from pytest_perfgate.core.analysis.nsys.views import class_findings, coverage_findings
from pytest_perfgate.core.render.words import distinct_names, pair_of_names, plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Document, Finding, Picture
from pytest_perfgate.model.nsys import (
    ApiTotal,
    Extent,
    Job,
    NsysExport,
    NsysReader,
    Rank,
    RankResult,
    ReadOptions,
    Window,
)
from pytest_perfgate.model.profiles import REPORTS, SQLITE

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.kernels.bottleneck import BottleneckOptions
    from pytest_perfgate.model.ports import Catalogue
    from pytest_perfgate.model.profiles import Scrub, Scrubbed

MAGICS = (SQLITE, b"NVIDIA Tegra Profiler Report")

EXPORT = ".sqlite"
"""The ending by which an encrypted or overwritten export is still recognised."""

_FAR = 1 << 62
"""A time in nanoseconds after the end of any capture."""

_NUMBERED = re.compile(r"(\D*)(\d*)")


class Nsys:
    """Inspects exports through the given reader, which first exports a report if nsys is installed."""

    name = "nsys"
    views = ("overlap", "setup", "window", "streams", "balance", "summary", "timeline", "analysis")
    options = (*OPTIONS, *overlap.STATED)

    def __init__(
        self, read: NsysReader, project: Mapping[str, str] | None = None, sheets: Callable[[], Catalogue] | None = None
    ) -> None:
        self._read, self._project, self._sheets = read, dict(project or {}), sheets

    def _options(self, options: Mapping[str, str]) -> ReadOptions:
        """Return the given options over the project's; a given window replaces the project's, also its anchor."""
        window = {"anchor", "start", "end"}
        from_project = {
            name: text for name, text in self._project.items() if name not in window or not window & set(options)
        }
        return reading(
            {**from_project, **{name: text for name, text in options.items() if name not in dict(overlap.STATED)}}
        )

    def _stated(self, options: Mapping[str, str], exports: Sequence[NsysExport]) -> BottleneckOptions | None:
        """Return the work and roof that the options state, or None; the roof defaults to that of the first device."""
        if dict(overlap.STATED).keys().isdisjoint(options):
            return None
        from pytest_perfgate.app.inspections.cubin import spec_of
        from pytest_perfgate.core.analysis.kernels.bottleneck import parse_stated

        hardware = next((name for export in exports for _, name in export.facts().gpus), "")
        return parse_stated(options, spec_of(options, self._sheets(), hardware) if self._sheets else None)

    def recognises(self, path: Path, head: bytes) -> bool:
        named = path.suffix in REPORTS or (path.suffix == EXPORT and head != b"" and not foreign(head)[0])
        return head.startswith(MAGICS) or named

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        job, exports = self._job(paths, self._options(options))
        stated = self._stated(options, exports)
        rows = (*coverage_findings(job), *window_findings(job.ranks), *class_findings(job.ranks), *findings(job))
        rows += tuple(overlap.work_findings(job.ranks, stated))
        every = tuple(invalid_findings(job)) or rows
        pages: dict[str, Callable[[], Document]] = {
            "overlap": lambda: views.overlap(job, every),
            "setup": lambda: views.setup(job),
            "window": lambda: views.window(job),
            "streams": lambda: views.streams(job),
            "balance": lambda: views.balance(job),
            "summary": lambda: _summary(job, exports, every),
            "timeline": lambda: _timeline(job),
            "analysis": lambda: views.analysis(job, every),
        }
        talks = job.reading.original or any(result.comm is not None for result in job.ranks)
        first = "overlap" if talks else "summary"
        return Analysis(
            kind=self.name,
            subject=", ".join(distinct_names([str(path) for path in paths])),
            devices=tuple(dict.fromkeys(name for export in exports for _, name in export.facts().gpus)),
            metrics=metrics(job) | overlap.work_metrics(job.ranks, stated),
            views={first: pages[first], **pages},
            findings=every,
            problems=problems(job),
            window=window_text(job.ranks),
            reports={"report": "analysis"},
            tables=("overlap", "window", "streams", "balance", "summary"),
            pictures={name: partial(_draw, name, job) for name in ("timeline", "overlap", "ranks", "kernels")},
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        """Compare two jobs with the same options, and so the same window rule."""
        choices = self._options(options)
        sides = [str(path) for path in before], [str(path) for path in after]
        (old, _), (new, exports) = self._job(before, choices), self._job(after, choices)
        compared = comparison(old, new)
        incomparable = all(pair.slowdown is None for pair in compared.kernels)
        notes = ["the two have no kernel in common"] if incomparable else []
        return Analysis(
            kind=self.name,
            subject=pair_of_names(*sides),
            metrics=comparison_metrics(compared, new) | overlap.work_metrics(new.ranks, self._stated(options, exports)),
            views={"difference": lambda: difference(compared, old, new, pair_of_names(*sides, " and "))},
            findings=findings(new),
            problems=(*problems(old), *problems(new)),
            window="; ".join((*window_texts(old, new), *notes)),
            pictures={name: partial(_draw, name, old, new) for name in ("overlap", "ranks")},
        )

    def _job(self, paths: Sequence[Path], reading: ReadOptions) -> tuple[Job, tuple[NsysExport, ...]]:
        exports = tuple(self._read(path) for path in _in_order(paths))
        results: list[RankResult] = []
        notes: list[str] = []
        for number, export in enumerate(exports):
            analysed, omitted = _analysed(export, reading, number, len(results))
            results += analysed
            notes += omitted
        facts = tuple(export.facts() for export in exports)
        check_distinct([result.rank for result in results], [one.path for one in facts])
        check_copies(results, [one.path for one in facts])
        results = sorted(_requested_ranks(results, reading.ranks), key=lambda result: order(result.rank))
        return Job(reading=reading, files=facts, ranks=tuple(results), notes=tuple(notes)), exports


def _requested_ranks(results: list[RankResult], names: Sequence[str]) -> list[RankResult]:
    """Return the requested ranks; a name without a rank is an error."""
    there = {result.rank.name for result in results}
    unknown = [name for name in names if name not in there]
    if unknown:
        what = f"no rank is called {unknown[0]!r}"
        raise PerfgateError("nsys-option", what, fix=f"ranks here: {', '.join(sorted(there))}")
    return [result for result in results if not names or result.rank.name in names]


def _timeline(job: Job) -> Document:
    from pytest_perfgate.core.analysis.nsys.timeline import timeline_view

    return timeline_view(job)


def _draw(name: str, *jobs: Job) -> Picture:
    from pytest_perfgate.core.analysis.nsys.timeline import drawn

    return drawn(name, *jobs)


def _in_order(paths: Sequence[Path]) -> list[Path]:
    """Return paths sorted with numbers by value, so that unlabelled ranks have the same numbers in any order."""
    return sorted(paths, key=lambda path: [(text, int(part or -1)) for text, part in _NUMBERED.findall(str(path))])


def _analysed(export: NsysExport, reading: ReadOptions, file: int, first: int) -> tuple[list[RankResult], list[str]]:
    """Return the ranks of one file, and what was left out of it."""
    ranges = export.ranges()
    if reading.original:  # that tool leaves out what starts before time zero
        ranges = ranges.where(ranges.start >= 0)
    ranks_of_file = ranks(ranges, export.processes(), reading.preset, file, first, export.threads())
    if not ranks_of_file:
        what = "no kernel of the export has a start and an end"
        raise PerfgateError("nsys-no-kernels", what, place=export.facts().path)
    chosen = windows(ranges, ranks_of_file, reading, lambda: _extents(export, reading))
    if not chosen:
        what = "no kernel starts at or after the capture's time zero, and compat=pithtrain counts no other"
        raise PerfgateError("nsys-no-kernels", what, place=export.facts().path, fix="read it without compat")
    low, high = min(window.start for window in chosen.values()), max(window.end for window in chosen.values())
    kernels = export.kernels(low, high, by_namespace(export.full_names(), reading))
    if not len(kernels):
        ran = export.extents()
        if not ran:
            raise PerfgateError("nsys-damaged", "its kernels are not where their table says", place=export.facts().path)
        fix = f"kernels run in {min(extent.first for extent in ran)}..{max(extent.last for extent in ran)} ns"
        raise PerfgateError("nsys-window", f"no kernel runs in {low}..{high}", place=export.facts().path, fix=fix)
    recorded = ExportContent(
        kernels=kernels,
        copies=export.copies(low, high),
        calls=export.calls(int(kernels.correlation.min()), int(kernels.correlation.max())),
        ranges=ranges,
        names=export.names(np.unique(kernels.name).tolist()),
    )
    omitted = [
        f"left out: rank {rank.name}, process {rank.pid} of {export.facts().path} has no range that matches the anchor"
        for rank in ranks_of_file
        if rank not in chosen
    ]
    omitted += _without_process(recorded, export.facts().path)
    omitted += _early_note(export, reading)
    launches, waits = export.timed(low, high, (LAUNCHES, BLOCKS))
    return [overlap.result(lane, launches, waits) for lane in lanes(recorded, chosen, reading)], omitted


def _extents(export: NsysExport, reading: ReadOptions) -> list[Extent]:
    """Return where kernels run; in the original tool's mode, from time zero on."""
    if not reading.original:
        return list(export.extents())
    return [replace(extent, first=max(extent.first, 0)) for extent in export.extents() if extent.last > 0]


def _early_note(export: NsysExport, reading: ReadOptions) -> list[str]:
    """Return a note on kernels before time zero, which the original tool's mode ignores."""
    count = int((export.kernels(-_FAR, 0).start < 0).sum()) if reading.original else 0
    which = f"{plural(count, 'kernel')} before time zero in {export.facts().path}"
    return [f"left out: {which}, as compat=pithtrain does"] if count else []


def _without_process(recorded: ExportContent, path: str) -> list[str]:
    """Return notes on copies and ranges without a process, which are in no rank's figures."""
    copies, ranges = int((recorded.copies.pid == 0).sum()), int((recorded.ranges.tid < 0).sum())
    counted = (copies, plural(copies, "copy", "copies")), (ranges, plural(ranges, "range"))
    return [f"left out: {text} that {path} gives to no process" for count, text in counted if count]


def _spans(chosen: Mapping[Rank, Window]) -> dict[int, tuple[int, int]]:
    """Return each process's window; on several devices, from the first start to the last end."""
    spans: dict[int, tuple[int, int]] = {}
    for rank, window in chosen.items():
        low, high = spans.get(rank.pid, (window.start, window.end))
        spans[rank.pid] = (min(low, window.start), max(high, window.end))
    return spans


def _summary(job: Job, exports: Sequence[NsysExport], findings: Sequence[Finding]) -> Document:
    """Return totals of the whole capture and all calls of the host, computed when shown."""
    ranked = {(r.rank.file, r.rank.pid, r.rank.device): r.rank.name for r in job.ranks}
    without_rank = "" if job.reading.ranks else "-"
    totals = [
        (name, total)
        for file, export in enumerate(exports)
        for total in export.kernel_totals(-_FAR, _FAR, by_namespace(export.full_names(), job.reading))
        if (name := ranked.get((file, total.pid, total.device), without_rank))
    ]
    calls = [call for file, export in enumerate(exports) for call in _calls(job, file, export)]
    return views.summary(job, totals, calls, findings)


def _calls(job: Job, file: int, export: NsysExport) -> list[tuple[str, ApiTotal]]:
    """Return (rank, call) of one file's processes inside their windows."""
    windows = {r.rank: r.lane.window for r in job.ranks if r.rank.file == file}
    if not windows:
        return []
    names: dict[int, str] = {}
    for rank in windows:
        names[rank.pid] = f"{names[rank.pid]}, {rank.name}" if rank.pid in names else rank.name
    return [(names[row.pid], row) for row in export.api_totals(_spans(windows)) if row.pid in names]


def scrub(path: Path, out: Path | None, clean: Scrub, *, in_place: bool = False, force: bool = False) -> Scrubbed:
    """Write a clean copy and return what was removed; another file is only replaced if forced, this one if asked."""
    if path.is_dir():
        raise PerfgateError("nsys-scrub", "it is a folder", fix="name one export in it", place=str(path))
    if in_place and out is not None:
        raise PerfgateError("nsys-scrub", "--in-place and --output are two targets", fix="drop one of them")
    target = path if in_place else out or path.with_name(f"{path.stem}.clean{path.suffix}")
    if not in_place and target.resolve() == path.resolve():
        raise PerfgateError("nsys-scrub", f"{target} is the export itself", fix="ask for it with --in-place")
    if not in_place and target.exists() and not force:
        raise PerfgateError("nsys-scrub", f"{target} exists", why="it would be lost", fix="--force, or --output PATH")
    return clean(path, target)
