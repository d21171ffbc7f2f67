"""Tests of adapters/formats."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters import formats as formats_module
from pytest_perfgate.adapters import formats as reports
from pytest_perfgate.adapters.formats import (
    COLUMNS,
    frames,
    run_frame,
    write_drawings,
    write_picture,
    write_tables,
)
from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.app.accepted import entries
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Column, Document, Metric, MetricSet, Picture, Section, Table
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from tests.histories import entry
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
    path = formats_module.write_workbook(tmp_path / "t.xlsx", documents)
    book = openpyxl.load_workbook(path)
    assert len({name.casefold() for name in book.sheetnames}) == 3
    assert all(len(name) <= 31 for name in book.sheetnames)
    rows = list(book["ops"].iter_rows(values_only=True))
    assert rows == [("what", "time (ns)"), ("=1+1", 2.5), ("nan", None), ("bell \N{REPLACEMENT CHARACTER}", None)]
    assert book["ops"]["A2"].data_type == "s"


def test_a_workbook_opens_whatever_the_names_hold(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    documents = {"ops": page(("rank\udcff.json", 1.0), ("end \uffff", 2.0), title="'a\x01\udcff'")}
    book = openpyxl.load_workbook(formats_module.write_workbook(tmp_path / "t.xlsx", documents))
    assert book.sheetnames == ["ops 'a"]
    assert [row[0].value for row in book["ops 'a"].iter_rows(min_row=2)] == ["rank\ufffd.json", "end \ufffd"]


def test_a_workbook_without_openpyxl_is_an_error_and_a_folder_does_without(tmp_path, monkeypatch):
    monkeypatch.setattr(formats_module, "find_spec", lambda _: None)
    with pytest.raises(PerfgateError, match="openpyxl is not installed"):
        formats_module.write_workbook(tmp_path / "t.xlsx", {})
    written = reports.write_reports(tmp_path / "out", {"r": page()}, {"ops": page(("a", 1))}, {"md": lambda _: "text"})
    assert [path.name for path in written] == ["r.md", "ops.csv"]


@pytest.fixture
def ignored(monkeypatch):
    """What Python could only print: an exception in an object that nobody closed."""
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    return errors


def refused_workbook(path, code, **documents):
    with pytest.raises(PerfgateError) as error:
        formats_module.write_workbook(path, documents or {"ops": page(("a", 1)), "more": page(("b", 2))})
    assert error.value.code.name == code
    text = error.value.text()
    del error
    gc.collect()
    return text


def test_a_sheet_that_would_be_cut_is_refused(tmp_path, monkeypatch, ignored):
    pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    monkeypatch.setattr(formats_module, "ROWS", 2)
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


def test_each_table_of_a_page_has_the_name_of_its_section(tmp_path: Path) -> None:
    table = Table(columns=(Column(name="n"),), rows=((1,),))
    page = Document(title="t", blocks=(*(Section(title=title, blocks=(table,)) for title in ("Operators", "Kernels")),))
    alone = Document(title="t", blocks=(Section(title="Operators", blocks=(table,)),))
    files = write_tables(tmp_path, {"report": page, "ops": alone})
    assert [path.name for path in files] == ["report_operators.csv", "report_kernels.csv", "ops.csv"]


def test_a_view_that_is_not_there_is_an_error_with_those_that_are() -> None:
    analysis = Analysis(
        kind="toy", subject="x", metrics=MetricSet(), views={"table": lambda: Document(title="x", blocks=())}
    )
    with pytest.raises(PerfgateError, match="no view 'nope'") as error:
        frames(analysis, "nope")
    assert "one of: table" in error.value.text()


def test_pictures_of_many_sections_have_files_of_their_own(tmp_path: Path) -> None:
    picture = Picture(svg="<svg>", alt="a", name="samples")
    cases = tuple(Section(title=title, blocks=(picture,)) for title in ("test_a[n=1]", "../b c", "../b c"))
    page = Document(title="t", blocks=(picture, Section(title="Pictures", blocks=(picture, *cases))))
    files = write_drawings(tmp_path / "new", {"page": page}, str.upper)
    assert [path.name for path in files] == [
        "samples.svg", "samples_2.svg", "test_a-n=1-samples.svg", "b-c-samples.svg", "b-c-samples_2.svg",
    ]  # fmt: skip
    assert all(path.parent == tmp_path / "new" for path in files)
    assert files[0].read_text(encoding="utf-8") == "<SVG>"


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.svgz"])
def test_other_endings_are_refused_with_one_that_is_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(PerfgateError) as error:
        write_picture(tmp_path / name, "<svg/>")
    assert error.value.code.name == "command-usage"
    assert "a.svg" in error.value.fix


def test_a_browser_draws_a_png_in_a_window_of_the_size_of_the_drawing_but_not_a_low_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    browser = tools / "chromium"
    browser.write_text(
        f"#!{sys.executable}\n"
        """
import sys
out = next(word.partition("=")[2] for word in sys.argv if word.startswith("--screenshot="))
open(out, "w").write(next(word for word in sys.argv if word.startswith("--window-size=")))
"""
    )
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    write_picture(tmp_path / "a.png", '<svg width="760" height="288.4"></svg>')
    assert (tmp_path / "a.png").read_text() == "--window-size=760,289"
    write_picture(tmp_path / "a.png", '<svg width="760" height="105"></svg>')
    assert (tmp_path / "a.png").read_text() == "--window-size=760,200", "the foot of a lower window stays empty"


def test_the_history_is_a_row_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pytest_perfgate
    from pytest_perfgate.wiring import configuration
    from pytest_perfgate.wiring.stores import history_store

    monkeypatch.chdir(tmp_path)
    untimed = entry(0.0, processes=0, metrics=(Metric(name="loss", value=0.5, dimension=Dimension.PLAIN),))
    history_store(tmp_path, configuration(tmp_path)).append([*entries(REPORT), untimed])
    table = pytest_perfgate.frame(view="history")
    assert list(table[table["metric"] == "loss"]["value"]) == [0.5]
    assert list(table[table["metric"] == "time"]["value"]) == [1.2e6, 1e6]
    assert set(pytest_perfgate.frame("test_k.py::test_a", "history")["case"]) == {"tests/test_k.py::test_a"}
