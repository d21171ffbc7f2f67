"""Sizes that numpy counted: 32 bits overflow where a product of sizes does not."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from pytest_perfgate import work


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint16])
def test_work_is_counted_in_numbers_without_end(kind: type) -> None:
    pairs = [
        (work.gemm(kind(4096), kind(4096), kind(4096), dtype="bf16"), work.gemm(4096, 4096, 4096, dtype="bf16")),
        (work.softmax(np.array([4096, 4096], kind), dtype="fp32"), work.softmax((4096, 4096), dtype="fp32")),
        (work.softmax([kind(4096), kind(4096)], dtype="fp32"), work.softmax((4096, 4096), dtype="fp32")),
        (work.layer_norm(kind(4096), kind(4096), dtype="fp32"), work.layer_norm(4096, 4096, dtype="fp32")),
        (work.custom(flops=kind(7), bytes=kind(8)), work.custom(flops=7, bytes=8)),
        (work.items(kind(7)), work.items(7)),
    ]
    for counted, meant in pairs:
        assert counted == meant
        assert all(type(value) in {int, float, str, type(None)} for value in astuple(counted))


def test_what_is_a_kind_of_number_stays_what_it_is() -> None:
    assert work.gemm(2, 2, 2, dtype="fp32").flops == 16
    assert work.gemm.__name__ == "gemm"
