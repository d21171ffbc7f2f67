"""The content of an accepted line, and changes that widen it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan, nan
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.context import BUILT_IN, JudgeContext, limited, surroundings
from pytest_perfgate.core.judge.samples import scatter_of
from pytest_perfgate.core.render.words import FigureLevel
from pytest_perfgate.model.measurement import DIRTY, Baseline, HistoryEntry, Measurement, short_commit
from pytest_perfgate.model.plan import ANCHOR, Compare, Outcome
from pytest_perfgate.model.values import Better, first_of, value

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Figure, FigureName, Labels, Levels, Metric
    from pytest_perfgate.model.verdict import CaseReport


@value
class Signature:
    """The author, day, commit, reason and end of an acceptance."""

    who: str = ""
    when: str = ""
    why: str = ""
    commit: str = ""
    expires: str = ""
    started: str = ""
    """When the accepted run began; it identifies the run."""
    named: bool = False
    """Whether the case was named itself, so that an end applies to it even if its line had none."""
    anchor: bool = False
    """Whether the drift of the line is counted anew from the accepted time."""
    creep: float = ANCHOR
    """How far accepted steps may take a line from its anchor, as a fraction."""
    same_code: bool = False
    """Whether the line's commit and this one differ only in accepted lines and pages."""
    pages: str = ""
    """The pages that differ between the line's commit and this one, in words."""
    untracked: tuple[str, ...] = ()
    """Files beside the code that no commit holds and git does not ignore, which code may read."""


@value
class FigureStep:
    """The change of one figure of a line, other than time, by accepting."""

    before: Figure | None
    after: Figure | None
    """None if the figure leaves the line."""
    asks: bool = False
    """Whether it needs a reason, because it got worse or is missing."""
    better: bool = False

    @property
    def key(self) -> tuple[str, Labels]:
        figure = self.after or self.before
        assert figure is not None
        return figure.name, figure.labels


def figure_levels(
    entries: Sequence[HistoryEntry], line: Baseline, levels: Levels | None = None
) -> Iterator[tuple[Sequence[HistoryEntry], list[float], Baseline, FigureLevel]]:
    """Yield each accepted figure, with the runs that have it, its value in each run, and the accepted value."""
    for figure in line.figures:
        at = (figure.name, figure.labels)
        numbers = levels[at] if levels else [_number(s, at) for s in entries]
        own = [entry for entry, number in zip(entries, numbers) if not isnan(number)]
        present = [number for number in numbers if not isnan(number)]
        if not present:
            continue
        low, kind = min(figure.value, *present), BUILT_IN.get(figure.name)
        stated = (m.better for entry in reversed(entries) for m in entry.metrics if (m.name, m.labels) == at)
        better = next(stated, None) or (kind.better if kind is not None else Better.LOWER)
        level = FigureLevel(
            title=figure.title, dimension=figure.dimension, raised=0.0 if low > 0 else 1.0 - low,
            sign=-1.0 if better is Better.HIGHER else 1.0,
            exact=kind is not None and kind.exact,
        )  # fmt: skip
        baseline = replace(line, time=figure.value + level.raised, anchor=0.0, scatter=0.0)
        yield own, [number + level.raised for number in present], baseline, level


def _number(entry: HistoryEntry, at: FigureName) -> float:
    return next((m.value for m in entry.metrics if (m.name, m.labels) == at), nan)


def line_of(measurement: Measurement, time: Metric, entries: Sequence[HistoryEntry], signature: Signature) -> Baseline:
    scatter, count = scatter_of(entries, time.value)
    line, slowed = signed_line(measurement, signature), bool(limited(measurement.processes))
    return replace(line, time=time.value, scatter=scatter, runs=max(1, count), limited=slowed)


def signed_line(measurement: Measurement, signature: Signature) -> Baseline:
    """Return a line under this signature without any value."""
    return Baseline(
        key=measurement.key,
        device=measurement.device.key,
        commit=short_commit(signature.commit),
        who=signature.who,
        when=signature.when,
        why=signature.why,
        expires=signature.expires,
        identity=measurement.identity,
        surroundings=surroundings(measurement),
    )


_NAMED = 3

ANCHOR_DAYS = 90
"""The days for which drift is counted from one accepted time."""


def anchored(line: Baseline, before: Baseline | None, signature: Signature) -> Baseline:
    """Return the line with the accepted time from which its drift is counted: the oldest of the last ninety days."""
    # The count begins anew with a faster time, and with one that is measured differently.
    if before is None or signature.anchor or _measured_otherwise(line, before):
        return replace(line, anchor=0.0, anchored="")
    since = before.anchored or before.when
    old = _days(since, signature.when) > ANCHOR_DAYS
    time, day = (before.time, before.when) if old or not before.anchor else (before.anchor, before.anchored)
    if line.time <= time or not day:
        return replace(line, anchor=0.0, anchored="")
    return replace(line, anchor=time, anchored=day[:10])


def goes_too_far(line: Baseline | None, measurement: Measurement, time: float, context: JudgeContext) -> bool:
    """Return whether CI would fail the acceptance of this time in the place of a line, for the sum of its steps."""
    if line is None or line.local or line.time >= time:
        return False
    accepted = replace(line, time=time, identity=measurement.identity)
    return anchored(accepted, line, Signature(when=context.today)).drift_from_anchor > context.anchor


def _measured_otherwise(line: Baseline, before: Baseline) -> bool:
    now, then = line.identity, before.identity
    return now is not None and then is not None and bool(now.differences(then))


def _days(then: str, now: str) -> int:
    """Return the days between two ISO dates; 0 if one of them is not a date."""
    first, last = _day_number(then[:10]), _day_number(now[:10])
    return last - first if first and last else 0


def _day_number(day: str) -> int:
    """Return an ISO date as a day number, for years that start in March and end with the leap day; 0 for no date."""
    parts = day.split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return 0
    year, month, of_month = map(int, parts)
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + of_month


def fixed_anchor(named: str, release: str) -> str:
    """Return the revision of the second anchor: the named one, else the last release; ``none`` switches it off."""
    return "" if named == "none" else named or release


def with_run(before: Baseline, time: float, measurement: Measurement, signature: Signature) -> Baseline:
    """Return the line with the mean over one more run, and the scatter after it."""
    n, step = before.runs, math.log(time / before.time)
    variance = ((n - 1) * before.scatter**2 + step**2 * n / (n + 1)) / n
    after = replace(
        before,
        time=before.time * math.exp(step / (n + 1)),
        scatter=math.sqrt(variance),
        runs=n + 1,
        detects=math.expm1(math.log1p(before.detects) * n / (n + 1)),
        commit=_commit(before, signature),
        identity=before.identity or measurement.identity,
        surroundings=surroundings(measurement),
        counted=max(signature.started, before.counted),
    )
    return carried(after, before, signature)


def counts_run(before: Baseline, signature: Signature, same: str) -> str:
    """Return why the line counts this run already, "" if it does not; ``same`` says what is equal in both, or ""."""
    if signature.started and signature.started <= before.counted:
        return f"it began at {signature.started}; the line already counts runs up to {before.counted}"
    # A device's clock ticks, so a run of another commit, or a later one, may have the same value.
    commits = {short_commit(before.commit), short_commit(signature.commit)} - {""}
    return f"the line was made from {same}" if same and not before.counted and len(commits) < 2 else ""


def why_separate(before: Baseline, measurement: Measurement, signature: Signature, *, still: bool, far: bool) -> str:
    """Return why a run is not one more of a line's; "" if it is."""
    # Another end needs a reason. Another time counts only for the same code with the same software, and one that is
    # slower by more than the limit only with a reason: judged by the line before, it would fail.
    if moves_end(before, signature) and not signature.why:
        return "its end would change"
    if still:
        return ""
    committed = bool(before.commit) and not before.commit.endswith(DIRTY)
    if not committed or not (signature.same_code or short_commit(before.commit) == short_commit(signature.commit)):
        return f"its code may differ from that of {before.commit or 'the line'}"
    if names := signature.untracked:
        return f"{first_of(names, _NAMED)} {'is' if len(names) == 1 else 'are'} in no commit"
    then = before.surroundings
    differences = then.differences(surroundings(measurement)) if then is not None else ()
    if differences:
        return first_of([f"{name} {was} -> {now}" for name, was, now in differences], _NAMED)
    if far and not signature.why:
        return "; ".join(["slower by more than its limit", *filter(None, [signature.pages])])
    return ""


def carried(line: Baseline, before: Baseline, signature: Signature) -> Baseline:
    """Return a line without a new decision: it keeps its end, and without a new reason the old one with its author."""
    # It also keeps the day, or the old reason would look like a new one.
    line = replace(line, expires=signature.expires if moves_end(before, signature) else before.expires)
    if (before.why or before.expires) and not signature.why:
        return replace(line, who=before.who, when=before.when, why=before.why)
    return replace(line, who=signature.who or before.who, when=signature.when or before.when, why=signature.why)


def moves_end(before: Baseline, signature: Signature) -> bool:
    """Return whether an acceptance gets another end; among many cases, only those that have one."""
    return signature.expires not in {"", before.expires} and (bool(before.expires) or signature.named)


def renewed(before: Baseline, signature: Signature) -> Baseline:
    """Return the same time, accepted again under this signature; without a new end it does not expire."""
    return replace(
        replace(before, anchor=0.0, anchored="") if signature.anchor else before,
        commit=_commit(before, signature),
        when=signature.when,
        who=signature.who,
        why=signature.why,
        expires=signature.expires,
    )


def committed(before: Baseline, signature: Signature) -> Baseline:
    """Return the line with a commit that can be built; a reason given for other lines is not written into it."""
    return carried(replace(before, commit=_commit(before, signature)), before, replace(signature, why=""))


def _commit(before: Baseline, signature: Signature) -> str:
    """Return the line's commit; if its tree was never committed, the commit that measures the same."""
    clean = signature.commit and not signature.commit.endswith(DIRTY)
    return short_commit(signature.commit) if clean and before.commit.endswith(DIRTY) else before.commit


LIMIT = 0.05
"""How far a case may drift from its anchor, however small the steps."""

RECENT = 3
"""The number of newest runs whose median is the present time, since a single one may be slow."""


@value
class Drift:
    """How far a case has drifted from its anchor."""

    anchor: float
    now: float
    limit: float
    steps: int
    """Runs since the anchor."""
    largest: float
    """The largest single step among them, as a fraction."""

    @property
    def change(self) -> float:
        return self.now / self.anchor - 1

    @property
    def alarms(self) -> bool:
        return self.change > self.limit

    @property
    def sentence(self) -> str:
        """Return what happened; "" if the drift is within the limit."""
        if not self.alarms:
            return ""
        small = "no single step exceeds the limit" if self.largest <= self.limit else "a single step exceeds the limit"
        newest = "the newest run" if self.steps == 1 else f"the median of the newest {min(self.steps, RECENT)} runs"
        return f"{newest}, against the anchor; {small}"


def drift(entries: Sequence[HistoryEntry], anchor: float, limit: float, since: str = "") -> Drift | None:
    """Compare the newest runs with the anchor's time; ``None`` before there is one."""
    # ``since`` is the commit of the anchor: if a run has it, only later ones count.
    times = [entry.time for entry in _after(entries, since)]
    if not times or anchor <= 0:
        return None
    steps = [now / then - 1 for then, now in zip([anchor, *times], times)]
    return Drift(anchor=anchor, now=median(times[-RECENT:]), limit=limit, steps=len(times), largest=max(steps))


def _after(entries: Sequence[HistoryEntry], commit: str) -> Sequence[HistoryEntry]:
    at = next((at for at, entry in enumerate(entries) if commit and entry.commit.startswith(commit)), None)
    return entries if at is None else entries[at + 1 :] or entries[at:]


def unexplained(line: Baseline, judged: Baseline | None, noise: float) -> bool:
    """Return whether a line of the change is slower, or measured differently, without a new reason."""
    if judged is None or judged.local or line.explains(judged):
        return False
    return line.time > judged.time * (1 + noise) or other_identity(line, judged)


def other_identity(line: Baseline, before: Baseline | None) -> bool:
    """Return whether two lines were measured differently, as far as both record how."""
    if before is None or before.identity is None or line.identity is None:
        return False
    return line.identity != before.identity or line.limited != before.limited


def uncompared(report: CaseReport, before: Baseline, time: Metric, today: str) -> bool:
    """Return whether the gate did not compare with this line, for example because of its versions."""
    # A line that was accepted from this very run, with a reason, is comparable again.
    of_time = (v for v in report.verdicts if v.limit.compare is Compare.FIGURE)
    refused = (v.baseline for v in of_time if v.outcome is Outcome.UNBASELINED)
    judged = next((line for line in refused if line is not None), None)
    if judged is None or (judged.expires and judged.expires < today[:10]):
        return False
    return not before.explains(judged) or f"{time.value:.5g}" != f"{before.time:.5g}"


_ROUNDING = 1e-4

_BETWEEN = 2.0
"""Standard deviations between runs that count as noise."""

_KNOWN = 2
"""The number of runs from which their scatter is known."""

_UNKNOWN = 0.03
"""The usual difference between two runs of the same code, for a line of a single run."""


def between_runs(line: Baseline) -> float:
    """Return the relative difference that two runs of the same code may have."""
    return _BETWEEN * line.scatter if line.runs >= _KNOWN else max(_BETWEEN * line.scatter, _UNKNOWN)


def noise(before: Baseline, time: Metric) -> float:
    """Return the relative difference that is within noise: of this run, and between runs."""
    within = (time.high - time.low) / (2 * time.value)
    return max(math.hypot(within, between_runs(before)), _ROUNDING)


def shift(before: Baseline, time: Metric) -> float:
    """Return how far a time lies from the line, as a fraction; 0 within its noise."""
    apart = time.value / before.time - 1
    return apart if abs(apart) > noise(before, time) else 0.0


_MOVED = frozenset({Outcome.REGRESSED, Outcome.IMPROVED, Outcome.MOVED})


def judged_moved(report: CaseReport, before: Baseline) -> bool:
    """Return whether the verdicts found this line slower or faster, with more evidence than one interval."""
    return not (_MOVED | {Outcome.SUSPECT}).isdisjoint(_slowdowns(report, before))


def unconfirmed(report: CaseReport, before: Baseline, time: Metric) -> bool:
    """Return whether a time lies off its line, and the run does not report that it moved."""
    # Its slowdown passed, or the accepted run could not have detected as much. An acceptance for a while is left out:
    # it waits for a faster time.
    apart, outcomes = shift(before, time), _slowdowns(report, before)
    moved = not _MOVED.isdisjoint(outcomes)
    return (
        bool(apart) and not (before.expires or moved) and (outcomes == {Outcome.PASSED} or abs(apart) <= before.detects)
    )


def improved(report: CaseReport) -> bool:
    """Return whether the run reported the time of a case as faster."""
    return any(v.outcome is Outcome.IMPROVED and v.limit.metric == "slowdown" for v in report.verdicts)


def _slowdowns(report: CaseReport, before: Baseline) -> set[Outcome]:
    """Return the outcomes of a case's slowdowns; none of a line that was accepted later."""
    if report.baseline is not None and report.baseline.time != before.time:
        return set()
    return {v.outcome for v in report.verdicts if v.limit.metric == "slowdown"}
