from __future__ import annotations

import pytest

from pytest_perfgate.app.devices import doubt


@pytest.mark.parametrize(
    ("durations", "said"),
    [
        ((1.0, 1.1, 1.05, 1.0, 1.2), ""),
        ((1.0, 1.0, 1.0), "; WARNING: fewer than 5: measure"),
        ((1.0, 1.6, 1.5, 1.6, 1.4), "; WARNING: half of them 50 % slower than the fastest: measure"),
        ((1.0, 2.0), "; WARNING: fewer than 5, half of them 50 % slower than the fastest: measure"),
    ],
)
def test_a_ceiling_of_a_busy_machine_is_doubted_aloud(durations: tuple[float, ...], said: str) -> None:
    assert doubt(durations).startswith(said)
    assert bool(doubt(durations)) is bool(said)
