"""Tests of core/analysis/tracelens/tables."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import pytest

from pytest_perfgate.core.analysis.tracelens.tables import reference_tables
from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import seen
from tests.kineto_operators import zoo

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


def test_the_reference_s_sheets_of_the_zoo(tmp_path, kineto):
    sheets = reference_tables(seen(tmp_path / "t.json", zoo()))
    product = next(row for row in sheets["GEMM"] if row["name"] == "aten::mm")
    assert (product["param: M"], product["param: N"], product["param: K"]) == (128, 256, 64)
    assert product["GFLOPS_first"] == pytest.approx(2 * 128 * 256 * 64 / 1e9)
    for sheet in ("CONV_fwd", "SDPA_fwd", "Normalization", "UnaryElementwise", "BinaryElementwise", "Reduce_fwd"):
        assert sheets[sheet], sheet
    whole = kineto.inspect([tmp_path / "t.json"], {"compat": "tracelens"})
    assert set(whole.views) == {"tracelens"}
    assert whole.metrics.find("op_time", (("op", "aten::mm"),))[0].value == pytest.approx(8_000)
    assert render_text(whole.views["tracelens"]())
