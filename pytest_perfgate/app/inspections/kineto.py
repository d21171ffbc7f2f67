"""Traces of PyTorch's profiler: one, one a rank, or two to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.app.inspections.kineto_analysis import Seen, analysis_of, replay_text
from pytest_perfgate.app.inspections.kineto_comparison import comparison_of
from pytest_perfgate.app.inspections.kineto_options import OPTIONS, parse_options
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
    views = (
        "report",
        "timeline",
        "steps",
        "categories",
        "ops",
        "arguments",
        "kernels",
        "roofline",
        "impact",
        "fusion",
        "backward",
        "findings",
        "ranks",
        "tracelens",
        "stack",
        "selection",
        "tree",
        "replay",
        "fair",
        "rough",
    )
    options = OPTIONS

    def __init__(
        self, read: Read, recognise: Recognise, catalogue: Callable[[], Catalogue], replay: WriteReplay
    ) -> None:
        self._read = read
        self._recognise = recognise
        self._catalogue = catalogue
        self._replay = replay
        self.operators: Mapping[str, Callable[..., Work]] = {}
        """Work of the user's operators, filled from ``pytest_perfgate_operators``."""

    def recognises(self, path: Path, head: bytes) -> bool:
        return self._recognise(path, head)

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        traces = self.traces(paths)
        asked = parse_options(options, self.operators)
        surveys = [survey(trace, asked.settings) for trace in traces]
        made = analysis_of(surveys, asked, self._catalogue())
        if asked.replay:
            self._replay(Path(asked.replay), replay_text(Seen(surveys[0], asked, self._catalogue())))
        return made

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        asked = parse_options(options, self.operators)
        sides = []
        for side, paths, device in (("reference", before, asked.reference), ("target", after, "")):
            traces = self.traces(paths)
            if len(traces) != 1:
                what = f"the {side} has {len(traces)} ranks"
                raise PerfgateError("trace-ranks", what, mend="compare one rank with one rank")
            one = replace(asked, device=device) if device else asked
            sides.append(Seen(survey(traces[0], asked.settings), one, self._catalogue()))
        return comparison_of(*sides)

    def traces(self, paths: Sequence[Path]) -> tuple[Trace, ...]:
        """Every trace in these files, in the order of ranks."""
        found = [trace for path in paths for trace in self._read(path)]
        owner: dict[int, str] = {}
        for trace in found:
            if trace.rank is None or len(found) == 1:
                continue
            if trace.rank in owner:
                both = f"{owner[trace.rank]} and {trace.path}"
                raise PerfgateError("trace-ranks", f"rank {trace.rank} is claimed by {both}")
            owner[trace.rank] = trace.path
        return tuple(sorted(found, key=lambda t: (t.rank is None, t.rank or 0)))
