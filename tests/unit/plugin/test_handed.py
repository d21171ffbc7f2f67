"""The machine code of a test, read by an inspector that is a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.plugin.handed import code_of

SPILLS = Metric(name="spills", value=8.0, dimension=Dimension.BYTES)


class Toy:
    name = "cubin"
    views = ("table",)
    options = (("limits", "what is judged"),)

    def __init__(self, fault: PerfgateError | None = None) -> None:
        self.fault = fault
        self.asked: list[tuple[list[str], Mapping[str, str]]] = []

    def recognises(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"CODE")

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        self.asked.append(([path.name for path in paths], options))
        if self.fault:
            raise self.fault
        return Analysis(kind="cubin", subject="x", metrics=MetricSet(metrics=(SPILLS,)), views={})


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    (tmp_path / "k").write_bytes(b"CODE")
    return str(tmp_path / "k")


def test_only_machine_code_is_read_and_once(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "tiling.json").write_text("{}")
    toy = Toy()
    for _ in range(3):
        told = code_of([kernel, kernel, str(tmp_path / "tiling.json")], ["spills == 0"], toy)
    assert toy.asked == [(["k"], {"limits": "spills == 0"})]
    assert told.metrics.metrics == (SPILLS,)
    assert told.handed
    Path(kernel).write_bytes(b"CODE again")
    code_of([kernel], ["spills <= 9"], toy)
    assert len(toy.asked) == 2


def test_nothing_handed_over_says_how(tmp_path: Path) -> None:
    (tmp_path / "tiling.json").write_text("{}")
    told = code_of([str(tmp_path / "tiling.json")], [], Toy())
    assert not told.handed
    missing = told.metrics.missing("occupancy_limit")
    assert missing.why == "the test handed over no machine code"
    assert "perfgate.attach" in missing.mend


def test_a_missing_tool_is_not_measured_and_a_damaged_file_is_a_problem(kernel: str) -> None:
    told = code_of([kernel], [], Toy(PerfgateError("kernel-tool", "no nvdisasm")))
    assert told.metrics.missing("spills").why == "no nvdisasm"
    assert "[ncu]" in told.metrics.missing("spills").mend
    assert told.problems == ()
    broken = code_of([kernel], [], Toy(PerfgateError("kernel-broken", "cut", place="k")))
    assert [(p.code, p.what, p.retry) for p in broken.problems] == [("kernel-broken", "k: cut", False)]
    assert broken.metrics.metrics == ()


def test_a_name_alone_makes_it_code_and_a_file_that_went_away_is_said(tmp_path: Path) -> None:
    (tmp_path / "odd.cubin").write_bytes(b"not code")
    toy = Toy()
    code_of([str(tmp_path / "odd.cubin")], [], toy)
    assert toy.asked
    gone = code_of([str(tmp_path / "gone.cubin")], [], toy)
    assert gone.problems[0].code == "call-wrong"
