"""The composition root of looking into files from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from pytest_perfgate.app.inspect import choose, inspect
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.verdict import RunReport
from pytest_perfgate.wiring import command_line_tools, configuration

Place = Union[str, Path]


def communication() -> tuple[str, ...]:
    """Patterns of communication kernels of the project that is worked in."""
    return configuration(Path.cwd()).communication


def look(*paths: Place, **options: Any) -> Analysis:
    """Look into a file, or the several of one job; options are those of ``perfgate inspect --set``."""
    tools = command_line_tools(Path.cwd())
    return inspect([Path(path) for path in paths], _texts(options), inspectors=tools.inspectors, peek=tools.peek)


def compare(before: Place, after: Place, **options: Any) -> Analysis:
    """Compare two files of one kind; the first is the reference."""
    tools = command_line_tools(Path.cwd())
    paths, given = [Path(before), Path(after)], _texts(options)
    inspector = choose(paths, given, inspectors=tools.inspectors, peek=tools.peek)
    return inspector.compare(paths[:1], paths[1:], given)


def frame(source: Any = "", view: str = "") -> Any:
    """A table as a pandas frame.

    Of an analysis, a document or a table: the first table of the named view, or its metrics.
    Of a run, the path or address of a record, or nothing (the last run here): one row a verdict.
    """
    from pytest_perfgate.adapters.formats import frames as tables

    if isinstance(source, (str, Path, RunReport)):
        from pytest_perfgate.adapters.formats.run_frames import run_frame
        from pytest_perfgate.wiring.stores import record_store

        return run_frame(source, record_store(Path.cwd()).read)
    return tables.frame(source, view)


def frames(source: Any, view: str = "") -> dict[str, Any]:
    """Every table of a document, or of one view of an analysis, by its title."""
    from pytest_perfgate.adapters.formats import frames as tables

    return tables.frames(source, view)


def write_reports(folder: Path, analysis: Analysis) -> tuple[Path, ...]:
    """The reports of an analysis as files, with its tables; one without reports of its own has its first view."""
    from pytest_perfgate.adapters.formats import reports
    from pytest_perfgate.core.render.html import render_html
    from pytest_perfgate.core.render.markdown import render_markdown

    names = analysis.reports or {"report": next(iter(analysis.views))}
    pages = {stem: analysis.views[view]() for stem, view in names.items()}
    tables = {view: analysis.views[view]() for view in analysis.tables} or dict(pages)
    return reports.write_reports(folder, pages, tables, {"md": render_markdown, "html": render_html})


def write_workbook(path: Path, documents: Mapping[str, Document]) -> Path:
    """Tables of documents as one workbook."""
    from pytest_perfgate.adapters.formats import workbook

    return workbook.write_workbook(path, documents)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}
