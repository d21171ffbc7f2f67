"""A number that asks for nothing is refused before anything is measured or drawn."""

from __future__ import annotations

import pytest

from pytest_perfgate.cli.dispatch import dispatch
from pytest_perfgate.cli.output import above_zero, from_one, from_zero, percent


@pytest.mark.parametrize(
    ("command", "option", "wrong", "message"),
    [
        ("history", "--last", ["0", "-3", "1.5", "many"], "is not a whole number from 1"),
        ("calibrate", "--suites", ["0", "-1", "x"], "is not a whole number from 1"),
        ("calibrate", "--limit", ["0", "-5", "nan", "inf", "x"], "is not a number above zero"),
        ("clocks", "--mhz", ["0", "inf"], "is not a number above zero"),
        ("doctor", "--seconds", ["-1", "nan", "inf", "x"], "is not a number from zero"),
        ("calibrate", "--minutes", ["-1", "nan", "inf", "x"], "is not a number from zero"),
    ],
)
def test_it_is_a_mistake_in_the_command(
    command: str, option: str, wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in wrong:
        try:
            code = dispatch([command, f"{option}={text}"])
        except SystemExit as ended:
            code = ended.code
        assert code == 2, text
        assert f"argument {option}: {text!r} {message}" in capsys.readouterr().err


def test_numbers_are_read_as_they_stand() -> None:
    assert (from_one("3"), above_zero("0.5"), from_zero("0")) == (3, 0.5, 0.0)
    assert percent("3%") == percent("3") == 3.0
