"""Somebody sits in the test: nothing is measured, which CI does not let pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.judge import off_reason
from pytest_perfgate.core.judge.policy import CI, LOCAL, effect
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.plugin.state import SessionState as Docket
from pytest_perfgate.plugin.state import Settings


@pytest.mark.parametrize("asked", ["usepdb", "trace"])
@pytest.mark.parametrize(("policy", "done"), [(CI, Effect.FAIL), (LOCAL, Effect.PASS)])
def test_a_debugger_is_no_measurement(asked: str, policy: Any, done: Effect) -> None:
    given = {"usepdb": False, "trace": False, "perfgate_mode": "full", "perfgate_against": None} | {asked: True}
    config: Any = SimpleNamespace(option=SimpleNamespace(**given))
    session = Docket(Settings(config))
    assert session.settings.debugging
    assert session.mode is Mode.OFF
    assert effect(Outcome.NOT_MEASURED, policy, session.mode) is done
    assert off_reason(Mode.FULL, session.settings.debugging) == "--pdb skips measuring"
