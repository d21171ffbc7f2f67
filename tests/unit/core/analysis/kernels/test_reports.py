"""Contract, analysis and log of kernels."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.reports import (
    MOST,
    ContractInputs,
    analysis_report,
    contract_data,
    contract_document,
    devlog_part,
    top_opportunities,
)
from pytest_perfgate.core.analysis.kernels.sections import cliff_section, occupancy_section
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Document, Finding, Interval
from pytest_perfgate.model.profiles import Launch
from tests.launches import BUSY, ELAPSED, SM, compiled, launch


def devlog(now: list, then: list) -> str:
    return render_markdown(devlog_part(now, then), level=3)


def test_the_first_version_says_what_it_is() -> None:
    text = devlog([launch()], [])
    assert text.startswith("### Kernels\n\n#### k\n\n- Bottleneck: memory-bound: compute 21.0 %")
    assert "| Metric | Value |" in text
    assert "| duration | 400 µs |" in text
    assert "Previous" not in text
    assert "New in this version" not in text


def test_a_later_version_says_what_moved() -> None:
    slower = launch(time=5e5, counters={f"sm__throughput{ELAPSED}": 81.0, f"dram__throughput{ELAPSED}": 30.0})
    text = devlog([slower, launch("new")], [launch(), launch("gone")])
    assert "- Bottleneck: compute-bound" in text
    assert "- Before: memory-bound" in text
    assert "| duration | 400 µs | 500 µs | +25.0 % |" in text
    assert "New in this version." in text
    assert "No longer there: gone." in text


def test_a_kernel_lists_its_unhealthy_figures() -> None:
    poor = launch(counters={"lts__t_sector_hit_rate.pct": 40.0, f"dram__throughput{ELAPSED}": 75.0})
    assert "- Unhealthy: l2_hit 40 % (healthy: over 80 %): little reuse" in devlog([poor], [])
    good = launch(counters={"lts__t_sector_hit_rate.pct": 90.0, f"dram__throughput{ELAPSED}": 75.0})
    assert "Unhealthy" not in devlog([good], [])


def test_the_mix_of_two_builds_the_largest_difference_first() -> None:
    narrow, wide = compiled("copy_narrow"), replace(compiled("copy_wide"), name="copy_narrow")
    text = devlog([wide], [narrow])
    assert "| registers | 10 | 12 | +20.0 % |" in text
    assert "loop: 16-byte loads" in text
    assert "The same machine code" in devlog([narrow], [narrow])


def test_more_changes_than_an_entry_shows_are_counted() -> None:
    other = replace(compiled("gemm_tiled"), name="k")
    text = devlog([other], [replace(compiled("gemm_naive"), name="k")])
    rows = text.partition("| Instructions |")[2].splitlines()
    assert len([row for row in rows if row.startswith("| ")]) == MOST
    assert "smaller changes are left out." in text


def test_code_that_differs_in_operands_alone_is_not_called_the_same() -> None:
    here = compiled("copy_wide")
    code = replace(here.facts.code, words=here.facts.code.words[:-1] + b"\1")
    there = replace(here, facts=replace(here.facts, code=code))
    assert "Other operands or another order" in devlog([there], [here])


def test_a_class_that_nobody_collected() -> None:
    assert "- Bottleneck: not collected" in devlog([compiled("copy_wide")], [])


def test_parameters_of_a_test_are_columns_and_a_problem_in_words_is_one() -> None:
    def heads(problem: str) -> list[str]:
        (table,) = contract_document([launch()], ContractInputs(configuration={"parameters": problem})).blocks[0].blocks
        return [column.name for column in table.columns][:3]

    assert heads("b=32, s=16, t=4096") == ["b", "s", "t"]
    assert heads("GEMM, M=N=K=4096")[0] == "parameters"


def test_the_key_issue_is_among_the_opportunities_whatever_it_gains() -> None:
    diagnosis = launch(counters={**dict.fromkeys(BUSY, 30.0), f"l1tex__lsuin_requests{ELAPSED}": 95.0})
    rules = tuple(Finding(title=f"rule {n}", gain=Interval(low=0.0, high=0.1 * n)) for n in range(1, 5))
    diagnosis = replace(diagnosis, facts=replace(diagnosis.facts, findings=rules))
    assert diagnosis.advice[0].gain is None
    assert [f.title for _, f in top_opportunities([diagnosis])] == ["rule 4", "rule 3", diagnosis.advice[0].title]
    assert contract_data([diagnosis])["opportunities"][-1]["gain"] is None


def test_opportunities_of_all_kernels_are_ranked_by_the_time_that_they_may_save() -> None:
    most = Finding(title="most", gain=Interval(low=0.0, high=0.5))
    long = launch("long", time=9e5, counters=dict.fromkeys(BUSY, 30.0))
    short = launch("short", time=1e5, counters=dict.fromkeys(BUSY, 30.0))
    with_rules = [
        replace(d, facts=replace(d.facts, findings=(replace(most, title=f"{d.name} {most.title}"),)))
        for d in (short, long)
    ]
    top = [(d.name, f.title) for d, f in top_opportunities(with_rules)]
    assert top == [("long", "long most"), ("short", "short most"), ("long", long.advice[0].title)]
    page = render_text(analysis_report(with_rules, "T"), 10_000)
    assert "The others: 1 latency-bound." in page
    assert f"1. long and 1 more kernel: {long.advice[0].title}" in page
    assert [o["kernel"] for o in contract_data(with_rules)["opportunities"]] == ["long", "short", "long"]


def test_few_blocks_and_not_registers_hold_occupancy_down() -> None:
    low = {**BUSY, "sm__warps_active.avg.pct_of_peak_sustained_active": 6.0}
    few = render_text(analysis_report([launch(counters={**low, "launch__waves_per_multiprocessor": 0.1})], "T"))
    many = render_text(analysis_report([launch(counters={**low, "launch__waves_per_multiprocessor": 3.0})], "T"))
    assert "registers or shared memory" not in " ".join(few.split())
    assert "registers or shared memory" in " ".join(many.split())


def test_no_tool_that_amd_lacks_is_advised() -> None:
    def titles(arch: str) -> list[str]:
        facts = replace(launch(counters=dict.fromkeys(BUSY, 30.0)).facts, arch=arch)
        return [finding.title for finding in diagnose(facts, "k", None).advice]

    assert "Collect the leading stall" in titles("sm_90")
    assert "Collect the leading stall" not in titles("gfx942")


def test_a_block_that_cannot_start_is_held_by_itself() -> None:
    facts = replace(launch(launch=Launch(block=(512, 1, 1))).facts, most_threads=256)
    diagnosis = diagnose(facts, "k", SM["sm_90"])
    page = render_text(Document(title="", blocks=(*occupancy_section(diagnosis), *cliff_section(diagnosis))))
    assert diagnosis.occupancy is not None
    assert diagnosis.occupancy.blocks == 0
    assert "Limiting: the block itself" in page
    assert "is not known" not in page


def test_launches_of_one_finding_share_a_sentence_with_a_name_of_a_line() -> None:
    name = f"void detail::trampoline_kernel<{'config, ' * 200}int>(int)"
    launches = [launch(name, counters={}, time=time) for time in (1e3, 2e3, 3e3)]
    (findings,) = (part for part in analysis_report(launches, "T").blocks if part.title == "Findings")
    (sentence,) = findings.blocks[0].items
    assert len(sentence) < 200
    assert sentence.startswith("void detail::trampoline_kernel<")
    assert "int>(int): class not collected" in sentence
