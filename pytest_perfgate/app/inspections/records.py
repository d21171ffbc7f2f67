"""Records of runs as files: shown, held against limits, compared case by case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.core.analysis.runs import compared, comparison_table, dropped, metrics_of_run
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import RunReport

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
            problems=tuple(p for case in run.cases for p in case.problems),
            window=run.started,
        )

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        del options
        old, new = self._joined(before), self._joined(after)
        title = f"{_names(before)} against {_names(after)}"
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


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)
