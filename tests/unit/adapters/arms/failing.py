"""An arm that should not have been made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import ArmSettings


def failure(repo: Path, settings: ArmSettings, revision: str = "HEAD") -> PerfgateError:
    with pytest.raises(PerfgateError) as caught:
        ArmStore(repo, settings).prepare("base", revision)
    return caught.value
