"""The block of a failing test, and the lines on what accepting it would write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.acceptance import TOO_FAR, Change, Proposal
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.render.text import wrapped
from pytest_perfgate.core.render.words import (
    bound_text,
    by_floor,
    change_of,
    change_text,
    detectable,
    display_width,
    edges,
    few_rounds,
    figure_text,
    plural,
    printable,
    quantity,
    short_name,
    shown,
    signed,
    value_text,
)
from pytest_perfgate.model.measurement import Baseline, Measurement, short_commit
from pytest_perfgate.model.metric import Figure, Severity
from pytest_perfgate.model.plan import CHANGES, Compare, Limit, Outcome
from pytest_perfgate.model.values import Dimension, first_of, grouped, regex
from pytest_perfgate.model.verdict import THEN, CaseReport, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.accepted_line import FigureStep

WIDTH = 100

_SEEN, _FEW, _ALSO, _NO_CHANGE = 3, 3, 20, -2.0

_QUIET = frozenset({Outcome.PASSED, Outcome.NOT_APPLICABLE})
_DECIDED = frozenset({Outcome.PASSED, Outcome.IMPROVED, Outcome.REGRESSED, Outcome.BROKEN})
_LOST = frozenset({Outcome.NOT_MEASURED, Outcome.INVALID})
_REFERENCE = regex(r"(?i)(?<=@)|(?<=[#!&$])(?=\d)|(?<=[~%])(?=\w)|(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)")
_OWN_TIME = regex(r"^(perfgate accept (?:--from RECORD )?)[^-\s].*")
_ORDER = list(Outcome)
_WITHOUT = {
    Outcome.NOT_APPLICABLE: "not for this device",
    Outcome.UNBASELINED: "nothing to compare with",
    Outcome.INVALID: "not to be trusted",
}


def render_block(report: CaseReport, width: int = WIDTH, command: Callable[[str], str] = str) -> str:
    """Return a case's verdicts, the worst first, with now, then, why and next; passed ones if all passed."""
    # ``command`` rewrites a command for the folder in which the reader is.
    return shown(lambda: _render(report, width, command), lambda why: _bare(report, why))


def render_blocks(
    reports: Sequence[CaseReport], width: int = WIDTH, command: Callable[[str], str] = str, *, brief: bool = False
) -> Iterator[str]:
    """Yield the blocks of several cases, one for all that lack a figure or a line alike; ``brief`` joins undecided."""
    open_ = [r for r in reports if brief and r.worst is Outcome.UNDECIDED]
    last = sorted(open_, key=slower_by, reverse=True)[_FEW:]
    apart = {id(report) for report in last}
    own = [report for report in reports if id(report) not in apart]
    groups = grouped(own, lambda report: lost_by(report) or (report.key, report.device))
    for first, *others in groups.values():
        also = _others([short_name(r.key) for r in others], width) if others else []
        step = (lambda text: command(_of_all(text))) if others else command
        yield "\n".join((render_block(first, width, step).rstrip("\n"), *also))
    if last:
        changes = (f" {signed(slower_by(r))}" if slower_by(r) > _NO_CHANGE else "" for r in last)
        names = [f"{short_name(report.key)}{change}" for report, change in zip(last, changes)]
        yield "\n".join(("UNDECIDED", *_others(names, width), "  next  perfgate report shows each"))


def slower_by(report: CaseReport) -> float:
    """Return the largest change of a case's figures, so that the slowest come first."""
    return max((v.metric.value for v in report.verdicts if v.metric and v.limit.metric in CHANGES), default=_NO_CHANGE)


def _others(names: Sequence[str], width: int) -> list[str]:
    return _labelled("also", f"{plural(len(names), 'more case')}: {first_of(names, _ALSO)}", width)


def lost_by(report: CaseReport) -> tuple[object, ...]:
    """Return why a case has no figure, none to trust, or no line, as its block says it; empty for any other case."""
    notable = [v for v in report.verdicts if v.outcome not in _QUIET]
    if not all(v.outcome in _LOST or (v.outcome is Outcome.UNBASELINED and v.baseline is None) for v in notable):
        return ()
    return tuple((v.outcome, v.limit.metric, v.sentence, v.evidence, *map(_of_all, v.next)) for v in notable)


def _of_all(step: str) -> str:
    """Return a step of one case as that of all cases in its block."""
    return _OWN_TIME.sub(r"\1--new", step)


def _bare(report: CaseReport, why: str) -> str:
    """Return a case that cannot be rendered: its outcome under each limit, and the reason."""
    heads = "".join(
        f"{v.outcome.name.replace('_', ' '):<9}  {printable(str(report.key))}   limit {printable(str(v.limit.text))}\n"
        for v in report.verdicts
    )
    return f"{heads or printable(str(report.key))}\n  why   {printable(why)}\n".replace("\n\n", "\n")


def _render(report: CaseReport, width: int, command: Callable[[str], str]) -> str:
    ordered = sorted(report.verdicts, key=lambda v: -_ORDER.index(v.outcome))
    notable = [v for v in ordered if v.outcome not in _QUIET] or ordered
    column = max([9, *(len(verdict.outcome.name) for verdict in notable)])
    lines = [line for verdict in notable for line in _head(report, verdict, width, column)]
    lines += (line for label, text in _facts(report, notable) for line in _labelled(label, text, width))
    lines += _next_lines(notable, command)
    return "\n".join(lines) + "\n"


def _facts(report: CaseReport, notable: list[Verdict]) -> Iterator[tuple[str, str]]:
    """Yield what stands between the heads and the next steps, each with its label, in the order of the block."""
    if report.measurement is not None:
        yield from _now(report.measurement)
    baseline = next((v.baseline for v in notable if v.baseline), None)
    yield from _then(baseline) if baseline is not None else _base_times(notable)
    yield from (("why", text) for text in _reasons(notable))
    if report.measurement is not None and not all(v.outcome in _QUIET for v in notable):
        yield from notable_findings(report.measurement)


def _next_lines(notable: list[Verdict], command: Callable[[str], str]) -> Iterator[str]:
    """Yield each next step once; of the same command with several numbers of rounds, the one with the most."""
    steps: dict[str, str] = {}
    for step in (command(one) for v in notable for one in v.next):
        rerun = step.partition(" --perfgate-rounds=")[0]  # the most rounds decide every limit
        steps[rerun] = max(steps.get(rerun, ""), step, key=lambda text: (len(text), text))
    for at, step in enumerate(steps.values()):
        yield f"  {'' if at else 'next':<4}  {printable(step)}"


def unlinked(text: str) -> str:
    """Return text of an untrusted record without mentions, links, and references to issues for use in discussions."""
    return _REFERENCE.sub("\u200b", text)


def _head(report: CaseReport, verdict: Verdict, width: int, column: int) -> Iterator[str]:
    """Yield outcome, name, figure and limit; a long name gets a line of its own and stays whole."""
    start = f"{verdict.outcome.name.replace('_', ' '):<{column}}  {short_name(report.key)}"
    limit = by_floor(_limit(verdict.limit), verdict.raised)
    figures = f"{_figure(verdict, _rests_on(verdict, report.measurement))}   limit {limit}"
    if display_width(start) + 2 + display_width(figures) <= width:
        yield f"{start}  {figures}"
    else:
        yield from (start, f"  {figures}")


def _rests_on(verdict: Verdict, measurement: Measurement | None) -> str:
    """Return the evidence of a figure: rounds of two arms, else processes, else samples."""
    if verdict.rounds:
        return plural(verdict.rounds, "round")
    processes = measurement.processes if measurement else ()
    if len(processes) == 1:
        return plural(len(processes[0].durations), "sample")
    return plural(len(processes), "process", "processes") if processes else ""


def _figure(verdict: Verdict, rests_on: str) -> str:
    limit, metric = verdict.limit, verdict.metric
    name = "time" if limit.metric in CHANGES else limit.metric
    then = verdict.figure
    figure = metric or then
    labels = figure.labels if figure else limit.labels
    scope = ", ".join(f"{key}={text}" for key, text in labels)
    title = printable(f"{name}({scope})" if scope else name)
    if metric is None:
        return f"{title}  {figure_text(then, None) if then else _WITHOUT.get(verdict.outcome, 'not measured')}"
    if then is not None:
        return f"{title}  {figure_text(then, metric)}  {change_of(verdict)}".rstrip()
    change = limit.metric in CHANGES
    bounds = edges(metric, change=change, why=rests_on, limit=limit, decided=verdict.outcome in _DECIDED)
    return f"{title}  {value_text(metric, limit=limit)}  {few_rounds(verdict) or bounds}".rstrip()


def _limit(limit: Limit) -> str:
    if limit.metric in CHANGES:
        text = bound_text(limit)
    elif limit.compare is Compare.FIGURE:
        text = f"{limit.operator.value} {bound_text(limit)}"
    else:
        absolute = limit.compare is not Compare.RELATIVE
        bound = change_text(limit.bound, limit) if absolute else bound_text(limit)
        text = f"change {limit.operator.value} {bound}"
    return text if limit.source in {"marker", ""} else f"{text} ({limit.source})"


def _now(measurement: Measurement) -> Iterator[tuple[str, str]]:
    times = measurement.metrics.find("time")
    if not times or not measurement.processes:
        return
    fewest = min(len(p.durations) for p in measurement.processes)
    count = f"{plural(len(measurement.processes), 'process', 'processes')} x {plural(fewest, 'sample')}"
    parts = [quantity(times[0].value, Dimension.TIME), count, _place(measurement)]
    sol = next((m for m in measurement.metrics.metrics if m.name == "sol" and not m.labels), None)
    parts += [f"{quantity(sol.value, Dimension.FRACTION, 2)} of SOL"] if sol else []
    yield "now", "  ".join(parts)


def _place(measurement: Measurement) -> str:
    """Return the device, its clock, and whether that was locked."""
    clocks = sorted(hz for p in measurement.processes for hz in p.clock_hz)
    speed = f" at {clocks[len(clocks) // 2] / 1e6:.0f} MHz" if clocks else ""
    locked = ", locked" if measurement.identity.clocks == "lock" else ""
    return f"{printable(measurement.device.name or measurement.device.key)}{speed}{locked}"


def _base_times(verdicts: list[Verdict]) -> Iterator[tuple[str, str]]:
    """Yield the time of the other arm, if no stored baseline was used."""
    yield from [(THEN, printable(text)) for v in verdicts for label, text in v.evidence if label == THEN][:1]


def _then(baseline: Baseline) -> Iterator[tuple[str, str]]:
    text = ", ".join(filter(None, (short_commit(baseline.commit, 10), baseline.when)))
    why = f'"{printable(baseline.why)}"' if baseline.why else ""
    origin = ": ".join(filter(None, (text, why)))
    runs = f"{baseline.runs} runs" if baseline.runs > 1 else ""
    detects = f"can detect {detectable(baseline.detects)}" if baseline.detects else ""
    few = f"of {plural(baseline.processes, 'process', 'processes')}" if baseline.processes else ""
    time = quantity(baseline.time, Dimension.TIME) if baseline.time else ""
    facts = (time, origin, _steps(baseline), runs, few, detects)
    yield "then", "  ".join(filter(None, facts))


def accepted_text(line: Baseline) -> str:
    """Return an accepted time with its drift in ninety days: ``412 µs  +8.4 % since 2026-05-02``."""
    time = quantity(line.time, Dimension.TIME) if line.time else plural(len(line.figures), "figure")
    return "  ".join(filter(None, (time, _steps(line) if line.time else "")))


def _steps(line: Baseline) -> str:
    return f"{signed(line.drift_from_anchor)} since {line.anchored}" if line.anchor else ""


def _sentences(verdicts: list[Verdict]) -> list[str]:
    """Return each sentence once; with several, each after the metrics of its limits."""
    groups: dict[str, list[str]] = {}
    for verdict in verdicts:
        name = dict(verdict.limit.labels).get("name", verdict.limit.metric)  # as in metric(name=adds/s)
        groups.setdefault(verdict.sentence.removeprefix(f"{verdict.limit.metric}: "), []).append(name)
    if len(groups) < 2:
        return list(groups) if len(verdicts) > 1 else [verdict.sentence for verdict in verdicts]
    named = ((sentence, ", ".join(dict.fromkeys(names))) for sentence, names in groups.items() if sentence)
    return [sentence if sentence.startswith(names) else f"{names}: {sentence}" for sentence, names in named]


def _reasons(verdicts: list[Verdict]) -> Iterator[str]:
    """Yield each sentence once, then other facts of the verdicts; a passed limit needs no reason."""
    texts = _sentences([v for v in verdicts if v.outcome not in _QUIET])
    facts = []
    for label, fact in (pair for v in verdicts for pair in v.evidence if pair[0] != THEN):
        if not any(fact in text for text in texts):
            facts.append(fact if label in {"why", "problem"} else f"{label}: {fact}")
    for text in dict.fromkeys(filter(None, (*texts, *facts))):
        yield "\n".join(printable(line) for line in text.splitlines())


def notable_findings(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Yield at most three findings of an analysis: a class with its evidence, advice with its cause."""
    notable = [f for f in measurement.findings if f.severity is not Severity.INFO]
    for finding in notable[:_SEEN]:
        text = f"{finding.advice} ({finding.trigger})" if finding.advice else finding.detail
        yield ("try" if finding.advice else "seen"), printable(f"{finding.title}: {text}")


def _labelled(label: str, text: str, width: int) -> list[str]:
    """Return text wrapped after its label; text with line breaks, such as a process's last output, keeps them."""
    lines: list[str] = []
    for line in text.splitlines():
        lines += wrapped(line, width, " " * 8 if lines else f"  {label:<4}  ")
    return lines


_WHOLE = "the next full run detects more and replaces it"
_AGAIN = "Run again on a quieter machine, or keep the time: full runs then compare base and head for such a case"
_SAID = (Change.UNTRUSTED, Change.UNTIMED, Change.COUNTED, Change.MOVED, Change.PINNED)


def acceptance_lines(decisions: Sequence[Proposal], *, dry: bool = False) -> Iterator[str]:
    """Yield one line for each case that changes or cannot; the rest is counted, and each warning appears once."""
    several = len({decision.report.device for decision in decisions} - {""}) > 1  # as in a merged record
    for decision in decisions:
        if decision.writes or decision.change in _SAID:
            detects = decision.detects if _asks_for_time(decision) else None
            where = f"  on {decision.report.device}" if several and decision.report.device else ""
            can_detect = "" if detects is None or _step(decision) > detects else f"  can detect {detectable(detects)}"
            yield f"{_time_line(decision)}{where}{can_detect}"
            yield from (f"  {step_text(step)}" for step in decision.figures)
    written = sum(d.writes for d in decisions)
    words = (f"kept ({d.why})" if d.change is Change.KEPT else d.change.value for d in decisions if not d.writes)
    rest = ", ".join(f"{count} {text}" for text, count in Counter(words).items())
    total = "; ".join(filter(None, (f"{written} {'would be accepted' if dry else 'accepted'}", rest)))
    yield total if decisions else "nothing to accept"
    yield from _warnings([d for d in decisions if d.writes or d.change in _SAID])


def _step(decision: Proposal) -> float:
    """Return how much slower the new time is; 0 without both times."""
    before, after = decision.before, decision.after
    return after.time / before.time - 1 if after and after.time and before and before.time else 0.0


def _warnings(shown: Sequence[Proposal]) -> Iterator[str]:
    """Yield warnings that apply to several decisions, with their number."""
    few = Counter(d.few_processes for d in shown if d.few_processes)
    for few_processes, count in few.items():
        yield f"warning  {count} of {plural(len(shown), 'case')}, {few_processes}; {_WHOLE}"
    if noisy := sum(d.detects is not None and _asks_for_time(d) for d in shown):
        share = f"{noisy} of {plural(len(shown), 'case')}"
        yield f"warning  {share} too noisy to detect a slowdown of the limit's size{_busy_note(shown)}. {_AGAIN}"
    if tiny := sum(d.after is not None and 0 < d.after.time < 1 for d in shown):
        text = 'below 1 ns: record() takes nanoseconds; for seconds: record(times, unit="s")'
        yield f"warning  {tiny} of {plural(len(shown), 'case')} {text}"
    if far := sum(d.drifts_too_far for d in shown):
        yield f"warning  {far} of {plural(len(shown), 'case')} {TOO_FAR}"


def _asks_for_time(decision: Proposal) -> bool:
    """Return whether a limit uses the time, not only a speed-up, which stores the time as well."""
    metrics = {verdict.limit.metric for verdict in decision.report.verdicts}
    return metrics != {"speedup"}


def _busy_note(shown: Sequence[Proposal]) -> str:
    """Return how busy other programs kept the machine."""
    most = max((busy_processors(d.report.measurement.processes) for d in shown if d.report.measurement), default=0.0)
    return f": other programs used {most:.1f} processors meanwhile" if most else ""


def acceptance_warning(decision: Proposal) -> str:
    """Return the warning on a run that is too noisy for its limit, has too few processes, or drifts."""
    warnings = [f"{decision.few_processes}; {_WHOLE}"] if decision.few_processes else []
    if decision.detects is not None:
        text = f"the smallest slowdown this run can detect is {detectable(decision.detects)}"
        warnings.append(f"{text}. {_AGAIN}")
    return "; ".join([*warnings, *([TOO_FAR] if decision.drifts_too_far else [])])


def decision_lines(decision: Proposal) -> Iterator[str]:
    """Yield the case, then and now, and what to know before it is accepted."""
    yield _time_line(decision)
    yield from (f"  {step_text(step)}" for step in decision.figures)
    if warning := acceptance_warning(decision):
        yield f"  warning  {warning}"


def step_text(step: FigureStep) -> str:
    """Return ``registers  128 -> 130  +2  worse``."""
    figure = step.after or step.before
    assert figure is not None
    now = quantity(step.after.value, figure.dimension) if step.after else "gone"
    if step.before is None:
        return f"{printable(figure.title)}  {now}  new"
    sides = f"{printable(figure.title)}  {quantity(step.before.value, step.before.dimension)} -> {now}"
    if step.after is None:
        return sides
    moved = _moved(step.before, step.after)
    worse = "  worse" if step.asks else ""
    return f"{sides}  {moved}{'  better' if step.better else worse}"


def _moved(then: Figure, now: Figure) -> str:
    """Return a change: of a percentage in points, from 0 as an amount, otherwise as a share."""
    if then.dimension is Dimension.FRACTION:
        return f"{(now.value - then.value) * 100:+.3g} pp"
    if not then.value:
        return f"+{quantity(now.value, now.dimension)}"
    return signed((now.value - then.value) / abs(then.value))


def _time_line(decision: Proposal) -> str:
    name = printable(str(decision.report.key))
    if decision.after is None or not decision.after.time:
        return f"{decision.change.value:<9}  {name}  {decision.why}".rstrip()
    now = quantity(decision.after.time, Dimension.TIME)
    if decision.before is None or not decision.before.time:
        return f"{decision.change.value:<9}  {name}  {now}{_replaced_case(decision)}"
    then = quantity(decision.before.time, Dimension.TIME)
    shift = signed(decision.after.time / decision.before.time - 1)
    why = f"  ({decision.why})" if decision.why else ""
    return f"{decision.change.value:<9}  {name}  {then} -> {now}  {shift}{why}"


def _replaced_case(decision: Proposal) -> str:
    """Return the removed case that a new line replaces, with the change of its time."""
    if decision.predecessor is None or decision.after is None:
        return ""
    shift = signed(decision.after.time / decision.predecessor.time - 1)
    then = quantity(decision.predecessor.time, Dimension.TIME)
    return f"  {shift} after {printable(str(decision.predecessor.key))}, which is gone ({then})"
