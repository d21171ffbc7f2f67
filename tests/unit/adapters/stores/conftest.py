from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.records import Records


@pytest.fixture
def store(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path, devices=("NVIDIA-*",))


@pytest.fixture
def file(store: Baselines) -> Path:
    path = store.path("NVIDIA-H200", "tests/test_k.py")
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)
