"""A call beside its reference: in full and in quick mode, from the marker, the call and the command line."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.adapters.stores.records import read_record
from pytest_perfgate.cli import main
from pytest_perfgate.model.plan import Outcome
from tests.plugin.projects import Project
from tests.plugin.simulated import simulate

SUITE = """
    import pytest
    from conftest import SIMULATED

    def count(n):
        SIMULATED.takes(50 * n)

    @pytest.mark.perfgate("speedup(over=eager) >= 3x")
    def test_faster(perfgate):
        perfgate(count, 2000, name="ours")
        perfgate(count, 100000, name="eager")

    @pytest.mark.perfgate("speedup(over=eager) >= 3x")
    def test_no_faster(perfgate):
        perfgate(count, 2000, name="eager")
        perfgate(count, 100000)

    def test_limits_of_the_call(perfgate):
        perfgate(count, 2000, name="ours", limits="speedup(over=eager) >= 3x")
        perfgate(count, 100000, name="eager", limits="time <= 1s")

    @pytest.mark.perfgate("speedup(case=ours, over=eager) >= 3x", "time <= 1s")
    def test_one_of_three(perfgate):
        for name, n in (("ours", 2000), ("eager", 100000), ("other", 100000)):
            perfgate(count, n, name=name)

    @pytest.mark.perfgate("speedup(over=eager) >= 3x")
    def test_late_variable(perfgate):
        for name, n in (("ours", 2000), ("eager", 100000)):
            perfgate(lambda: count(n), name=name)

    @pytest.mark.perfgate("speedup(over=eagr) >= 3x")
    def test_misspelt(perfgate):
        perfgate(count, 2000, name="ours")
        perfgate(count, 100000, name="eager")
"""

_PASSED, _OTHER = Outcome.PASSED, Outcome.NOT_APPLICABLE


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_a_call_is_held_against_another_one(project: Project, mode: str) -> None:
    simulate(project)
    project.write("test_it.py", SUITE)
    run = project.run(f"--perfgate={mode}", "--perfgate-json=run.json")
    cases = {case.key.test: case for case in read_record(project.root / "run.json").cases}
    outcomes = {name: [v.outcome for v in case.verdicts if "speedup" in v.limit.text] for name, case in cases.items()}
    assert outcomes["test_faster#ours"] == [_PASSED]
    assert outcomes["test_faster#eager"] == [_OTHER]
    assert outcomes["test_no_faster"] == [Outcome.BROKEN]
    assert outcomes["test_limits_of_the_call#ours"] == [_PASSED]
    assert outcomes["test_limits_of_the_call#eager"] == []
    assert (outcomes["test_one_of_three#ours"], outcomes["test_one_of_three#other"]) == ([_PASSED], [])
    assert outcomes["test_misspelt#ours"] == [Outcome.NOT_MEASURED]
    assert "reference-changed" in run.text
    faster = cases["test_faster#ours"].measurement
    assert faster is not None
    (speedup,) = faster.metrics.find("speedup")
    assert speedup.value == pytest.approx(50, rel=0.01)


WRONG = """
    import pytest

    def double(rows):
        return [2 * row for row in rows]

    @pytest.mark.perfgate("speedup(over=eager) >= 0.1x")
    @pytest.mark.parametrize("last", [2.0, 2.1])
    def test_right(perfgate, last):
        rows = [float(n) for n in range(200)]
        perfgate(lambda rows: [2 * row for row in rows[:-1]] + [last * rows[-1]], rows, name="ours",
                 check=perfgate.same(as_=double, rtol=1e-3))
        perfgate(double, rows, name="eager")
"""


@pytest.mark.parametrize("mode", ["full", "quick", "off"])
def test_a_wrong_result_fails_before_any_speed_is_told(project: Project, mode: str) -> None:
    project.write("test_it.py", WRONG)
    run = project.run(f"--perfgate={mode}")
    assert (run.outcome("test_right[2.0]"), run.outcome("test_right[2.1]")) == ("passed", "failed")
    assert "check-failed" in run.text
    assert "1 of 200 elements by more than rtol=0.001" in run.text


MOVING = """
    import os, pytest
    from conftest import SIMULATED

    def count(n):
        SIMULATED.takes(50 * n)

    @pytest.mark.perfgate("speedup(over=eager) >= 1.1x")
    def test_faster(perfgate):
        perfgate(count, 300 * float(os.environ.get("OURS", "1")), name="ours")
        perfgate(count, 600 * float(os.environ.get("EAGER", "1")), name="eager")

    @pytest.mark.perfgate("change(speedup(over=eager)) >= -10%")
    def test_as_fast(perfgate):
        test_faster(perfgate)
"""


def test_the_line_keeps_the_speed_up_and_a_verdict_says_which_side_moved(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(project, 'devices = ["*"]')
    project.write("test_it.py", MOVING)
    project.run("--perfgate=full")
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("CI", raising=False)
    assert main(["accept", "--new"]) == 0
    (path,) = (project.root / "baselines").glob("*/test_it.py.yaml")
    assert path.read_text().count("time: ") == 2
    assert path.read_text().count("speedup(over=eager): ") == 2
    again = project.run("--perfgate=full", "--perfgate-json=run.json")
    assert (again.outcome("test_faster"), again.outcome("test_as_fast")) == ("passed", "passed")
    assert not [note for note in read_record(project.root / "run.json").notes if note.kind == "unused"]
    slower = project.run("--perfgate=full", "--perfgate-json=run.json", OURS="4")
    for test in ("test_faster", "test_as_fast"):
        assert slower.outcome(test) == "failed", slower.text
        assert "this call moved" in slower.says(test)
    reference = project.run("--perfgate=full", "--perfgate-json=run.json", EAGER="4")
    worst = {case.key.test: case.worst for case in read_record(project.root / "run.json").cases}
    assert (worst["test_faster#ours"], worst["test_as_fast#ours"]) == (Outcome.PASSED, Outcome.MOVED)
    assert "eager moved" in reference.text


FILES = """
    import pytest

    @pytest.mark.perfgate("speedup(over='file:other.json') >= 1.2x")
    @pytest.mark.parametrize("n", [100, 200])
    def test_sum(perfgate, n):
        perfgate(sum, range(n))
"""


def test_a_file_is_a_reference(project: Project) -> None:
    project.write("test_it.py", FILES)
    row = {"run_type": "iteration", "time_unit": "ms", "iterations": 9}
    times = ({"name": f"sum/{n}", "real_time": time, "cpu_time": time, **row} for n, time in ((100, 50), (300, 50)))
    body = {"context": {"num_cpus": 2, "library_build_type": "release"}, "benchmarks": list(times)}
    project.write("other.json", json.dumps(body))
    run = project.run("--perfgate=quick")
    assert (run.outcome("test_sum[100]"), run.outcome("test_sum[200]")) == ("passed", "failed")
    assert "reference-missing" in run.says("test_sum[200]")


FAMILY = """
    import pytest
    from conftest import SIMULATED

    @pytest.mark.perfgate("speedup(over=eager) >= 1.2x", "worst(speedup(over=eager)) >= 9x")
    @pytest.mark.parametrize("n", [2000, 400])
    def test_faster(perfgate, n):
        perfgate(SIMULATED.takes, 5 * n, name="ours")
        perfgate(SIMULATED.takes, 15 * n, name="eager")
"""


def test_a_family_is_a_table_in_every_report(project: Project) -> None:
    simulate(project)
    project.write("test_it.py", FAMILY)
    pages = ("--perfgate-html=run.html", "--perfgate-markdown=run.md")
    run = project.run("--perfgate=quick", "--perfgate-table=n x call of time", *pages)
    lines = run.text.splitlines()
    at = lines.index("test_it.py::test_faster")
    assert lines[at + 1].split() == ["n", "ours", "eager"]
    assert [line.split()[0] for line in lines[at + 3 : at + 5]] == ["400", "2000"]
    assert "call=eager" in run.text
    assert "broken: test_it.py::test_faster: worst(speedup(over=eager)) >= 9x" in run.text
    html, markdown = ((project.root / name).read_text(encoding="utf-8") for name in ("run.html", "run.md"))
    assert "<h2>Parametrised tests" in html
    assert "<polyline" in html
    assert "| n | call=ours | call=eager |" in markdown


def test_a_report_shows_tables_that_the_run_was_not_asked_for(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(project)
    project.write("test_it.py", FAMILY)
    assert "call=eager" not in project.run("--perfgate=quick").text
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("CI", raising=False)
    assert main(["report", "--table", "n x call of time"]) == 0
    assert "call=eager" in capsys.readouterr().out
    assert main(["report", "--table", "n"]) == 2


def test_a_pair_that_does_not_read_ends_the_run_before_its_tests(project: Project) -> None:
    simulate(project)
    project.write("test_it.py", FAMILY)
    run = project.run("--perfgate=quick", "--perfgate-table=n")
    assert run.code == 4
    assert "option-wrong" in run.text
