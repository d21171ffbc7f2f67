"""Write the last run into a kernel's log: what it achieves, against the commit that was measured before it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_perfgate.cli.looking import write, write_json
from pytest_perfgate.cli.output import write_file
from pytest_perfgate.cli.project import Project, add_root

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
    from pytest_perfgate.core.analysis.previous import previous_of
    from pytest_perfgate.core.render.devlog import kept_paragraphs, render_entry, written

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
    from pytest_perfgate.cli.looking import named_files
    from pytest_perfgate.core.render.markdown import render_markdown
    from pytest_perfgate.wiring import command_line_tools

    tools = command_line_tools(Path.cwd())
    given = {"baseline": str(named_files([options.before])[0])} if options.before else {}
    found = inspect(named_files([options.capture]), given, inspectors=tools.inspectors, peek=tools.peek)
    return render_markdown(view(found, "devlog"), level=3)


def _version(options: Namespace, project: Project, report: Any) -> Any:
    from pytest_perfgate.core.render.devlog import Version

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
