"""Figures beside time: a test's own, and those that perfgate takes where a limit asks."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.records import read_record
from pytest_perfgate.cli.output import plain
from tests.plugin.projects import Project

OWN = """
    import pytest

    @pytest.mark.perfgate("loss <= 0.1", "time <= 1s", "metric(sent) == 4096 B")
    def test_beside_a_call(perfgate):
        view = perfgate(lambda: sum(range(100)))
        perfgate.metric("loss", [0.05, 0.06, 0.055])
        perfgate.metric("sent", 4096, unit="B", exact=True)

    @pytest.mark.perfgate("tokens >= 300 M/s")
    def test_alone(perfgate):
        perfgate.metric("tokens", [250, 250], unit="Mtokens/s", better="higher")

    @pytest.mark.perfgate("loss <= 0.1")
    def test_of_one_call_of_two(perfgate):
        perfgate(int, name="first")
        perfgate.metric("loss", 0.2)
        perfgate(int, name="second")

    @pytest.mark.perfgate("time <= 1s")
    def test_limit_of_the_call(perfgate):
        perfgate(int, limits=["acc >= 99%"])
        perfgate.metric("acc", 97, unit="%", better="higher")

    @pytest.mark.perfgate("loss <= 5 ms")
    def test_another_unit(perfgate):
        perfgate.metric("loss", 1)

    @pytest.mark.perfgate("losss <= 1")
    def test_misspelt(perfgate):
        perfgate.metric("loss", 1)

    @pytest.mark.perfgate("metric(odd) <= 1")
    def test_never_the_same(perfgate):
        import os
        perfgate.metric("odd", 1 + os.getpid(), exact=True)

    @pytest.mark.perfgate("loss <= 0.1")
    def test_not_taken(perfgate):
        perfgate(int)
"""


def records(project: Project) -> list[dict]:
    """The cases of the last record."""
    (path,) = sorted((project.root / ".perfgate" / "records").glob("*.json"))[-1:]
    cases: list[dict] = plain(read_record(path))["cases"]
    return cases


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_own_figures_are_judged_and_reported(project: Project, mode: str) -> None:
    project.write("test_own.py", OWN)
    run = project.run(f"--perfgate={mode}")
    outcomes = {name: outcome for name, (outcome, _) in run.tests.items()}
    assert outcomes == {
        "test_beside_a_call": "passed",
        "test_alone": "failed",
        "test_of_one_call_of_two": "failed",
        "test_limit_of_the_call": "failed",
        "test_another_unit": "failed",
        "test_misspelt": "error",
        "test_never_the_same": "failed",
        "test_not_taken": "passed",
    }
    assert "limit-unknown-metric" in run.says("test_misspelt")
    assert "traceback entries" not in run.text
    assert ("rounds-differ" in run.says("test_never_the_same")) is (mode == "full")
    assert run.properties["test_beside_a_call"]["perfgate.loss"] == "0.055"
    assert run.properties["test_beside_a_call"]["perfgate.sent_bytes"] == "4096"
    by_name = {case["key"]["nodeid"].partition("::")[2]: case for case in records(project)}
    assert by_name["test_not_taken"]["verdicts"][0]["outcome"] == "not measured"


def test_where_nothing_is_measured_a_figure_is_checked_and_left(project: Project) -> None:
    project.write(
        "test_own.py",
        """
        def test_wrong(perfgate):
            perfgate.metric("time", 1)

        def test_right(perfgate):
            perfgate.metric("loss", 1)
        """,
    )
    run = project.run("--perfgate=off")
    assert (run.outcome("test_wrong"), run.outcome("test_right")) == ("failed", "passed")


PASSES = """
    import time
    import numpy as np
    import pytest

    ROWS = np.ones(200_000)
    compiled = {}

    def compiling():
        if not compiled:
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                pass
            compiled["once"] = True
        return sum(range(100))

    @pytest.mark.perfgate("peak_memory <= 1.7 MB", "peak_memory(by=traced) >= 1.6 MB")
    def test_fits(perfgate):
        perfgate(lambda: ROWS * 2)

    @pytest.mark.perfgate("peak_memory <= 1.7 MB")
    def test_does_not_fit(perfgate):
        perfgate(lambda: np.concatenate([ROWS, ROWS[:20_000]]))

    @pytest.mark.perfgate("time <= 1s")
    def test_limit_of_the_call(perfgate):
        perfgate(lambda: ROWS * 2, limits=["peak_memory <= 1 kB"])

    @pytest.mark.perfgate("time <= 1s")
    def test_nobody_asks(perfgate):
        perfgate(lambda: ROWS * 2)

    @pytest.mark.perfgate("compile_time <= 60 s", "compile_time >= 25 ms")
    def test_compiles(perfgate):
        perfgate(compiling)

    @pytest.mark.perfgate("compile_time >= 25 ms")
    def test_compiles_the_same(perfgate):
        perfgate(compiling)
"""


def test_passes_beside_the_time_are_judged(project: Project) -> None:
    project.write("test_passes.py", PASSES)
    run = project.run("--perfgate=full")
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_fits": "passed",
        "test_does_not_fit": "failed",
        "test_limit_of_the_call": "failed",
        "test_nobody_asks": "passed",
        "test_compiles": "passed",
        "test_compiles_the_same": "passed",
    }
    assert float(run.properties["test_fits"]["perfgate.peak_memory_bytes"]) == pytest.approx(1.6e6, rel=0.001)
    assert "perfgate.peak_memory_bytes" not in run.properties["test_nobody_asks"]


def test_a_cache_that_the_project_chose_and_filled_is_not_cold(project: Project) -> None:
    project.write("test_passes.py", PASSES)
    project.write("cache/output.o", "")
    project.write("conftest.py", "import os\nos.environ['NUMBA_CACHE_DIR'] = os.path.abspath('cache')\n")
    project.run("--perfgate=full", "-k", "compiles_the_same")
    (verdict,) = records(project)[0]["verdicts"]
    assert (verdict["outcome"], "NUMBA_CACHE_DIR" in verdict["sentence"]) == ("not measured", True)


def test_a_first_call_in_a_warm_process_is_not_measured(project: Project) -> None:
    project.write("test_passes.py", PASSES)
    project.run("--perfgate=quick", "-k", "compiles", "--perfgate-metric=peak_memory")
    for case in records(project):
        assert {verdict["outcome"] for verdict in case["verdicts"]} == {"not measured"}
        assert "peak_memory" in {metric["name"] for metric in case["measurement"]["metrics"]["metrics"]}


TAILS = """
    import itertools
    import pytest

    every = itertools.count()

    @pytest.mark.perfgate("time(q=99%) <= 1 s", "time(stat=min) <= 1 s", "time <= 1 s")
    def test_tail(perfgate):
        perfgate(lambda: sum(range(100)))

    @pytest.mark.perfgate("time(q=99%) <= 150 us")
    def test_one_in_twenty(perfgate):
        perfgate(lambda: sum(range(60_000 if next(every) % 20 == 0 else 1_000)))

    @pytest.mark.perfgate("time(q=99%) <= 2 ns")
    def test_too_few(perfgate):
        perfgate.record([1.0] * 298)

    @pytest.mark.perfgate("time(q=99%) <= 2 ns")
    def test_enough(perfgate):
        perfgate.record([1.0] * 299)
"""


def test_a_tail_is_judged_by_calls_one_by_one(project: Project) -> None:
    project.write("test_tails.py", TAILS)
    run = project.run("--perfgate=quick")
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_tail": "passed",
        "test_one_in_twenty": "failed",
        "test_too_few": "passed",
        "test_enough": "passed",
    }
    properties = run.properties["test_tail"]
    assert float(properties["perfgate.time(stat=min)_ns"]) <= float(properties["perfgate.time_ns"])
    assert float(properties["perfgate.time_ns"]) <= float(properties["perfgate.time(q=99%)_ns"])
    by_name = {case["key"]["nodeid"].partition("::")[2]: case for case in records(project)}
    assert by_name["test_too_few"]["verdicts"][0]["outcome"] == "not measured"
    assert by_name["test_enough"]["verdicts"][0]["outcome"] == "passed"


RECORDED = """
    import pytest

    @pytest.mark.perfgate("bandwidth >= 800 GB/s")
    def test_rates(perfgate):
        view = perfgate.record([812, 815, 820, 819, 818, 817], "GB/s")
        assert not perfgate.measures or view.bandwidth == 817.5e9

    @pytest.mark.perfgate("throughput <= 12 k/s")
    def test_items(perfgate):
        perfgate.record([13, 13], "Mtokens/s")

    @pytest.mark.perfgate("launches <= 12")
    def test_counts(perfgate):
        perfgate.record([12, 12], "count", name="launches")

    @pytest.mark.perfgate("launches <= 12")
    def test_nobody_knows_of_what(perfgate):
        perfgate.record([12, 12], "count")
"""


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_rates_and_counts_of_elsewhere(project: Project, mode: str) -> None:
    project.write("test_recorded.py", RECORDED)
    run = project.run(f"--perfgate={mode}")
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_rates": "passed",
        "test_items": "failed",
        "test_counts": "passed",
        "test_nobody_knows_of_what": "failed",
    }


EXTRA = """
    import pytest

    @pytest.mark.perfgate("tokens <= 3", "time <= 1 s")
    def test_more(benchmark):
        benchmark(sum, range(100))
        benchmark.extra_info["tokens"] = 4
        benchmark.extra_info["host"] = "a name"

    @pytest.mark.perfgate("time <= 1 s")
    def test_nobody_asks(benchmark):
        benchmark(sum, range(100))
        benchmark.extra_info["tokens"] = 4
"""


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_extra_info_is_a_figure_where_a_limit_names_it(project: Project, mode: str) -> None:
    project.write("test_extra.py", EXTRA)
    run = project.run(f"--perfgate={mode}", "-p", "pytest_perfgate.compat")
    assert (run.outcome("test_more"), run.outcome("test_nobody_asks")) == ("failed", "passed")
    assert run.properties["test_more"]["perfgate.tokens"] == "4"
    assert "perfgate.tokens" not in run.properties["test_nobody_asks"]
