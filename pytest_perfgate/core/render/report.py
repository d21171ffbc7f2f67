"""The report of a run as a document: summary, tables, pictures, and a section for each case that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pytest_perfgate.core.judge.readings import tally, word_of
from pytest_perfgate.core.render.block import WIDTH, render_block, render_blocks, slower_by
from pytest_perfgate.core.render.words import (
    HEADING,
    builds_note,
    by_floor,
    change_of,
    detectable,
    few_rounds,
    figure_note,
    note_word,
    of_builds,
    other_notes,
    own_gate_lines,
    plural,
    printable,
    short_name,
    shown,
    signed,
    span,
    value_text,
)
from pytest_perfgate.model.measurement import HistoryEntry
from pytest_perfgate.model.metric import Block, Bullets, Cell, Code, Column, Document, Metric, Paragraph, Section, Table
from pytest_perfgate.model.plan import CHANGES, Compare, Effect, Outcome
from pytest_perfgate.model.verdict import THEN, CaseReport, Excuse, RunReport, Shard, Verdict

History = Mapping[str, Sequence[HistoryEntry]]

_QUIET = frozenset({Outcome.PASSED, Outcome.NOT_APPLICABLE})

_ORDER = list(Outcome)

_PICTURED, _DETECTS_NOTHING = 40, 10.0
"""The most cases with pictures, since the table has all of them; the change from which its size is not told."""

PAGE = 1000
"""The width of a page in a browser, which wraps lines itself."""

NONE = "-"
"""Outcomes of cases that were not measured or judged, although their test was collected."""

_COLUMNS = (
    *Column.header("outcome | case | limit"),
    *Column.header("value | then: time | now: time | can detect: fraction 2", absent=NONE),
)


def run_document(
    report: RunReport, history: History | None = None, *, drawn: bool = True, width: int = WIDTH
) -> Document:
    """Return the whole run, the worst first, with pictures unless they could not be shown."""
    cases = sorted(report.cases, key=by_outcome)
    loud = [case for case in cases if case.worst not in _QUIET]
    blocks: list[Block] = [*_own_gate(report), Paragraph(text=summary_line(report)), *_notes(report)]
    details = tuple(Code(text=block) for block in render_blocks(loud, width))
    blocks += [Section(title="Failures and warnings", blocks=details)] if loud else []
    drawings = _pictures(loud or cases, history or {}, report.started) if drawn else ()
    pictures = [Section(title="Pictures", blocks=drawings)] if drawings else []
    blocks += pictures if loud else []
    by_device, rates = device_table(cases), rate_table(cases)
    blocks += [Section(title="By device", blocks=(by_device,))] if by_device else []
    blocks.append(Section(title="Verdicts", blocks=(verdict_table(cases),)))
    blocks += [Section(title="Rates", blocks=(rates,))] if rates else []
    blocks += families_of(report, drawn=drawn)
    blocks += [] if loud else pictures
    blocks.append(Section(title="Machine and versions", blocks=(_surroundings(report), *_shards(report))))
    return Document(title="perfgate: " + headline(report), subtitle=_subtitle(report), blocks=tuple(blocks))


def by_outcome(case: CaseReport) -> tuple[int, float, str]:
    """Return the order of a report: the worst outcome first, of equal ones the slowest."""
    slower = 0.0 if case.worst in _QUIET else slower_by(case)
    return (-_ORDER.index(case.worst), -slower, str(case.key))


def headline(report: RunReport) -> str:
    """Return the run in a few words."""
    failed = sum(case.effect is Effect.FAIL for case in report.cases)
    failed += sum(note.effect is Effect.FAIL for note in report.notes)
    idle = sum(case.excuse is Excuse.NOT_RUN for case in report.cases)
    if failed or idle == len(report.cases):
        return f"{failed:,} failed" if failed else "nothing measured"
    noted = sum(case.effect is Effect.WARN or case.worst is Outcome.ACCEPTED for case in report.cases)
    noted += sum(note.effect is Effect.WARN for note in report.notes)
    kept = f"nothing failed, {noted:,} to look at" if noted else "all limits kept"
    return f"{kept}, {idle:,} not measured" if idle else kept


def summary_line(report: RunReport) -> str:
    """Return the number of cases by outcome, and whether these are all cases."""
    parts = [f"{plural(len(report.cases), 'case')}: {tally(report.cases)}" if report.cases else "No case was measured"]
    incomplete = [shard for shard in report.shards if shard.count > 1 and not shard.complete]
    cut = [f"shard {shard.index}/{shard.count} cut short" for shard in incomplete]
    parts += [] if report.complete else cut or ["the run was interrupted: this is its part"]
    parts += [_left_out(report)] if report.filtered and report.mode != "check" else []
    return "; ".join(parts) + "."


def failed_lines(report: RunReport, most: int = 20) -> Iterator[str]:
    """Yield the first line of each failed case's block, for a log beside the full report."""
    failed = [case for case in report.cases if case.effect is Effect.FAIL]
    several = len({shard.device for shard in report.shards}) > 1
    for case in failed[:most]:
        where = f"on {case.device}" if case.device else " ".join(verdict.sentence for verdict in case.verdicts[:1])
        yield render_block(case).partition("\n")[0] + (f"  {where}" if several and where else "")
    if len(failed) > most:
        yield f"and {len(failed) - most:,} more"


def _left_out(report: RunReport) -> str:
    only = report.shards[0] if len(report.shards) == 1 else None
    if len(report.shards) > 1 and not any(shard.filtered for shard in report.shards):
        return "some of its shards are missing"
    if only is None or only.count == 1:
        return "only the named or selected tests"
    return f"shard {only.index}/{only.count}, {len(only.chosen)} of {plural(len(only.universe.cases), 'gated test')}"


def families_of(report: RunReport, *, drawn: bool) -> list[Block]:
    """Return parametrised tests as tables, under their own heading."""
    from pytest_perfgate.core.render.families import family_sections

    draw = partial(family_sections, report.cases, report.tables, drawn=drawn)
    tables: tuple[Block, ...] = shown(draw, lambda why: (Paragraph(text=printable(why)),))
    return [Section(title="Parametrised tests", blocks=tables)] if tables else []


def families_text(cases: Iterable[CaseReport], pivots: Sequence[str]) -> list[str]:
    """Return the same for a terminal; the code for pictures is only imported with the first verdict."""
    from pytest_perfgate.core.render.families import family_lines

    return family_lines(cases, pivots)


def with_findings_first(document: Document) -> Document:
    """Return a page with its findings before its tables, since readers begin at the top."""
    leading = [block for block in document.blocks if isinstance(block, Section) and block.title == "Findings"]
    first = next((at for at, block in enumerate(document.blocks) if isinstance(block, (Section, Table))), 0)
    others = [block for block in document.blocks[first:] if block not in leading]
    return replace(document, blocks=(*document.blocks[:first], *leading, *others))


def _subtitle(report: RunReport) -> str:
    commit = f"commit {report.environment.commit[:12]}" if report.environment.commit else ""
    commit += " with changes" if commit and report.environment.dirty else ""
    day = f"{report.started[:10]} {report.started[11:16]} UTC" if report.started.endswith("+00:00") else report.started
    parts = [day, f"{report.mode} mode", commit, f"{report.seconds:.0f} s" if report.seconds else ""]
    return " · ".join(filter(None, parts))


def sentence(text: str) -> str:
    """Return text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _own_gate(report: RunReport) -> list[Block]:
    items = tuple(f"{word}: {printable(text)}" for word, text in own_gate_lines(report.cases, report.notes))
    return [Section(title=sentence(HEADING), blocks=(Bullets(items=items),))] if items else []


def _notes(report: RunReport) -> list[Block]:
    notes = other_notes(report.cases, report.notes)
    items = tuple(printable(f"{note_word(note).upper()}  {note.sentence}".lstrip()) for note in notes)
    return [Section(title="Notes on the suite", blocks=(Bullets(items=items),))] if items else []


def verdict_table(cases: Sequence[CaseReport]) -> Table:
    """Return one row for each limit, the worst of a case first, with the device if there are several."""
    several = len(_devices(cases)) > 1
    device = Column.header("device", absent=NONE) if several else ()
    rows = []
    for case in cases:
        where = (case.device or None,) if several else ()
        for verdict in sorted(case.verdicts, key=lambda one: -_ORDER.index(one.outcome)):
            row = _safe_row(case, verdict)
            rows.append((*row[:2], *where, *row[2:]))
    columns = (*_COLUMNS[:2], *device, *_COLUMNS[2:])
    return Table(columns=columns, rows=tuple(rows), note=builds_note(cases))


def device_table(cases: Sequence[CaseReport]) -> Table | None:
    """Return one row for each limit and one column for each device; None for a single device."""
    devices = _devices(cases)
    if len(devices) < 2:
        return None
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for case in cases:
        for verdict in case.verdicts:
            row = cells.setdefault((printable(str(case.key)), verdict.limit.text), {})
            row[case.device or NONE] = " ".join(filter(None, (word_of(case, verdict).upper(), _measured(verdict))))
    columns = (*Column.header("case | limit"), *(Column(name=name, absent=NONE) for name in devices))
    rows = tuple((*key, *(row.get(name, row.get(NONE)) for name in devices)) for key, row in cells.items())
    return Table(columns=columns, rows=rows)


_RATES = ("tflops", "bandwidth", "throughput")
_BESIDE = ("time", *_RATES, "intensity", "mfu", "sol", "mfu_datasheet", "sol_datasheet")


def rate_table(cases: Sequence[CaseReport]) -> Table | None:
    """Return every call with stated work, the highest rate first; None for fewer than two."""
    from pytest_perfgate.core.analysis.work import named

    calls = [(case, case.measurement.metrics) for case in cases if case.measurement is not None]
    figures = [(case, {m.name: m for m in metrics.metrics if not m.labels}) for case, metrics in calls]
    rated = [(case, of) for case, of in figures if not set(_RATES).isdisjoint(of)]
    kinds = {name: of[name].dimension for name in _BESIDE for _, of in rated if name in of}
    if len(rated) < 2:
        return None
    rated.sort(key=lambda pair: [-pair[1][name].value if name in pair[1] else 0.0 for name in _RATES])
    several = len(_devices(cases)) > 1
    columns = [*Column.header("case | device" if several else "case")]
    columns += [Column(name=name, dimension=kind, absent=NONE) for name, kind in kinds.items()]
    rows: list[tuple[Cell, ...]] = []
    for case, of in rated:
        where = (case.device or None,) if several else ()
        cells = [named(m.value, m.noun) if m else None for m in map(of.get, kinds)]
        rows.append((printable(str(case.key)), *where, *cells))
    return Table(columns=tuple(columns), rows=tuple(rows))


def _devices(cases: Iterable[CaseReport]) -> tuple[str, ...]:
    return tuple(sorted({case.device for case in cases} - {""}))


def _safe_row(case: CaseReport, verdict: Verdict) -> tuple[Cell, ...]:
    head = (verdict.outcome.value.upper(), printable(str(case.key)), verdict.limit.text)
    return shown(partial(_row, case, verdict), lambda why: (*head, printable(why), None, None, None))


def _row(case: CaseReport, verdict: Verdict) -> tuple[Cell, ...]:
    times = case.measurement.metrics.find("time") if case.measurement else ()
    return (
        word_of(case, verdict).upper(),
        printable(str(case.key)),
        by_floor(verdict.limit.text, verdict.raised),
        _measured(verdict),
        _then(case, verdict),
        _now(verdict, times),
        detectable_cell(verdict),
    )


def _now(verdict: Verdict, times: Sequence[Metric]) -> Cell:
    """Return the cell beside "then": the figure of a change, else the time of the call."""
    if verdict.limit.compare is not Compare.FIGURE:
        return value_text(verdict.metric) if verdict.metric else None
    return times[0].value if times else None


def _then(case: CaseReport, verdict: Verdict) -> Cell:
    """Return the other arm's time if it was measured, else the accepted one."""
    if verdict.limit.compare is not Compare.FIGURE:
        return value_text(verdict.figure, getattr(verdict.metric, "noun", "")) if verdict.figure else None
    beside = next((text for v in case.verdicts for label, text in v.evidence if label == THEN), "")
    baseline = verdict.baseline or case.baseline
    return printable(beside.partition("  ")[0]) or (baseline.time if baseline and baseline.time else None)


def _measured(verdict: Verdict) -> str | None:
    """Return what was compared with the limit; a change has a sign, as in the block."""
    if verdict.metric is None:
        return figure_note(verdict).strip(" ()") or None if verdict.outcome is Outcome.PASSED else None
    if verdict.limit.metric in CHANGES:
        return signed(verdict.metric.value) + of_builds(verdict)
    return f"{value_text(verdict.metric, limit=verdict.limit)}  {change_of(verdict)}".rstrip()


def detectable_cell(verdict: Verdict) -> Cell:
    """Return the smallest slowdown that could be detected; too few rounds of two builds detect none."""
    visible = None if few_rounds(verdict) else verdict.visible
    return visible if visible is None or visible < _DETECTS_NOTHING else detectable(visible)


def _pictures(cases: Sequence[CaseReport], history: History, started: str) -> tuple[Block, ...]:
    from pytest_perfgate.core.render.pictures import distribution_picture, history_picture, rounds_picture

    blocks: list[Block] = []
    several = len(_devices(cases)) > 1
    for case in cases[:_PICTURED]:
        device = case.device
        entries = tuple(s for s in history.get(str(case.key), ()) if not several or s.device == device)
        before = [entry for entry in entries if entry.when < started]
        title = f"{short_name(case.key)}, {device}" if several and device else short_name(case.key)
        drawn: list[Block | None] = [
            shown(partial(rounds_picture, case), _words),  # where there are any, they decided
            shown(partial(distribution_picture, case, before), _words),
            shown(partial(history_picture, case, entries), _words),
            *_figure_pictures(case, entries),
        ]
        pictures = tuple(picture for picture in drawn if picture)
        if pictures:
            blocks.append(Section(title=title, blocks=pictures))
    return (*_roofline(cases), *blocks)


def _figure_pictures(case: CaseReport, entries: Sequence[HistoryEntry]) -> Iterator[Block]:
    """Yield the history of every accepted figure other than time."""
    from pytest_perfgate.core.analysis.regressions import Trend
    from pytest_perfgate.core.judge.accepted_line import figure_levels
    from pytest_perfgate.core.render.pictures import timeline

    for own, levels, of_figure, of in figure_levels(entries, case.baseline) if case.baseline else ():
        trend = Trend(own, of_figure, of=of, levels=levels)
        if len(trend.entries) >= 3:
            drawn = [replace(entry, time=level) for entry, level in zip(trend.entries, trend.levels)]
            yield timeline(f"{of.title} of {short_name(case.key)}", drawn, trend.changes, trend.accepted, of)


def _words(why: str) -> Block | None:
    """Return the text in place of a missing picture."""
    return Paragraph(text=printable(why))


def _roofline(cases: Sequence[CaseReport]) -> tuple[Block, ...]:
    """Return all cases under one roof; one that cannot be drawn is named with the reason."""
    from pytest_perfgate.core.render.pictures import roofline_picture

    whole = shown(partial(roofline_picture, cases), _words)
    if not isinstance(whole, Paragraph):
        return (whole,) if whole else ()
    alone = [(case, shown(partial(roofline_picture, [case]), _words)) for case in cases]
    sound = [case for case, drawn in alone if not isinstance(drawn, Paragraph)]
    lost = [
        Section(title=short_name(case.key), blocks=(drawn,)) for case, drawn in alone if isinstance(drawn, Paragraph)
    ]
    rest = shown(partial(roofline_picture, sound), _words)
    return (*([rest] if rest else []), *lost)


def _surroundings(report: RunReport) -> Table:
    environment = report.environment
    devices = {case.measurement.device.name or case.measurement.device.key for case in report.cases if case.measurement}
    rows = [
        ("devices", ", ".join(sorted(devices)) or "none"),
        ("python", environment.python),
        ("platform", environment.platform),
        *((name, text) for name, text in (*environment.packages, *environment.facts)),
    ]
    return Table(columns=Column.header("what | value"), rows=tuple((n, printable(t)) for n, t in rows if t))


_SHARD_COLUMNS = Column.header("shard | host | device | cards | cases | took | began | its own")


def _shards(report: RunReport) -> tuple[Block, ...]:
    """Return the shards of a merged run, with their differences in environment."""
    if len(report.shards) < 2:
        return ()
    common = {*report.environment.facts, *report.environment.packages}
    rows = tuple(_shard_row(shard, common) for shard in report.shards)
    return (Section(title="Shards", blocks=(Table(columns=_SHARD_COLUMNS, rows=rows),)),)


def _shard_row(shard: Shard, common: set[tuple[str, str]]) -> tuple[Cell, ...]:
    own = [pair for pair in (*shard.environment.facts, *shard.environment.packages) if pair not in common]
    state = [] if shard.complete else ["cut short"]
    return (
        f"{shard.index}/{shard.count}",
        printable(shard.host),
        printable(shard.device),
        printable(", ".join(shard.cards)),
        str(len(shard.chosen)),
        span(shard.seconds),
        shard.started,
        printable("; ".join([*state, *(f"{name} {text}" for name, text in own)])),
    )


_VERDICT_COLUMNS = Column.header("outcome | limit | what was found | rests on")


def verdicts_document(subject: str, verdicts: Sequence[Verdict]) -> Document:
    """Return verdicts, the worst first, under a count of all."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    text = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in reversed(_ORDER) if counts[outcome])
    ordered = sorted(verdicts, key=lambda verdict: -_ORDER.index(verdict.outcome))
    table = Table(columns=_VERDICT_COLUMNS, rows=tuple(_verdict_row(verdict) for verdict in ordered))
    return Document(title="Limits", subtitle=printable(subject), blocks=(Paragraph(text=f"{text}."), table))


def _verdict_row(verdict: Verdict) -> tuple[str, ...]:
    facts = [f"{name}: {text}" for name, text in verdict.evidence] + [f"next: {command}" for command in verdict.next]
    name = verdict.outcome.name.replace("_", " ")
    return name, printable(verdict.limit.text), printable(verdict.sentence), printable("; ".join(facts))
