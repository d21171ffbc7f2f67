"""The environment of a run, with its place in version control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.ports import Repository


def placed(environment: Callable[[], Environment], repository: Repository) -> Environment:
    """What surrounds this process, and the commit that it runs."""
    return replace(environment(), commit=repository.head(), dirty=repository.dirty())
