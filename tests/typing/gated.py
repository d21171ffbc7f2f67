"""A gated test as a user types it: mypy reads this file, and pytest runs none of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import assert_type

import pytest_perfgate
from pytest_perfgate import Perfgate, PerfgateError, View, work
from pytest_perfgate.model import Analysis, Work


@pytest.mark.perfgate("time <= 1s", on="host-*", rounds=3)
def test_a_call(perfgate: Perfgate) -> None:
    rows = np.ones((64, 64))
    view = perfgate(np.matmul, rows, rows, work=work.gemm(64, 64, 64, dtype="fp64"), check=lambda out: out is not None)
    assert_type(view, View)
    assert_type(view.time, float)
    assert_type(view.result, Any)
    perfgate(np.sort, setup=rows.copy, calls=2, name="sorted", limits=["time <= 1ms"])


@pytest.mark.perfgate("time <= 1s")
def test_a_block(perfgate: Perfgate) -> None:
    with perfgate.region("sleep", work=work.items(1, "naps"), limits=("time <= 1s",)) as nothing:
        time.sleep(0)
    assert_type(nothing, None)


@pytest.mark.perfgate("time <= 1s")
def test_what_was_measured_elsewhere(perfgate: Perfgate, tmp_path: Path) -> None:
    assert_type(perfgate.record([10.2, 10.4], unit="us", work=work.copy(4096), name="binary"), View)
    assert_type(perfgate.record(np.array([10.2, 10.4]).tolist(), "us"), View)
    assert_type(perfgate.read(tmp_path / "results.json", name="results"), View)
    assert_type(perfgate.read(["rank0.json", tmp_path / "rank1.json"]), View)
    perfgate.note("tiling", 64)
    perfgate.attach("plan", tmp_path)


def test_works_of_every_family() -> None:
    assert_type(work.gemm(64, 64, 64, dtype="bf16", bias=True, out="fp32"), Work)
    assert_type(work.attention(2, 32, 4096, 128, dtype="bf16", kv_heads=8, causal=True), Work)
    assert_type(work.conv((4, 3, 8, 8), (16, 3, 3, 3), dtype="bf16", stride=2, padding=(1, 1)), Work)
    assert_type(work.packed_attention([128, 256], 32, 128, dtype="bf16", causal=True), Work)
    assert_type(work.elementwise((64, 64), dtype="fp16", inputs=2), Work)
    assert_type(work.gemm(64, 64, 64, dtype=np.ones(1).dtype, out=np.float32), Work)
    assert_type(work.softmax([64, 64], dtype="fp16", backward=True), Work)
    assert_type(work.custom(flops=2e9, bytes=3e6, dtype="fp16", note="two passes"), Work)
    assert_type(work.gemm(64, 64, 64, dtype="bf16").intensity, "float | None")


def test_files_and_errors() -> None:
    try:
        assert_type(pytest_perfgate.look("trace.json", floor=0), Analysis)
    except PerfgateError as error:
        assert_type(error.fix, str)
    assert_type(pytest_perfgate.compare("a.json", "b.json"), Analysis)
    assert_type(pytest_perfgate.__version__, str)
