"""The commands history and devlog."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import repeat, zip_longest
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import from_one, plain, say, show, write, write_bytes, write_file, write_json
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError, proposal

if TYPE_CHECKING:
    from pytest_perfgate.app.accepted import AddedRecord
    from pytest_perfgate.core.analysis.results import Place
    from pytest_perfgate.model.measurement import Baseline
    from pytest_perfgate.model.verdict import CaseReport

    AtPlaces = dict[Place, Baseline]

HISTORY_ABOUT = """Show a case over time: its runs, their commits, and its accepted times.

  perfgate history gemm              one case, or all whose names contain this
  perfgate history add runs/         add records: files, folders, addresses

The history is an index of records. A record that is added twice counts once. A history that is lost can be built again
from its records. Without a name, `add` reads .perfgate/records.
"""

_ADD = "add"


def history_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case", nargs="?", default="", metavar="CASE", help="a node id or part of one (default: list all), or: add"
    )
    parser.add_argument("records", nargs="*", metavar="RECORD", help="after add: records, folders of them, addresses")
    parser.add_argument("--device", default="", metavar="KEY", help="only the runs on this device")
    parser.add_argument("--svg", default="", metavar="PATH", help="draw the case with its change points")
    parser.add_argument("--to", default="", metavar="FORM:FILE", help="every figure as a table: csv:FILE, parquet:FILE")
    parser.add_argument("--last", type=from_one, default=20, metavar="N", help="number of runs to show (default 20)")
    add_root(parser)


def run_history(options: Namespace) -> int:
    from pytest_perfgate.core.render.logs import history_document

    project = Project(options)
    if options.case == _ADD:
        return add_records(project, options)
    if options.records:
        fix = f"name one case, or write: perfgate history add {join((options.case, *options.records))}"
        raise PerfgateError("command-usage", "history shows one case, and several were named", fix=fix)
    if options.to:
        return _exported(project, options)
    if options.svg:
        _require_svg(options.svg)
    matches = _selected(project, options)
    single = bool(options.case) or (bool(options.svg) and len(matches) == 1)
    last, lines_of = options.last if single else 1, cache(project.baselines.read)  # a file has the lines of many cases
    cases = [
        (
            key,
            device,
            project.history.read(key, device, last) or project.history.figures(key, device, 1),
            lines_of(device, key.path).get(str(key)),
        )
        for device, key in matches
    ]
    with_figures = [(key, device) for key, device, _, line in cases if single and line and line.figures]
    runs = {(device, str(key)): project.history.figures(key, device, options.last) for key, device in with_figures}
    figures = {at: entries for at, entries in runs.items() if entries}
    if options.svg:
        write_file(options.svg, _drawn(cases))
    if options.json:
        every = [(k, d, figures.get((d, str(k)), s), b) for k, d, s, b in cases]
        write_json([{"case": str(k), "device": d, "runs": plain(s), "accepted": plain(b)} for k, d, s, b in every])
    else:
        anchors = _anchors(project, cases) if single else {}
        show(history_document(cases, overview=not single, anchors=anchors, figures=figures), options)
        if options.svg:
            write(f"wrote {options.svg}")
    return 0


def add_records(project: Project, options: Namespace) -> int:
    """Add records to the history; an unreadable one is named, and the others are still added."""
    records = _added_records(project, options.records)
    if not records:
        place = ", ".join(options.records) or str(project.records.folder)
        raise PerfgateError("record-missing", "no record lies there", place=place)
    if options.json and getattr(options, "case", "") == _ADD:
        write_json([{**plain(added), "fault": added.fault.text() if added.fault else ""} for added in records])
    else:
        for line in _added_lines(records):
            say(line, options)
    faults = [added.fault for added in records if added.fault]
    for fault in faults:
        sys.stderr.write(f"perfgate: {fault.text()}\n")
    return next((fault.exit for fault in faults), 0)


_SHARE, _READERS = 16, 4
"""The records for which a further process saves time, and the most processes that read."""


def _added_records(project: Project, names: Sequence[str]) -> list[AddedRecord]:
    """Return the result of each record, in order; several processes read many records, and write in turns."""
    places = list(project.records.places(names))
    count = min(len(places) // _SHARE, os.cpu_count() or 1, _READERS)
    if count < 2:
        return _added_part(str(project.root), places) if places else []
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context()
    with ProcessPoolExecutor(count, context, _take_turns, (context.Lock(),)) as pool:
        parts = list(pool.map(_added_part, repeat(str(project.root)), (places[at::count] for at in range(count))))
    return [one for row in zip_longest(*parts) for one in row if one is not None]


_turn: list[Any] = []
"""The lock of a process that writes beside others."""


def _take_turns(lock: Any) -> None:
    _turn.append(lock)


def _added_part(root: str, places: Sequence[str]) -> list[AddedRecord]:
    from pytest_perfgate.app.accepted import append_records

    project = Project(Namespace(root=root))
    with project.history.kept_open():
        return list(append_records(project.history, project.records.sources(places), *_turn))


def _added_lines(records: Sequence[AddedRecord]) -> Iterator[str]:
    new, left_out = [added.new for added in records if added.new], [added for added in records if added.left_out]
    yield f"added {plural(len(new), 'run')} with {plural(sum(new), 'result')}"
    again = len(records) - len(new) - len(left_out) - sum(added.fault is not None for added in records)
    if again:
        yield f"nothing new in {plural(again, 'record')}"
    for added in left_out:
        yield f"left out {added.record}: {added.left_out}; full runs are remembered"


def _exported(project: Project, options: Namespace) -> int:
    """Write the figures of all or named cases to a file."""
    from pytest_perfgate.core.render.exports import figures_table
    from pytest_perfgate.wiring.stores import tables

    form, _, name = options.to.partition(":")
    forms = tables()
    if form not in forms or not name:
        fix = f"one of: {', '.join(f'{choice}:FILE' for choice in forms)}"
        raise PerfgateError("command-usage", f"--to {options.to} names no format and file", fix=fix)
    lines = project.history.levels(dict.fromkeys(_selected(project, options), ()), 0, sys.maxsize)
    table = figures_table(entry for line, _ in lines for entry in line)
    write_bytes(name, forms[form](table))
    say(f"wrote {name}: {plural(len(table.rows), 'figure')}", options)
    return 0


def _require_svg(path: str) -> None:
    """Refuse a file without the ending .svg, which programs would not open."""
    if Path(path).suffix.lower() != ".svg":
        fix = f"--svg {Path(path).with_suffix('.svg')}"
        raise PerfgateError("command-usage", f"--svg writes SVG, and {path!r} does not end in .svg", fix=fix)


def _drawn(cases: Any) -> str:
    """Return the picture of the only matching case."""
    from pytest_perfgate.core.render.drawing import standalone
    from pytest_perfgate.core.render.pictures import timeline
    from pytest_perfgate.core.stats.change_points import change_points

    if len(cases) != 1:
        raise PerfgateError("command-usage", f"--svg draws one case, and {len(cases)} were found", fix="name one case")
    key, _, entries, baseline = cases[0]
    if not all(s.time for s in entries):
        raise PerfgateError("command-usage", f"--svg draws times, and {key} has none", fix="perfgate site DIR")
    changes = change_points([s.time for s in entries])
    return standalone(timeline(str(key), entries, changes, baseline, titled=True).svg)


def nothing_of(device: str, project: Project) -> PerfgateError:
    """Return the error of a device without a run, which names the devices that have one."""
    devices = dict.fromkeys(name for name, _ in project.history.keys(""))
    if not devices:
        fix = "full runs are remembered: pytest --perfgate=full"
        return PerfgateError("history-empty", "no run has been recorded here", fix=fix)
    fix = proposal(device, devices, all_of="the history has")
    return PerfgateError("history-empty", f"the history has no run on {device!r}", fix=fix)


def _selected(project: Project, options: Namespace) -> list[Any]:
    from pytest_perfgate.core.limits.merge import named

    keys, name = project.history.keys(options.device), options.case
    if not keys:
        raise nothing_of(options.device, project)
    is_named = named([name])
    exact = [(device, key) for device, key in keys if is_named(key)] if name else list(keys)
    matches = exact or [(device, key) for device, key in keys if name.lower() in str(key).lower()]
    if not matches:
        fix = proposal(name, [str(key) for _, key in keys], all_of="the history has")
        raise PerfgateError("history-empty", f"the history has no case '{name}'", fix=fix)
    return matches


def _anchors(project: Project, cases: Any) -> dict[tuple[str, str], Any]:
    """Return the lines of ``[tool.perfgate] anchor_revision``, else of the last release."""
    from pytest_perfgate.core.judge.accepted_line import fixed_anchor

    revision = fixed_anchor(project.config.anchor_revision, project.repository.last_release())
    if not revision:
        return {}
    lines_of = cache(project.baselines.read)
    lines = {(d, str(k)): lines_of(d, k.path, revision).get(str(k)) for k, d, _, _ in cases}
    return {at: line for at, line in lines.items() if line is not None}


DEVLOG_ABOUT = """Write the last run into a kernel's log, and compare it with the commit that was measured before.

"vs Previous" compares with the newest earlier record of another commit that was measured in the same way. Without one
it compares with the accepted time, and without that with the code before it was committed. "within noise": the
intervals of both times overlap, and no two builds confirmed a change.

  perfgate devlog --since v1.2 --version v1.3

This is for a release: "vs Previous" compares with the times that v1.2 had accepted, and a list gives each value that
was accepted since, with its reason.

An entry of the same version is replaced. Issues and Insights that people wrote stay.
"""


def devlog_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NODEID", help="only these cases")
    parser.add_argument("--file", default="", metavar="FILE", help="the log (default: print the entry)")
    parser.add_argument("--version", default="", metavar="NAME", help="the entry's name (default: the commit)")
    parser.add_argument("--since", default="", metavar="REV", help="compare with the accepted values of a release")
    parser.add_argument("--changed", default="", metavar="TEXT", help="what changed (default: the commit's subject)")
    parser.add_argument("--capture", default="", metavar="FILE", help="a report or machine code of this version")
    parser.add_argument("--before", default="", metavar="FILE", help="the same of the version before, to compare with")
    parser.add_argument("--from", dest="source", default="", metavar="RECORD|URL", help="this record, not the last")
    add_root(parser)


def run_devlog(options: Namespace) -> int:
    from pytest_perfgate.app.accept import Request, selected
    from pytest_perfgate.core.analysis.results import previous_at, previous_of
    from pytest_perfgate.core.render.logs import kept_paragraphs, render_entry, written

    if options.before and not options.capture:
        fix = "add --capture FILE: the report or machine code of this version"
        raise PerfgateError("command-usage", "--before is compared with --capture, which is missing", fix=fix)
    project = Project(options)
    report = project.records.read(options.source)
    cases = selected(report, Request(names=tuple(options.names)))
    version = _version(options, project, report)
    log = _text(options.file)
    before, sections = {}, [_kernels(options)]
    if options.since:
        then, now = _accepted_lines(cases, project, options)
        before = previous_at(cases, then, options.since)
        sections.append(_accepted_section(then, now, options.since))
    else:
        before = previous_of(cases, report, _earlier(project))
    entry = render_entry(version, cases, kept_paragraphs(log, version), before, "\n\n".join(filter(None, sections)))
    if options.file:
        write_file(options.file, written(log, entry))
    if options.json:
        write_json({"version": version.name, "entry": entry, "file": options.file})
    else:
        write(f"wrote {options.file}" if options.file else entry)
    return 0


def _accepted_lines(cases: Sequence[CaseReport], project: Project, options: Namespace) -> tuple[AtPlaces, AtPlaces]:
    """Return the accepted lines of a revision and of the working copy, on the devices of these cases."""
    if project.repository.missing([options.since]):
        fix = "name a tag or a commit of this clone: git tag, git log --oneline"
        raise PerfgateError("revision-missing", f"{options.since!r} is not a revision here", fix=fix)
    store, devices = project.baselines, sorted({case.device for case in cases if case.measurement is not None})
    named = {str(case.key) for case in cases} if options.names else None
    then = [
        line
        for d in devices
        for path in store.paths(d, options.since)
        for line in store.read(d, path, options.since).values()
    ]
    now = [line for device in devices for line in store.read_all(device).values()]
    sides = ([line for line in side if named is None or str(line.key) in named] for side in (then, now))
    before, after = ({(line.key, line.device): line for line in side} for side in sides)
    return before, after


def _accepted_section(then: AtPlaces, now: AtPlaces, revision: str) -> str:
    from pytest_perfgate.core.render.exports import accepted_since

    lines = [f"- {' '.join(text.split())}" for text in accepted_since(then, now)]
    return "\n".join((f"**Accepted since {revision}**", "", *(lines or ["_nothing_"])))


def _earlier(project: Project) -> Iterator[Any]:
    """Yield the project's readable records, the newest first."""
    for path in reversed(project.records.paths()):
        with suppress(PerfgateError):
            yield project.records.read(str(path))


def _kernels(options: Namespace) -> str:
    """Return what a capture shows of the kernels, and what changed since the previous one."""
    if not options.capture:
        return ""
    from pytest_perfgate.app.inspections import inspect, view
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
    if not name or not Path(name).exists():
        return ""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("artifact-unreadable", f"the log cannot be read: {fault}", place=name) from fault
