"""The environment as it was before any conftest ran: what CI says of a run is not the change's to rewrite."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLD = pytest.StashKey["Mapping[str, str]"]()


def remember(config: pytest.Config) -> None:
    """Keep what the process was started with."""
    config.stash[_TOLD] = dict(os.environ)


def told(config: pytest.Config) -> Mapping[str, str]:
    """What the process was started with, and what came to it since."""
    stash = getattr(config, "stash", None)
    return {**os.environ, **(stash.get(_TOLD, {}) if stash is not None else {})}
