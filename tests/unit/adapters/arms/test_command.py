"""Commands of a build end with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.command import log_tail, run_logged
from pytest_perfgate.model.errors import PerfgateError

LONG = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True); subprocess.run(['sleep', '60'])"


def is_gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def said(log: Path) -> str:
    for _ in range(500):
        if log.exists() and log.read_text().endswith("\n"):
            return log.read_text()
        time.sleep(0.01)
    return ""


def test_a_command_that_hangs_ends_with_all_it_started(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as caught:
        run_logged([sys.executable, "-S", "-c", LONG], tmp_path, tmp_path / "log", dict(os.environ), 0.5)
    assert "no end after" in caught.value.what
    assert is_gone(int((tmp_path / "log").read_text()))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_a_command_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import os, sys; from pathlib import Path; from pytest_perfgate.adapters.arms.command import run_logged\n"
        f"run_logged([sys.executable, '-S', '-c', {LONG!r}], Path({str(tmp_path)!r}), Path({str(log)!r}), dict(os.environ), 60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    started = int(said(log))
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert is_gone(started)


def test_a_program_that_is_not_there_and_one_that_fails(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for program, words in (("no-such-builder", "is not installed"), ("./build.sh", "is not installed")):
        with pytest.raises(PerfgateError, match=words):
            run_logged([program], tmp_path, log, dict(os.environ), 5)
    (tmp_path / "build.sh").write_text("#!/bin/sh\necho 'läuft'; kill -9 $$\n")
    (tmp_path / "build.sh").chmod(0o755)
    with pytest.raises(PerfgateError) as caught:
        run_logged(["./build.sh"], tmp_path, log, dict(os.environ), 5)
    assert caught.value.what == "./build.sh: exit 137 (killed: out of memory?)\n    läuft"


def test_the_tail_of_a_log_is_cut_and_a_lost_one_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert log_tail(log) == ""
    log.write_bytes(b"\xff" + b"x" * 1000 + b"\n" * 2 + b"\n".join(b"%d" % n for n in range(100)))
    lines = log_tail(log).splitlines()
    assert (len(lines), lines[-1]) == (31, "    99")
