"""Which pipe keeps a multiprocessor busy."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.classify import Bottleneck
from tests.launches import ELAPSED, launch

IDLE = {f"sm__pipe_fma_cycles_active{ELAPSED}": 5.0, f"dram__throughput{ELAPSED}": 3.0}
BUSY = {**IDLE, f"sm__throughput{ELAPSED}": 95.0}


@pytest.mark.parametrize(
    ("counter", "pipe"),
    [
        ("sm__inst_executed_pipe_xu", "XU (transcendentals, conversions)"),
        ("sm__inst_executed_pipe_fp16", "FP16"),
        ("sm__pipe_tensor_op_dmma_cycles_active", "FP64 tensor cores"),
    ],
)
def test_a_busy_pipe_of_any_kind_computes(counter: str, pipe: str) -> None:
    found = launch(counters={**BUSY, f"{counter}{ELAPSED}": 95.0})
    assert found.classification.bottleneck is Bottleneck.COMPUTE
    assert found.pipe == (pipe, pytest.approx(0.95))


def test_a_busy_multiprocessor_that_no_pipe_explains_is_said() -> None:
    found = launch(counters=BUSY).classification
    assert found.bottleneck is Bottleneck.LATENCY
    assert found.notes[-1].startswith("the multiprocessors are 95.0 % busy, and no pipe that is known here explains it")
    explained = launch(counters={**BUSY, f"sm__inst_executed_pipe_lsu{ELAPSED}": 94.0}).classification
    assert not any("no pipe" in note for note in explained.notes)
    assert not any("no pipe" in note for note in launch(counters=IDLE).classification.notes)
