"""Nothing passes vacuously: each row of the page as a test."""

from __future__ import annotations

from tests.plugin.projects import Project

EMPTY = """
    import pytest

    @pytest.mark.perfgate("time <= 1s")
    def test_never_calls():
        pass

    @pytest.mark.perfgate("time <= 1s")
    def test_asks_and_never_calls(perfgate):
        pass

    @pytest.mark.perfgate("time <= 1s")
    def test_region_never_entered(perfgate):
        perfgate.region()

    @pytest.mark.perfgate("time <= 1s")
    def test_nothing_recorded(perfgate):
        perfgate.record([])

    @pytest.mark.perfgate("time <= 1s")
    def test_zero(perfgate):
        perfgate.record([0.0] * 30)

    @pytest.mark.perfgate("time <= 1s")
    def test_nan(perfgate):
        perfgate.record([float("nan")] * 30)

    @pytest.mark.perfgate("time <= 1s", on="H200*")
    def test_other_device(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("overlap >= 50%")
    def test_metric_never_produced(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time(case=bwd) <= 1s")
    def test_no_such_call(perfgate):
        perfgate(int, name="fwd")

    @pytest.mark.perfgate("slowdown <= 3%")
    def test_new(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_kept(perfgate):
        perfgate(int)
"""
IN_CI = {
    "test_never_calls": ("failed", "NOT MEASURED"),
    "test_asks_and_never_calls": ("failed", "NOT MEASURED"),
    "test_region_never_entered": ("failed", "NOT MEASURED"),
    "test_nothing_recorded": ("failed", "NOT MEASURED"),
    "test_zero": ("failed", "INVALID"),
    "test_nan": ("failed", "INVALID"),
    "test_other_device": ("passed", ""),
    "test_metric_never_produced": ("failed", "NOT MEASURED"),
    "test_no_such_call": ("failed", "NOT MEASURED"),
    "test_new": ("failed", "UNBASELINED"),
    "test_kept": ("passed", ""),
}


def test_what_was_not_measured_fails_in_ci(project: Project) -> None:
    project.write("test_empty.py", EMPTY)
    run = project.run(ci=True)
    seen = {name: (run.outcome(name), word) for name, (_, word) in IN_CI.items() if word in run.says(name)}
    assert seen == IN_CI, run.text
    assert "applied to no case" in run.text
    assert "no call of the test has the name" in run.says("test_no_such_call")


def test_what_was_not_measured_is_counted_locally(project: Project) -> None:
    project.write("test_empty.py", EMPTY)
    run = project.run()
    failed = {name for name, (outcome, _) in run.tests.items() if outcome != "passed"}
    assert failed == {"test_zero", "test_nan"}, run.text
    assert "6 not measured" in run.text
    assert "kept under .perfgate/" in run.text


def test_gate_off_in_ci_fails_and_locally_is_counted(project: Project) -> None:
    project.write("test_off.py", "def test_it(perfgate):\n    assert perfgate(lambda: 7).result == 7\n")
    off = project.run("--perfgate=off", ci=True)
    assert (off.outcome("test_it"), off.code) == ("failed", 1)
    assert "--perfgate=off" in off.says("test_it")
    here = project.run("--perfgate=off")
    assert here.code == 0
    assert "off: 1 not measured" in here.text


def test_quick_in_ci_says_that_it_convicts_nobody(project: Project) -> None:
    project.write(
        "test_q.py", "import pytest\n@pytest.mark.perfgate('time <= 1s')\ndef test_it(perfgate): perfgate(int)\n"
    )
    run = project.run("--perfgate=quick", ci=True)
    assert run.code == 0
    assert "quick mode in CI" in run.text


SOMETIMES = """
    import os, pytest

    @pytest.mark.perfgate("time <= 1s")
    def test_only_measured(perfgate):
        if "PERFGATE_HERE" not in os.environ:
            perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_only_judged(perfgate):
        perfgate(int, name="always")
        if "PERFGATE_HERE" in os.environ:
            perfgate(int, name="sometimes")

    @pytest.mark.perfgate("time <= 1ns")
    @pytest.mark.xfail
    def test_excused(perfgate):
        perfgate.record([5.0] * 30)

    @pytest.mark.perfgate("time <= 1ns")
    @pytest.mark.xfail(strict=True)
    def test_excused_strictly(perfgate):
        perfgate.record([5.0] * 30)

    @pytest.mark.perfgate("time <= 1s")
    @pytest.mark.xfail(strict=True)
    def test_not_failing(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_skipped(perfgate):
        pytest.skip("not today")

    class TestClass:
        @pytest.mark.perfgate("time <= 1s", "time(case=slow) <= 1ns")
        def test_two_calls(self, perfgate):
            perfgate(int, name="fast")
            perfgate(sorted, list(range(100_000)), name="slow")

    def test_same_name_twice(perfgate):
        perfgate(int)
        perfgate(int)
"""
HERE = """
    import os, pytest

    @pytest.fixture(autouse=True)
    def judged_run_only(request, monkeypatch):
        if getattr(request.config.option, "xmlpath", None):
            monkeypatch.setenv("PERFGATE_HERE", "1")
"""


def test_calls_behind_an_if_and_expected_failures(project: Project) -> None:
    project.write("test_some.py", SOMETIMES)
    project.write("conftest.py", HERE)
    run = project.run(ci=True)
    outcomes = {name: outcome for name, (outcome, _) in run.tests.items()}
    assert outcomes == {
        "test_only_measured": "failed",
        "test_only_judged": "failed",
        "test_excused": "skipped",
        "test_excused_strictly": "skipped",
        "test_not_failing": "failed",
        "test_skipped": "skipped",
        "test_two_calls": "failed",
        "test_same_name_twice": "failed",
    }, run.text
    assert "never called in the test itself" in run.says("test_only_measured")
    assert "not while it was measured" in run.says("test_only_judged")
    assert "#slow" in run.says("test_two_calls")
    assert "#fast" not in run.says("test_two_calls")
    assert run.text.count("xfail hides") == 2
    assert "give each a name=" in run.says("test_same_name_twice")
