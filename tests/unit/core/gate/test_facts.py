"""Versions around a device: kept, shown where they moved, and by their level in the way of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.context import LEVELS, JudgeContext, facts_of, moves
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.project import KEYS
from tests.unit.core.gate.bench import accepted, limit, measured

OLD = (("driver", "570.124.06"), ("toolkit", "12.8"), ("framework", "torch 2.12.1"), ("ptxas", "12.8.93"))
NEW = (("driver", "570.195.03"), ("toolkit", "13.0"), ("framework", "torch 2.13.0"), ("power limit", "700 W"))


@pytest.mark.parametrize(
    ("level", "names"),
    [
        ("exact", ["driver", "toolkit", "framework"]),
        ("minor", ["driver", "toolkit", "framework"]),
        ("major", ["toolkit"]),
    ],
)
def test_versions_are_compared_as_far_as_the_level_looks(level, names) -> None:
    assert [name for name, _, _ in moves(OLD, NEW, level)] == names


def test_patches_are_seen_only_exactly() -> None:
    then, now = (("framework", "torch 2.13.0"),), (("framework", "torch 2.13.1+cu130"),)
    assert moves(then, now, "minor") == ()
    assert moves(then, now) == (("framework", "torch 2.13.0", "torch 2.13.1+cu130"),)
    assert moves((("framework", "cupy 13.1"),), (("framework", "torch 13.1"),), "major")
    assert moves((("driver", "none"),), (("driver", "unknown"),), "major")


def test_only_versions_are_kept() -> None:
    device = Device(key="k", name="n", kind="gpu", facts=(("cores", "2"), *NEW[::-1], ("ptxas", "")))
    assert facts_of(device) == NEW[:3]


def test_the_levels_are_those_of_the_configuration() -> None:
    assert next(key for key in KEYS if key.name == "facts").choices == LEVELS


def report(level: str, slower: float = 1.0):
    measurement = measured(100_000.0 * slower)
    device = replace(measurement.device, facts=NEW)
    line = accepted(100_000.0, surroundings=Environment(facts=OLD))
    context = JudgeContext(facts=level)
    return judge(replace(measurement, device=device), [limit("slowdown <= 3%")], baseline=line, context=context)


@pytest.mark.parametrize(("level", "compared"), [("off", True), ("shown", True), ("major", False), ("exact", False)])
def test_by_the_level_a_baseline_is_not_compared(level, compared) -> None:
    (verdict,) = report(level).verdicts
    assert (verdict.outcome is Outcome.PASSED) is compared
    assert ("toolkit 12.8 -> 13.0" in verdict.sentence) is not compared


def test_what_moved_stands_beside_a_slowdown() -> None:
    text = render_block(report("shown", 1.5))
    assert "since accepted: toolkit 12.8 -> 13.0" in " ".join(text.split())
    assert "since accepted" not in render_block(report("off", 1.5))
