"""Nothing passes vacuously: rows of the page as tests; many of them look at the same run."""

from __future__ import annotations

import re

import pytest

from tests.plugin.projects import Project, Run, failing
from tests.plugin.rows import LOSING, ROWS
from tests.plugin.shared import Shared


def rows(project: Project, *, ci: bool) -> Run:
    project.write("test_rows.py", ROWS)
    project.write("conftest.py", LOSING)
    return project.run(ci=ci)


@pytest.fixture
def in_ci(shared: Shared) -> Run:
    return shared("rows-in-ci", lambda project: rows(project, ci=True))


@pytest.fixture
def here(shared: Shared) -> Run:
    return shared("rows-here", lambda project: rows(project, ci=False))


def test_what_is_well_passes(in_ci: Run, here: Run) -> None:
    assert in_ci.outcome("test_kept") == here.outcome("test_kept") == "passed", in_ci.text


@pytest.mark.parametrize("test", ["test_never_asks", "test_never_calls"])
def test_a_marker_whose_test_never_calls_the_fixture(in_ci: Run, here: Run, test: str) -> None:
    failing(in_ci, test, "NOT MEASURED")
    takes = "take the fixture: def test_never_asks(perfgate), and call perfgate(fn)"
    assert (takes in in_ci.says(test)) is (test == "test_never_asks")
    assert here.outcome(test) == "passed"
    assert "not measured" in here.text


def test_a_test_that_asks_for_the_fixture_while_it_runs(in_ci: Run, here: Run) -> None:
    failing(in_ci, "test_asks_late", "NOT MEASURED", "while it ran, after the measuring")
    assert here.outcome("test_asks_late") == "passed"


def test_a_call_behind_an_if(in_ci: Run, here: Run) -> None:
    failing(in_ci, "test_only_measured", "never called in the test itself")
    failing(in_ci, "test_only_judged", "#sometimes", "not in the measuring process")
    assert here.outcome("test_only_measured") == "passed"
    assert re.search(
        r"^  also  \d+ more cases?: [^:]*\btest_only_measured\b|^NOT MEASURED  test_only_m", here.text, re.MULTILINE
    )


def test_a_call_that_raises_and_is_caught(in_ci: Run, here: Run) -> None:
    caught = "its call raised ValueError: invalid literal for int() with base 10: 'odd', and the test caught that"
    failing(in_ci, "test_caught", "NOT MEASURED", *caught.split())
    failing(
        in_ci, "test_caught_when_checked", "#wrong", "check= returned False", "its region raised OSError: no device,"
    )
    assert "#right" not in in_ci.says("test_caught_when_checked")
    now_and_then = "its region raised ValueError: the third, and the test caught that"
    failing(in_ci, "test_caught_now_and_then", "NOT MEASURED", *now_and_then.split())
    assert "test_caught_now_and_then#a" in here.text
    assert here.outcome("test_caught") == here.outcome("test_caught_when_checked") == "passed"


def test_calls_that_differ_between_rounds(in_ci: Run) -> None:
    failing(in_ci, "test_in_some_rounds", "INVALID", "#sometimes", "measured in 1 of 2 rounds", "[rounds-differ]")
    assert "#always" not in in_ci.says("test_in_some_rounds")


@pytest.mark.parametrize(("test", "named"), [("limited_later", "limits="), ("with_other_work", "work=")])
def test_a_region_whose_later_entries_bring_something_else(in_ci: Run, here: Run, test: str, named: str) -> None:
    for run in (in_ci, here):
        failing(run, f"test_region_{test}", "is entered again with", named)


def test_a_region_that_is_never_entered(in_ci: Run, here: Run) -> None:
    failing(in_ci, "test_region_never_entered", "NOT MEASURED")
    failing(in_ci, "test_nothing_recorded", "NOT MEASURED", "nothing was recorded", "give record() times above zero")
    assert in_ci.text.count("nothing was recorded") == 1, "pytest's list at the end has the first line of a block"
    assert "FAILED test_rows.py::test_nothing_recorded - Failed: NOT MEASURED" in in_ci.text
    assert here.outcome("test_region_never_entered") == here.outcome("test_nothing_recorded") == "passed"


@pytest.mark.parametrize(("test", "message"), [("test_zero", "reads 0.0 ns"), ("test_nan", "30 of 30 samples")])
def test_zero_and_nan_timings(in_ci: Run, here: Run, test: str, message: str) -> None:
    for run in (in_ci, here):
        failing(run, test, "INVALID", message, "[bad-timing]")


def test_all_samples_discarded(in_ci: Run, here: Run) -> None:
    for run in (in_ci, here):
        failing(run, "test_discarded", "INVALID", "every sample of process 1 was discarded: 7 x throttled")


def test_a_metric_that_nothing_produced(in_ci: Run, here: Run) -> None:
    failing(in_ci, "test_metric_never_produced", "NOT MEASURED", "overlap", "capture")
    assert here.outcome("test_metric_never_produced") == "passed"


def test_a_scope_that_names_no_call(in_ci: Run, here: Run) -> None:
    for run in (in_ci, here):
        failing(run, "test_no_such_call", "NOT MEASURED", "case=bwd names no call of the test; did you mean 'fwd'?")
        failing(run, "test_no_such_call_of_the_call", "the same reason as test_rows.py::test_no_such_call,")


def test_on_that_matches_no_device(in_ci: Run, here: Run) -> None:
    for run in (in_ci, here):
        assert run.outcome("test_other_device") == "passed"
        assert "time <= 1s (on H200*) applied to no case of this run" in run.text


def test_a_new_test(in_ci: Run, here: Run) -> None:
    failing(in_ci, "test_new", "UNBASELINED")
    assert here.outcome("test_new") == "passed"
    assert "; 2 first times stored under .perfgate/ for the next run" in here.text


def test_xfail_on_a_gated_test(in_ci: Run) -> None:
    assert in_ci.outcome("test_excused") == in_ci.outcome("test_excused_strictly") == "skipped"
    assert in_ci.outcome("test_not_failing") == "failed"
    hidden = sorted(line for line in in_ci.text.splitlines() if line.startswith("xfail hides"))
    names = ("test_rows.py::test_excused", "test_rows.py::test_excused_strictly")
    assert hidden == [f"xfail hides  broken: {name}" for name in names]


def test_a_skipped_test_is_counted_and_two_calls_are_distinct_names(in_ci: Run) -> None:
    assert in_ci.outcome("test_skipped") == "skipped"
    failing(in_ci, "test_two_calls", "#slow", "BROKEN")
    assert "#fast" not in in_ci.says("test_two_calls")
    failing(in_ci, "test_same_name_twice", "give each a name=")


DISTRIBUTED = """
    import pytest

    @pytest.mark.perfgate("time <= 1ns")
    @pytest.mark.xfail
    def test_excused(perfgate):
        perfgate.record([5.0] * 30)

    @pytest.mark.perfgate("time <= 1ns")
    def test_bad(perfgate):
        perfgate.record([7.0] * 30)

    @pytest.mark.perfgate("time <= 1s")
    def test_never_calls(perfgate):
        pass

    @pytest.mark.perfgate("time <= 1s")
    def test_good(perfgate):
        perfgate(int)

    def test_misspelt(perfgate):
        perfgate(int, limits=["tme <= 1ns"])
"""


def test_xfail_and_reruns_under_xdist(project: Project) -> None:
    project.write("test_it.py", DISTRIBUTED)
    run = project.run("-n", "2", "--reruns", "1", ci=True)
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_excused": "skipped",
        "test_bad": "failed",
        "test_never_calls": "failed",
        "test_good": "passed",
        "test_misspelt": "error",
    }, run.text
    assert "did you mean 'time'" in run.says("test_misspelt")
    assert [line for line in run.text.splitlines() if line.startswith("xfail hides")] == [
        "xfail hides  broken: test_it.py::test_excused"
    ]
    figures = {line.split("[")[0] for line in run.text.splitlines() if line.startswith("BROKEN")}
    assert len(figures) == 1, "a rerun reads the same verdict"
    assert "full: 2 broken, 2 not measured, 1 passed" in run.text


GATED = """
    import pytest

    @pytest.mark.perfgate("time <= 1s")
    def test_it(perfgate):
        assert perfgate(lambda: 7).result == 7
"""


def test_gate_off_in_ci(project: Project) -> None:
    project.write("test_off.py", GATED)
    off = project.run("--perfgate=off", ci=True)
    assert off.code == 1
    failing(off, "test_it", "NOT MEASURED", "--perfgate=off")
    there = project.run("--perfgate=off")
    assert there.code == 0
    assert "off: 1 not measured" in there.text


def test_quick_mode_in_ci(project: Project) -> None:
    project.write("test_q.py", GATED)
    run = project.run("--perfgate=quick", ci=True)
    assert run.code == 0
    assert "quick mode in CI" in run.text
