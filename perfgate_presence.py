"""Refuses a run in which the project hides the plugin or switches it off; so it lies beside the package, not in it."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def hidden_by(name: str, home: Path) -> str:
    """The place that is imported in place of the package in this folder; empty where it is that one."""
    spec = find_spec(name)
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec is not None else []
    return places[0] if places and Path(places[0]).resolve().parent != home.resolve() else ""


place = hidden_by("pytest_perfgate", Path(__file__).resolve().parent)
if place and "PERFGATE_CHANNEL" not in os.environ:  # a child may run in a checkout of perfgate itself
    message = (
        f"{place} hides the installed plugin pytest_perfgate: no limit would be checked  [plugin-hidden]\n"
        f"  why   Python finds what lies in the folder of the project first\n"
        f"  next  give it another name"
    )
    raise pytest.UsageError(message)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """In CI what a change may write does not take the gate out; on the command line CI's owner may."""
    manager, config = session.config.pluginmanager, session.config
    plugin = sys.modules.get("pytest_perfgate.plugin")
    if plugin is not None and manager.is_registered(plugin):
        return
    from pytest_perfgate.model.project import with_ci

    words = [*map(str, config.invocation_params.args), *os.environ.get("PYTEST_ADDOPTS", "").split()]
    gated = (
        item.get_closest_marker("perfgate") or "perfgate" in getattr(item, "fixturenames", ()) for item in session.items
    )
    if with_ci(os.environ).get("CI") and not any("no:perfgate" in word for word in words) and any(gated):
        who = "addopts switches the plugin perfgate off" if manager.is_blocked("perfgate") else _TAKEN
        raise pytest.UsageError(
            f"{who}, and this run has gated tests: no limit would be checked  [plugin-hidden]\n"
            "  next  let it be; who runs the command may say '-p no:perfgate' there"
        )


_TAKEN = "a conftest or a plugin takes the plugin perfgate out of the run"
