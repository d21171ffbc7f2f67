"""Tests of adapters/children/channel."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.children import channel, spawn
from pytest_perfgate.adapters.children.channel import (
    MARK,
    PARENT,
    VARIABLE,
    Line,
    decode_line,
    encode_line,
    leftover_children,
    marked,
)
from pytest_perfgate.adapters.children.spawn import LocalChild, LocalSpawner
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.protocol import Bye, ChildJob, ChildSpec, Entered, Finished, Go, Hello, Measure, Ready
from tests.waits import runs, until

MESSAGES = [
    Go(),
    Measure(plan=Plan(budget_ns=2e7)),
    Ready(nodeid="tests/a b.py::test[naïve-µ]"),
    Entered(key=CaseKey(nodeid="n", name="fwd")),
    Bye(modules=(("a.py", "00"),)),
    ChildJob(cases=(), root="/h\udce9/a \\udce9", options=(("k", "v"),)),
    Finished(nodeid="t", outcome="failed", text="in /h\udce9/t.py"),
    Finished(nodeid="t", outcome="failed", text="half of a pair: \ud83d"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_messages_come_back_as_they_went(message: object) -> None:
    line = encode_line(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line) == message


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"{}", b"Nobody {}", b"Ready {}", b"Ready", b'Ready {"nodeid":"\\udce9', b"\xff\xfe {}"]
)
def test_what_is_no_message_is_garbled(line: bytes) -> None:
    with pytest.raises(PerfgateError, match="not a message"):
        decode_line(line)


def test_pieces_make_whole_lines_and_half_a_line_is_an_end() -> None:
    here, there = socket.socketpair()
    line = Line(here)
    both = encode_line(Ready(nodeid="one")) + encode_line(Ready(nodeid="two"))
    there.sendall(both[:20])
    there.sendall(both[20:])
    assert [line.receive(1), line.receive(1)] == [Ready(nodeid="one"), Ready(nodeid="two")]
    with pytest.raises(TimeoutError):
        line.receive(0.01)
    there.sendall(both[:20])
    there.close()
    with pytest.raises(EOFError, match="20 bytes"):
        line.receive(1)


def test_hello_is_a_message_too() -> None:
    assert decode_line(encode_line(Hello(token="t"))) == Hello(token="t")


FIRST_WORDS = """
import sys, threading
from pytest_perfgate.adapters.children.channel import decode_line
from pytest_perfgate.model.errors import PerfgateError

sys.setswitchinterval(1e-6)
lines = [b"%s {}" % kind for kind in (b"Taken", b"ChildJob", b"Hello", b"Finished", b"Measure")]
gate = threading.Barrier(8)

def hear(first):
    gate.wait()
    for line in lines[first:] + lines:
        try:
            decode_line(line)
        except PerfgateError:
            pass

threads = [threading.Thread(target=hear, args=(number % 5,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_decode_for_the_first_time_do_not_crash() -> None:
    """More than half of such processes ended in a segmentation fault of msgspec."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", FIRST_WORDS], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


HELPER = """
import pathlib, subprocess, sys, time
words = [sys.executable, "-S", "-c", "import os, signal, time; {first}; time.sleep(60)"]
helper = subprocess.Popen(words, start_new_session={session})
pathlib.Path({out!r}).write_text(str(helper.pid))
time.sleep(0.3)
"""
CALLS = f"""
import os, socket, time
port, token = os.environ["{VARIABLE}"].split(":")
line = socket.create_connection(("127.0.0.1", int(port)))
line.sendall(('Hello {{"token": "%s"}}' % token).encode() + b"\\n")
"""


def spawned(code: str) -> LocalChild:
    python = (sys.executable, "-S")
    return LocalSpawner().spawn(ChildSpec(argv=("-c", code), python=python, cwd=Path(), env=(), label="the child"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_GRACE_S", 0.5)
    monkeypatch.setattr(spawn, "_END_S", 60.0)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.usefixtures("quick")
class TestWhatAChildStarted:
    FIRST = ("pass", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    ENDS = ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "sys.exit(3)", "time.sleep(60)")

    @pytest.mark.parametrize("first", FIRST, ids=["listens", "ignores SIGTERM"])
    @pytest.mark.parametrize("end", ENDS, ids=["died", "ended", "lives"])
    @pytest.mark.parametrize("session", [False, True], ids=["in its group", "in a session of its own"])
    def test_it_ends_with_the_child(self, tmp_path: Path, first: str, end: str, session: bool) -> None:
        child = spawned(HELPER.format(first=first, out=str(tmp_path / "pid"), session=session) + end)
        text = until(lambda: _read(tmp_path / "pid"))
        if "sleep" not in end:
            with pytest.raises(PerfgateError, match="SIGSEGV" if "SEGV" in end else "exit code 3"):
                child.receive(60)
        child.close()
        assert not runs(int(text))

    def test_closing_twice_is_safe_and_at_once(self) -> None:
        child = spawned("import time; time.sleep(60)")
        threads = [threading.Thread(target=child.close) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        child.close()


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_a_child_that_hung_up_and_lives_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_END_S", 0.5)
    child = spawned(CALLS + "line.close(); time.sleep(60)")
    with pytest.raises(PerfgateError, match="closed its channel and still ran") as caught:
        child.receive(60)
    assert "None" not in str(caught.value)


def test_sending_does_not_inherit_the_patience_of_receiving() -> None:
    here, there = socket.socketpair()
    line, other = Line(here), Line(there)
    with pytest.raises(TimeoutError):
        line.receive(0.01)
    large = ChildJob(cases=(), options=tuple((f"option{number}", "x" * 1000) for number in range(3000)))
    got: list[object] = []

    def late() -> None:
        time.sleep(0.3)
        got.append(other.receive(60))

    reader = threading.Thread(target=late)
    reader.start()
    line.send(large)
    reader.join(60)
    assert got == [large]


def test_a_child_that_reads_nothing_is_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "_SEND_S", 0.3)
    child = spawned(CALLS + "time.sleep(60)")
    large = ChildJob(cases=(), options=tuple((f"option{number}", "x" * 1000) for number in range(20_000)))
    with pytest.raises(PerfgateError, match="read nothing") as caught:
        child.send(large)
    assert caught.value.code.name == "child-hung"


def test_closing_wakes_the_thread_that_waits() -> None:
    here, there = socket.socketpair()
    line, errors = Line(here), []

    def wait() -> None:
        try:
            line.receive(30)
        except (EOFError, OSError) as ended:
            errors.append(type(ended).__name__)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    line.close()
    waiting.join(60)
    assert errors == ["EOFError"] or errors == ["OSError"], errors
    there.close()


def test_a_bye_and_what_it_left_is_ended_as_well(tmp_path: Path) -> None:
    code = HELPER.format(first="pass", out=str(tmp_path / "pid"), session=False)
    code += CALLS + 'line.sendall(b"Bye {}\\n"); line.recv(1)'
    child = spawned(code)
    assert child.receive(60) == Bye()
    child.close()
    assert not runs(int(_read(tmp_path / "pid")))


def process(folder: Path, pid: int, *environ: bytes) -> None:
    (folder / str(pid)).mkdir()
    (folder / str(pid) / "environ").write_bytes(b"\0".join((b"HOME=/root", *environ)))


def test_only_children_of_ours_without_a_parent_are_strays(tmp_path: Path) -> None:
    ours = PARENT.encode()
    process(tmp_path, 10)
    process(tmp_path, 11, ours + b"=10")
    process(tmp_path, 12, ours + b"=9")
    process(tmp_path, 13, ours + b"=garbage")
    process(tmp_path, 14, ours + b"X=9")
    (tmp_path / "15").mkdir()
    (tmp_path / "self").mkdir()
    process(tmp_path, 16, ours + b"=9")
    (tmp_path / "16" / "status").write_text("Name:\tpytest\nNSpid:\t16\t2\n")
    (tmp_path / "12" / "status").write_text("Name:\tpytest\nNSpid:\t12\n")
    assert leftover_children(tmp_path) == (12,)
    assert leftover_children(tmp_path / "none") == ()


def test_a_process_within_exec_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost the variables of the program before, and those of the next one lie not in its memory yet."""
    for pid, state in (("12", "R"), ("13", "Z")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "environ").write_bytes(b"")
        (tmp_path / pid / "cmdline").write_bytes(b"")
        (tmp_path / pid / "stat").write_text(f"{pid} (a b) {state} 1 2 2 " + "0 " * 16 + {"R": "4096", "Z": "0"}[state])
    later = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: written.write_bytes(f"{MARK}=m".encode()))
    written = tmp_path / "12" / "environ"
    monkeypatch.setattr(channel, "time", later)
    assert marked("m", tmp_path) == (12,)


BUSY = """
import os, signal, time
from pytest_perfgate.adapters.children.channel import end_with_parent
def ended(*given):
    os.write(1, b"put back\\n")  # the signal may come within print, which cannot be called again then
    os._exit(0)
signal.signal(signal.SIGTERM, ended)
end_with_parent()
print("busy", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells a child that its parent is gone")
def test_a_child_in_a_long_call_ends_with_its_parent() -> None:
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}], start_new_session=True)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "busy\n"
        os.kill(run.pid, signal.SIGKILL)
        assert run.stdout.read() == "put back\n"
