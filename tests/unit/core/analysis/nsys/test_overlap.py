"""Jobs of one file and of several: ranks, windows, stages, balance."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.readers.nsys_export import Export
from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.nsys_corpus import inspect, table
from tests.nsys_file import ExportMaker, small_export


def test_a_file_per_rank_and_a_file_per_node_are_one_job(tmp_path) -> None:
    single = [small_export(tmp_path / f"{rank}.sqlite", rank, pid=10) for rank in (1, 0)]
    node = ExportMaker(tmp_path / "node.sqlite")
    for rank in (0, 1):
        node.range(10 + rank, 0, 100_000, f"rank={rank}; pp={rank}/2")
        node.range(10 + rank, 1_000, 21_000, "forward chunk 0 backward chunk 0")
        node.range(10 + rank, 2_000, 4_000, "layer00.stage2_f")
        node.kernel(10 + rank, 5_000, 7_000, "gemm", launched=1_500)
        node.kernel(10 + rank, 6_000, 8_000, "ncclDevKernel_SendRecv", stream=20, launched=2_500)
    separate, together = inspect(*single), inspect(node.done())
    assert separate.metrics == together.metrics
    assert [row["rank"] for row in table(separate, "overlap")] == ["0", "1"]
    (half,) = {m.value for m in separate.metrics.find("overlap", (("rank", "*"), ("stage", "stage2")))}
    assert half == 0.5


def test_two_files_with_one_rank_are_refused(tmp_path) -> None:
    paths = [small_export(tmp_path / f"{n}.sqlite", 0) for n in (1, 2)]
    with pytest.raises(PerfgateError, match="rank 0 is process 10") as error:
        inspect(*paths)
    assert error.value.code.name == "nsys-ranks"


def test_without_labels_ranks_are_the_order_of_devices(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid, device in ((30, 1), (20, 2), (40, 0)):
        maker.kernel(pid, 0, 100 + device, "gemm", device=device)
    rows = table(inspect(maker.done()), "setup")
    assert [(r["rank"], r["pid"], r["gpu"]) for r in rows] == [("0", "40", "0"), ("1", "30", "1"), ("2", "20", "2")]
    assert {r["named by"] for r in rows} == {"order of devices"}


def test_one_process_on_two_devices_is_two_ranks(tmp_path) -> None:
    """Compute of one device does not cover communication of another."""
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 100, "gemm", device=0)
    maker.kernel(1, 0, 100, "ncclKernel", device=1, stream=20)
    analysis = inspect(maker.done())
    assert [m.value for m in analysis.metrics.find("exposed_comm", (("rank", "1"),))] == [100]


def test_no_communication_is_absent_not_all_of_it(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 100, "gemm")
    metrics = inspect(maker.done()).metrics
    assert not metrics.find("overlap")
    assert "no communication in the window" in metrics.missing("overlap").why


def test_a_stage_without_communication_is_absent_by_name(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 50, "stage3_f")
    maker.kernel(1, 0, 100, "gemm", launched=10)
    maker.kernel(1, 0, 50, "ncclKernel", stream=20, launched=70)
    metrics = inspect(maker.done()).metrics
    scope = (("stage", "stage3"),)
    assert not metrics.find("overlap", scope)
    assert "stage3_f" in metrics.missing("overlap", scope).why


def test_the_anchor_of_a_user_that_matches_nothing_is_an_error(tmp_path) -> None:
    path = small_export(tmp_path / "x.sqlite")
    with pytest.raises(PerfgateError, match="the commonest ranges are") as error:
        inspect(path, anchor="ProfilerStep")
    assert error.value.code.name == "nsys-anchor"


@pytest.mark.parametrize("anchor", ["forward chunk%backward chunk%", "^forward chunk", "FORWARD CHUNK"])
def test_anchors_read_as_sql_or_as_regular_expressions(tmp_path, anchor) -> None:
    assert "1000..21000" in inspect(small_export(tmp_path / "x.sqlite"), anchor=anchor).window


def test_a_window_without_kernels_is_an_error(tmp_path) -> None:
    with pytest.raises(PerfgateError, match=r"no kernel runs in 90000\.\.90001"):
        inspect(small_export(tmp_path / "x.sqlite"), start="90000", end="90001")


def test_a_clock_that_jumped_for_days_is_no_ground_for_a_verdict(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for start in (1_000, 3_000, 3 * 86_400 * 10**9):
        maker.kernel(10, start, start + 500, "gemm", launched=start - 500)
    path = maker.done()
    (problem,) = inspect(path).problems
    assert (problem.code, "3.0 days" in problem.what) == ("nsys-damaged", True)
    assert not inspect(path, start="0", end="9000").problems


def test_kernels_that_a_damaged_page_hides_are_no_window_without_kernels(tmp_path, monkeypatch) -> None:
    path = small_export(tmp_path / "x.sqlite")
    monkeypatch.setattr(Export, "extents", lambda _: ())
    with pytest.raises(PerfgateError) as error:
        inspect(path, start="90000", end="90001")
    assert error.value.code.name == "nsys-damaged"


def test_a_process_without_the_anchor_is_left_out_and_named(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 1_000, "forward chunk 0 backward chunk 0")
    maker.kernel(1, 0, 100, "gemm")
    maker.kernel(2, 0, 100, "decode", device=0)
    analysis = inspect(maker.done())
    assert [row["pid"] for row in table(analysis, "setup")] == ["1"]
    assert any("process 2" in finding.title for finding in analysis.findings)


def test_without_anchors_the_window_is_the_capture_and_says_so(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 40, 100, "gemm")
    assert "40..100 ns (60 ns; the whole capture)" in inspect(maker.done()).window


def test_the_launch_decides_the_stage_not_the_execution(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 100, "stage2_f")
    maker.range(1, 100, 200, "stage4_f")
    maker.range(1, 0, 200, "stage1_b", tid=2)
    maker.kernel(1, 120, 130, "ncclKernel", stream=20, launched=50)
    maker.kernel(1, 140, 150, "ncclKernel", stream=21, launched=50, tid=2)
    rows = table(inspect(maker.done()), "overlap")
    assert [(row["stage"], row["kernels"]) for row in rows] == [("stage1_b", 1), ("stage2_f", 1)]


def test_the_innermost_stage_and_its_last_match(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 500, "stage2_f")
    for number in range(200):
        maker.range(1, number + 1, number + 2, "short")
    maker.range(1, 300, 400, "layer0_stage5_f_layer1_stage1_f")
    maker.kernel(1, 600, 700, "ncclKernel", stream=20, launched=250)
    maker.kernel(1, 700, 800, "ncclKernel", stream=20, launched=350)
    assert [row["stage"] for row in table(inspect(maker.done()), "overlap")] == ["stage1_f", "stage2_f"]


def test_union_and_sum_differ_where_communication_runs_at_once(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 100, "stage2_f")
    maker.kernel(1, 0, 60, "gemm", launched=200)
    for stream in (20, 21):
        maker.kernel(1, 50, 100, "ncclKernel", stream=stream, launched=10)
    (row,) = table(inspect(maker.done()), "overlap")
    assert (row["exposed_ns"], row["exposed_sum"]) == (40, 80)
    assert (row["overlap"], row["overlap_sum"]) == (pytest.approx(0.2), pytest.approx(0.2))


def test_launches_that_were_not_recorded_make_stage_limits_invalid(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 100, "stage2_f")
    maker.kernel(1, 0, 60, "ncclKernel", stream=20, launched=10)
    maker.kernel(1, 70, 90, "ncclKernel", stream=20)
    assert [problem.code for problem in inspect(maker.done()).problems] == ["nsys-unlinked"]


def test_balance_over_the_pipeline(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for rank, length in enumerate((100, 100, 160, 140)):
        maker.range(rank + 1, 0, 1000, f"rank={rank}; pp={rank // 2}/2 dp={rank % 2}/2")
        maker.kernel(rank + 1, 0, length, "gemm", device=rank)
    metrics = inspect(maker.done()).metrics
    balances = {dict(m.labels)["over"]: m.value for m in metrics.find("balance")}
    assert balances == {"pp": pytest.approx(0.2), "dp": pytest.approx(0.04), "rank": pytest.approx(0.28)}


def test_balance_of_a_stage_is_of_the_ranks_that_have_it(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for rank, length in enumerate((100, 300)):
        maker.range(rank + 1, 0, 1000, f"rank={rank}; pp={rank}/2")
        maker.range(rank + 1, 10, 20, "layer0.stage1_f")
        maker.kernel(rank + 1, 100, 100 + length, "gemm", device=rank, launched=15)
        maker.kernel(rank + 1, 500, 700, "gemm", device=rank, launched=30)
    metrics = inspect(maker.done()).metrics
    assert [m.value for m in metrics.find("balance", (("over", "pp"),))] == [pytest.approx(0.25)]
    scope = (("over", "pp"), ("stage", "stage1"))
    assert [m.value for m in metrics.find("balance", scope)] == [pytest.approx(0.5)]


def test_copies_fill_idle_time_and_the_rest_is_idle(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 50, "gemm", launched=0)
    maker.copy(1, 40, 70)
    maker.kernel(1, 90, 100, "gemm", launched=80)
    metrics = inspect(maker.done()).metrics
    assert [m.value for m in metrics.find("idle")] == [0.2]
    assert [m.value for m in metrics.find("exposed_memcpy")] == [20]
    assert [m.value for m in metrics.find("launch_share")] == [0.04]


def test_threads_that_launch_at_once_are_no_more_than_the_window(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for thread in range(3):
        maker.kernel(1, 10 * thread, 10 * thread + 5, "gemm", launched=0)
    maker.db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = -9, end = 99")
    analysis = inspect(maker.done())
    assert [m.value for m in analysis.metrics.find("launch_share")] == [1.0]


def test_two_exports_without_a_kernel_in_common_say_so(tmp_path) -> None:
    paths = []
    for name in ("gemm", "copy"):
        maker = ExportMaker(tmp_path / f"{name}.sqlite")
        maker.kernel(1, 0, 50, name, launched=0)
        paths.append(maker.done())
    assert "no kernel in common" in Nsys(read_nsys).compare(paths[:1], paths[1:], {}).window
    assert "in common" not in Nsys(read_nsys).compare(paths[:1], paths[:1], {}).window


def test_before_and_after_by_rank_stage_and_kernel(tmp_path) -> None:
    before, after = small_export(tmp_path / "a.sqlite"), small_export(tmp_path / "b.sqlite", slow=2)
    analysis = Nsys(read_nsys).compare([before], [after], {})
    slower = {m.labels: m.value for m in analysis.metrics.find("slowdown", (("rank", "0"),))}
    assert slower == {(("rank", "0"),): 0}, "the step's window did not change"
    assert [m.value for m in analysis.metrics.find("slowdown", (("kernel", "nccl*"),))] == [1.0]
    assert [m.value for m in analysis.metrics.find("slowdown", (("stage", "stage2"),))] == [1.0]
    assert [m.value for m in analysis.metrics.find("overlap", (("stage", "stage2"),))] == [0.25]


def test_kernels_on_one_side_only_are_shown_as_such(tmp_path) -> None:
    before, after = ExportMaker(tmp_path / "a.sqlite"), ExportMaker(tmp_path / "b.sqlite")
    before.kernel(1, 0, 50, "old")
    after.kernel(1, 0, 20, "new")
    analysis = Nsys(read_nsys).compare([before.done()], [after.done()], {})
    assert not analysis.metrics.find("slowdown", (("kernel", "*"),))
    assert [m.value for m in analysis.metrics.find("slowdown")] == [pytest.approx(-0.6)]


def test_a_kernel_that_the_window_cuts_has_no_vote_on_a_stream_s_purpose(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 1_000, 50_000, "forward chunk 0 backward chunk 0")
    maker.range(1, 2_000, 9_000, "layer00.stage2_f")
    maker.kernel(1, 500, 4_000, "ncclDevKernel_AllToAll", stream=20, launched=400)
    maker.kernel(1, 5_000, 9_000, "ncclDevKernel_AllToAll", stream=20, launched=3_000)
    maker.kernel(1, 5_000, 30_000, "gemm", launched=1_500)
    analysis = Nsys(read_nsys).inspect([maker.done()], {})
    text = render_text(analysis.views["streams"]())
    assert "ep_a2a" in text
    assert "mixed" not in text


def test_ranks_that_compute_nothing_are_not_out_of_balance(tmp_path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid in (1, 2):
        maker.kernel(pid, 0, 9_000, "ncclDevKernel_AllReduce", stream=20, device=pid, launched=10)
    text = render_text(Nsys(read_nsys).inspect([maker.done()], {}).views["overlap"]())
    assert "The devices were idle for 0 % of the windows." in " ".join(text.split())
    assert "by not collected" not in text
