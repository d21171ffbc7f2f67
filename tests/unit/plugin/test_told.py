"""What CI says is what it said before any conftest could speak in its place."""

from __future__ import annotations

import pytest

from pytest_perfgate.plugin.docket import Docket
from pytest_perfgate.plugin.settings import Settings


def test_a_conftest_that_rewrites_the_environment_is_not_heard(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Settings(pytestconfig)
    assert before.told.get("GITHUB_BASE_REF") != "mine"
    monkeypatch.setenv("GITHUB_BASE_REF", "mine")
    monkeypatch.delenv("CI", raising=False)
    after = Settings(pytestconfig)
    assert (after.told, after.ci) == (before.told, before.ci)
    assert Docket(after).settings.told is after.told
