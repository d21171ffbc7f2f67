"""The environment as it was before any conftest ran."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_perfgate.plugin.options import STARTED_WITH

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

_SPEAKS = ("CI", "GITHUB_", "GIT_", "BITBUCKET_", "BUILD", "CHANGE_", "DRONE_", "SYSTEM_", "TRAVIS_")
"""How names begin that say what judges: one that comes later is no word of CI's."""


def told(config: pytest.Config) -> Mapping[str, str]:
    """What the process was started with, and what came to it since; of CI and of git nothing comes later."""
    stash = getattr(config, "stash", None)
    before = stash.get(STARTED_WITH, None) if stash is not None else None
    if before is None:
        return dict(os.environ)
    return {**{name: text for name, text in os.environ.items() if not name.startswith(_SPEAKS)}, **before}
