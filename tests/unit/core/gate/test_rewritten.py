from __future__ import annotations

import numpy as np
import pytest

from pytest_perfgate.app.output_check import PATTERNS, digest, poison, untouched


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_poison_is_a_finite_number(kind) -> None:
    for turn in range(len(PATTERNS)):
        assert np.isfinite(poison(64, turn).view(kind)).all()


def test_what_was_not_written_is_counted_in_elements() -> None:
    before = np.arange(1, 101, dtype=np.float32)
    after = before.copy()
    after[25:50] = poison(100, 0).view(np.float32)
    assert untouched(before.view(np.uint8), after.view(np.uint8), 4, 0) == 0.25
    assert untouched(before.view(np.uint8), after.view(np.uint8), 4, 1) == 0


def test_an_element_that_holds_the_pattern_by_itself_is_written() -> None:
    same = poison(400, 1)
    assert untouched(same, same, 4, 1) == 0


def test_chance_is_no_finding() -> None:
    generator = np.random.default_rng(1)
    before, after = (generator.integers(0, 256, 20_000, dtype=np.uint8) for _ in range(2))
    assert (after == PATTERNS[0]).any()
    assert untouched(before, after, 1, 0) == 0


def test_another_size_or_none_says_nothing() -> None:
    assert untouched(poison(8, 0), poison(16, 0), 4, 0) == 0
    assert untouched(poison(0, 0), poison(0, 0), 4, 0) == 0


def test_one_byte_changes_the_digest() -> None:
    data = np.zeros(100, dtype=np.uint8)
    known = digest(data)
    data[99] = 1
    assert digest(data) != known
