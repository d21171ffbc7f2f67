"""Every kind of figure of a trace: some analysis has it, with scopes that a limit can name, or says why not."""

from __future__ import annotations

import pytest

from pytest_perfgate import wiring
from pytest_perfgate.cli import main
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import KERNEL_KINDS, OVERLAP_KINDS, TRACE_KINDS, by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS, job, shaped, step_events

KINDS = by_name()
OF_ROWS = ("module_", "forward_", "backward_", "compared_", "difference", "expected_", "tree_")
"""Figures of modules, of gradients and of two traces: test_figures has them."""
FAMILY = [kind.name for kind in (*OVERLAP_KINDS, *TRACE_KINDS) if not kind.name.startswith(OF_ROWS)]
RATES = ["tflops", "bandwidth", "intensity", "mfu", "mfu_datasheet", "sol", "sol_datasheet"]
UNITS = {
    Dimension.TIME: "1ns",
    Dimension.FRACTION: "0%",
    Dimension.COUNT: "0",
    Dimension.BYTES: "0B",
    Dimension.WORK: "0FLOP",
    Dimension.FLOPS: "0TFLOPS",
    Dimension.BANDWIDTH: "0GB/s",
    Dimension.INTENSITY: "0",
}


@pytest.fixture(scope="module")
def analyses(kineto, tmp_path_factory):
    paths = job(tmp_path_factory.mktemp("job"))
    return kineto.inspect(paths[:1], PEAKS), kineto.inspect(paths, PEAKS)


@pytest.mark.parametrize("name", [*FAMILY, *RATES])
def test_every_kind_is_produced_and_a_limit_can_name_each_of_its_scopes(analyses, name):
    pairs = [(one, metric) for one in analyses for metric in one.metrics.metrics if metric.name == name]
    assert pairs, f"no analysis of a trace gives {name}"
    scopes = {}
    for one, metric in pairs:
        assert {label for label, _ in metric.labels} <= set(KINDS[name].scopes), metric
        scopes.setdefault(tuple(label for label, _ in metric.labels), (one, metric))
    for one, metric in scopes.values():
        scope = ", ".join(f"{label}={text}" for label, text in metric.labels)
        text = f"{name}({scope}) >= {UNITS[metric.dimension]}" if scope else f"{name} >= {UNITS[metric.dimension]}"
        verdicts = judge_artifact(one, [parse_limit(text, kinds=KINDS)])
        measured = [verdict for verdict in verdicts if verdict.outcome is not Outcome.NOT_MEASURED]
        assert any(verdict.metric == metric for verdict in measured), (text, verdicts)


def test_steps_have_operators_and_kernels(analyses):
    one = analyses[0].metrics
    (spent,) = one.find("op_time", (("op", "aten::mm"), ("step", "2")))
    assert spent.value == 25_000
    (whole,) = one.find("op_time", (("op", "aten::mm"),))
    assert whole.value == 50_000
    (count,) = one.find("kernel_count", (("kernel", "sgemm"), ("step", "1")))
    assert count.value == 2
    (every,) = one.find("kernel_time", (("step", "1"),))
    assert every.value == 53_000


def test_copies_alone_are_no_kernels(kineto, tmp_path):
    """In sums and in steps; beside kernels a copy keeps the figures of its row."""
    steps = [host(f"ProfilerStep#{n}", 100 * n, 90, cat="user_annotation") for n in (1, 2)]
    copies = [launch(100 * n + 1, n) for n in (1, 2)]
    copies += [kernel("Memcpy HtoD", 100 * n + 5, 20, correlation=n, cat="gpu_memcpy") for n in (1, 2)]
    alone = kineto.inspect([written(tmp_path / "t.json", [*steps, *copies])], {}).metrics
    for name in ("kernel_time", "kernel_count", "short_kernels"):
        assert not alone.find(name)
        assert "memcpy_time" in alone.missing(name).fix
    assert alone.find("memcpy_time")[0].value == 40_000
    events = [*steps, *copies, launch(130, 3), kernel("a", 140, 5, correlation=3)]
    analysis = kineto.inspect([written(tmp_path / "u.json", events)], {})
    assert "kernels launched: 1\n" in render_text(analysis.views["analysis"]())
    both = analysis.metrics
    assert both.find("kernel_time")[0].value == 5_000
    assert both.find("kernel_count", (("step", "2"),))[0].value == 0
    assert both.find("kernel_time", (("kernel", "Memcpy HtoD"),))[0].value == 40_000


@pytest.mark.parametrize("limit", ["kernel_time <= 1us", "kernel_count <= 0", "kernel_time(kernel=Memcpy*) <= 1us"])
def test_a_limit_on_kernels_is_not_held_against_a_copy(tmp_path, capsys, limit):
    copy = [launch(1, 1), kernel("Memcpy HtoD", 5, 20, correlation=1, cat="gpu_memcpy")]
    assert main(["check", str(written(tmp_path / "t.json", copy)), limit]) == 4
    assert "NOT MEASURED" in capsys.readouterr().out


def test_two_devices_of_one_trace_have_operators_of_their_own(kineto, tmp_path):
    events = [host("aten::mm", 0, 9), launch(1, 1), launch(2, 2)]
    events += [kernel("a", 10, 5, correlation=1), kernel("b", 10, 7, correlation=2, device=1)]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    (second,) = metrics.find("op_time", (("gpu", "1"), ("op", "aten::mm")))
    assert second.value == 7_000


def test_what_no_trace_can_tell_names_the_tool_that_can(analyses):
    for kind in KERNEL_KINDS:
        missing = analyses[0].metrics.missing(kind.name)
        assert missing.why == "not observable in a trace"
        assert any(tool in missing.fix for tool in ("ncu", "cubin", "rocprof")), kind.name


def test_an_operator_without_a_model_has_absent_rates(analyses):
    verdict, *_ = judge_artifact(analyses[0], [parse_limit("tflops(op=mine::own) >= 1TFLOPS", kinds=KINDS)])
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert "no model for this operator" in verdict.sentence


def test_communication_is_told_by_what_the_framework_recorded(kineto, tmp_path):
    """A kernel whose name says nothing, launched where a collective was recorded."""
    events = [
        host("record_param_comms", 0, 9),
        launch(1, 1),
        kernel("my_custom_reduce", 10, 20, correlation=1),
        launch(12, 2),
        kernel("DeviceReduceByKeyDispatch", 40, 5, correlation=2),
    ]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert metrics.find("communication_time")[0].value == 20_000


def test_starts_are_compared_where_clocks_agree(analyses, kineto, tmp_path):
    together = analyses[1].metrics
    assert together.find("start_skew", (("collective", "AllReduce"),))[0].value == 3_000
    assert together.find("straggler")[0].value == 1
    first, second = job(tmp_path)
    second.write_text(second.read_text().replace('"schemaVersion": 1', '"baseTimeNanoseconds": 5000000000'))
    apart = kineto.inspect([first, second], {}).metrics
    assert not apart.find("start_skew")
    assert "clocks of the ranks do not agree" in apart.missing("start_skew").why
    assert apart.find("straggler")[0].value == 1


def test_a_comparison_with_little_coverage_is_invalid(kineto, tmp_path):
    events = [
        host("aten::mm", 0, 9),
        launch(1, 1),
        kernel("a", 10, 5, correlation=1),
        kernel("b", 20, 50, correlation=9),
    ]
    path = [written(tmp_path / "t.json", events)]
    limit = parse_limit("slowdown(op=aten::mm) <= 5%", kinds=KINDS)
    (verdict,) = judge_artifact(kineto.compare(path, path, {}), [limit])
    assert verdict.outcome is Outcome.INVALID
    assert "only 9.1 % of the GPU time is linked to a launch" in verdict.sentence
    (verdict,) = judge_artifact(kineto.compare(path, path, {"floor": "0"}), [limit])
    assert verdict.outcome is Outcome.PASSED


def test_the_project_s_own_patterns_of_communication_are_known(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.perfgate]\ncommunication = ["ring_.*_sum", "my_gather"]\n')
    events = [launch(0, 1), kernel("ring_fp8_sum", 10, 20, correlation=1), launch(1, 2)]
    events += [kernel("my_gather", 40, 5, correlation=2), launch(2, 3), kernel("other", 50, 5, correlation=3)]
    path = written(tmp_path / "t.json", events)
    assert main(["check", str(path), "communication_time <= 25us"]) == 0
    assert main(["check", str(path), "communication_time >= 30us", "--set", "communication=^other$"]) == 0
    assert main(["inspect", str(path), "--view", "kernels"]) == 0
    assert capsys.readouterr().out.count("communication ") >= 2
    project = wiring.configuration(tmp_path)
    monkeypatch.chdir("/")
    own = next(i for i in built_ins.BuiltIns(project).pytest_perfgate_inspectors() if i.name == "kineto")
    assert own.inspect([path], {}).metrics.find("communication_time")[0].value == 25_000
    settings.write_text('[tool.perfgate]\ncommunication = ["("]\n')
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", str(path)]) == 2
    assert "tool.perfgate.communication: communication='(' is not a pattern" in capsys.readouterr().err


def test_a_kernel_has_the_rate_of_its_calls_if_it_does_their_work_alone(kineto, tmp_path):
    square, flops, moved = ([64, 64], [64, 64]), 2 * 64**3, 3 * 64 * 64 * 4
    calls = {"alone": ["alone"], "split": ["split", "sum"], "filled": ["filled", "Memset"], "mixed": ["mixed"]}
    calls["mixed again"] = ["mixed", "other"]
    events = [
        host("aten::odd", 9_000, 40, **shaped(*square)),
        launch(9_001, 900),
        kernel("odd", 9_050, 9, correlation=900),
    ]
    for at, names in enumerate(calls.values()):
        begin = 1000 * at
        events.append(host("aten::mm", begin, 40, **shaped(*square)))
        for n, name in enumerate(names):
            cat = "gpu_memset" if name == "Memset" else "kernel"
            events.append(launch(begin + 5 * n + 1, 10 * at + n + 1))
            events.append(kernel(name, begin + 50 + 20 * n, 10, correlation=10 * at + n + 1, cat=cat))
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], PEAKS)
    rates = analysis.views["kernels"]().blocks[0].blocks[1]
    by_name = {row[0]: row[-4:] for row in rates.rows}
    for name in ("alone", "filled"):
        assert by_name[name] == pytest.approx((flops / 10e-6, moved / 10e-6, flops / 10e-6 / 10e12, ""))
        assert analysis.metrics.find("tflops", (("kernel", name),))[0].value == pytest.approx(flops / 10e-6)
    reasons = {name: row[3].split(":")[0] for name, row in by_name.items() if row[0] is None}
    assert reasons == {
        "split": "one of 2 kernels of its call",
        "sum": "one of 2 kernels of its call",
        "Memset": "it prepares the memory of its call's kernel",
        "mixed": "other kernels share the work of some of its calls",
        "other": "one of 2 kernels of its call",
        "odd": "no model for this operator",
    }
    assert not analysis.metrics.find("tflops", (("kernel", "split"),))
    for took, why in ((0.01, "INVALID: more than the hardware can do"), (0, "it takes no time in this trace")):
        events = [host("aten::mm", 0, 9, **shaped(*square)), launch(1, 1), kernel("g", 9, took, correlation=1)]
        events += [host("aten::mm", 50, 9, **shaped(*square)), launch(51, 2), kernel("h", 59, 100, correlation=2)]
        rates = kineto.inspect([written(tmp_path / "s.json", events)], PEAKS).views["kernels"]().blocks[0].blocks[1]
        assert [row[-2:] for row in rates.rows if row[0] is None or row[-1]] == [(None, why)]


def test_more_than_the_hardware_can_do_keeps_no_limit(kineto, tmp_path):
    path = written(tmp_path / "t.json", step_events(0, 0))
    for peak, outcome in (("fp32=10TFLOPS", Outcome.PASSED), ("fp32=10MFLOPS", Outcome.INVALID)):
        analysis = kineto.inspect([path], {"peak": peak})
        texts = ("mfu(op=aten::mm) >= 0.001%", "sol_datasheet(kernel=*) >= 0.001%")
        verdicts = judge_artifact(analysis, [parse_limit(text, kinds=KINDS) for text in texts])
        assert [verdict.outcome for verdict in verdicts] == [outcome] * 2


def test_a_gap_that_grows_is_a_slowdown(kineto, tmp_path):
    paths = []
    for gap in (10, 1000):
        events = [
            launch(0, 1),
            kernel("a", 5, 10, correlation=1),
            launch(1, 2),
            kernel("a", 15 + gap, 10, correlation=2),
        ]
        paths.append(written(tmp_path / f"{gap}.json", events))
    analysis = kineto.compare(paths[:1], paths[1:], {})
    texts = ("slowdown <= 5%", "slowdown(part=busy) <= 5%")
    whole, busy = judge_artifact(analysis, [parse_limit(text, kinds=KINDS) for text in texts])
    assert (whole.outcome, busy.outcome) == (Outcome.BROKEN, Outcome.PASSED)


def test_the_host_is_not_compared_with_a_gpu(kineto, tmp_path):
    gpu = written(tmp_path / "gpu.json", step_events(0, 0))
    cpu = written(tmp_path / "cpu.json", [host("aten::mm", 0, 9, **shaped([64, 64], [64, 64]))])
    limits = [parse_limit(text, kinds=KINDS) for text in ("slowdown(op=aten::mm) <= 5%", "difference <= 0us")]
    for before, after in ((gpu, cpu), (cpu, gpu)):
        mixed = kineto.compare([before], [after], {})
        assert {v.outcome for v in judge_artifact(mixed, limits)} == {Outcome.NOT_MEASURED}
        assert all("host" in render_text(mixed.views[view]()) for view in ("report", "rough", "ops"))
    alone = kineto.compare([cpu], [cpu], {})
    assert not alone.metrics.find("difference", (("part", "exposed_comm"),))
    assert {v.outcome for v in judge_artifact(alone, limits)} == {Outcome.PASSED}


def test_argument_sets_are_unknown_where_no_shapes_were_recorded(kineto, tmp_path):
    """All calls are one set then, and a limit on their number would always pass."""
    events = [host("aten::add", 0, 9), launch(1, 1), kernel("a", 5, 10, correlation=1)]
    without = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert not without.metrics.find("op_variants")
    assert "record_shapes" in without.metrics.missing("op_variants").fix
    assert without.views["ops"]().blocks[0].rows[0][-1] is None
    events[0]["args"] |= {"Input Dims": [[8], [8]], "Input type": ["float", "float"]}
    shaped = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert shaped.metrics.find("op_variants")[0].value == 1
    assert shaped.views["ops"]().blocks[0].rows[0][-1] == 1
