"""Dependencies that a project declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.host import probe_environment
from pytest_perfgate.adapters.stores.configuration import declared_names, parse_declared, settings_at
from pytest_perfgate.model.ports import DEPENDENCIES

TEXT = """
[project]
dependencies = ["Typing_Extensions >=4", "iniconfig", "a.b[extra]==1 ; python_version < '3.9'", 'here @ file:///x']
"""


def test_names_are_spelled_as_an_index_has_them_and_of_every_project(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "pyproject.toml").write_text(TEXT)
    (tmp_path / "one" / "pyproject.toml").write_text("[project]\ndependencies = ['c']\n")
    expected = {"typing-extensions", "iniconfig", "a-b", "here", "c"}
    assert declared_names(tmp_path, (".", "one", "nowhere")) == expected
    assert settings_at(tmp_path, lambda *_: None)[DEPENDENCIES].startswith('["Typing_Extensions >=4"')


@pytest.mark.parametrize(
    "text", ["", "dependencies = 1", "[project]\ndependencies = 'x'", "project = 1 # dependencies", "["]
)
def test_a_text_that_declares_nothing_has_none(text: str) -> None:
    assert parse_declared(text) == ()


def test_the_version_of_what_is_declared_is_kept_beside_a_time() -> None:
    assert "iniconfig" in dict(probe_environment(lambda: {"iniconfig"}).lasting.packages)
    assert "iniconfig" not in dict(probe_environment().lasting.packages)
