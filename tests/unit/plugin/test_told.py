from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.plugin import pytest_load_initial_conftests
from pytest_perfgate.plugin.options import child_environment as told
from pytest_perfgate.plugin.state import Settings


def test_a_conftest_rewrites_nothing_that_ci_said(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = SimpleNamespace(option=None, stash=pytest.Stash())
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    monkeypatch.setenv("CI", "true")
    added = ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "BUILDKITE_SOURCE", "GIT_DIR")
    for name in added:
        monkeypatch.delenv(name, raising=False)
    pytest_load_initial_conftests(config)
    monkeypatch.setenv("GITHUB_BASE_REF", "feat")
    monkeypatch.delenv("CI")
    monkeypatch.setenv("MADE_BY_A_PLUGIN", "1")
    for name in added:
        monkeypatch.setenv(name, "feat")
    assert not set(added) & set(told(config))
    assert (told(config)["GITHUB_BASE_REF"], told(config)["MADE_BY_A_PLUGIN"]) == ("main", "1")
    assert Settings(config).ci
    assert told(SimpleNamespace()) == dict(os.environ)  # type: ignore[arg-type]
