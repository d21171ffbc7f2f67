"""Exports of many versions, other tools' copies of them, and other programs' files: an answer or a clear word for each."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, labels
from pytest_perfgate.model.nsys import Extent
from tests.nsys_file import ExportMaker, process, quicken, small_export
from tests.unit.adapters.readers.nsys_forms import COPY, DOUBTED, REFUSED, SAME, SET, K, N, table


def made(path: Path, change: Sequence[str]) -> Path:
    small_export(path)
    with sqlite3.connect(path) as db:
        quicken(db)
        for line in change:
            db.execute(line)
    db.close()
    return path


def inspected(*paths: Path) -> Analysis:
    analysis = Nsys(read_nsys).inspect(paths, {})
    assert all(render_text(analysis.views[name]()) for name in ("overlap", "setup", "streams", "summary"))
    return analysis


def refused(*paths: Path) -> PerfgateError:
    with pytest.raises(PerfgateError) as error:
        Nsys(read_nsys).inspect(paths, {})
    return error.value


def values(analysis: Analysis, name: str) -> list[float]:
    return [metric.value for metric in analysis.metrics.find(name)]


@pytest.mark.parametrize("name", SAME)
def test_the_same_figures_from_every_form(tmp_path, name) -> None:
    analysis = inspected(made(tmp_path / "x.sqlite", SAME[name]))
    (overlap,) = analysis.metrics.find("overlap", labels(stage="stage2_f"))
    assert (overlap.value, dict(overlap.labels)["rank"]) == (0.5, "0")
    assert (values(analysis, "busy"), values(analysis, "launch_share")) == ([0.15], [0.0002])
    assert not analysis.problems


@pytest.mark.parametrize("name", DOUBTED)
def test_what_figures_cannot_rest_on_makes_limits_invalid(tmp_path, name) -> None:
    change, code = DOUBTED[name]
    assert code in [problem.code for problem in inspected(made(tmp_path / "x.sqlite", change)).problems]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_reason(tmp_path, name) -> None:
    change, code, what = REFUSED[name]
    error = refused(made(tmp_path / "x.sqlite", change))
    assert (error.code.name, what in error.what, bool(error.fix or error.code.fix)) == (code, True, True), error


def test_copies_and_sets_that_overlap_count_once(tmp_path) -> None:
    place = "start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT"
    change = [*table(COPY, place, f"9000, 10000, 0, 9, 1, {process(10)}"),
              *table(SET, place, f"9500, 11000, 0, 9, 2, {process(10)}")]  # fmt: skip
    analysis = inspected(made(tmp_path / "x.sqlite", change))
    assert (values(analysis, "exposed_memcpy"), values(analysis, "busy")) == ([2000], [0.25])


def test_each_rank_s_launches_are_those_of_its_own_window(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid, start in ((1, 1_000), (2, 50_000)):
        maker.range(pid, start, start + 10_000, "forward chunk 0 backward chunk 0")
        for at in (2_000, 51_000):
            maker.kernel(pid, at + 500, at + 900, "gemm", device=pid)
            maker.call(pid, at, at + 1_000, "cudaLaunchKernel_v7000")
        maker.call(pid, start - 500, start + 500, "cudaLaunchKernel_v7000")
    analysis = inspected(maker.done())
    assert values(analysis, "launch_share") == [0.15, 0.15]
    assert render_text(analysis.views["summary"](), 200).count("1.5 µs") == 2


def test_what_belongs_to_no_process_is_said_to_be_left_out(tmp_path) -> None:
    place = "start INT, end INT, deviceId INT, streamId INT, globalPid INT"
    change = [
        *table(COPY, place, "9000, 10000, 0, 9, NULL"),
        f"UPDATE {N} SET globalTid = NULL WHERE text LIKE 'rank%'",
    ]
    titles = " ".join(finding.title for finding in inspected(made(tmp_path / "x.sqlite", change)).findings)
    assert "left out: 1 copy that" in titles
    assert "left out: 1 range that" in titles


def test_the_spans_of_one_place_and_of_several(tmp_path) -> None:
    single, several = (ExportMaker(tmp_path / f"{name}.sqlite") for name in ("single", "several"))
    for maker in (single, several):
        maker.kernel(7, 300, 400, "first")
        maker.kernel(7, 100, 900, "longer")
    several.kernel(7, 50, 60, "other", device=1)
    several.kernel(8, 500, 2000, "other")
    assert read_nsys(single.done()).extents() == (Extent(pid=7, device=0, first=100, last=900, kernels=2),)
    assert read_nsys(several.done()).extents() == (
        Extent(pid=7, device=0, first=100, last=900, kernels=2),
        Extent(pid=7, device=1, first=50, last=60, kernels=1),
        Extent(pid=8, device=0, first=500, last=2000, kernels=1),
    )


def test_communication_that_takes_no_time_has_no_overlap(tmp_path) -> None:
    analysis = inspected(made(tmp_path / "x.sqlite", [f"UPDATE {K} SET end = start"]))
    assert not values(analysis, "overlap")
    assert {dict(absent.labels).get("stage", "") for absent in analysis.metrics.absent} == {"", "stage2_f"}


def test_a_comparison_names_what_communicates_and_not_what_took_as_long(tmp_path) -> None:
    before, after = (small_export(tmp_path / f"{name}.sqlite") for name in ("before", "after"))
    analysis = Nsys(read_nsys).compare([before], [after], {})
    assert "all of it ncclDevKernel_SendRecv" in render_text(analysis.views["difference"]())
    nothing = made(tmp_path / "none.sqlite", [f"UPDATE {K} SET end = start"])
    metrics = Nsys(read_nsys).compare([nothing], [after], {}).metrics
    assert all(abs(metric.value) < float("inf") for metric in metrics.metrics)


def test_a_kernel_that_talks_by_its_namespace_is_told_by_its_full_name(tmp_path) -> None:
    """nsys's short name has no namespace: ``dispatch`` alone would be computation, and its overlap none."""
    full = {
        901: "void deep_ep::internode::dispatch<(int)8, nullptr>(int4 *, float *)",
        902: "void mine::(anonymous namespace)::gemm<ncclDataType_t>(nccl::Thing *)",
    }
    change = [f"ALTER TABLE {K} ADD COLUMN demangledName INT",
              f"UPDATE {K} SET demangledName = iif(streamId = 20, 901, 902)",
              "UPDATE StringIds SET value = 'dispatch' WHERE value LIKE 'nccl%'",
              *(f"INSERT INTO StringIds VALUES ({number}, '{text}')" for number, text in full.items())]  # fmt: skip
    analysis = inspected(made(tmp_path / "x.sqlite", change))
    assert analysis.metrics.find("overlap", labels(stage="stage2_f"))[0].value == 0.5
    names = {dict(metric.labels)["kernel"] for metric in analysis.metrics.find("kernel_time")}
    assert names == {"gemm", full[901]}
    lines = render_text(analysis.views["summary"](), 200).splitlines()
    assert ["communication" in line for line in lines if "internode" in line] == [True]


def unlabelled(path: Path, length: int) -> Path:
    maker = ExportMaker(path)
    maker.range(5, 1_000, 21_000, "forward chunk 0 backward chunk 0")
    maker.kernel(5, 5_000, 5_000 + length, "gemm", launched=1_500)
    return maker.done()


def test_files_without_labels_are_ranks_in_the_order_in_which_people_count(tmp_path) -> None:
    paths = [unlabelled(tmp_path / f"rank{n}.sqlite", 100 * (n + 1)) for n in (10, 2, 0)]
    busy = {dict(m.labels)["rank"]: m.value for m in inspected(*paths).metrics.find("busy_time")}
    assert busy == {"0": 100, "1": 300, "2": 1100}


def test_mpi_names_the_rank_of_a_process_on_its_thread(tmp_path) -> None:
    paths = [unlabelled(tmp_path / f"{name}.sqlite", 100) for name in ("b", "a")]
    for rank, path in enumerate(paths):
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE ThreadNames(nameId INT, priority INT, globalTid INT)")
            db.execute("INSERT INTO StringIds VALUES (50, ?), (51, 'cuda-EvtHandlr')", (f"MPI Rank {rank}",))
            db.executemany("INSERT INTO ThreadNames VALUES (?, 0, ?)", ((n, process(5) | n) for n in (51, 50)))
    rows = render_text(inspected(*paths).views["setup"](), 200).splitlines()
    assert [row.rpartition("/")[2] for row in rows if "its thread's name" in row] == [path.name for path in paths]


def test_a_device_has_the_name_that_its_kernels_number_leads_to(tmp_path) -> None:
    change = table("TARGET_INFO_GPU", "id INT, name TEXT, cuDevice INT", "0, 'H100', 1", "1, 'T4', 0")
    (row,) = inspected(made(tmp_path / "x.sqlite", change)).views["setup"]().blocks[0].rows
    assert "H100" in row


def test_one_file_given_twice_and_a_copy_of_it(tmp_path) -> None:
    path = unlabelled(tmp_path / "a.sqlite", 100)
    assert "given twice" in refused(path, path).what
    copy = shutil.copy(path, tmp_path / "b.sqlite")
    assert "is a copy of" in refused(path, Path(copy)).what


@pytest.mark.parametrize(
    "name", ["name with spaces #1?mode=rw&x=%41.sqlite", "プロファイル.sqlite", "no_suffix", "x.nsys-rep"]
)
def test_any_name_will_do(tmp_path, name) -> None:
    assert values(inspected(small_export(tmp_path / name)), "busy") == [0.15]


@pytest.mark.parametrize(
    ("table", "column"), [("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"), ("CUPTI_ACTIVITY_KIND_RUNTIME", "end")]
)
def test_a_text_where_a_number_belongs_is_damage(tmp_path, table: str, column: str) -> None:
    """SQL takes it for later than every time, and adds it up."""

    with pytest.raises(PerfgateError) as error:
        inspected(made(tmp_path / "x.sqlite", [f"UPDATE {table} SET {column} = 'x'"]))
    assert error.value.code.name == "nsys-damaged"


def test_a_journal_that_was_used_up_is_no_journal(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    (tmp_path / "x.sqlite-journal").write_bytes(b"\0" * 512)
    assert values(inspected(path), "busy") == [0.15]


@pytest.mark.parametrize(("tables", "code", "what"), [
    (("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "StringTable"), "nsys-not-export", "nvprof"),
    (("moz_places",), "nsys-not-export", "without the table StringIds"),
    ((), "nsys-not-export", "without the table StringIds"),
])  # fmt: skip
def test_databases_of_other_programs(tmp_path, tables, code, what) -> None:
    with sqlite3.connect(tmp_path / "x.sqlite") as db:
        db.execute("PRAGMA user_version = 1")
        for name in tables:
            db.execute(f"CREATE TABLE {name}(start INT)")
    error = refused(tmp_path / "x.sqlite")
    assert (error.code.name, what in error.what) == (code, True)


def test_a_database_of_utf_16_and_of_other_pages(tmp_path) -> None:
    old = sqlite3.connect(small_export(tmp_path / "x.sqlite"))
    with sqlite3.connect(tmp_path / "y.sqlite") as db:
        db.execute("PRAGMA encoding = 'UTF-16le'")
        db.execute("PRAGMA page_size = 512")
        for name, sql in old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(sql)
            rows = old.execute(f"SELECT * FROM {name}").fetchall()
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    assert values(inspected(tmp_path / "y.sqlite"), "busy") == [0.15]


def test_what_a_report_is_by_its_first_bytes_comes_before_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    empty = tmp_path / "empty.nsys-rep"
    empty.write_bytes(b"")
    assert refused(empty).code.name == "nsys-missing"
    inspector = Nsys(read_nsys)
    assert inspector.recognises(tmp_path / "x.sqlite", b"\xd1\xdb\xb7" * 9)
    assert not inspector.recognises(tmp_path / "x.sqlite", b"PK\x03\x04")
