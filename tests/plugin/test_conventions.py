"""What users of pytest know keeps working: -x, --lf, -k, --reruns, --collect-only, --pdb, Ctrl-C, start-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.model.project import SERVERS
from pytest_perfgate.model.verdict import RunReport
from tests.plugin.projects import Project
from tests.waits import runs, until

QUIET_BUT_CACHE = ("-p", "no:randomly", "-p", "no:benchmark", "-p", "no:hypothesispytest")
TWO = """
    import pytest

    @pytest.mark.perfgate("time <= 1s")
    def test_good(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1ns")
    def test_bad(perfgate):
        assert perfgate(sorted, list(range(1_000))).result[0] == 0

    @pytest.mark.perfgate("time <= 1s")
    def test_later(perfgate):
        perfgate(int)
"""


def last_record(root: Path) -> RunReport:
    return Records(root).read()


def test_selection_first_failure_and_last_failed(project: Project) -> None:
    project.write("test_two.py", TWO)
    steady = "--perfgate-rounds=3"  # the interval of two processes may span a nanosecond where the machine is busy
    first = project.run("-x", "--perfgate=full", steady, plugins=QUIET_BUT_CACHE)
    assert {n: o for n, (o, _) in first.tests.items()} == {"test_good": "passed", "test_bad": "failed"}
    assert last_record(project.root).complete is False
    again = project.run("--lf", "--perfgate=full", plugins=QUIET_BUT_CACHE)
    assert set(again.tests) == {"test_bad"}
    assert "perfgate: 1 test," in again.text
    chosen = project.run("-k", "good", "--perfgate=full")
    assert set(chosen.tests) == {"test_good"}
    assert last_record(project.root).filtered is True


def test_a_rerun_reads_the_same_verdict(project: Project) -> None:
    project.write("test_two.py", TWO)
    run = project.run("--reruns=2", "-k", "bad", "--perfgate=full", "--perfgate-rounds=1")
    assert run.outcome("test_bad") == "failed", run.text
    figures = {line.split("[")[0] for line in run.text.splitlines() if line.startswith("BROKEN")}
    assert len(figures) == 1, run.text
    assert run.text.count("round 1 of 1, test 1 of 1: ") == 1
    quick = project.run("--reruns=2", "-k", "bad")
    words = ("BROKEN", "UNDECIDED")  # the latter where a busy machine left one sample
    outcomes = {line.split("[")[0] for line in quick.text.splitlines() if line.startswith(words)}
    assert len(outcomes) == 1, quick.text


THREADS = """
    def twice(call):
        def both(**fixtures):
            call(**fixtures)
            call(**fixtures)
        return both

    def pytest_configure(config):
        config.pluginmanager.register(object(), "run-parallel")
        for name in ("thread_unsafe", "iterations(n)"):
            config.addinivalue_line("markers", name)

    def pytest_collection_finish(session):
        for item in session.items:
            once = [mark.args for mark in item.iter_markers("iterations")] == [(1,)]
            if not item.get_closest_marker("thread_unsafe") or not once:
                item.obj = twice(item.obj)
"""
"""What pytest-run-parallel does to a test: it reads marks after the collection, and calls the function several times."""


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_a_plugin_of_threads_calls_a_gated_test_once(project: Project, mode: str) -> None:
    project.write("conftest.py", THREADS)
    project.write("test_two.py", TWO + "\n    def test_plain():\n        pass\n")
    run = project.run("-k", "good or plain", f"--perfgate={mode}", "--perfgate-rounds=1", "--strict-markers")
    assert {name: outcome for name, (outcome, _) in run.tests.items()} == {
        "test_good": "passed",
        "test_plain": "passed",
    }, run.text


def test_nothing_is_measured_where_nothing_runs(project: Project) -> None:
    project.write("test_two.py", TWO)
    listed = project.run("--collect-only", "-q", ci=True)
    assert "perfgate:" not in listed.text
    assert not (project.root / ".perfgate").exists()
    traced = project.run("--pdb", "-k", "good", "--perfgate=full")
    assert traced.outcome("test_good") == "passed"
    assert "off: 1 not measured" in traced.text


WRONG = """
    import pytest

    @pytest.mark.perfgate("tme <= 1s")
    def test_misspelt(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s", onn="H200")
    def test_keyword(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s", on=3)
    def test_no_pattern(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s", capture={"cubin": 1})
    def test_no_list(perfgate):
        perfgate(int)

    def test_call(perfgate):
        perfgate(int, limits=["tme <= 1s"])

    @pytest.fixture
    def late(perfgate):
        yield
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_late(late):
        pass

    @pytest.mark.perfgate("time <= 1s")
    def test_half(perfgate):
        perfgate(int, name="x" + chr(0xd83d))

    @pytest.mark.perfgate("time <= 1s")
    def test_fine(perfgate):
        perfgate(int)
"""


def test_a_wrong_marker_is_the_fault_of_its_test_alone(project: Project) -> None:
    project.write("test_wrong.py", WRONG)
    run = project.run()
    wrong = ("misspelt", "keyword", "no_pattern", "no_list")
    assert [run.outcome(f"test_{name}") for name in (*wrong, "fine")] == ["error"] * 4 + ["passed"]
    assert "on= is a text or a list of texts, not 3" in run.says("test_no_pattern")
    assert "nothing produces a metric 'tme'" in run.says("test_misspelt")
    assert (run.outcome("test_call"), run.code) == ("failed", 1)
    assert "name= holds half a character, '\\ud83d'" in run.says("test_half")
    assert "called in a teardown, after the test's verdict" in run.text
    full = project.run("--perfgate=full", "--perfgate-rounds=1", "-k", "call or fine or late", ci=True)
    assert "called in a teardown" in full.says("test_late")
    assert "before its yield" in full.text
    assert "fixture.py" not in run.text + full.text, "no trace of our code"
    assert (full.outcome("test_call"), full.outcome("test_fine"), full.code) == ("error", "passed", 1)
    assert "nothing produces a metric 'tme'" in full.says("test_call")
    assert "on" in run.says("test_keyword")
    assert "Traceback" not in run.text


MISSPELT = """
import pytest

@pytest.mark.{mark}("time <= 1 ns")
class TestAll:
    def test_it(self):
        pass
"""


@pytest.mark.parametrize("mark", ["perfgat", "perf_gate", "prefgate"])
def test_in_ci_a_mark_that_is_nearly_ours_is_no_mark(project: Project, mark: str) -> None:
    project.write("test_marked.py", MISSPELT.format(mark=mark))
    done = project.run(ci=True)
    assert (done.code, "marker-wrong" in done.text, "did you mean perfgate?" in done.text) == (4, True, True), done.text
    assert project.run().code == 0
    project.configure(pytest_ini=f"markers = ['{mark}: of another plugin']")
    assert project.run(ci=True).code == 0


@pytest.mark.parametrize("mark", ["target", "aggregate", "greater"])
def test_a_mark_that_only_shares_letters_with_ours_is_pytests_affair(project: Project, mark: str) -> None:
    project.write("test_marked.py", MISSPELT.format(mark=mark))
    assert project.run(ci=True).code == 0


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("plugin", ["debugging", "terminal"])
def test_options_of_a_plugin_that_is_left_out_are_not_missed(project: Project, plugin: str, mode: str) -> None:
    project.write("test_two.py", TWO)
    run = project.run("-p", f"no:{plugin}", f"--perfgate={mode}", "--perfgate-rounds=3")
    assert (run.code, run.outcome("test_good"), run.outcome("test_bad")) == (1, "passed", "failed"), run.text


@pytest.mark.parametrize(
    ("setting", "word", "code"),
    [
        ("roundz = 3", "", "config-unknown-key"),
        ('tables = ["x"]', "", "option-wrong"),
        ("", "--perfgate-shard=9/2", "shard-unknown"),
    ],
)
def test_a_wrong_setting_stops_a_distributed_run_with_its_code(
    project: Project, setting: str, word: str, code: str
) -> None:
    project.write("test_two.py", TWO)
    project.configure(setting)
    run = project.run("-n", "1", *filter(None, [word]))
    assert (run.code, f"[{code}]" in run.text, "INTERNALERROR" in run.text) == (4, True, False), run.text


def test_full_mode_refuses_to_be_one_rank_of_several(project: Project) -> None:
    """A collective in a test waited without an end for a rank that had measured enough."""
    project.write("test_two.py", TWO)
    ranks = {"RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"}
    run = project.run("--perfgate=full", **ranks, WORLD_SIZE="2")
    assert (run.code, "rank 1 of 2 of one job  [run-ranks]" in run.text) == (4, True), run.text
    for mode, size in (("full", "1"), ("quick", "2")):
        assert project.run("-k", "good", f"--perfgate={mode}", **ranks, WORLD_SIZE=size).code == 0


def test_a_child_reads_no_conftest_where_pytest_reads_none(project: Project) -> None:
    project.write("conftest.py", "raise OSError('read all the same')\n")
    project.write("test_two.py", TWO)
    run = project.run("--noconftest", "-k", "good", "--perfgate=full")
    assert (run.code, "full: 1 passed" in run.text) == (0, True), run.text


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_sets_a_variable_of_its_own_is_ci(project: Project, server: str) -> None:
    project.write("test_marked.py", MISSPELT.format(mark="perfgate"))
    run = project.run("--perfgate=quick", **{server: "1"})
    assert run.outcome("test_it") == "failed", run.text
    assert "NOT MEASURED" in run.says("test_it")
    assert project.run("--perfgate=quick", **{server: "1", "CI": ""}).outcome("test_it") == "passed"


def test_a_wrong_setting_stops_the_run_with_its_place(project: Project) -> None:
    project.write("test_two.py", TWO)
    project.configure("roundz = 3\nrounds = 2")
    run = project.run()
    assert run.code == 4
    assert "pyproject.toml: tool.perfgate" in run.text
    assert "did you mean rounds" in run.text
    project.configure('tables = ["x"]')
    assert "pyproject.toml: tool.perfgate.tables: 'x' is not two parameters" in project.run().text


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_interrupting_keeps_what_was_measured_and_leaves_no_child(project: Project) -> None:
    project.configure("rounds = 1")
    project.write(
        "test_slow.py",
        """
        import os, pathlib, time, pytest

        @pytest.mark.perfgate("time <= 1s")
        def test_first(perfgate):
            perfgate(int)

        @pytest.mark.perfgate("time <= 1s")
        def test_endless(perfgate):
            pathlib.Path("child").write_text(str(os.getpid()))
            time.sleep(600)
    """,
    )
    command = project.command("--perfgate=full")
    running = subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    child = project.root / "child"
    until(lambda: child.exists() and child.read_text())
    running.send_signal(signal.SIGINT)
    text, _ = running.communicate(timeout=300)
    assert running.returncode == 2, text
    assert "cut short: 1 of 2 cases measured and kept\n  not measured  test_slow.py::test_endless\n" in text
    assert "next  pytest --perfgate=full test_slow.py::test_endless\n" in text
    assert "plugin/session.py" in text.partition("! KeyboardInterrupt !")[2], "no frame of the children is shown"
    record = last_record(project.root)
    assert record.complete is False
    assert [case.key.nodeid for case in record.cases] == ["test_slow.py::test_first"]
    assert record.cases[0].measurement is not None
    assert not runs(int(child.read_text()))


def test_a_session_without_gated_tests_imports_nothing(project: Project) -> None:
    project.write("test_plain.py", "def test_plain(): pass\n")
    project.write(
        "loaded.py",
        """
        import sys
        HEAVY = {"numpy", "pandas", "yaml", "requests", "sqlite3", "msgspec"}
        def pytest_unconfigure(config):
            own = sorted(m for m in sys.modules if m.startswith("pytest_perfgate"))
            print("HEAVY", sorted(HEAVY & set(sys.modules)), "OWN", own)
    """,
    )
    run = project.run("-p", "loaded", "--collect-only", "-q", fresh=True)
    own = ["", ".clock", ".hookspecs", ".plugin", ".plugin.options"]
    assert f"HEAVY [] OWN {[f'pytest_perfgate{name}' for name in own]}" in run.text
    assert "perfgate" not in run.text.partition("HEAVY")[0]


def test_help_groups_the_options(project: Project) -> None:
    command = [sys.executable, "-m", "pytest", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project.root, check=True)
    section = done.stdout.partition("performance gate:")[2].partition("\n\n")[0]
    assert section.count("--perfgate") >= 13
    assert "in CI full" in section


def test_a_device_of_the_project_with_an_unknown_key_stops_the_run(project: Project) -> None:
    project.write("test_a.py", "def test_a(perfgate):\n    perfgate(int)\n")
    with (project.root / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.perfgate.device.MY]\nfoo = 3\n")
    run = project.run()
    assert run.code == 4, run.text
    assert "unknown key 'foo'" in run.text
    assert "[device-entry]" in run.text


@pytest.mark.parametrize(
    "conftest",
    [
        "def pytest_runtestloop(session):\n    return True\n",
        "def pytest_runtest_protocol(item, nextitem):\n    return True\n",
    ],
    ids=["loop", "protocol"],
)
def test_a_verdict_of_a_test_that_pytest_never_ran_fails_the_run(project: Project, conftest: str) -> None:
    project.write("test_two.py", TWO)
    project.write("conftest.py", conftest)
    run = project.run("--perfgate=full", "--perfgate-rounds=3", ci=True)
    assert run.code == 1, run.text
    assert run.outcome("unrun") == "failed", run.text
    measured = "broken" if "protocol" not in conftest else "not measured"  # that hook is its child's too
    assert f"test_two.py::test_bad: {measured}" in run.says("unrun")
    assert any(note.kind == "unrun" for note in last_record(project.root).notes)


def test_what_is_expected_to_fail_fails_the_record_no_more_than_the_run(project: Project) -> None:
    """``perfgate report`` in CI ends as the record says."""
    excused = "import pytest\n@pytest.mark.xfail\n@pytest.mark.perfgate('time <= 1 ns')\ndef test_x(perfgate):\n"
    project.write("test_x.py", excused + "    perfgate.record([5.0] * 30, unit='ms')\n")
    run = project.run("--perfgate=full", ci=True)
    assert run.code == 0, run.text
    assert "xfail hides  broken: test_x.py::test_x" in run.text
    (report,) = last_record(project.root).cases
    assert (report.worst.value, report.effect.value) == ("broken", "warn")
