"""Reports as files: their names, their links, their tables, the workbook."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import pytest

from pytest_perfgate import wiring
from pytest_perfgate.adapters.formats import files as reports
from pytest_perfgate.adapters.formats import files as workbook
from pytest_perfgate.cli import main
from pytest_perfgate.core.analysis.trace.operators import hardware_table, short_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.render.words import ABSENT
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Column, Document, Table
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins

from .generated import host, kernel, launch, written
from .test_limits import PEAKS, job

PEAK = ["--peak", PEAKS["peak"], "--bandwidth", PEAKS["bandwidth"]]


def page(*rows, title=""):
    columns = (Column(name="what"), Column(name="time", dimension=Dimension.TIME))
    return Document(title="T", blocks=(Table(columns=columns, rows=rows, title=title),))


def test_reports_of_one_trace_have_their_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (path,) = job(tmp_path, ranks=1)
    assert main(["inspect", str(path), "--reports", "out", *PEAK]) == 0
    said = capsys.readouterr().out
    for kind in ("rough", "fair"):
        for ending in ("md", "html"):
            assert f"standalone_analysis_{kind}.{ending}" in said
            assert (tmp_path / "out" / f"standalone_analysis_{kind}.{ending}").stat().st_size > 500
    assert (tmp_path / "out" / "tables" / "ops.csv").read_text().startswith("operator,category,")
    fair = (tmp_path / "out" / "standalone_analysis_fair.md").read_text()
    links, anchors = set(re.findall(r"\]\(#([^)]+)\)", fair)), re.findall(r'<a id="([^"]+)">', fair)
    assert links
    assert links <= set(anchors)
    assert len(anchors) == len(set(anchors))
    html = (tmp_path / "out" / "standalone_analysis_fair.html").read_text()
    assert links <= set(re.findall(r'id="([^"]+)"', html))


def test_a_summary_and_a_recommendation_are_short(tmp_path, capsys):
    (path,) = job(tmp_path, ranks=1)
    assert main(["inspect", str(path), "--view", "fair", "--markdown", "-", *PEAK]) == 0
    text = capsys.readouterr().out
    summary = text.partition("## Executive summary")[2].partition("\n## ")[0]
    assert len([line for line in summary.splitlines() if line.strip()]) <= 20
    advice = text.partition("## Recommendations")[2].partition("\n## ")[0]
    for one in advice.split("\n### ")[1:]:
        assert len([line for line in one.splitlines() if line.strip()]) <= 10
        assert "Issue: " in one
        assert "Action: " in one
        assert "Impact: " in one


MM = [host("aten::mm", 0, 9), launch(1, 1), kernel("a", 10, 5, correlation=1)]
FIRST_PAGES = {
    "The host's operators run 100 % of a window of 9 µs. aten::mm is the largest operator: 9 µs": MM[:1],
    "Several devices, or none, were at work": [*MM, launch(2, 2), kernel("b", 10, 7, correlation=2, device=1)],
    "no GPU activity": MM[:2],
    "and 0 % of its communication is hidden": [*MM, launch(2, 2), kernel("ncclDevKernel", 30, 7, correlation=2)],
}


@pytest.mark.parametrize("said", FIRST_PAGES)
def test_the_first_page_of_any_trace_says_what_happened(tmp_path, said):
    kineto = next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")
    paths = [written(tmp_path / "t.json", FIRST_PAGES[said])]
    summary, *_ = kineto.inspect(paths, {}).views["fair"]().blocks
    assert said in render_text(Document(title="", blocks=(summary,)))
    other = [written(tmp_path / "u.json", MM)]
    page = render_text(kineto.compare(paths, other, {}).views["fair"]())
    assert "Compute time of the target is" in page or "no single device's activity" in page
    assert "peaks not known not known" in " ".join(page.split())


def test_names_and_peaks_fit_a_page():
    long = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float*)"
    assert short_name(long) == "vectorized_layer_norm_kernel<c10::BFloat16, float>"
    assert len(short_name("sm90_xmma_gemm_" + "x" * 200)) == 72
    roof = Roof(basis=Basis.DATASHEET, compute=(("bf16", 1e15),), bandwidth=3e12, note="a sheet")
    table = hardware_table(reference=roof, target=None)
    assert table.rows[0] == ("peaks", "a sheet", "not known")
    assert table.rows[1:] == (("memory bandwidth", "3 TB/s", ABSENT), ("bf16", "1,000 TFLOPS", ABSENT))


def test_reports_of_a_comparison_have_their_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = job(tmp_path)
    assert main(["compare", str(first), str(second), "--reports", "out"]) == 0
    assert "comparative_analysis_fair.md" in capsys.readouterr().out
    assert (tmp_path / "out" / "comparative_analysis_rough.html").exists()


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


def test_an_inspection_without_tables_of_its_own_writes_its_first_view(tmp_path):
    from pytest_perfgate.model.metric import Analysis
    from pytest_perfgate.wiring.profiling import write_reports

    analysis = Analysis(kind="k", subject="s", metrics=None, views={"seen": page})
    names = {path.name for path in write_reports(tmp_path, analysis)}
    assert {"report.md", "report.html", "report.csv"} <= names
    assert wiring.write_tables(tmp_path / "more", {"x": page()})


def test_a_device_of_the_project_s_own_is_the_roof(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.perfgate.device."Abacus 9"]\nbandwidth_gbps = 1000\ndense_tflops = {fp32 = 10}\n'
    )
    (path,) = job(tmp_path, ranks=1)
    assert main(["inspect", str(path), "--device", "Abacus 9", "--view", "roofline"]) == 0
    assert "Roof: Abacus 9, datasheet rates." in capsys.readouterr().out
    named = path.read_text().replace('"schemaVersion": 1', '"deviceProperties": [{"name": "The Abacus 9 (80 GB)"}]')
    path.write_text(named)
    assert main(["check", str(path), "sol_datasheet(op=aten::mm) <= 100%"]) == 0
    assert "Abacus 9" in capsys.readouterr().out
