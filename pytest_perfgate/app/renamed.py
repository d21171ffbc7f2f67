"""Lines that came with the change under test, where others went: nothing accepted before holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.twins import Heir, heirs
from pytest_perfgate.core.render.quantity import quantity, signed
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote


def renamed_lines(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI for all of them, the slowest first; it warns where one is slower than what it follows."""
    if not court.context.policy.ci:
        return
    found = sorted(_heirs(court, reports), key=lambda heir: -heir.slower)
    if found:
        counted = "1 line is" if len(found) == 1 else f"{len(found)} lines are"
        text = f"{counted} new in this change where another went, so that the new time judges itself"
        slower = any(heir.slower > _least(heir, reports) for heir in found)
        effect = Effect.WARN if slower else Effect.PASS
        yield SuiteNote(kind="renamed", effect=effect, text=text, names=tuple(map(_said, found)))


def followed(court: Court, reports: Sequence[CaseReport]) -> frozenset[str]:
    """Cases that are gone and that go on under another name: the note on their lines tells of them."""
    on = (heir.gone for heir in _heirs(court, reports) if court.accepted.carried_on(heir.gone.key, heir.new.key))
    return frozenset(str(line.key) for line in on)


def _heirs(court: Court, reports: Sequence[CaseReport]) -> Iterable[Heir]:
    files = {(r.measurement.device.key, r.key.path) for r in reports if r.measurement is not None}
    for device, path in sorted(files):
        then, now = court.accepted.then_and_now(device, path)
        gone = [line for key, line in then.items() if key not in now and not line.local]
        new = [line for key, line in now.items() if key not in then and not line.local]
        if gone and new:
            yield from heirs(gone, new, court.accepted.renamed_in(path))


def _least(heir: Heir, reports: Sequence[CaseReport]) -> float:
    """What the limit of the new case asks about; anything at all where this run has none."""
    verdicts = [v for report in reports if report.key == heir.new.key for v in report.verdicts]
    return min((v.limit.bound for v in verdicts if v.limit.metric == "slowdown" and v.limit.bound > 0), default=0.0)


def _said(heir: Heir) -> str:
    was, now = (quantity(line.time, Dimension.TIME) for line in (heir.gone, heir.new))
    why = f'"{heir.new.why}"' if heir.new.why else "no reason"
    return f"{heir.new.key} {now} after {heir.gone.key} {was}: {signed(heir.slower)}, {why}"
