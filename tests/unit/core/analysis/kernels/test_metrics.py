"""Metrics of kernels as limits find them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.kernels.metrics import (
    metrics_of,
    requested_launches,
    requested_metrics,
    requested_opcodes,
)
from pytest_perfgate.core.metric_kinds import KERNEL_KINDS as KINDS
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.profiles import Launch, Resources
from tests.launches import SM, compiled, launch

STALLS = {
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 3.0,
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio": 1.0,
}
ALL = "smsp__average_warp_latency_per_inst_issued.ratio"
REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "selected",
    "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip


def number(metrics: MetricSet, name: str, **scope: str) -> float:
    (metric,) = metrics.find(name, tuple(scope.items()))
    return metric.value


def test_what_was_executed_counts_to_zero_and_stalls_have_their_share() -> None:
    metrics = metrics_of([launch(counters={**STALLS, ALL: 4.0}, executed={"FFMA": 8.0, "LDG.E": 4.0})], "ncu")
    assert number(metrics, "executed", opcode="FFMA") == 8
    assert number(metrics, "executed", opcode="LDG") == 4
    assert number(metrics, "executed", opcode="HMMA") == 0
    assert number(metrics, "stall", reason="long_scoreboard") == 0.75
    assert number(metrics, "ncu", metric="gpu__time_duration.sum") == 4e5
    assert metrics.missing("executed") is None


def test_a_stall_is_a_share_of_all_reasons_or_not_collected() -> None:
    some = metrics_of([launch(counters=STALLS)], "ncu")
    assert some.find("stall") == ()
    assert some.missing("stall").why == "2 of at least 18 reasons were collected, and a share is of all of them"
    assert "--section WarpStateStats" in some.missing("stall").fix
    summed = metrics_of([launch(counters={**STALLS, ALL: 12.0})], "ncu")
    assert number(summed, "stall", reason="long_scoreboard") == 0.25
    names = (f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in REASONS)
    whole = metrics_of([launch(counters={name: 2.0 for name in names})], "ncu")
    assert number(whole, "stall", reason="wait") == pytest.approx(1 / 18)
    nothing = metrics_of([launch()], "ncu")
    assert nothing.missing("stall").why == "not collected"


def opcodes_of(*opcodes: str) -> tuple:
    return requested_opcodes({"limits": "\n".join(f"count({opcode}) == 0" for opcode in opcodes)})


def test_modifiers_may_be_a_scope_of_their_own() -> None:
    metrics = metrics_of([compiled("copy_wide")], "cubin", opcodes_of("LDG, modifiers=E.128", "LDG.E.128, kernel=k"))
    for scope in (
        {"opcode": "LDG", "modifiers": "E.128"},
        {"opcode": "LDG.E.128", "modifiers": "E.128"},
        {"opcode": "LDG.E.128"},
    ):
        assert number(metrics, "count", **scope) == 1
    assert len(metrics.find("count", (("opcode", "LDG"),))) == 1


def test_instructions_that_limits_name_are_counted_with_their_modifiers_and_when_they_do_not_occur() -> None:
    metrics = metrics_of(
        [compiled("copy_wide")], "cubin", opcodes_of("LDG.E.128", "LDG.128", "I2F", "HGMMA", "IF2", "LDG.E.182")
    )
    assert number(metrics, "count", opcode="LDG.E.128") == number(metrics, "count", opcode="LDG.128") == 1
    assert number(metrics, "count", opcode="I2F") == 0
    assert metrics.find("count", (("opcode", "HGMMA"),))[0].value == 0
    assert metrics.find("count", (("opcode", "IF2"),)) == metrics.find("count", (("opcode", "LDG.E.182"),)) == ()
    assert {dict(m.labels)["opcode"] for m in metrics.find("count", (("opcode", "LDG*"),))} == {"LDG", "LDGSTS"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", set()), ("count(FFMA) >= 1", {"FFMA"}), ("count(LD*) >= 1", {"LDG", "LDS"}), ("registers <= 9", set())],
)
def test_a_library_counts_only_the_opcodes_that_limits_name(written: str, expected: set[str]) -> None:
    gemm = compiled("gemm_naive")
    every = metrics_of([gemm], "cubin")
    few = metrics_of([gemm], "cubin", requested_opcodes({"limits": written}), most=10)
    opcodes = {dict(m.labels)["opcode"] for m in few.find("count")}
    assert expected <= opcodes <= {dict(m.labels)["opcode"] for m in every.find("count")}
    assert bool(opcodes) == bool(expected)
    others = [m for m in every.metrics if m.name != "count"]
    assert [m for m in few.metrics if m.name != "count"] == others


def test_an_opcode_of_a_later_architecture_counts_to_zero_and_says_why() -> None:
    metrics = metrics_of([compiled("copy_wide")], "cubin", opcodes_of("UTCBAR"))
    assert metrics.find("count", (("opcode", "UTCBAR"),))[0].note == "sm_86 has no UTCBAR"


def test_executed_instructions_have_modifiers_where_the_profiler_counted_them() -> None:
    bare = metrics_of([launch(executed={"LDG": 4.0})], "ncu", opcodes_of("LDG.E.128", "I2F"))
    assert bare.find("executed", (("opcode", "LDG.E.128"),)) == ()
    assert "without their modifiers" in bare.missing("executed", (("opcode", "LDG.E.128"),)).why
    assert number(bare, "executed", opcode="I2F") == 0
    metrics = metrics_of([launch(executed={"LDG.E.128": 4.0, "LDG.E": 1.0})], "ncu", opcodes_of("LDG.E.128"))
    assert number(metrics, "executed", opcode="LDG.E.128") == 4


@pytest.mark.parametrize(
    ("executed", "barriers"), [({"BAR.SYNC.DEFER_BLOCKING": 4.0, "BAR.ARV": 1.0}, 4), ({"FFMA": 4.0}, 0)]
)
def test_executed_barriers_are_counted_by_their_modifier(executed: dict[str, float], barriers: int) -> None:
    assert number(metrics_of([launch(executed=executed)], "ncu"), "executed", opcode="BAR.SYNC") == barriers


def test_executed_barriers_without_modifiers_are_not_zero_but_unknown() -> None:
    metrics = metrics_of([launch(executed={"BAR": 4.0})], "ncu", opcodes_of("BAR.SYNC"))
    assert metrics.find("executed", (("opcode", "BAR.SYNC"),)) == ()
    assert "without their modifiers" in metrics.missing("executed", (("opcode", "BAR.SYNC"),)).why


def test_what_was_not_collected_names_the_section() -> None:
    metrics = metrics_of([launch()], "ncu")
    assert "InstructionStats" in metrics.missing("executed").fix
    assert "WarpStateStats" in metrics.missing("stall").fix
    assert "MemoryWorkloadAnalysis" in metrics.missing("l2_hit").fix


def test_a_kernel_without_a_loop_has_nothing_in_its_main_loop() -> None:
    looped = compiled("copy_wide")
    straight = replace(looped, loop=None, inner=looped.whole)
    metrics = metrics_of([straight, compiled("gemm_tiled")], "cubin", opcodes_of("LDG.E"))
    for name, more in (("count", {"opcode": "LDG"}), ("count", {"opcode": "LDG.E"}), ("stall_cycles", {})):
        scope = {"kernel": "copy_wide", "loop": "main", **more}
        assert number(metrics, name, **scope) == 0
        assert metrics.find(name, tuple(scope.items()))[0].note == "the kernel has no loop"
        assert number(metrics, name, **{**scope, "kernel": "gemm_tiled"}) > 0


def test_control_words_are_summed_in_the_kernel_and_in_its_main_loop() -> None:
    tiled = compiled("gemm_tiled")
    metrics = metrics_of([tiled], "cubin")
    assert number(metrics, "stall_cycles", loop="main") < number(metrics, "stall_cycles")
    assert 0 < number(metrics, "barrier_waits", loop="main") < number(metrics, "barrier_waits")
    bare = replace(tiled, facts=replace(tiled.facts, code=replace(tiled.facts.code, controls=())))
    assert metrics_of([bare], "cubin").find("stall_cycles") == ()


@pytest.mark.parametrize(
    ("name", "metric", "why"),
    [
        ("copy_wide", "compute_load_ratio", "no compute"),
        ("gemm_tiled", "occupancy_limit", "the launch is not known"),
    ],
)
def test_why_there_is_no_figure(name: str, metric: str, why: str) -> None:
    metrics = metrics_of([compiled(name)], "cubin")
    assert why in metrics.missing(metric).why


def test_a_whole_tile_is_no_ratio_and_bulk_copies_have_no_width() -> None:
    hopper = metrics_of([compiled("gemm_wgmma", "sm_90a", launch=None)], "cubin")
    assert hopper.missing("compute_load_ratio").why == "one HGMMA multiplies a whole tile"
    assert "threads=128" in hopper.missing("occupancy_limit").fix


def test_an_architecture_without_limits_says_so() -> None:
    strange = replace(compiled("copy_wide", launch=Launch(block=(64, 1, 1))), occupancy=None)
    assert "the catalogue has no limits of sm_86" in metrics_of([strange], "cubin").missing("occupancy_limit").why


def test_launches_of_one_kernel_are_numbered_and_other_makers_counters_keep_their_name() -> None:
    twice = metrics_of([launch(), launch()], "ncu")
    assert {dict(m.labels)["launch"] for m in twice.find("duration")} == {"0", "1"}
    amd = launch()
    metrics = metrics_of([replace(amd, facts=replace(amd.facts, arch="gfx942"))], "rocprof")
    assert number(metrics, "rocprof", counter="gpu__time_duration.sum") == 4e5


def test_no_local_instruction_is_no_spill_and_some_are_no_bytes() -> None:
    (none,) = metrics_of([launch(executed={"FFMA": 8.0})], "ncu").find("spills")
    assert (none.value, none.note) == (0.0, "no LDL or STL was executed")
    touches = {"sass__inst_executed_local_loads": 0.0, "sass__inst_executed_local_stores": 0.0}
    (counted,) = metrics_of([launch(counters=touches)], "ncu").find("spills")
    assert (counted.value, counted.note.count("is 0")) == (0.0, 2)
    half = metrics_of([launch(counters=dict(list(touches.items())[:1]))], "ncu")
    instructions = {"sass__inst_executed_register_spilling_mem_local": 5e6}
    some = metrics_of([launch(counters=instructions, executed={"LDL": 5e6})], "ncu")
    assert half.find("spills") == some.find("spills") == (), "instructions are no bytes"
    assert "5,000,000 LDL and STL were executed" in some.missing("spills").why
    for metrics in (half, some):
        assert "--metrics launch__local_mem_per_thread" in metrics.missing("spills").fix


def test_the_cliff_is_where_only_one_block_fits_however_many_fit_now() -> None:
    many = launch(resources=Resources(registers=32, shared=40 * 1024, source="ncu"))
    assert many.occupancy is not None
    assert many.occupancy.blocks > 2
    assert many.sm is not None
    (distance,) = metrics_of([many], "ncu").find("cliff_distance")
    assert distance.value == many.sm.smem_bytes // 2 - many.sm.smem_reserved - 40 * 1024
    assert "until only one block fits" in next(kind.doc for kind in KINDS if kind.name == "cliff_distance")


def test_the_suffix_of_an_architecture_changes_no_limit_of_its_multiprocessor() -> None:
    limits = {arch: sm for arch, sm in SM.items() if not arch.endswith("a")}
    plain, suffixed = (
        requested_metrics(
            [launch()], requested_launches({"limits": f"occupancy_limit(arch={arch}, threads=256)"}), limits
        ).metrics
        for arch in ("sm_90", "sm_90a")
    )
    assert [m.value for m in plain] == [m.value for m in suffixed]
    assert dict(suffixed[0].labels)["arch"] == "sm_90a"
    assert "compiled for" not in suffixed[0].note


def test_an_executed_instruction_that_is_always_counted_stands_there_once() -> None:
    metrics = metrics_of([launch(executed={"FFMA": 8.0})], "ncu", opcodes_of("HMMA", "LDL", "UTCHMMA"))
    assert [number(metrics, "executed", opcode=name) for name in ("HMMA", "LDL", "UTCHMMA")] == [0, 0, 0]
    assert "has no UTCHMMA" in metrics.find("executed", (("opcode", "UTCHMMA"),))[0].note


def test_kernels_of_one_name_in_two_files_say_which_file_is_theirs() -> None:
    one = launch()
    first, second = (replace(one, facts=replace(one.facts, source=file)) for file in ("a.ncu-rep", "b.ncu-rep"))
    durations = metrics_of([first, second], "ncu").find("duration")
    assert [m.note.rpartition("of ")[2] for m in durations] == ["a.ncu-rep", "b.ncu-rep"]
    assert "of a" not in metrics_of([first, first], "ncu").find("duration")[0].note


def test_of_many_launches_what_none_has_is_absent_once() -> None:
    counted, plain = launch(counters={"MfmaUtil": 4.0}), launch()
    named = [replace(plain, numbers={"duration": 1.0}), replace(counted, numbers={"duration": 1.0, "l2_hit": 0.5})]
    few, many = metrics_of(named, "rocprof"), metrics_of(named, "rocprof", most=1)
    assert few.metrics == many.metrics
    assert len(few.absences("stall")) == 2
    assert [absent.labels for absent in many.absences("stall")] == [()]
    assert [len(one.absences("l2_hit")) for one in (few, many)] == [1, 1]
    assert few.absences("l2_hit") == many.absences("l2_hit")
