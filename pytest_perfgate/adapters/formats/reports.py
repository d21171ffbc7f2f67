"""A folder of reports: each as Markdown and HTML, the tables as CSV and, where openpyxl is, as one workbook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_perfgate.adapters.formats.tables import write_tables
from pytest_perfgate.adapters.formats.workbook import write_workbook, writes_workbooks
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.refusals import written

Render = Callable[[Document], str]


def write_reports(
    folder: Path, reports: Mapping[str, Document], tables: Mapping[str, Document], renders: Mapping[str, Render]
) -> tuple[Path, ...]:
    """Write everything; the files, the reports first."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for stem, document in reports.items():
        for ending, render in renders.items():
            path = folder / f"{stem}.{ending}"
            text = render(document)
            with written(str(path)):
                path.write_text(text, encoding="utf-8")
            files.append(path)
    files += write_tables(folder / "tables", tables)
    if writes_workbooks():
        files.append(write_workbook(folder / "tables.xlsx", tables))
    return tuple(files)
