"""Static gates as limits see them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.cubin import read_cubins
from pytest_perfgate.app.inspections.cubin import Cubin, title_of
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Disassembly
from tests.kernels import CUBINS, disassembly

KINDS = by_name()


def committed(paths: Sequence[Path]) -> tuple[Disassembly, ...]:
    return tuple(disassembly(path.name) for path in paths)


CUBIN = Cubin(committed, DeviceCatalogue)


def outcome(files: str, limit: str) -> str:
    analysis = CUBIN.inspect([Path(name) for name in files.split()], {"limits": limit})
    outcomes = {verdict.outcome.value for verdict in judge_artifact(analysis, (parse_limit(limit, kinds=KINDS),))}
    return "broken" if "broken" in outcomes else " and ".join(sorted(outcomes))


@pytest.mark.parametrize(
    ("files", "limit", "expected"),
    [
        ("gemm_tiled.sm_86.cubin", "spills == 0", "passed"),
        ("spilling.sm_86.cubin", "spills == 0", "broken"),
        ("gemm_tiled.sm_86.cubin spilling.sm_86.cubin", "spills == 0", "broken"),
        ("gemm_tiled.sm_86.cubin spilling.sm_86.cubin", "spills(kernel=gemm_tiled) == 0", "passed"),
        ("gemm_tiled.sm_86.cubin", "registers <= 128", "passed"),
        ("gemm_tiled.sm_86.cubin", "registers <= 120", "broken"),
        ("attention_tile.sm_90.cubin", "count(HMMA) >= 64", "passed"),
        ("attention_tile.sm_90.cubin", "count(HGMMA) >= 1", "broken"),
        ("copy.sm_90.cubin", "count(MMA) >= 1", "broken"),
        ("attention_tile.sm_90.cubin", "count(HMMA, loop=main) >= 64", "passed"),
        ("copy.sm_90.cubin", "wide_loads(kernel=copy_wide) >= 100%", "passed"),
        ("copy.sm_90.cubin", "wide_loads >= 100%", "broken"),
        ("gemm_naive.sm_80.cubin", "compute_load_ratio >= 5", "broken"),
        ("above_cliff.sm_86.cubin", "cliff_distance >= 0 B", "broken"),
        ("above_cliff.sm_90.cubin", "cliff_distance >= 0 B", "passed"),
        ("above_cliff.sm_86.cubin", "occupancy_limit >= 10%", "broken"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit(arch=sm_90, threads=256) >= 25%", "passed"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit(arch=sm_90, threads=256) >= 26%", "broken"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit(arch=sm_90, threads=256, smem=200KiB) >= 25%", "broken"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit(arch=sm_75, threads=1024) >= 1%", "broken"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit(arch=sm_90, threads=512) >= 1%", "broken"),
        ("gemm_tiled.sm_90.cubin", "barrier_waits(loop=main) >= 1", "passed"),
        ("gemm_wgmma.sm_90a.cubin", "count(HGMMA) >= 1", "passed"),
        ("gemm_tcgen05.sm_100a.cubin", "count(UTCHMMA) >= 1", "passed"),
        ("gemm_wgmma.sm_90a.cubin", "occupancy_limit >= 25%", "passed"),
        ("copy.sm_90.cubin", "count(LDG.E.128, kernel=copy_wide) >= 1", "passed"),
        ("copy.sm_90.cubin", "count(LDG.128, kernel=copy_narrow) == 0", "passed"),
        ("copy.sm_90.cubin", "count(LDG.E.128) >= 1", "broken"),
        ("attention_tile.sm_90.cubin", "count(HMMA.16816, loop=main) >= 64", "passed"),
        ("copy.sm_80.cubin", "count(I2F) == 0", "passed"),
        ("copy.sm_80.cubin", "count(UTCBAR) == 0", "passed"),
        ("gemm_tiled.sm_90.cubin", "occupancy_limit >= 1%", "not measured"),
        ("above_cliff.sm_86.cubin spilling.sm_86.cubin", "occupancy_limit >= 1%", "not measured and passed"),
    ],
)
def test_limits_on_machine_code(files: str, limit: str, expected: str) -> None:
    assert outcome(files, limit) == expected


@pytest.mark.parametrize(
    ("limit", "what", "fix"),
    [
        ("count(IF2) == 0", "IF2 is not an opcode", "did you mean 'I2F'"),
        ("count(LDG.E.182) == 0", "LDG has no modifiers E.182", "did you mean 'LDG.E.128'?"),
        ("count(QQQQQQQQ) == 0", "QQQQQQQQ is not an opcode", "--view mix"),
        ("count(ZZ*) == 0", "no count matches", "there are:"),
        ("count(HMMA, loop=inner) == 0", "no count matches", "main"),
    ],
)
def test_an_instruction_that_does_not_exist_is_refused_with_the_nearest(limit: str, what: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        outcome("copy.sm_80.cubin", limit)
    assert caught.value.code.name == "limit-scope"
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_code_compiled_for_the_asked_architecture_answers_alone() -> None:
    limit = "occupancy_limit(arch=sm_90, threads=256) >= 25%"
    analysis = CUBIN.inspect([Path("gemm_tiled.sm_80.cubin"), Path("gemm_tiled.sm_90.cubin")], {"limits": limit})
    assert len(analysis.metrics.find("occupancy_limit", (("arch", "sm_90"), ("threads", "256")))) == 1
    other = CUBIN.inspect([Path("gemm_tiled.sm_80.cubin")], {"limits": limit})
    assert "as compiled for sm_80" in other.metrics.find("occupancy_limit")[0].note


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"threads": "many"}, "kernel-option"),
        ({"threads": "-1"}, "kernel-option"),
        ({"threads": "0"}, "kernel-option"),
        ({"build": "nvcc -O3"}, "kernel-option"),
        ({"baseline": "gone.cubin"}, "artifact-missing"),
        ({"threads": "128", "arch": "sm_999"}, "kernel-arch"),
        ({"limits": "occupancy_limit(arch=sm_1, threads=32) >= 1%"}, "kernel-arch"),
        ({"kernel": "nowhere"}, "kernel-unmatched"),
    ],
)
def test_what_is_asked_wrongly_is_said(options: dict[str, str], code: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        CUBIN.inspect([Path("copy.sm_90.cubin")], options)
    assert caught.value.code.name == code


def test_files_are_distinct_names_by_content(tmp_path: Path) -> None:
    real = CUBINS / "copy.sm_86.cubin"
    assert CUBIN.recognises(tmp_path / "noname", real.read_bytes()[:64])
    assert CUBIN.recognises(CUBINS, b"")
    assert not CUBIN.recognises(tmp_path, b"")
    assert CUBIN.recognises(tmp_path / "x", Path("/bin/sh").read_bytes()[:64]), "programs may hold a fatbin"
    assert CUBIN.recognises(tmp_path / "x.cubin", b"junk"), "to be told that it is none"


def test_the_difference_of_two_builds() -> None:
    analysis = CUBIN.compare([Path("attention_tile.sm_86.cubin")], [Path("attention_tile.sm_86.cubin")], {})
    assert analysis.metrics.find("registers")[0].value == 130


def test_another_architecture_is_shown_with_the_registers_of_the_one_compiled_for() -> None:
    analysis = CUBIN.inspect([Path("gemm_tiled.sm_90.cubin")], {"threads": "256", "arch": "sm_80"})
    shown = render_text(analysis.views["bottleneck"]())
    assert "occupancy on sm_80, registers as compiled for sm_90" in shown
    assert "164 KiB" in shown, "shared memory of that architecture, and no other"
    own = CUBIN.inspect([Path("gemm_tiled.sm_90.cubin")], {"threads": "256", "arch": "sm_90"})
    assert "228 KiB" in render_text(own.views["bottleneck"]())


def test_a_comparison_works_out_the_launches_that_limits_name() -> None:
    limit = "occupancy_limit(arch=sm_90, threads=256) >= 25%"
    files = [Path("gemm_tiled.sm_90.cubin")]
    analysis = CUBIN.compare(files, files, {"limits": limit})
    assert [v.outcome.value for v in judge_artifact(analysis, (parse_limit(limit, kinds=KINDS),))] == ["passed"]


@pytest.mark.parametrize(("dtype", "doubted"), [("fp32", False), ("int8", True), ("", False)])
def test_a_stated_type_that_the_code_does_not_compute_in_is_doubted(dtype: str, doubted: bool) -> None:
    stated = {"threads": "256", "time": "11.2ms", "flops": "137.4GFLOP", "bytes": "201MB", "device": "RTX 3070 Ti"}
    options = stated | ({"dtype": dtype} if dtype else {})
    shown = render_text(CUBIN.inspect([Path("gemm_tiled.sm_86.cubin")], options).views["bottleneck"]())
    assert ("Doubt: int8 is stated, but the main loop computes with FFMA (fp32)" in shown) is doubted


def bottleneck(name: str, **options: str) -> str:
    return render_text(CUBIN.inspect([Path(name)], options).views["bottleneck"](), 300)


def test_a_launch_that_cannot_start_is_the_first_sentence() -> None:
    page = bottleneck("attention_tile.sm_86.cubin", threads="128")
    cannot = "A block of 128 threads cannot start: compiled for 32 threads at the most (__launch_bounds__)"
    assert f"{cannot}. 130 registers, 64 HMMA for 128 loads in the main loop." in page
    assert f"- {cannot}" in page


def test_a_time_of_a_launch_that_cannot_start_is_invalid() -> None:
    stated = {"time": "1ms", "flops": "1GFLOP", "bytes": "1MB", "dtype": "fp16", "device": "GA104"}
    page = bottleneck("attention_tile.sm_86.cubin", threads="128", **stated)
    assert "Invalid: a block of 128 threads cannot start: compiled for 32 threads at the most" in page
    assert page.count("cannot start") == 4, "the first sentence, roofline, occupancy and cliff"
    assert "More warps" not in page


def test_shared_memory_of_a_launch_is_not_called_static() -> None:
    page = bottleneck("gemm_tiled.sm_86.cubin", threads="128", smem="100KiB")
    assert "A block cannot have 108.1 KiB of shared memory: 99 KiB at the most." in page
    assert "Static shared memory" not in page


def test_a_register_cap_for_a_kernel_that_spills_says_so() -> None:
    assert "what does not fit spills, as 624 bytes a thread do already" in bottleneck(
        "spilling.sm_86.cubin", threads="128"
    )
    assert "do already" not in bottleneck("gemm_tiled.sm_86.cubin", threads="128")


def test_advice_to_step_back_is_not_given_where_the_cliff_is_moot() -> None:
    assert "Step back" in bottleneck("above_cliff.sm_86.cubin", threads="128")
    assert "Step back" not in bottleneck("above_cliff.sm_86.cubin", threads="1024"), "warps allow one block anyway"


def test_a_finding_that_only_some_builds_have_names_them() -> None:
    files = [Path(f"above_cliff.{arch}.cubin") for arch in ("sm_80", "sm_86", "sm_90")]
    page = render_text(CUBIN.inspect(files, {}).views["overview"](), 300)
    assert "- above_cliff (sm_86): Step back from the shared-memory cliff." in page
    assert "- above_cliff: Sixteen-byte loads." in page, "all of them"


def test_the_report_has_the_stated_time() -> None:
    stated = {"threads": "256", "time": "11.2ms", "flops": "137.4GFLOP", "bytes": "201MB", "dtype": "fp32"}
    page = render_text(CUBIN.inspect([Path("gemm_tiled.sm_86.cubin")], stated).views["report"]())
    assert "Kernel time: 11.2 ms by --set time" in page
    assert "Kernel time: not collected" not in page


def test_a_page_is_headed_with_few_names() -> None:
    assert title_of([Path("a/x.cubin"), Path("b/y.cubin")]) == "Kernels in x.cubin, y.cubin"
    assert title_of([Path("a/x.cubin"), Path("b/x.cubin")]) == "Kernels in a/x.cubin, b/x.cubin"
    assert title_of([Path(f"{n}.cubin") for n in range(40)]) == "Kernels in 40 files"


LOG = """ptxas info    : Compiling entry function 'k' for 'sm_86'
ptxas info    : Function properties for k
    {stack} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8192 bytes smem
"""


@pytest.mark.parametrize(("stack", "spills"), [(0, "passed"), (64, "broken")])
def test_a_log_of_ptxas_is_held_to_limits_without_a_disassembler(tmp_path: Path, stack: int, spills: str) -> None:
    log = tmp_path / "build.txt"
    log.write_text(LOG.format(stack=stack))
    inspector = Cubin(read_cubins, DeviceCatalogue)
    assert inspector.recognises(log, log.read_bytes())
    assert not inspector.recognises(log, b"Building k.o")
    texts = ("spills == 0", "registers <= 40", "smem <= 8KiB", "occupancy_limit(arch=sm_86, threads=256) >= 100%")
    analysis = inspector.inspect([log], {"limits": "; ".join(texts)})
    verdicts = judge_artifact(analysis, tuple(parse_limit(text, kinds=KINDS) for text in texts))
    assert [verdict.outcome.value for verdict in verdicts] == [spills, "passed", "passed", "passed"]
    assert "log" in analysis.views["overview"]().subtitle


def test_a_log_gives_no_stack_of_a_kernel_that_calls_itself(tmp_path: Path) -> None:
    warning = "ptxas warning : Stack size for entry function '{}' cannot be statically determined\n"
    (tmp_path / "a.log").write_text(warning.format("k") + warning.format("other") + LOG.format(stack=0))
    analysis = Cubin(read_cubins, DeviceCatalogue).inspect([tmp_path / "a.log"], {})
    assert not analysis.metrics.find("spills")
    assert "size of its stack" in analysis.metrics.missing("spills").why
    assert analysis.metrics.find("registers")[0].value == 40
