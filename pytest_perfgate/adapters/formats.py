"""Tables, workbooks, reports, replays, JUnit and pictures as files; tables as data frames."""

from __future__ import annotations

import csv
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from io import BytesIO, StringIO
from itertools import chain, count
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from pytest_perfgate.adapters.system.processes import answer, is_installed
from pytest_perfgate.model.errors import PerfgateError, written
from pytest_perfgate.model.metric import Analysis, Block, Cell, Column, Document, MetricSet, Picture, Section, Table
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

if TYPE_CHECKING:
    import pandas as pd


def write_tables(folder: Path, documents: Mapping[str, Document]) -> tuple[Path, ...]:
    """Write one file for each table, named after its view and title; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[Path, None] = {}
    for view, document in documents.items():
        for table in tables_of(document.blocks):
            title = re.sub(r"[^\w.-]+", "_", table.title).strip("_").lower()
            path = _numbered(folder / f"{view}_{title}".rstrip("_"), ".csv", paths)
            with written(str(path)):
                path.write_bytes(render_csv(table))
            paths[path] = None
    return tuple(paths)


def _numbered(stem: Path, ending: str, paths: Mapping[Path, None]) -> Path:
    """Return the path of a new file, with a number if its name is taken."""
    names = chain(("",), (f"_{number}" for number in count(2)))
    return next(path for name in names if (path := stem.with_name(f"{stem.name}{name}{ending}")) not in paths)


def tables_of(blocks: Sequence[Block]) -> Sequence[Table]:
    """Return all tables of a document, with sections; of several untitled ones each has its section's title."""
    named = list(_tables(blocks, ""))
    several = sum(not table.title for _, table in named) > 1
    return [replace(table, title=name) if several else table for name, table in named]


def render_csv(table: Table) -> bytes:
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([column.name for column in table.columns])
    writer.writerows(table.rows)
    return text.getvalue().encode("utf-8", "replace")


def render_parquet(table: Table) -> bytes:
    """Return a table as Parquet; a column of texts keeps its type even if it is empty."""
    if find_spec("pyarrow") is None:
        raise PerfgateError(
            "delivery-failed", "Parquet needs pyarrow, which is not installed", fix="pip install pyarrow"
        )
    kinds = {c.name: "string" if c.dimension is Dimension.TEXT else "float64" for c in table.columns}
    return bytes(_framed(table).astype(kinds).to_parquet(index=False, engine="pyarrow"))


ROWS = 2**20

_TITLE = 31

_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_NO_TITLE = re.compile(r"[\[\]:*?/\\]")

_UNITS = {
    Dimension.TIME: "ns", Dimension.BYTES: "B", Dimension.FLOPS: "FLOP/s", Dimension.BANDWIDTH: "B/s",
    Dimension.WORK: "FLOP", Dimension.INTENSITY: "FLOP/B",
}  # fmt: skip


def writes_workbooks() -> bool:
    """Return whether openpyxl is installed."""
    return find_spec("openpyxl") is not None


def write_workbook(path: Path, documents: Mapping[str, Document]) -> Path:
    """Write one sheet for each table, named after its view and title."""
    if not writes_workbooks():
        raise PerfgateError("workbook-tool", "openpyxl is not installed", place=str(path))
    from openpyxl import Workbook  # type: ignore[import-untyped, unused-ignore]

    book, packed = Workbook(write_only=True), BytesIO()
    with written(f"{path} (or the folder for temporary files, {tempfile.gettempdir()})"), _closing_all_sheets(book):
        titles: set[str] = set()
        for view, document in documents.items():
            for table in tables_of(document.blocks):
                _fill(book.create_sheet(_title(f"{view} {table.title}".strip(), titles)), table)
        if not titles:
            book.create_sheet("no tables")
        book.save(packed)
    with written(str(path)):
        path.write_bytes(packed.getvalue())
    return path


@contextmanager
def _closing_all_sheets(book: Any) -> Iterator[None]:
    """Close the sheets of a workbook that fails, or each would warn when it is collected."""
    try:
        yield
    except BaseException:
        for sheet in book.worksheets:
            writer: Any = getattr(sheet, "_writer", None)
            parts: tuple[Any, ...] = (getattr(sheet, "_rows", None), getattr(writer, "xf", None))
            for part in parts:
                with suppress(Exception):
                    part.close()
            with suppress(Exception):
                writer.cleanup()
        raise


def _fill(sheet: Any, table: Table) -> None:
    from openpyxl.cell import WriteOnlyCell  # type: ignore[import-untyped, unused-ignore]
    from openpyxl.styles import Font  # type: ignore[import-untyped, unused-ignore]

    if len(table.rows) >= ROWS:
        raise PerfgateError("workbook-rows", f"{len(table.rows):,} rows in {table.title or sheet.title!r}")

    def content(cell: Cell) -> Any:
        if not isinstance(cell, str):
            return cell if cell is not None and abs(cell) < float("inf") else None
        sheet_cell = WriteOnlyCell(sheet, value=_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", cell)[:32_767])
        sheet_cell.data_type = "s"
        return sheet_cell

    sheet.freeze_panes = "A2"
    heads = [WriteOnlyCell(sheet, value=_heading(column)) for column in table.columns]
    for head in heads:
        head.font = Font(bold=True)
    sheet.append(heads)
    for row in table.rows:
        sheet.append([content(cell) for cell in row])


def _heading(column: Column) -> str:
    unit = _UNITS.get(column.dimension)
    return f"{column.name} ({unit})" if unit else column.name


def _title(wanted: str, titles: set[str]) -> str:
    """Return a valid sheet name that no other sheet has."""
    plain = _NO_TITLE.sub(" ", _ILLEGAL.sub(" ", wanted))[:_TITLE].strip(" '") or "table"
    name, number = plain, 2
    while name.casefold() in titles:
        tail = f" {number}"
        name, number = plain[: _TITLE - len(tail)] + tail, number + 1
    titles.add(name.casefold())
    return name


Render = Callable[[Document], str]


def write_reports(
    folder: Path, reports: Mapping[str, Document], tables: Mapping[str, Document], renders: Mapping[str, Render]
) -> tuple[Path, ...]:
    """Write everything and return the files, the reports first."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for stem, document in reports.items():
        for ending, render in renders.items():
            path = folder / f"{stem}.{ending}"
            text = render(document)
            with written(str(path)):
                path.write_text(text, encoding="utf-8")
            paths.append(path)
    paths += write_tables(folder / "tables", tables)
    if writes_workbooks():
        paths.append(write_workbook(folder / "tables.xlsx", tables))
    return tuple(paths)


def frame(source: Union[Analysis, Document, Table, MetricSet], view: str = "") -> Any:
    """Return one table as a data frame: the first of the named view, or by default an analysis's metrics.

    Times are nanoseconds, fractions 0 to 1, as everywhere inside.
    """
    import pandas as pd

    if isinstance(source, Analysis) and not view:
        source = source.metrics
    if isinstance(source, MetricSet):
        return pd.DataFrame([{"metric": m.name, "value": m.value, **dict(m.labels)} for m in source.metrics])
    if isinstance(source, Table):
        return _framed(source)
    tables = frames(source, view)
    if not tables:
        raise ValueError("the document has no table")
    return next(iter(tables.values()))


def frames(source: Union[Analysis, Document], view: str = "") -> dict[str, Any]:
    """Return every table of a document, or of one view of an analysis, by its title."""
    document = _viewed(source, view) if isinstance(source, Analysis) else source
    frame_by_name: dict[str, Any] = {}
    for title, table in _tables(document.blocks, document.title):
        name = title
        while name in frame_by_name:
            name += "'"
        frame_by_name[name] = _framed(table)
    return frame_by_name


def _viewed(analysis: Analysis, view: str) -> Document:
    name = view or next(iter(analysis.views))
    if name not in analysis.views:
        there = ", ".join(analysis.views)
        raise PerfgateError("view-unknown", f"{analysis.kind} files have no view '{name}'", fix=f"one of: {there}")
    return analysis.views[name]()


def _framed(table: Table) -> Any:
    import pandas as pd

    return pd.DataFrame(list(table.rows), columns=[column.name for column in table.columns])


def _tables(blocks: Sequence[Block], title: str) -> Iterator[tuple[str, Table]]:
    for block in blocks:
        if isinstance(block, Table):
            yield block.title or title, block
        elif isinstance(block, Section):
            yield from _tables(block.blocks, block.title)


COLUMNS = (
    "case", "test", "device", "limit", "outcome", "effect", "metric", "value", "low", "high", "accepted",
    "time_ns", "accepted_ns", "processes", "commit",
)  # fmt: skip


def run_frame(source: RunReport | Path | str, read: Callable[[str], RunReport]) -> pd.DataFrame:
    """Return one row for each verdict, in internal units: nanoseconds, fractions."""
    import pandas as pd

    report = source if isinstance(source, RunReport) else read(str(source))
    rows = [row for case in report.cases for row in _rows(case, report.environment.commit)]
    table: pd.DataFrame = pd.DataFrame(rows, columns=list(COLUMNS))
    return table


def _rows(case: CaseReport, commit: str) -> Iterator[dict[str, Any]]:
    measurement = case.measurement
    times = measurement.metrics.find("time") if measurement else ()
    shared = {
        "case": str(case.key),
        "test": case.key.test,
        "device": measurement.device.key if measurement else None,
        "time_ns": times[0].value if times else None,
        "accepted_ns": (case.baseline.time or None) if case.baseline else None,
        "processes": len(measurement.processes) if measurement else 0,
        "commit": commit,
    }
    for verdict in case.verdicts:
        metric = verdict.metric
        yield {
            **shared,
            "limit": verdict.limit.text,
            "outcome": verdict.outcome.value,
            "effect": case.effect_of(verdict).value,
            "metric": metric.name if metric else None,
            "value": metric.value if metric else None,
            "low": metric.low if metric else None,
            "high": metric.high if metric else None,
            "accepted": verdict.figure.value if verdict.figure else None,
        }


README = """# Replay

`operations.json` holds what a trace recorded of each operation: name, shapes, dtypes, strides, scalars.

    python replay.py                 # on the GPU if there is one, else on the CPU
    python replay.py --device cpu --repeat 20 --json

Contents of tensors are random; a trace does not record them. An operation that exists on GPUs only is run on the CPU
by the operation that computes the same, and the output says so.
"""


def write_replay(path: Path, form: str) -> Path:
    """Write the package: operations, runner, README."""
    runner = files("pytest_perfgate.adapters").joinpath("replay_runner.py").read_text(encoding="utf-8")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in (("operations.json", form), ("replay.py", runner), ("README.md", README)):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            package.writestr(entry, text)
    return path


def write_junit(path: Path, subject: str, verdicts: Sequence[Verdict]) -> None:
    """Write one test case for each limit: an error if it could not be judged, a failure if it was missed."""
    from junit_xml import TestCase, TestSuite, to_xml_report_string

    cases = []
    for verdict in verdicts:
        case = TestCase(verdict.limit.text, classname=f"perfgate.{subject}", stdout=verdict.sentence)
        if verdict.effect is Effect.FAIL:
            message = "\nnext: ".join((f"{verdict.outcome.value.upper()}: {verdict.sentence}", *verdict.next[:1]))
            add = case.add_failure_info if verdict.metric is not None else case.add_error_info
            add(message=message, output="\n".join(f"{name}: {text}" for name, text in verdict.evidence))
        cases.append(case)
    path.write_text(to_xml_report_string([TestSuite("perfgate", cases)]), encoding="utf-8")


def write_drawings(folder: Path, documents: Mapping[str, Document], alone: Callable[[str], str]) -> tuple[Path, ...]:
    """Write pictures under the names of section and picture, or of their view, with a number if taken."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[Path, None] = {}
    for view, document in documents.items():
        for section, picture in _pictures(document.blocks):
            stem = "-".join(filter(None, (_UNNAMED.sub("-", section).strip("-."), picture.name or view)))
            path = _numbered(folder / stem, ".svg", paths)
            path.write_text(alone(picture.svg), encoding="utf-8")
            paths[path] = None
    return tuple(paths)


_UNNAMED = re.compile(r"[^\w.=]+")
"""Matches characters that names of picture files must not contain."""


def write_picture(path: Path, svg: str) -> None:
    """Write a drawing as SVG, or as PNG by the first program here that can convert it."""
    kind = path.suffix.lower()
    if kind not in {".svg", ".png"}:
        what = f"{path.name!r} ends in neither .svg nor .png"
        raise PerfgateError("command-usage", what, fix=f"name {path.with_suffix('.svg')}")
    with written(str(path)):
        if kind == ".svg":
            path.write_text(svg, encoding="utf-8")
        else:
            path.write_bytes(_png(svg, path))


def _png(svg: str, path: Path) -> bytes:
    if find_spec("cairosvg") is not None:
        return bytes(import_module("cairosvg").svg2png(bytestring=svg.encode(), scale=_SHARP))
    with tempfile.TemporaryDirectory() as folder:
        drawing, points = Path(folder, "drawing.svg"), Path(folder, "points.png")
        drawing.write_text(svg, encoding="utf-8")
        for command in _converters(svg, drawing, points):
            if is_installed(command[0], Path(folder), os.environ.get("PATH", "")):
                answer(command, _PAINTED_S)
                if points.exists():
                    return points.read_bytes()
    raise PerfgateError("picture-tool", "no program here can write a PNG", place=str(path))


_PAINTED_S = 60.0
_SHARP, _LOW = 2, 200  # points of a PNG for each pixel; in a window between 87 and 145 Chromium 156 cuts 87 off
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def _converters(svg: str, drawing: Path, points: Path) -> Iterator[list[str]]:
    """Yield commands that convert a drawing to PNG, the lightest first."""
    yield ["rsvg-convert", "--zoom", str(_SHARP), "--output", str(points), str(drawing)]
    size = _SIZE.search(svg)
    window = f"{ceil(float(size[1]))},{max(_LOW, ceil(float(size[2])))}" if size else "760,400"
    for browser in ("chromium", "chromium-browser", "google-chrome"):
        yield [browser, "--headless", "--disable-gpu", "--hide-scrollbars", f"--force-device-scale-factor={_SHARP}",
               f"--user-data-dir={drawing.parent / 'profile'}", f"--window-size={window}", f"--screenshot={points}",
               *(["--no-sandbox"] if os.geteuid() == 0 else []), drawing.as_uri()]  # fmt: skip


def _pictures(blocks: Sequence[Block], section: str = "", depth: int = 0) -> Iterator[tuple[str, Picture]]:
    """Yield each picture with the title of its innermost section; "" in a section of the top level."""
    for block in blocks:
        if isinstance(block, Picture):
            yield section, block
        elif isinstance(block, Section):
            yield from _pictures(block.blocks, block.title if depth else "", depth + 1)
