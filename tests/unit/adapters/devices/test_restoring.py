"""What is put back however a process ends: at exit, on each signal that ends it, once, and by nobody else."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

START = """
import os, signal, sys, threading
from pytest_perfgate.adapters.devices.clock_locks import Restoration
restoration = Restoration(lambda: print("put back", flush=True))
"""


def told(script: str) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", START + script], capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout.split("\n")[:-1], done.stderr


def test_at_exit() -> None:
    assert told("restoration.arm()\nsys.exit(3)")[:2] == (3, ["put back"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_on_a_signal_that_ends_the_process(number) -> None:
    code, said, _ = told(f"restoration.arm()\nos.kill(os.getpid(), {int(number)})\nprint('went on')")
    assert code == -number
    assert said == ["put back"]


def test_whoever_listened_before_is_served() -> None:
    listen = "signal.signal(signal.SIGTERM, lambda number, frame: print('heard', flush=True))\n"
    after = "restoration.arm()\nos.kill(os.getpid(), signal.SIGTERM)\nos.kill(os.getpid(), signal.SIGTERM)"
    assert told(listen + after)[:2] == (0, ["put back", "heard", "heard"])


def test_a_signal_that_is_ignored_ends_nothing_and_puts_nothing_back() -> None:
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nrestoration.arm()\nos.kill(os.getpid(), signal.SIGHUP)\n"
    assert told(ignored + "print('went on', flush=True)")[:2] == (0, ["went on", "put back"])


def test_once_and_not_by_a_forked_child() -> None:
    forked = "restoration.arm()\nif not os.fork():\n    restoration.run()\n    os._exit(0)\nos.wait()\n"
    assert told(forked + "restoration.run()\nrestoration.run()")[:2] == (0, ["put back"])


def test_in_a_thread_there_are_no_signals_and_the_exit_remains() -> None:
    armed = "thread = threading.Thread(target=restoration.arm)\nthread.start()\nthread.join()\n"
    assert told(armed + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL")[:2] == (0, ["put back"])


def test_what_cannot_be_put_back_is_said_and_the_signal_goes_on() -> None:
    failing = "def fail():\n    raise OSError('the card is gone')\nlost = Restoration(fail)\nlost.arm()\n"
    code, _, error = told(failing + "os.kill(os.getpid(), signal.SIGTERM)")
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
    code, said, _ = told(f"second = {int(second)}\n{SLOW}{first}\nprint('went on', flush=True)")
    assert said == ["put back"]
    assert code in {-second, -signal.SIGINT}


def test_a_signal_while_the_card_is_changed_is_heard_afterwards() -> None:
    locking = "restoration.arm()\nwith restoration.undisturbed():\n    os.kill(os.getpid(), signal.SIGTERM)\n"
    code, said, _ = told(locking + "    print('locked', flush=True)\nprint('went on')")
    assert (code, said) == (-signal.SIGTERM, ["locked", "put back"])


def test_a_failure_is_said_where_a_late_signal_ends_the_process() -> None:
    failing = "def fail():\n    os.kill(os.getpid(), signal.SIGTERM)\n    raise OSError('the card is gone')\n"
    code, _, error = told(failing + "lost = Restoration(fail)\nlost.arm()\nlost.run()")
    assert (code, error) == (-signal.SIGTERM, "perfgate: the card is gone\n")


def test_a_forked_child_can_be_ended_and_puts_nothing_back() -> None:
    forked = "restoration.arm()\nchild = os.fork()\nif not child:\n    signal.alarm(5)\n"
    forked += "    os.kill(os.getpid(), signal.SIGTERM)\n    os._exit(0)\n"
    code, said, _ = told(forked + "print(os.waitpid(child, 0)[1], flush=True)")
    assert (code, said) == (0, [str(int(signal.SIGTERM)), "put back"])


def test_what_was_not_done_is_not_undone() -> None:
    cancelled = "restoration.arm()\nrestoration.cancel()\n"
    assert told(cancelled + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL")[:2] == (0, [])
