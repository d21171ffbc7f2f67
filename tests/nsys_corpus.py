"""Where the real exports are, and how a test inspects one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.model.metric import Analysis

CORPUS = Path(os.environ.get("PERFGATE_CORPUS", "")) / "nsys"
needs_corpus = pytest.mark.skipif("PERFGATE_CORPUS" not in os.environ, reason="PERFGATE_CORPUS names no corpus")


def inspect(*paths: Path, **options: str) -> Analysis:
    return Nsys(read_nsys).inspect(paths, options)


def table(analysis: Analysis, view: str, number: int = 0) -> list[dict[str, object]]:
    """A view's table as rows by the names of its columns."""
    tables = [block for block in analysis.views[view]().blocks if hasattr(block, "columns")]
    heads = [column.name for column in tables[number].columns]
    return [dict(zip(heads, row)) for row in tables[number].rows]
