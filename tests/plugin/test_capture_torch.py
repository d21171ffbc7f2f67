"""``capture="torch"`` on a marker: the profile is taken where the test runs and its figures meet the limits."""

from __future__ import annotations

from pathlib import Path

from tests.kineto_file import kernel, launch, written
from tests.late import late
from tests.plugin.forked import forked, inherited

late("torch", reason="capturing needs torch")

SUITE = """
import pytest, torch

@pytest.mark.perfgate("idle <= 100%", "op_count(op=aten::mm) == 2", "op_max(op=aten::mm) <= 1s", capture="torch")
def test_step(perfgate):
    a = torch.randn(64, 64)
    with perfgate.region():
        a @ a
        a @ a

@pytest.mark.perfgate("op_count(op=aten::mm) == 3", capture="torch")
def test_call(perfgate):
    a = torch.randn(64, 64)
    perfgate(lambda: a @ a)

@pytest.mark.perfgate("communication_time >= 20us")
def test_file(perfgate):
    perfgate.read("rank*.json")
"""
PROJECT = '[tool.perfgate]\ncommunication = ["my_ring"]\nbudget = "4 ms"\nwarmup = "1 ms"\nsamples = 5\n'


def test_a_capture_meets_its_limits_and_is_kept(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    written(tmp_path / "rank0.json", [launch(0, 1), kernel("my_ring_sum", 5, 20, correlation=1)])
    words = ("-m", "pytest", "-q", "--perfgate=quick", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin")
    alone = {**inherited(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    _, text = forked(words, tmp_path, alone, children=True, also=("torch",))
    assert "1 failed, 2 passed" in text, text
    assert "op_count(op=aten::mm)  1   limit == 3" in text
    assert len(list((tmp_path / ".perfgate" / "profiles" / "torch").rglob("torch-0.json"))) == 2
