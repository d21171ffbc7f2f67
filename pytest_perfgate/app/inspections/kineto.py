"""Traces of PyTorch's profiler: one, one a rank, or two to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_perfgate.app.inspections.kineto_analysis import TABLES, analysis_of, job_analysis, replay_text
from pytest_perfgate.app.inspections.kineto_comparison import comparison_of
from pytest_perfgate.app.inspections.kineto_job import Lens, Spread, job_of, refuse_twice
from pytest_perfgate.app.inspections.kineto_options import OPTIONS, parse_options, refuse_workers
from pytest_perfgate.app.inspections.kineto_seen import Seen
from pytest_perfgate.core.analysis.trace.scoped import MOST
from pytest_perfgate.core.analysis.trace.survey import survey
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Catalogue
from pytest_perfgate.model.trace import Trace
from pytest_perfgate.model.work import Work

Read = Callable[[Path], tuple[Trace, ...]]
WriteReplay = Callable[[Path, str], Path]
Recognise = Callable[[Path, bytes], bool]


class Kineto:
    """The inspector of PyTorch traces."""

    name = "kineto"
    views = ("report", *TABLES, "findings", "tracelens", "stack", "tree", "replay", "fair", "rough")
    options = OPTIONS

    def __init__(
        self,
        read: Read,
        recognise: Recognise,
        catalogue: Callable[[], Catalogue],
        replay: WriteReplay,
        spread: Callable[[str], Spread],
        project: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._read = read
        self._recognise = recognise
        self._catalogue = catalogue
        self._replay = replay
        self._spread = spread
        self._project = project
        self.operators: Mapping[str, Callable[..., Work]] = {}
        """Work of the user's operators, filled from ``pytest_perfgate_operators``."""

    def recognises(self, path: Path, head: bytes) -> bool:
        return self._recognise(path, head)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        try:
            return self._inspected(paths, options)
        except MemoryError as full:
            raise PerfgateError("trace-memory", "the memory is full", place=str(paths[0])) from full

    def _inspected(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        asked = parse_options(options, self.operators, self._project())
        refuse_twice(paths)
        lens = Lens(read=self._read, catalogue=self._catalogue(), asked=asked, most=MOST // max(len(paths), 1))
        if len(paths) == 1:
            refuse_workers(asked, "one file was given")
            traces = self._read(paths[0])
            if len(traces) == 1:
                return self._alone(lens.seen(traces[0]))
            job = job_of(lens.figures(trace, at) for at, trace in enumerate(traces))
        else:
            spread = self._spread(asked.workers)
            job = job_of(one for part in spread(lens.ranks_of, tuple(enumerate(paths))) for one in part)
        again = partial(lens.again, job.measured)
        if asked.replay:
            self._replay(Path(asked.replay), replay_text(next(again())))
        return job_analysis(job, again, bool(asked.compat))

    def _alone(self, seen: Seen) -> Analysis:
        if seen.asked.replay:
            self._replay(Path(seen.asked.replay), replay_text(seen))
        return analysis_of(seen)

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        asked = parse_options(options, self.operators, self._project())
        refuse_workers(asked, "a comparison is of two")
        sides = []
        for side, paths, device in (("reference", before, asked.reference), ("target", after, "")):
            traces = [trace for path in paths for trace in self._read(path)]
            if len(traces) != 1:
                what = f"the {side} has {len(traces)} ranks"
                raise PerfgateError("trace-ranks", what, mend="compare one rank with one rank")
            one = replace(asked, device=device) if device else asked
            sides.append(Seen(survey(traces[0], asked.settings), one, self._catalogue()))
        return comparison_of(*sides)
