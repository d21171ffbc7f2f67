"""Tests of adapters/readers/ncu_report."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_csv import parse_csv
from pytest_perfgate.adapters.readers.ncu_labels import scaled
from pytest_perfgate.adapters.readers.ncu_report import (
    code_lines,
    executed_opcodes,
    plain_text,
    read_ncu,
    rule_finding,
    source_texts,
)
from pytest_perfgate.app.inspections.cubin import limits_by_arch
from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.metrics import metrics_of
from pytest_perfgate.model.errors import PerfgateError
from tests.corpus import corpus

REPORTS = ("divergence_gtx1660ti", "matmul_h100", "sgemm_ladder_a10g")
LIMITS = limits_by_arch(DeviceCatalogue())


def report(name: str) -> Path:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    return corpus(f"ncu/{name}.ncu-rep")


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_occupancy_equals_what_the_report_says(name: str) -> None:
    for facts in read_ncu([report(name)]):
        occupancy = diagnose(facts, facts.name, LIMITS[facts.arch]).occupancy
        stated = {
            n: facts.counters[f"launch__occupancy_limit_{n}"].value
            for n in ("registers", "shared_mem", "warps", "blocks")
        }
        assert dict(occupancy.limits) == {
            "registers": stated["registers"], "shared memory": stated["shared_mem"],
            "warps": stated["warps"], "blocks": stated["blocks"],
        }  # fmt: skip
        assert occupancy.warps == facts.counters["sm__maximum_warps_avg_per_active_cycle"].value
        assert occupancy.fraction * 100 == pytest.approx(facts.counters["sm__maximum_warps_per_active_cycle_pct"].value)


@pytest.mark.corpus
def test_the_ladder_is_ranked_as_the_times_say_and_nothing_is_called_healthy() -> None:
    diagnoses = [diagnose(k, k.name, LIMITS[k.arch]) for k in read_ncu([report("sgemm_ladder_a10g")])]
    ranked = sorted(diagnoses, key=lambda d: -d.numbers["duration"])
    assert [d.name.split("<")[0].removeprefix("void ") for d in ranked] == [
        "one_blocktiling", "two_blocktiling", "vectorized_blocktiling", "warptiling",
    ]  # fmt: skip
    assert [d.classification.bottleneck for d in ranked] == [Bottleneck.LATENCY] * 4
    compute = [d.pipe[1] for d in ranked]
    assert compute == sorted(compute)
    assert "18.8 %" in ranked[0].classification.sentence
    assert "load-store 64.8 %" in ranked[0].classification.sentence
    assert ranked[0].advice[0].title == "Fewer trips through L1 and shared memory"
    assert all(d.classification.evidence for d in ranked)


@pytest.mark.corpus
def test_the_rules_of_the_profiler_come_as_findings_with_their_gain() -> None:
    (facts,) = read_ncu([report("matmul_h100")])
    assert facts.notes["profiler"] == "ncu 2023.2.2"
    gains = {f.title: f for f in facts.findings if f.gain}
    assert gains["L2 Load Access Pattern"].gain.high == pytest.approx(0.09743893959530284)
    assert "local estimate" in gains["L2 Load Access Pattern"].doubt
    assert not any("@" in f.detail for f in facts.findings)
    assert facts.duration == 51930592.0


@pytest.mark.corpus
def test_a_report_cut_short_anywhere_is_an_error_and_stays_as_it_was(tmp_path: Path) -> None:
    data = report("sgemm_ladder_a10g").read_bytes()
    cut = tmp_path / "cut.ncu-rep"
    for end in (*range(9), *(len(data) * part // 50 for part in range(1, 50)), len(data) - 1):
        cut.write_bytes(data[:end])
        with pytest.raises(PerfgateError) as caught:
            read_ncu([cut])
        assert caught.value.code.name == "ncu-report"
        assert cut.read_bytes() == data[:end]


@pytest.mark.corpus
def test_the_page_of_a_real_run_reads_with_its_separators() -> None:
    (facts,) = read_ncu([corpus("ncu/copy_blocked.csv")])
    assert facts.arch == "sm_75"
    assert facts.launch.threads == 256
    assert facts.launch.grid == (1024, 1, 1)
    assert facts.resources.registers == 32
    assert facts.duration == pytest.approx(21.06e6, rel=1e-3)
    assert facts.counters["dram__throughput.avg.pct_of_peak_sustained_elapsed"].value == pytest.approx(61.8, abs=0.1)
    occupancy = diagnose(facts, "copy", LIMITS["sm_75"]).occupancy
    assert [n for _, n in occupancy.limits] == [8, 16, 4, 16]


LONG = """==PROF== Connected to process 12
hello from the program
==PROF== Profiling "k" - 0: 0%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","p","h","k(float*)","1","7","(32, 8, 1)","(4, 5, 6)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","us","1,234.50"
"0","1","p","h","k(float*)","1","7","(32, 8, 1)","(4, 5, 6)","0","9.0","Command line profiler metrics","dram__bytes.sum","Mbyte","2.50"
"0","1","p","h","k(float*)","1","7","(32, 8, 1)","(4, 5, 6)","0","9.0","Command line profiler metrics","lts__t_sector_hit_rate.pct","%","nan"
"0","1","p","h","k(float*)","1","7","(32, 8, 1)","(4, 5, 6)","0","9.0","Command line profiler metrics","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","n/a"
"1","1","p","h","k(float*)","1","7","(32, 8, 1)","(4, 5, 6)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","us","nan"
==PROF== Disconnected from process 12
"""
WIDE = """==PROF== Connected
"ID","Kernel Name","Block Size","Grid Size","CC","gpu__time_duration.sum","launch__registers_per_thread","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","","","usecond","register/thread","%"
"0","k(float*)","(256, 1, 1)","(8, 1, 1)","8.6","12.5","40","33.3"
"""


def test_the_long_page_with_scaled_units_and_lines_around_it() -> None:
    first, second = parse_csv(LONG.encode(), "long.csv")
    assert first.duration == 1_234_500.0
    assert first.counters["dram__bytes.sum"].value == 2.5e6
    assert first.launch.threads == 256
    assert first.launch.blocks == 120
    assert second.duration is None, "a duration that is not a number is absent, never zero"
    diagnosis = diagnose(first, "k", LIMITS["sm_90"])
    assert "l2_hit" not in diagnosis.numbers
    assert "sm" not in diagnosis.numbers


def test_the_wide_page_with_its_line_of_units() -> None:
    (facts,) = parse_csv(WIDE.encode(), "wide.csv")
    assert facts.duration == 12_500.0
    assert facts.resources.registers == 40
    diagnosis = diagnose(facts, "k", LIMITS["sm_86"])
    assert diagnosis.numbers["occupancy"] == pytest.approx(0.333)
    assert diagnosis.occupancy is None, "shared memory that no page says is no zero"
    assert "shared memory of a block is not collected" in metrics_of([diagnosis], "ncu").missing("occupancy_limit").why


SHARED = WIDE.replace(
    'active"\n', 'active","launch__shared_mem_per_block_static","launch__shared_mem_per_block_dynamic"\n', 1
)
SHARED = SHARED.replace('"%"\n', '"%","Kbyte/block","byte/block"\n').replace('"33.3"\n', '"33.3","1.02","49,152"\n')


def test_the_wide_page_with_both_kinds_of_shared_memory_has_an_occupancy() -> None:
    (facts,) = parse_csv(SHARED.encode(), "wide.csv")
    diagnosis = diagnose(facts, "k", LIMITS["sm_86"])
    assert (diagnosis.numbers["smem"], diagnosis.occupancy.blocks) == (1020 + 49152, 2)


def test_a_block_of_more_threads_than_can_be_counted_is_no_launch() -> None:
    (facts,) = parse_csv(WIDE.replace("(256,", f"({'1' * 400},").encode(), "wide.csv")
    assert all(math.isfinite(counter.value) for counter in facts.counters.values())
    assert "launch__block_dim_x" not in facts.counters


def test_theoretical_occupancy_may_come_from_the_page_itself() -> None:
    name = "sm__warps_active.avg.pct_of_peak_sustained_active"
    (facts,) = parse_csv(WIDE.replace(name, "sm__maximum_warps_per_active_cycle_pct").encode(), "wide.csv")
    (metric,) = metrics_of([diagnose(facts, "k", LIMITS["sm_86"])], "ncu").find("occupancy_limit")
    assert (metric.value, metric.note) == (pytest.approx(0.333), "as ncu says")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00", LONG.partition('"0"')[0].encode()])
def test_what_is_no_page_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(PerfgateError) as caught:
        read_ncu([tmp_path / "x.csv"])
    assert caught.value.code.name in {"ncu-report", "ncu-nothing"}


@pytest.mark.parametrize(
    ("number", "unit", "there"),
    [
        (2.0, "Gbyte/s", (2e9, "byte/s")),
        (2.0, "Gbyte/second", (2e9, "byte/s")),
        (1.5, "ms", (1.5e6, "ns")),
        (1.5, "usecond", (1500.0, "ns")),
        (1.2, "cycle/nsecond", (1.2e9, "cycle/s")),
        (1.2, "Ghz", (1.2e9, "hz")),
        (3.0, "Kbyte/block", (3000.0, "byte/block")),
        (3.0, "Mrequest", (3e6, "request")),
        (3.0, "Kwavefronts", (3000.0, "wavefronts")),
        (9.0, "%", (9.0, "%")),
        (9.0, "", (9.0, "")),
        (9.0, "register/thread", (9.0, "register/thread")),
    ],
)
def test_units_are_brought_to_the_base(number: float, unit: str, there: tuple) -> None:
    value, base = scaled(number, unit)
    assert (pytest.approx(value), base) == there


def test_links_and_senseless_gains_are_left_out() -> None:
    assert plain_text("see @section:Occ:Occupancy@ and @url:Guide:https://x@") == "see Occupancy and Guide"
    for speedup in (float("nan"), float("inf"), -1.0, 1e300):
        assert rule_finding(("r", ""), "m", ("", None), speedup).gain is None
    assert rule_finding(("r", "t"), "m", ("", None), 12.0).trigger == "rule=r"


class Instances:
    """A metric with a value for each address or name."""

    def __init__(self, values: dict) -> None:
        self._values = list(values.items())

    def num_instances(self) -> int:
        return len(self._values)

    def has_correlation_ids(self) -> bool:
        return True

    def correlation_ids(self) -> SimpleNamespace:
        name = lambda at: self._values[at][0]  # noqa: E731
        return SimpleNamespace(value=name, as_uint64=name)

    def value(self, at: int) -> float:
        return self._values[at][1]

    as_double = value


class Action:
    """One launch."""

    def __init__(self, **metrics: dict) -> None:
        self._metrics = {name: Instances(values) for name, values in metrics.items()}

    def metric_names(self) -> list[str]:
        return list(self._metrics)

    def metric_by_name(self, name: str) -> Instances | None:
        return self._metrics.get(name)

    def sass_by_pc(self, address: int) -> str | None:
        return {0x1000: " LDG.E R2, [R4] "}.get(address)

    def ptx_by_pc(self, address: int) -> str:
        return "ld.global" if address == 0x1000 else ""

    def source_info(self, address: int) -> SimpleNamespace | None:
        return SimpleNamespace(file_name=lambda: "k.cu", line=lambda: 7) if address == 0x1000 else None

    def source_files(self) -> dict[str, str]:
        return {"k.cu": "text", "gone.cu": ""}


FULL = {
    "smsp__pcsamp_sample_count": {0x1000: 30, 0x1010: 10},
    "inst_executed": {0x1000: 8, 0x1010: 8, 0x1020: 8},
    "smsp__pcsamp_warps_issue_stalled_wait": {0x1000: 10, 0x1010: 3},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard": {0x1000: 19},
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": {0x1010: 90},
    "smsp__pcsamp_warps_issue_stalled_selected": {0x1010: 7},
    "sass__inst_executed_per_opcode": {"LDG": 8, "FFMA": 16},
}


def test_every_instruction_with_its_samples_and_what_it_waits_for() -> None:
    first, second, third = code_lines(Action(**FULL))
    assert (first.offset, first.text, first.place, first.ptx) == (0, "LDG.E R2, [R4]", "k.cu:7", "ld.global")
    assert (first.samples, first.executed, first.reason) == (30, 8, "long_scoreboard")
    assert (second.text, second.place, second.reason) == ("", "", "wait")
    assert (third.samples, third.reason, third.offset) == (0, "", 32)


def test_counts_without_samples_and_nothing_at_all() -> None:
    (line,) = code_lines(Action(inst_executed={16: 4}))
    assert line.samples is None
    assert code_lines(Action()) == ()
    assert code_lines(Action(inst_executed={})) == ()


def test_sources_and_opcodes() -> None:
    assert source_texts(Action()) == {"k.cu": "text"}
    assert executed_opcodes(Action(**FULL)) == {"LDG": 8, "FFMA": 16}
    assert executed_opcodes(Action()) == {}


@pytest.mark.corpus
def test_a_real_report_says_what_was_executed_and_where_it_waits() -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    (facts,) = read_ncu([corpus("ncu/matmul_h100.ncu-rep")])
    assert facts.executed["LDG.E"] == 2 * facts.executed["FFMA"]
    hottest = max(facts.lines, key=lambda line: line.samples)
    assert hottest.reason
    assert hottest.text == "", "this report's machine code was zeroed out"
