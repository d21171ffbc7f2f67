"""A suite of pytest-benchmark under the gate, unedited."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.plugin.projects import Project

SUITE = """
    import itertools
    import time
    import pytest

    def test_call(benchmark):
        assert benchmark(sorted, [3, 1, 2], reverse=True) == [3, 2, 1]
        assert not benchmark.disabled and benchmark.enabled
        assert 0 < benchmark.stats["median"] < 1

    @pytest.mark.benchmark(group="marked", min_rounds=3, warmup=True)
    @pytest.mark.parametrize("size", [3])
    def test_names(benchmark, size):
        assert benchmark.group == "marked"
        assert benchmark.name == "test_names[3]"
        assert benchmark.fullname.endswith("::test_names[3]")
        assert (benchmark.param, benchmark.params) == ("3", {"size": 3})
        benchmark.group = "other"
        benchmark.extra_info["size"] = size
        assert benchmark.pedantic(max, args=([1, 5, 2],), rounds=60, iterations=7, warmup_rounds=1) == 5
        assert benchmark.stats["rounds"] >= 60 and benchmark.stats.iterations % 7 == 0

    def test_figures(benchmark):
        pauses = itertools.cycle([0.0005, 0.003])
        benchmark.pedantic(time.sleep, setup=lambda: ((next(pauses),), {}), rounds=5)
        stats = benchmark.stats.stats
        assert benchmark.stats["min"] == min(stats.data) and benchmark.stats["max"] == max(stats.data)
        assert 0.0005 <= stats.min < stats.mean < stats.max
        assert stats.max >= 0.003 and stats.stddev > 0
        assert stats.mean == pytest.approx(sum(stats.data) / len(stats.data))
        assert benchmark.stats["rounds"] == len(stats.data) >= 2
        assert benchmark.stats.get("nothing", 7) == 7
        assert benchmark.stats.as_dict()["stats"]["ops"] == pytest.approx(1 / stats.mean)
        assert benchmark.stats and benchmark.stats.iterations == 1

    def test_setup_and_teardown(benchmark):
        made, gone = [], []
        def setup():
            made.append([3, 2, 1])
            return (made[-1],), {"reverse": False}
        assert benchmark.pedantic(sorted, setup=setup, teardown=lambda rows, reverse: gone.append(rows), rounds=4) == [1, 2, 3]
        assert made and gone == made

    def test_mistakes(benchmark):
        for wrong in ({"rounds": 0}, {"iterations": 2, "setup": dict}, {"warmup_rounds": -1}):
            with pytest.raises(ValueError):
                benchmark.pedantic(int, **wrong)
        assert benchmark.stats is None
        benchmark(int)
        with pytest.raises(RuntimeError, match="already"):
            benchmark(int)

    def test_both(benchmark):
        benchmark.pedantic(int, args=("1",), setup=lambda: (("2",), {}))

    def test_weave(benchmark):
        benchmark.weave("os.getcwd")

    @pytest.mark.codspeed_benchmark
    @pytest.mark.parametrize("size", [3])
    def test_whole(size, tmp_path):
        assert sorted(range(size)) == [0, 1, 2] and tmp_path.exists()

    def test_by_their_other_name(codspeed_benchmark):
        @codspeed_benchmark
        def run():
            return sum(range(10))
        assert run == 45

    def test_coroutine(benchmark):
        async def run():
            return 1
        benchmark(run)

    def test_without_a_benchmark():
        raise AssertionError("--benchmark-only leaves it out")

    def test_slow(benchmark):
        benchmark(sorted, list(range(100_000)))
"""
THEIR_CONFTEST = """
    def pytest_benchmark_update_json(config, benchmarks, output_json):
        raise AssertionError("nobody calls it")
"""
PLUGINS = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "pytest_perfgate.compat")


def test_an_existing_suite_runs_under_the_gate(project: Project) -> None:
    project.configure(
        'rounds = 1\n[[tool.perfgate.tests]]\npattern = "*::test_slow"\nlimits = "time <= 1ns"\n'
        '[[tool.perfgate.tests]]\npattern = "*::test_figures"\nbudget = "100 ms"\n'
        '[tool.perfgate.policy]\nmissing = "record"',
        'addopts = "--benchmark-columns=min,max --benchmark-disable-gc --benchmark-only --benchmark-json=out/figures.json '
        '--benchmark-compare-fail=mean:400% --strict-config --strict-markers"\n'
        'filterwarnings = ["error"]\njunit_family = "xunit2"\nfaulthandler_timeout = 30\nrequired_plugins = "pytest-xdist"',
    )
    project.write("test_theirs.py", SUITE)
    project.write("conftest.py", THEIR_CONFTEST)
    run = project.run(ci=True, plugins=PLUGINS, fresh=True)  # a warning of what was imported before is an error here
    passing = ("call", "names[3]", "figures", "setup_and_teardown", "mistakes", "whole[3]", "by_their_other_name")
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        **{f"test_{name}": "passed" for name in passing},
        "test_both": "failed",
        "test_weave": "failed",
        "test_coroutine": "failed",
        "test_slow": "failed",
        "test_without_a_benchmark": "skipped",
    }, run.text
    assert "benchmark(function, ...)" in run.says("test_weave")
    assert "a coroutine that was never run" in run.says("test_coroutine")
    assert float(run.properties["test_whole[3]"]["perfgate.time_ns"]) > 0
    assert "given as well" in run.says("test_both")
    assert "BROKEN" in run.says("test_slow")
    assert run.properties["test_names[3]"]["benchmark.group"] == "other"
    assert run.properties["test_names[3]"]["benchmark.extra_info.size"] == "3"
    assert "no effect: --benchmark-columns (perfgate writes its own report)" in run.text
    assert "--benchmark-compare-fail mean:400%: held as slowdown <= 400%" in run.text
    written = json.loads((project.root / "out" / "figures.json").read_text(encoding="utf-8"))
    assert {"test_whole[3]", "test_by_their_other_name"} <= {each["name"] for each in written["benchmarks"]}
    figures = {each["name"]: each for each in written["benchmarks"]}
    assert figures["test_names[3]"]["group"] == "other"
    assert figures["test_names[3]"]["stats"]["mean"] > 0
    assert "test_weave" not in figures


UNGUARDED = """
    def test_guarded(benchmark):
        assert benchmark(int) == 0
        if benchmark.enabled:
            assert benchmark.stats["min"] > 0
        assert benchmark.stats is None
        assert benchmark.disabled

    def test_unguarded(benchmark):
        assert benchmark.pedantic(int, rounds=3) == 0
        assert benchmark.stats.stats.mean < 1
"""


def test_a_figure_that_was_not_measured_is_an_error_and_no_figure(project: Project) -> None:
    project.write("test_theirs.py", UNGUARDED)
    run = project.run("--benchmark-disable", plugins=PLUGINS)
    assert run.outcome("test_guarded") == "passed", run.text
    assert run.outcome("test_unguarded") == "failed"
    assert "NoneType" in run.says("test_unguarded")
    assert "--benchmark-disable: nothing was measured" in run.text


FALLBACK = """
    import pytest

    @pytest.fixture
    def benchmark():
        return lambda function, *words: function(*words)
"""


def test_a_fallback_fixture_of_a_conftest_is_told_and_fails_in_ci(project: Project) -> None:
    project.write("conftest.py", FALLBACK)
    project.write("test_it.py", "def test_wide(benchmark):\n    assert benchmark(len, 'wide') == 4\n")
    run = project.run("-p", "pytest_perfgate.compat", ci=True)
    assert run.code == 1, run.text
    assert run.outcome("test_wide") == "failed"
    text = " ".join(run.says("test_wide").split())
    assert "NOT MEASURED test_wide" in text
    assert "its fixture 'benchmark' is the one of conftest.py, not that of perfgate" in text
    assert (
        "next rename the fixture in conftest.py, or let it take the one that it hides: def benchmark(benchmark)" in text
    )
    here = project.run("-p", "pytest_perfgate.compat")
    assert (here.code, here.outcome("test_wide")) == (0, "passed"), here.text
    assert "is the one of conftest.py" in " ".join(here.text.split())
    project.write(
        "conftest.py", FALLBACK.replace("benchmark()", "benchmark(benchmark)").replace("lambda", "benchmark #")
    )
    wrapped = project.run("-p", "pytest_perfgate.compat")
    assert "not measured" not in wrapped.text, "one that hands ours on is ours"


def test_a_suite_that_runs_without_the_option_names_it(project: Project) -> None:
    pytest.importorskip("pytest_benchmark")
    project.write("test_it.py", "def test_wide(benchmark):\n    assert benchmark(len, 'wide') == 4\n")
    named = "next  pytest -p pytest_perfgate.compat"
    run = project.run(plugins=("-p", "no:cov"))
    assert run.code == 0, run.text
    assert "1 test that uses pytest-benchmark" in run.text
    assert named in run.text
    silent = project.run("--benchmark-disable", plugins=("-p", "no:cov"))
    assert silent.code == 0, silent.text
    assert named not in silent.text


MARKED = """
    import pytest

    pytestmark = pytest.mark.benchmark(group="all")

    @pytest.mark.benchmark
    def test_only_marked():
        pass

    @pytest.mark.benchmark
    def test_takes_it(benchmark):
        benchmark(int)

    def test_of_the_module():
        pass
"""


def test_a_mark_that_measures_nothing_is_named_once(project: Project) -> None:
    project.write("test_it.py", MARKED)
    line = "1 test with the mark benchmark and without the fixture: not measured"
    assert project.run(plugins=PLUGINS).text.count(line) == (0 if find_spec("pytest_codspeed") else 1)
    assert line not in project.run("-k", "takes_it", plugins=PLUGINS).text
