"""Tests of ci/bench/host_timing."""

from __future__ import annotations

import pytest

from ci.bench.host_timing import ours, theirs


def test_a_call_is_timed_by_our_loop_and_by_that_of_pytest_benchmark() -> None:
    assert ours(100) > 0
    pytest.importorskip("pytest_benchmark")
    assert theirs(10) > 0
