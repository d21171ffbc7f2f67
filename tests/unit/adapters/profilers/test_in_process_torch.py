"""A capture by torch's own profiler goes the same way as a file from elsewhere, limits included."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.plan import Outcome, Plan
from pytest_perfgate.wiring import built_ins
from tests.late import late

torch = late("torch", reason="capturing needs torch")
pytestmark = pytest.mark.torch


def built_in(hook: str, name: str):
    return next(one for one in getattr(built_ins.BuiltIns(), f"pytest_perfgate_{hook}")() if one.name == name)


def captured(out, work, entries=1):
    profiler = built_in("profilers", "torch")
    assert profiler.availability().usable
    assert profiler.command(["python"], out, Plan()) == ["python"]
    for _ in range(entries):
        with profiler.region(out):
            work()
    return [artifact.path for artifact in profiler.artifacts(out)]


@pytest.mark.filterwarnings("ignore")
def test_limits_are_held_against_a_capture(tmp_path):
    from pathlib import Path

    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.randn(256, 128, device=device)

    def step():
        for _ in range(3):
            torch.nn.functional.gelu(a @ a.T)

    paths = captured(tmp_path / "capture", step, entries=2)
    assert len(paths) == 2
    inspector = built_in("inspectors", "kineto")
    path = Path(paths[0])
    assert inspector.recognises(path, path.read_bytes()[:4096])
    analysis = inspector.inspect([path], {"peak": "fp32=100TFLOPS", "bandwidth": "100GB/s"})
    texts = ("idle <= 100%", "overlap >= 50%", "mfu(op=aten::mm) >= 0.0001%", "op_count(op=aten::mm) == 3")
    limits = [parse_limit(text, kinds=by_name()) for text in texts]
    idle, overlap, mfu, count = judge_artifact(analysis, limits)
    assert idle.outcome is Outcome.PASSED
    assert overlap.outcome is Outcome.NOT_MEASURED
    assert ("no communication" if device == "cuda" else "no GPU") in overlap.sentence
    assert mfu.outcome is Outcome.PASSED
    assert count.outcome is Outcome.PASSED
    (rate,) = analysis.metrics.find("op_time", (("op", "aten::mm"),))
    assert rate.value > 0


@pytest.mark.filterwarnings("ignore")
def test_a_region_that_fails_leaves_no_trace(tmp_path):
    def broken():
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        captured(tmp_path / "capture", broken)
    assert built_in("profilers", "torch").artifacts(tmp_path / "capture") == ()
