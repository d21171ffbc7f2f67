"""The devlog, the history, and pages on acceptance."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.results import Place, Previous, issues_of, of_longest, place_of
from pytest_perfgate.core.judge.accepted_line import LIMIT, drift
from pytest_perfgate.core.judge.context import how_measured
from pytest_perfgate.core.render.block import accepted_text
from pytest_perfgate.core.render.pictures import history_text, timeline
from pytest_perfgate.core.render.words import ABSENT, change_of, figure_text, plural, printable, quantity, shown, signed
from pytest_perfgate.core.stats.change_points import ChangePoint, change_points
from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Measurement, short_commit
from pytest_perfgate.model.metric import Block, Column, Document, Figure, Metric, Paragraph, Section, Table
from pytest_perfgate.model.values import Better, Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.verdict import CaseReport

ROWS: tuple[tuple[str, str, Dimension, Better], ...] = (
    ("Duration", "time", Dimension.TIME, Better.LOWER),
    ("Achieved TFLOPs/s", "tflops", Dimension.FLOPS, Better.HIGHER),
    ("Achieved GB/s", "bandwidth", Dimension.BANDWIDTH, Better.HIGHER),
    ("Occupancy", "occupancy", Dimension.FRACTION, Better.HIGHER),
    ("TC Util", "tc_util", Dimension.FRACTION, Better.HIGHER),
)
_HOST = (ROWS[0], ("Achieved FLOP/s", *ROWS[1][1:]), ("Achieved B/s", *ROWS[2][1:]))  # no occupancy, no tensor cores

_OWN = ("Issues", "Insights")
"""Paragraphs that people write; they stay when an entry is written again."""
_EMPTY = "_none yet_"

_MANY = 4  # the number of cases with only a time from which they share a table
_CONFIRMED = frozenset({"regressed", "improved"})


@value
class Version:
    """The subject of an entry."""

    name: str
    """A tag, or a short commit."""
    changed: str = ""
    when: str = ""


def render_entry(
    version: Version,
    cases: Sequence[CaseReport],
    kept: Mapping[str, str] | None = None,
    before: Mapping[Place, Previous] | None = None,
    sections: str = "",
) -> str:
    """Return an entry: a heading, each case with its table and bottleneck, more sections, and people's paragraphs."""
    kept, known = kept or {}, before or {}
    when = f" ({version.when})" if version.when else ""
    lines = [f"## {_one_line(version.name)}{when}", ""]
    lines += [_one_line(version.changed), ""] if version.changed else []
    measured = [(case.key, case.measurement) for case in cases if case.measurement is not None]
    confirmed = {case.key for case in cases if any(v.rounds and v.outcome.value in _CONFIRMED for v in case.verdicts)}
    gated = {case.key for case in cases if any(v.figure is not None for v in case.verdicts)}
    bare = [(key, m) for key, m in measured if key not in gated and shown(partial(_is_bare, m), lambda _: False)]
    bare = bare if len(bare) >= _MANY else []
    shared = {place_of(key, metrics) for key, metrics in bare}
    for key, metrics in measured:
        if place_of(key, metrics) not in shared:
            instead = partial(_unrendered_case, key)
            before_it = known.get(place_of(key, metrics))
            lines += shown(partial(_case_lines, key, metrics, before_it, confirmed=key in confirmed), instead)
            lines += [*_gated_lines(cases, metrics), ""]
    lines += [*_bare_lines(bare, known, confirmed), ""] if bare else []
    lines += [sections.rstrip(), ""] if sections else []
    by_run = (f"- {_one_line(text)}{_BY_RUN}" for text in issues_of(cases))
    written = {**kept, "Issues": "\n".join(filter(None, (kept.get("Issues", ""), *by_run)))}
    for name in _OWN:
        lines += [f"**{name}**", "", written.get(name) or _EMPTY, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


_BY_RUN = " _(by the run)_"
"""Marks an issue that the run generates, which is written again and not kept as a person's text."""


def _gated_lines(cases: Sequence[CaseReport], measurement: Measurement) -> Iterator[str]:
    """Yield each figure with an accepted value, with both values and the outcome."""
    verdicts = [v for case in cases if case.measurement is measurement for v in case.verdicts if v.figure is not None]
    if verdicts:
        yield from ("", "| Gated figure | Accepted -> now | Change | Limit |  |", "|---|---|---:|---|---|")
    for v in verdicts:
        figure = v.figure
        assert figure is not None
        title = _one_line(figure.title).replace("|", "\\|")
        yield f"| {title} | {figure_text(figure, v.metric)} | {change_of(v)} | {v.limit.text} | {v.outcome.value} |"


def _is_bare(measurement: Measurement) -> bool:
    """Return whether only its time is known, so that a full entry would be empty."""
    has_more = any(measurement.metrics.find(name) for _, name, *_ in ROWS[1:])
    return not has_more and _bottleneck(measurement) == ABSENT and bool(measurement.metrics.find("time"))


def _bare_lines(
    bare: Sequence[tuple[CaseKey, Measurement]], before: Mapping[Place, Previous], confirmed: Collection[CaseKey]
) -> Iterator[str]:
    """Yield one line for each case with only a time."""
    places = dict.fromkeys(printable(m.device.name or m.device.key) for _, m in bare)
    yield from (f"### {len(bare)} cases of which only the time was collected ({_one_line(', '.join(places))})", "")
    yield from ("| Case | Duration | vs Previous | Previous |", "|---|---:|---:|---|")
    for key, measurement in bare:
        own = f" ({printable(measurement.device.name)})" if len(places) > 1 else ""
        name = _one_line(f"{key}{own}").replace("|", "\\|")
        cells = partial(_bare_cells, measurement, before.get(place_of(key, measurement)), confirmed=key in confirmed)
        yield f"| {name} {shown(cells, _cells)} |"


def _cells(why: str) -> str:
    return f"| {ABSENT} |  | {_one_line(why).replace('|', '/')}"


def _bare_cells(measurement: Measurement, before: Previous | None, *, confirmed: bool) -> str:
    _, figure, change = _row(ROWS[0], measurement, before, confirmed=confirmed).strip("|").split("|")
    text = _previous_line(before).removeprefix("Previous: ").removesuffix(".")
    return f"| {figure.strip()} | {change.strip()} | {_one_line(text)}"


def _unrendered_case(key: CaseKey, why: str) -> list[str]:
    return [f"### {_one_line(str(key))}", "", _one_line(why)]


def _case_lines(key: CaseKey, measurement: Measurement, before: Previous | None, *, confirmed: bool) -> list[str]:
    locked = ", locked clocks" if measurement.identity.clocks == "lock" else ""
    dtype = f", {measurement.work.dtype}" if measurement.work and measurement.work.dtype else ""
    device = printable(measurement.device.name or measurement.device.key) + _of_report(measurement)
    named = ", ".join(f"{name}={text}" for name, text in measurement.params)
    parameters = _one_line(named or key.nodeid.partition("[")[2].removesuffix("]"))
    shape = f", {parameters}" if parameters else ""
    lines = [f"### {_one_line(str(key))}", "", f"**Performance** ({device}{locked}{dtype}{shape}):", ""]
    lines += ["| Metric | Value | vs Previous |", "|---|---:|---:|"]
    own = measurement.device.kind == "host" and not _of_report(measurement)
    lines += [_row(row, measurement, before, confirmed=confirmed) for row in (_HOST if own else ROWS)]
    return [*lines, "", _one_line(_previous_line(before)), "", f"**Bottleneck**: {_bottleneck(measurement)}"]


def _of_report(measurement: Measurement) -> str:
    """Return a note if the figures are from a report of another device than the test's."""
    archs = {dict(m.labels).get("arch", "") for m in measurement.metrics.metrics} - {""}
    note = f"; figures of {', '.join(sorted(archs))} by its report"
    return note if archs and measurement.device.kind == "host" else ""


def _previous_line(before: Previous | None) -> str:
    """Return what "previous" means, which the changes in percent refer to."""
    if before is None:
        return "Previous: none that was measured in the same way."
    of = ", ".join(filter(None, (before.commit, before.when, "UNDECIDED in that run" if before.undecided else "")))
    return f"Previous: {'measured' if before.metrics is not None else 'the accepted time'}{f' ({of})' if of else ''}."


def _row(
    row: tuple[str, str, Dimension, Better], measurement: Measurement, before: Previous | None, *, confirmed: bool
) -> str:
    title, name, dimension, better = row
    metrics = of_longest(measurement.metrics, name)
    if metrics is None and name == "time":
        metrics = of_longest(measurement.metrics, "duration") or of_longest(measurement.metrics, "total_time")
    figure = quantity(metrics.value, dimension) if metrics else ABSENT
    if metrics is None or before is None:
        return f"| {title} | {figure} |  |"
    if before.metrics is not None:
        change = _change(metrics, of_longest(before.metrics, metrics.name), confirmed=confirmed)
        return f"| {title} | {figure} | {change} |"
    return f"| {title} | {figure} | {_against(metrics, better, measurement, before.time)} |"


def _change(now: Metric, then: Metric | None, *, confirmed: bool) -> str:
    """Return the change of a figure, for fractions in points; one that two builds ``confirmed`` is no noise."""
    if then is None:
        return ABSENT
    if now.dimension is Dimension.FRACTION:
        return f"{(now.value - then.value) * 100:+.1f} pp"
    both = [m.interval for m in (now, then) if m.interval and m.dimension is Dimension.TIME]
    alike = len(both) > 1 and max(one.low for one in both) <= min(one.high for one in both)
    moved = _moved(now.value / then.value - 1, now.name) if then.value else ""
    return f"{moved} (within noise)" if alike and moved and not confirmed else moved


def _moved(change: float, name: str) -> str:
    """Return the change of a time in words, since its sign could be misread, and of others with a sign."""
    text, timed = signed(change), name in ("time", "duration", "total_time") and change
    return f"{text.lstrip('+-')} {'faster' if change < 0 else 'slower'}" if timed else text


def _against(metric: Metric, better: Better, measurement: Measurement, then: float | None) -> str:
    """Compare with an earlier time; rates of the same work follow from it, other figures do not."""
    time = of_longest(measurement.metrics, "time")
    if time is None or not then or metric.dimension is Dimension.FRACTION:
        return ""
    return _moved(time.value / then - 1 if better is Better.LOWER else then / time.value - 1, metric.name)


def _bottleneck(measurement: Measurement) -> str:
    findings = (f for f in measurement.findings if "bound" in f"{f.title} {f.detail.partition(':')[0]}".lower())
    if finding := next(findings, None):
        return _one_line(": ".join(filter(None, (finding.title, finding.detail))))
    sol = next((m for m in measurement.metrics.find("sol") if not m.labels), None)
    if sol is None:
        return ABSENT
    from pytest_perfgate.core.analysis.classify import Bottleneck, Signals, classify
    from pytest_perfgate.core.analysis.roofline import IN_CACHE

    parts = {dict(m.labels)["roof"]: m.value for m in measurement.metrics.metrics if m.name == "sol" and m.labels}
    memory = parts.get("memory", 0.0 if IN_CACHE in sol.note else None)
    classified = classify(Signals(compute=parts.get("compute"), memory=memory))
    word = f"{classified.short}. " if classified.bottleneck is not Bottleneck.NOT_COLLECTED else ""
    return f"{word}{quantity(sol.value, Dimension.FRACTION, 3)} of SOL; {_one_line(sol.note)}"


def written(log: str, entry: str) -> str:
    """Return the log with this entry: replacing one with the same heading, otherwise at the end."""
    heading = entry.partition("\n")[0]
    span = _span(log, heading)
    if span is None:
        head = log.rstrip("\n") + "\n\n" if log.strip() else "# Development log\n\n"
        return head + entry
    start, end = span
    tail = log[end:]
    return log[:start] + entry + ("\n" + tail if tail else "")


def kept_paragraphs(log: str, version: Version) -> dict[str, str]:
    """Return what people wrote in the entry of this version."""
    heading = render_entry(version, ()).partition("\n")[0]
    span = _span(log, heading)
    if span is None:
        return {}
    text = log[span[0] : span[1]]
    paragraphs = {}
    for name, end in zip(_OWN, ("**Insights**", "")):
        _, sign, rest = text.partition(f"**{name}**")
        body = (rest.partition(end)[0] if end else rest).strip()
        own = "\n".join(line for line in body.splitlines() if not line.endswith(_BY_RUN)).strip()
        if sign and own and own != _EMPTY:
            paragraphs[name] = own
    return paragraphs


def _span(log: str, heading: str) -> tuple[int, int] | None:
    """Return (start, end) of the entry with this heading, of any date."""
    name = re.sub(r" \(\d{4}-\d{2}-\d{2}\)\Z", "", heading)
    match = re.search(rf"^{re.escape(name)}(?: \(\d{{4}}-\d{{2}}-\d{{2}}\))?[ \t]*$", log, re.MULTILINE)
    if not match:
        return None
    following = re.search(r"^## ", log[match.end() :], re.MULTILINE)
    return match.start(), match.end() + following.start() if following else len(log)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


Told = tuple["CaseKey", str, Sequence[HistoryEntry], "Baseline | None"]

_BARS = "▁▂▃▄▅▆▇█"

_TIME = Dimension.TIME

Anchors = Mapping[tuple[str, str], Baseline]
"""(device, case) to the line of the revision that is the fixed anchor."""


Detailed = Mapping[tuple[str, str], Sequence[HistoryEntry]]
"""(device, case) to its runs with their figures."""


def history_document(
    cases: Sequence[Told], *, overview: bool, anchors: Anchors | None = None, figures: Detailed | None = None
) -> Document:
    """Return all cases with their last run, or each case with all of its own."""
    if overview:
        return Document(title="History", blocks=(_overview(cases),))
    sections = [_section(case, anchors or {}, (figures or {}).get((case[1], str(case[0])), ())) for case in cases]
    return Document(title="History", blocks=tuple(sections))


def _overview(cases: Sequence[Told]) -> Table:
    columns = (*Column.header("case | device | last: time"), *Column.header("accepted: time | when (UTC)", absent="-"))
    rows = tuple(
        (printable(str(key)), device, s[-1].time or None if s else None, _accepted(b), s[-1].when[:16] if s else "")
        for key, device, s, b in cases
    )
    return Table(columns=columns, rows=rows)


def _accepted(line: Baseline | None) -> float | str:
    """Return the accepted time, or the number of accepted figures without one."""
    if line is None:
        return "none"
    return line.time or plural(len(line.figures), "figure")


def _section(case: Told, anchors: Anchors, detailed: Sequence[HistoryEntry]) -> Section:
    key, device, entries, baseline = case
    own = tuple(_figure_blocks(detailed, baseline)) if baseline is not None else ()
    title = f"{printable(str(key))} on {device}"
    if own and not any(entry.time for entry in entries):
        return Section(title=title, blocks=own)
    changes = change_points([s.time for s in entries]) if all(s.time > 0 for s in entries) else ()
    line = f"{bars([s.time for s in entries])}  accepted: {accepted_text(baseline) if baseline else 'nothing'}"
    lines = [line, history_text(entries, changes), anchored(entries, anchors.get((device, str(key)), baseline))]
    paragraphs = tuple(Paragraph(text=text) for text in lines if text)
    drawn = (replace(timeline("Time", entries, changes, baseline), bars=()),) if entries[1:] else ()
    return Section(title=title, blocks=(*paragraphs, *drawn, _entries_table(entries, baseline, changes), *own))


def _figure_blocks(entries: Sequence[HistoryEntry], line: Baseline) -> Iterator[Block]:
    """Yield each accepted figure over time, in a line and in a column of one table."""
    series = {figure: _values(entries, figure) for figure in line.figures}
    known = {figure: numbers for figure, numbers in series.items() if any(number is not None for number in numbers)}
    yield from (Paragraph(text=_figure_line(figure, numbers, entries)) for figure, numbers in known.items())
    if not known:
        return
    columns = [*Column.header("when | commit")]
    columns += [Column(name=printable(figure.title), dimension=figure.dimension, absent="-") for figure in known]
    rows = zip([s.when[:16] for s in entries], [short_commit(s.commit, 7) for s in entries], *known.values())
    yield Table(columns=tuple(columns), rows=tuple(rows))


def _values(entries: Sequence[HistoryEntry], figure: Figure) -> list[float | None]:
    key = (figure.name, figure.labels)
    return [next((m.value for m in s.metrics if (m.name, m.labels) == key), None) for s in entries]


def _figure_line(figure: Figure, numbers: Sequence[float | None], entries: Sequence[HistoryEntry]) -> str:
    """Return ``registers  ▁▁█  accepted: 128; 130 since c0ffee1, from 128``."""
    known = [(number, entry) for number, entry in zip(numbers, entries) if number is not None]
    values = [number for number, _ in known]
    low = min(values)
    shift = 0.0 if low > 0 else 1.0 - low  # a value of 0 has no logarithm
    texts = []
    for change in change_points([number + shift for number in values]):
        then, now = (quantity(level - shift, figure.dimension) for level in (change.before, change.after))
        since = known[change.index][1]
        texts.append(f"{now} since {short_commit(since.commit, 7) or since.when[:16]}, from {then}")
    accepted = f"accepted: {quantity(figure.value, figure.dimension)}"
    return "; ".join([f"{printable(figure.title)}  {bars(values)}  {accepted}", *texts])


def _entries_table(entries: Sequence[HistoryEntry], accepted: Baseline | None, changes: Sequence[ChangePoint]) -> Table:
    """Return a row for each run, with columns for values that occur, and for how it was measured if that varied."""
    hows = [s.identity for s in entries] if len({s.identity for s in entries} - {""}) > 1 else []
    before: list[float | None] = [None, *(s.time for s in entries)]
    new = {change.index: signed(change.change) for change in changes}
    columns: list[tuple[Column, Sequence[object]]] = [
        (Column(name="when"), [s.when[:16] for s in entries]),
        (Column(name="commit"), [short_commit(s.commit, 7) for s in entries]),
        (Column(name="time", dimension=_TIME), [s.time for s in entries]),
        (
            Column(name="against accepted"),
            [_history_change(s.time, accepted.time if accepted and _resembles(s, accepted) else None) for s in entries],
        ),
        (Column(name="against the one before"), [_history_change(s.time, then) for s, then in zip(entries, before)]),
        (Column(name="new level"), [new.get(at, "") for at in range(len(entries))]),
        (Column(name="processes", dimension=Dimension.COUNT), [s.processes for s in entries]),
        (Column(name="measured with"), [printable(how) for how in hows]),
    ]
    shown = [(column, cells) for column, cells in columns if any(cell != "" for cell in cells)]
    return Table(columns=tuple(column for column, _ in shown), rows=tuple(zip(*(cells for _, cells in shown))))


def anchored(entries: Sequence[HistoryEntry], baseline: Baseline | None) -> str:
    """Return how far runs drifted from their fixed anchor, or else the accepted time; "" within the limit."""
    alike = [s for s in entries if baseline is not None and _resembles(s, baseline)]
    drifted = drift(alike, baseline.time, LIMIT, since=baseline.commit) if baseline else None
    if drifted is None or not drifted.alarms or drifted.steps < 2:  # a single run is not a drift
        return ""
    return f"ANCHOR  {signed(drifted.change)}: {drifted.sentence}"


def _resembles(entry: HistoryEntry, line: Baseline) -> bool:
    """Return whether a run was measured like the accepted time, as far as both record it."""
    then = line.identity
    return not entry.identity or then is None or entry.identity == how_measured(then, at_limit=line.limited)


def _history_change(time: float, then: float | None) -> str:
    return signed(time / then - 1) if then else ""


def bars(times: Sequence[float]) -> str:
    """Return a line of bars from the fastest to the slowest."""
    low, high = min(times, default=0.0), max(times, default=0.0)
    if high <= low:
        return _BARS[3] * len(times)
    return "".join(_BARS[round((t - low) / (high - low) * (len(_BARS) - 1))] for t in times)
