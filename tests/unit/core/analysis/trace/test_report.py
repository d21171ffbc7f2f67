"""Tests of core/analysis/trace/report."""

from __future__ import annotations

import re

import pytest

from pytest_perfgate import wiring
from pytest_perfgate.cli import main
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Column, Document, Table
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS, job, step_events

PEAK = ["--peak", PEAKS["peak"], "--bandwidth", PEAKS["bandwidth"]]


def page(*rows, title=""):
    columns = (Column(name="what"), Column(name="time", dimension=Dimension.TIME))
    return Document(title="T", blocks=(Table(columns=columns, rows=rows, title=title),))


def test_reports_of_one_trace_have_their_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (path,) = job(tmp_path, ranks=1)
    assert main(["inspect", str(path), "--reports", "out", *PEAK]) == 0
    output = capsys.readouterr().out
    for name in ("report", "standalone_analysis_rough", "standalone_analysis_fair"):
        for ending in ("md", "html"):
            assert f"{name}.{ending}" in output
            assert (tmp_path / "out" / f"{name}.{ending}").stat().st_size > 500
    report = (tmp_path / "out" / "report.md").read_text()
    assert re.findall(r"^## (.*)$", report, re.MULTILINE) == ["Summary", "Metrics", "Findings", "Recommendations"]
    assert "](#" not in report
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


def test_every_finding_stands_once_in_the_report_of_whoever_decides(kineto, tmp_path):
    analysis = kineto.inspect(job(tmp_path, ranks=1), dict(PEAKS))
    text = " ".join(render_text(analysis.views["fair"](), 10_000).split())
    assert analysis.findings
    for finding in analysis.findings:
        assert text.count(finding.title) == 1
    rough = render_text(analysis.views["rough"]())
    assert rough.index("Analysis process summary") < rough.index("Findings")


def short_attention(queries: int):
    dims = [[2, 8, queries, 64]] * 3
    arguments = {"Input Dims": dims, "Input type": ["c10::BFloat16"] * 3, "Concrete Inputs": [""] * 3}
    yield host("aten::_scaled_dot_product_flash_attention", 0, 90, **arguments)
    yield launch(1, 1)
    yield kernel("flash_fwd_kernel", 10, 500, correlation=1)


@pytest.mark.parametrize(("queries", "replayed"), [(197, False), (1023, False), (1024, True), (4096, True)])
def test_attention_over_a_short_sequence_gets_one_advice(kineto, tmp_path, queries, replayed):
    analysis = kineto.inspect(
        [written(tmp_path / "t.json", list(short_attention(queries)))], {"peak": "bf16=990TFLOPS", "bandwidth": "3TB/s"}
    )
    text = " ".join(render_text(analysis.views["fair"](), 10_000).split())
    assert ("replay artifact recommended" in text) is replayed
    assert text.count("before calling it a kernel problem") == (0 if replayed else 1)
    assert ("Replay artifacts: none recommended" in text) is not replayed
    assert ("--view replay --set replay=replay.zip" in text) is replayed


@pytest.mark.parametrize(
    ("steps", "options", "rate"),
    [(3, {}, 10.0), (3, {"items": "64 samples"}, 640.0), (0, {}, None), (0, {"items": "64 samples"}, 640.0)],
)
def test_throughput_is_of_steps_or_of_what_was_stated(kineto, tmp_path, steps, options, rate):
    events = [host(f"ProfilerStep#{n}", 100_000 * n, 90_000, cat="user_annotation") for n in range(steps)]
    events += [launch(1, 1), kernel("k", 0, 1, correlation=1), launch(2, 2), kernel("k", 99_999, 1, correlation=2)]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], options).metrics
    if rate is None:
        assert "--set items" in metrics.missing("throughput").fix
    else:
        assert metrics.find("throughput")[0].value == pytest.approx(rate)


def test_an_operator_without_a_model_says_so_once(kineto, tmp_path):
    analysis = kineto.inspect([written(tmp_path / "t.json", MM)], {})
    detail = next(block for block in analysis.views["fair"]().blocks if block.title == "Detailed analysis")
    (operator,) = detail.blocks
    bullets, table = operator.blocks
    assert bullets.items == ("no shapes: longest kernel a",)
    assert [column.name for column in table.columns] == [
        "shapes",
        "calls",
        "GPU time",
        "bound, or why there is no model",
    ]
    assert "An operator that is not here" in render_text(analysis.views["rough"](), 10_000)


def test_a_view_without_rows_says_why(kineto, tmp_path):
    path = written(tmp_path / "t.json", MM)
    views = kineto.inspect([path], {}).views
    for name, reason in (
        ("fusion", "No module launches three short kernels"),
        ("backward", "No operator has a backward pass."),
        ("selection", "No operator uses different kernels"),
    ):
        assert views[name]().blocks[0].note.startswith(reason)
    assert kineto.compare([path], [path], {}).views["only_target"]().blocks[0].note == "None."
    assert "Fusion candidates" not in [getattr(block, "title", "") for block in views["rough"]().blocks]


def test_what_no_operator_launched_is_listed_by_kernel(kineto, tmp_path):
    events = [*MM, launch(20, 2), kernel("graphed", 30, 50, correlation=2)]
    page = kineto.inspect([written(tmp_path / "t.json", events)], {}).views["fair"]()
    detail = next(block for block in page.blocks if block.title == "Detailed analysis")
    (table,) = detail.blocks[0].blocks
    assert [row[0] for row in table.rows] == ["graphed"]
    empty = kineto.inspect([written(tmp_path / "u.json", MM[:2])], {}).views["fair"]()
    assert "No operator ran." in render_text(empty)


def test_a_report_without_gaps_says_so(kineto, tmp_path):
    path = written(tmp_path / "t.json", list(short_attention(4096)))
    rough = render_text(kineto.inspect([path], {}).views["rough"](), 10_000)
    assert "Every operator has a work model." in rough
    assert "An operator that is not here" not in rough


MM = [host("aten::mm", 0, 9), launch(1, 1), kernel("a", 10, 5, correlation=1)]
FIRST_PAGES = {
    "The host's operators run 100 % of a window of 9 µs. aten::mm is the largest operator: 9 µs": MM[:1],
    "2 devices worked, each with its times. metric value": [
        *MM,
        launch(2, 2),
        kernel("b", 10, 7, correlation=2, device=1),
    ],
    "The trace has no GPU activity.": MM[:2],
    "No operator launched 60 %": [
        *MM[:2],
        launch(20, 2),
        kernel("a", 10, 4, correlation=1),
        kernel("b", 30, 6, correlation=2),
    ],
    "and 0 % of its communication is hidden": [*MM, launch(2, 2), kernel("ncclDevKernel", 30, 7, correlation=2)],
}


@pytest.mark.parametrize("sentence", FIRST_PAGES)
def test_the_first_page_of_any_trace_says_what_happened(tmp_path, sentence):
    kineto = next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")
    paths = [written(tmp_path / "t.json", FIRST_PAGES[sentence])]
    summary, *_ = kineto.inspect(paths, {}).views["fair"]().blocks
    assert sentence in " ".join(render_text(Document(title="", blocks=(summary,))).split())
    other = [written(tmp_path / "u.json", MM)]
    page = render_text(kineto.compare(paths, other, {}).views["fair"]())
    assert "Compute time of the target is" in page or "no single device's activity" in page
    assert "peaks not known not known" in " ".join(page.split())


def test_reports_of_a_comparison_have_their_names(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = job(tmp_path)
    assert main(["compare", str(first), str(second), "--reports", "out"]) == 0
    assert "comparative_analysis_fair.md" in capsys.readouterr().out
    assert (tmp_path / "out" / "comparative_analysis_rough.html").exists()


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


def test_equal_traces_have_a_sentence_and_no_empty_table(kineto, tmp_path):
    path = [written(tmp_path / "t.json", step_events(0, 0))]
    same = kineto.compare(path, path, {})
    for view in ("report", "tree"):
        assert "The call trees are alike." in render_text(same.views[view]())
    report = render_text(same.views["report"]())
    assert "exposed communication" in report
    assert "exposed copies" in report


def test_a_remark_keeps_its_end_and_a_name_both_ends():
    remark = "arguments do not fit the model: three tensors were recorded where four are read; look at the shapes"
    name = "void cutlass::Kernel2<" + "cutlass_80_tensorop_bf16_s16816gemm_" * 4 + ">(Params)"
    table = Table(columns=(Column(name="kernel"), Column(name="why")), rows=((name, remark), (remark, name)))
    first, second = render_text(Document(title="t", blocks=(table,))).splitlines()[-2:]
    assert first.endswith(remark)
    assert "…" in first[: -len(remark)]
    assert remark not in second
    assert second.endswith("(Params)")


def test_a_package_that_was_written_says_where_and_how_to_run_it(kineto, tmp_path):
    path, target = written(tmp_path / "t.json", step_events(0, 0)), tmp_path / "r.zip"
    pages = kineto.inspect([path], {"op": "aten::mm", "replay": str(target)}).views
    assert target.exists()
    for view in ("report", "replay"):
        assert f"unzip {target} -d replay" in " ".join(render_text(pages[view]()).split())
    plain = kineto.inspect([path], {"op": "aten::mm"}).views
    assert "--set replay=FILE.zip" in render_text(plain["replay"]())
    assert "replay/replay.py" not in render_text(plain["report"]())


@pytest.mark.parametrize(
    ("operators", "reason"), [(True, "the trace has no shapes"), (False, "no operator launched it")]
)
def test_an_unknown_work_has_the_reason_of_operators(kineto, tmp_path, operators, reason):
    events = [
        launch(5, 1),
        kernel("gemm", 40, 10, correlation=1),
        launch(70, 2),
        kernel("outside", 80, 90, correlation=2),
    ]
    path = written(tmp_path / "t.json", [*([host("aten::mm", 0, 30)] if operators else []), *events])
    assert f"No operator's work is known: {reason}" in render_text(kineto.inspect([path], {}).views["report"]())


def test_a_device_without_a_name_leaves_no_gap_in_the_subtitle(kineto, tmp_path):
    events = [launch(0, 1), kernel("k", 5, 10, correlation=1)]
    header = {"deviceProperties": [{}], "distributedInfo": {"rank": 0, "world_size": 1}}
    analysis = kineto.inspect([written(tmp_path / "t.json", events, **header)], {})
    assert "rank 0 of 1 · coverage 100.0 %" in analysis.views["report"]().subtitle


def test_a_rank_beyond_the_ranks_of_its_job_is_told(kineto, tmp_path):
    header = {"distributedInfo": {"rank": 5, "world_size": 2}}
    analysis = kineto.inspect([written(tmp_path / "t.json", [kernel("k", 5, 10)], **header)], {})
    assert "rank 5, though the trace names only 2 ranks" in analysis.views["report"]().subtitle


def test_a_comparison_says_its_key_findings_and_why(kineto, tmp_path):
    before, after = job(tmp_path, ranks=2)[:2]
    analysis = kineto.compare(
        [before], [after], {**PEAKS, "reference_peak": "bf16=100TFLOPS,fp32=10TFLOPS", "reference_bandwidth": "1TB/s"}
    )
    page = render_text(analysis.views["fair"](), 10_000)
    titles = [block.title for block in analysis.views["fair"]().blocks]
    assert titles == [
        "Executive summary",
        "Key findings",
        "Recommendations for the target",
        "Detailed comparison",
        "Appendix",
    ]
    assert "times the reference's" in page
    assert page.count("Compute time of the target") == 1
    for name in ("both", "only_reference", "only_target", "timeline", "collectives", "reference", "target"):
        assert render_text(analysis.views[name]())
    counts = {
        name: len(analysis.views[name]().blocks[0].rows)
        for name in ("arguments", "both", "only_reference", "only_target")
    }
    assert counts["arguments"] == counts["both"] + counts["only_reference"] + counts["only_target"]


def test_collectives_of_two_traces_stand_side_by_side(kineto, tmp_path):
    def sent(path, length):
        message = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2, "In msg nelems": 10}
        events = [host("record_param_comms", 0, 9, **message, dtype="Float"), launch(1, 1)]
        return written(path, [*events, kernel("ncclDevKernel_AllReduce", 5, length, correlation=1, stream=9)])

    compared = kineto.compare([sent(tmp_path / "a.json", 30)], [sent(tmp_path / "b.json", 60)], {})
    (row,) = compared.views["collectives"]().blocks[0].rows
    assert row[3:] == (1, 1, 30_000, 60_000, 1.0)
    assert compared.views["rough"]().blocks[-1].blocks[0].rows == (row,)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_blocking_synchronisations_are_counted(kineto, tmp_path, count):
    events = [launch(1, 1), kernel("k", 5, 900, correlation=1)]
    events += [host("cudaStreamSynchronize", 10 + 100 * n, 50, cat="cuda_runtime") for n in range(count)]
    (metric,) = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics.find("sync_count")
    assert metric.value == count


def test_a_report_of_a_program_without_a_gpu_counts_no_rows_of_one(kineto, tmp_path):
    path = written(tmp_path / "cpu.json", [host("aten::linear", 0, 20), host("aten::mm", 5, 9)])
    text = " ".join(render_text(kineto.inspect([path], {}).views["rough"](), 10_000).split())
    assert "2 operators of the host, 1 of them timed" in text
    assert "rows of the GPU" not in text


def test_a_peak_alone_keeps_the_bandwidth_of_the_device(tmp_path, capsys):
    (path,) = job(tmp_path, ranks=1)
    assert main(["inspect", str(path), "--view", "roofline", "--device", "H100 SXM", "--peak", "bf16=700TFLOPS"]) == 0
    assert "Roof: peaks as given, bandwidth: H100 SXM5 80GB, datasheet rates" in capsys.readouterr().out
