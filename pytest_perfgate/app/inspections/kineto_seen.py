"""One trace in its window with what is worked out of it once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from pytest_perfgate.app.inspections.kineto_options import Asked
from pytest_perfgate.core.analysis.trace.collectives import collectives
from pytest_perfgate.core.analysis.trace.findings import findings
from pytest_perfgate.core.analysis.trace.job import RankFigures
from pytest_perfgate.core.analysis.trace.kernels import KernelRow, kernels
from pytest_perfgate.core.analysis.trace.launched import steps_of, windows_of
from pytest_perfgate.core.analysis.trace.metrics import (
    kernel_metrics,
    operator_metrics,
    scopes_of,
    step_metrics,
    timeline_metrics,
)
from pytest_perfgate.core.analysis.trace.operators import OperatorRow, operators
from pytest_perfgate.core.analysis.trace.peaks import given_roof, sheet_roof
from pytest_perfgate.core.analysis.trace.row_metrics import impact_metrics, row_metrics
from pytest_perfgate.core.analysis.trace.scoped import MOST, scoped_metrics
from pytest_perfgate.core.analysis.trace.survey import Survey, pooled, through, timelines
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.analysis.trace.utilisation import utilisation
from pytest_perfgate.core.analysis.trace.workless import without_operators
from pytest_perfgate.model.device import DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Labels, MetricSet, labels
from pytest_perfgate.model.ports import Catalogue
from pytest_perfgate.model.problem import Finding, Problem


class Seen:
    """A survey, and lazily its tables, its roof, its findings, its figures."""

    def __init__(self, survey: Survey, asked: Asked, catalogue: Catalogue) -> None:
        self.whole = survey
        self.asked = asked
        self._catalogue = catalogue

    @cached_property
    def windows(self) -> tuple[Survey, ...]:
        """The stretches asked for; the whole trace where none was."""
        found = windows_of(self.whole, self.asked.window)
        return tuple(through(self.whole, found)) or (self.whole,)

    @cached_property
    def steps(self) -> tuple[Survey, ...]:
        """The trace through each of its steps."""
        return tuple(through(self.whole, steps_of(self.whole)))

    @property
    def survey(self) -> Survey:
        return self.windows[0] if len(self.windows) == 1 else self.whole

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
        """Peaks as given, else the catalogue's for the named device, else for what the trace says it ran on."""
        given = given_roof(self.asked.peak, self.asked.bandwidth)
        if given is not None:
            return given
        devices = set(self.survey.trace.devices)
        name = self.asked.device or (devices.pop() if len(devices) == 1 else "")
        spec = self._catalogue.lookup(name) if name else None
        if spec is None and self.asked.device:
            spec = self._meant(self.asked.device)
        return sheet_roof(spec, self.asked.rates) if spec else None

    def _meant(self, asked: str) -> DeviceSpec:
        """The one device whose name begins like this; an error names those that share a word with it."""
        whole = asked.strip().casefold()
        specs = [spec for spec in self._catalogue if whole and spec.name.casefold().startswith(whole)]
        if len(specs) == 1:
            return specs[0]
        words = set(whole.split())
        names = [spec.name for spec in specs or self._catalogue if specs or words & set(spec.name.casefold().split())]
        mend = f"one of: {', '.join(names[:8])}" if names else "perfgate devices lists the catalogue"
        what = f"{asked!r} may be several devices" if specs else f"no device {asked!r}"
        raise PerfgateError("trace-option", f"{what} in the catalogue", mend=mend)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return findings(self.survey, self.line, self.rows, self.kernels, self.roof)

    def metrics(self, scopes: Sequence[Labels] = (), most: int = MOST) -> MetricSet:
        """Its figures under these scopes: bare, and under its rank where that is known, unless they say otherwise."""
        scopes = scopes or scopes_of(self.whole.trace.rank)
        several = len(self.windows) > 1
        inner = self.windows if several else self.steps if not self.asked.window else ()
        parts = step_metrics(inner, scopes) | scoped_metrics(self.survey, inner, scopes, most)
        rates = utilisation(self.survey, self.rows, inner, self.roof, scopes)
        named = operator_metrics(self.rows, self.roof, scopes, on_host=self.survey.on_host)
        whole = (
            timeline_metrics(self.survey, scopes)
            | rates
            | (named if self.rows else without_operators(self.survey, scopes))
            | kernel_metrics(self.kernels, self.survey, scopes)
            | self._of_rows(scopes, most)
        )
        return _of_each(whole, parts) if several else whole | parts

    def _of_rows(self, scopes: Sequence[Labels], most: int) -> MetricSet:
        """Figures of single rows, unless limits are judged that name none."""
        if not self.asked.rows:
            return MetricSet()
        total = self.line.total if self.line else 0
        found = row_metrics(self.survey, self.rows, self.kernels, self.roof, scopes, most)
        return found | impact_metrics(self.rows, self.asked.settings.top, self.roof, total, scopes)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why no limit on this trace may be kept or broken."""
        coverage, unread, floor = self.survey.coverage, self.survey.unread, self.asked.settings.floor
        said = []
        if coverage is not None and coverage < floor:
            what = f"only {coverage:.1%} of the GPU time is linked to a launch; the floor is {floor:.0%}"
            said.append(("trace-coverage", what))
        if unread > 1 - floor:
            what = f"{unread:.1%} of the GPU events or their time has no readable duration; the floor is {floor:.0%}"
            said.append(("trace-durations", what))
        place = (("trace", self.whole.trace.path),)
        return tuple(Problem(code=code, what=what, evidence=place, retry=False) for code, what in said)

    def figures(self, number: int, most: int = MOST) -> RankFigures:
        """What is kept of it as one of several ranks; one that does not say its rank has its place among the files."""
        said = self.whole.trace.rank
        rank = said if said is not None else number
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
            placed=said is None,
            world=self.whole.trace.world or 0,
        )


def _of_each(whole: MetricSet, parts: MetricSet) -> MetricSet:
    """Of several windows the figures of each: those of the whole trace, where a window has them too, are no answer."""
    stepped = {"step"}
    names = {m.name for m in (*parts.metrics, *whole.metrics) if stepped <= dict(m.labels).keys()}
    kept = (m for m in whole.metrics if m.name not in names or stepped <= dict(m.labels).keys())
    return MetricSet(metrics=tuple(kept), absent=whole.absent) | parts
