"""Whose a process on a card is."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_perfgate.adapters.system import processes
from pytest_perfgate.adapters.system.processes import (
    TIMED_OUT,
    ProcessMemory,
    abridged,
    answer,
    drivers,
    log_tail,
    other_processes_of,
    queued_ns,
    run_captured,
    run_logged,
)
from tests.waits import ended, patient, until


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A process table: who is below whom, and who this process is."""

    def make(me: int, **parents: int) -> None:
        for name, above in parents.items():
            folder = tmp_path / name.removeprefix("p")
            folder.mkdir()
            (folder / "stat").write_text(f"{folder.name} (python) S {above} 0 0", encoding="utf-8")
        monkeypatch.setattr(processes, "PROC", tmp_path)
        monkeypatch.setattr(os, "getpid", lambda: me)

    return make


def test_a_run_below_a_shell(table) -> None:
    table(30, p1=0, p10=1, p20=10, p30=20, p31=30, p40=1)
    assert other_processes_of((20, 30, 31, 10), root=20) == ((), ())
    assert other_processes_of((1, 40), root=20) == ((1, 40), ())


@pytest.mark.parametrize("me", [1, 7])
def test_a_run_that_is_the_first_process_of_its_container(table, me) -> None:
    table(me, p1=0, p7=1, p8=7, p50=0)
    assert other_processes_of((1, 7, 8), root=1) == ((), ())
    assert other_processes_of((50,), root=1).foreign == (50,)


def test_numbers_of_elsewhere_are_told_and_not_foreign(table) -> None:
    table(7, p1=0, p7=1)
    assert other_processes_of((7, 3999999, 3999998), root=7) == ((), (3999999, 3999998))


LONG = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True); subprocess.run(['sleep', '60'])"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LONG}"


def last_line(log: Path) -> str:
    return until(lambda: log.read_text() if log.exists() and log.read_text().endswith("\n") else "")


def logged(command: list[str], log: Path, timeout_s: float = 60) -> int:
    return run_logged(command, log, folder=log.parent, env=dict(os.environ), timeout_s=timeout_s)


def test_a_logged_command_that_hangs_ends_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient(monkeypatch, lambda: last_line(tmp_path / "log"))
    assert logged([sys.executable, "-S", "-c", LONG], tmp_path / "log", 0.5) == TIMED_OUT
    assert ended(int((tmp_path / "log").read_text()))


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_a_logged_command_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import os, sys; from pathlib import Path; from pytest_perfgate.adapters.system.processes import run_logged\n"
        f"run_logged([sys.executable, '-S', '-c', {LONG!r}], Path({str(log)!r}), folder=Path({str(tmp_path)!r}), "
        "env=dict(os.environ), timeout_s=60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    started = int(last_line(log))
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert ended(started)


@pytest.mark.parametrize("program", ["no-such-builder", "./build.sh"])
def test_a_program_that_is_not_there_is_named(tmp_path: Path, program: str) -> None:
    with pytest.raises(FileNotFoundError, match="is not installed") as caught:
        logged([program], tmp_path / "log")
    assert caught.value.filename == program


def test_the_exit_code_of_a_killed_command_is_that_of_a_shell(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("#!/bin/sh\necho 'läuft'; kill -9 $$\n")
    (tmp_path / "build.sh").chmod(0o755)
    assert logged(["./build.sh"], tmp_path / "log") == 137
    assert log_tail(tmp_path / "log") == "\n    läuft"


def test_the_tail_of_a_log_is_cut_and_a_lost_one_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert log_tail(log) == ""
    log.write_bytes(b"\xff" + b"x" * 1000 + b"\n" * 2 + b"\n".join(b"%d" % n for n in range(100)))
    lines = log_tail(log).splitlines()
    assert (len(lines), lines[-1]) == (31, "    99")


def test_a_captured_command_returns_both_outputs_and_its_exit_code(tmp_path: Path) -> None:
    code = "import sys; data = sys.stdin.read(); print(data[::-1]); print('no', file=sys.stderr); sys.exit(3)"
    done = run_captured([sys.executable, "-c", code], 20, folder=tmp_path, stdin=b"abc")
    assert (done.returncode, done.stdout.split(), done.stderr.split()) == (3, [b"cba"], [b"no"])


@pytest.mark.parametrize("program", [LONG, STUBBORN])
def test_a_captured_command_that_hangs_ends_with_all_it_started(program: str, monkeypatch) -> None:
    communicate = subprocess.Popen.communicate

    def heard(process: Any, stdin: bytes | None, timeout: float | None) -> tuple[bytes, bytes]:
        """Not given up before it has said a line."""
        while True:
            try:
                return communicate(process, stdin, timeout)
            except subprocess.TimeoutExpired as late:
                if late.output:
                    raise

    monkeypatch.setattr(subprocess.Popen, "communicate", heard)
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        run_captured([sys.executable, "-S", "-c", program], 0.2)
    assert ended(int(caught.value.output))


def test_an_answer_is_the_output_of_a_command_that_ended_well() -> None:
    assert answer([sys.executable, "-c", "print(1)"], 20) == "1\n"
    assert answer([sys.executable, "-c", "raise SystemExit(1)"], 20) is None
    assert answer(["no-such-program"], 20) is None
    assert answer([sys.executable, "-c", "import time; time.sleep(60)"], 0.2) is None


@pytest.mark.parametrize(
    ("maps", "names"),
    [
        ("7f0 r-xp /usr/lib/libc.so.6\n7f1 r-xp /opt/libcudart.so.13\n", set()),
        ("7f0 r-xp /usr/lib/libcuda.so.580.159.04\n", {"libcuda.so"}),
        (
            "7f0 r-xp /opt/rocm/lib/libamdhip64.so.7\n7f1 r-xp /usr/lib/libOpenCL.so.1\n",
            {"libamdhip64.so", "libOpenCL.so"},
        ),
    ],
)
def test_libraries_of_devices_that_a_process_has_loaded(tmp_path: Path, maps: str, names: set[str]) -> None:
    (tmp_path / "maps").write_text(maps)
    assert drivers(tmp_path / "maps") == names


def test_where_the_system_does_not_tell_any_library_may_be_loaded(tmp_path: Path) -> None:
    assert "libcuda.so" in drivers(tmp_path / "none")


def test_a_long_command_line_is_abridged() -> None:
    assert abridged(["a", "b c"]) == "a 'b c'"
    assert abridged(list("abcdefgh")) == "a b c d e f ..."


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's account is Linux's")
def test_waits_for_a_processor_are_counted() -> None:
    begun, before = time.perf_counter_ns(), queued_ns()
    time.sleep(0.02)
    assert before <= queued_ns() <= before + time.perf_counter_ns() - begun


MEGABYTE = 1_000_000


def test_memory_that_numpy_asks_for_is_traced_to_the_byte() -> None:
    peaks = {ProcessMemory().traced(lambda: np.ones(MEGABYTE, np.uint8)) for _ in range(3)}
    assert MEGABYTE <= min(peaks) <= max(peaks) < MEGABYTE + 1000


def test_what_a_call_frees_before_it_returns_counts_at_its_peak() -> None:
    def call() -> int:
        return sum(len(bytes(MEGABYTE)) for _ in range(5))

    assert ProcessMemory().traced(call) == pytest.approx(MEGABYTE, rel=0.02)


def test_objects_from_before_a_call_are_not_searched_for_garbage() -> None:
    """Thousands of tests hold so many that each search among them takes 0.1 s."""

    class Node:
        me: object = None

    gc.unfreeze()  # as in any process but this one
    gc.disable()
    try:
        before = Node()
        before.me, old = before, weakref.ref(before)
        del before
        ProcessMemory().traced(int)
        ProcessMemory().resident(int)
        assert old() is not None
        assert gc.get_freeze_count() == 0
    finally:
        gc.enable()
        gc.freeze()


def test_tracing_that_somebody_began_goes_on() -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        ProcessMemory().traced(lambda: bytes(MEGABYTE))
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    ProcessMemory().traced(lambda: bytes(MEGABYTE))
    assert not tracemalloc.is_tracing()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's mark is Linux's")
def test_memory_that_nobody_traces_is_seen_by_the_kernel() -> None:
    import mmap

    def call() -> int:
        with mmap.mmap(-1, 20 * MEGABYTE) as pages:
            pages.write(b"1" * 20 * MEGABYTE)
            return pages.tell()

    sizes = [ProcessMemory().resident(call) for _ in range(3)]
    assert all(one is not None and one >= 20 * MEGABYTE for one in sizes), sizes
    idle = ProcessMemory().resident(int)
    assert idle is not None
    assert idle < 5 * MEGABYTE


def test_where_the_kernel_has_no_mark_nobody_guesses(monkeypatch) -> None:
    monkeypatch.setattr(processes, "_status", lambda name: {}[name])
    assert ProcessMemory().resident(int) is None


def test_memory_of_child_processes_is_counted_while_they_live_and_afterwards() -> None:
    memory, code = ProcessMemory(), "import sys; taken = b'1' * 8_000_000; print(flush=True); sys.stdin.read()"
    before = memory.children()
    command = [sys.executable, "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        alive = memory.children() - before
    assert 100 < alive <= memory.children() - before
