"""What CI says in the environment, as it was before any conftest could speak in its place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLD: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()


def listen(config: pytest.Config) -> None:
    """Keep the environment as it is now."""
    config.stash[_TOLD] = dict(os.environ)


def told(config: pytest.Config) -> Mapping[str, str]:
    """The environment that was kept."""
    return config.stash.get(_TOLD, os.environ)
