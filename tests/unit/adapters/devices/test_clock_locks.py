"""Tests of adapters/devices/clock_locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.clock_locks import (
    lock_path,
    read_lock,
    read_locks,
    remove_lock,
    run_head,
    write_lock,
)
from pytest_perfgate.model.errors import PerfgateError

CARD = "GPU-1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "\x00",
        "[" * 10**6,
        '{"pid": 1, "started": "5", "sm_hz": NaN}',
        '{"pid": false, "started": "5", "sm_hz": true}',
        '{"pid": 1',
        '{"pid": "abc", "started": "5"}',
        '{"pid": null, "sm_hz": "fast"}',
        json.dumps({"pid": 2**70, "started": "5"}),
        json.dumps({"pid": 2**70, "started": ""}),
        json.dumps({"pid": 1, "started": "5", "sm_hz": 1.5e9}),
    ],
)
def test_a_file_that_names_no_living_owner_is_a_lock_left_behind(text) -> None:
    lock_path(CARD).write_text(text)
    (lock,) = read_locks()
    assert (lock.device, lock.stale, lock.by_hand) == (CARD, True, False)
    assert lock.sm_hz in {None, 1.5e9}


@pytest.mark.usefixtures("folder")
def test_a_lock_is_read_as_it_was_written() -> None:
    write_lock(CARD, 1.5e9, memory=True)
    lock = read_lock(CARD)
    assert lock is not None
    assert (lock.pid, lock.sm_hz, lock.memory, lock.is_of_this_process, lock.stale) == (
        os.getpid(),
        1.5e9,
        True,
        True,
        False,
    )
    remove_lock(CARD)
    assert read_lock(CARD) is None


@pytest.mark.usefixtures("folder")
def test_a_file_of_another_user_is_named_and_no_draft_is_left(folder, monkeypatch) -> None:
    def refused(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PerfgateError, match=r"GPU-1\.clocks\.json: Operation not permitted"):
        write_lock(CARD, 1.5e9)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("text", "head"), [("", None), ("abc", None), ("-1", None), ("²", None), ("7", 7)])
def test_a_run_without_a_head_that_reads_is_led_by_this_process(monkeypatch, text, head) -> None:
    monkeypatch.setenv("PERFGATE_ROOT_PID", text)
    assert run_head() == (head or os.getpid())


@pytest.mark.usefixtures("folder")
def test_a_folder_that_cannot_be_used_is_an_error(folder, monkeypatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("PERFGATE_LOCKS", str(folder / "file"))
    with pytest.raises(PerfgateError, match="File exists") as raised:
        write_lock(CARD, 1.5e9)
    assert raised.value.code.name == "locks-unusable"


START = """
import os, signal, sys, threading
from pytest_perfgate.adapters.devices.clock_locks import Restoration
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what nohup starts ignores it
restoration = Restoration(lambda: print("put back", flush=True))
"""


def outcome_of(script: str) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout.split("\n")[:-1], done.stderr


def test_at_exit() -> None:
    assert outcome_of("restoration.arm()\nsys.exit(3)")[:2] == (3, ["put back"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_on_a_signal_that_ends_the_process(number) -> None:
    code, lines, _ = outcome_of(f"restoration.arm()\nos.kill(os.getpid(), {int(number)})\nprint('went on')")
    assert code == -number
    assert lines == ["put back"]


def test_whoever_listened_before_is_served() -> None:
    listen = "signal.signal(signal.SIGTERM, lambda number, frame: print('heard', flush=True))\n"
    after = "restoration.arm()\nos.kill(os.getpid(), signal.SIGTERM)\nos.kill(os.getpid(), signal.SIGTERM)"
    assert outcome_of(listen + after)[:2] == (0, ["put back", "heard", "heard"])


def test_a_signal_that_is_ignored_ends_nothing_and_puts_nothing_back() -> None:
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nrestoration.arm()\nos.kill(os.getpid(), signal.SIGHUP)\n"
    assert outcome_of(ignored + "print('went on', flush=True)")[:2] == (0, ["went on", "put back"])


def test_once_and_not_by_a_forked_child() -> None:
    forked = "restoration.arm()\nif not os.fork():\n    restoration.run()\n    os._exit(0)\nos.wait()\n"
    assert outcome_of(forked + "restoration.run()\nrestoration.run()")[:2] == (0, ["put back"])


def test_in_a_thread_there_are_no_signals_and_the_exit_remains() -> None:
    armed = "thread = threading.Thread(target=restoration.arm)\nthread.start()\nthread.join()\n"
    assert outcome_of(armed + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL")[:2] == (0, ["put back"])


def test_what_cannot_be_put_back_is_said_and_the_signal_goes_on() -> None:
    failing = "def fail():\n    raise OSError('the card is gone')\nlost = Restoration(fail)\nlost.arm()\n"
    code, _, error = outcome_of(failing + "os.kill(os.getpid(), signal.SIGTERM)")
    assert code == -signal.SIGTERM
    assert "perfgate: the card is gone" in error


SLOW = """
def slow():
    os.kill(os.getpid(), second)
    print("put back", flush=True)
restoration = Restoration(slow)
restoration.arm()
"""


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("first", ["restoration.run()", f"os.kill(os.getpid(), {int(signal.SIGINT)})"])
def test_a_second_signal_waits_until_the_clocks_are_back(first, second) -> None:
    code, lines, _ = outcome_of(f"second = {int(second)}\n{SLOW}{first}\nprint('went on', flush=True)")
    assert lines == ["put back"]
    assert code in {-second, -signal.SIGINT}


def test_a_signal_while_the_card_is_changed_is_heard_afterwards() -> None:
    locking = "restoration.arm()\nwith restoration.undisturbed():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    code, lines, _ = outcome_of(locking + "    print('locked', flush=True)\nprint('went on')")
    assert (code, lines) == (-signal.SIGTERM, ["locked", "put back"])


def test_a_failure_is_said_where_a_late_signal_ends_the_process() -> None:
    failing = "def fail():\n    os.kill(os.getpid(), signal.SIGTERM)\n    raise OSError('the card is gone')\n"
    code, _, error = outcome_of(failing + "lost = Restoration(fail)\nlost.arm()\nlost.run()")
    assert (code, error) == (-signal.SIGTERM, "perfgate: the card is gone\n")


def test_a_forked_child_can_be_ended_and_puts_nothing_back() -> None:
    forked = "restoration.arm()\nchild = os.fork()\nif not child:\n    signal.alarm(60)\n"
    forked += "    os.kill(os.getpid(), signal.SIGTERM)\n    os._exit(0)\n"
    code, lines, _ = outcome_of(forked + "print(os.waitpid(child, 0)[1], flush=True)")
    assert (code, lines) == (0, [str(int(signal.SIGTERM)), "put back"])


def test_what_was_not_done_is_not_undone() -> None:
    cancelled = "restoration.arm()\nrestoration.cancel()\n"
    assert outcome_of(cancelled + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL")[:2] == (0, [])
