from __future__ import annotations

from pytest_perfgate.core.judge.rounds import split


def test_the_edges_of_the_widest_gap() -> None:
    assert split([3.0, 1.0, 1.1, 3.2, 3.1], spread=0.1) == (1.1, 3.0)


def test_a_gap_within_the_noise_or_beside_one_process_is_none() -> None:
    assert split([1.0, 1.1, 1.4, 1.5], spread=0.1) is None
    assert split([1.0, 1.0, 1.0, 9.0], spread=0.1) is None
    assert split([1.0, 1.0, 2.0, 2.0], spread=0.0, resolution=0.5) is None
    assert split([], spread=0.0) is None
