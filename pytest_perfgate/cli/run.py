"""The commands run, merge and report."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import columns, draws_bars, plain, say, say_written, show, write, write_file, write_json
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.shards import Source
    from pytest_perfgate.model.verdict import RunReport

RUN_ABOUT = """Run pytest. The exit code is that of the gate, not that of pytest.

  perfgate run tests/bench -k gemm --perfgate-against origin/main

Every option but --json, --policy and --root goes to pytest. Without --perfgate= it is a full run.
"""

RUN_PASSES_ON = True
"""Words that this command does not know are passed to pytest."""

_STDERR, _NOTHING = 2, 4
_INTERRUPTED, _NONE_COLLECTED = 2, 5  # of pytest
_UNGATED = "nothing was measured: no gated test ran, and pytest wrote no record; check which tests it collected"


def run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what an outcome does to its test, such as undecided=fail; repeatable",
    )
    add_root(parser)


def run_run(options: Namespace) -> int:
    project = Project(options)
    words = [*_policies(options.policy), *(options.words[1:] if options.words[:1] == ["--"] else options.words)]
    has_mode = any(word.startswith("--perfgate=") or word == "--perfgate" for word in words)
    earlier = set(project.records.folder.glob("*.json"))
    # loads the plugin even if addopts excludes it; words after it take precedence
    command = [sys.executable, "-m", "pytest", "-p", "perfgate", *([] if has_mode else ["--perfgate=full"]), *words]
    status = _status(command, apart=options.json)
    report = _record(project, earlier)
    code = _code(status, report)
    if project.ci and report is None and status == 0 and not _lists(words):
        code = _NOTHING
        sys.stderr.write(f"perfgate: {_UNGATED}\n")
    if options.json:
        write_json({"exit": code, "pytest": status, "record": plain(report) if report else None})
    return code


def _lists(words: list[str]) -> bool:
    """Return whether the command only lists something, so that no test runs."""
    from pytest_perfgate.plugin.controller import LISTING, is_option

    return any(is_option(word, spellings) for word in words for spellings in LISTING.values())


def _policies(pairs: list[str]) -> list[str]:
    """Return policies as pytest's options; an unknown one is refused before anything runs."""
    from pytest_perfgate.core.judge.policy import parse_policy

    parse_policy(pairs, ci=False, place="--policy")
    return [f"--perfgate-policy={pair}" for pair in pairs]


def _status(command: list[str], *, apart: bool) -> int:
    """Run pytest and return its exit status; if a program reads the answer, pytest writes to standard error."""
    try:
        return subprocess.run(command, check=False, stdout=_STDERR if apart else None).returncode
    except KeyboardInterrupt:
        return 2


def _record(project: Project, earlier: set[Path]) -> RunReport | None:
    """Return the record that this run wrote, or None if the last one was there before."""
    try:
        path = project.records.last()
        return None if path in earlier else project.records.read(str(path))
    except (PerfgateError, OSError):
        return None


def _code(status: int, report: RunReport | None) -> int:
    """Return the gate's exit code; a test that failed for another reason fails the command too."""
    from pytest_perfgate.core.judge.policy import FROM_PYTEST, REGRESSED, run_code

    return FROM_PYTEST.get(status, REGRESSED) if report is None else run_code(report, status)


MERGE_ABOUT = """Join the records of shards into one record, which becomes the last record.

  perfgate merge shards/                     every record below this folder
  perfgate merge a.json b.json --expect 2 --to merged.json

The exit code is that of the gate, as with `perfgate run`. Cases of a shard whose record is missing are NOT MEASURED.
"""


def merge_arguments(parser: ArgumentParser) -> None:
    from pytest_perfgate.cli.output import from_one

    parser.add_argument("sources", nargs="+", metavar="RECORD|FOLDER|URL", help="a record, or a folder of records")
    parser.add_argument("--expect", type=from_one, default=0, metavar="N", help="how many records there must be")
    parser.add_argument("--to", default="", metavar="FILE", help="also write the merged record to this file")
    add_root(parser)


def run_merge(options: Namespace) -> int:
    from pytest_perfgate.core.judge.policy import run_code
    from pytest_perfgate.core.judge.shards import SHARDS, merged, missing_places
    from pytest_perfgate.core.render.report import failed_lines, summary_line
    from pytest_perfgate.core.render.words import plural
    from pytest_perfgate.wiring.stores import write_record

    project = Project(options)
    lines = {device: project.baselines.read_all(device).values() for device in project.baselines.devices()}
    report = merged(list(_sources(options.sources, project)), options.expect, lines)
    path = project.records.write(report)
    if options.to:
        write_record(Path(options.to), report)
    status = _NONE_COLLECTED if report.status == _INTERRUPTED else report.status  # nobody interrupted the merge
    code, lost = run_code(report, status), missing_places(report.shards)
    if options.json:
        places = [{"index": shard.index, "count": shard.count, "host": shard.host} for shard in report.shards]
        write_json({"exit": code, "record": str(path), "shards": places, "missing": list(lost)})
        return code
    write(f"{plural(len(report.shards), 'shard')} merged{f', {len(lost)} missing' if lost else ''}")
    write("\n".join((summary_line(report), *failed_lines(report))))
    for note in report.notes:
        if note.kind == SHARDS or note.effect is Effect.FAIL:
            write(f"{note.effect.value}  {note.sentence}")
    written = [f"wrote {where}" for where in (project.shown(path), options.to) if where]
    write("\n".join([*written, *(["next  perfgate report"] if code else [])]))
    return code


def _sources(names: list[str], project: Project) -> Iterator[Source]:
    """Yield every named record; a folder stands for all records below it."""
    from pytest_perfgate.core.judge.shards import Source

    for name in names:
        paths: list[Any] = sorted(Path(name).rglob("*.json")) if Path(name).is_dir() else [name]
        if not paths:
            raise PerfgateError("record-missing", "there is no record below this folder", place=name)
        for place in map(str, paths):
            yield Source(place=place, report=project.records.read(place))


REPORT_ABOUT = """Show the last run, or a record, as text, HTML or Markdown, or send it to another place.

  perfgate report --html report.html
  perfgate report --to github            edits the one comment of this pull request

Without an option it prints text. In CI the exit code is that of the gate, as with `perfgate run`; with RECORD it is 0.
"""


def report_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", default="", metavar="RECORD|URL", help="the record (default: the last)")
    parser.add_argument("--from", default="", metavar="RECORD|URL", dest="origin", help="the same as the argument")
    parser.add_argument("--html", default="", metavar="FILE", help="write one self-contained HTML file")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write Markdown; - for standard output")
    parser.add_argument("--pictures", default="", metavar="FOLDER", help="write every picture of the page as SVG")
    to = "deliver: github, check, annotations, gitlab, webhook:URL, openmetrics:FILE, ..."
    parser.add_argument("--to", default="", metavar="NAME[:TARGET]", help=to)
    parser.add_argument("--only-changes", action="store_true", help="post without the table of all cases")
    parser.add_argument("--comment-key", default="", metavar="KEY", help="comment to edit (default: the job's)")
    parser.add_argument("--dry-run", action="store_true", help="print what --to would post, and post nothing")
    pair = "two parameters: 'n x dtype', 'n x dtype of mfu'"
    parser.add_argument("--table", action="append", default=[], metavar="PAIR", help=pair)
    add_root(parser)


def run_report(options: Namespace) -> int:
    from pytest_perfgate.core.render.html import render_html, render_markdown
    from pytest_perfgate.core.render.report import PAGE, run_document

    project = Project(options)
    source = options.source or options.origin
    if not options.to and (options.only_changes or options.comment_key or options.dry_run):
        raise PerfgateError("command-usage", "--only-changes, --comment-key and --dry-run need --to", fix="--to github")
    report = _with_tables(project.records.read(source), options.table)
    if not source:
        report = _last_record(report, project, delivers=bool(options.to))
    document = run_document(report, drawn=False)
    if options.html:
        write_file(options.html, render_html(run_document(report, history_of(project, report), width=PAGE)))
    if options.markdown == "-":
        write(render_markdown(document))
    elif options.markdown:
        write_file(options.markdown, render_markdown(document))
    say_written(options)
    if options.pictures:
        from pytest_perfgate.wiring.profiling import write_pictures

        for path in write_pictures(Path(options.pictures), run_document(report, history_of(project, report))):
            say(f"wrote {path}", options)
    if options.to:
        say(_delivered(options, report, project), options)
    if options.json:
        write_json(plain(report))
    elif not (options.html or options.markdown or options.to or options.pictures):
        from pytest_perfgate.core.render.text import INDENT

        history = history_of(project, report) if draws_bars() else None
        show(run_document(report, history, drawn=draws_bars(), width=columns() - INDENT), options)
    if project.ci and not source and not report.complete:
        raise PerfgateError("record-partial", f"not all of this run was measured: {len(report.cases)} cases were")
    return _verdict(report) if project.ci and not source else 0


def _with_tables(report: RunReport, pairs: list[str]) -> RunReport:
    """Return the run with the requested tables beside its own; raise if one is unreadable."""
    from pytest_perfgate.core.render.families import parse_pivot

    for pair in pairs:
        parse_pivot(pair, "--table")
    return replace(report, tables=tuple(dict.fromkeys((*report.tables, *pairs)))) if pairs else report


def _verdict(report: RunReport) -> int:
    """Return the gate's exit code from its record, which a program that ends pytest with 0 cannot change."""
    from pytest_perfgate.core.judge.policy import run_code

    if code := run_code(report, report.status):
        step = "next: perfgate report RECORD exits with 0"
        sys.stderr.write(f"perfgate: exit code {code}, as the run ended; {step}\n")
    return code


def _last_record(report: RunReport, project: Project, *, delivers: bool) -> RunReport:
    """Return the last record; one of another commit or CI run gets a note, and is not delivered."""
    from pytest_perfgate.model.verdict import SuiteNote

    what = _foreign(report.environment, project.repository.head())
    if not what:
        return report
    if delivers:
        raise PerfgateError("record-outdated", what)
    return replace(report, notes=(SuiteNote(kind="another run", effect=Effect.WARN, text=what), *report.notes))


def _foreign(then: Any, head: str) -> str:
    """Return how a record's origin differs from here; "" if it does not."""
    from pytest_perfgate.model.project import FACT, ci_run

    if then.commit and head and then.commit != head:
        return f"this is the run of {then.commit[:12]}, and {head[:12]} is checked out"
    before, here = dict(then.facts).get(FACT, ""), ci_run(os.environ)
    return f"this is of run {before} of CI, and this is run {here}" if before and here and before != here else ""


def history_of(project: Project, report: RunReport) -> dict[str, Any]:
    """Return the runs of every measured case, on each of its devices."""
    entries: dict[str, Any] = {}
    for case in report.cases:
        if case.measurement:
            read = project.history.figures if case.baseline and case.baseline.figures else project.history.read
            runs = read(case.key, case.measurement.device.key, 60)
            entries[str(case.key)] = (*entries.get(str(case.key), ()), *runs)
    return entries


def _delivered(options: Namespace, report: RunReport, project: Project) -> str:
    from pytest_perfgate.model.device import SupportsPosting
    from pytest_perfgate.model.verdict import Posting
    from pytest_perfgate.wiring.stores import deliveries

    name, _, target = options.to.partition(":")
    posting = Posting(key=options.comment_key, only_changes=options.only_changes, dry_run=options.dry_run)
    by_name = {delivery.name: delivery for delivery in deliveries(project.root)}
    if name not in by_name:
        fix = f"name one of: {', '.join(by_name)}"
        raise PerfgateError("delivery-failed", f"nothing delivers to '{name}'", fix=fix)
    delivery = by_name[name]
    if isinstance(delivery, SupportsPosting):
        delivery = delivery.posting(posting)
    elif posting != Posting():
        what = f"'{name}' posts to no change: --only-changes, --comment-key and --dry-run have no effect"
        raise PerfgateError("command-usage", what, fix="leave them out, or --to github")
    return str(delivery.deliver(report, target))
