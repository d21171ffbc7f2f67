"""The machine code of a test, read by an inspector that is a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Analysis, Metric, MetricSet
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.plugin.captures import attached_files, code_of

SPILLS = Metric(name="spills", value=8.0, dimension=Dimension.BYTES)


def files(*paths: str | Path) -> list[Artifact]:
    return [Artifact(kind="attachment", path=str(path)) for path in paths]


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
        code = code_of(files(kernel, kernel, tmp_path / "tiling.json"), ["spills == 0"], toy)
    assert toy.asked == [(["k"], {"limits": "spills == 0"})]
    assert code.metrics.metrics == (SPILLS,)
    assert code.handed
    assert [finding.detail for finding in code.findings] == ["attached, but not machine code: tiling.json"]
    Path(kernel).write_bytes(b"CODE again")
    code_of(files(kernel), ["spills <= 9"], toy)
    assert len(toy.asked) == 2


def test_nothing_handed_over_says_how(tmp_path: Path) -> None:
    (tmp_path / "tiling.json").write_text("{}")
    code = code_of(files(tmp_path / "tiling.json"), [], Toy())
    assert not code.handed
    missing = code.metrics.missing("occupancy_limit")
    assert missing.why == "none of tiling.json is machine code"
    assert "perfgate.attach" in missing.fix
    nothing = code_of([], [], Toy())
    assert nothing.metrics.missing("spills").why == "the test attached no machine code"


def test_a_missing_tool_is_not_measured_and_a_damaged_file_is_a_problem(kernel: str) -> None:
    code = code_of(files(kernel), [], Toy(PerfgateError("kernel-tool", "no nvdisasm")))
    assert code.metrics.missing("spills").why == "no nvdisasm"
    assert "[ncu]" in code.metrics.missing("spills").fix
    assert code.problems == ()
    broken = code_of(files(kernel), [], Toy(PerfgateError("kernel-broken", "cut", place="k")))
    assert [(p.code, p.what, p.retry) for p in broken.problems] == [("kernel-broken", "k: cut; build it again", False)]
    assert broken.metrics.metrics == ()


def test_a_name_alone_makes_it_code_and_a_file_that_went_away_is_said(tmp_path: Path) -> None:
    (tmp_path / "odd.cubin").write_bytes(b"not code")
    toy = Toy()
    code_of(files(tmp_path / "odd.cubin"), [], toy)
    assert toy.asked
    code = code_of(files(tmp_path / "gone.cubin"), [], toy)
    assert code.problems[0].code == "call-wrong"


def test_bytes_are_meant_as_a_kernel_whatever_they_hold(kernel: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    handed = (
        *files(kernel),
        *attached_files("bad", b"\x00\x01 cut short", "t"),
        *attached_files("tiling/stage1.json", {"block": [128, 64]}, "t"),
        *attached_files("compiled/stage1", SimpleNamespace(asm={"ttir": "module"}), "t"),
    )
    toy = Toy()
    code = code_of(handed, [], toy)
    assert toy.asked == [(["k", "bad"], {"limits": ""})]
    assert [finding.detail for finding in code.findings] == [
        "attached, but not machine code: tiling/stage1.json, compiled/stage1/kernel.ttir"
    ]
