"""Ranks of a job, one trace at a time: what each comes to is kept, the trace is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from pytest_perfgate.app.inspections.kineto_options import Asked
from pytest_perfgate.app.inspections.kineto_seen import Seen
from pytest_perfgate.core.analysis.trace.job import Job, RankFigures
from pytest_perfgate.core.analysis.trace.survey import survey
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.ports import Catalogue
from pytest_perfgate.model.trace import Trace
from pytest_perfgate.model.values import value

Numbered = tuple[int, Path]
Ranks = tuple[RankFigures, ...]
Spread = Callable[[Callable[[Numbered], Ranks], Sequence[Numbered]], Iterable[Ranks]]
"""Applies a function to every file, here or on a cluster; the answers may come in any order."""


@value
class Lens:
    """How a trace is looked at, wherever that happens."""

    read: Callable[[Path], tuple[Trace, ...]]
    catalogue: Catalogue
    asked: Asked
    most: int
    """Figures of steps that one rank may have."""

    def seen(self, trace: Trace) -> Seen:
        return Seen(survey(trace, self.asked.settings), self.asked, self.catalogue)

    def figures(self, trace: Trace, number: int) -> RankFigures:
        """What is kept of a trace, the so-manieth among the files."""
        return self.seen(trace).figures(number, self.most)

    def ranks_of(self, numbered: Numbered) -> Ranks:
        """The ranks in one file: a function of nothing but its arguments, so any process may run it."""
        number, path = numbered
        return tuple(self.figures(trace, number + at) for at, trace in enumerate(self.read(path)))

    def again(self, job: Job) -> Iterator[Seen]:
        """The traces once more, in the order of ranks."""
        path: str = ""
        traces: tuple[Trace, ...] = ()
        for one in job.ranks:
            if one.path != path:
                path, traces = one.path, self.read(Path(one.path))
            fitting = [trace for trace in traces if trace.rank in (one.rank, None)]
            if not fitting:
                raise PerfgateError("trace-ranks", f"rank {one.rank} is no longer in the file", place=path)
            yield self.seen(fitting[0])


def refuse_twice(paths: Sequence[Path]) -> None:
    """One file under two names or none of its own would be two ranks of one job."""
    met: dict[Path, Path] = {}
    for path in paths:
        whole = path.resolve()
        if whole in met:
            what = f"{path} is given twice" if met[whole] == path else f"{met[whole]} and {path} are one file"
            raise PerfgateError("trace-ranks", what)
        met[whole] = path


def job_of(ranks: Iterable[RankFigures]) -> Job:
    """The ranks joined; nobody's order matters."""
    return reduce(or_, (Job(ranks=(one,)) for one in ranks), Job()).settled
