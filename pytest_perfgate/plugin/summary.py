"""The section that perfgate adds to pytest's terminal output."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.instrument import REFUSED
from pytest_perfgate.app.judge import new_baselines
from pytest_perfgate.app.output_check import CONSTANT, UNCHECKED
from pytest_perfgate.core.judge.acceptance import on_one_core, pinned
from pytest_perfgate.core.judge.against_baseline import DOUBTFUL
from pytest_perfgate.core.judge.family import family_limits, is_in_a_mean
from pytest_perfgate.core.judge.readings import tally, word_of
from pytest_perfgate.core.render.block import WIDTH, render_blocks
from pytest_perfgate.core.render.report import NONE, detectable_cell, families_text
from pytest_perfgate.core.render.text import WIDEST, fits_width, table_lines
from pytest_perfgate.core.render.words import (
    HEADING,
    UNBUILT,
    by_floor,
    display_width,
    edges,
    figure_note,
    note_word,
    other_notes,
    own_gate_lines,
    plural,
    printable,
    shown,
    signed,
)
from pytest_perfgate.model.metric import Cell, Column, Table
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.model.values import first_of
from pytest_perfgate.plugin.ending import FROM, REPORT, name_of, text_of, write_next
from pytest_perfgate.plugin.reporting import ANY, StartFolder, columns, folded, for_terminal, write_painted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pytest_perfgate.core.judge.family import Families
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.verdict import CaseReport, SuiteNote, Verdict
    from pytest_perfgate.plugin.state import SessionState

_SHOWN, _LEAST_NAME = 20, 24

_ROWS = 200
"""How many cases the table shows."""

_FILES, _NAMED = 5, 3
"""For more files than this, only the folders are named; how many cases a line names."""

_FEWER, _FEWER_NEW = (6, 5, 3), (4, 6, 5)
"""Columns that a narrow terminal loses, one after the other: with slowdowns their intervals, else slowdowns."""

_KEPT = (Outcome.PASSED, Outcome.NOT_APPLICABLE, Outcome.ACCEPTED)

_SLOWER = frozenset({Outcome.SUSPECT, Outcome.MOVED, Outcome.REGRESSED})

_OPEN = frozenset({Outcome.SUSPECT, Outcome.UNDECIDED})
_PLAIN = (Outcome.UNBASELINED, Outcome.IMPROVED)
"""Outcomes that the table shows completely."""


def write_summary(out: Any, session: SessionState, *, cut_short: bool) -> None:
    """Write the table of verdicts, notes on the suite, the written files and the next steps."""
    reports = session.all_reports()
    ending = cut_short_lines(session) if cut_short else []
    if reports or ending or session.notes:
        out.write_sep("=", "perfgate")
    if reports or session.notes:
        _write_verdicts(out, session, reports)
    for line in ending:
        out.write_line(line)


def _write_verdicts(out: Any, session: SessionState, reports: list[CaseReport]) -> None:
    start = StartFolder(session.settings.pytest)
    lines = shown(partial(_recorded, session, reports), lambda _: 0)
    fresh, families = 0 if session.lost else lines, family_limits(session.cases.values())
    width, recorded = columns(session.settings.pytest), session.recorded_reports()
    notes, edits = other_notes(recorded, session.notes), own_gate_lines(recorded, session.notes)
    first, later = [n for n in notes if n.kind == UNBUILT], [n for n in notes if n.kind != UNBUILT]
    style, hidden = out.config.option.tbstyle, [f"xfail hides  {name}" for name in session.excused]
    detailed = out.verbosity > 0 or bool(edits or session.notes or not all(map(is_clean, reports)))
    explained = [r for r in reports if not _left_open(r, session.mode)]
    parts: list[Callable[[], list[str]]] = [
        lambda: _folded([*own_gate_section(edits), *(f"warn  {note.text}" for note in first)], width),
        partial(_tables, reports, width=width),
        partial(families_text, reports, session.settings.project.tables),
        partial(blocks, explained, start, min(WIDTH, width), failing=session.interrupted),
        lambda: _folded((f"{note_word(n)}  {reported_text(n, style)}".lstrip() for n in later), width),
        lambda: _folded(
            [*([] if edits else hidden), *refused(reports), *constant(reports), *empty_calls_note(reports)], width
        ),
        lambda: _folded([counted(session.mode.value, reports, fresh, families)] if reports else [], width),
        lambda: written_lines([path for path in session.written if detailed or not is_record(path)], start.path),
    ]
    for part in parts:
        for line in shown(part, lambda why: [why]):
            write_painted(out, for_terminal(line))
    for fault in session.lost:
        out.write_line(fault.text(), red=True)
    if session.recorded or not session.lost:
        write_next(out, session, next_commands(
            reports, session.settings.command, recorded=bool(lines), full=session.mode is Mode.FULL,
            ci=session.settings.ci,
        ))  # fmt: skip


def is_clean(report: CaseReport) -> bool:
    """Return whether a case passed, so that its row needs no explanation."""
    return report.effect is Effect.PASS and (not report.verdicts or report.worst in _KEPT)


def is_record(path: Path) -> bool:
    """Return whether a file is the record of the run, which ``perfgate report`` finds by itself."""
    return path.parent.name == "records"


def _tables(reports: Sequence[CaseReport], *, width: int = ANY) -> list[str]:
    """Return the table's lines; if too wide, without the files, then columns, then with short names."""
    table = verdict_table(reports)
    lines = list(table_lines(table)) if reports else []
    if fits_width(lines, width):
        return lines
    rows = tuple((row[0], f"…::{str(row[1]).partition('::')[2]}", *row[2:]) for row in table.rows)
    fewer = _FEWER if any(row[4] is not None for row in rows) else _FEWER_NEW
    for lost in range(len(fewer) + 1):
        remaining = [at for at in range(len(table.columns)) if at not in fewer[:lost]]
        cells = tuple(tuple(row[at] for at in remaining) for row in rows)
        short = replace(table, columns=tuple(table.columns[at] for at in remaining), rows=cells)
        lines = list(table_lines(short))
        if fits_width(lines, width):
            return lines
    excess = max(map(display_width, lines)) - width
    name = max(len(str(row[1])) for row in short.rows) - excess
    return list(table_lines(short, max(_LEAST_NAME, name)))


def _folded(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for paragraph in text.split("\n") for line in folded(paragraph, width)]


def blocks(reports: Sequence[CaseReport], here: StartFolder, width: int, *, failing: bool = False) -> list[str]:
    """Return the blocks of warnings, and of failures if no test shows them because pytest ran none."""
    from pytest_perfgate.core.judge.judge import unrepeated

    effects = {Effect.WARN, Effect.FAIL} if failing else {Effect.WARN}
    explained = [r for r in unrepeated(reports) if r.effect in effects and (r.worst not in _PLAIN or _has_more(r))]
    texts = list(render_blocks(explained, width, here.command, brief=True))
    more = [f"and {len(texts) - _SHOWN:,} more: perfgate report"] if len(texts) > _SHOWN else []
    return texts[:_SHOWN] + more


def _left_open(report: CaseReport, mode: Mode) -> bool:
    """Return whether quick mode left a case undecided that a full run may decide; its row and command say all."""
    open_ = [v for v in report.verdicts if v.outcome not in _KEPT]
    decided_by_full = all(v.next and all("--perfgate=full" in step for step in v.next) for v in open_)
    undecided = bool(open_) and all(v.outcome is Outcome.UNDECIDED for v in open_)
    return mode is Mode.QUICK and report.effect is Effect.WARN and undecided and decided_by_full


def _has_more(report: CaseReport) -> bool:
    """Return whether a case has a reason that the table lacks: an unusable accepted time, or a doubtful improvement."""
    without_line = any(v.outcome is Outcome.UNBASELINED and v.baseline is not None for v in report.verdicts)
    return without_line or any(v.outcome is Outcome.IMPROVED and v.sentence == DOUBTFUL for v in report.verdicts)


def _recorded(session: SessionState, reports: Sequence[CaseReport]) -> int:
    """Count the cases whose first time this machine stores for itself."""
    judge = session.gate_judge
    return len(new_baselines(reports, judge.tools.committed, "", "")) if judge.context.policy.records else 0


def reported_text(note: SuiteNote, style: str) -> str:
    """Return a note in full, or only its name if it stands among the failures above."""
    shown_above = note.effect is Effect.FAIL and style != "no"
    return f"{name_of(note)}, above" if shown_above else text_of(note)


def verdict_table(reports: Sequence[CaseReport]) -> Table:
    """Return one row for each case, with its time, the worst of its verdicts and that verdict's limit."""
    rows = [shown(partial(verdict_row, report), partial(_unrendered_row, report)) for report in reports]
    columns = (
        *Column.header("outcome | test"),
        *Column.header("time: time | interval | slowdown | limit | can detect: fraction 2", absent=NONE),
    )
    return Table(columns=columns, rows=tuple(rows), limit=_ROWS, rest="perfgate report shows all")


def _unrendered_row(report: CaseReport, why: str) -> tuple[Cell, ...]:
    return (report.worst.value, printable(str(report.key)), None, None, None, printable(why), None)


def verdict_row(report: CaseReport) -> tuple[Cell, ...]:
    """Return the row of a case, with the outcome of the worst of its limits and the number of other limits."""
    times = report.measurement.metrics.find("time") if report.measurement else ()
    time, interval = (times[0].value, edges(times[0], change=False) or None) if times else (None, None)
    if not report.verdicts:
        return ("no limit", str(report.key), time, interval, None, None, None)
    worst = next(v for v in report.verdicts if v.outcome is report.worst)
    slower = (signed(v.metric.value) for v in (worst, *report.verdicts) if v.metric and v.limit.metric == "slowdown")
    limit, others = by_floor(worst.limit.text, worst.raised), len(report.verdicts) - 1
    more = (f", {plural(others, 'more limit')}", f", {others} more") if others else ("",)
    unrun = f" ({worst.sentence.partition(':')[0]})" if report.excuse.remaining(Effect.FAIL) is Effect.PASS else ""
    forms = [limit + note + rest for note in (unrun or figure_note(worst), "") for rest in more]
    limit = next((form for form in forms if len(form) <= WIDEST), forms[-1])  # a longer one would lose its middle
    return (word_of(report, worst), str(report.key), time, interval, next(slower, None), limit, detectable_cell(worst))


def next_commands(
    reports: Sequence[CaseReport], pytest: str, *, recorded: bool, full: bool = False, ci: bool = False
) -> list[str]:
    """Return the next steps for these outcomes; a first local baseline needs none."""
    worst = {report.worst for report in reports if report.verdicts}
    verdicts = [verdict for report in reports for verdict in report.verdicts]
    unbaselined = [v for v in verdicts if v.outcome is Outcome.UNBASELINED]
    lineless = [v for v in unbaselined if v.baseline is None]
    if recorded and len(lineless) == len(unbaselined):
        worst -= {Outcome.UNBASELINED}
    if worst <= set(_KEPT):
        return []
    accept = f"perfgate accept {FROM}" if ci else "perfgate accept "
    on_core = on_one_core(reports)  # times of that core are not accepted, and one such case makes --new refuse all
    new = Outcome.UNBASELINED in worst and bool(lineless) and not (recorded or on_core)
    commands = [REPORT, *_accepting(unbaselined, accept, new=new, together=not (on_core or worst & _SLOWER))]
    if on_core:
        commands += [step for step in _measured_alone(reports, worst) if step not in commands]
    elif Outcome.IMPROVED in worst:
        below = any(step.endswith("--improved") for v in verdicts for step in v.next)
        commands.append(accept + ("--improved" if below else '--reason "..."'))
    if worst & _OPEN and not full:
        commands.append(f"{pytest} --perfgate=full")
    return commands


def _accepting(unbaselined: Sequence[Verdict], accept: str, *, new: bool, together: bool) -> list[str]:
    """Return commands that accept cases without a line, and those whose line does not judge, each or all together."""
    steps = list(dict.fromkeys(step for v in unbaselined if v.baseline is not None for step in v.next))
    if together and len(steps) > _NAMED and all(step.startswith("perfgate accept ") for step in steps):
        return [f'{accept}--reason "..."']  # one sentence for all, and for new cases
    first = [f'{accept}--new --reason "..."'] if new else []
    return [*first, *steps[:_NAMED]]  # its line is not new: any reason is its own, and the report has all


def _measured_alone(reports: Sequence[CaseReport], worst: set[Outcome]) -> list[str]:
    """Return commands that accept, as new, cases of a run against a revision that were measured without its core."""
    plain = worst & {*_PLAIN}
    able = (report for report in reports if report.measurement is not None and not pinned(report))
    steps = (step for report in able for v in report.verdicts if v.outcome in plain for step in v.next)
    return list(dict.fromkeys(steps))[:_NAMED]


def written_lines(written: Sequence[Path], shown: Callable[[Path], str]) -> list[str]:
    """Return the paths of the written files; for many files in one folder, the folder."""
    if len(written) <= _FILES:
        return [f"wrote {shown(path)}" for path in written]
    folders = Counter(path.parent for path in written)
    first = dict.fromkeys(path if folders[path.parent] == 1 else path.parent for path in written)
    return [f"wrote {shown(place)}" + (f": {folders[place]} files" if place in folders else "") for place in first]


def own_gate_section(edits: Sequence[tuple[str, str]]) -> list[str]:
    """Return one line for each edit of this change to its own gate, so that an edit that passes is still shown."""
    if not edits:
        return []
    room = max(len(word) for word, _ in edits)
    more = [f"  and {len(edits) - _SHOWN} more: perfgate report"] if len(edits) > _SHOWN else []
    return [HEADING, *(printable(f"  {word:<{room}}  {text}") for word, text in edits[:_SHOWN]), *more]


def counted(mode: str, reports: list[CaseReport], fresh: int = 0, families: Families | None = None) -> str:
    """Return ``quick: 1 broken, 2 passed``, and what becomes of first times on this machine."""
    text = tally(report for report in reports if report.verdicts)
    parts = [text] if text else []
    alone = Counter(is_in_a_mean(report.key, families or {}) for report in reports if not report.verdicts)
    parts += [f"{alone[True]} judged in a mean"] if alone[True] else []
    parts += [f"{alone[False]} without a limit"] if alone[False] else []
    first = f"; {plural(fresh, 'first time')} stored under .perfgate/ for the next run" if fresh else ""
    return f"{mode}: {', '.join(parts)}{first}"


def refused(reports: Sequence[CaseReport]) -> list[str]:
    """Return one line for each reason why clocks were observed and not locked."""
    processes = (p for report in reports if report.measurement for p in report.measurement.processes)
    reasons = dict.fromkeys(text for process in processes for name, text in process.notes if name == REFUSED)
    return [f"clocks observed, not locked: {text}" for text in reasons]


def constant(reports: Sequence[CaseReport]) -> list[str]:
    """Return a line on cases with constant inputs, and one on those whose outputs are not filled, passed or not."""
    lines = []
    for title, more in ((CONSTANT, ", on which a GPU may run faster than on real data"), (UNCHECKED, "")):
        findings = ((str(report.key), report.measurement.findings) for report in reports if report.measurement)
        keys = list(dict.fromkeys(key for key, own in findings if any(finding.title == title for finding in own)))
        lines += [printable(f"{title}{more}: {first_of(keys, _NAMED)}")] if keys else []
    return lines


_SHORT_NS = 1000.0

_ALIKE = 2.0
"""A call counts as empty up to so many times the time of an empty call."""


def empty_calls_note(reports: Sequence[CaseReport]) -> list[str]:
    """Return one line on host cases that take no longer than an empty call, whether they passed or not."""
    short: list[tuple[str, float]] = []
    for report, m in ((report, report.measurement) for report in reports):
        times = m.metrics.find("time") if m and (m.device.kind, m.identity.timer) == ("host", "host") else ()
        short += [(str(report.key), time.value) for time in times[:1] if time.value < _SHORT_NS]
    most = _ALIKE * _empty_call_ns() if short else 0.0
    keys = [key for key, time in short if time <= most]
    text = f"only the overhead of a call is timed: {first_of(keys, _NAMED)}; next: do more work in one call"
    return [printable(text)] if keys else []


def _empty_call_ns() -> float:
    """Return the time of an empty call on this machine: the median of 15 means, each of 2000 calls in a row."""
    import timeit

    return sorted(timeit.Timer(lambda: None).repeat(15, 2000))[7] / 2000 * 1e9


_NAMED_CASES = 5
_BEHIND = "the same command again: it continues after the finished rounds"


def cut_short_lines(session: SessionState) -> list[str]:
    """Return the lines on what an interrupted run did not measure; empty if nothing is left to be measured."""
    missing = _missing(session)
    if not missing and not _fewer(session) and not _undecided_count(session):
        return []
    if session.resumable and len(missing) == len(session.cases):
        return ["cut short before any verdict: the finished rounds are kept", f"next  {_BEHIND}"]
    lines = [_headline(session, len(missing))]
    if len(missing) < len(session.cases):
        more = len(missing) - _NAMED_CASES
        names = [*(case.nodeid for case in missing[:_NAMED_CASES]), *([plural(more, "more case")] if more > 0 else [])]
        lines += [f"  not measured  {name}" for name in names]
    return [*lines, *_continue_command(session, missing)]


def _headline(session: SessionState, missing: int) -> str:
    measured, fewer = len(session.cases) - missing, _fewer(session)
    text = f"cut short: {measured} of {plural(len(session.cases), 'case')} measured"
    text += " and kept" if measured else ", nothing is kept"
    text += f"; {fewer} of them in fewer processes than asked for" if fewer else ""
    untried = _undecided_count(session)
    return f"{text}; {plural(untried, 'case')} not decided" if untried else text


def _undecided_count(session: SessionState) -> int:
    """Count the cases that a run with two builds has not decided yet."""
    lineless = {Outcome.UNBASELINED} if session.settings.ci else set()
    open_ = _OPEN | lineless if session.gate_judge.tools.confirm is not None else set()
    return sum(report.worst in open_ for reports in session.reports.values() for report in reports)


def _fewer(session: SessionState) -> int:
    """Count the cases that were measured in fewer processes than asked for; base and head end with a decision."""
    counted = () if session.gate_judge.revision else session.cases
    return sum(0 < _processes(session, nodeid) < _planned_processes(session, nodeid) for nodeid in counted)


def _missing(session: SessionState) -> Sequence[Case]:
    return [case for nodeid, case in session.cases.items() if not _processes(session, nodeid)]


def _processes(session: SessionState, nodeid: str) -> int:
    """Count the processes that measured a test; a measurement without samples, such as machine code, counts as one."""
    measurements = [r.measurement for r in session.reports.get(nodeid, ()) if r.measurement is not None]
    return max((max(1, len(measurement.processes)) for measurement in measurements), default=0)


def _planned_processes(session: SessionState, nodeid: str) -> int:
    return session.cases[nodeid].plan.rounds if session.measured_ahead else 1


def _continue_command(session: SessionState, missing: Sequence[Case]) -> list[str]:
    """Return the command that measures the rest, alone on its line so that it can be pasted."""
    if session.resumable:
        return [f"next  {_BEHIND}"]
    if missing and len(missing) <= _NAMED_CASES and len(missing) < len(session.cases):
        names = " ".join(shlex.quote(StartFolder(session.settings.pytest).nodeid(case.nodeid)) for case in missing)
        rest = "that measures the rest; the same command again measures everything"
        return [f"next  pytest --perfgate={session.mode.value} {names}", rest]
    return ["next  the same command again: it measures everything again"]
