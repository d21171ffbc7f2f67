"""Children end with everything they started, and what is said of one that does not end."""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_perfgate.adapters.children import spawn
from pytest_perfgate.adapters.children.channel import VARIABLE, Line
from pytest_perfgate.adapters.children.spawn import LocalChild, LocalNursery
from pytest_perfgate.model.children import Bye, ChildSpec, Job
from pytest_perfgate.model.errors import PerfgateError

HELPER = """
import pathlib, subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-S", "-c", "import signal, time; {first}; time.sleep(60)"])
pathlib.Path({out!r}).write_text(str(helper.pid))
time.sleep(0.3)
"""
CALLS = f"""
import os, socket, time
port, token = os.environ["{VARIABLE}"].split(":")
line = socket.create_connection(("127.0.0.1", int(port)))
line.sendall(('{{"kind": "Hello", "body": {{"token": "%s", "pid": 1}}}}' % token).encode() + b"\\n")
"""


def spawned(code: str) -> LocalChild:
    python = (sys.executable, "-S")
    return LocalNursery().spawn(ChildSpec(argv=("-c", code), python=python, cwd=Path(), env=(), label="the child"))


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_GRACE_S", 0.5)
    monkeypatch.setattr(spawn, "_END_S", 0.5)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.usefixtures("quick")
class TestWhatAChildStarted:
    FIRST = ("pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    ENDS = ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "sys.exit(3)", "time.sleep(60)")

    @pytest.mark.parametrize("first", FIRST, ids=["listens", "ignores SIGTERM"])
    @pytest.mark.parametrize("end", ENDS, ids=["died", "ended", "lives"])
    def test_it_ends_with_the_child(self, tmp_path: Path, first: str, end: str) -> None:
        child = spawned(HELPER.format(first=first, out=str(tmp_path / "pid")) + end)
        until = time.monotonic() + 20
        while not (text := _read(tmp_path / "pid")) and time.monotonic() < until:
            time.sleep(0.01)
        if "sleep" not in end:
            with pytest.raises(PerfgateError, match="SIGSEGV" if "SEGV" in end else "exit code 3"):
                child.receive(20)
        child.close()
        assert not runs(int(text))

    def test_closing_twice_is_safe_and_at_once(self) -> None:
        child = spawned("import time; time.sleep(60)")
        threads = [threading.Thread(target=child.close) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert not any(thread.is_alive() for thread in threads)
        child.close()


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.usefixtures("quick")
def test_a_child_that_hung_up_and_lives_is_said_to() -> None:
    child = spawned(CALLS + "line.close(); time.sleep(60)")
    with pytest.raises(PerfgateError, match="closed its channel and still ran") as caught:
        child.receive(20)
    assert "None" not in str(caught.value)


def test_sending_does_not_inherit_the_patience_of_receiving() -> None:
    here, there = socket.socketpair()
    line, other = Line(here), Line(there)
    with pytest.raises(TimeoutError):
        line.receive(0.01)
    large = Job(cases=(), options=tuple((f"option{number}", "x" * 1000) for number in range(3000)))
    got: list[object] = []

    def late() -> None:
        time.sleep(0.3)
        got.append(other.receive(10))

    reader = threading.Thread(target=late)
    reader.start()
    line.send(large)
    reader.join(10)
    assert got == [large]


def test_a_child_that_reads_nothing_is_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_SEND_S", 0.3)
    child = spawned(CALLS + "time.sleep(60)")
    large = Job(cases=(), options=tuple((f"option{number}", "x" * 1000) for number in range(20_000)))
    with pytest.raises(PerfgateError, match="read nothing") as caught:
        child.send(large)
    assert caught.value.code.name == "child-hung"


def test_closing_wakes_the_thread_that_waits() -> None:
    here, there = socket.socketpair()
    line, seen = Line(here), []

    def wait() -> None:
        try:
            line.receive(30)
        except (EOFError, OSError) as ended:
            seen.append(type(ended).__name__)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    line.close()
    waiting.join(5)
    assert seen == ["EOFError"] or seen == ["OSError"], seen
    there.close()


def test_a_bye_and_what_it_left_is_ended_as_well(tmp_path: Path) -> None:
    code = HELPER.format(first="pass", out=str(tmp_path / "pid"))
    code += CALLS + 'line.sendall(b\'{"kind": "Bye", "body": {}}\\n\'); line.recv(1)'
    child = spawned(code)
    assert child.receive(20) == Bye()
    child.close()
    assert not runs(int(_read(tmp_path / "pid")))
