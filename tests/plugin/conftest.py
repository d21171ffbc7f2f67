from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.projects import Project
from tests.plugin.shared import Shared


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.getbasetemp())
