"""Tests of adapters/readers/nsys_columns."""

from __future__ import annotations

import sqlite3

import pytest

from pytest_perfgate.adapters.readers.nsys_export import open_export
from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.nsys_file import ExportMaker, process, small_export


def test_range_texts_with_any_character_stay_aligned(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    texts = ["a\x1fb", "", "a,b", "line\nbreak", "stage2_f", "ü"]
    for number, text in enumerate(texts):
        maker.range(1, 10 * number, 10 * number + 5, text)
    maker.range(1, 100, 105, "registered", inline=False)
    maker.kernel(1, 0, 100, "k")
    ranges = open_export(maker.done()).ranges()
    assert [ranges.texts[at] for at in ranges.text] == [*texts, "registered"]


def test_columns_that_an_old_schema_lacks(tmp_path) -> None:
    path = ExportMaker(tmp_path / "x.sqlite").done()
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, globalPid INTEGER, demangledName INTEGER)"
        )
        db.execute("INSERT INTO StringIds VALUES (3, 'void k<int>()')")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, ?, 3)", (process(5),))
        db.execute("CREATE TABLE EXPORT_META_DATA(name TEXT, value TEXT)")
        db.execute("INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '2.9.1')")
    export = open_export(path)
    assert export.facts().schema == "2.9.1"
    (total,) = export.kernel_totals(0, 100)
    assert (total.pid, total.device, total.name, total.total_ns) == (5, 0, "void k<int>()", 10)


_TIMED = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")


@pytest.mark.parametrize("by", [-6_500, -1_000_000])
def test_an_export_whose_clock_was_shifted_below_zero_has_the_same_figures(tmp_path, by) -> None:
    path = small_export(tmp_path / "x.sqlite")
    before = Nsys(read_nsys).inspect([path], {}).metrics
    with sqlite3.connect(path) as db:
        for table in _TIMED:
            db.execute(f"UPDATE {table} SET start = start + {by}, end = end + {by}")
    shifted = Nsys(read_nsys).inspect([path], {})
    assert shifted.metrics == before
    totals = render_text(shifted.views["summary"]())
    assert "gemm" in totals
    assert "ncclDevKernel_SendRecv" in totals


def test_a_window_below_zero_can_be_named(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        for table in _TIMED:
            db.execute(f"UPDATE {table} SET start = start - 100000, end = end - 100000")
    window = {"start": "-95000", "end": "-94 us"}
    (busy,) = Nsys(read_nsys).inspect([path], window).metrics.find("busy_time")
    assert busy.value == 1000


def test_pithtrain_counts_no_kernel_before_time_zero_and_says_how_many(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        for table in _TIMED:
            db.execute(f"UPDATE {table} SET start = start - 5500, end = end - 5500")
    analysis = Nsys(read_nsys).inspect([path], {"compat": "pithtrain", "start": "0", "end": "3000"})
    assert [metric.value for metric in analysis.metrics.find("computation_time")] == [0.0]
    assert any("left out: 1 kernel before time zero" in one.title for one in analysis.findings)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 1000000, end = end - 1000000")
        db.execute("DELETE FROM NVTX_EVENTS")
    with pytest.raises(PerfgateError, match="at or after the capture's time zero"):
        Nsys(read_nsys).inspect([path], {"compat": "pithtrain"})


@pytest.mark.parametrize("column", ["start", "end"])
def test_kernels_without_a_time_are_counted_and_make_every_limit_invalid(tmp_path, column) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {column} = NULL WHERE streamId = 20")
    (problem,) = Nsys(read_nsys).inspect([path], {}).problems
    assert problem.code == "nsys-damaged"
    assert "1 row of CUPTI_ACTIVITY_KIND_KERNEL without a start or an end" in problem.what


def test_kernels_that_all_lack_a_time_are_no_kernels(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL")
    with pytest.raises(PerfgateError, match="nsys-no-kernels"):
        Nsys(read_nsys).inspect([path], {})
