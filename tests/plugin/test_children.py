"""Children that die, hang, babble, or inherit options that would start it all a second time."""

from __future__ import annotations

import json
import re

from tests.plugin.projects import Project

TROUBLE = """
    import os, pytest, signal, sys, time
    from pathlib import Path

    def judged(request):
        return getattr(request.config.option, "xmlpath", None)

    @pytest.mark.perfgate("time <= 1s")
    def test_before(perfgate):
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_dies(perfgate, request):
        if not judged(request):
            os.kill(os.getpid(), signal.SIGKILL)
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_exits(perfgate):
        os._exit(7)  # here too, where it would end pytest itself
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_hangs(perfgate, request):
        if not judged(request):
            Path("hangs").touch()
            time.sleep(600)
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_babbles(perfgate, request):
        if not judged(request):
            os.write(1, b"\\x00{garbage]\\n" * 2000)
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_half_a_message(perfgate, request):
        if not judged(request):
            line = request.config.pluginmanager.get_plugin("perfgate-role")._parent._line
            line._connection.sendall(b'{"kind": "Taken", "bo')
            os._exit(0)
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_no_message(perfgate, request):
        if not judged(request):
            line = request.config.pluginmanager.get_plugin("perfgate-role")._parent._line
            line._connection.sendall(b'hello?\\n')
        perfgate(int)

    @pytest.mark.perfgate("time <= 1s")
    def test_fails_in_the_child(perfgate, request):
        perfgate(int)
        assert judged(request), "only here"

    @pytest.mark.perfgate("time <= 1s")
    def test_after(perfgate):
        perfgate(int)
"""
PATIENT = """
    from pathlib import Path
    from pytest_perfgate.adapters.children.channel import Line

    plain, hangs = Line.receive, Path("hangs")

    def receive(line, *timeout_s):
        while True:
            try:
                return plain(line, *timeout_s)
            except TimeoutError:  # a busy machine starts a child late
                if hangs.exists():
                    hangs.unlink()
                    raise

    Line.receive = receive
"""
LOST = {
    "test_dies": "died of SIGKILL (as where memory runs out); the test was not run again",
    "test_exits": "exit code 7; the test was not run again",
    "test_hangs": "sent nothing for 2 s",
    "test_half_a_message": "ended with exit code 0",
    "test_no_message": "which is not a message",
    "test_fails_in_the_child": "only here",
}


def test_trouble_costs_exactly_its_own_case(project: Project) -> None:
    project.configure('timeout = "2 s"\nrounds = 1')
    project.write("conftest.py", PATIENT)
    project.write("test_trouble.py", TROUBLE)
    run = project.run(ci=True)
    failed = {name for name, (outcome, _) in run.tests.items() if outcome == "failed"}
    assert failed == set(LOST), run.text
    assert {name: words for name, words in LOST.items() if words not in run.says(name)} == {}
    assert all(run.outcome(name) == "passed" for name in ("test_before", "test_babbles", "test_after"))
    assert "next  pytest test_trouble.py::test_dies --perfgate=off -s" in run.text


INHERITING = """
        import os, pytest
        def pytest_addoption(parser):
            parser.addoption("--size", type=int, default=1)
        def pytest_configure(config):
            with open("sessions.txt", "a") as out:
                worker = os.environ.get("PYTEST_XDIST_WORKER", "none")
                numprocesses = config.getoption("numprocesses", "no xdist")
                print(worker, numprocesses, getattr(config.option, "xmlpath", None), file=out)
        @pytest.fixture
        def size(request):
            return request.config.getoption("size")
    """
AWKWARD = """
        import os, pytest

        @pytest.mark.mine
        @pytest.mark.perfgate("time <= 1s")
        @pytest.mark.parametrize("name", ["a b", "x[1]", "p/q", "naïve-µ", "semi;colon", "quote'"])
        def test_it(perfgate, name, size):
            assert size == 3
            perfgate(len, name)

        @pytest.mark.perfgate("time <= 1ns")
        def test_bad(perfgate, worker_id):
            perfgate(sorted, list(range(10_000)))

        @pytest.mark.perfgate("time <= 1s")
        def test_loses_its_worker(perfgate, worker_id):
            perfgate(int)
            if worker_id != "master":
                os._exit(3)
    """


def test_inherited_options_start_nothing_and_a_lost_worker_is_replaced(project: Project) -> None:
    """``-n 2`` and ``--junitxml`` in ``addopts`` and in the environment once overwrote the parent's file."""
    ini = 'addopts = "-n 2 --junitxml=inherited.xml --strict-markers"\nmarkers = ["mine: own"]'
    project.configure("rounds = 3", pytest_ini=ini)  # two processes of a busy machine may differ too much to tell
    project.write("conftest.py", INHERITING)
    project.write("test_it.py", AWKWARD)
    run = project.run("--size=3", ci=True, PYTEST_ADDOPTS="--junitxml=environment.xml")
    lines = (project.root / "sessions.txt").read_text().splitlines()
    children = [line for line in lines if "no xdist" in line]
    assert len(children) == 3, lines
    assert all(line == "none no xdist None" for line in children)
    assert sorted(line.split()[0] for line in lines if line not in children) == ["gw0", "gw1", "gw2", "none"]
    assert not (project.root / "inherited.xml").exists()
    outcomes = sorted(outcome for outcome, _ in run.tests.values())
    assert outcomes == ["error", "failed", *["passed"] * 6], run.text
    assert "crashed while running 'test_it.py::test_loses_its_worker'" in run.text
    match = re.search(r"full: 1 broken, (\d undecided, )?\d passed", run.text)  # undecided where the machine is busy
    assert match, f"the worker in its place reads the same verdicts\n{run.text}"
    assert "BROKEN" in run.says("test_bad")
    assert float(run.properties["test_it[a b]"]["perfgate.time_ns"]) > 0
    record = next((project.root / ".perfgate" / "records").glob("*.json"))
    assert (
        "test_it[naïve-µ]" in json.dumps(json.loads(record.read_text()), ensure_ascii=False)
        or "\\xb5" in record.read_text()
    )


TUNED = """
    import os

    def test_a(perfgate):
        with open("seen.txt", "a") as file:
            print(os.environ.get("TRITON_CACHE_AUTOTUNING", "unset"), file=file)
        perfgate(int)
"""


def test_pinned_tuning_reaches_every_process_that_measures(project: Project, monkeypatch) -> None:
    """Triton reads the variable when it tunes a kernel; the choice is kept with the kernel's source."""
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)
    project.write("test_a.py", TUNED)
    for setting, value in (("free", "unset"), ("pinned", "1")):
        project.configure(f'tuning = "{setting}"\nrounds = 2\nbudget = "1 ms"\nwarmup = "1 ms"')
        (project.root / "seen.txt").unlink(missing_ok=True)
        project.run("--perfgate=full")
        assert (project.root / "seen.txt").read_text().split() == [value] * 3, "two children and pytest itself"
