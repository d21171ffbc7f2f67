"""The environment as it was before any conftest ran."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_perfgate.plugin.options import STARTED_WITH

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest


def told(config: pytest.Config) -> Mapping[str, str]:
    """What the process was started with, and what came to it since."""
    stash = getattr(config, "stash", None)
    return {**os.environ, **(stash.get(STARTED_WITH, {}) if stash is not None else {})}
