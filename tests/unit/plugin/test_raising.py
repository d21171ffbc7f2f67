from __future__ import annotations

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.fixture import told


class Mute(RuntimeError):
    def __str__(self) -> str:
        raise TypeError


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ValueError("odd"), "ValueError: odd"),
        (ValueError("\n odd \nand more"), "ValueError: odd"),
        (KeyError(), "KeyError"),
        (Mute(), "Mute"),
        (OSError("x" * 300), f"OSError: {'x' * 200}…"),
        (
            PerfgateError("call-wrong", "calls=0 is not a whole number from 1"),
            "PerfgateError: calls=0 is not a whole number",
        ),
    ],
)
def test_an_error_is_told_in_one_line(fault: Exception, said: str) -> None:
    assert told(fault).startswith(said)
    assert "\n" not in told(fault)
