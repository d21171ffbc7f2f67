"""Reports of kernels on the command line, from a page that any machine reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Place
from tests.kernels import ARTIFACTS, CUBINS
from tests.reports import case, run

PAGE = ARTIFACTS / "ncu_stages.csv"
SLOWER = "slower.csv"


@pytest.fixture
def project(place: Place) -> Place:
    (place.root / SLOWER).write_text(PAGE.read_text().replace('"412.30","168"', '"500.00","172"'))
    place.record(run(case("test_k", 1e6, 1e6)))
    return place


def test_the_work_of_the_call_gives_the_figures_of_the_run(project: Place) -> None:
    stated = ("--set", "flops=200GFLOP", "--set", "bytes=600MB", "--set", "dtype=bf16", "--set", "items=4096 tokens")
    done = project.perfgate("inspect", PAGE, "--view", "report", *stated, "--device", "H100 SXM")
    assert done.code == 0, done.err
    assert "- Throughput: 8.073 Mtokens/s" in done.out
    assert "- MFU: 39.8 %" in done.out
    assert "- % of SOL: 39.8 % (room for 2.51 x)" in done.out
    assert "Bandwidth of unique bytes: 1.182 TB/s" in done.out


def test_a_report_against_an_earlier_one(project: Place) -> None:
    done = project.perfgate("inspect", SLOWER, "--set", f"baseline={PAGE}", "--view", "contract")
    assert "vs Baseline: stage1" in done.out
    assert "+21.3 %" in done.out
    assert "comparison" in project.perfgate("inspect", SLOWER, "--set", f"baseline={PAGE}", "--view", "list").out
    assert "comparison" not in project.perfgate("inspect", SLOWER, "--view", "list").out


def test_the_log_says_what_changed_in_the_kernels(project: Place) -> None:
    words = ("devlog", "--file", "LOG.md", "--version", "v2", "--capture", SLOWER, "--before", PAGE)
    assert project.perfgate(*words).code == 0
    text = Path("LOG.md").read_text(encoding="utf-8")
    assert "### Kernels\n\n#### stage1\n\n- Bottleneck: compute-bound" in text
    assert "| registers | 168 | 172 | +2.4 % |" in text
    assert text.index("### Kernels") < text.index("**Issues**")
    assert project.perfgate(*words).code == 0
    assert Path("LOG.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", PAGE, "--set", "baseline=gone.csv"], "baseline=gone.csv: there is no such file"),
        (["inspect", PAGE, "--set", "flops=many"], "flops=many cannot be read"),
        (["inspect", PAGE, "--set", "flops=3GB"], "a number with a unit: FLOP"),
        (["inspect", PAGE, "--set", "items=a lot"], "items='8192 tokens'"),
        (["inspect", PAGE, "--set", "dtype=huge"], "dtype=huge is no known type"),
        (["inspect", PAGE, "--device", "Abacus"], "device=Abacus is not one device"),
        (["inspect", PAGE, "--device", "A100"], "A100-SXM4-40GB, A100-SXM4-80GB"),
        (["inspect", PAGE, "--code", "out"], "has no code to write"),
        (["devlog", "--capture", "gone.ncu-rep"], "there is no such file"),
        (["check", PAGE, "ncu(sm__no_such_metric.sum) >= 1"], "collect it with --metrics sm__no_such_metric.sum"),
        (["check", PAGE, "executed(FFMA) >= 1"], "--section InstructionStats"),
        (["check", PAGE, "l1_hit >= 1%"], "--section MemoryWorkloadAnalysis"),
        (["inspect", CUBINS / "copy.sm_86.cubin", "--set", "time=3"], "time=3 cannot be read"),
        (["inspect", "-"], "write it into a file first"),
    ],
)
def test_what_is_asked_wrongly_or_was_not_collected_says_how(project: Place, words: list, message: str) -> None:
    done = project.perfgate(*words)
    assert done.code not in {0, 1}
    assert message in done.err + done.out
    assert "Traceback" not in done.err


def test_a_limit_on_a_thousand_launches_shows_the_worst_and_counts_the_rest(project: Place) -> None:
    head = "Kind,Agent_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp"
    sizes = [f"{kind}_Size_{axis}" for kind in ("Workgroup", "Grid") for axis in "XYZ"]
    rows = [f"KERNEL_DISPATCH,Agent 1,{n},k,5,{1000 * n + 5},64,1,1,64,1,1" for n in range(1, 1005)]
    (project.root / "trace.csv").write_text("\n".join([",".join([head, *sizes]), *rows, ""]), encoding="utf-8")
    done = project.perfgate("check", "trace.csv", "duration <= 500us")
    assert [line.split()[0] for line in done.out.splitlines()[2:-3]] == ["BROKEN"] * 20 + ["PASSED"] * 3
    assert "launch=1003) is 1.004 ms" in done.out.splitlines()[2]
    assert done.out.splitlines()[-3:] == [
        "BROKEN        484 more under duration <= 500us, none worse (--json)",
        "PASSED        497 more under duration <= 500us, none worse (--json)",
        "504 broken, 500 passed",
    ]
