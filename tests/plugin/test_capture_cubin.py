"""``capture="cubin"`` on a marker: kernels that a test hands over, judged without a GPU and without a clock."""

from __future__ import annotations

from pathlib import Path

from tests.kernels import CUBINS
from tests.plugin.projects import Project
from tests.tools import needs_tools

HEAD = """
from pathlib import Path
from types import SimpleNamespace
import pytest

CUBINS = Path({cubins!r})
"""
QUICK = """
def triton():
    metadata = SimpleNamespace(name="above_cliff", num_warps=4, shared=57344)
    return SimpleNamespace(asm={{"ttir": "module", "cubin": (CUBINS / "above_cliff.sm_86.cubin").read_bytes()}}, metadata=metadata)

@pytest.mark.perfgate("spills == 0", capture="cubin")
def test_spills(perfgate):
    perfgate.attach("kernel", (CUBINS / "spilling.sm_86.cubin").read_bytes())

@pytest.mark.perfgate("cliff_distance >= 0 B", capture="cubin")
def test_triton(perfgate):
    perfgate.attach("kernel", triton())

@pytest.mark.perfgate("count(MMA) >= 1", "time <= 1 s", capture="cubin")
def test_beside_a_call(perfgate):
    perfgate.attach("tile", CUBINS / "attention_tile.sm_90.cubin")
    perfgate(lambda: sum(range(10)))
"""
FULL = """
@pytest.mark.perfgate("spills == 0", "registers <= 200", "occupancy_limit(arch=sm_90, threads=256) >= 25%", capture="cubin")
def test_path(perfgate):
    open("runs.txt", "a").write("x")
    perfgate.attach("gemm.cubin", CUBINS / "gemm_tiled.sm_90.cubin")

@pytest.mark.perfgate("spills == 0", capture="cubin")
def test_nothing(perfgate):
    perfgate.attach("tiling.json", Path(__file__).parent / "tiling.json")

@pytest.mark.perfgate("spills == 0", capture="cubin")
def test_broken(perfgate):
    perfgate.attach("cut.cubin", (CUBINS / "copy.sm_86.cubin").read_bytes()[:900])
"""


def written(root: Path, suite: str, settings: str = "") -> Project:
    project = Project(root)
    project.configure(settings=settings)
    project.write("tiling.json", "{}")
    project.write("test_k.py", (HEAD + suite).format(cubins=str(CUBINS)))
    return project


@needs_tools
def test_quick_judges_what_was_handed_over_where_the_test_stands(tmp_path: Path) -> None:
    run = written(tmp_path, QUICK, 'limits = ["slowdown <= 5%"]').run("--perfgate=quick")
    assert run.outcome("test_spills") == "failed"
    assert "spills(arch=sm_86, kernel=spilling)" in run.says("test_spills")
    assert "seen  spilling: 64 registers, 624 bytes of local memory a thread" in run.says("test_spills")
    assert "try   Avoid local memory: smaller tiles" in run.says("test_spills")
    assert "slowdown" not in run.says("test_spills"), "a project's limit on time is not meant for it"
    assert run.outcome("test_triton") == "failed"
    assert "Step back from the shared-memory cliff" in run.says("test_triton")
    assert run.outcome("test_beside_a_call") == "passed"
    assert (tmp_path / ".perfgate" / "kernels" / "test_k.py-test_triton" / "kernel.cubin").exists()


@needs_tools
def test_full_mode_in_ci_fails_what_was_not_handed_over(tmp_path: Path) -> None:
    run = written(tmp_path, FULL, 'limits = ["time <= 1 s", "slowdown <= 5%"]').run("--perfgate=full", ci=True)
    outcomes = {name: outcome for name, (outcome, _) in run.tests.items()}
    assert outcomes == {"test_path": "passed", "test_nothing": "failed", "test_broken": "failed"}
    assert (tmp_path / "runs.txt").read_text() == "xx", "one process reads it, then the test itself runs"
    assert "none of tiling.json is machine code" in run.says("test_nothing")
    assert "perfgate.attach" in run.says("test_nothing")
    assert "kernel-broken" in run.says("test_broken")
    assert "perfgate()" not in run.text, "a static capture asks for no call"
