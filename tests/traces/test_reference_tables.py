"""The compatible mode against the reference's own tables, to a millionth."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import pytest

from pytest_perfgate.core.analysis.tracelens.tables import reference_tables

TOLERANCE = 1e-6
TRACES = (
    "bert_small_h100",
    "bert_small_mi300",
    "gpu_only_mi210",
    "normalization_mi300",
    "torch_compile_mi300",
    "vit_h100",
    "vit_mi300",
)
LEFT_OUT = {"short_kernel_histogram", "short_kernels_summary"}


def expected(folder: Path):
    csv.field_size_limit(2**30)
    for file in sorted(folder.glob("*.csv")):
        if file.stem not in LEFT_OUT:
            with file.open(encoding="utf-8", newline="") as text:
                yield file.stem, list(csv.DictReader(text))


def same(ours, theirs: str) -> bool:
    if theirs == "":
        return ours is None or ours == "" or (isinstance(ours, float) and math.isnan(ours))
    if isinstance(ours, bool) or not isinstance(ours, (int, float)):
        return str(ours) == theirs
    return abs(ours - float(theirs)) <= TOLERANCE * max(abs(float(theirs)), 1e-12)


@pytest.mark.parametrize("name", TRACES)
def test_every_cell_of_every_table_is_the_reference_s(look, corpus, name):
    ours = reference_tables(look(name))
    cells = 0
    for table, rows in expected(corpus / "expected" / name):
        assert len(ours[table]) == len(rows), table
        for at, (mine, theirs) in enumerate(zip(ours[table], rows)):
            for column, cell in theirs.items():
                assert same(mine.get(column), cell), f"{table}[{at}].{column}: {mine.get(column)!r} is not {cell!r}"
                cells += 1
    assert cells > 50


def test_no_reference_table_is_left_uncompared(corpus):
    folders = {p.name for p in (corpus / "expected").iterdir()} - {"dlrm_8ranks"}
    assert folders == set(TRACES)
    assert os.listdir(corpus / "expected" / "dlrm_8ranks")
