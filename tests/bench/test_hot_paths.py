"""perfgate's own hot paths, gated by perfgate; the baseline beside them shows what a baseline looks like.

On a machine that never accepted one they are UNBASELINED, which fails nobody's CI.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.stats.inference import signed_rank

LIMITS = ("mfu >= 55%", "slowdown <= 3%", "exposed_comm(stage=stage2_f, rank=*) <= 400us", "bandwidth >= 3.2TB/s")


@pytest.mark.perfgate("slowdown <= 25%")
def test_reading_limits(perfgate) -> None:
    kinds = by_name()
    perfgate(lambda: [parse_limit(text, kinds=kinds) for text in LIMITS])


@pytest.mark.perfgate("slowdown <= 25%")
@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_union_of_intervals(perfgate, rows: int) -> None:
    rng = np.random.default_rng(3)
    starts = rng.integers(0, 10**9, rows)
    ends = starts + rng.integers(1, 10**5, rows)
    perfgate(intervals.union, starts, ends)


@pytest.mark.perfgate("slowdown <= 25%")
def test_exact_signed_rank(perfgate) -> None:
    differences = np.random.default_rng(5).normal(0.01, 0.02, 15)
    perfgate(signed_rank, differences)


@pytest.mark.perfgate("slowdown <= 25%")
def test_reading_a_baseline_file(perfgate, tmp_path: Path) -> None:
    from tests.bench.baseline_folder import one_device

    store = one_device(tmp_path, cases=1000)
    perfgate(lambda: store.read_all("host-bench"))
