"""Accepting measured times, and pruning unused lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from pytest_perfgate.core.judge.acceptance import (
    Change,
    Proposal,
    decide,
    mark_slower_successors,
    on_one_core,
    refuse_unconfirmed,
    refuse_unneeded,
    too_few_processes,
    unpinned,
)
from pytest_perfgate.core.judge.accepted_line import Signature, improved
from pytest_perfgate.core.judge.accepting_figures import check_named, with_figures
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.judge.suite import DROPPED, SKIPPED, UNUSED, noted
from pytest_perfgate.core.limits.grammar import FAMILY_MEAN
from pytest_perfgate.core.limits.merge import explicit_selection, matching, named
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError, proposal
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry, commit_name
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.model.values import first_of, value

if TYPE_CHECKING:
    from pytest_perfgate.core.limits.merge import Selects
    from pytest_perfgate.model.ports import BaselineStore, Repository
    from pytest_perfgate.model.verdict import CaseReport, RunReport

    EntriesOf = Callable[[CaseReport], Sequence[HistoryEntry]]

_OF_FAMILIES = frozenset({FAMILY_MEAN, "unmeasured"})
"""Kinds of notes on a test family; in a record, the family is only named in their text."""

_NAMED = 3


@value
class Request:
    """The cases that a user wants to accept, and how."""

    names: tuple[str, ...] = ()
    expression: str = ""
    new: bool = False
    improved: bool = False
    add: bool = False
    each: bool = False
    """Whether a person confirms every case, so that each one counts as named."""
    metrics: tuple[str, ...] = ()
    """Metrics that lines get in addition to those of the limits."""
    base: str = ""
    """The revision at which this change began, or ""."""
    signature: Signature = Signature()
    since: Callable[[str], str | None] | None = None
    """The pages that differ between a commit and the measured one, in words; it returns None if anything else does."""


def selected(report: RunReport, request: Request) -> tuple[CaseReport, ...]:
    """Return the cases of a record that a request selects; raise if it selects none."""
    cases = _selected(report.cases, named(request.names), request.names) if request.names else report.cases
    for name in request.names:
        _selected(cases, named([name]), [name])
    if request.expression:
        cases = _selected(cases, matching(request.expression), [request.expression])
    return tuple(cases)


def _selected(cases: Sequence[CaseReport], selects: Selects, names: Sequence[str]) -> tuple[CaseReport, ...]:
    selected = tuple(case for case in cases if selects(case.key))
    if not selected:
        fix = proposal(names[0], [str(case.key) for case in cases], all_of="the record has")
        raise PerfgateError("accept-selection", f"the record has no case '{names[0]}'", fix=fix)
    return selected


def decisions(report: RunReport, request: Request, store: BaselineStore, entries: EntriesOf) -> tuple[Proposal, ...]:
    """Return what accepting would do to each selected case, without writing; refuse a record that measured nothing."""
    if report.mode == Mode.OFF.value:
        fix = "pytest --perfgate=full, or name an earlier record of .perfgate/records: --from RECORD"
        what = "the record is of a run with --perfgate=off, which measured nothing"
        raise PerfgateError("record-missing", what, fix=fix)
    read, is_named, families = cache(store.read), explicit_selection(request.names), _limits_on_means(report)

    def decided(case: CaseReport) -> Proposal:
        device = case.measurement.device.key if case.measurement else ""
        line = read(device, case.key.path).get(str(case.key)) if device else None
        signature = _signature_of(request, case, is_named, line)
        decision = refuse_unneeded(decide(case, line, entries(case), signature, add=request.add), families)
        return decision if request.each or is_named(case.key) else refuse_unconfirmed(decision)

    def with_its_figures(decision: Proposal) -> Proposal:
        signature = _signature_of(request, decision.report, is_named, decision.before)
        return with_figures(too_few_processes(decision, report), request.metrics, signature, add=request.add)

    proposals = [decided(case) for case in selected(report, request)]
    marked = mark_slower_successors(proposals, _removable(report, proposals, request.base, store))
    check_named((decision.report for decision in marked), request.metrics)
    wanted = [decision for decision in map(with_its_figures, marked) if _is_wanted(decision, request)]
    one_core = on_one_core(report.cases)
    return tuple(unpinned(decision, one_core=one_core) for decision in wanted)


def _limits_on_means(report: RunReport) -> dict[str, bool]:
    """Return the test families that limits on means judge, and whether one of these is on the slowdown."""
    # A call without a limit belongs to a test whose limits name another call.
    families = {case.key.nodeid.partition("[")[0]: False for case in report.cases if case.verdicts and case.key.name}
    texts = [note.text for note in report.notes if note.kind in _OF_FAMILIES]
    for name in {case.key.nodeid.partition("[")[0] for case in report.cases} if texts else ():
        if limits := [text.partition(f": {name}: ")[2] for text in texts if f": {name}: " in text]:
            families[name] = any("slowdown" in text for text in limits)
    return families


def _is_wanted(decision: Proposal, request: Request) -> bool:
    """Return whether a request for new or for improved cases alone is for this one."""
    if not (request.new or request.improved):
        return True
    if request.new and decision.change in {Change.NEW, Change.ADDED}:
        return True
    faster = decision.change is Change.FASTER and improved(decision.report)
    return request.improved and (faster or decision.change in {Change.LESS_NOISY, Change.BETTER})


def _signature_of(request: Request, case: CaseReport, is_named: Selects, line: Baseline | None) -> Signature:
    signature = replace(request.signature, named=request.each or is_named(case.key))
    pages = request.since(line.commit) if request.add and request.since and line else None
    return signature if pages is None else replace(signature, same_code=True, pages=pages)


def _removable(report: RunReport, decided: Sequence[Proposal], base: str, store: BaselineStore) -> tuple[Baseline, ...]:
    """Return lines without a test: those that this change removed and, after a complete run, those without a case."""
    new = [d.after for d in decided if d.change is Change.NEW and d.after is not None]
    ran = {case.key.nodeid for case in report.cases}
    orphans: dict[tuple[str, str], Baseline] = {}
    for device in {line.device for line in new}:
        current = store.read_all(device)
        lost = list(current.items()) if report.complete and not report.filtered else []
        for path in {line.key.path for line in new if line.device == device} if base else ():
            lost += [(key, line) for key, line in store.read(device, path, base).items() if key not in current]
        orphans |= {(device, key): line for key, line in lost if line.key.nodeid not in ran}
    return tuple(orphans.values())


def check_decisions(decided: Sequence[Proposal], request: Request, again: str = "") -> None:
    """Refuse the whole request if part of it may not be written; ``again`` is the command that gives a reason."""
    asking = {
        Change.SLOWER: "slower",
        Change.OTHER: "measured differently than accepted",
        Change.RENEWED: "accepted for a while only",
        Change.FASTER: "faster than a time accepted for a while, whose end has passed or is changed",
        Change.NEW: "slower than a removed case of a similar name",
        Change.WORSE: "worse in an accepted figure",
    }
    for change, reason in asking.items():
        names = [f"{d.report.key}{_after(d)}" for d in decided if _asks_as(d) is change and d.asks]
        if names and not request.signature.why:
            what = f"{plural(len(names), 'case is', 'cases are')} {reason}: {first_of(names, _NAMED)}"
            raise PerfgateError("accept-reason", what, fix=again)
    if request.signature.anchor and not request.signature.why:
        raise PerfgateError("accept-reason", "--anchor starts the drift of a line anew", fix=again)
    refuse_pinned(decided)
    if stale := [d for d in decided if d.asks and repeats_reason(d)]:
        what = f"the same reason was given in an acceptance of today: {stale[0].report.key}"
        why = "an edit of the line under its old reason would look the same, so the gate would refuse it"
        raise PerfgateError("accept-reason", what, why=why, fix="give the reason of this change")
    if untrusted := [d for d in decided if d.change is Change.UNTRUSTED and request.names]:
        raise PerfgateError("accept-untrusted", untrusted[0].why, place=str(untrusted[0].report.key))


def _asks_as(decision: Proposal) -> Change:
    """Return the change that a reason is needed for: WORSE if a figure got worse, whatever the time did."""
    return Change.WORSE if any(step.asks for step in decision.figures) else decision.change


def refuse_pinned(decided: Sequence[Proposal]) -> None:
    """Refuse what was measured against a revision: base and head were pinned to one core."""
    if pinned := [str(d.report.key) for d in decided if d.change is Change.PINNED]:
        what = f"{plural(len(pinned), 'case')} measured on one core, against a revision: {first_of(pinned, _NAMED)}"
        raise PerfgateError("accept-pinned", what)


def refuse_busy_machine(decided: Sequence[Proposal], request: Request, again: str) -> None:
    """In CI, refuse measurements taken while other programs were busy, unless a reason is given."""
    names = [str(d.report.key) for d in decided if d.writes and d.report.measurement
             and busy_processors(d.report.measurement.processes)]  # fmt: skip
    if names and not request.signature.why:
        cases = plural(len(names), "case was", "cases were")
        what = f"{cases} measured while other programs were busy: {first_of(names, _NAMED)}"
        raise PerfgateError("accept-reason", what, fix=again)


def code_of(commit: str, repository: Repository, baselines: str) -> Callable[[str], str | None] | None:
    """Return a function that names the pages since a commit of the same code; None if the head was not measured."""
    if not commit or commit != repository.head() or repository.dirty():
        return None

    def since(other: str) -> str | None:
        edited = repository.pages_alone(other, baselines) if other else None
        pages = first_of([path for path in edited or () if not path.endswith((".yaml", ".json"))], _NAMED)
        changed = f"{pages} changed since {other[:10]}: no code has that ending in it" if pages else ""
        return changed if edited is not None else None

    return cache(since)


def repeats_reason(decision: Proposal) -> bool:
    """Return whether the given reason repeats that of the judging line, from the same day."""
    judged = decision.report.baseline
    judged_line = judged is not None and not judged.local  # local lines are not reviewed
    return judged_line and decision.after is not None and not decision.after.explains(judged)


def _after(decision: Proposal) -> str:
    if decision.change is Change.SLOWER and decision.why:
        return f" (not one more run: {decision.why})"
    return f" (after {decision.predecessor.key})" if decision.predecessor is not None else ""


def measured_commit(environment: Environment, repository: Repository | None) -> str:
    """Return the commit that a record measured, marked if its tree had changes; the head for one that names none."""
    if environment.commit or repository is None:
        return commit_name(environment.commit, dirty=environment.dirty)
    return commit_name(repository.head(), dirty=repository.dirty())


def accept(decided: Sequence[Proposal], store: BaselineStore) -> tuple[str, ...]:
    """Write the lines of these decisions, and return the paths of the changed files."""
    try:
        return tuple(str(path) for path in store.write([d.after for d in decided if d.after is not None]))
    except PerfgateError as fault:
        if fault.code.name != "file-unwritable":
            raise
        why = "the file is unchanged and nothing was accepted in it; the record still has the measurements"
        advice = "make the folder writable, or free its disk, and run perfgate accept again"
        fix = advice if fault.fix == fault.code.fix else fault.fix
        raise PerfgateError(fault.code.name, fault.what, why=why, fix=fix, place=fault.place) from fault


def unused(report: RunReport, store: BaselineStore) -> tuple[Baseline, ...]:
    """Return lines of the run's devices, up to its day, without a case or a limit; of a filtered run those it names."""
    check_complete(report)
    keys = {str(case.key) for case in report.cases}
    tests = {case.key.nodeid for case in report.cases if case.measurement is None}
    idle, dropped, skipped = (noted(report.notes, kind) for kind in (UNUSED, DROPPED, SKIPPED))
    devices = sorted({case.measurement.device.key for case in report.cases if case.measurement})

    def is_unused(key: str, line: Baseline) -> bool:
        if line.key.of_file or line.when[:10] > report.started[:10]:  # its test may be newer than the run
            return False
        looked = key in dropped or not report.filtered
        used = key in keys or line.key.nodeid in tests or _among(line, skipped)
        return key in idle or (looked and not used)

    lines = [pair for device in devices for pair in store.read_all(device).items()]
    return tuple(line for key, line in lines if is_unused(key, line))


def _among(line: Baseline, skipped: Sequence[str]) -> bool:
    """Return whether a note names the line's test as skipped, with or without a reason."""
    return any(name == line.key.nodeid or name.startswith(f"{line.key.nodeid}: ") for name in skipped)


def check_complete(report: RunReport) -> None:
    """Refuse a record of a run that was not complete, because it does not show which cases are gone."""
    failing = [case for case in report.cases if case.effect is Effect.FAIL]
    reasons = (
        ("the last run was interrupted", not report.complete, ""),
        ("the last run left tests out", report.filtered and not noted(report.notes, DROPPED), ""),
        (f"the last run was a {report.mode} run", report.mode != "full", ""),
        ("the last run measured nothing", not any(case.measurement for case in report.cases), ""),
        (f"{plural(len(failing), 'case')} of the last run failed", bool(failing), _next_step(failing)),
    )
    for what, holds, fix in reasons:
        if holds:
            raise PerfgateError("prune-incomplete", what, fix=fix)


def _next_step(failing: Sequence[CaseReport]) -> str:
    """Return the next step for failed cases: accept them if they only lack a line, otherwise examine them."""
    if all(case.worst is Outcome.UNBASELINED for case in failing):
        return "perfgate accept --new, and run everything again: pytest --perfgate=full"
    return "see what failed: perfgate report; fix or accept it, and run everything again: pytest --perfgate=full"


def prune(lines: Sequence[Baseline], store: BaselineStore) -> tuple[str, ...]:
    """Remove these lines, and return the paths of the changed files."""
    changed: list[str] = []
    for device in sorted({line.device for line in lines}):
        changed += map(str, store.remove(device, [line.key for line in lines if line.device == device]))
    return tuple(changed)
