from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.kineto import read_kineto
from pytest_perfgate.core.analysis.trace.survey import AnalysisSettings, survey
from pytest_perfgate.wiring import built_ins

CORPUS = os.environ.get("PERFGATE_CORPUS", "")


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS:
        pytest.skip("PERFGATE_CORPUS is not set: the corpus of traces is not here")
    return Path(CORPUS)


@lru_cache(maxsize=64)
def surveyed(path: Path):
    return tuple(survey(trace, AnalysisSettings()) for trace in read_kineto(path))


@pytest.fixture
def look(corpus: Path):
    """The survey of one trace of the corpus."""
    return lambda name: surveyed(corpus / "torch" / f"{name}.json.gz")[0]


@pytest.fixture(scope="module")
def kineto():
    return next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto").inspector
