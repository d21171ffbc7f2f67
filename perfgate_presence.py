"""Refuses a run in which the project hides the plugin or switches it off; so it lies beside the package, not in it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest


def hidden_by(name: str, home: Path) -> str:
    """The place that is imported in place of the package in this folder; empty where it is that one."""
    spec = find_spec(name)
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec is not None else []
    return places[0] if places and Path(places[0]).resolve().parent != home.resolve() else ""


place = hidden_by("pytest_perfgate", Path(__file__).parent)
if place and "PERFGATE_CHANNEL" not in os.environ:  # a child may run in a checkout of perfgate itself
    message = (
        f"{place} hides the installed plugin pytest_perfgate: no limit would be checked  [plugin-hidden]\n"
        f"  why   Python finds what lies in the folder of the project first\n"
        f"  next  give it another name"
    )
    raise pytest.UsageError(message)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In CI the settings that a change may write do not switch the gate off; on the command line CI's owner may."""
    if not config.pluginmanager.is_blocked("perfgate"):
        return
    from pytest_perfgate.model.project import with_ci

    if not with_ci(os.environ).get("CI"):
        return
    words = config.getini("addopts")
    gated = any(
        item.get_closest_marker("perfgate") or "perfgate" in getattr(item, "fixturenames", ()) for item in items
    )
    if gated and any("no:perfgate" in word for word in (words.split() if isinstance(words, str) else words)):
        raise pytest.UsageError(
            "addopts switches the plugin perfgate off, and this run has gated tests: no limit would be checked"
            "  [plugin-hidden]\n  next  take '-p no:perfgate' out of addopts, or say it on the command line"
        )
