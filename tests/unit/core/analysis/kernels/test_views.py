"""Tests of core/analysis/kernels/views."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.decisions import NO_ROW
from pytest_perfgate.core.analysis.kernels.bottleneck import bottleneck_report
from pytest_perfgate.core.analysis.kernels.diagnosis import code_evidence, diagnose, findings_of
from pytest_perfgate.core.analysis.kernels.reports import (
    ContractInputs,
    _of_all,
    analysis_report,
    contract_data,
    contract_document,
    top_opportunities,
)
from pytest_perfgate.core.analysis.kernels.sections import (
    _note,
    cliff_section,
    mix_section,
    occupancy_section,
    ratio_section,
)
from pytest_perfgate.core.analysis.kernels.views import (
    HEALTH,
    bottleneck_view,
    changes_view,
    code_overview,
    counter_overview,
    counters_compared,
    health_view,
    mix_view,
    moved_table,
    paired,
    rules_view,
    slowdowns,
    unhealthy_metrics,
)
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Document, Finding, Interval, Table
from pytest_perfgate.model.profiles import KernelCode, KernelFacts, Launch, Resources
from tests.launches import BUSY, ELAPSED, compiled, launch

RULES = (
    Finding(title="Small", detail="d", trigger="rule=s", gain=Interval(low=0.0, high=0.05)),
    Finding(title="Large", detail="d", trigger="x=2", gain=Interval(low=0.0, high=0.4), doubt="a local estimate"),
    Finding(title="None", detail="d", trigger="rule=n"),
)


def text(section: object) -> str:
    return render_text(Document(title="", blocks=tuple(section)))  # type: ignore[arg-type]


def test_rules_of_the_profiler_the_largest_gain_first() -> None:
    output = render_text(rules_view([launch(findings=RULES), launch("quiet")], "T"))
    assert output.index("Large") < output.index("Small") < output.index("None")
    assert "(estimated 0-40 % gain; a local estimate)" in output
    assert "quiet" not in output
    assert "not collected" in render_text(rules_view([launch()], "T"))


def test_the_overview_of_counters_names_what_nobody_collected() -> None:
    output = render_text(counter_overview([launch("short", 1e3), launch("long", 9e5, findings=RULES)], "T"))
    assert output.index("long") < output.index("short")
    assert "Not collected for any of them: tc_util, occupancy, l2_hit, l1_hit, waves." in output
    assert "long: Large (estimated 0-40 % gain, of a part of the kernel): d\n" in output


def test_a_rule_of_the_profiler_is_its_first_sentence_beside_other_findings() -> None:
    detail = "Only 8.0 of 32 bytes are used (25.0%). Check the Source Counters section. It has the lines."
    rule = Finding(title="Uncoalesced", detail=detail, gain=Interval(low=0.0, high=0.7))
    for page in (counter_overview, analysis_report):
        text = " ".join(render_text(page([launch(findings=(rule,))], "T")).split())
        assert "k: Uncoalesced (estimated 0-70 % gain): Only 8.0 of 32 bytes are used (25.0%)." in text
        assert "Check the Source" not in text
    assert "Check the Source" in render_text(rules_view([launch(findings=(rule,))], "T"))


def test_the_overview_of_code_and_its_mix() -> None:
    copy = compiled("copy_wide")
    page = render_text(code_overview([copy], "T"))
    assert "launch not known" in page
    assert not {"file", "occupancy limit", "limited by"} & set(page.split("---")[0].replace("  ", "\n").splitlines())
    assert "main, innermost" in render_text(mix_view([copy], "T"))
    assert "no machine code" in render_text(mix_view([launch()], "T"))


def test_kernels_of_several_files_name_their_file() -> None:
    copy = compiled("copy_wide")
    two = [replace(copy, facts=replace(copy.facts, source=f"{folder}/k.cubin")) for folder in ("old", "new")]
    page = render_text(code_overview(two, "T"), room=200)
    assert re.search(r"copy_wide +sm_\d+ +old/k.cubin ", page)
    assert re.search(r"copy_wide +sm_\d+ +new/k.cubin ", page)


def test_several_reports_are_one_document() -> None:
    assert bottleneck_view([launch()], "T").title == "Bottleneck report: k"
    both = bottleneck_view([launch(), launch("other")], "T")
    assert both.title == "T"
    assert [block.title for block in both.blocks] == [
        "Bottleneck report: k (sm_90)",
        "Bottleneck report: other (sm_90)",
    ]


def test_what_the_compiler_changed() -> None:
    wide, narrow = compiled("copy_wide"), compiled("copy_narrow")
    same = render_text(changes_view([wide], [wide], "T"))
    assert "the same machine code" in same
    code = wide.facts.code
    other = replace(wide, facts=replace(wide.facts, code=replace(code, operands=("R1", *code.operands[1:]), words=b"")))
    assert "the same instructions, with other operands" in render_text(changes_view([wide], [other], "T"))
    moved = render_text(changes_view([wide, narrow], [replace(narrow, name="copy_wide")], "T"))
    assert "loop: 16-byte loads" in moved
    assert "only in the first" in moved
    assert "Only in the second" in render_text(changes_view([wide], [wide, narrow], "T"))


def test_a_kernel_that_was_renamed_is_compared_where_no_other_is_left() -> None:
    wide, narrow = compiled("copy_wide"), compiled("copy_narrow")
    output = " ".join(render_text(changes_view([wide, narrow], [wide, replace(narrow, name="other")], "T")).split())
    assert "copy_narrow (sm_86), taken for other now: no other kernel is left on either side" in output
    assert output.count("the same machine code") == 2
    assert "nly in the" not in output
    two = render_text(changes_view([wide], [replace(narrow, name="a"), replace(narrow, name="b")], "T"))
    assert "only in the first" in two
    assert "Only in the second" in two


def test_a_small_carve_out_is_told_beside_what_could_be_configured() -> None:
    diagnosis = launch(counters={**BUSY, "launch__shared_mem_config_size": 16384.0})
    output = text(cliff_section(diagnosis))
    assert "shared memory alone: 32, one less when a block takes over 6.125 KiB; 3 in the 16 KiB that" in " ".join(
        output.split()
    )
    assert "5 KiB (1 KiB of it the driver's)" in text(occupancy_section(diagnosis))
    bare = launch(resources=Resources(registers=32, source="ncu"))
    assert "1 KiB, the driver's" in text(occupancy_section(bare))
    assert "configured" not in text(cliff_section(bare))


def test_a_kernel_of_which_nothing_ran_has_no_shares() -> None:
    assert "0 warp instructions" in text(mix_section(launch(executed={"HMMA": 0.0, "LDL": 0.0})))
    assert "0 warp instructions" in text(mix_section(launch(executed={"HMMA": 4.0, "LDL": -4.0})))


def test_the_lines_of_the_mix_add_up_to_the_kernel() -> None:
    diagnosis = compiled("gemm_tiled")
    (table,) = mix_section(diagnosis)
    assert sum(row[1] for row in table.rows) == diagnosis.whole.instructions
    assert sum(row[2] for row in table.rows) == diagnosis.inner.instructions


def test_what_was_asked_for_above_is_not_asked_for_again() -> None:
    output = " ".join(render_text(bottleneck_report(launch(device="NVIDIA H100 PCIe"))).split())
    assert "attained fraction (state the work as above and --set dtype=fp16)" in output
    assert output.count("--set flops=") == 1
    assert "--device" not in output


def test_occupancy_says_what_limits_or_what_is_missing() -> None:
    output = text(occupancy_section(launch()))
    assert "Limiting: registers" in output
    assert "of 64 (sufficient to hide latency)" in output
    possible = text(occupancy_section(launch(launch=None)))
    assert "64 registers a thread and 4 KiB of static shared memory decide this." in " ".join(possible.split())
    bounded = text(occupancy_section(launch(launch=None, most_threads=96)))
    assert "compiled for blocks of 96 threads at the most" in bounded
    assert "128" not in bounded.partition("decide")[0]
    assert "the registers of a thread are not known here" in text(
        occupancy_section(launch(launch=None, resources=None))
    )
    few = launch(resources=Resources(registers=255, shared=200 * 1024), launch=Launch(block=(64, 1, 1)))
    assert "insufficient: fewer than 8" in text(occupancy_section(few))
    over = launch(most_threads=128)
    assert "cannot start: compiled for 128 threads at the most" in " ".join(text(occupancy_section(over)).split())
    assert "A block more" not in text(occupancy_section(over))
    assert over.cliff is None
    none = launch(resources=Resources(registers=64, shared=300 * 1024))
    assert "cannot have" in text(occupancy_section(none))


@pytest.mark.parametrize(
    ("executed", "ratio"),
    [
        ({"FFMA": 200.0, "LDG.E": 100.0, "STS": 100.0}, "2 : 1 (low: cp.async pays)"),
        ({"FFMA": 200.0, "LDG.E": 100.0}, "2 : 1 (low: loads dominate, and no tile goes through shared memory"),
        ({"HMMA.16816": 600.0, "LDGSTS": 100.0}, "6 : 1 (medium: it uses cp.async; measure without)"),
        ({"HMMA.16816": 600.0, "LDG": 100.0}, "6 : 1 (medium: measure with and without cp.async)"),
        ({"HMMA.16816": 200.0, "LDGSTS": 100.0}, "2 : 1 (low: cp.async pays, and is in use)"),
        ({"FFMA": 900.0, "LDGSTS": 10.0}, "90 : 1 (high: cp.async, which it uses, does not pay)"),
        ({"FFMA": 900.0, "LDG": 10.0}, "90 : 1 (high"),
        ({"FFMA": 900.0}, "none (nothing is loaded)"),
        ({"HGMMA": 90.0, "UTMALDG": 2.0}, "none (bulk copies load whole tiles)"),
        ({"IADD3": 9.0, "LDG": 2.0}, "none (no compute)"),
    ],
)
def test_the_ratio_of_what_was_executed(executed: dict[str, float], ratio: str) -> None:
    diagnosis = launch(executed=executed)
    assert ratio in text(ratio_section(diagnosis))
    assert "warp instructions as the profiler counted them" in text(mix_section(diagnosis))


@pytest.mark.parametrize(("bulk", "words"), [(1, "none, 1 bulk copy"), (2, "none, 2 bulk copies")])
def test_bulk_copies_of_a_loop_are_counted(bulk: int, words: str) -> None:
    copies = ("UTMALDG",) * bulk
    code = KernelCode(opcodes=(*copies, "EXIT"), operands=("",) * (bulk + 1), predicates=("",) * (bulk + 1))
    diagnosis = diagnose(KernelFacts(name="k", arch="sm_90", code=code, resources=Resources(registers=32)), "k", None)
    assert words in text(ratio_section(diagnosis))


def test_without_code_and_counts_the_sections_say_how() -> None:
    assert "perfgate profile NODEID --mode cubin" in text(ratio_section(launch()))
    assert "needs the machine code as well" in text(mix_section(launch()))


def test_the_least_stall_of_hmma_is_noted_where_the_code_shows_it() -> None:
    bare = launch()
    ampere = replace(bare, facts=replace(bare.facts, arch="sm_86"))
    assert [_note("HMMA", ampere, stall) for stall in (8, 3)] == ["S08 is the hardware's minimum", ""]


def test_a_kernel_without_a_loop_and_one_with_local_memory() -> None:
    assert "Local memory in the main loop" in text(ratio_section(compiled("spilling")))
    assert "local memory: registers or arrays that did not fit" in text(mix_section(compiled("spilling")))
    assert "cp.async" not in text(mix_section(compiled("copy_wide")))


def test_the_cliff_in_every_position() -> None:
    def at(shared: int, registers: int = 32, threads: int = 128) -> str:
        diagnosis = launch(
            resources=Resources(registers=registers, shared=shared), launch=Launch(block=(threads, 1, 1))
        )
        return text(cliff_section(diagnosis))

    assert "Double buffering: no shared memory is used" in at(0)
    assert "Double buffering would leave" in at(8 * 1024)
    assert "Double buffering would cross the cliff" in at(100 * 1024)
    assert "above the cliff of" in at(150 * 1024)
    assert "Moot: registers alone allow one block only" in at(8 * 1024, registers=128, threads=512)
    assert "the cliff is at 113 KiB; what the launch adds is not known" in text(cliff_section(launch(launch=None)))
    assert "Shared memory a block: not collected." in text(cliff_section(launch(launch=None, resources=None)))


def test_the_report_of_a_launch_without_anything() -> None:
    bare = launch(time=None, counters={}, launch=None, resources=None)
    output = render_text(bottleneck_report(bare))
    assert "Not collected: problem, kernel time" in output
    assert "Nothing stands out in the code alone." in output


def test_findings_describe_the_longest_first_and_carry_their_kernel() -> None:
    findings = findings_of([launch("short", 1e3), launch("long", 9e5, findings=RULES)])
    assert findings[0].title == "long"
    assert "memory-bound: compute 21.0 % of its roof, memory 82.0 % of its roof" in findings[0].detail
    assert {f.scope for f in findings if f.advice} <= {"short", "long"}
    assert RULES[1] in findings


def test_code_is_described_where_no_counter_was_there() -> None:
    findings = findings_of([compiled("copy_wide"), compiled("spilling")])
    assert findings[0].title == "spilling"
    assert "bytes of local memory a thread" in findings[0].detail
    assert findings[1].title == "Avoid local memory"
    assert findings[1].scope == "spilling"
    assert findings_of([compiled("copy_wide")])[0].detail == "12 registers"
    many = findings_of([compiled("copy_wide")] * 4)
    assert many == (), "of several kernels only those with something to say are described"


def test_the_evidence_of_code() -> None:
    assert list(code_evidence(compiled("gemm_naive")))[-1].endswith("loads in the main loop")
    diagnosis = compiled("gemm_tiled", launch=Launch(block=(256, 1, 1)))
    assert "2 blocks and 16 warps/SM by registers" in list(code_evidence(diagnosis))
    impossible = compiled("gemm_tiled", launch=Launch(block=(2048, 1, 1)))
    assert any("cannot start" in part for part in code_evidence(impossible))
    assert list(code_evidence(launch(launch=None, resources=None))) == []


def test_the_analysis_report_weighs_by_time() -> None:
    both = [launch("a", 3e5, {f"sm__throughput{ELAPSED}": 20.0}), launch("b", 1e5, {f"sm__throughput{ELAPSED}": 60.0})]
    output = render_text(analysis_report(both, "T", extra=(("Throughput", "9 tokens/s"),)))
    assert "a (75 % of the time)" in output
    assert "Multiprocessor throughput, of its peak: 30 %" in output
    assert "Throughput: 9 tokens/s" in output
    assert "Memory bandwidth, of its" in output.partition("Not collected:")[2]


def test_the_analysis_report_of_code_says_what_the_code_shows() -> None:
    tiled = compiled("gemm_tiled", launch=Launch(block=(256, 1, 1)))
    output = " ".join(render_text(analysis_report([tiled], "T")).split())
    assert "gemm_tiled: class not collected; 123 registers, 2 blocks and 16 warps/SM by registers, 512 FFMA" in output
    assert "Not collected: Tensor-core utilisation; Memory bandwidth, of its peak" in output
    assert "Nothing stands out in the code alone" in output
    assert "no other advice applies" not in output


def test_launches_of_which_the_same_is_said_are_told_once() -> None:
    same = render_text(counter_overview([launch(), launch(), launch("bare", counters={})], "T"))
    assert same.count("memory-bound: compute") == 1
    assert "(2 launches)" in same
    assert "Not collected for 1 of them" in same
    bare = render_text(counter_overview([launch(counters={})], "T"))
    assert "Not collected for any of them: tc_util, " in bare
    assert "waves, class." in bare
    assert "Classes and their evidence" not in bare


def test_launches_of_one_name_are_paired_in_their_order() -> None:
    before, after = [launch("a", 1.0), launch("b"), launch("a", 2.0)], [launch("a", 3.0), launch("a", 4.0)]
    assert [(o.numbers["duration"], n.numbers["duration"]) for o, n in paired(before, after)] == [
        (1.0, 3.0),
        (2.0, 4.0),
    ]


def test_the_slowdown_of_each_pair() -> None:
    (slowdown,) = slowdowns([launch(time=4e5)], [launch(time=5e5)])
    assert (slowdown.value, slowdown.labels) == (pytest.approx(0.25), (("kernel", "k"),))
    assert list(slowdowns([launch(time=None)], [launch()])) == []


def test_what_moved_what_left_and_what_came() -> None:
    output = render_markdown(counters_compared([launch(), launch("gone")], [launch(time=3e5), launch("new")], "a -> b"))
    assert "| duration | 400 µs | 300 µs | -25.0 % |" in output
    assert "| class | memory | memory |  |" in output
    assert "Only in the first\n\n- gone" in output
    assert "Only in the second\n\n- new" in output
    first, second = ([launch(name, counters={}, time=time) for name in "ab"] for time in (4e5, 5e5))
    output = render_markdown(counters_compared(first, [second[0], launch("b", counters={}, time=9e5)], "a -> b"))
    assert output.index("## b") < output.index("## a"), "the largest change first"
    assert "class" not in output


def test_of_many_pairs_those_that_changed_most_have_tables_of_their_own() -> None:
    first = [launch(f"k{at}", counters={}, time=1e5) for at in range(45)]
    second = [launch(f"k{at}", counters={}, time=1e5 + at) for at in range(45)]
    document = counters_compared(first, second, "a -> b")
    assert [block.title for block in document.blocks] == [*(f"k{at}" for at in range(44, 24, -1)), "Other pairs"]
    *_, others = document.blocks
    assert (len({row[0] for row in others.rows}), others.limit, others.rows[0][:2]) == (25, 20, ("k24", "duration"))
    assert [block.title for block in counters_compared(first[:2], second[:2], "a -> b").blocks] == ["k1", "k0"]


def test_a_number_on_one_side_alone_has_no_change() -> None:
    more = launch(counters={**BUSY, f"sm__pipe_tensor_cycles_active{ELAPSED}": 40.0})
    rows = {row[0]: row[1:] for row in moved_table(launch(), more).rows}
    assert rows["tc_util"] == ("not collected", "40 %", "--")
    assert "l2_hit" not in rows


def test_the_contract_holds_the_baseline_where_there_is_one() -> None:
    output = render_markdown(
        contract_document([launch(time=3e5)], ContractInputs(version="v2", baseline=(launch(),))), level=2
    )
    assert output.startswith("## Profile: k v2\n")
    assert "### vs Baseline: k" in output
    assert "-25.0 %" in output
    assert "vs Baseline" not in render_markdown(contract_document([launch()]))


def test_the_contract_as_data_has_version_configuration_and_baseline() -> None:
    inputs = ContractInputs(version="v2", configuration={"parameters": "b=32"}, baseline=(launch(),))
    data = contract_data([launch(time=3e5)], inputs)
    assert data["version"] == "v2"
    assert data["configuration"]["b"] == "32"
    assert data["configuration"]["block"] == "256 x 1 x 1"
    assert [(row["previous"]["duration"], row["current"]["duration"]) for row in data["baseline"]] == [(4e5, 3e5)]
    bare = contract_data([launch()])
    assert (bare["version"], bare["baseline"], bare["configuration"]["device"]) == (None, [], None)


def test_opportunities_are_ranked_by_what_they_could_gain() -> None:
    own = Finding(title="Better locality in L2", trigger="class=memory")
    part = {"gain": Interval(low=0.0, high=0.99), "doubt": "a local estimate: of the part it concerns"}
    spread = Finding(title="A local estimate", trigger="rule", **part)
    large = Finding(title="One of the whole", trigger="rule", gain=Interval(low=0.0, high=0.3))
    diagnosis = replace(launch(), advice=(own,))
    diagnosis = replace(diagnosis, facts=replace(diagnosis.facts, findings=(spread, large)))
    assert [f.title for _, f in top_opportunities([diagnosis])] == [large.title, spread.title, own.title]
    nothing = replace(diagnosis, advice=(replace(own, trigger=NO_ROW),))
    assert top_opportunities([nothing])[0][1].title == large.title


WELL = {"tc_util": 0.7, "dram": 0.3, "occupancy": 0.3, "l2_hit": 0.9, "spills": 0.0, "waves": 2.0}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({}, []),
        ({"tc_util": 0.6}, ["tc_util", "dram"]),
        ({"tc_util": 0.1, "dram": 0.71}, []),
        ({"occupancy": 0.25}, ["occupancy"]),
        ({"l2_hit": 0.8}, ["l2_hit"]),
        ({"spills": 8.0}, ["spills"]),
        ({"waves": 1.0}, ["waves"]),
    ],
)
def test_each_row_at_its_bound(changed: dict[str, float], named: list[str]) -> None:
    assert [row.name for row, _ in unhealthy_metrics({**WELL, **changed})] == named


def test_what_was_not_collected_is_not_judged() -> None:
    assert list(unhealthy_metrics({})) == []
    assert [row.name for row, _ in unhealthy_metrics({"dram": 0.2})] == ["dram"]
    assert len(HEALTH) == 6


def test_the_view_the_report_and_the_contract_say_it() -> None:
    counters = {
        f"dram__throughput{ELAPSED}": 75.0,
        f"sm__throughput{ELAPSED}": 30.0,
        f"sm__pipe_tensor_cycles_active{ELAPSED}": 10.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 12.5,
    }
    ill = launch(counters=counters)
    page = render_text(health_view([ill], "T"))
    assert "registers or shared memory hold it down" in page
    assert "the other side binds" in page
    assert "healthy" in page
    assert "k: occupancy 12.5 % (healthy: over 25 %)" in render_text(analysis_report([ill], "T"))
    assert "occupancy 12.5 %" in render_text(contract_document([ill]))


@pytest.mark.parametrize(
    ("share", "mfu", "text"),
    [
        (1.0, 0.5, " Of the whole: at most 20 % more throughput, MFU 50 % to 60 %."),
        (0.6, None, " Of the whole: at most 11 % more throughput."),
        (None, 0.5, ""),
    ],
)
def test_a_gain_of_one_kernel_is_told_of_the_whole(share: float | None, mfu: float | None, text: str) -> None:
    faster = Finding(title="t", detail="", trigger="", gain=Interval(low=0.0, high=0.2))
    assert _of_all(faster, share, mfu) == text
    assert _of_all(replace(faster, gain=None), share, mfu) == ""


def test_a_table_of_means_is_added_up_by_its_calls() -> None:
    kernels = [launch("a", 1e3, {"Calls": 3.0}), launch("b", 5e3, {"Calls": 1.0})]
    by_name = next(block for block in counter_overview(kernels, "T").blocks if isinstance(block, Table))
    assert by_name.rows == (("b", 1, 5e3, 5e3, 0.625), ("a", 3, 3e3, 1e3, 0.375))


def test_launches_of_one_kernel_are_added_up_above_them() -> None:
    by_name, each = (
        block
        for block in counter_overview([launch("a", 1e3), launch("b", 5e3), launch("a", 3e3)], "T").blocks
        if isinstance(block, Table)
    )
    assert [row[:4] for row in by_name.rows] == [("b", 1, 5e3, 5e3), ("a", 2, 4e3, 2e3)]
    assert [row[0] for row in each.rows] == ["b", "a", "a"]
    assert 0 < each.limit <= 20, "a kernel that ran a thousand times has no thousand lines for a person"
    (alone,) = (
        block
        for block in counter_overview([launch("a", 1e3), launch("b", 5e3)], "T").blocks
        if isinstance(block, Table)
    )
    assert alone.limit == 0
