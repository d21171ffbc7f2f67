"""Refuses a run in which a folder of the project hides the plugin; so it lies beside the package, and not in it."""

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
