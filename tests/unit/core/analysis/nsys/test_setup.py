from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.nsys.setup import DDP, MEGATRON, PITHTRAIN, PRESETS, reading
from pytest_perfgate.model.errors import PerfgateError


def test_pithtrain_is_the_default() -> None:
    assert reading({}).preset is PITHTRAIN
    assert not reading({}).original
    assert set(PRESETS) == {"pithtrain", "megatron", "ddp"}
    assert (reading({"preset": "megatron"}).preset, reading({"preset": "ddp"}).preset) == (MEGATRON, DDP)


def test_each_pattern_can_be_replaced() -> None:
    settings = reading(
        {"stage": "phase_[ab]", "label": r"worker (\d+)", "purposes": "a2a=ep, ring=cp", "communication": "mine"}
    )
    assert settings.preset.stage == "phase_[ab]"
    assert settings.preset.rank == r"worker (\d+)"
    assert settings.preset.purposes == (("a2a", "ep"), ("ring", "cp"))
    assert settings.preset.communication == ("mine",)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"stages": "x"}, "nsys-option", "did you mean stage"),
        ({"preset": "torchtitan"}, "nsys-option", "known: pithtrain"),
        ({"compat": "other"}, "nsys-option", "compat=pithtrain"),
        ({"stage": "("}, "nsys-option", "not a regular expression"),
        ({"label": "rank"}, "nsys-option", "has no group"),
        ({"purposes": "a2a"}, "nsys-option", "PATTERN=PURPOSE"),
        ({"start": "5"}, "nsys-window", "go together"),
        ({"start": "9", "end": "5"}, "nsys-window", "not a span"),
        ({"start": "a", "end": "5"}, "nsys-window", "is not a time"),
        ({"start": "1", "end": "5", "anchor": "x"}, "nsys-window", "two windows"),
    ],
)
def test_what_does_not_read_says_what_would(options, code, message) -> None:
    with pytest.raises(PerfgateError) as error:
        reading(options)
    assert error.value.code.name == code
    assert message in error.value.text()


def test_times_may_carry_units() -> None:
    assert reading({"start": "1.5ms", "end": "60111541308000000001"}).span == (1_500_000, 60111541308000000001)
