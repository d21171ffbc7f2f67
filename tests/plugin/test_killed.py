"""A run in two arms that is killed: its children end, the doctor names what is left, the next run goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.children.channel import PARENT
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.wiring import read_values
from tests.plugin.projects import QUIET, Project
from tests.plugin.two_builds import SLOW, SLOWER, git, repository
from tests.waits import until

__all__ = ["repository"]


def children_of(pid: int) -> list[int]:
    """Processes that say they are ours."""
    mark = f"{PARENT}={pid}".encode()
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                children.append(int(folder.name))
        except OSError:
            continue
    return children


def doctor(project: Project) -> str:
    """What the doctor says, wherever it broke its lines."""
    call = "from pytest_perfgate.cli import main; raise SystemExit(main(['doctor', '--seconds', '0']))"
    line = [sys.executable, "-c", call]
    return " ".join(subprocess.run(line, cwd=project.root, capture_output=True, text=True, check=False).stdout.split())


@SLOW
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for children in /proc")
def test_finished_rounds_outlive_a_kill(repository: Project) -> None:
    command = repository.command("--perfgate-against", "HEAD", "tests", plugins=QUIET)
    run = subprocess.Popen(command, cwd=repository.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rounds = repository.root / ".perfgate" / "rounds"
    assert until(lambda: list(rounds.glob("*.bin")))
    assert until(lambda: children_of(run.pid))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert until(lambda: not children_of(run.pid)), "children end when their channel does"
    output = doctor(repository)
    assert "finished rounds of a run that was cut short" in output, output
    again = repository.run("--perfgate-against", "HEAD", "tests")
    assert again.code == 0, again.text
    assert re.search(r"[1-4] rounds? of a run that was cut short", again.text), again.text
    assert "cut short" not in doctor(repository)


NOISY = """
    import os
    import time

    import pytest

    @pytest.mark.perfgate("slowdown <= 1%")
    def test_noisy(perfgate):
        perfgate(lambda: time.sleep(0.001 + int.from_bytes(os.urandom(2), "big") * 5e-8))
"""


@SLOW
@pytest.mark.parametrize("mode", ["against", "ci", "xdist"])
def test_an_interrupt_keeps_what_two_builds_have_decided(repository: Project, mode: str) -> None:
    repository.write("tests/test_noisy.py", NOISY)
    git(repository.root, "add", "-A")
    git(repository.root, "commit", "-q", "-m", "noisy")
    git(repository.root, "branch", "base")
    repository.write("kern.py", SLOWER)
    git(repository.root, "commit", "-qam", "slower")
    words = {"against": ("--perfgate-against", "base"), "xdist": ("-n", "2")}.get(mode, ())
    env = {**os.environ, **({} if mode == "against" else {"CI": "true", "GITHUB_BASE_REF": "base"})}
    run = subprocess.Popen(
        repository.command(*words, "tests", plugins=QUIET),
        cwd=repository.root,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )

    def rounds() -> int:
        files = list((repository.root / ".perfgate" / "rounds").glob("*.bin"))
        return 1 + max(one.number for one in read_values(files[0], PairedRound)) if files else 0

    assert until(lambda: rounds() >= 14)
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate()
    assert run.returncode == 2, output
    assert "REGRESSED  test_work  time" in output, output
    assert re.search(r"^passed +tests/test_kern.py::test_other ", output, re.MULTILINE), output
    assert "test_noisy" in output.partition("cut short: ")[2] or "1 case not decided" in output, output
