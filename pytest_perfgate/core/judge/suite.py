"""Verdicts on the suite: common changes, floors, missing tests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.tests import rename_candidates
from pytest_perfgate.core.judge.family import Families, family_notes
from pytest_perfgate.core.judge.judge import unfinished
from pytest_perfgate.core.judge.policy import OWN_GATE
from pytest_perfgate.core.limits.merge import case_of
from pytest_perfgate.core.render.words import (
    BUILDS,
    HEADING,
    IN_TURNS,
    NO_LINE,
    UNBUILT,
    by_floor,
    edit_lines,
    plural,
    signed,
)
from pytest_perfgate.core.stats.summary import median
from pytest_perfgate.model.plan import CHANGES, SPEEDUP, CaseKey, Compare, Effect, Limit, Mode, Outcome, Policy, Reach
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.context import JudgeContext
    from pytest_perfgate.model.measurement import Baseline

_OF_A_BUILD = re.compile(r"the (base|head) build \(")

_TENTH = -0.9  # the change of a time to a tenth

SLOW, SLOW_CARD = 0.05, "slow card"
"""How much slower a card may be than others of its kind, and the kind of the note on it."""

SKIPPED = "skipped"
"""The kind of the note on tests that exist and were skipped."""

UNUSED, DROPPED = "unused", "dropped"
"""The kind of the note on lines that no limit uses, which may be pruned."""


@value
class LeftOut:
    """What was not selected by ``addopts`` or a conftest, unless the command line asked for it."""

    deselected: frozenset[str] = frozenset()
    reach: Reach | None = None
    """The paths of the run, if only settings chose them."""
    commanded: bool = False
    """Whether the command line selects tests; what that leaves out is counted and named elsewhere."""


@value
class Suite:
    """What the run was meant to measure."""

    context: JudgeContext
    collected: frozenset[str] = frozenset()
    """Node ids of every gated test that was collected and chosen."""
    deselected: frozenset[str] = frozenset()
    """Node ids of gated tests that were collected and not chosen."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Skipped gated tests, and files that skipped themselves as a whole, with the reason."""
    reach: Reach = field(default_factory=Reach)
    baselines: Sequence[Baseline] = ()
    """All lines that are accepted on the device of this run, whether or not a limit uses them."""
    gone: Sequence[Baseline] = ()
    """Lines of the merge base that were removed."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Cases that a line under another path continues, with their names there."""
    followed: frozenset[str] = frozenset()
    """Cases of the merge base that continue in the same file under another name."""
    left_out: LeftOut = field(default_factory=LeftOut)
    expected: Sequence[Baseline] = ()
    """Lines of skipped tests that are committed for a device of this machine."""
    families: Families = field(default_factory=dict)
    complete: bool = True
    """Whether nothing interrupted the run."""
    filtered: bool = False
    """Whether node ids, ``-k`` or ``-m`` left tests out."""


def judge_suite(reports: Sequence[CaseReport], suite: Suite) -> tuple[SuiteNote, ...]:
    """Return notes on the whole run; missing tests only count in complete runs, and where those looked."""
    notes = [*family_notes(reports, suite.families, suite.context), *_quick_in_ci(suite), *_unapplied(reports, suite)]
    notes += [*floored(reports), *_skipped(suite), *common_moves(reports), *unfinished(reports), *_too_fast(reports)]
    notes += [*slow_card_notes(reports), *unbuilt(reports), *_without_line(reports), *_far_in_turns(reports)]
    if suite.complete:
        notes += [*_dropped(suite), *_unused(reports, suite)]
        if suite.context.policy.ci:
            present = suite.collected | suite.deselected
            lost = [line for line in suite.gone if str(line.key) not in suite.followed]
            notes += removed(lost, present, suite.reach, suite.moved)
            notes += left_out(suite.baselines, present, suite.left_out)
            limited = frozenset(str(r.key) for r in reports if any(needs_line(v.limit) for v in r.verdicts))
            notes += unlined(suite.gone, limited, suite.context.policy.effect("missing"))
    return tuple(notes)


def unbuilt(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield why base or head could not be built, once for all cases that need them."""
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


def _without_line(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield the cases without an accepted time that base and head cleared; a new test may be one for ever."""
    passed = [(r, v) for r in reports for v in r.verdicts if v.outcome is Outcome.PASSED]  # others have a block
    cleared = {str(r.key): v for r, v in passed if NO_LINE in dict(v.evidence)}
    facts = {case: dict.fromkeys(text for name, text in v.evidence if name == BUILDS) for case, v in cleared.items()}
    ways = (True, "decided by base and head"), (False, "not compared: base and head have the same code")
    for compared, how in ways:
        cases = [case for case, verdict in cleared.items() if (verdict.metric is not None) is compared]
        if names := tuple(f"{case}: {'; '.join(facts[case])}" if facts[case] else case for case in cases):
            text = f"{plural(len(names), 'case')} without an accepted time, {how}; next: perfgate accept --from RECORD"
            yield SuiteNote(kind=NO_LINE, effect=Effect.WARN, text=f'{text} --new --reason "..."', names=names)


def _far_in_turns(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield the cases that both builds ran far slower than this run, so that they may have compared other code."""
    facts = {str(r.key): text for r in reports for v in r.verdicts for name, text in v.evidence if name == IN_TURNS}
    if facts:
        text = f"{plural(len(facts), 'case')} far slower in both builds than in this run: other programs used the core "
        text += "that the builds share, or the builds lack a compiled part (then set build in [tool.perfgate])"
        names = tuple(f"{case}: {times}" for case, times in facts.items())
        yield SuiteNote(kind=IN_TURNS, effect=Effect.WARN, text=text, names=names)


def _too_fast(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield the cases that became ten times faster, as a call does that returns before its work is done."""
    faster = [(r.key, v.metric) for r in reports for v in r.verdicts if v.outcome is Outcome.IMPROVED and v.metric]
    names = [f"{key}: {signed(one.value)}" for key, one in faster if one.name == "slowdown" and one.value <= _TENTH]
    if names:
        text = f"{plural(len(names), 'case')} ten times faster or more: is the work still done?"
        yield SuiteNote(kind="doubtful", effect=Effect.WARN, text=text, names=tuple(dict.fromkeys(names)))


def own_gate_note(notes: Sequence[SuiteNote], policy: Policy) -> tuple[SuiteNote, ...]:
    """Return the note that fails a run whose change edits its own gate, if the policy fails that."""
    edits = tuple(f"{word}: {text}" for word, text in edit_lines(notes))
    if not edits or policy.effect("own_gate") is not Effect.FAIL:
        return ()
    text = f"{HEADING} in {plural(len(edits), 'place')}: make them in a change of their own (policy own_gate = fail)"
    return (SuiteNote(kind=OWN_GATE, effect=Effect.FAIL, text=text, names=edits),)


def needs_line(limit: Limit) -> bool:
    """Return whether a limit is compared with an accepted value."""
    return limit.metric in CHANGES or limit.compare is not Compare.FIGURE


def _quick_in_ci(suite: Suite) -> Iterator[SuiteNote]:
    if suite.context.policy.ci and suite.context.mode is Mode.QUICK:
        text = "quick mode in CI: one process for each case, so no slowdown is confirmed; --perfgate=full decides"
        yield SuiteNote(kind="quick", effect=Effect.WARN, text=text)


def _unapplied(reports: Sequence[CaseReport], suite: Suite) -> Iterator[SuiteNote]:
    """Yield limits that were not applicable to any case."""
    places: dict[tuple[str, tuple[str, ...]], list[tuple[Verdict, str]]] = {}
    for report in reports:
        for v in report.verdicts:
            places.setdefault((v.limit.text, v.limit.on), []).append((v, str(CaseKey(nodeid=report.key.nodeid))))
    for (text, on), limits in places.items():
        if all(v.outcome is Outcome.NOT_APPLICABLE for v, _ in limits):
            where = f" (on {', '.join(on)})" if on else ""
            names_a_call = case_of(limits[0][0].limit)  # they have one text
            yield SuiteNote(
                kind="nowhere",
                effect=_without_call(suite) if names_a_call and not on else Effect.WARN,
                text=f"{text}{where} applied to no case of this run",
                names=tuple(dict.fromkeys(name for _, name in limits)),
            )


def _without_call(suite: Suite) -> Effect:
    """Return the effect of a scope that matches nothing: in part of the project the call may be elsewhere."""
    part = suite.filtered or not suite.complete
    return Effect.WARN if part else suite.context.policy.effect("unmeasured")


def _skipped(suite: Suite) -> Iterator[SuiteNote]:
    """Yield a note on skipped tests with an accepted baseline that this machine could have measured."""
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
    """Yield a note on accepted tests that were not collected: deleted, renamed, or hidden behind an ``if``."""
    if suite.reach.unknown:
        yield from _collection_unknown(suite)
        return
    present = suite.collected | suite.deselected
    dropped = sorted({str(b.key) for b in suite.baselines if b.key.nodeid not in present and _in_reach(b.key, suite)})
    if not dropped:
        return
    accepted = {b.key.nodeid for b in suite.baselines}
    new = sorted(present - accepted)
    moved = dict(rename_candidates(dropped, new))
    name = shlex.quote(*moved.values()) if len(moved) == 1 else "NEW-NAME"
    source = "--from RECORD " if suite.context.policy.ci else ""
    renamed = f'; if renamed, first perfgate accept {source}{name} --reason "..."'
    yield SuiteNote(
        kind=DROPPED,
        effect=suite.context.policy.effect("unused"),
        text=f"{plural(len(dropped), 'accepted case')} no longer collected; perfgate prune {source}removes "
        f"{'its line' if len(dropped) == 1 else 'their lines'}{renamed if moved else ''}",
        names=(*(f"{was} (renamed to {now}?)" for was, now in moved.items()), *(n for n in dropped if n not in moved)),
    )


def noted(notes: Iterable[SuiteNote], *kinds: str) -> list[str]:
    """Return the names in the notes of some kinds, without the name that a test may have now."""
    return [name.partition(" (renamed to ")[0] for note in notes if note.kind in kinds for name in note.names]


def _in_reach(key: CaseKey, suite: Suite) -> bool:
    """Return whether the run looked where a test was; a file that skipped itself as a whole is there."""
    return not key.of_file and key.path not in suite.skipped and suite.reach.holds(key.nodeid)


def _collection_unknown(suite: Suite) -> Iterator[SuiteNote]:
    """Yield a note in CI if it is unknown what such a run would have collected."""
    if suite.context.policy.ci and suite.baselines:
        text = f"perfgate did not look for dropped tests: {suite.reach.unknown}"
        yield SuiteNote(kind="not looked for", effect=Effect.WARN, text=text)


def _unused(reports: Sequence[CaseReport], suite: Suite) -> Iterator[SuiteNote]:
    """Yield baselines of tests that were measured to their end, and that no limit used."""
    keys = {str(r.key) for r in reports if any(needs_line(v.limit) or v.limit.metric == SPEEDUP for v in r.verdicts)}
    failed = {r.key.nodeid for r in reports if r.measurement is None}
    ran = {r.key.nodeid for r in reports} - failed - set(suite.skipped)
    idle = sorted(
        str(b.key)
        for b in suite.baselines
        if b.key.nodeid in ran and str(b.key) not in keys and not _of_family(b.key, suite.families)
    )
    if idle:
        source = "--from RECORD " if suite.context.policy.ci else ""
        yield SuiteNote(
            kind=UNUSED,
            effect=suite.context.policy.effect("unused"),
            text=f"{plural(len(idle), 'baseline')} that no limit asked for; perfgate prune {source}removes them",
            names=tuple(idle),
        )


def _of_family(key: CaseKey, families: Families) -> bool:
    """Return whether a mean over its family needs its accepted time."""
    return any(dict(m.labels).get("of") in CHANGES for m in families.get(key.nodeid.partition("[")[0], ()))


_FIX = "remove the setting floor, or time more calls together with calls=N"


def floored(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield a warning on cases with a limit raised by the setting floor, and those that pass only by it."""
    raised = [report for report in reports if any(v.raised is not None for v in report.verdicts)]
    passed = [(r.key, v) for r in raised for v in r.verdicts if v.raised is not None and v.outcome is Outcome.PASSED]
    kept = [(key, v, v.metric.value) for key, v in passed if v.metric and v.metric.value > v.limit.bound]
    names = [f"{key}: {by_floor(v.limit.text, v.raised)}: {signed(shift)}" for key, v, shift in kept]
    if raised:
        alone = f"; {plural(len(names), 'limit')} kept only by the floor" if names else ""
        text = f"the floor raised limits of {len(raised)} of {plural(len(reports), 'case')}{alone}: {_FIX}"
        yield SuiteNote(kind="floor", effect=Effect.WARN, text=text, names=tuple(names))


_FEW = 3
"""The least cases for a common change; fewer may each have a cause of its own."""


def common_moves(reports: Sequence[CaseReport]) -> Iterator[SuiteNote]:
    """Yield a note if half of the cases with a baseline changed or more, since the machine is the likely cause."""
    compared = [report for report in reports if report.measurement is not None and report.baseline is not None]
    moved = [report for report in compared if any(map(_of_the_machine, report.verdicts))]
    if len(moved) >= _FEW and 2 * len(moved) >= len(compared):
        text = (
            f"{len(moved)} of {len(compared)} cases with a baseline moved, so the machine is the likely "
            "cause: run perfgate doctor, and measure again on a quiet machine before you accept any of them"
        )
        yield SuiteNote(kind="together", effect=Effect.WARN, text=text)


def _of_the_machine(verdict: Verdict) -> bool:
    """Return whether a verdict changed, other than by the reference of a speed-up."""
    return verdict.outcome is Outcome.MOVED and verdict.limit.metric != SPEEDUP


@value
class SlowCard:
    """A card that is slower than others of its kind, by cases with a known accepted time."""

    card: str
    device: str
    behind: float
    cases: int

    @property
    def text(self) -> str:
        """Return ``GPU-3f2a: 8 % slower than others of NVIDIA-H200, over 12 cases``."""
        behind = f"{self.behind * 100:.0f} % slower than others of {self.device}"
        return f"{self.card}: {behind}, over {plural(self.cases, 'case')}"


def slow_cards(reports: Iterable[CaseReport]) -> tuple[SlowCard, ...]:
    """Return cards that are slower than their siblings in most cases; a single slower case is the code's."""
    pace: dict[str, dict[str, list[float]]] = {}
    for report in reports:
        if report.measurement is None or report.baseline is None:
            continue
        times, device = report.measurement.metrics.find("time"), report.measurement.device
        card = device.uuid or device.pci
        if times and card and report.baseline.time > 0:
            cards = pace.setdefault(device.key, {})
            cards.setdefault(card, []).append(times[0].value / report.baseline.time)
    return tuple(slow for device, cards in sorted(pace.items()) for slow in _slow_cards(device, cards))


def _slow_cards(device: str, cards: Mapping[str, list[float]]) -> Iterator[SlowCard]:
    for card, ratios in sorted(cards.items()):
        others = [ratio for name, some in cards.items() if name != card for ratio in some]
        if min(len(ratios), len(others)) < _FEW:
            continue
        behind = median(sorted(ratios)) / median(sorted(others)) - 1
        if behind > SLOW:
            yield SlowCard(card=card, device=device, behind=behind, cases=len(ratios))


def slow_card_notes(reports: Iterable[CaseReport]) -> Iterator[SuiteNote]:
    """Yield one note on cards whose figures depend more on the card than on the code."""
    if slow := slow_cards(reports):
        count = plural(len(slow), "card")
        text = f"{count} more than {SLOW * 100:.0f} % slower than others of the kind: check the cards before the code"
        yield SuiteNote(kind=SLOW_CARD, effect=Effect.WARN, text=text, names=tuple(card.text for card in slow))


def removed(
    lines: Iterable[Baseline], collected: frozenset[str], reach: Reach, moved: Mapping[str, str]
) -> Iterator[SuiteNote]:
    """Yield accepted cases of the merge base that were removed with their lines, which no other check could miss."""
    lost = {str(b.key) for b in lines if b.key.nodeid not in collected and reach.holds(b.key.nodeid)}
    names = sorted(f"{name} -> {moved[name]}, where this run did not look" if name in moved else name for name in lost)
    if names and not reach.unknown:
        what = "moved outside the paths of this run" if lost <= set(moved) else "removed by this change"
        text = f"{plural(len(names), 'accepted case')} {what}: both test and baseline"
        yield SuiteNote(kind="removed", effect=Effect.WARN, text=text, names=tuple(names))


def unlined(lines: Iterable[Baseline], limited: frozenset[str], effect: Effect) -> Iterator[SuiteNote]:
    """Yield accepted cases whose lines this change removes while their limits stay, so that nothing judges them."""
    names = sorted({str(b.key) for b in lines if str(b.key) in limited})
    if names:
        text = (
            f"{plural(len(names), 'accepted line')} of the merge base removed by this change, but the limits remain: "
            "restore them, or accept the measured times with a reason"
        )
        yield SuiteNote(kind="taken away", effect=effect, text=text, names=tuple(names))


def left_out(lines: Sequence[Baseline], collected: frozenset[str], absent: LeftOut) -> Iterator[SuiteNote]:
    """Yield accepted cases that the project's own settings exclude from every run."""
    names = sorted({str(b.key) for b in lines if _is_left_out(b.key.nodeid, collected, absent)})
    if names:
        by = "deselected" if absent.commanded else "left out by addopts or a conftest, not by the command line"
        text = f"{plural(len(names), 'accepted case')} not measured, {by}"
        yield SuiteNote(kind="left out", effect=Effect.WARN, text=text, names=() if absent.commanded else tuple(names))


def _is_left_out(nodeid: str, collected: frozenset[str], excluded: LeftOut) -> bool:
    if nodeid in excluded.deselected:
        return True
    return excluded.reach is not None and nodeid not in collected and excluded.reach.leaves_out(nodeid)
