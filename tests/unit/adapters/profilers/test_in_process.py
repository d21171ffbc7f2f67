"""Kernel records of a region as a trace that the reader of traces understands."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_perfgate.adapters.bindings.cupti import KernelRecord
from pytest_perfgate.adapters.profilers import in_process as cupti
from pytest_perfgate.adapters.profilers.in_process import Cupti
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.wiring import built_ins


def record(start: int, end: int, stream: int, name: str = "", kind: str = "kernel") -> KernelRecord:
    return KernelRecord(start=start, end=end, stream=stream, device=0, call=None, name=name, kind=kind)


WORK = (
    record(1_000_000, 1_400_000, 7, "gemm_bf16"),
    record(1_200_000, 1_600_000, 20, "ncclDevKernel_AllReduce"),
    record(1_600_000, 1_700_000, 7, kind="copy"),
)


class Recorder:
    def __init__(self, work=WORK, lost=0, usable=True, counts=True) -> None:
        self.work, self.lost, self.usable, self.counts = work, lost, usable, counts

    def availability(self) -> Availability:
        return Availability(name="cupti", usable=self.usable, why="no libcuda", fix="pip install cupti-python")

    @contextmanager
    def opened(self, size):
        yield self

    def drain(self):
        return self.work

    def dropped(self):
        return self.lost

    def counts_drops(self, call):
        if self.counts is None:
            raise RuntimeError("cuMemAlloc_v2 returned 201")
        return self.counts


@pytest.fixture(autouse=True)
def idle(monkeypatch) -> None:
    monkeypatch.setattr(cupti, "settle", lambda: None)


def test_a_region_becomes_a_trace_with_its_overlap(tmp_path: Path) -> None:
    profiler = Cupti(Recorder())
    assert profiler.command(["python"], tmp_path, Plan()) == ["python"]
    for _ in range(2):
        with profiler.region(tmp_path / "out"):
            pass
    paths = [Path(artifact.path) for artifact in profiler.artifacts(tmp_path / "out")]
    assert [path.name for path in paths] == ["cupti-0.json", "cupti-1.json"]
    inspectors = built_ins.BuiltIns().pytest_perfgate_inspectors()
    inspector = next(one for one in inspectors if one.recognises(paths[0], paths[0].read_bytes()[:4096]))
    assert inspector.name == "kineto"
    metrics = inspector.inspect(paths[:1], {}).metrics
    (overlap,) = metrics.find("overlap")
    assert overlap.value == pytest.approx(0.5)
    (exposed,) = metrics.find("exposed_comm")
    assert exposed.value == pytest.approx(200_000)


@pytest.mark.parametrize(
    ("recorder", "says"),
    [
        (Recorder(usable=False), "cupti: it needs a GPU and its driver: no libcuda"),
        (Recorder(lost=3), "3 records of the region were lost"),
        (Recorder(work=()), "launched nothing"),
        (Recorder(counts=False), "it was not counted"),
        (Recorder(counts=None), "returned 201"),
    ],
)
def test_what_is_not_all_there_is_no_trace(tmp_path: Path, recorder: Recorder, says: str) -> None:
    with pytest.raises(PerfgateError, match=says), Cupti(recorder).region(tmp_path):
        pass
    assert not list(tmp_path.iterdir())
