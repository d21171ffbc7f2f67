"""Verdicts on the suite: common moves, floors, what left it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.tests import rename_candidates
from pytest_perfgate.core.judge.family import Families, family_notes
from pytest_perfgate.core.judge.judge import unfinished
from pytest_perfgate.core.judge.policy import OWN_GATE
from pytest_perfgate.core.judge.readings import SPEEDUP
from pytest_perfgate.core.limits.merge import case_of
from pytest_perfgate.core.render.words import HEADING, UNBUILT, edit_lines, plural, signed
from pytest_perfgate.core.stats.summary import median
from pytest_perfgate.model.plan import CHANGES, CaseKey, Compare, Effect, Limit, Mode, Outcome, Policy, Reach
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.context import JudgeContext
    from pytest_perfgate.model.measurement import Baseline

_OF_A_BUILD = re.compile(r"the (base|head) arm \(")

SKIPPED = "skipped"
"""The note on tests that are there and were skipped."""

UNUSED = "unused"
"""The note on lines that no limit asks for, which may be pruned."""


@value
class LeftOut:
    """What was not chosen: by ``addopts`` or a conftest where no word of the command line asks for less."""

    deselected: frozenset[str] = frozenset()
    reach: Reach | None = None
    """The paths of the run, where only settings chose them."""
    commanded: bool = False
    """The command line asks for less: what that leaves out is counted, and named elsewhere."""


@value
class Suite:
    """What the run set out to do."""

    context: JudgeContext
    collected: frozenset[str] = frozenset()
    """Node ids of every gated test that was collected and chosen."""
    deselected: frozenset[str] = frozenset()
    """Those of gated tests that were collected and not chosen."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Those of gated tests that skipped themselves or were skipped, and of files that did so whole, with the reason."""
    reach: Reach = field(default_factory=Reach)
    baselines: Sequence[Baseline] = ()
    """All that are accepted on the device of this run, whoever asks for them."""
    gone: Sequence[Baseline] = ()
    """Those of the merge base that are accepted no more."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Cases that a line under another path carries on, with their names there."""
    followed: frozenset[str] = frozenset()
    """Cases of the merge base that go on in the same file under another name."""
    left_out: LeftOut = field(default_factory=LeftOut)
    expected: Sequence[Baseline] = ()
    """Those of skipped tests that are committed for a device of this machine."""
    families: Families = field(default_factory=dict)
    complete: bool = True
    """Nothing interrupted the run."""
    filtered: bool = False
    """Node ids, ``-k`` or ``-m`` left tests out."""


def judge_suite(reports: Sequence[CaseReport], suite: Suite) -> tuple[SuiteNote, ...]:
    """Notes on the whole run; what is missing is asked only of complete runs, and only where they looked."""
    notes = [*family_notes(reports, suite.families, suite.context), *_quick_in_ci(suite), *_nowhere(reports, suite)]
    notes += [*floored(reports), *_skipped(suite), *common_moves(reports), *unfinished(reports)]
    notes += [*slow_card_notes(reports), *unbuilt(reports)]
    if suite.complete:
        notes += [*_dropped(suite), *_unused(reports, suite)]
        if suite.context.policy.ci:
            present = suite.collected | suite.deselected
            notes += [
                *removed(_lost(suite), present, suite.reach, suite.moved),
                *left_out(suite.baselines, present, suite.left_out),
            ]
            limited = frozenset(str(r.key) for r in reports if any(needs_line(v.limit) for v in r.verdicts))
            notes += unlined(suite.gone, limited, suite.context.policy.effect("missing"))
    return tuple(notes)


def unbuilt(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Why base or head could not be built, once for all cases that wait for them."""
    cases: dict[str, list[str]] = {}
    for report in reports:
        facts = {text for v in report.verdicts for name, text in v.evidence if name == UNBUILT}
        for text in facts:
            cases.setdefault(text, []).append(str(report.key))
    for text, names in cases.items():
        first, *rest = text.splitlines()
        if _OF_A_BUILD.match(first):
            why = "; ".join([first, *(line for line in rest if not line.startswith("all of it"))])
            note = f"{plural(len(names), 'case')} not decided by base and head: {why}"
            yield SuiteNote(kind=UNBUILT, effect=Effect.WARN, text=note)


def own_gate_note(notes: Sequence[SuiteNote], policy: Policy) -> tuple[SuiteNote, ...]:
    """The note that fails a run whose change edits its own gate, where the policy asks for that."""
    edits = tuple(f"{word}: {text}" for word, text in edit_lines(notes))
    if not edits or policy.effect("own_gate") is not Effect.FAIL:
        return ()
    text = f"{HEADING} in {plural(len(edits), 'place')}: make them in a change of their own (policy own_gate = fail)"
    return (SuiteNote(kind=OWN_GATE, effect=Effect.FAIL, text=text, names=edits),)


def needs_line(limit: Limit) -> bool:
    """Whether a limit is held against an accepted value."""
    return limit.metric in CHANGES or limit.compare is not Compare.FIGURE


def _lost(suite: Suite) -> list[Baseline]:
    """Lines that went and that nothing of their file carries on."""
    return [line for line in suite.gone if str(line.key) not in suite.followed]


def _quick_in_ci(suite: Suite) -> Iterator[SuiteNote]:
    if suite.context.policy.ci and suite.context.mode is Mode.QUICK:
        yield SuiteNote(
            kind="quick",
            effect=Effect.WARN,
            text="quick mode in CI: one process for each case, so no slowdown is confirmed; --perfgate=full decides",
        )


def _nowhere(reports: Sequence[CaseReport], suite: Suite) -> Iterator[SuiteNote]:
    """Limits that were not applicable wherever they were asked."""
    places: dict[tuple[str, tuple[str, ...]], list[tuple[Verdict, str]]] = {}
    for report in reports:
        for v in report.verdicts:
            places.setdefault((v.limit.text, v.limit.on), []).append((v, str(CaseKey(nodeid=report.key.nodeid))))
    for (text, on), limits in places.items():
        if all(v.outcome is Outcome.NOT_APPLICABLE for v, _ in limits):
            where = f" (on {', '.join(on)})" if on else ""
            yield SuiteNote(
                kind="nowhere",
                effect=_without_call(suite) if case_of(limits[0][0].limit) and not on else Effect.WARN,
                text=f"{text}{where} applied to no case of this run",
                names=tuple(dict.fromkeys(name for _, name in limits)),
            )


def _without_call(suite: Suite) -> Effect:
    """A scope that matches nothing in the whole project is a mistake; in a part of it the call may be elsewhere."""
    part = suite.filtered or not suite.complete
    return Effect.WARN if part else suite.context.policy.effect("unmeasured")


def _skipped(suite: Suite) -> Iterator[SuiteNote]:
    """Tests with an accepted baseline that this machine could have measured, and that were skipped."""
    skipped = {b.key.nodeid: suite.skipped.get(b.key.nodeid, suite.skipped.get(b.key.path)) for b in suite.expected}
    names = sorted(nodeid for nodeid, reason in skipped.items() if reason is not None)
    if names:
        count = plural(len(names), "gated test")
        yield SuiteNote(
            kind=SKIPPED,
            effect=suite.context.policy.effect("unmeasured"),
            text=f"not measured: {count} skipped that {'has' if len(names) == 1 else 'have'} an accepted baseline here",
            names=tuple(f"{name}: {skipped[name]}" if skipped[name] else name for name in names),
        )


def _dropped(suite: Suite) -> Iterator[SuiteNote]:
    """Accepted tests that were not collected any more: deleted, renamed, or hidden behind an ``if``."""
    if suite.reach.unknown:
        yield from _unsought(suite)
        return
    present = suite.collected | suite.deselected
    gone = sorted({str(b.key) for b in suite.baselines if b.key.nodeid not in present and _sought(b.key, suite)})
    if not gone:
        return
    accepted = {b.key.nodeid for b in suite.baselines}
    new = sorted(present - accepted)
    moved = dict(rename_candidates(gone, new))
    yield SuiteNote(
        kind="dropped",
        effect=suite.context.policy.effect("unused"),
        text=f"{plural(len(gone), 'accepted case')} no longer collected; perfgate prune removes them",
        names=tuple(f"{name} (renamed to {moved[name]}?)" if name in moved else name for name in gone),
    )


def _sought(key: CaseKey, suite: Suite) -> bool:
    """Whether the run looked where a test was; a file that skipped itself whole is there."""
    return not key.of_file and key.path not in suite.skipped and suite.reach.holds(key.nodeid)


def _unsought(suite: Suite) -> Iterator[SuiteNote]:
    """It is unknown what such a run would have collected: in CI a note says so."""
    if suite.context.policy.ci and suite.baselines:
        text = f"dropped tests were not looked for: {suite.reach.unknown}"
        yield SuiteNote(kind="not looked for", effect=Effect.WARN, text=text)


def _unused(reports: Sequence[CaseReport], suite: Suite) -> Iterator[SuiteNote]:
    """Baselines of tests that ran, and that no limit asked for."""
    keys = {str(r.key) for r in reports if any(needs_line(v.limit) or v.limit.metric == SPEEDUP for v in r.verdicts)}
    ran = {r.key.nodeid for r in reports} - set(suite.skipped)
    idle = sorted(
        str(b.key)
        for b in suite.baselines
        if b.key.nodeid in ran and str(b.key) not in keys and not _of_family(b.key, suite.families)
    )
    if idle:
        yield SuiteNote(
            kind=UNUSED,
            effect=suite.context.policy.effect("unused"),
            text=f"{plural(len(idle), 'baseline')} that no limit asked for; perfgate prune removes them",
            names=tuple(idle),
        )


def _of_family(key: CaseKey, families: Families) -> bool:
    """Whether a mean over its family needs its accepted time."""
    return any(dict(m.labels).get("of") in CHANGES for m in families.get(key.nodeid.partition("[")[0], ()))


_FIX = "remove the setting floor, or time more calls together with calls=N"


def floored(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """A warning of how many cases had a limit raised by the setting floor, and which it alone lets pass."""
    raised = [report for report in reports if any(v.raised is not None for v in report.verdicts)]
    names = [
        f"{report.key}: {v.limit.text}, the floor raised it to {signed(v.raised)}: {signed(v.metric.value)}"
        for report in raised
        for v in report.verdicts
        if v.raised is not None and v.metric is not None and _by_floor_alone(v, v.metric.value)
    ]
    if raised:
        alone = f"; {plural(len(names), 'limit')} kept only by the floor" if names else ""
        text = f"the floor raised limits of {len(raised)} of {plural(len(reports), 'case')}{alone}: {_FIX}"
        yield SuiteNote(kind="floor", effect=Effect.WARN, text=text, names=tuple(names))


def _by_floor_alone(verdict: Verdict, slowdown: float) -> bool:
    return verdict.outcome is Outcome.PASSED and slowdown > verdict.limit.bound


_FEW = 3
"""Fewer may each have a cause of its own."""


def common_moves(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Half of what has a baseline, or more: before each is accepted as it is now, the machine is to be looked at."""
    compared = [report for report in reports if report.measurement is not None and report.baseline is not None]
    moved = [report for report in compared if any(map(_of_the_machine, report.verdicts))]
    if len(moved) >= _FEW and 2 * len(moved) >= len(compared):
        text = (
            f"{len(moved)} of {len(compared)} cases with a baseline moved, so the machine is the likely "
            "cause: run perfgate doctor, and measure again on a quiet machine before you accept any of them"
        )
        yield SuiteNote(kind="together", effect=Effect.WARN, text=text)


def _of_the_machine(verdict: Verdict) -> bool:
    """Whether a verdict moved, and not because the reference of a speed-up did."""
    return verdict.outcome is Outcome.MOVED and verdict.limit.metric != SPEEDUP


SLOW = 0.05
"""How far a card may read behind others of its kind."""

SLOW_CARD = "slow card"
"""The note on such a card."""


@value
class SlowCard:
    """A card that is slower than others of its kind, by cases of which the accepted time is known."""

    card: str
    device: str
    behind: float
    cases: int

    @property
    def text(self) -> str:
        """``GPU-3f2a: 8% slower than others of NVIDIA-H200, over 12 cases``."""
        return f"{self.card}: {self.behind:.0%} slower than others of {self.device}, over {plural(self.cases, 'case')}"


def slow_cards(reports: Iterable[CaseReport]) -> tuple[SlowCard, ...]:
    """Cards of which most cases read slower than those of their siblings: a slower case alone is the code's."""
    pace: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        measurement = report.measurement
        times = measurement.metrics.find("time") if measurement is not None else ()
        card = (measurement.device.uuid or measurement.device.pci) if measurement is not None else ""
        if measurement is not None and times and card and report.baseline is not None and report.baseline.time > 0:
            cards = pace.setdefault(measurement.device.key, {})
            cards.setdefault(card, []).append(times[0].value / report.baseline.time)
    return tuple(slow for device, cards in sorted(pace.items()) for slow in _behind(device, cards))


def _behind(device: str, cards: Mapping[str, list[float]]) -> Iterator[SlowCard]:
    for card, ratios in sorted(cards.items()):
        others = [ratio for name, some in cards.items() if name != card for ratio in some]
        if min(len(ratios), len(others)) < _FEW:
            continue
        behind = median(sorted(ratios)) / median(sorted(others)) - 1
        if behind > SLOW:
            yield SlowCard(card=card, device=device, behind=behind, cases=len(ratios))


def slow_card_notes(reports: Iterable[CaseReport]) -> Iterator[SuiteNote]:
    """One note on cards whose figures say more of the card than of the code."""
    if slow := slow_cards(reports):
        count = plural(len(slow), "card")
        text = f"{count} more than {SLOW:.0%} slower than others of the kind: check the cards before the code"
        yield SuiteNote(kind=SLOW_CARD, effect=Effect.WARN, text=text, names=tuple(card.text for card in slow))


def removed(
    gone: Iterable[Baseline], collected: frozenset[str], reach: Reach, moved: Mapping[str, str]
) -> Iterator[SuiteNote]:
    """Accepted cases of the merge base that went with their lines: nothing here could miss them."""
    lost = {str(b.key) for b in gone if b.key.nodeid not in collected and reach.holds(b.key.nodeid)}
    names = sorted(f"{name} -> {moved[name]}, where this run did not look" if name in moved else name for name in lost)
    if names and not reach.unknown:
        what = "moved outside the paths of this run" if lost <= set(moved) else "removed by this change"
        text = f"{plural(len(names), 'accepted case')} {what}: both test and baseline"
        yield SuiteNote(kind="removed", effect=Effect.WARN, text=text, names=tuple(names))


def unlined(gone: Iterable[Baseline], limited: frozenset[str], effect: Effect) -> Iterator[SuiteNote]:
    """Accepted cases whose lines this change takes away while their limits stay: from then on nothing judges them."""
    names = sorted({str(b.key) for b in gone if str(b.key) in limited})
    if names:
        text = (
            f"{plural(len(names), 'accepted line')} of the merge base removed by this change, but the limits remain: "
            "restore them, or accept the measured times with a reason"
        )
        yield SuiteNote(kind="taken away", effect=effect, text=text, names=tuple(names))


def left_out(lines: Sequence[Baseline], collected: frozenset[str], left: LeftOut) -> Iterator[SuiteNote]:
    """Accepted cases that the project's own settings keep from being measured, run after run."""
    names = sorted({str(b.key) for b in lines if _left(b.key.nodeid, collected, left)})
    if names:
        by = "deselected" if left.commanded else "left out by addopts or a conftest, not by the command line"
        text = f"{plural(len(names), 'accepted case')} not measured, {by}"
        yield SuiteNote(kind="left out", effect=Effect.WARN, text=text, names=() if left.commanded else tuple(names))


def _left(nodeid: str, collected: frozenset[str], left: LeftOut) -> bool:
    if nodeid in left.deselected:
        return True
    return left.reach is not None and nodeid not in collected and left.reach.leaves_out(nodeid)
