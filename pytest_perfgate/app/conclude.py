"""The end of a run: notes on the suite, first baselines, the record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path

from pytest_perfgate.app.accepted import entries
from pytest_perfgate.app.changed_project import CHANGES
from pytest_perfgate.app.changed_tests import JudgedChange, change_notes, renamed_cases
from pytest_perfgate.app.inspections import LOST
from pytest_perfgate.app.judge import GateJudge, new_baselines
from pytest_perfgate.core.judge.accepted_line import LIMIT, drift, fixed_anchor
from pytest_perfgate.core.judge.family import family_limits, open_means
from pytest_perfgate.core.judge.policy import verdicts_to_decide
from pytest_perfgate.core.judge.suite import LeftOut, Suite, judge_suite
from pytest_perfgate.core.render.words import plural, signed
from pytest_perfgate.model.errors import SHOWING, PerfgateError, fault_error, fault_sentence
from pytest_perfgate.model.measurement import TREE, Baseline, HistoryEntry, commit_name
from pytest_perfgate.model.plan import Case, CaseKey, Decision, Effect, Mode, Outcome, Policy, Reach
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import Arms, CaseReport, Paired, RunReport, Shard, SuiteNote

RECORD = "the record of this run"


@value
class Ending:
    """How a run ended, apart from its reports."""

    mode: Mode
    started: str
    """ISO 8601, to the second."""
    seconds: float
    complete: bool
    filtered: bool
    root: str
    status: int = 0
    """pytest's exit status."""
    reach: Reach = field(default_factory=Reach)
    deselected: frozenset[str] = frozenset()
    """Gated tests that exist and were not measured: deselected, or with an unreadable marker."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    shard: Shard = field(default_factory=Shard)
    """Which part of a run this is, and where it ran."""
    tables: tuple[str, ...] = ()
    """Pairs of parameters for the tables of reports."""


def suite_notes(
    gate_judge: GateJudge, cases: Mapping[str, Case], reports: Sequence[CaseReport], ending: Ending
) -> tuple[SuiteNote, ...]:
    suite = Suite(
        context=gate_judge.context,
        collected=frozenset({*cases, *(nodeid for nodeid, _ in ending.shard.universe.cases)}),
        deselected=ending.deselected,
        skipped=ending.skipped,
        reach=ending.reach,
        baselines=_accepted(gate_judge, reports),
        gone=_missing_lines(gate_judge, reports, ending.reach) if gate_judge.context.policy.ci else (),
        moved=gate_judge.accepted.moved,
        followed=renamed_cases(gate_judge, reports) if gate_judge.context.policy.ci else frozenset(),
        left_out=ending.left_out,
        expected=_expected(gate_judge, reports) if ending.skipped else (),
        families=family_limits(cases.values()),
        complete=ending.complete,
        filtered=ending.filtered or ending.shard.count > 1,
    )
    change = JudgedChange(gate_judge=gate_judge, cases=cases, reports=reports, suite=suite)
    parts: tuple[Callable[[], Iterable[SuiteNote]], ...] = (
        partial(judge_suite, reports, suite),
        partial(_unanchored, gate_judge, reports),
        partial(identical_arms, gate_judge),
        *(partial(change_notes, check, change) for check in CHANGES),
        partial(_drifts, gate_judge, cases, reports),
        partial(_drifting_lines, gate_judge, reports),
        partial(_without_history, gate_judge),
        partial(_edited_during_run, gate_judge),
    )
    return tuple(note for part in parts for note in _notes_of(part))


def capture_notes(reports: Iterable[CaseReport], policy: Policy) -> tuple[SuiteNote, ...]:
    """Return a note on requested captures that failed, unless a limit already shows it."""
    names = []
    for report in reports:
        if report.measurement and all(v.outcome is not Outcome.NOT_MEASURED for v in report.verdicts):
            for finding in report.measurement.findings:
                if finding.title.endswith(LOST):
                    step = f"; next: {finding.advice}" if finding.advice else ""
                    names.append(f"{report.key}: {finding.title}: {finding.detail}{step}")
    if not names:
        return ()
    text = f"{plural(len(names), 'capture')} asked for and not taken"
    return (SuiteNote(kind="captures", effect=policy.effect("unmeasured"), text=text, names=tuple(names)),)


def _notes_of(part: Callable[[], Iterable[SuiteNote]]) -> tuple[SuiteNote, ...]:
    """Return the notes of one kind; if they cannot be made, a failing note, because their content is unknown."""
    try:
        return tuple(part())
    except PerfgateError:
        raise
    except Exception as fault:  # noqa: BLE001 - an error in one kind of note must not lose the others or a verdict
        text = fault_sentence(fault, "checked the suite", SHOWING)
        return (SuiteNote(kind="fault", effect=Effect.FAIL, text=text),)


def _unanchored(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """In CI, note committed lines that no earlier revision confirms, or only a guessed one."""
    keys = tuple(str(report.key) for report in reports if _by_committed_line(gate_judge, report))
    if not keys or not gate_judge.context.policy.ci or not gate_judge.accepted.base.why:
        return
    base, step = gate_judge.accepted.base, f"; {gate_judge.accepted.base.fix}" if gate_judge.accepted.base.fix else ""
    if base.commit:
        what = f"the lines of {base.commit[:10]}, {base.name}, judged: {base.why}{step}"
        yield SuiteNote(kind="parent", effect=Effect.WARN, text=what)
    else:
        what = f"no merge base, so the change's own baselines judged: {base.why}{step}"
        effect = gate_judge.context.policy.effect("no_base")
        yield SuiteNote(kind="no merge base", effect=effect, text=what, names=keys)


def _without_history(gate_judge: GateJudge) -> Iterable[SuiteNote]:
    """Note that the history failed during the run, which was judged without it."""
    if fault := gate_judge.past.fault:
        what = f"judged without the history: {fault.place}: {fault.what}; {fault.fix}"
        yield SuiteNote(kind="history", effect=Effect.WARN, text=what)


def _edited_during_run(gate_judge: GateJudge) -> Iterable[SuiteNote]:
    if trees := dict(gate_judge.tools.environment().facts).get(TREE):
        what = f"the working copy changed while it was measured ({trees}), so no commit holds that code"
        fix = "run again; if a test writes files of the project (git status), let it write elsewhere"
        yield SuiteNote(kind=TREE, effect=Effect.WARN, text=f"{what}; next: {fix}")


def _by_committed_line(gate_judge: GateJudge, report: CaseReport) -> bool:
    """Return whether a committed line judged a case; against a named revision none does."""
    paired = gate_judge.paired.get(report.key)
    unpaired = paired is None or not paired.revision
    return unpaired and report.baseline is not None and not report.baseline.local


def _drifts(gate_judge: GateJudge, cases: Mapping[str, Case], reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """Note cases that drifted too far from the baselines of the anchor revision in many small steps."""
    repository = gate_judge.tools.repository
    release = repository.last_release() if repository is not None else ""
    texts = (_drift(gate_judge, _anchor(cases, report, release), report) for report in reports)
    drifts = sorted(text for text in texts if text)
    if drifts:
        what = f"{len(drifts)} slower than the fixed anchor by small steps: perfgate history CASE shows them"
        yield SuiteNote(kind="anchor", effect=Effect.WARN, text=what, names=tuple(drifts))


def _drifting_lines(gate_judge: GateJudge, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """Note lines far from their anchor by accepted steps; in CI, a change that continues them fails."""
    further: list[str] = []
    unchanged: list[str] = []
    for report in reports:
        if report.measurement is None:
            continue
        then, edited = gate_judge.accepted.judging(report.measurement)
        line = edited or then
        if line is None or line.local or line.drift_from_anchor <= gate_judge.context.anchor:
            continue
        goes_on = edited is not None and then is not None and edited.time > then.time
        text = f"{report.key}: {signed(line.drift_from_anchor)} since {line.anchored}"
        (further if goes_on else unchanged).append(text)
    ci, too_far = gate_judge.context.policy.ci, f"more than {gate_judge.context.anchor * 100:.0f} % over the anchor"
    source = "--from RECORD " if ci else ""
    step = f'perfgate accept {source}--anchor --reason "..." starts the count anew if that is intended'
    if further:
        effect = Effect.FAIL if ci else Effect.WARN
        lines = plural(len(further), "line")
        what = f"{lines} accepted slower by this change, now {too_far}"
        yield SuiteNote(kind="creep", effect=effect, text=f"{what}; {step}", names=tuple(sorted(further)))
    if unchanged:
        what = f"{plural(len(unchanged), 'accepted time')} {too_far} by accepted steps"
        yield SuiteNote(kind="creep", effect=Effect.WARN, text=f"{what}; {step}", names=tuple(sorted(unchanged)))


def _anchor(cases: Mapping[str, Case], report: CaseReport, release: str) -> str:
    """Return the revision that a case's drift is counted from: the named one, else the last release."""
    case = cases.get(report.key.nodeid)
    return fixed_anchor(case.plan.anchor, release) if case is not None else ""


def _drift(gate_judge: GateJudge, anchor: str, report: CaseReport) -> str:
    """Return how far one case has drifted; "" if it has no anchor or stays near it."""
    store, measurement = gate_judge.tools.baselines, report.measurement
    time = measurement.metrics.find("time") if measurement is not None else ()
    if not anchor or measurement is None or not time or store is None or gate_judge.tools.history is None:
        return ""
    device = measurement.device.key
    line = store.read(device, report.key.path, anchor).get(str(report.key))
    if line is None or line.local:
        return ""
    now = HistoryEntry(key=report.key, device=device, time=time[0].value, when="")
    shift = drift((*gate_judge.past.newest(measurement), now), line.time, LIMIT, since=line.commit)
    return f"{report.key}: {signed(shift.change)}" if shift is not None and shift.alarms else ""


def _accepted(gate_judge: GateJudge, reports: Iterable[CaseReport]) -> tuple[Baseline, ...]:
    """Return all lines of the devices of this run, or of this machine if nothing was measured."""
    return _lines(gate_judge, _measured_on(reports) or _devices_here(gate_judge))


def _missing_lines(gate_judge: GateJudge, reports: Iterable[CaseReport], reach: Reach) -> tuple[Baseline, ...]:
    """Return lines of the merge base that are gone, under every path at which this run looked."""
    base = gate_judge.accepted.base.commit
    devices = sorted(
        _measured_on(reports) or _devices_here(gate_judge) or (_devices_here(gate_judge, base) if base else ())
    )
    lost = (gate_judge.accepted.removed_lines(device, _lines(gate_judge, [device]), reach.holds) for device in devices)
    return tuple(chain.from_iterable(lost))


def _expected(gate_judge: GateJudge, reports: Iterable[CaseReport]) -> tuple[Baseline, ...]:
    """Return all committed lines of devices that this machine has."""
    return tuple(
        line for line in _lines(gate_judge, _measured_on(reports) | _devices_here(gate_judge)) if not line.local
    )


def _measured_on(reports: Iterable[CaseReport]) -> set[str]:
    return {report.measurement.device.key for report in reports if report.measurement is not None}


def _devices_here(gate_judge: GateJudge, *before: str) -> set[str]:
    """Return devices with lines that match this machine's, at a revision if this change removed all of them."""
    devices = gate_judge.tools.baselines.devices(*before) if gate_judge.tools.baselines is not None else ()
    patterns = gate_judge.tools.here() if devices else ()
    return {device for device in devices if any(fnmatchcase(device, pattern) for pattern in patterns)}


def _lines(gate_judge: GateJudge, devices: Iterable[str]) -> tuple[Baseline, ...]:
    store = gate_judge.tools.baselines
    if store is None:
        return ()
    return tuple(line for device in sorted(devices) for line in store.read_all(device).values())


def run_report(
    gate_judge: GateJudge, reports: Sequence[CaseReport], notes: Sequence[SuiteNote], ending: Ending
) -> RunReport:
    """Return the whole run as one value."""
    environment = gate_judge.tools.environment()
    shard = replace(
        ending.shard,
        cards=_cards(reports),
        environment=environment,
        started=ending.started,
        seconds=round(ending.seconds, 3),
        complete=ending.complete,
        filtered=ending.filtered,
        status=ending.status,
    )
    return RunReport(
        cases=tuple(reports),
        environment=environment,
        mode=ending.mode.value,
        started=ending.started,
        seconds=round(ending.seconds, 3),
        complete=ending.complete,
        filtered=ending.filtered or shard.count > 1,
        notes=tuple(notes),
        status=ending.status,
        root=shareable(os.fsencode(ending.root).decode("utf-8", "replace"), Names()),
        shards=(shard,),
        tables=ending.tables,
    )


def _cards(reports: Iterable[CaseReport]) -> tuple[str, ...]:
    """Return the devices that measured, each by an identifier that no other card has."""
    devices = (report.measurement.device for report in reports if report.measurement is not None)
    return tuple(sorted({device.uuid or device.pci for device in devices} - {""}))


@value
class KeptRecord:
    """What a run wrote, and what it could not write."""

    written: tuple[Path, ...] = ()
    lost: tuple[tuple[str, PerfgateError], ...] = ()
    """What was not kept, with the reason."""


def keep(gate_judge: GateJudge, report: RunReport) -> KeptRecord:
    """Write the record, this machine's first baselines and the history; a failing part does not stop the others."""
    commit, records = commit_name(report.environment.commit, dirty=report.environment.dirty), gate_judge.tools.records
    parts: dict[str, Callable[[], Iterable[Path]]] = {
        RECORD: lambda: [records.write(report)] if records is not None else (),
        "this machine's first baselines": lambda: _first_baselines(gate_judge, report, commit),
        "this run's part of the history": lambda: _history(gate_judge, report),
    }
    written: list[Path] = []
    lost: list[tuple[str, PerfgateError]] = []
    for name, write in parts.items():
        try:
            written += write()
        except Exception as fault:  # noqa: BLE001, PERF203 - each part may fail by itself, and none ends the run
            lost.append((name, fault_error(fault, f"wrote {name}")))
    return KeptRecord(written=tuple(written), lost=tuple(lost))


def _first_baselines(gate_judge: GateJudge, report: RunReport, commit: str) -> Iterable[Path]:
    fresh = new_baselines(report.cases, gate_judge.tools.committed, report.started[:10], commit)
    if not fresh or gate_judge.tools.baselines is None or not gate_judge.context.policy.records:
        return ()
    return gate_judge.tools.baselines.write(fresh)


def _history(gate_judge: GateJudge, report: RunReport) -> Iterable[Path]:
    if gate_judge.tools.history is not None and report.mode == Mode.FULL.value:
        gate_judge.tools.history.append(tuple(entries(report)))
    return ()


_LETTERS = 10


def identical_arms(gate_judge: GateJudge) -> Iterable[SuiteNote]:
    """Note that both arms held the same code; if head is the named revision itself, nothing was compared."""
    revision, repository = gate_judge.revision, gate_judge.tools.repository
    if not revision or not gate_judge.same_code:
        return
    named = revision[:_LETTERS]
    if repository is not None and repository.head() == revision:
        text = (
            f"nothing was compared: --perfgate-against means {named}, the commit under test itself; without a REV it"
            " takes the merge base with the target branch, and on that branch what was there before"
        )
        yield SuiteNote(kind="uncompared", effect=gate_judge.context.policy.effect("unmeasured"), text=text)
        return
    text = f"both builds held the same code, that of {named}"
    if edits := gate_judge.environment_edits:
        text = f"{text}, and share what is installed now: {edits.text()}, which was not compared"
    else:
        text = f"{text}: the machine differed"
    yield SuiteNote(kind="uncompared", effect=Effect.WARN, text=text)


_NAMED = 3
"""The most pages that are named; above that, their number is given."""


def pages_alone(gate_judge: GateJudge, baselines: str, commit: str = "") -> str:
    """Return the files edited since a commit (by default the base) if no code names their endings, else "".

    ``README.md only, and no code names such files``.
    """
    base, repository = commit or gate_judge.accepted.base.commit, gate_judge.tools.repository
    edited = repository.pages_alone(base, baselines) if base and repository is not None else None
    if edited is None:
        return ""
    named = ", ".join(edited) if len(edited) <= _NAMED else plural(len(edited), "file")
    if all(path.endswith((".yaml", ".json")) for path in edited):
        return f"{named} only, which perfgate alone writes" if edited else "nothing"
    return f"{named} only, and no code names such files"


def in_open_means(
    gate_judge: GateJudge, reports: Mapping[CaseKey, CaseReport], cases: Mapping[str, Case]
) -> set[CaseKey]:
    """Return the cases of limits on mean slowdowns that the accepted times leave open."""
    return open_means(list(reports.values()), family_limits(cases.values()), gate_judge.context)


def as_at_base(
    gate_judge: GateJudge,
    baselines: str,
    by_base: Mapping[str, Sequence[CaseKey]],
    reports: Mapping[CaseKey, CaseReport],
    cases: Mapping[str, Case],
) -> dict[CaseKey, CaseReport]:
    """Judge cases whose code is the same at their base and here, since building both would only measure the machine.

    Limits on other figures than slowdown are not decided in this way. A case without an open limit counts in a mean.
    """
    judged: dict[CaseKey, CaseReport] = {}
    for base, keys in by_base.items():
        if not (base and pages_alone(gate_judge, baselines, base)):
            continue
        paired = Paired(decision=Decision.NOT_SLOWER, base=base[:10], same=True)
        for key in (key for key in keys if key.path.endswith(".py")):
            open_ = verdicts_to_decide(reports[key], ci=gate_judge.context.policy.ci)
            if not open_:
                judged[key] = replace(reports[key], builds=Arms(base=base[:10], same=True))
            elif all(verdict.limit.metric == "slowdown" for verdict in open_):
                judged[key] = gate_judge.with_arms(cases[key.nodeid], reports[key], paired)
    return judged
