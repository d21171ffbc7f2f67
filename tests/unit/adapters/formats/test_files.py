"""Tests of adapters/formats/files."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.formats import files as reports
from pytest_perfgate.adapters.formats import files as workbook
from pytest_perfgate.adapters.formats.files import COLUMNS, frames, run_frame
from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Column, Document, MetricSet, Table
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from tests.reports import case, run


def page(*rows, title=""):
    columns = (Column(name="what"), Column(name="time", dimension=Dimension.TIME))
    return Document(title="T", blocks=(Table(columns=columns, rows=rows, title=title),))


def test_a_workbook_has_a_sheet_a_table_and_no_formulas(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    documents = {
        "ops": page(("=1+1", 2.5), ("nan", float("nan")), ("bell \a", None)),
        "a/b: a name that is longer than a sheet may have": page(title="x"),
        "A/B: a name that is longer than a sheet may have": page(title="x"),
    }
    path = workbook.write_workbook(tmp_path / "t.xlsx", documents)
    book = openpyxl.load_workbook(path)
    assert len({name.casefold() for name in book.sheetnames}) == 3
    assert all(len(name) <= 31 for name in book.sheetnames)
    rows = list(book["ops"].iter_rows(values_only=True))
    assert rows == [("what", "time (ns)"), ("=1+1", 2.5), ("nan", None), ("bell \N{REPLACEMENT CHARACTER}", None)]
    assert book["ops"]["A2"].data_type == "s"


def test_a_workbook_without_openpyxl_is_an_error_and_a_folder_does_without(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "find_spec", lambda _: None)
    with pytest.raises(PerfgateError, match="openpyxl is not installed"):
        workbook.write_workbook(tmp_path / "t.xlsx", {})
    written = reports.write_reports(tmp_path / "out", {"r": page()}, {"ops": page(("a", 1))}, {"md": lambda _: "text"})
    assert [path.name for path in written] == ["r.md", "ops.csv"]


@pytest.fixture
def ignored(monkeypatch):
    """What Python could only print: an exception in an object that nobody closed."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", found.append)
    return found


def refused_workbook(path, code, **documents):
    with pytest.raises(PerfgateError) as error:
        workbook.write_workbook(path, documents or {"ops": page(("a", 1)), "more": page(("b", 2))})
    assert error.value.code.name == code
    said = error.value.text()
    del error
    gc.collect()
    return said


def test_a_sheet_that_would_be_cut_is_refused(tmp_path, monkeypatch, ignored):
    pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    monkeypatch.setattr(workbook, "ROWS", 2)
    long = page(("a", 1), ("b", 2))
    assert "2 rows in" in refused_workbook(tmp_path / "t.xlsx", "workbook-rows", short=page(("a", 1)), ops=long)
    assert not ignored


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_a_place_that_takes_no_workbook_is_one_sentence(tmp_path, monkeypatch, ignored):
    pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    assert refused_workbook(Path("/dev/full"), "file-full").startswith("/dev/full: No space left")
    assert str(tmp_path) in refused_workbook(tmp_path / "none" / "t.xlsx", "file-missing")
    refused_workbook(tmp_path, "file-kind")
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # a sheet removes its temporary file
    monkeypatch.setattr("openpyxl.worksheet._writer.create_temporary_file", lambda: str(full))
    assert "temporary files" in refused_workbook(tmp_path / "t.xlsx", "file-full", ops=page(*(("a", 1),) * 9999))
    assert not (tmp_path / "t.xlsx").exists()
    assert not ignored


pytest.importorskip("pandas")
REPORT = run(case("test_a", 1.2e6, 1e6, Outcome.REGRESSED), case("test_b", 1e6))


def test_one_row_a_verdict(tmp_path: Path) -> None:
    import pytest_perfgate

    (tmp_path / "r.json").write_bytes(render_record(REPORT))
    for source in (REPORT, tmp_path / "r.json", str(tmp_path / "r.json")):
        table = pytest_perfgate.frame(source)
        assert list(table.columns) == list(COLUMNS)
        assert list(table["outcome"]) == ["regressed", "passed"]
        assert table["time_ns"].sum() == 2.2e6


def test_nothing_is_an_empty_table() -> None:
    assert list(run_frame(run(), lambda _: run()).columns) == list(COLUMNS)


def test_tables_of_a_document() -> None:
    document = Document(title="x", blocks=(verdict_table(REPORT.cases), *run_document(run()).blocks[:1]))
    (table,) = frames(document).values()
    assert len(table) == 2


def test_a_view_that_is_not_there_is_an_error_with_those_that_are() -> None:
    analysis = Analysis(
        kind="toy", subject="x", metrics=MetricSet(), views={"table": lambda: Document(title="x", blocks=())}
    )
    with pytest.raises(PerfgateError, match="no view 'nope'") as error:
        frames(analysis, "nope")
    assert "one of: table" in error.value.text()
