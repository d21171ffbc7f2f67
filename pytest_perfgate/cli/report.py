"""Show the last run, or a record, as text, HTML or Markdown; or take it somewhere."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_perfgate.cli.looking import columns, write, write_json
from pytest_perfgate.cli.output import plain, say, say_written, show, write_file
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError

REPORT_ABOUT = """Show the last run, or a record, as text, HTML or Markdown; or take it somewhere.

  perfgate report --html report.html
  perfgate report --to github            edits the one comment of this pull request

Without an option it is text, here. In CI it exits by what the gate found, as `perfgate run` does; with a RECORD by 0.
"""


def report_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", default="", metavar="RECORD|URL", help="instead of the last record")
    parser.add_argument("--from", default="", metavar="RECORD|URL", dest="origin", help="the same, as accept has it")
    parser.add_argument("--html", default="", metavar="FILE", help="write one self-contained HTML file")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write Markdown; - for standard output")
    parser.add_argument(
        "--to", default="", metavar="NAME[:TARGET]", help="deliver: github, gitlab, webhook:URL, a plugin's"
    )
    add_root(parser)


def run_report(options: Namespace) -> int:
    from pytest_perfgate.core.render.html import render_html
    from pytest_perfgate.core.render.markdown import render_markdown
    from pytest_perfgate.core.render.report import run_document

    project = Project(options)
    source = options.source or options.origin
    report = project.records.read(source)
    if not source:
        report = _placed(report, project, delivers=bool(options.to))
    document = run_document(report, drawn=False)
    if options.html:
        write_file(options.html, render_html(run_document(report, history_of(project, report))))
    if options.markdown == "-":
        write(render_markdown(document))
    elif options.markdown:
        write_file(options.markdown, render_markdown(document))
    say_written(options)
    if options.to:
        say(_delivered(options.to, report, project), options)
    if options.json:
        write_json(plain(report))
    elif not (options.html or options.markdown or options.to):
        from pytest_perfgate.core.render.text import INDENT

        show(run_document(report, drawn=False, width=columns() - INDENT), options)
    if project.ci and not source and not report.complete:
        raise PerfgateError("record-partial", f"not all of this run was measured: {len(report.cases)} cases were")
    return _verdict(report) if project.ci and not source else 0


def _verdict(report: Any) -> int:
    """How the gate of this run ended: whoever ended pytest with 0 did not write that into its record."""
    from pytest_perfgate.core.gate.policy import run_code

    code = run_code(report, report.status)
    if code:
        sys.stderr.write(
            f"perfgate: this run ended with {code}, and so does its report; a record that is named ends with 0\n"
        )
    return code


def _placed(report: Any, project: Project, *, delivers: bool) -> Any:
    """The last record; one of another commit or run of CI says so, and is not delivered as this one's."""
    from dataclasses import replace

    from pytest_perfgate.model.limit import Effect
    from pytest_perfgate.model.verdict import SuiteNote

    what = _foreign(report.environment, project.repository.head())
    if not what:
        return report
    if delivers:
        raise PerfgateError("record-outdated", what)
    return replace(report, notes=(SuiteNote(kind="another run", effect=Effect.WARN, text=what), *report.notes))


def _foreign(then: Any, head: str) -> str:
    """What is measured in another place; empty where nothing says so."""
    import os

    from pytest_perfgate.model.ci_run import FACT, ci_run

    if then.commit and head and then.commit != head:
        return f"this is the run of {then.commit[:12]}, and {head[:12]} is checked out"
    before, here = dict(then.facts).get(FACT, ""), ci_run(os.environ)
    return f"this is of run {before} of CI, and this is run {here}" if before and here and before != here else ""


def history_of(project: Project, report: Any) -> dict[str, Any]:
    """The sittings of every case that was measured."""
    return {
        str(case.key): project.history.read(case.key, case.measurement.device.key, 60)
        for case in report.cases
        if case.measurement
    }


def _delivered(text: str, report: Any, project: Project) -> str:
    from pytest_perfgate.wiring.deliveries import deliveries as known

    name, _, target = text.partition(":")
    deliveries = {delivery.name: delivery for delivery in known(project.root)}
    if name not in deliveries:
        mend = f"one of: {', '.join(deliveries)}"
        raise PerfgateError("delivery-failed", f"nothing delivers to '{name}'", mend=mend)
    return str(deliveries[name].deliver(report, target))
