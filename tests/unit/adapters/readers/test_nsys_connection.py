"""Files that are cut short, empty, foreign, unfinished or huge: each with its own word."""

from __future__ import annotations

import gc
import sqlite3
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.nsys_connection import connect
from pytest_perfgate.adapters.readers.nsys_export import open_export
from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import labels
from pytest_perfgate.model.nsys import OPEN
from tests.nsys_file import ExportMaker, small_export


def code_of(path: Path) -> str:
    with pytest.raises(PerfgateError) as error:
        Nsys(read_nsys).inspect([path], {})
    assert str(path) in error.value.text()
    return error.value.code.name


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "nsys-missing"),
        (b"{}", "nsys-not-export"),
        (b"SQLite format 3\0", "nsys-damaged"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "nsys-damaged"),
    ],
)
def test_files_that_are_no_export(tmp_path, content, code) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    assert code_of(path) == code


def test_a_missing_file_and_a_folder(tmp_path) -> None:
    assert code_of(tmp_path / "none.sqlite") == "nsys-missing"
    assert code_of(tmp_path) == "nsys-missing"


def test_another_program_s_database(tmp_path) -> None:
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE users(name TEXT)")
    assert code_of(path) == "nsys-not-export"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE rocpd_string(id INTEGER)")
    assert code_of(path) == "rocprof-csv"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE rocpd_op(id INTEGER)")
    with pytest.raises(PerfgateError, match="rocmProfileData"):
        Nsys(read_nsys).inspect([path], {})


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_damaged_wherever_it_is_cut(tmp_path, share) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for number in range(3000):
        maker.kernel(1, 100 * number, 100 * number + 50, f"k{number % 7}", launched=100 * number)
    path = maker.done()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert code_of(path) == "nsys-damaged"


def test_an_export_that_is_still_being_written(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("INSERT INTO StringIds VALUES (77, 'later')")
    db.commit()
    assert code_of(path) == "nsys-unfinished"
    db.close()
    assert Nsys(read_nsys).inspect([path], {}).metrics.find("overlap")


def test_a_locked_export_is_read_all_the_same(tmp_path) -> None:
    """Nobody else's lock matters to a reader that opens the file as immutable."""
    path = small_export(tmp_path / "x.sqlite")
    db = sqlite3.connect(path)
    db.execute("BEGIN EXCLUSIVE")
    assert Nsys(read_nsys).inspect([path], {}).metrics.find("overlap")
    db.rollback()
    db.close()


def test_an_empty_kernel_table_and_graphs_that_hide_all(tmp_path) -> None:
    path = ExportMaker(tmp_path / "x.sqlite").done()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER)")
    assert code_of(path) == "nsys-no-kernels"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER)")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1)")
    with pytest.raises(PerfgateError, match="--cuda-graph-trace=node"):
        read_nsys(path)


def test_names_that_are_huge_or_no_text(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    huge = "void kernel<" + "x" * 200_000 + ">"
    maker.kernel(1, 0, 100, huge)
    maker.kernel(1, 200, 300, "torn")
    maker.db.execute("UPDATE StringIds SET value = CAST(x'6bff41' AS TEXT) WHERE value = 'torn'")
    path = maker.done()
    analysis = Nsys(read_nsys).inspect([path], {})
    text = render_text(analysis.views["summary"]())
    assert "k�A" in text
    assert max(map(len, text.splitlines())) < 400
    assert any("not UTF-8" in finding.title for finding in analysis.findings)


def test_ranges_before_zero_count_and_those_that_did_not_end_stay_open(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, -50, -10, "ncclInit")
    maker.range(1, 5, None, "open")
    maker.range(1, 7, 9, "closed")
    maker.kernel(1, 0, 100, "k")
    ranges = open_export(maker.done()).ranges()
    assert {ranges.texts[at]: end >= OPEN for at, end in zip(ranges.text, ranges.end)} == {
        "ncclInit": False,
        "open": True,
        "closed": False,
    }


@pytest.mark.parametrize("change", ["-rowid", f"rowid + {1 << 40}", f"rowid + {(1 << 63) - 10}"])
def test_rows_are_found_whatever_their_numbers(tmp_path, change) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            db.execute(f"UPDATE {table} SET rowid = {change}")
    assert Nsys(read_nsys).inspect([path], {}).metrics.find("overlap", labels(stage="stage2_f"))[0].value == 0.5


def test_a_machine_number_with_the_top_bit(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = globalPid - (1 << 62) * 2")
        for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
            db.execute(f"UPDATE {table} SET globalTid = globalTid - (1 << 62) * 2")
    assert Nsys(read_nsys).inspect([path], {}).metrics.find("overlap", labels(stage="stage2_f"))[0].value == 0.5


def test_without_correlations_no_stage_is_told(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = 0")
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN correlationId")
    codes = [problem.code for problem in Nsys(read_nsys).inspect([path], {}).problems]
    assert codes == ["nsys-schema", "nsys-unlinked"]


@pytest.mark.parametrize("change", ["DELETE FROM StringIds WHERE value = 'ncclDevKernel_SendRecv'",
                                    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = NULL WHERE streamId = 20"])  # fmt: skip
def test_a_kernel_without_a_name_is_not_computation(tmp_path, change) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with sqlite3.connect(path) as db:
        db.execute(change)
    (problem,) = Nsys(read_nsys).inspect([path], {}).problems
    assert (problem.code, "1 of 2 kernels have no name" in problem.what) == ("nsys-damaged", True)


def test_a_range_that_never_ended_names_its_rank_and_its_stage_and_is_no_window(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, None, "rank=5; pp=1/2")
    maker.range(1, 1_000, 9_000, "forward chunk 0 backward chunk 0")
    maker.range(1, 2_000, None, "layer00.stage2_f")
    maker.range(1, 8_000, None, "forward chunk 1 backward chunk 1")
    maker.kernel(1, 4_000, 6_000, "gemm", launched=1_500)
    maker.kernel(1, 5_000, 7_000, "ncclDevKernel_SendRecv", stream=20, launched=2_500)
    analysis = Nsys(read_nsys).inspect([maker.done()], {})
    assert analysis.metrics.find("overlap", labels(rank="5", stage="stage2_f"))[0].value == 0.5
    assert "1000..9000" in analysis.window


def test_a_device_whose_number_is_out_of_bounds(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 4_000, 6_000, "gemm", device=128)
    assert code_of(maker.done()) == "nsys-schema"


def test_a_rank_whose_window_holds_no_kernel_is_named(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid, start in ((1, 1_000), (2, 50_000)):
        maker.range(pid, start, start + 8_000, "forward chunk 0 backward chunk 0")
        maker.kernel(pid, 4_000, 6_000, "gemm", device=pid)
    titles = [finding.title for finding in Nsys(read_nsys).inspect([maker.done()], {}).findings]
    assert "rank 1 ran no kernel in its window 50000..58000" in titles


def test_an_export_that_goes_leaves_no_database_open(tmp_path) -> None:
    export = connect(small_export(tmp_path / "x.sqlite"))
    inner = export._inner
    del export
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        inner.execute("SELECT 1")
