"""Where real captures lie; tests that need them skip with the reason where they do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def corpus(name: str) -> Path:
    root = os.environ.get("PERFGATE_CORPUS", "")
    if not root:
        pytest.skip("PERFGATE_CORPUS is not set: real captures are not part of the repository")
    path = Path(root) / name
    if not path.exists():
        pytest.skip(f"{name} is not in this corpus")
    return path
