"""Say what is in a file: a trace, an Nsight Systems export, an Nsight Compute report, a cubin."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_perfgate.app.inspect import inspect, view
from pytest_perfgate.cli import looking
from pytest_perfgate.cli.output import placed, say, say_written, write_file
from pytest_perfgate.core.render.markdown import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError

INSPECT_ABOUT = """Say what is in a file: a trace, an Nsight Systems export, an Nsight Compute report, a cubin.

The content tells the kind of a file, not its name.

Several files are the ranks or processes of one job. Nothing is judged here: see perfgate check.
"""


def inspect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--view", default="", help="one view of the file; 'list' names them, 'all' shows all")
    parser.add_argument("--html", metavar="FILE", help="write the views as one HTML page")
    parser.add_argument("--markdown", metavar="FILE", help="write the views as Markdown; - for standard output")
    parser.add_argument("--csv", metavar="FOLDER", help="write every table as CSV, all rows")
    parser.add_argument("--code", metavar="FOLDER", help="write annotated source, machine code and PTX of a report")
    parser.add_argument("--xlsx", metavar="FILE", help="write every table into one workbook (needs openpyxl)")
    parser.add_argument("--reports", metavar="FOLDER", help="write the reports of this kind of file and all its tables")
    looking.add_options(parser)


def run_inspect(options: argparse.Namespace) -> int:
    look = looking.look(options)
    files = looking.named_files(options.files)
    analysis = inspect(files, look.options, inspectors=look.inspectors, peek=look.peek)
    if options.view == "list":
        names = list(analysis.views)
        looking.write_json(names) if options.json else looking.write("\n".join(names))
        return 0
    names = list(analysis.views) if options.view == "all" else [options.view]
    documents = {name or next(iter(analysis.views)): view(analysis, name) for name in names}
    written = _write_files(options, documents) | _write_more(options, documents, analysis)
    if options.json:
        looking.write_json(looking.analysis_json(analysis, documents))
    elif not written:
        looking.write(
            "\n".join(render_text(document, looking.columns(), looking.room()) for document in documents.values())
        )
    return 0


def _write_files(options: argparse.Namespace, documents: dict[str, Document]) -> bool:
    from pytest_perfgate.wiring import write_pages, write_tables

    if options.markdown == "-":
        looking.write("\n".join(render_markdown(document) for document in documents.values()))
    elif options.markdown:
        write_file(options.markdown, "\n".join(map(render_markdown, documents.values())))
    if options.html:
        write_pages(placed(options.html), list(documents.values()))
    say_written(options)
    if options.csv:
        for path in write_tables(Path(options.csv), documents):
            say(str(path), options)
    return bool(options.markdown or options.html or options.csv)


def _write_more(options: argparse.Namespace, documents: dict[str, Document], analysis: Analysis) -> bool:
    from pytest_perfgate.wiring.looking import write_reports, write_workbook

    if options.xlsx:
        say(str(write_workbook(placed(options.xlsx), documents)), options)
    if options.reports:
        say("\n".join(map(str, write_reports(Path(options.reports), analysis))), options)
    if options.code:
        for path in _write_texts(Path(options.code), analysis.files):
            say(str(path), options)
    return bool(options.xlsx or options.reports or options.code)


def _write_texts(folder: Path, texts: Mapping[str, Callable[[], str]]) -> Iterator[Path]:
    """What belongs beside a report; a report that holds none says so."""
    if not texts:
        mend = "perfgate profile NODEID --mode ncu"
        raise PerfgateError("view-unknown", "the file holds no code to write", mend=mend)
    for name, build in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build(), encoding="utf-8")
        yield path
