"""A suite of pytest-benchmark under the gate, unedited."""

from __future__ import annotations

from tests.plugin.projects import Project

SUITE = """
    import pytest

    def test_call(benchmark):
        assert benchmark(sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
        assert 0 < benchmark.stats["median"] < 1

    @pytest.mark.benchmark(group="pedantic", min_rounds=3)
    def test_pedantic(benchmark):
        benchmark.group = "other"
        benchmark.extra_info["size"] = 3
        assert benchmark.pedantic(max, args=([1, 5, 2],), rounds=3, iterations=2, warmup_rounds=1) == 5

    def test_setup(benchmark):
        made = []
        def setup():
            made.append(1)
            return ([3, 2, 1],), {"reverse": False}
        assert benchmark.pedantic(sorted, setup=setup, rounds=4) == [1, 2, 3]
        assert len(made) > 1

    def test_weave(benchmark):
        benchmark.weave("os.getcwd")

    def test_slow(benchmark):
        benchmark(sorted, list(range(100_000)))
"""


def test_an_existing_suite_runs_under_the_gate(project: Project) -> None:
    project.configure(
        '[[tool.perfgate.tests]]\npattern = "*::test_slow"\nlimits = "time <= 1ns"',
        'addopts = "--benchmark-columns=min,max --benchmark-disable-gc"',
    )
    project.write("test_theirs.py", SUITE)
    run = project.run("-p", "pytest_perfgate.compat", plugins=("-p", "no:randomly", "-p", "no:cacheprovider"))
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_call": "passed",
        "test_pedantic": "passed",
        "test_setup": "passed",
        "test_weave": "failed",
        "test_slow": "failed",
    }, run.text
    assert "benchmark(function, ...)" in run.says("test_weave")
    assert "BROKEN" in run.says("test_slow")
