"""``perfgate profile`` from end to end, with a ncu that is a script and a torch that is a few lines."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.profiles import ProfileFolders, safe
from tests.corpus import corpus
from tests.kernels import CUBINS
from tests.plugin.forked import forked, inherited

NCU = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
'''
import os, shutil, subprocess, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("Version 2025.3.1.0 (build 1)"); raise SystemExit
at = words.index("--export")
code = subprocess.call(words[at + 2:])
if os.environ.get("FAKE_DENIED"):
    print("==ERROR== ERR_NVGPUCTRPERM"); raise SystemExit(1)
if code == 0:
    shutil.copy(os.environ["FAKE_REPORT"], words[at + 1] + ".ncu-rep")
raise SystemExit(code)
"""
TORCH = """
import sys
log = lambda word: open("calls.txt", "a").write(word + "\\n")
class cuda:
    is_available = staticmethod(lambda: True)
    is_initialized = staticmethod(lambda: False)
    synchronize = staticmethod(lambda: log("synchronize"))
    @staticmethod
    def cudart():
        return type("Rt", (), {"cudaProfilerStart": lambda self: log("start"), "cudaProfilerStop": lambda self: log("stop")})()
"""
TEST = """
import torch
from types import SimpleNamespace
from pytest_perfgate import work
def test_k(perfgate):
    perfgate(lambda: torch.log("kernel"), work=work.gemm(4096, 4096, 4096, dtype="fp32"))
    perfgate.attach("tiling/stage1.json", "tiling.json")
    perfgate.attach("compiled/stage1", SimpleNamespace(asm={"ttir": "module"}, metadata=SimpleNamespace(name="add")))
"""


LIGHT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_perfgate.plugin"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bins = tmp_path / "bin"
    bins.mkdir()
    (bins / "ncu").write_text(NCU.format(python=sys.executable))
    (bins / "ncu").chmod(0o755 | stat.S_IXUSR)
    root = tmp_path / "project"
    root.mkdir()
    (root / "torch.py").write_text(TORCH)
    (root / "test_k.py").write_text(TEST)
    (root / "tiling.json").write_text("{}")
    monkeypatch.setenv("PATH", f"{bins}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CI", raising=False)
    return root


def perfgate(root: Path, *words: str, **extra: str) -> str:
    code = "import sys; from pytest_perfgate.cli import main; sys.exit(main())"
    ended, text = forked(("-c", code, *words), root, {**inherited(), **LIGHT, **extra})
    assert ended == 0, text
    return text


@pytest.mark.corpus
def test_a_profile_leaves_a_folder_with_what_it_was_taken_with(project: Path) -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    report = corpus("ncu/matmul_h100.ncu-rep")
    assert "matmul_kernel" in perfgate(project, "profile", "test_k.py::test_k", FAKE_REPORT=str(report))
    (folder,) = (project / ".perfgate" / "profiles" / "annotation").glob("*/*/*")
    calls = (project / "calls.txt").read_text().split()
    assert calls == ["kernel", "synchronize", "start", "kernel", "synchronize", "stop"], (
        "one unprofiled run comes first"
    )
    parameters = json.loads((folder / "params.json").read_text())
    assert parameters["nodeid"] == "test_k.py::test_k"
    assert parameters["clocks"]["policy"] == "observe"
    assert parameters["profiler"] == "2025.3.1"
    assert (folder / "report.md").read_text().startswith("## Profile: matmul_kernel")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert any(m["name"] == "dram" for m in metrics["metrics"])
    assert (folder / "kernels.ncu-rep").stat().st_size == report.stat().st_size
    assert (folder / "tiling" / "stage1.json").read_text() == "{}"
    assert (folder / "compiled" / "stage1" / "add.ttir").read_text() == "module"
    assert (folder / "sass" / "matmul_kernel.tsv").read_text().startswith("offset\tshare")
    assert "vs Baseline" not in (folder / "report.md").read_text()
    assert "- MFU:" in (folder / "report-verbose.md").read_text(), "the work of the call is known to the report"
    perfgate(project, "profile", "test_k.py::test_k", FAKE_REPORT=str(report))
    second = max((project / ".perfgate" / "profiles" / "annotation").glob("*/*/*"))
    assert "vs Baseline: matmul_kernel" in (second / "report.md").read_text()
    assert not (project / ".perfgate" / "records").exists(), "a profiled run is not a record"


@pytest.mark.corpus
def test_a_warm_up_that_fails_is_said(project: Path) -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    fails_once = """
from pathlib import Path
import torch
def test_k(perfgate):
    if not Path("tuned").exists():
        Path("tuned").touch()
        raise RuntimeError("launch failed after tuning")
    perfgate(lambda: torch.log("kernel"))
"""
    (project / "test_k.py").write_text(fails_once)
    output = perfgate(project, "profile", "test_k.py::test_k", FAKE_REPORT=str(corpus("ncu/matmul_h100.ncu-rep")))
    assert "this is the second" in output
    (folder,) = (project / ".perfgate" / "profiles" / "annotation").glob("*/*/*")
    parameters = json.loads((folder / "params.json").read_text())
    assert parameters["second_try"] is True
    assert "launch failed after tuning" in parameters["first_failure"]
    assert "this is the second" in (folder / "report.md").read_text()


@pytest.mark.nvcc
def test_kernels_that_a_test_hands_over_need_no_gpu(project: Path) -> None:
    from tests.tools import has_tools

    if not has_tools("nvdisasm", "cuobjdump"):
        pytest.skip("nvdisasm and cuobjdump are not installed (extra: ncu)")
    cubin = CUBINS / "above_cliff.sm_86.cubin"
    (project / "test_k.py").write_text(f"def test_k(perfgate):\n    perfgate.attach('k.cubin', {str(cubin)!r})\n")
    output = perfgate(project, "profile", "test_k.py::test_k", "--mode", "cubin")
    assert "Step back from the shared-memory cliff" in output


def test_folders_stay_inside_and_two_at_once_get_two(tmp_path: Path) -> None:
    folders = ProfileFolders(tmp_path)
    first, second = (folders.fresh("ncu", "../../etc/x.py::t[../a/b-%s]") for _ in range(2))
    assert first != second
    assert all(tmp_path.resolve() in path.resolve().parents for path in (first, second))
    assert safe("a/../b") == "a---b"
