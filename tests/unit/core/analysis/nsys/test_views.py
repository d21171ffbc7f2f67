"""What holds the window of a rank back, and windows that leave most of a capture out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.analysis.nsys.metrics import rank_names
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Table
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring.devices import project_catalogue
from tests.nsys_file import ExportMaker


def inspected(maker: ExportMaker, **options: str) -> Analysis:
    return Nsys(read_nsys).inspect([maker.done()], options)


def titles(analysis: Analysis) -> list[str]:
    return [finding.title for finding in analysis.findings]


def value(analysis: Analysis, name: str) -> float:
    (metric,) = analysis.metrics.find(name)
    return metric.value


def test_an_idle_device_behind_waits_is_bound_by_synchronisation(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for n in range(10):
        maker.kernel(1, 1_000_000 * n, 1_000_000 * n + 600_000, "gemm", launched=1_000_000 * n - 10)
        maker.call(1, 1_000_000 * n + 5_000, 1_000_000 * n + 610_000, "cudaDeviceSynchronize_v3020")
    analysis = inspected(maker)
    assert value(analysis, "sync_time") == 9 * 400_000
    assert value(analysis, "sync_share") == pytest.approx(3.6 / 9.6)
    assert value(analysis, "sync_count") == 10
    assert "blocking synchronisations: 10" in render_text(analysis.views["analysis"]())
    later = Nsys(read_nsys).inspect([tmp_path / "x.sqlite"], {"start": "5ms", "end": "9.6ms"})
    assert value(later, "sync_count") == 5, "those in the window"
    assert any(title.startswith("The window of rank 0 is synchronisation-bound") for title in titles(analysis))
    assert "Remove blocking synchronisations" in titles(analysis)
    (idle,) = (finding for finding in analysis.findings if finding.title.startswith("Idle time"))
    assert idle.advice.startswith("38 % of the window is idle behind 10 calls that wait for the device")
    assert "The window of rank 0 is synchronisation-bound" in render_text(analysis.views["overlap"]())


def test_a_stage_whose_kernels_take_no_time_has_no_share_of_the_compute(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 10_000, "layer00.stage3_f")
    maker.kernel(1, 5_000, 5_000, "gemm", launched=10)
    maker.kernel(1, 1_000, 9_000, "ncclDevKernel_AllReduce", stream=20, launched=30)
    *_, stages = inspected(maker).views["balance"]().blocks
    assert isinstance(stages, Table)
    assert [row[1:] for row in stages.rows] == [("0", "stage3_f", 0, 0.0)]


def test_exposed_communication_binds_the_window_and_its_stage(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.range(1, 0, 90_000, "rank=0")
    maker.range(1, 100, 900, "stage2_f")
    maker.kernel(1, 1_000, 50_000, "gemm", launched=10)
    maker.kernel(1, 50_000, 90_000, "ncclDevKernel_AllReduce", stream=20, launched=200)
    analysis = inspected(maker)
    assert any(title.startswith("The window of rank 0 is communication-bound") for title in titles(analysis))
    assert "Overlap communication" in titles(analysis)
    assert "Communication-bound stages: stage2_f of rank 0." in render_text(analysis.views["overlap"]())


def test_short_kernels_back_to_back_are_launch_bound(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for n in range(50):
        maker.kernel(1, 5_000 * n, 5_000 * n + 3_000, "tiny", launched=5_000 * n)
    analysis = inspected(maker)
    assert any(title.startswith("The window of rank 0 is launch-bound") for title in titles(analysis))
    assert "Fewer, longer launches" in titles(analysis)


def test_what_stands_beside_computation_leads_gravest_first(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for n in range(4):
        maker.kernel(1, 100_000 * n, 100_000 * n + 60_000, "gemm", launched=100_000 * n)
        maker.kernel(1, 100_000 * n + 60_000, 100_000 * n + 90_000, "ncclDevKernel_AllReduce")
    analysis = inspected(maker)
    shares = [(f.trigger, f.gain.high) for f in analysis.findings if f.trigger.startswith(("idle=", "exposed_share="))]
    assert [trigger for trigger, _ in shares] == ["exposed_share=0.308", "idle=0.077"]
    assert shares[0][1] == pytest.approx(12 / 27)
    assert next(iter(analysis.views)) == "overlap"
    page = render_text(analysis.views["overlap"]())
    assert page.index("[exposed_share=0.308]") < page.index("barrier ")
    assert "[exposed_share=0.308]" in render_text(analysis.views["analysis"]())


def test_without_communication_the_summary_leads_with_the_findings(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for n in range(30):
        maker.kernel(1, 1_000_000 * n, 1_000_000 * n + 4_000, "tiny")
    analysis = inspected(maker)
    assert next(iter(analysis.views)) == "summary"
    assert analysis.views["summary"]().blocks[1].title == "Findings"
    assert {"idle", "short_kernels"} <= {f.trigger.partition("=")[0] for f in analysis.findings}
    again = Nsys(read_nsys).inspect([tmp_path / "x.sqlite"], {"compat": "pithtrain"})
    assert next(iter(again.views)) == "overlap"


def test_without_calls_no_synchronisation_is_told(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 1_000_000, "gemm")
    analysis = inspected(maker)
    assert analysis.metrics.find("sync_time") == analysis.metrics.find("launch_share") == ()
    assert not [title for title in titles(analysis) if title.startswith("The window of rank")]
    assert "Kernels limit the window of rank 0" in render_text(analysis.views["overlap"]())


def steps(path: Path, length: int) -> ExportMaker:
    """Steps every 10 ms, with a kernel that fills them."""
    maker = ExportMaker(path)
    for n in range(5):
        begin = 10_000_000 * n
        maker.range(1, begin, begin + length, f"ProfilerStep#{n}")
        maker.kernel(1, begin, begin + length, "gemm", launched=begin)
    return maker


def test_windows_that_leave_most_of_a_capture_out_are_said(tmp_path: Path) -> None:
    analysis = inspected(steps(tmp_path / "x.sqlite", 1_000_000), preset="ddp")
    assert value(analysis, "idle") == 0.0
    assert value(analysis, "window_coverage") == pytest.approx(5 / 41)
    assert value(analysis, "step_to_step") == 10_000_000
    (finding,) = [one for one in analysis.findings if "of its capture" in one.title]
    assert finding.title == "The windows of rank 0 cover 12 % of its capture"
    assert "1 ms long, and the next one starts 10 ms after it" in finding.detail
    text = render_text(analysis.views["window"]())
    assert "12.2 %" in text
    assert "10 ms" in text


def test_windows_that_cover_a_capture_are_not_warned_of(tmp_path: Path) -> None:
    analysis = inspected(steps(tmp_path / "x.sqlite", 9_000_000), preset="ddp")
    assert value(analysis, "window_coverage") > 0.9
    assert not [title for title in titles(analysis) if "of its capture" in title]


@pytest.mark.parametrize(("end", "part", "warned"), [("2000000", 2 / 41, True), ("21000000", 21 / 41, False)])
def test_a_window_that_was_given_says_how_much_of_the_capture_it_covers(tmp_path: Path, end, part, warned) -> None:
    analysis = inspected(steps(tmp_path / "x.sqlite", 1_000_000), start="0", end=end)
    assert value(analysis, "window_coverage") == pytest.approx(part)
    findings = [one for one in analysis.findings if "of its capture" in one.title]
    assert [one.title for one in findings] == (["The window of rank 0 covers 5 % of its capture"] if warned else [])
    assert all("between" not in one.detail for one in findings)
    assert quantity(part, Dimension.FRACTION) in render_text(analysis.views["window"]())


def test_the_report_has_four_sections_and_every_rank(tmp_path: Path) -> None:
    analysis = inspected(steps(tmp_path / "x.sqlite", 40_000))
    page = analysis.views[analysis.reports["report"]]()
    assert [block.title for block in page.blocks] == ["Summary", "Metrics", "Findings", "Recommendations"]
    text = render_text(page, 10_000)
    assert "GPU utilisation: " in text
    for finding in analysis.findings:
        assert finding.title in text


def test_the_report_of_several_ranks_has_the_least_and_the_greatest_figures(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 1_000_000, "gemm", device=0)
    maker.kernel(2, 0, 400_000, "gemm", device=1)
    maker.kernel(2, 900_000, 1_000_000, "gemm", device=1)
    analysis = inspected(maker)
    text = render_text(analysis.views["analysis"](), 10_000)
    assert text.count("The window of rank 1 is latency-bound: the device idles for 50.0 % of the window") == 1
    assert "- idle: 0 % (rank 0) to 50 % (rank 1)\n" in text
    assert "- kernels: 1 (rank 0) to 2 (rank 1)\n" in text
    assert "- exposed communication: 0 %\n" in text
    assert "Kernels limit the window of rank 0" in text.partition("Metrics")[0]


def test_one_rank_is_looked_at_where_it_is_named(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid in (1, 2):
        maker.kernel(pid, 0, 900, "gemm", launched=0)
    whole = inspected(maker)
    names = [metric.labels for metric in whole.metrics.find("idle", (("rank", "*"),))]
    assert len(names) == 2
    one = Nsys(read_nsys).inspect([tmp_path / "x.sqlite"], {"rank": "1"})
    assert {dict(metric.labels).get("rank") for metric in one.metrics.find("idle")} <= {"1", None}
    with pytest.raises(PerfgateError) as error:
        Nsys(read_nsys).inspect([tmp_path / "x.sqlite"], {"rank": "7"})
    assert error.value.code.name == "nsys-option"


def test_nothing_is_advised_from_an_export_whose_kernels_are_hidden(tmp_path: Path) -> None:
    def made(name: str) -> Path:
        maker = ExportMaker(tmp_path / name)
        for n in range(30):
            maker.kernel(1, 100_000 * n, 100_000 * n + 3_000, "tiny", launched=100_000 * n)
        return maker.done()

    paths = made("plain.sqlite"), made("graphs.sqlite")
    with closing(sqlite3.connect(paths[1])) as database, database:
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1)")
    plain, hidden = (Nsys(read_nsys).inspect([path], {}) for path in paths)
    assert [problem.code for problem in hidden.problems] == ["nsys-graphs"]
    assert [finding.trigger for finding in hidden.findings] == ["class=invalid"]
    assert "latency" in render_text(plain.views["window"]())
    assert "latency" not in render_text(hidden.views["window"]())
    for view in ("summary", "analysis"):
        page = render_text(hidden.views[view]())
        assert "perfgate explain nsys-graphs" in " ".join(page.split())
        assert "nothing stands out" not in page
        assert "=node 1 rank" not in " ".join(page.split())
    first = [one.views["summary"]().blocks[0] for one in (plain, hidden)]
    assert [getattr(block, "title", "") for block in first] == ["", "Findings"], "INVALID stands before any figure"


def test_the_summary_says_that_kernels_hold_a_window(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 900_000, "gemm", launched=0)
    assert "Kernels limit the window of rank 0" in " ".join(render_text(inspected(maker).views["summary"]()).split())


@pytest.mark.parametrize(
    ("count", "text"), [(1, "rank 0"), (3, "ranks 0, 1 and 2"), (64, "ranks 0, 1, 2, 3, 4, 5 and 58 more")]
)
def test_many_ranks_are_counted_after_the_first(count: int, text: str) -> None:
    assert rank_names([SimpleNamespace(rank=SimpleNamespace(name=str(n))) for n in range(count)]) == text


WORK = {"flops": "1TFLOP", "bytes": "1GB", "dtype": "bf16"}


def stated(path: Path, **options: str) -> Analysis:
    maker = steps(path, 9_000_000)
    return Nsys(read_nsys, None, project_catalogue).inspect([maker.done()], {"preset": "ddp", **options})


def test_stated_work_has_rates_over_the_window_of_each_rank(tmp_path: Path) -> None:
    analysis = stated(tmp_path / "x.sqlite", **WORK, device="H100 SXM")
    assert value(analysis, "tflops") == pytest.approx(1e12 / 0.009)
    assert value(analysis, "bandwidth") == pytest.approx(1e9 / 0.009)
    assert value(analysis, "mfu_datasheet") == pytest.approx(1e12 / 0.009 / 989.4e12, rel=1e-3)
    assert analysis.metrics.find("mfu_datasheet")[0].labels == (("rank", "0"),)
    assert "idle time included" in analysis.metrics.find("tflops")[0].note
    for view in ("overlap", "summary", "analysis"):
        assert "MFU 11.2 %" in " ".join(render_text(analysis.views[view]()).split()), view
    page = render_text(analysis.views["analysis"]())
    assert "- Stated work of rank 0: " in page.partition("Metrics")[2].partition("Findings")[0]
    assert "Stated work" not in page.partition("Findings")[2]
    by_peak = stated(tmp_path / "y.sqlite", **WORK, peak="bf16=989.4TFLOPS", bandwidth="3TB/s")
    assert value(by_peak, "mfu") == pytest.approx(value(analysis, "mfu_datasheet"))


def test_a_roof_without_work_says_what_to_state(tmp_path: Path) -> None:
    analysis = stated(tmp_path / "x.sqlite", peak="bf16=989TFLOPS")
    (finding,) = [one for one in analysis.findings if one.title == "No work is stated"]
    assert "--set flops=" in finding.advice
    assert analysis.metrics.find("tflops") == ()


def test_more_than_the_peak_is_refused(tmp_path: Path) -> None:
    analysis = stated(tmp_path / "x.sqlite", flops="1PFLOP", dtype="bf16", device="H100 SXM")
    (verdict,) = judge_artifact(analysis, [parse_limit("mfu_datasheet <= 50%", kinds=by_name())])
    assert verdict.outcome is Outcome.INVALID
    (verdict,) = judge_artifact(
        inspected(steps(tmp_path / "y.sqlite", 9_000_000), preset="ddp"),
        [parse_limit("mfu >= 5%", kinds=by_name())],
    )
    assert (verdict.outcome, "--set flops=" in verdict.next[0]) == (Outcome.NOT_MEASURED, True)


def test_more_than_the_peak_on_one_rank_is_refused_beside_a_plausible_one(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for rank, last in enumerate((9_000_000, 90_000)):
        maker.kernel(100 + rank, 0, last, "gemm", device=rank)
    options = {"flops": "1TFLOP", "dtype": "bf16", "peak": "bf16=989TFLOPS"}
    analysis = inspected(maker, **options)
    verdicts = judge_artifact(analysis, [parse_limit("mfu_datasheet >= 10%", kinds=by_name())])
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INVALID, Outcome.PASSED}
    assert [absent.labels for absent in analysis.metrics.absences("mfu_datasheet")] == [(("rank", "1"),)]


@pytest.mark.parametrize(
    ("limit", "outcomes"),
    [("step_to_step <= 1s", [Outcome.NOT_MEASURED, Outcome.PASSED]), ("exposed_share <= 5%", [Outcome.INVALID])],
)
def test_a_rank_without_a_figure_does_not_keep_its_limit(tmp_path: Path, limit: str, outcomes: list[Outcome]) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for rank, step in ((0, 0), (0, 1), (1, 0)):
        maker.range(100 + rank, 10_000 * step, 10_000 * step + 9_000, f"step {step}")
        maker.kernel(100 + rank, 10_000 * step, 10_000 * step + 5_000, "gemm", device=rank)
    verdicts = judge_artifact(inspected(maker, preset="ddp"), [parse_limit(limit, kinds=by_name())])
    assert [verdict.outcome for verdict in verdicts] == outcomes


def test_the_summary_of_one_rank_has_its_kernels_alone(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for rank in (0, 1):
        maker.kernel(100 + rank, 0, 5_000, "gemm", device=rank)
    kernels = next(b for b in inspected(maker, rank="1").views["summary"]().blocks if isinstance(b, Table))
    assert [(row[0], row[5]) for row in kernels.rows] == [("1", 1.0)]


def test_a_comparison_has_the_rates_of_its_second_side(tmp_path: Path) -> None:
    paths = [steps(tmp_path / f"{length}.sqlite", length).done() for length in (9_000_000, 4_500_000)]
    analysis = Nsys(read_nsys).compare(paths[:1], paths[1:], {"preset": "ddp", **WORK})
    assert value(analysis, "tflops") == pytest.approx(1e12 / 0.0045)


def test_times_are_readable_on_a_page_and_plain_nanoseconds_for_programs(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    maker.kernel(1, 0, 900_000, "gemm", launched=0)
    summary = inspected(maker).views["summary"]()
    text = render_text(summary)
    assert "900 µs" in text
    assert "total_ns" not in text
    kernels = next(block for block in summary.blocks if isinstance(block, Table))
    assert dict(zip([column.name for column in kernels.columns], kernels.rows[0]))["total_ns"] == 900_000


def test_the_window_is_cited_once_above_the_sentences(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "x.sqlite")
    for pid in (1, 2):
        maker.kernel(pid, 0, 900_000, "gemm", device=pid, launched=0)
    text = render_text(inspected(maker).views["summary"]())
    assert text.count("0..900000") == 1
    assert "Kernels limit the window of ranks 0 and 1" in text
