"""The bytes that poison an output, and what of them is left by chance."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.core.judge.samples import PATTERNS, pattern, untouched


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_poison_is_a_finite_number(kind) -> None:
    for turn in range(len(PATTERNS)):
        assert np.isfinite(np.full(64, pattern(turn), dtype=np.uint8).view(kind)).all()


def test_turns_alternate() -> None:
    assert [pattern(turn) for turn in range(4)] == [*PATTERNS, *PATTERNS]


@pytest.mark.parametrize(("itemsize", "chance", "more"), [(1, 0.1, 0.11), (2, 0.004, 0.005), (4, 1e-5, 2e-5)])
def test_what_chance_leaves_is_no_finding(itemsize: int, chance: float, more: float) -> None:
    assert (untouched(chance, itemsize), untouched(more, itemsize)) == (0.0, more)
