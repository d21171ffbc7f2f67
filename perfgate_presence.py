"""Refuses a run in which the project hides the plugin or switches it off.

It lies beside the package, since a folder of the project can hide all that is in the package.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def shadowing_place(name: str, home: Path) -> str:
    """Return the folder or file that Python imports under this name instead of the package in ``home``; "" if none."""
    spec = find_spec(name)
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec is not None else []
    return places[0] if places and Path(places[0]).resolve().parent != home.resolve() else ""


place = shadowing_place("pytest_perfgate", Path(__file__).resolve().parent)
if place and "PERFGATE_CHANNEL" not in os.environ:  # a child may run in a checkout of perfgate itself
    message = (
        f"{place} hides the installed plugin pytest_perfgate: no limit would be checked  [plugin-hidden]\n"
        f"  why   Python finds what lies in the folder of the project first\n"
        f"  next  rename it"
    )
    raise pytest.UsageError(message)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Refuse gated tests without the plugin in CI; only the command line may omit it, since no change writes that."""
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
        blocked = "addopts switches the plugin perfgate off"
        removed = "a conftest or a plugin removes the plugin perfgate from the run"
        raise pytest.UsageError(
            f"{blocked if manager.is_blocked('perfgate') else removed}, and this run has gated tests: "
            "no limit would be checked  [plugin-hidden]\n"
            "  next  remove that; to run without perfgate on purpose, give '-p no:perfgate' on the command line"
        )
