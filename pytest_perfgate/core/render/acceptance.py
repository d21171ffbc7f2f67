"""What accepting would write, as lines and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_perfgate.core.judge.acceptance import TOO_FAR, Change, Decision
from pytest_perfgate.core.judge.accepted_line import FigureStep
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.render.block import printable
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.measurement import Figure
from pytest_perfgate.model.values import Dimension

_WHOLE, _AGAIN = "a full run sees more, and takes its place", "run again on a quieter machine, or keep it"

_SAID = (Change.UNTRUSTED, Change.UNTIMED, Change.COUNTED, Change.MOVED, Change.PINNED)


def acceptance_lines(found: Sequence[Decision], *, dry: bool = False) -> Iterator[str]:
    """One line for each case that changes or cannot; the rest is counted, and each warning stands once."""
    for decision in found:
        if decision.writes or decision.change in _SAID:
            blind = "" if decision.blind is None else f"  can detect {signed(decision.blind)}"
            yield from (f"{_time_line(decision)}{blind}", *_figure_lines(decision))
    written = sum(d.writes for d in found)
    counts = Counter(d.change for d in found if not d.writes)
    rest = ", ".join(f"{count} {change.value}" for change, count in counts.items())
    verb = "would be accepted" if dry else "accepted"
    yield f"{written} {verb}" + (f"; {rest}" if rest else "") if found else "nothing to accept"
    yield from _warnings([d for d in found if d.writes or d.change in _SAID])


def _warnings(shown: Sequence[Decision]) -> Iterator[str]:
    """What is to be known of several decisions at once, with how many."""
    few = Counter(d.scanty for d in shown if d.scanty)
    for scanty, count in few.items():
        yield f"warning  {count} of {plural(len(shown), 'case')}, {scanty}; {_WHOLE}"
    if blind := sum(d.blind is not None for d in shown):
        share = f"{blind} of {plural(len(shown), 'case')}"
        yield f"warning  {share} could not have seen a slowdown as small as the limit{_busy_note(shown)}; {_AGAIN}"
    if far := sum(d.creeps for d in shown):
        yield f"warning  {far} of {plural(len(shown), 'case')} {TOO_FAR}"


def _busy_note(shown: Sequence[Decision]) -> str:
    """How busy others kept the machine meanwhile."""
    most = max((busy_processors(d.report.measurement.processes) for d in shown if d.report.measurement), default=0.0)
    return f": others kept {most:.1f} processors busy beside them" if most else ""


def _warning(decision: Decision) -> str:
    """What a sitting is worth that is too wide for its limit, or of too few processes; and what CI says of it."""
    warnings = [f"{decision.scanty}; {_WHOLE}"] if decision.scanty else []
    if decision.blind is not None:
        text = f"the smallest slowdown this run can detect is {signed(decision.blind)}"
        warnings.append(f"{text}; {_AGAIN}")
    return "; ".join([*warnings, *([TOO_FAR] if decision.creeps else [])])


def decision_lines(decision: Decision) -> Iterator[str]:
    """The case, then and now, and what is to be known before it is accepted."""
    yield from (_time_line(decision), *_figure_lines(decision))
    if warning := _warning(decision):
        yield f"  warning  {warning}"


def _figure_lines(decision: Decision) -> Iterator[str]:
    """What becomes of each figure that is another one."""
    return (f"  {step_text(step)}" for step in decision.figures)


def step_text(step: FigureStep) -> str:
    """``registers  128 -> 130  +2  worse``."""
    figure = step.after or step.before
    assert figure is not None
    now = quantity(step.after.value, figure.dimension) if step.after else "gone"
    if step.before is None:
        return f"{printable(figure.title)}  {now}  new"
    sides = f"{printable(figure.title)}  {quantity(step.before.value, step.before.dimension)} -> {now}"
    if step.after is None:
        return sides
    moved = _moved(step.before, step.after)
    return f"{sides}  {moved}{'  better' if step.better else '  worse' if step.asks else ''}"


def _moved(then: Figure, now: Figure) -> str:
    """A percentage moves by points, what starts from 0 by its amount, all else by a share."""
    if then.dimension is Dimension.FRACTION:
        return f"{(now.value - then.value) * 100:+.3g} pp"
    if not then.value:
        return f"+{quantity(now.value, now.dimension)}"
    return signed((now.value - then.value) / abs(then.value))


def _time_line(decision: Decision) -> str:
    name = printable(str(decision.report.key))
    if decision.after is None or not decision.after.time:
        return f"{decision.change.value:<9}  {name}  {decision.why}".rstrip()
    now = quantity(decision.after.time, Dimension.TIME)
    if decision.before is None or not decision.before.time:
        return f"{decision.change.value:<9}  {name}  {now}{_heritage(decision)}"
    then = quantity(decision.before.time, Dimension.TIME)
    shift = signed(decision.after.time / decision.before.time - 1)
    return f"{decision.change.value:<9}  {name}  {then} -> {now}  {shift}"


def _heritage(decision: Decision) -> str:
    """Whose place a new line takes, where that was faster."""
    if decision.twin is None or decision.after is None:
        return ""
    shift = signed(decision.after.time / decision.twin.time - 1)
    then = quantity(decision.twin.time, Dimension.TIME)
    return f"  {shift} after {printable(str(decision.twin.key))}, which is gone ({then})"


def acceptance_json(found: Sequence[Decision]) -> list[dict[str, Any]]:
    return [
        {
            "case": str(d.report.key),
            "change": d.change.value,
            "before_ns": d.before.time if d.before else None,
            "twin": str(d.twin.key) if d.twin else "",
            "after_ns": d.after.time if d.after else None,
            "figures": [_step_json(step) for step in d.figures],
            "why": d.why,
            "warning": _warning(d),
        }
        for d in found
    ]


def _step_json(step: FigureStep) -> dict[str, Any]:
    figure = step.after or step.before
    return {
        "metric": figure.title if figure else "",
        "before": step.before.value if step.before else None,
        "after": step.after.value if step.after else None,
        "unit": figure.dimension.value if figure else "",
        "worse": step.asks,
    }
