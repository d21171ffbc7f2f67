"""Tests of core/analysis/tracelens."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import pytest

from pytest_perfgate.core.analysis.operators import parse_call
from pytest_perfgate.core.analysis.tracelens import nodes, reference_tables
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import host, kernel, launch, surveyed, written
from tests.kineto_operators import zoo

TOLERANCE = 1e-6
TRACES = (
    "bert_small_h100",
    "bert_small_mi300",
    "gpu_only_mi210",
    "normalization_mi300",
    "torch_compile_mi300",
    "vit_h100",
    "vit_mi300",
)
LEFT_OUT = {"short_kernel_histogram", "short_kernels_summary"}


def expected(folder: Path):
    csv.field_size_limit(2**30)
    for file in sorted(folder.glob("*.csv")):
        if file.stem not in LEFT_OUT:
            with file.open(encoding="utf-8", newline="") as text:
                yield file.stem, list(csv.DictReader(text))


def same(ours, theirs: str) -> bool:
    if theirs == "":
        return ours is None or ours == "" or (isinstance(ours, float) and math.isnan(ours))
    if isinstance(ours, bool) or not isinstance(ours, (int, float)):
        return str(ours) == theirs
    return abs(ours - float(theirs)) <= TOLERANCE * max(abs(float(theirs)), 1e-12)


@pytest.mark.parametrize("name", TRACES)
def test_every_cell_of_every_table_is_the_reference_s(look, corpus, name):
    ours = reference_tables(look(name))
    cells = 0
    for table, rows in expected(corpus / "expected" / name):
        assert len(ours[table]) == len(rows), table
        for at, (mine, theirs) in enumerate(zip(ours[table], rows)):
            for column, cell in theirs.items():
                assert same(mine.get(column), cell), f"{table}[{at}].{column}: {mine.get(column)!r} is not {cell!r}"
                cells += 1
    assert cells > 50


def test_no_reference_table_is_left_uncompared(corpus):
    folders = {p.name for p in (corpus / "expected").iterdir()} - {"dlrm_8ranks"}
    assert folders == set(TRACES)
    assert os.listdir(corpus / "expected" / "dlrm_8ranks")


def test_the_reference_s_sheets_of_the_zoo(tmp_path, kineto):
    sheets = reference_tables(surveyed(tmp_path / "t.json", zoo()))
    product = next(row for row in sheets["GEMM"] if row["name"] == "aten::mm")
    assert (product["param: M"], product["param: N"], product["param: K"]) == (128, 256, 64)
    assert product["GFLOPS_first"] == pytest.approx(2 * 128 * 256 * 64 / 1e9)
    for sheet in (
        "CONV_fwd",
        "CONV_bwd",
        "SDPA_fwd",
        "Normalization",
        "UnaryElementwise",
        "BinaryElementwise",
        "Reduce_fwd",
    ):
        assert sheets[sheet], sheet
    whole = kineto.inspect([tmp_path / "t.json"], {"compat": "tracelens"})
    assert next(iter(whole.views)) == "tracelens"
    assert whole.metrics.find("op_time", (("op", "aten::mm"),))[0].value == pytest.approx(8_000)
    assert render_text(whole.views["tracelens"]())


@pytest.mark.parametrize(
    ("sheet", "name", "column", "value"),
    [
        ("CONV_bwd", "aten::convolution_backward", "GFLOPS_first", 0.150994944),
        ("CONV_bwd", "aten::convolution_backward", "Data Moved (MB)_first", 1.517578125),
        ("CONV_bwd", "aten::convolution_backward", "param: bias", "[]"),
        ("SDPA_fwd", "FlashAttnFunc", "param: H_Q", 8),
        ("SDPA_fwd", "FlashAttnFunc", "GFLOPS_first", 0.033554432),
        ("SDPA_fwd", "aten::_scaled_dot_product_efficient_attention", "param: causal", True),
        ("SDPA_fwd", "aten::_scaled_dot_product_flash_attention", "param: causal", True),
    ],
)
def test_figures_that_the_reference_gives_calls_of_the_zoo(tmp_path, sheet, name, column, value) -> None:
    (row,) = (row for row in reference_tables(surveyed(tmp_path / "t.json", zoo()))[sheet] if row["name"] == name)
    assert row[column] == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("lost", "sheet", "rows"),
    [
        ("Input Strides", "Normalization", 0),
        ("Concrete Inputs", "Normalization", 3),
        ("Concrete Inputs", "SDPA_fwd", 0),
        ("Input type", "BinaryElementwise", 0),
        ("Input type", "Reduce_fwd", 2),
    ],
)
def test_calls_without_what_the_reference_reads_have_no_row_on_its_sheet(tmp_path, lost, sheet, rows) -> None:
    bare = [{**e, "args": {k: v for k, v in e.get("args", {}).items() if k != lost}} for e in zoo()]
    assert len(reference_tables(surveyed(tmp_path / "t.json", bare)).get(sheet, ())) == rows


@pytest.mark.parametrize("lost", [("Input Dims",), ("Input Dims", "Concrete Inputs")])
def test_calls_without_shapes_keep_what_else_was_recorded(tmp_path, lost) -> None:
    bare = [{**e, "args": {k: v for k, v in e.get("args", {}).items() if k not in lost}} for e in zoo()]
    tables = reference_tables(surveyed(tmp_path / "t.json", bare))
    product = next(row for row in tables["ops_unique_args"] if row["name"] == "aten::mm")
    assert (product["Input Dims"], product["Input type"]) == (None, "('c10::BFloat16', 'c10::BFloat16')")
    assert product["Input Strides"] == "((64, 1), (256, 1))"
    fused = [row for row in tables["unified_perf_summary"] if str(row["name"]).startswith("triton_")]
    assert {row["has_perf_model"] for row in fused} == {False}


def test_the_mode_names_what_it_does_not_write(tmp_path, kineto) -> None:
    path = written(tmp_path / "t.json", [*one_call("aiter::mha_bwd", 5)])
    about = kineto.inspect([path], {"compat": "tracelens"}).views["tracelens"]().subtitle
    assert "short kernels" in about
    assert "aiter::mha_bwd" in about


def test_a_trace_that_the_reference_refuses_says_so_instead_of_tables(tmp_path, kineto) -> None:
    events = [host("aten::mm", 0, 30), host("cudaLaunchKernel", 5, 3, cat="cuda_runtime", correlation=1)]
    path = written(tmp_path / "t.json", [*events, kernel("gemm", 10, 20, correlation=1)])
    document = kineto.inspect([path], {"compat": "tracelens"}).views["tracelens"]()
    assert not document.blocks
    assert document.subtitle.startswith("TraceLens refuses this trace")


@pytest.mark.parametrize(
    ("view", "tables"),
    [
        ("tracelens", None),
        ("timeline", ["gpu_timeline"]),
        ("ops", ["ops_summary"]),
        ("categories", ["ops_summary_by_category"]),
        ("arguments", ["ops_unique_args"]),
        ("kernels", ["kernel_summary"]),
        ("roofline", ["unified_perf_summary"]),
    ],
)
def test_views_keep_their_names_in_the_reference_s_tables(tmp_path, kineto, view, tables) -> None:
    path = written(tmp_path / "t.json", zoo())
    document = kineto.inspect([path], {"compat": "tracelens"}).views[view]()
    titles = [block.title for block in document.blocks]
    assert titles == (tables or list(reference_tables(surveyed(tmp_path / "u.json", zoo()))))


@pytest.mark.parametrize("view", ["impact", "fusion", "steps"])
def test_a_view_that_the_reference_has_no_table_for_says_so(tmp_path, kineto, view) -> None:
    whole = kineto.inspect([written(tmp_path / "t.json", zoo())], {"compat": "tracelens"})
    with pytest.raises(PerfgateError) as error:
        whole.views[view]()
    assert error.value.code.name == "view-unknown"
    assert "--compat" in error.value.fix


def test_only_views_that_a_trace_has_tables_for_are_named(tmp_path, kineto) -> None:
    bare = kineto.inspect([written(tmp_path / "t.json", [kernel("k", 5, 10)])], {"compat": "tracelens"})
    with pytest.raises(PerfgateError) as error:
        bare.views["roofline"]()
    assert "roofline" not in error.value.fix


def test_calls_of_the_same_arguments_are_worked_out_once(tmp_path, monkeypatch) -> None:
    counted = []
    monkeypatch.setattr(nodes, "parse_call", lambda *arguments: counted.append(arguments) or parse_call(*arguments))
    later = [{**event, "ts": event["ts"] + 1_000_000} if "ts" in event else event for event in zoo()]
    reference_tables(surveyed(tmp_path / "t.json", [*zoo(), *later]))
    assert len(counted) == len(set(counted))


def one_call(name: str, *kernels, cat: str = "cpu_op", **fields):
    """A call of the host with the launches of its kernels inside."""
    yield host(name, 0, 90, cat=cat, **fields)
    for at, length in enumerate(kernels, 1):
        yield launch(10 * at, at)
        yield kernel(f"k{at}", 100 * at, length, correlation=at)
        yield from arrow(at, 10 * at, 100 * at)


def arrow(number: int, start: int, end: int):
    yield {"ph": "s", "cat": "ac2g", "id": number, "name": "ac2g", "pid": 1, "tid": 1, "ts": start}
    yield {"ph": "f", "cat": "ac2g", "id": number, "name": "ac2g", "pid": 0, "tid": 7, "ts": end, "bp": "e"}


def test_kernels_of_a_replayed_graph_count_without_an_arrow(tmp_path) -> None:
    events = [host("hipGraphLaunch", 0, 9, cat="cuda_runtime", correlation=5)]
    events += [kernel(f"k{n}", 10 + 20 * n, 15, correlation=5) for n in range(3)]
    ours = reference_tables(surveyed(tmp_path / "t.json", events))
    assert ours["gpu_timeline"][0]["time ms"] == pytest.approx(0.045)
    assert [row["name"] for row in ours["ops_summary"]] == ["hipGraphLaunch"]
    names = [row["name"] for row in ours["unified_perf_summary"]]
    assert sorted(names) == [f"hipGraphLaunch->k{n} (Synthetic Op)" for n in range(3)]
    assert {row["thread_name"] for row in ours["ops_unique_args"]} == {"Unknown"}
    assert {row["Input Dims"] for row in ours["ops_unique_args"]} == {None}


@pytest.mark.parametrize(
    ("name", "types", "dims", "moved"),
    [
        ("aten::copy_", ["float", "c10::BFloat16"], [[32, 64], [32, 64]], 32 * 64 * 6),
        ("aten::copy_", ["float", "double"], [[32], []], 32 * 8),
        ("aten::mul", ["c10::BFloat16", "float"], [[32, 64], [32, 64]], 32 * 64 * (2 + 4 + 4)),
        ("aten::add_", ["c10::BFloat16", "double"], [[32], []], 32 * 2 + 8 + 32 * 2),
        ("aten::mul", ["float", "float"], [[8, 1], [1, 4]], (8 + 4 + 32) * 4),
        ("aten::cumsum", ["float"], [[32]], 32 * 8),
    ],
)
def test_each_operand_moves_its_own_size(tmp_path, name, types, dims, moved) -> None:
    arguments = {"Input type": types, "Input Dims": dims, "Input Strides": [[1] * len(d) for d in dims]}
    events = list(one_call(name, 20, **arguments, **{"Concrete Inputs": [""] * len(dims)}))
    (row,) = reference_tables(surveyed(tmp_path / "t.json", events))["unified_perf_summary"]
    assert row["Data Moved (MB)"] == pytest.approx(moved / 2**20)


def test_a_causal_mask_halves_the_products(tmp_path) -> None:
    dims = [[2, 4, 128, 64]] * 3
    arguments = {"Input type": ["c10::BFloat16"] * 3 + ["Scalar"] * 2, "Input Dims": [*dims, [], []]}
    arguments |= {"Input Strides": [[4 * 128 * 64, 128 * 64, 64, 1]] * 3 + [[], []]}
    name = "aten::_scaled_dot_product_flash_attention"
    work = []
    for causal in ("False", "True"):
        events = list(one_call(name, 20, **arguments, **{"Concrete Inputs": ["", "", "", "0.", causal]}))
        (row,) = reference_tables(surveyed(tmp_path / f"{causal}.json", events))["unified_perf_summary"]
        work.append(row["GFLOPS"])
    assert work[1] == pytest.approx(work[0] / 2)


def test_a_reduction_without_shapes_has_a_model_and_no_work(tmp_path) -> None:
    ours = reference_tables(surveyed(tmp_path / "t.json", list(one_call("aten::sum", 20))))
    (row,) = ours["unified_perf_summary"]
    assert (row["has_perf_model"], row["GFLOPS"], row["Data Moved (MB)"]) == (True, 0.0, None)
    (row,) = ours["Reduce_fwd"]
    assert row["Input Dims_first"] is None
    assert "np.int64(20)" in row["kernel_details__summarize_kernel_stats"]


def test_a_product_of_a_trace_without_strides_has_its_sheet(tmp_path) -> None:
    arguments = {"Input type": ["float", "float"], "Input Dims": [[8, 16], [16, 4]]}
    ours = reference_tables(surveyed(tmp_path / "t.json", list(one_call("aten::mm", 20, **arguments))))
    (row,) = ours["GEMM"]
    assert (row["param: M"], row["param: N"], row["param: K"], row["param: stride_A"]) == (8, 4, 16, None)
    (row,) = ours["ops_unique_args"]
    assert (row["Input Dims"], row["Input Strides"]) == ("((8, 16), (16, 4))", None)


def nested(below: str) -> list[dict]:
    """An operator that launches a kernel itself and has another below, which launches one too."""
    events = [host("outer", 0, 90), launch(5, 1), kernel("own", 100, 30, correlation=1), *arrow(1, 5, 100)]
    events += [host(below, 40, 40, **{"Input Dims": [[8], [8]], "Input type": ["float", "float"],
                                      "Input Strides": [[1], [1]]}), launch(50, 2)]  # fmt: skip
    return [*events, kernel("its", 200, 20, correlation=2), *arrow(2, 50, 200)]


@pytest.mark.parametrize(
    ("below", "names"),
    [
        ("inner", {"outer": 50.0}),
        ("aten::add", {"aten::add": 20.0, "outer->own (Synthetic Op)": 30.0}),
        ("aten::convolution_backward", {"aten::convolution_backward": 20.0, "outer->own (Synthetic Op)": 30.0}),
    ],
)
def test_what_launches_itself_is_taken_whole_unless_something_below_has_a_model(tmp_path, below, names) -> None:
    ours = reference_tables(surveyed(tmp_path / "t.json", nested(below)))
    rows = {row["name"]: row for row in ours["unified_perf_summary"]}
    assert {name: row["Kernel Time (µs)_sum"] for name, row in rows.items()} == names
    if below == "aten::convolution_backward":
        assert (rows[below]["op category"], rows[below]["has_perf_model"], rows[below]["GFLOPS"]) == (
            "CONV_bwd",
            True,
            None,
        )


def test_an_elementwise_call_without_strides_has_no_figures(tmp_path) -> None:
    arguments = {"Input type": ["float", "float"], "Input Dims": [[8], [8]]}
    ours = reference_tables(surveyed(tmp_path / "t.json", list(one_call("aten::add", 20, **arguments))))
    assert "BinaryElementwise" not in ours
    (row,) = ours["unified_perf_summary"]
    assert (row["has_perf_model"], row["GFLOPS"]) == (True, None)


@pytest.mark.parametrize(("dtype", "moved"), [("c10::BFloat16", 4 * 2 * 800), ("float", 0)])
def test_a_fused_kernel_counts_types_by_their_names_in_c(tmp_path, dtype: str, moved: float) -> None:
    dims = [[800], [800], [800], []]
    arguments = {"Input type": [dtype] * 3 + ["Scalar"], "Input Dims": dims, "Input Strides": [[1]] * 3 + [[]]}
    events = one_call("triton_poi_fused_add_cos_sin_0", 20, **arguments, **{"Concrete Inputs": ["", "", "", "800"]})
    (row,) = reference_tables(surveyed(tmp_path / "t.json", list(events)))["unified_perf_summary"]
    assert (row["GFLOPS"], row["Data Moved (MB)"]) == (pytest.approx(800e-9), pytest.approx(moved / 2**20))


def test_times_beyond_64_bits_are_summed_as_floats() -> None:
    summary = nodes.kernel_summary([[("gemm", 7, 1 << 64)], [("gemm", 7, 0)]])
    assert "'total_duration_us': np.float64(1.8446744073709552e+19)" in summary


def test_linked_kernels_that_take_no_time_have_no_percentages(tmp_path) -> None:
    events = [*one_call("aten::mm", 0), kernel("unlinked", 500, 10)]
    ours = reference_tables(surveyed(tmp_path / "t.json", events))
    assert {row["percent"] for row in ours["gpu_timeline"]} == {None}
    assert [row["Percent of kernels time (%)"] for row in ours["kernel_summary"]] == [None]
