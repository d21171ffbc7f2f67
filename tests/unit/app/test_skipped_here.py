"""A run that measured nothing is held against the lines of this machine's devices."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.runtimes.host import device_key
from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.app.instrument import key_patterns
from pytest_perfgate.app.judge import GateJudge as Court
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.plan import Case, Effect, Mode, Plan
from pytest_perfgate.model.ports import GateTools
from tests.unit.core.gate.bench import HOST, KEY, KINDS, accepted

ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")


def notes(device: str, line: Any, cases: tuple[str, ...] = (KEY.nodeid,)) -> list[tuple[str, Effect]]:
    store: Any = SimpleNamespace(
        devices=lambda: (device,), read_all=lambda asked: {str(line.key): line} if asked == device else {}
    )
    nursery: Any = None
    tools = GateTools(
        kinds=KINDS,
        nursery=nursery,
        environment=Environment,
        roofed=lambda found: found,
        baselines=store,
        here=lambda: (HOST.key, "NVIDIA-H200-[0-9]*GiB*"),
    )
    court = Court(tools, JudgeContext(kinds=KINDS, policy=CI))
    found = {nodeid: Case(nodeid=nodeid, limits=(), plan=Plan()) for nodeid in cases}
    ending = replace(ENDING, skipped={KEY.nodeid: "no --run-bench"} if cases else {})
    return [(note.kind, note.effect) for note in suite_notes(court, found, [], ending)]


@pytest.mark.parametrize("device", [HOST.key, "NVIDIA-H200-140GiB-observe"])
def test_a_skip_with_a_line_of_a_device_that_is_here_fails_in_ci(device: str) -> None:
    assert notes(device, accepted(1e6)) == [("skipped", Effect.FAIL)]
    assert notes(device, accepted(1e6), cases=()) == [("dropped", Effect.FAIL)]


def test_a_skip_for_want_of_the_device_is_excused() -> None:
    assert notes("NVIDIA-H200-NVL-140GiB-observe", accepted(1e6)) == []
    assert notes(HOST.key, replace(accepted(1e6), local=True)) == [], "of this checkout alone"


def test_what_the_key_of_a_card_looks_like() -> None:
    card = Device(key="", name="NVIDIA H200", kind="gpu", memory_bytes=150e9)
    host, *patterns = key_patterns(HOST, [card, card])
    assert (host, patterns) == (HOST.key, ["NVIDIA-H200-[0-9]*GiB*"])
    assert fnmatchcase(f"{device_key(card)}-lock", patterns[0])
    limited = replace(card, facts=(("power limit", "600 W"), ("default power limit", "700 W")))
    assert fnmatchcase(f"{device_key(limited)}-observe", patterns[0])
