"""A project's history as pages: an overview, one page a device, one page a case, without scripts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.regressions import Findings, Step, Trend, by_commit, joined_runs, steps
from pytest_perfgate.core.render.html import STYLE, Markup, markup_table
from pytest_perfgate.core.render.html import markup_text as _text
from pytest_perfgate.core.render.rooflines import SITE_STYLE, label, sparkline, trend_svg
from pytest_perfgate.core.render.words import FigureLevel, plural, printable, quantity
from pytest_perfgate.model.measurement import HistoryEntry, short_commit
from pytest_perfgate.model.metric import figure_title
from pytest_perfgate.model.values import first_of, grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey

_RUNS, _LISTED, _DIGITS = 25, 20, 7
"""The most runs of a page, the most runs of the overview, the digits of a commit."""

_STEPS, _DETAILED = 50, 60
"""The most changes in a table of the overview, and the runs of a page with all figures."""

_FAILING = frozenset({"regressed", "broken", "invalid", "not measured"})


@value
class Site:
    """What all pages share."""

    name: str
    commits: str = ""
    """Address of a commit, with ``{}`` for its hash; "" if unknown."""


def case_path(device: str, key: CaseKey) -> str:
    name = str(key)
    short = re.sub(r"[^A-Za-z0-9]+", "-", name.partition("::")[2] or name).strip("-")[-60:].strip("-")
    return f"{device_path(device)}/{short}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}.html"


def device_path(device: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", device).strip(".") or "device"


def site_pages(
    site: Site, trends: Sequence[Trend], every: Findings, figures: Sequence[Trend]
) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every file of the site; ``figures`` are series of accepted figures other than time."""
    own = grouped(figures, lambda series: (series.device, series.key))
    yield "style.css", f"{STYLE}{SITE_STYLE}"
    yield "index.html", _index(site, trends, every)
    for trend in trends:
        yield case_path(trend.device, trend.key), _case(site, trend, own.get((trend.device, trend.key), ()))
    for device, cases in grouped(trends, lambda trend: trend.device).items():
        same_names = [series for case in cases for series in own.get((device, case.key), ())]
        yield f"{device_path(device)}/index.html", _device(site, device, cases, same_names)


def _page(title: str, body: Iterable[str], way: Sequence[tuple[str, str]] = ()) -> str:
    """Return a page; all but the overview are in a folder, with a link back."""
    up = "../" if way else ""
    trail = " › ".join(f'<a href="{escape(to)}">{escape(text)}</a>' for text, to in way)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'self' file: "
        "'unsafe-inline'; img-src data:\">\n"
        f'<title>{escape(title)}</title>\n<link rel="stylesheet" href="{up}style.css">\n</head>\n<body>\n<main>\n'
        f"{f'<p class=trail>{trail}</p>' if trail else ''}<h1>{label(title)}</h1>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _minute(when: str) -> str:
    return when[:16].replace("T", " ")


def _figure(text: str, kind: str = "") -> Markup:
    return Markup(escape(text), number=True, kind=kind)


def _moved(of: FigureLevel, then: float, now: float) -> Markup:
    """Return a change in the words of its figure; a negligible one has no colour."""
    share = of.sign * (now / then - 1) if then else 0.0
    kind = "slower" if share > 0 else "faster"
    if abs(share) < (1e-9 if of.exact else 0.02):
        kind = ""
    return _figure(of.step(then, now) if then else "", kind)


def _outcome(text: str) -> Markup:
    """Return an outcome as a badge; a passed one has none."""
    badge = f'<span class="outcome {escape(text.replace(" ", "-"))}">{escape(text)}</span>'
    return Markup(text, kind="s") if text in {"", "passed"} else Markup(badge)


def _commit(site: Site, commit: str) -> Markup:
    text = escape(short_commit(commit, _DIGITS))
    if site.commits and re.fullmatch(r"[0-9a-f]{7,64}", commit):
        text = f'<a href="{escape(site.commits.replace("{}", commit))}">{text}</a>'
    return Markup(text, kind="s")


def _link(key: CaseKey, to: str, note: str = "") -> Markup:
    return Markup(f'<a href="{escape(to)}">{label(str(key))}</a>{escape(f" {note}".rstrip())}')


def _index(site: Site, trends: Sequence[Trend], every: Findings) -> str:
    newest = max((trend.newest.when for trend in trends), default="")
    devices = dict.fromkeys(trend.device for trend in trends)
    counts = f"{plural(every.cases, 'case')} on {plural(len(devices), 'device')}, {plural(every.runs, 'run')}"
    body = [f'<p class="subtitle">{counts}, the newest of {escape(_minute(newest))}</p>', *_slower(site, every)]
    runs = joined_runs(trends)
    body += ["<h2>Devices</h2>", *_devices(trends, every, runs)]
    for title, part in (("Accepted", every.accepted), ("Faster", every.faster)):
        body += [f"<h2>{title}</h2>", *_steps(site, part)] if part else []
    body += ["<h2>Went away</h2>", *_past_changes(site, every.gone)] if every.gone else []
    unseen = [
        (_link(stale.key, case_path(stale.device, stale.key)), _text(stale.device), _text(stale.when[:10]))
        for stale in every.unseen
        if stale.key
    ]
    body += ["<h2>Not measured lately</h2>", *markup_table(("case", "device", "last"), unseen)] if unseen else []
    body += ["<h2>Newest runs</h2>", *_listed(site, runs)]
    return _page(site.name, body)


def _slower(site: Site, every: Findings) -> Iterator[str]:
    yield "<h2>Lasting slowdowns</h2>"
    if not every.slower:
        yield '<p class="good">No lasting slowdown.</p>'
    for cause, group in by_commit(every.slower):
        first, cases = min(group, key=lambda step: step.when), len({(step.device, step.key) for step in group})
        yield f"<h3>{_linked_cause(site, cause, first)} · {plural(cases, 'case')} · {escape(first.when[:10])}</h3>"
        if first.moved and cause == short_commit(first.commit, _DIGITS):
            yield f'<p class="note">Also moved: {escape(printable(_also(first.moved)))}</p>'
        yield from _steps(site, group, by_one=True)


def _also(moved: Iterable[tuple[str, str, str]]) -> str:
    return ", ".join(f"{name} {then or 'none'} → {now or 'none'}" for name, then, now in moved)


def _linked_cause(site: Site, cause: str, step: Step) -> str:
    """Return the commit, as a link if it has a page, or what else changed."""
    return _commit(site, step.commit).html if cause == short_commit(step.commit, _DIGITS) else escape(cause)


def _past_changes(site: Site, every: Sequence[Step]) -> Iterator[str]:
    """Yield a row for each commit whose changes are gone, so that nobody needs to act."""
    rows = [
        (
            Markup(_linked_cause(site, cause, group[0])), _figure(f"{len(group):,}"),
            _text(", ".join(sorted({step.device for step in group}))),
            _moved(group[0].of, group[0].before, group[0].after),
            _text(min(step.when for step in group)[:10]),
        )
        for cause, group in by_commit(every)
    ]  # fmt: skip
    yield from markup_table(("at", "cases", "devices", "largest", "on"), rows)


def _steps(site: Site, every: Sequence[Step], *, by_one: bool = False) -> Iterator[str]:
    """Yield the largest changes; those of one commit without its columns."""
    heads = ("case", "device", "change", "now", "before", "after", "at", "since", "why")
    ordered = sorted(every, key=lambda step: -abs(step.change))
    rows = [
        (
            _link(s.key, case_path(s.device, s.key), s.of.title), _text(s.device),
            *(_moved(s.of, s.before, at) for at in (s.after, s.now)),
            _figure(s.of.text(s.before)), _figure(s.of.text(s.after)),
            Markup("") if by_one else _commit(site, s.commit), _text("" if by_one else s.when[:10]), _text(s.accepted),
        )
        for s in ordered[:_STEPS]
    ]  # fmt: skip
    yield from markup_table(heads, rows)
    if len(ordered) > _STEPS:
        yield f'<p class="note">{len(ordered) - _STEPS:,} more with smaller changes are on the pages of the devices</p>'


def _devices(trends: Sequence[Trend], every: Findings, runs: Sequence[Sequence[HistoryEntry]]) -> Iterator[str]:
    counts = Counter(device for run in runs for device in {s.device for s in run})
    unseen = {stale.device for stale in every.unseen if stale.key is None}
    rows = []
    for device in dict.fromkeys(trend.device for trend in trends):
        own = [trend for trend in trends if trend.device == device]
        last = max(trend.newest.when for trend in own)
        rows.append((
            Markup(f'<a href="{escape(device_path(device))}/index.html">{escape(device)}</a>'),
            _figure(f"{len(own):,}"), _figure(f"{counts[device]:,}"),
            _text(f"{last[:10]}, not lately" if device in unseen else last[:10]),
            _figure(str(len({step.key for step in every.slower if step.device == device}) or "")),
            _figure(str(len({step.key for step in every.faster if step.device == device}) or "")),
        ))  # fmt: skip
    yield from markup_table(("device", "cases", "runs", "newest", "slower", "faster"), rows)


def _listed(site: Site, runs: Sequence[Sequence[HistoryEntry]]) -> Iterator[str]:
    """Yield the newest runs of all devices, with what failed in each."""
    rows = [
        (
            _text(_minute(run[0].when)), _commit(site, run[0].commit),
            _figure(f"{len(run):,}"), _figure(str(sum(s.outcome in _FAILING for s in run) or "")),
            _text(", ".join(sorted({s.device for s in run}))), _text(first_of(sorted({s.host for s in run}), 3)),
        )
        for run in runs[: -_LISTED - 1 : -1]
    ]  # fmt: skip
    yield from markup_table(("when", "commit", "cases", "failed or not measured", "device", "host"), rows)


def _device(site: Site, device: str, trends: Sequence[Trend], figures: Sequence[Trend]) -> str:
    body = [f'<p class="subtitle">{plural(len(trends), "case")}; the largest worsening first</p>']
    gated = {figure.key for figure in figures}
    body += _overview(site, [trend for trend in trends if trend.entries or trend.key not in gated])
    moved = [one for one in figures if _news(one)]
    body += ["<h2>Gated figures</h2>", *_overview(site, moved)] if figures else []
    still = plural(len(figures) - len(moved), "other figure")
    body += [f'<p class="note">{still} without a step, and as accepted</p>'] if len(moved) < len(figures) else []
    return _page(device, [*body, *_speedups(trends)], ((site.name, "../index.html"),))


def _overview(site: Site, trends: Sequence[Trend]) -> Iterator[str]:
    heads = ("case", "trend", "now", "against accepted", "last step", "at", "outcome", "last")
    rows = [
        (
            _case_link(t), Markup(sparkline(t.levels)), _level(t, t.now), _against_accepted(t, t.now), _step(t),
            _commit(site, t.entries[t.changes[-1].index].commit if t.changes else ""), _outcome(t.newest.outcome),
            _text(t.newest.when[:10]),
        )
        for t in sorted(trends, key=_open_first)
    ]  # fmt: skip
    return markup_table(heads, rows)


def _case_link(trend: Trend) -> Markup:
    """Return a link from the page of its device."""
    return _link(trend.key, case_path(trend.device, trend.key).partition("/")[2], trend.of.title)


def _level(trend: Trend, level: float) -> Markup:
    return _figure(trend.of.text(level) if level else "")


def _against_accepted(trend: Trend, level: float) -> Markup:
    return _moved(trend.of, trend.accepted.time, level) if trend.accepted else _figure("")


def _step(trend: Trend) -> Markup:
    return _moved(trend.of, trend.changes[-1].before, trend.changes[-1].after) if trend.changes else _figure("")


def _news(trend: Trend) -> bool:
    """Return whether a figure ever changed, or differs from the accepted one."""
    return bool(trend.changes or _against_accepted(trend, trend.now).kind)


def _open_first(trend: Trend) -> tuple[float, float, str]:
    """Return the rank of a case: open regressions by size, then by how much worse than accepted, then by name."""
    slower = (step for step in steps(trend) if trend.of.sign * step.change > 0)
    is_open = any(not step.reverted and not step.accepted for step in slower)
    then = trend.accepted.time if trend.accepted else 0.0
    worse = max(0.0, trend.of.sign * (trend.now / then - 1)) if then > 0 else 0.0
    return (-abs(trend.changes[-1].change) if is_open else 0.0, -worse, str(trend.key))


def _speedups(trends: Sequence[Trend]) -> Iterator[str]:
    """Yield a column for each reference, if calls were compared with one."""
    by_trend: list[tuple[Trend, dict[str, str]]] = []
    for trend in trends:
        speedups = [metric for metric in trend.newest.metrics if metric.name == "speedup"]
        if speedups:
            by_trend.append(
                (trend, {", ".join(text for _, text in m.labels): quantity(m.value, m.dimension, 3) for m in speedups})
            )
    references = sorted({reference for _, ratios in by_trend for reference in ratios})
    rows = [(_case_link(trend), *(_figure(ratios.get(name, "")) for name in references)) for trend, ratios in by_trend]
    yield "<h2>Speed-up</h2>" if references else ""
    heads = (f"over {escape(reference)}" if reference else "speed-up" for reference in references)
    yield from markup_table(("case", *heads), rows)


def _case(site: Site, trend: Trend, figures: Sequence[Trend]) -> str:
    first, newest = trend.runs[0], trend.newest
    body = [f'<p class="subtitle">{plural(len(trend.runs), "run")} from {first.when[:10]} to {newest.when[:10]}</p>']
    body += _line(site, trend) if trend.entries else [f"<p>{_outcome(newest.outcome).html}</p>"]
    for figure in filter(_news, figures):
        body += [f"<h2>{label(figure.of.title)}</h2>", *_line(site, figure)]
    body += [
        *_metrics(trend, {one.of.title: one for one in figures}),
        "<h2>Runs</h2>",
        *_runs(site, trend, figures),
        *_facts(newest),
    ]
    return _page(printable(str(trend.key)), body, ((site.name, "../index.html"), (trend.device, "index.html")))


def _line(site: Site, trend: Trend) -> Iterator[str]:
    """Yield one figure over time: cards, drawing, levels."""
    yield from _cards(site, trend)
    if len(trend.entries) > 1:
        yield trend_svg(trend)
    yield from _levels(site, trend)


def _cards(site: Site, trend: Trend) -> Iterator[str]:
    """Yield the main values: now, accepted, anchor, the last step."""
    now = trend.now
    cards = [("newest", trend.of.text(now), "" if trend.of.title else _outcome(trend.newest.outcome).html)]
    for name, line in (("accepted", trend.accepted), ("anchor", trend.anchor)):
        if line is not None and line.time > 0:
            since = ": ".join(filter(None, (line.when[:10], printable(line.why))))
            note = f"now {trend.of.step(line.time, now)}{'; ' if since else ''}{since}"
            cards.append((name, trend.of.text(line.time), escape(note)))
    if trend.changes:
        at = trend.entries[trend.changes[-1].index]
        cards.append(("last step", _step(trend).html, f"{_commit(site, at.commit).html} {escape(at.when[:10])}"))
    shown = (f"<div><dt>{name}</dt><dd>{text}</dd><p>{note}</p></div>" for name, text, note in cards)
    yield f'<dl class="cards">{"".join(shown)}</dl>'


def _levels(site: Site, trend: Trend) -> Iterator[str]:
    """Yield each level of a series with its commit and what else changed, the newest first."""
    if not trend.changes:
        return
    edges = [0, *(change.index for change in trend.changes), len(trend.entries)]
    rows, then = [], trend.accepted.time if trend.accepted else 0.0
    for at, start in list(enumerate(edges[:-1]))[: -_RUNS - 1 : -1]:
        change = trend.changes[at - 1] if at else None
        own = trend.entries[start : edges[at + 1]]
        others = trend.moved(change) if change else ()
        newest = trend.accepted and trend.accepted.when[:10] >= own[0].when[:10] and at == len(edges) - 2
        near = change is None or abs(change.after - then) < abs(change.before - then)  # not what came before the step
        reason = trend.accepted.why if trend.accepted and newest and near else ""
        rows.append((
            _text(own[0].when[:10]), _commit(site, own[0].commit), _figure(str(len(own))),
            _figure(trend.of.text(median(trend.levels[start : edges[at + 1]]))),
            _moved(trend.of, change.before, change.after) if change else _figure(""),
            _figure(f"{change.p:.3f}" if change and change.p else ""), _text(_also(others)), _text(reason),
        ))  # fmt: skip
    yield "" if trend.of.title else "<h2>Levels</h2>"
    heads = ("from", "commit", "runs", "level" if trend.of.title else "time", "change", "p by chance")
    yield from markup_table((*heads, "also moved", "accepted for"), rows)


def _metrics(trend: Trend, gated: Mapping[str, Trend]) -> Iterator[str]:
    """Yield every figure of the newest run, its origin, and its accepted value."""
    detailed, trends = (
        [entry for entry in trend.runs[-_DETAILED:] if entry.metrics],
        {trend.of.title or "time": trend, **gated},
    )
    rows = []
    own = (m for m in (detailed[-1].metrics if detailed else ()) if m.name != "slowdown")  # its time says it
    for now in own:
        line = [m.value for s in detailed for m in s.metrics if (m.name, m.labels) == (now.name, now.labels)]
        name, gated_trend = figure_title(now.name, now.labels), trends.get(figure_title(now.name, now.labels))
        before = FigureLevel(dimension=now.dimension).step(line[-2], now.value) if line[-2:-1] > [0.0] else ""
        rows.append((
            _text(name), _figure(quantity(now.value, now.dimension)),
            _figure(gated_trend.of.text(gated_trend.accepted.time) if gated_trend and gated_trend.accepted else ""),
            _against_accepted(gated_trend, gated_trend.now) if gated_trend else _figure(""),
            Markup(sparkline(line)), _figure(before),
        ))  # fmt: skip
    yield "<h2>Figures</h2>" if rows else ""
    yield from markup_table(("figure", "newest", "accepted", "against accepted", "trend", "since the run before"), rows)


def _runs(site: Site, trend: Trend, figures: Sequence[Trend]) -> Iterator[str]:
    shown = trend.runs[-_RUNS:]
    several = {name for name in ("host", "card") if len({getattr(s, name) for s in shown}) > 1}
    own = []
    for series in figures:
        newest = zip(series.entries[-_RUNS:], series.levels[-_RUNS:])
        own.append({(entry.run, entry.when): series.of.text(level) for entry, level in newest})
    rows = [
        (
            _text(_minute(s.when)), _commit(site, s.commit), _level(trend, s.time), _against_accepted(trend, s.time),
            *(_figure(texts.get((s.run, s.when), "")) for texts in own), _outcome(s.outcome),
            _text(s.host if "host" in several else ""), _text(s.card[:12] if "card" in several else ""),
        )
        for s in reversed(shown)
    ]  # fmt: skip
    heads = ("when", "commit", "time", "against accepted", *(label(series.of.title) for series in figures), "outcome")
    yield from markup_table((*heads, "host", "card"), rows)


def _facts(newest: HistoryEntry) -> Iterator[str]:
    facts = [("measured with", newest.identity), ("host", newest.host), ("card", newest.card), *newest.facts]
    if rows := [(_text(name), _text(text)) for name, text in facts if text]:
        yield "<details><summary>Environment of the newest run</summary>"
        yield from (*markup_table(("what", "value"), rows), "</details>")
