"""Every figure that a view prints is a metric of the same value that a limit can name."""

from __future__ import annotations

from collections import defaultdict

import pytest

from pytest_perfgate.adapters.formats import tables_of
from pytest_perfgate.core.analysis.trace.figures import FIGURES, metric_of
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import TIMING_KINDS, by_name
from pytest_perfgate.core.trace_kinds import TRACE_KINDS as TRACE
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS, job
from tests.kineto_operators import ROWS, WISE, B, operation, recorded, zoo

KINDS = by_name()
NO_FIGURE = {"event"}
"""The number of an event in the file."""
TABLES = ("timeline", "steps", "categories", "ops", "arguments", "kernels", "roofline", "impact", "fusion", "backward")


def modules():
    """A module of short kernels, three times, with passes of gradients, and one product on two kernels."""
    events = []
    for n in range(3):
        at, c = 100_000 + 500 * n, 10_000 + 20 * n
        events.append(host(f"nn.Module: RMSNorm_{n}", at, 90, cat="python_function"))
        for k in range(4):
            here = at + 20 * k
            events += [host("aten::mul", here + 1, 15), launch(here + 2, c + k)]
            events.append(kernel(WISE, here + 5, 8 + k, correlation=c + k))
        events += [host("aten::exp", at + 100, 9, **{"Sequence number": 700 + n}), launch(at + 101, c + 8)]
        events.append(kernel("exp", at + 103, 5, correlation=c + 8))
        events.append(
            host("autograd::engine::evaluate_function: ExpBackward0", at + 120, 9, **{"Sequence number": 700 + n})
        )
        events += [launch(at + 121, c + 9), kernel("exp_backward", at + 123, 7 + n, correlation=c + 9)]
    wide = (ROWS, ((256, 512), B))
    events += operation(1050, "aten::mm", wide, "another_gemm", 30) + operation(1051, "aten::mm", wide, "another_gemm")
    twice = {**recorded(wide), "Input Strides": [[1, 64], [512, 1]]}
    events += [
        host("aten::mm", 200_000, 9, **twice),
        launch(200_001, 9_000),
        kernel("g", 200_005, 3, correlation=9_000),
    ]
    steps = [host(f"ProfilerStep#{n}", 100_000 * n, 90_000, cat="user_annotation") for n in (0, 1)]
    message = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": 2, "In msg nelems": 10}
    events += [host("record_param_comms", 300_000, 9, **message, dtype="Float"), launch(300_001, 9_001)]
    sends = [kernel("ncclDevKernel_AllReduce", 300_005, 30, correlation=9_001, stream=9)]
    copies = [launch(300_002, 9_002), kernel("Memcpy HtoD", 300_050, 4, correlation=9_002, cat="gpu_memcpy")]
    return [*steps, *events, *sends, *copies]


@pytest.fixture(scope="module")
def one(kineto, tmp_path_factory):
    path = written(tmp_path_factory.mktemp("one") / "t.json", [*zoo(), *modules()])
    return kineto.inspect([path], {**PEAKS, "peak": "bf16=10TFLOPS,fp32=10TFLOPS,fp8=20TFLOPS", "top": "60"})


@pytest.fixture(scope="module")
def many(kineto, tmp_path_factory):
    return kineto.inspect(job(tmp_path_factory.mktemp("job")), PEAKS)


@pytest.fixture(scope="module")
def compared(kineto, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    slow = [{**e, "dur": 4 * e["dur"]} if e["name"] == WISE else e for e in zoo()]
    paths = written(folder / "a.json", zoo()), written(folder / "b.json", slow[:-5])
    return kineto.compare([paths[0]], [paths[1]], {**PEAKS, "peak": "bf16=100TFLOPS,fp32=10TFLOPS"})


def cells(view, document):
    """Column, number and first text of every figure of a view; the lines of a timeline are its columns."""
    for table in tables_of(document.blocks):
        for row in table.rows:
            for column, cell in zip(table.columns, row):
                if column.dimension is Dimension.TEXT or cell is None or column.name in NO_FIGURE:
                    continue
                name = column.name
                if view == "timeline":
                    name = row[0] if name == "time" else f"{row[0]}, of the window"
                yield name, cell, str(row[0])


def labels_by_figure(analysis):
    """By metric and by value to nine digits: the texts of the labels of all metrics that have it."""
    figures = defaultdict(lambda: defaultdict(set))
    for metric in analysis.metrics.metrics:
        figures[metric.name][f"{metric.value:.9g}"].update(text for _, text in metric.labels)
    return figures


def check_view(analysis, view, document, key=""):
    named, metrics, count = metric_of(key or view), labels_by_figure(analysis), 0
    for column, cell, first in cells(view, document):
        if (view, column) == ("timeline", "total, of the window"):
            assert cell == 1
            continue
        assert column in named, f"the view {view} prints {column!r}: name its metric in core/analysis/trace/figures.py"
        about = metrics[named[column]].get(f"{cell:.9g}")
        assert about is not None, (view, column, first, cell)
        assert view in {"timeline", "steps"} or first in about, (view, column, first)
        count += 1
    return count


@pytest.mark.parametrize("view", [*TABLES, "selection", "ranks"])
def test_every_cell_of_a_view_is_a_metric(one, view):
    assert check_view(one, view, one.views[view]()), f"{view} shows no figure at all"


def test_every_cell_of_many_ranks_is_a_metric(many):
    assert check_view(many, "ranks", many.views["ranks"]())
    _, waits, *_ = many.views["report"]().blocks
    assert check_view(many, "report", waits, "report of many ranks")


@pytest.mark.parametrize("view", ["ops", "arguments", "categories", "kernels"])
def test_every_cell_of_a_comparison_is_a_metric(compared, view):
    assert check_view(compared, view, compared.views[view](), "compare: ops, arguments, categories, kernels")


def test_the_parts_and_the_trees_of_a_comparison_are_metrics(compared):
    parts = compared.views["report"]().blocks[1]
    for column, cell, first in cells("report", parts):
        metric = metric_of("compare: where the time went")[column]
        metrics = compared.metrics.find(metric, (("part", first.replace(" ", "_")),))
        assert cell in [m.value for m in metrics], (column, first)
    edits = sum(cell for _, cell, _ in cells("tree", compared.views["tree"]()))
    assert compared.metrics.find("tree_edits")[0].value == edits > 0


def test_every_figure_has_a_kind_with_its_scopes_and_every_new_kind_a_figure(one, many, compared):
    for figure in FIGURES:
        assert figure.metric in KINDS, figure
        assert set(filter(None, figure.scopes.split(", "))) - set(KINDS[figure.metric].scopes) <= {"step", "side"}, (
            figure
        )
    made = [m for analysis in (one, many, compared) for m in analysis.metrics.metrics]
    for metric in made:
        kind = KINDS[metric.name]
        assert {label for label, _ in metric.labels} <= set(kind.scopes), metric
        assert metric.dimension is kind.dimension, metric
    assert {kind.name for kind in TRACE} <= {m.name for m in made}
    assert {"tflops", "sol_datasheet"} <= {kind.name for kind in TIMING_KINDS} & {m.name for m in made}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("op_mean(op=aten::mm, shapes=128x64 64x256) <= 8us", Outcome.PASSED),
        ("op_median(op=aten::mm, strides=[[1, 64], [512, 1]]) <= 2us", Outcome.BROKEN),
        ("kernel_max(kernel=another_gemm, launcher=aten::mm) <= 30us", Outcome.PASSED),
        ("tflops(op=aten::mm, shapes=128x64 64x256) >= 1TFLOPS", Outcome.BROKEN),
        ("tflops(kernel=another_gemm) >= 1TFLOPS", Outcome.BROKEN),
        ("sol_datasheet(kernel=another_gemm, launcher=aten::mm) >= 0.1%", Outcome.PASSED),
        ("module_kernels(RMSNorm) <= 3", Outcome.BROKEN),
        ("backward_ratio(op=aten::exp) <= 2x", Outcome.PASSED),
        ("gain(op=aten::mm, target=80%) <= 100%", Outcome.PASSED),
        ("comm_time(AllReduce) <= 30us", Outcome.PASSED),
        ("idle_macro_share(step=0) <= 100%", Outcome.PASSED),
    ],
)
def test_limits_name_them(one, text, outcome):
    verdicts = judge_artifact(one, [parse_limit(text, kinds=KINDS)])
    assert {verdict.outcome for verdict in verdicts} == {outcome}, [v.sentence for v in verdicts]


def test_the_longest_rows_come_first_where_there_are_too_many(one):
    from pytest_perfgate.core.analysis.trace.figures import table_metrics
    from pytest_perfgate.model.metric import labels

    table = one.views["arguments"]().blocks[0]
    where = [labels(op=row[0]) for row in table.rows]
    few = list(table_metrics("arguments", table, where, [()], 30))
    assert {dict(m.labels)["op"] for m in few} == {row[0] for row in table.rows[:3]}
    assert not list(table_metrics("arguments", table, where, [()], 3))


def test_a_record_keeps_figures_of_rows_where_a_limit_names_one(kineto, tmp_path):
    paths = [written(tmp_path / "t.json", zoo())]
    everything, few = (len(kineto.inspect(paths, o).metrics.metrics) for o in ({}, {"limits": "idle <= 5%"}))
    assert few < everything / 2
    for text in ("kernel_max(kernel=odd) <= 1s", "op_time(op=aten::mm, shapes=128x64 64x256) <= 1s"):
        metrics = kineto.inspect(paths, {"limits": f"idle <= 5%\n{text}"}).metrics
        verdict, *_ = judge_artifact(kineto.inspect(paths, {"limits": text}), [parse_limit(text, kinds=KINDS)])
        assert verdict.outcome is Outcome.PASSED
        assert len(metrics.metrics) == everything
