"""Tests of core/limits/merge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import (
    applies_on,
    asked_figures,
    explicit_selection,
    limits_for,
    limits_on_times,
    matches_pattern,
    matching,
    merge_limits,
    name_of_several,
    named,
    names_part,
    no_instruction,
    of_other_calls,
    own_names,
    replaced_on,
    tails_in,
    unmatched,
    unmatched_cases,
    with_directions,
)
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.project import ConfigPattern
from pytest_perfgate.model.values import Better, Dimension
from tests.unit.core.judge.bench import GPU, HOST, KEY, KINDS, limit, measured


def texts(limits) -> list[str]:
    return [f"{one.text}@{one.source}" for one in limits]


def test_the_closest_layer_wins_per_metric_and_scope() -> None:
    far = [limit("mfu >= 40%", source="default"), limit("time <= 1ms", source="default")]
    near = [limit("mfu >= 55%"), limit("mfu(case=bwd) >= 30%")]
    assert texts(merge_limits(far, near)) == [
        "time <= 1ms@default",
        "mfu >= 55%@marker",
        "mfu(case=bwd) >= 30%@marker",
    ]


def test_the_command_line_replaces_its_key_and_is_shown_as_such() -> None:
    merged = merge_limits([limit("slowdown <= 3%")], [limit("slowdown <= 10%", source="command line")])
    assert texts(merged) == ["slowdown <= 10%@command line"]


def test_a_band_of_one_layer_holds_as_a_whole() -> None:
    band = [limit("count(HMMA) >= 1"), limit("count(HMMA) <= 9")]
    assert merge_limits([limit("count(HMMA) == 5")], band) == tuple(band)


def test_a_device_s_limit_takes_the_place_of_another_on_that_device_only() -> None:
    everywhere, hopper = limit("mfu >= 40%"), limit("mfu >= 55%", on=("H200*",))
    wide, narrow = merge_limits([everywhere], [hopper])
    assert replaced_on(wide, GPU)
    assert not applies_on(wide, GPU)
    assert applies_on(narrow, GPU)
    assert applies_on(wide, HOST)
    assert not replaced_on(wide, HOST)
    assert not applies_on(narrow, HOST)
    assert not replaced_on(hopper, GPU)


def test_a_closer_limit_without_devices_replaces_those_with() -> None:
    assert texts(merge_limits([limit("mfu >= 55%", on=("H200*",))], [limit("mfu >= 20%")])) == ["mfu >= 20%@marker"]


def test_the_same_devices_are_replaced_altogether() -> None:
    far, near = limit("mfu >= 50%", on=("H200*",)), limit("mfu >= 55%", on=("A100*", "H200*"))
    assert merge_limits([far], [near]) == (near,)
    assert len(merge_limits([near], [far])) == 2


def test_no_layers_are_no_limits() -> None:
    assert merge_limits() == ()
    assert merge_limits([], []) == ()


@pytest.mark.parametrize(
    "pattern", ["H200*", "h200", "NVIDIA*", "NVIDIA-H200-lock", "sm_90", "gpu", "nvidia h200", "*lock"]
)
def test_a_device_answers_to_what_people_call_it(pattern: str) -> None:
    assert applies_on(limit("mfu >= 5%", on=(pattern,)), GPU)
    assert not applies_on(limit("mfu >= 5%", on=(pattern,)), HOST)


@pytest.mark.parametrize("pattern", ["H100*", "200", "sm_80", ""])
def test_and_to_nothing_else(pattern: str) -> None:
    assert not applies_on(limit("mfu >= 5%", on=(pattern,)), GPU)


def test_one_of_several_devices_is_enough() -> None:
    assert applies_on(limit("mfu >= 5%", on=("A100*", "H200*")), GPU)


def test_a_call_answers_to_its_own_limits_and_to_those_of_all() -> None:
    limits = [limit("mfu >= 55%"), limit("mfu(case=bwd) >= 30%"), limit("time(case=f*) <= 1ms"), limit("time <= 2ms")]
    bwd = CaseKey(nodeid=KEY.nodeid, name="bwd")
    assert texts(limits_for(limits, bwd)) == ["mfu(case=bwd) >= 30%@marker", "time <= 2ms@marker"]
    assert texts(limits_for(limits, KEY)) == ["mfu >= 55%@marker", "time <= 2ms@marker"]
    fwd = CaseKey(nodeid=KEY.nodeid, name="fwd")
    assert texts(limits_for(limits, fwd)) == ["mfu >= 55%@marker", "time(case=f*) <= 1ms@marker"]
    assert texts(unmatched_cases(limits, [bwd])) == ["time(case=f*) <= 1ms@marker"]
    assert unmatched_cases(limits, [bwd, fwd]) == ()


def test_limits_of_a_clock_that_the_project_has_are_for_other_tests() -> None:
    marker, far = limit("registers <= 128"), limit("slowdown <= 3%", source="configuration")
    code = limit("registers <= 64", source="configuration")
    read = measured(0, processes=(), identity=Identity(device=HOST.key, timer="cubin"))
    assert limits_on_times([marker, far, code], read, KINDS) == (far,)
    assert limits_on_times([limit("time <= 1s"), far], read, KINDS) == (far,)
    assert limits_on_times([far], read, KINDS) == (), "nothing passes for want of a limit"
    time = limit("time <= 1s", source="configuration")
    assert limits_on_times([marker, time], read, KINDS) == (time,)
    metrics = MetricSet(metrics=(Metric(name="time", value=5.0, dimension=Dimension.TIME),))
    assert limits_on_times([marker, time], read.with_metrics(metrics), KINDS) == (), "the file that was read has it"
    assert limits_on_times([marker, time], measured(1e6, identity=read.identity), KINDS) == ()
    assert limits_on_times([marker, time], measured(0, processes=()), KINDS) == (), "a region that was never entered"


def test_a_figure_of_the_test_s_own_that_a_call_lacks_is_of_another_call() -> None:
    loss, other, time = limit("ncu(a) <= 1"), limit("count(a) <= 1"), limit("time <= 1s")
    ours = MetricSet(metrics=(Metric(name="ncu", value=5.0, dimension=Dimension.PLAIN),))
    assert of_other_calls([loss, other, time], measured(1e6).with_metrics(ours), {"ncu", "count"}) == (other,)


@pytest.mark.parametrize(
    ("limits", "better", "rate"),
    [
        (("change(metric(probes)) <= 0",), Better.LOWER, Better.LOWER),
        (("change(metric(probes)) >= -5%", "metric(probes, case=a) >= 1"), Better.HIGHER, Better.HIGHER),
        (("change(metric(probes)) >= -5%", "change(metric(probes)) <= 5%"), Better.NEITHER, Better.NEITHER),
        (("metric(probes) <= 9",), Better.LOWER, Better.HIGHER),
        (("metric(probes) <= 9", "change(metric(probes)) >= -5%"), Better.NEITHER, Better.HIGHER),
        (("metric(probes) == 3",), Better.NEITHER, Better.HIGHER),
        (("change(metric(other)) <= 0", "metric(probes, case=b) <= 1"), Better.NEITHER, Better.HIGHER),
    ],
)
def test_limits_state_the_direction_of_a_figure_before_its_name_does(limits, better, rate) -> None:
    named = {"name": "probes", "value": 3.0, "labels": (("case", "a"),)}
    plain = [Metric(**named, dimension=Dimension.PLAIN, better=one) for one in (Better.NEITHER, Better.HIGHER, None)]
    sized = Metric(**named, dimension=Dimension.BYTES, better=Better.LOWER)
    metrics = MetricSet(metrics=(*plain, sized))
    taken = replace(measured(1e3), metrics=metrics)
    read = replace(taken, identity=Identity(device="d", timer="read"))
    parsed = [parse_limit(text, kinds=by_name()) for text in limits]
    assert [m.better for m in with_directions(read, parsed).metrics.metrics] == [better, rate, None, Better.LOWER]
    named_call = replace(read, key=CaseKey(nodeid="t.py::test_a", name="bench"))
    of_call = [parse_limit("change(metric(probes, case=bench)) <= 0", kinds=by_name())]
    assert [m.better for m in with_directions(named_call, of_call).metrics.metrics][:2] == [Better.LOWER] * 2
    assert with_directions(taken, parsed) is taken


def test_the_names_of_figures_in_a_test_file() -> None:
    source = """perfgate.metric("loss", 1)\nbenchmark.extra_info['hits'] = 2\nperfgate.record(r, name="load")\n"""
    assert own_names(source) == {"loss", "hits", "load"}


def test_a_count_of_all_instructions_names_none_that_could_be_wrong() -> None:
    assert no_instruction(limit("count(kernel=gemm*) >= 1"), MetricSet()) is None
    assert no_instruction(limit("count(HMMAX) >= 1"), MetricSet()) is not None


def test_a_part_of_an_architecture_names_no_device() -> None:
    for pattern, expected in (("sm_90", True), ("90", False), ("H200", True), ("NVIDIA H200", True), ("NVIDIA", False)):
        assert applies_on(replace(limit("time <= 1s"), on=(pattern,)), GPU) is expected


def test_closer_limits_take_the_place_of_farther_ones_on_their_devices() -> None:
    far = limit("mfu >= 55%", on=("H200*",))
    near = [limit("mfu >= 50%", on=("A100*",)), limit("mfu >= 40%")]
    assert merge_limits([far], near) == tuple(near)
    same = limit("mfu >= 60%", on=("H200*",))
    assert merge_limits([far], [same]) == (same,)
    assert replaced_on(replace(far, except_on=("A100*", "H200*")), GPU)
    assert not replaced_on(replace(far, except_on=("A100*", "B200*")), GPU)


def test_a_limit_that_names_no_call_misses_none() -> None:
    assert unmatched_cases([limit("time <= 1s")], ()) == ()
    assert not names_part(limit("time <= 1s"), ("bwd",))
    assert not names_part(limit("time(case=bwd) <= 1s"), ())
    assert names_part(limit("time(case=b*) <= 1s"), ("fwd", "bwd"))


NODES = ("t.py::test_a[4]", "t.py::test_b")


def test_brackets_stand_for_themselves() -> None:
    assert matches_pattern("t.py::test_a[x]", "*::test_a[x]")
    assert not matches_pattern("t.py::test_ax", "*::test_a[x]")


def test_a_table_that_one_test_answers_to_is_matched() -> None:
    one, all_of_them, none = (ConfigPattern(pattern=text) for text in ("*_b", "t.py::*", "*_c"))
    assert unmatched([one, all_of_them, none], NODES) == [none]
    assert unmatched([one, all_of_them], []) == [one, all_of_them]


GEMM = CaseKey(nodeid="tests/gpu/test_gemm.py::TestSquare::test_gemm[4096-bf16]", name="fwd")
OTHER = CaseKey(nodeid="tests/cpu/test_norm.py::test_norm")


@pytest.mark.parametrize(
    "name",
    [
        *("tests/gpu/test_gemm.py", "tests", "tests/gpu", "tests/gpu/", "tests\\gpu", " tests/gpu "),
        *(GEMM.nodeid, str(GEMM), "tests/gpu/test_gemm.py::TestSquare::test_gemm", f" {GEMM.nodeid} "),
        *("./tests/gpu/test_gemm.py", "./tests/gpu/", f"./{GEMM.nodeid}", ".\\tests\\gpu"),
        *("TestSquare::test_gemm[4096-bf16]", "TestSquare::test_gemm"),
    ],
)
def test_what_names_a_case(name: str) -> None:
    assert named([name])(GEMM)
    assert not named([name])(OTHER) or name.strip() == "tests"
    assert named(["nobody", name])(GEMM)


@pytest.mark.parametrize("name", ["tests/g", "test_gem", "gpu", "tests/gpu/test_gemm.py::TestSquare", "tests\\gpu::x"])
def test_what_names_none(name: str) -> None:
    assert not named([name])(GEMM)
    assert not named([])(GEMM)


def test_of_several_names_one_is_enough() -> None:
    for pick in (named, explicit_selection):
        assert pick([GEMM.nodeid, OTHER.nodeid])(GEMM)
        assert pick([GEMM.nodeid, OTHER.nodeid])(OTHER)
        assert not pick([OTHER.nodeid])(GEMM)


def test_a_backslash_in_a_parameter_is_its_own() -> None:
    odd = CaseKey(nodeid="tests/test_a.py::test_a[x\\d]")
    assert named(["tests/test_a.py::test_a[x\\d]"])(odd)
    assert not named(["tests/test_a.py::test_a[x/d]"])(odd)


@pytest.mark.parametrize(
    ("expression", "gemm", "norm"),
    [
        ("gemm", True, False),
        ("GEMM and BF16", True, False),
        ("gemm and fp16", False, False),
        ("gemm or norm", True, True),
        ("not gemm", False, True),
        ("not not gemm", True, False),
        ("(gemm)", True, False),
        ("not (gemm or nothing)", False, True),
        ("gemm and (fp16 or bf16) and square", True, False),
        ("nothing or gemm and not fp16", True, False),
        ("nothing or neither or norm", False, True),
    ],
)
def test_expressions(expression: str, gemm: bool, norm: bool) -> None:
    selects = matching(expression)
    assert (selects(GEMM), selects(OTHER)) == (gemm, norm)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "it ends where a name is expected"),
        ("gemm and", "it ends where a name is expected"),
        ("not", "it ends where a name is expected"),
        ("(gemm", "a bracket is not closed"),
        ("(gemm norm", "a bracket is not closed"),
        ("gemm)", "')' is not expected"),
        ("gemm norm", "'norm' is not expected"),
        ("or gemm", "'or' is not expected"),
        ("and", "'and' is not expected"),
        ("()", "')' is not expected"),
    ],
)
def test_what_is_no_expression(expression: str, message: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        matching(expression)
    assert caught.value.what == f"-k '{expression}': {message}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("peak_memory <= 1MB", ("peak_memory",)),
        ("change(peak_memory) <= 1%", ("peak_memory",)),
        ("compile_time(case=peak) < 1 s", ("compile_time",)),
        ("time <= 1ms", ()),
        ("time(q=99%) <= 1ms", ("q=99%",)),
        ("time(stat=min) <= 1ms", ()),
        ("my_peak_memory <= 3", ()),
    ],
)
def test_limits_ask_for_figures_in_any_sentence(text, names) -> None:
    assert asked_figures([text]) == names


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("time(q=99%) <= 1ms", (("q", "99%"),)),
        ("time(q=0.99) <= 1ms", (("q", "99%"),)),
        ("time(case=fwd, q=99.90 %) <= 1ms", (("case", "fwd"), ("q", "99.9%"))),
        ("time(stat=min) <= 1ms", (("stat", "min"),)),
    ],
)
def test_a_quantile_has_one_writing(text, labels) -> None:
    assert limit(text).labels == labels
    assert tails_in([text]) == (labels[-1:],)


@pytest.mark.parametrize("scope", ["q=0%", "q=100%", "q=fast", "q=99", "stat=median", "q=99%, stat=min"])
def test_what_is_no_quantile_is_refused(scope) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(f"time({scope}) <= 1ms")
    assert caught.value.code.name == "limit-scope"


def test_a_scope_of_this_name_of_another_metric_is_its_own() -> None:
    kinds = {**KINDS, "latency": replace(KINDS["ncu"], name="latency", scopes=("q",))}
    assert parse_limit("latency(q=fast) <= 1", kinds=kinds).labels == (("q", "fast"),)


@pytest.mark.parametrize(
    ("text", "tails"),
    [
        ("change(time(q=99%)) <= 5%", ((("q", "99%"),),)),
        ("time <= 1ms", ()),
        ("time(case=fwd) <= 1ms", ()),
        ("launch_time(q=99%) <= 1ms", ()),
    ],
)
def test_quantiles_are_known_within_other_words(text, tails) -> None:
    assert tails_in([text]) == tails


@pytest.mark.parametrize(
    ("names", "shared"), [(("a", "b"), ""), (("a", "b", "b"), "b"), (("a", "a", "a"), "a"), ((), "")]
)
def test_a_name_that_several_benchmarks_have(names: tuple[str, ...], shared: str) -> None:
    metrics = [Metric(name="time", value=1.0, dimension=Dimension.TIME, labels=(("case", name),)) for name in names]
    assert name_of_several(metrics) == shared
