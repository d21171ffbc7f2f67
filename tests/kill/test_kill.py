"""A bounded part of the kills with every run of the tests; ``ci/kill`` has two hundred of each kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.kill.__main__ import killed
from tests.kill.kills import SCENARIOS
from tests.waits import ended, runs, until

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if not name.startswith("a run")])
def test_what_was_accepted_outlives_a_kill(name: str) -> None:
    kills = killed(name, 2 if name == "PostgreSQL" else 5, seed=1)
    assert [kill.faults for kill in kills if kill.faults] == []
    assert any(kill.busy for kill in kills)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith("a run")])
def test_a_run_leaves_no_process_behind(name: str, project: Path) -> None:
    assert SCENARIOS[name](Random(5), project).faults == ()


PARENT = """
import sys, time
from pathlib import Path
from pytest_perfgate.adapters.children.spawn import LocalSpawner
from pytest_perfgate.model.protocol import ChildSpec
code = '''
import pathlib, subprocess, sys, time
words = [sys.executable, "-S", "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(90)"]
helper = subprocess.Popen(words, start_new_session={session})
pathlib.Path({out!r}).write_text(str(helper.pid))
time.sleep(90)
'''
spec = ChildSpec(argv=("-c", code), python=(sys.executable, "-S"), cwd=Path(), env=())
child = LocalSpawner().spawn(spec)
time.sleep(90)
"""


@pytest.mark.parametrize("session", [False, True], ids=["in its group", "in a session of its own"])
def test_what_a_child_started_ends_where_the_run_itself_is_killed(tmp_path: Path, session: bool) -> None:
    out = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(out=str(out), session=session)], cwd=ROOT)
    helper = int(until(lambda: out.exists() and out.read_text(encoding="utf-8")))
    assert runs(helper)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert ended(helper)
