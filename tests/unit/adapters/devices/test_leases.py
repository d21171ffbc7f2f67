from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from pytest_perfgate.adapters.devices.leases import VARIABLE, DeviceLeases
from pytest_perfgate.model.errors import PerfgateError

HOLDER = """
import os, sys
from pathlib import Path
from pytest_perfgate.adapters.devices.leases import DeviceLeases
with DeviceLeases(Path(sys.argv[1]), patience_s=0).hold(sys.argv[2]) as token:
    print("held", os.environ.get("PERFGATE_LEASES", ""), flush=True)
    sys.stdin.read()
print("done", flush=True)
"""


@pytest.fixture(autouse=True)
def _no_tokens(monkeypatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def leases(tmp_path) -> DeviceLeases:
    return DeviceLeases(tmp_path, patience_s=0.3, sleep=lambda seconds: None)


def holder(tmp_path, device: str = "GPU-1", **env: str):
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), device],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip


def test_another_process_has_it_and_is_named(tmp_path, leases) -> None:
    with holder(tmp_path) as other:
        assert other.stdout.readline().startswith("held")
        assert leases.owner("GPU-1") == other.pid
        with pytest.raises(PerfgateError, match=f"process {other.pid} measures on GPU-1"), leases.hold("GPU-1"):
            pass
        with leases.hold("GPU-2"):
            pass
        other.stdin.close()
    with leases.hold("GPU-1"):
        assert leases.owner("GPU-1") == os.getpid()
    assert leases.owner("GPU-1") is None


def test_a_killed_owner_leaves_nothing_behind(tmp_path, leases) -> None:
    with holder(tmp_path) as other:
        other.stdout.readline()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert leases.owner("GPU-1") is None
    with leases.hold("GPU-1"):
        pass


def test_a_child_inherits_by_token(tmp_path, leases) -> None:
    with leases.hold("GPU-1") as token:
        assert os.environ[VARIABLE] == f"GPU-1={token}"
        with holder(tmp_path) as child:
            assert child.stdout.readline().startswith("held")
            child.stdin.close()
    assert VARIABLE not in os.environ


def test_a_token_of_a_lease_that_ended_is_worth_nothing(tmp_path, leases) -> None:
    with leases.hold("GPU-1"):
        stale = os.environ[VARIABLE]
    with leases.hold("GPU-1"), holder(tmp_path, **{VARIABLE: stale}) as child:
        assert child.stdout.readline() == ""
        child.stdin.close()


def test_it_is_held_once_in_a_process(leases) -> None:
    with leases.hold("GPU-1") as outer, leases.hold("GPU-1") as inner:
        assert inner == outer


def test_several_devices_are_taken_in_one_order(leases) -> None:
    with leases.hold_all(["GPU-2", "GPU-1"]) as tokens:
        assert len(set(tokens)) == 2
        assert [pair.partition("=")[0] for pair in os.environ[VARIABLE].split(";")] == ["GPU-1", "GPU-2"]
    assert VARIABLE not in os.environ


def test_an_error_lets_go(leases) -> None:
    with pytest.raises(ZeroDivisionError), leases.hold("GPU-1"):
        raise ZeroDivisionError
    assert VARIABLE not in os.environ
    with leases.hold("GPU-1"):
        pass


def test_a_process_that_the_call_forked_does_not_keep_the_lease(leases) -> None:
    reading, writing = os.pipe()
    with leases.hold("GPU-1"):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    os.close(reading)
    try:
        with leases.hold("GPU-1"):
            pass
    finally:
        os.close(writing)
        os.waitpid(child, 0)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"pid": "abc"}', '{"pid": null}', '{"pid": -1}', "\x00", "[" * 10**6]
)
def test_a_lease_that_does_not_read_has_no_owner_and_is_taken(tmp_path, leases, text) -> None:
    (tmp_path / "GPU-1.lease").write_text(text)
    assert leases.owner("GPU-1") is None
    with leases.hold("GPU-1"):
        assert leases.owner("GPU-1") == os.getpid()


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(PerfgateError, match="File exists") as raised,
        DeviceLeases(tmp_path / "file").hold("GPU-1"),
    ):
        pass
    assert raised.value.code.name == "locks-unusable"

    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(PerfgateError, match="No space left"), DeviceLeases(tmp_path).hold("GPU-1"):
        pass
    assert VARIABLE not in os.environ


def test_a_file_that_is_there_is_not_asked_to_be_made(tmp_path, leases, monkeypatch) -> None:
    """Of another user's in a sticky folder the kernel would refuse it."""
    with leases.hold("GPU-1"):
        pass
    opened, plain = [], os.open
    monkeypatch.setattr(os, "open", lambda path, flags, mode=0o777: opened.append(flags) or plain(path, flags, mode))
    with leases.hold("GPU-1"):
        pass
    assert [bool(flags & os.O_CREAT) for flags in opened] == [False]


def test_who_waits_is_told_for_whom_at_once_and_every_minute(tmp_path) -> None:
    lines: list[str] = []
    leases = DeviceLeases(tmp_path, patience_s=130, sleep=lambda seconds: None, tell=lines.append)
    with holder(tmp_path) as other:
        other.stdout.readline()
        with pytest.raises(PerfgateError, match="waited 130 s"), leases.hold("GPU-1"):
            pass
        other.stdin.close()
    assert lines == [f"process {other.pid} measures on GPU-1; this run waits for it, 130 s at most"] * 3


def test_a_device_that_was_waited_for_in_vain_is_not_waited_for_again(tmp_path) -> None:
    """Every further case of the run waited an hour of its own."""
    slept: list[float] = []
    leases = DeviceLeases(tmp_path, patience_s=1, sleep=slept.append)
    with holder(tmp_path) as other:
        other.stdout.readline()
        with pytest.raises(PerfgateError, match="waited 1 s"), leases.hold("GPU-1"):
            pass
        waited = len(slept)
        with pytest.raises(PerfgateError, match=f"process {other.pid} .* had waited 1 s for it"), leases.hold("GPU-1"):
            pass
        assert len(slept) == waited
        other.stdin.close()
    with leases.hold("GPU-1"):
        assert leases.owner("GPU-1") == os.getpid(), "free again, it is taken"
    with holder(tmp_path) as other:
        other.stdout.readline()
        with pytest.raises(PerfgateError, match="waited 1 s"), leases.hold("GPU-1"):
            pass
        assert len(slept) > waited, "and whoever took it since is waited for"
        other.stdin.close()
