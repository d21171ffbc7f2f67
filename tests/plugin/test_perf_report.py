"""Benchmarks of ``triton.testing.perf_report`` under the gate, unedited: on the library, or on a stand-in for its names."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.plugin.projects import QUIET, Project

PLUGINS = (*QUIET, "-p", "pytest_perfgate.perf_report")
STAND_IN = """
    from dataclasses import dataclass

    @dataclass
    class Benchmark:
        x_names: list
        x_vals: list
        line_arg: str
        line_vals: list
        line_names: list
        plot_name: str
        args: dict
        ylabel: str = ""

    @dataclass
    class Mark:
        fn: object
        benchmarks: object

    def perf_report(benchmarks):
        return lambda fn: Mark(fn, benchmarks)

    def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
        raise RuntimeError("0 active drivers")
"""
BENCHMARKS = """
    import triton
    import triton.testing
    from triton.testing import do_bench

    class Leaf:
        grad = 1

    leaf = Leaf()

    def points(name, sizes):
        return triton.testing.Benchmark(
            x_names=["m", "n"], x_vals=sizes, line_arg="provider", line_vals=["ours", "theirs"],
            line_names=["ours", "theirs"], plot_name=name, args={"scale": 3}, ylabel="GB/s",
        )

    @triton.testing.perf_report([points("small", [10, (20, 30)]), points("large", [5000])])
    def product(m, n, scale, provider):
        step = lambda: sum(range(m * n // 10))
        ms, low, high = do_bench(step, quantiles=[0.5, 0.2, 0.8]) if provider == "ours" else do_bench(
            step, 25, 100, None, [0.5, 0.2, 0.8])
        assert 0 < low <= ms <= high < 1000 and scale == 3
        return 1 / ms

    @triton.testing.perf_report(points("gradients", [8]))
    def backward(m, n, scale, provider):
        def step():
            assert leaf.grad is None
            leaf.grad = 1
        times = triton.testing.do_bench(step, grad_to_none=[leaf], return_mode="all")
        assert all(time > 0 for time in times)
        assert triton.testing.do_bench(step, grad_to_none=[leaf], quantiles=[0.5]) > 0

    def test_beside_them(perfgate):
        perfgate(sum, range(100))
"""
CASES = {f"test_product[{point}]": "passed" for point in (
    "small-m=10-n=10-ours", "small-m=10-n=10-theirs", "small-m=20-n=30-ours", "small-m=20-n=30-theirs",
    "large-m=5000-n=5000-ours", "large-m=5000-n=5000-theirs",
)}  # fmt: skip


@pytest.fixture
def suite(project: Project) -> Project:
    """The stand-in is taken where the library is not installed."""
    if find_spec("triton") is None:
        project.write("triton/__init__.py", "")
        project.write("triton/testing.py", STAND_IN)
        project.write("triton/backends.py", "backends = {}")
        project.configure("", 'pythonpath = ["."]')
    project.write("suite.py", BENCHMARKS)
    return project


def test_each_point_of_each_line_is_a_case_with_a_verdict(suite: Project) -> None:
    limits = ("--perfgate-limit", "time <= 10 ms", "-k", "product or beside")
    run = suite.run("suite.py", "--perfgate=quick", *limits, plugins=PLUGINS)
    slow = {name: "failed" for name in CASES if "5000" in name}
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        **CASES, **slow, "test_beside_them": "passed",
    }  # fmt: skip
    assert "BROKEN" in run.says("test_product[large-m=5000-n=5000-ours]")


def test_gradients_are_forgotten_before_each_call_and_a_second_timing_is_a_case_of_its_own(suite: Project) -> None:
    run = suite.run("suite.py", "--perfgate=quick", "-k", "backward", plugins=PLUGINS)
    assert {outcome for outcome, _ in run.tests.values()} == {"passed"}
    assert "test_backward[m=8-n=8-ours]#timing 2" in run.text


def test_off_the_benchmarks_run_once_without_a_device(suite: Project) -> None:
    run = suite.run("suite.py", "--perfgate=off", "-k", "10", plugins=PLUGINS)
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        name: outcome for name, outcome in CASES.items() if "10" in name
    }


def test_fresh_processes_collect_the_same_cases(suite: Project) -> None:
    run = suite.run("suite.py", "--perfgate=full", "-k", "10-theirs", plugins=PLUGINS)
    assert run.outcome("test_product[small-m=10-n=10-theirs]") == "passed"
    assert "2 processes" in run.text or "unbaselined" in run.text
