"""History, regressions, devlog."""

from __future__ import annotations

import datetime as dt
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import plain, say, show, whole, write, write_file, write_json
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError

HISTORY_ABOUT = """A case over time: its runs, the commits they were measured at, what was accepted.

  perfgate history gemm              one case, or those with this in their name
  perfgate history add runs/         take records in: files, folders, addresses

Records are the truth, and the history is an index of them: a record that is added twice counts once, and a history that
is lost is made again from its records. Without a name `add` takes those under .perfgate/records.
"""

_ADD = "add"


def history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case", nargs="?", default="", metavar="CASE", help="a node id or part of one (default: list all), or: add"
    )
    parser.add_argument("records", nargs="*", metavar="RECORD", help="after add: records, folders of them, addresses")
    parser.add_argument("--device", default="", metavar="KEY", help="only this device")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the case with its change points")
    parser.add_argument("--last", type=whole, default=20, metavar="N", help="so many runs (default 20)")
    add_root(parser)


def run_history(options: Namespace) -> int:
    from pytest_perfgate.core.render.logs import history_document

    project = Project(options)
    if options.case == _ADD:
        return _add(project, options)
    if options.records:
        mend = f"name one case, or write: perfgate history add {' '.join((options.case, *options.records))}"
        raise PerfgateError("command-usage", "history shows one case, and several were named", mend=mend)
    if options.svg:
        _insist_on_svg(options.svg)
    matches = _selected(project.history.keys(options.device), options.case)
    one = bool(options.case) or (bool(options.svg) and len(matches) == 1)
    cases = [
        (
            key,
            device,
            project.history.read(key, device, options.last if one else 1),
            _accepted(project, key, device),
        )
        for device, key in matches
    ]
    if options.svg:
        write_file(options.svg, _drawn(cases))
    if options.json:
        write_json([{"case": str(k), "device": d, "sittings": plain(s), "accepted": plain(b)} for k, d, s, b in cases])
    else:
        show(history_document(cases, overview=not one, anchors=_anchors(project, cases)), options)
        if options.svg:
            write(f"wrote {options.svg}")
    return 0


def _add(project: Project, options: Namespace) -> int:
    """Take records in; one that does not read is named, and costs no other its place."""
    from pytest_perfgate.app.accepted import added

    records = list(added(project.history, project.records.sources(options.records)))
    if not records:
        place = ", ".join(options.records) or str(project.records.folder)
        raise PerfgateError("record-missing", "no record lies there", place=place)
    new, faults = [one for one in records if one.new], [one for one in records if one.fault]
    again = len(records) - len(new) - len(faults) - sum(bool(one.left_out) for one in records)
    if options.json:
        write_json([{**plain(one), "fault": one.fault.text() if one.fault else ""} for one in records])
    else:
        write(f"added {plural(len(new), 'run')} with {plural(sum(one.new for one in new), 'result')}")
        if again:
            write(f"nothing new in {plural(again, 'record')}")
        for one in records:
            if one.left_out:
                write(f"left out {one.record}: {one.left_out}; full runs are remembered")
    for one in faults:
        sys.stderr.write(f"perfgate: {one.fault.text()}\n" if one.fault else "")
    return next((one.fault.exit for one in faults if one.fault), 0)


def _insist_on_svg(path: str) -> None:
    """An SVG file under another ending opens nowhere."""
    if Path(path).suffix.lower() != ".svg":
        mend = f"--svg {Path(path).with_suffix('.svg')}"
        raise PerfgateError("command-usage", f"--svg writes SVG, and {path!r} does not end in .svg", mend=mend)


def _drawn(cases: Any) -> str:
    """The one case that was found, as a picture."""
    from pytest_perfgate.core.render.drawing import alone
    from pytest_perfgate.core.render.pictures import timeline
    from pytest_perfgate.core.stats.change_points import change_points

    if len(cases) != 1:
        raise PerfgateError("command-usage", f"--svg draws one case, and {len(cases)} were found", mend="name one case")
    key, _, sittings, baseline = cases[0]
    changes = change_points([s.time for s in sittings])
    return alone(timeline(str(key), sittings, changes, baseline).svg)


def _selected(keys: Any, name: str) -> list[Any]:
    from pytest_perfgate.core.limits.merge import named
    from pytest_perfgate.core.limits.scope import proposal

    if not keys:
        mend = "full runs are remembered: pytest --perfgate=full"
        raise PerfgateError("history-empty", "no run was ever recorded here", mend=mend)
    exact = [(device, key) for device, key in keys if named([name])(key)] if name else list(keys)
    matches = exact or [(device, key) for device, key in keys if name.lower() in str(key).lower()]
    if not matches:
        mend = proposal(name, [str(key) for _, key in keys], all_of="the history has")
        raise PerfgateError("history-empty", f"the history has no case '{name}'", mend=mend)
    return matches


def _anchors(project: Project, cases: Any) -> dict[tuple[str, str], Any]:
    """The lines of the revision that ``[tool.perfgate] anchor`` names, such as the last release."""
    revision = project.config.anchor
    if not revision:
        return {}
    lines = {(d, str(k)): project.baselines.read(d, k.path, revision).get(str(k)) for k, d, _, _ in cases}
    return {at: line for at, line in lines.items() if line is not None}


def _accepted(project: Project, key: Any, device: str) -> Any:
    return project.baselines.read(device, key.path).get(str(key))


REGRESSIONS_ABOUT = """What got slower and did not go away, by the commit that moved it; and cases that nobody measured.

  perfgate regressions --since 7d --markdown digest.md

A change of level shows from three runs after it. A level that somebody accepted is listed apart.
"""


def regressions_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--since", default="", metavar="DAY", help="2026-06-01, or 7d: the last seven days")
    parser.add_argument("--device", default="", metavar="KEY", help="only devices like this, such as 'NVIDIA-*'")
    parser.add_argument("--over", type=share, default=None, metavar="SHARE", help="smallest change (default 2%%)")
    parser.add_argument("--stale", type=whole, default=14, metavar="N", help="days without a sitting (default 14)")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write it as Markdown; - for standard output")
    parser.add_argument("--fail", action="store_true", help="exit with 1 where something got slower and stayed so")
    add_root(parser)


def run_regressions(options: Namespace) -> int:
    from pytest_perfgate.core.analysis.regressions import OVER, findings, findings_document
    from pytest_perfgate.core.render.html import render_markdown

    today = dt.datetime.fromtimestamp(HOST_CLOCK.date(), dt.timezone.utc).date()
    since, before = day(options.since, today), day(f"{options.stale}d", today)
    lines = list(trends(Project(options), options.device or "*"))
    if not lines:
        raise PerfgateError("history-empty", f"the history has nothing of {options.device or 'any device'}")
    every = findings(lines, since=since, before=before, over=OVER if options.over is None else options.over)
    document = findings_document(every, since=since, stale_days=options.stale)
    if options.markdown == "-":
        write(render_markdown(document))
    elif options.markdown:
        write_file(options.markdown, render_markdown(document))
        say(f"wrote {options.markdown}", options)
    if options.json:
        write_json(plain(every))
    elif not options.markdown:
        show(document, options)
    return 1 if options.fail and every.slower else 0


def trends(project: Project, device: str = "*", last: int = 500, detailed: int = 0) -> Iterator[Any]:
    """The newest runs of every case and device, with what was accepted."""
    from pytest_perfgate.core.analysis.regressions import Trend

    lines: dict[str, tuple[Any, Any]] = {}
    revision = project.config.anchor
    for sittings in project.history.lines(last, detailed):
        name = sittings[-1].device if sittings else ""
        if not sittings or not fnmatchcase(name, device):
            continue
        if name not in lines:
            lines[name] = project.baselines.read_all(name), {}
        accepted, anchors = lines[name]
        key = sittings[-1].key
        if revision and key.path not in anchors:
            anchors[key.path] = project.baselines.read(name, key.path, revision)
        yield Trend(sittings, accepted.get(str(key)), anchors.get(key.path, {}).get(str(key)))


def day(text: str, today: dt.date) -> str:
    """A day as people write it, ISO: one of the calendar, or so many days ago."""
    try:
        if text.endswith("d"):
            return (today - dt.timedelta(days=int(text[:-1]))).isoformat()
        return dt.date.fromisoformat(text).isoformat() if text else ""
    except (ValueError, OverflowError) as fault:
        raise PerfgateError("command-usage", f"{text!r} is no day", mend="2026-06-01, or 7d") from fault


def share(text: str) -> float:
    """A share as people write it: 2% or 0.02."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise ArgumentTypeError(f"{text!r} is not a share, such as 2%")
    return number


DEVLOG_ABOUT = """Write the last run into a kernel's log: what it achieves, against the commit measured before it.

"vs Previous" is the newest earlier record of another commit, measured alike; without one, the accepted time; without
that, what was tried before it was committed.

An entry of the same version is written again in its place; Issues and Insights that people wrote stay.
"""


def devlog_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NODEID", help="only these cases")
    parser.add_argument("--file", default="", metavar="FILE", help="the log (default: print the entry)")
    parser.add_argument("--version", default="", metavar="NAME", help="the entry's name (default: the commit)")
    parser.add_argument("--changed", default="", metavar="TEXT", help="what changed (default: the commit's subject)")
    parser.add_argument("--capture", default="", metavar="FILE", help="a report or machine code of this version")
    parser.add_argument("--before", default="", metavar="FILE", help="the same of the version before: what changed")
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="instead of the last record")
    add_root(parser)


def run_devlog(options: Namespace) -> int:
    from pytest_perfgate.app.accept import Request, selected
    from pytest_perfgate.core.analysis.results import previous_of
    from pytest_perfgate.core.render.logs import kept_paragraphs, render_entry, written

    project = Project(options)
    report = project.records.read(options.source)
    cases = selected(report, Request(names=tuple(options.names)))
    version = _version(options, project, report)
    log = _text(options.file)
    before = previous_of(cases, report, _earlier(project))
    entry = render_entry(version, cases, kept_paragraphs(log, version), before, _kernels(options))
    if options.file:
        write_file(options.file, written(log, entry))
    if options.json:
        write_json({"version": version.name, "entry": entry, "file": options.file})
    else:
        write(f"wrote {options.file}" if options.file else entry)
    return 0


def _earlier(project: Project) -> Iterator[Any]:
    """The records of this project, the newest first; one that cannot be read has nothing to compare with."""
    from pytest_perfgate.model.errors import PerfgateError

    for path in reversed(project.records.paths()):
        with suppress(PerfgateError):
            yield project.records.read(str(path))


def _kernels(options: Namespace) -> str:
    """What a capture says of the kernels, and of what changed in them since the one before."""
    if not options.capture:
        return ""
    from pytest_perfgate.app.inspect import inspect, view
    from pytest_perfgate.cli.output import named_files
    from pytest_perfgate.core.render.html import render_markdown
    from pytest_perfgate.wiring import command_line_tools

    tools = command_line_tools(Path.cwd())
    options_of_view = {"baseline": str(named_files([options.before])[0])} if options.before else {}
    analysis = inspect(named_files([options.capture]), options_of_view, inspectors=tools.inspectors, peek=tools.peek)
    return render_markdown(view(analysis, "devlog"), level=3)


def _version(options: Namespace, project: Project, report: Any) -> Any:
    from pytest_perfgate.core.render.logs import Version

    commit = report.environment.commit
    dirty = " with changes" if report.environment.dirty else ""
    name = options.version or (f"{commit[:7]}{dirty}" if commit else "uncommitted")
    changed = options.changed or ("" if dirty else project.repository.subject(commit))
    return Version(name=name, changed=changed, when=report.started[:10])


def _text(name: str) -> str:
    from pytest_perfgate.model.errors import PerfgateError

    if not name or not Path(name).exists():
        return ""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("artifact-unreadable", f"the log cannot be read: {fault}", place=name) from fault
