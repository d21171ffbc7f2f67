"""Processes: commands that end with everything they started, and which processes belong to this run."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import get_native_id
from typing import NamedTuple

from pytest_perfgate.adapters.system.files import file_tail, indented

TIMED_OUT = 124
"""The exit code of a command that was ended after its time, as of timeout(1)."""

_LOG_LINES, _WORDS = 30, 6
_GRACE_S = 5.0

_WATCH = """
import os, signal, subprocess, sys, threading

def watch():
    sys.stdin.buffer.read(1)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=watch, daemon=True).start()
code = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
os._exit(code if code >= 0 else 128 - code)
"""
"""Ends the whole group, compilers included, when our end of the pipe closes, even if we are killed."""


_DRIVERS = frozenset({"libcuda.so", "libamdhip64.so", "libOpenCL.so"})


def drivers(maps: Path = Path("/proc/self/maps")) -> frozenset[str]:
    """Return the device libraries that this process has loaded; if unknown, all of them."""
    try:
        text = maps.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _DRIVERS
    return frozenset(name for name in _DRIVERS if f"/{name}" in text)


def mapped_libraries() -> set[str]:
    """Return the shared libraries in this process; empty if the system does not list them."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    files = {line.split(maxsplit=5)[-1] for line in lines if line.count("/")}
    return {file for file in files if ".so" in Path(file).name and file.startswith("/")}


def threads(tasks: Path = Path("/proc/self/task")) -> int:
    """Return the number of threads of this process; 0 if unknown."""
    try:
        return sum(1 for _ in tasks.iterdir())
    except OSError:
        return 0


def run_logged(command: Sequence[str], log: Path, *, folder: Path, env: Mapping[str, str], timeout_s: float) -> int:
    """Run a command, append its output to a log, and return its exit code, 128 + N after signal N, or ``TIMED_OUT``."""
    if not is_installed(command[0], folder, env.get("PATH", "")):
        raise FileNotFoundError(errno.ENOENT, f"{command[0]} is not installed", command[0])
    line = [sys.executable, "-I", "-S", "-c", _WATCH, *command]
    with log.open("ab") as out:
        process = subprocess.Popen(
            line, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
        )
        with process:  # leaving it closes the pipe, which ends what still runs
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return TIMED_OUT


def run_captured(
    command: Sequence[str],
    timeout_s: float | None,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command and return its output; after a timeout its whole process group is ended."""
    source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=env,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            out, err = process.communicate(stdin, timeout_s)
        except BaseException:
            end_group(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def answer(command: Sequence[str], timeout_s: float) -> str | None:
    """Return the output of a command; None if it is missing, fails or does not end."""
    try:
        result = run_captured(command, timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if result.returncode else result.stdout.decode("utf-8", "replace")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group of a command, first by a request, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):  # the second also for members that would outlive their leader
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def is_installed(program: str, folder: Path, path: str) -> bool:
    """Return whether a command can start: a path from its folder, or a name on the search path."""
    if Path(program).name != program:
        return os.access(folder / program, os.X_OK)
    return shutil.which(program, path=path) is not None


def abridged(command: Sequence[str]) -> str:
    """Return the beginning of a command line, quoted for a shell."""
    return shlex.join(command[:_WORDS]) + (" ..." if len(command) > _WORDS else "")


def log_tail(log: Path) -> str:
    """Return the last lines of a log as they are shown below an error."""
    return indented(file_tail(log, _LOG_LINES))


# which processes live, and which belong to this run

PROC = Path("/proc")


def alive(pid: int) -> bool:
    """Return whether a process with this number runs, also one of another user."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # or a number that no process can have
        return False
    except PermissionError:
        return True
    return True


def stat_of(folder: Path) -> list[str]:
    """Return what the kernel says of a process, from its state on (proc(5), stat); empty if unknown."""
    try:
        return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int) -> str:
    """Return when a process started, in ticks, which distinguishes it from a later one with the same number."""
    return "".join(stat_of(PROC / str(pid))[19:20])


def lineage(pid: int) -> tuple[int, ...]:
    """Return a process and its ancestors, up to the first of all."""
    line = []
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = int("".join(stat_of(PROC / str(pid))[1:2]) or 0)
    return tuple(line)


class OtherProcesses(NamedTuple):
    """Processes that may not belong to this run."""

    foreign: tuple[int, ...] = ()
    """Processes outside its tree."""
    elsewhere: tuple[int, ...] = ()
    """Processes missing from this process table: of another container, or our own with numbers from outside."""


def other_processes_of(pids: tuple[int, ...], root: int) -> OtherProcesses:
    """Return processes that are not below the run's root and not above this one."""
    me = os.getpid()
    own = {me, *lineage(me)} - ({1} - {me, root})
    present = tuple(pid for pid in pids if (PROC / str(pid)).exists())
    return OtherProcesses(
        foreign=tuple(pid for pid in present if pid not in own and root not in lineage(pid)),
        elsewhere=tuple(pid for pid in pids if pid not in present),
    )


class ProcessMemory:
    """Measures the memory that a call uses in this process."""

    def traced(self, call: Callable[[], object]) -> float:
        """Return the peak of Python's allocators and of libraries that report to them, as numpy does."""
        import tracemalloc

        before = tracemalloc.is_tracing()
        with _collected_alone():
            tracemalloc.start()
            try:
                tracemalloc.reset_peak()
                level = tracemalloc.get_traced_memory()[0]
                result = call()
                peak = tracemalloc.get_traced_memory()[1] - level
            finally:
                if not before:
                    tracemalloc.stop()
            del result
        return float(peak)

    def resident(self, call: Callable[[], object]) -> float | None:
        """Return the peak that the kernel counts for this process; ``None`` if its mark cannot be reset."""
        with _collected_alone():
            _give_back()
            try:
                Path("/proc/self/clear_refs").write_bytes(b"5")  # resets the high-water mark: proc(5)
                before = _status("VmRSS")
                result = call()
                peak = _status("VmHWM") - before
            except (OSError, LookupError):
                return None
            del result
        return float(max(0, peak))

    def children(self) -> int:
        """Return how many pages of memory processes below this one have taken so far, also those that ended."""
        import resource

        stats = {place.name: stat_of(place) for place in PROC.glob("[1-9]*")}
        parents, living = {str(os.getpid())}, 0
        while parents:
            parents = {pid for pid, stat in stats.items() if stat and stat[1] in parents}
            living += sum(int(count) for pid in parents for count in stats[pid][7:9])
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt + living


@contextlib.contextmanager
def _collected_alone() -> Iterator[None]:
    """Collect the garbage of a call alone: a search among the objects of thousands of tests takes 0.1 s each time."""
    nothing_frozen = not gc.get_freeze_count()
    (gc.freeze if nothing_frozen else gc.collect)()  # what the program froze itself stays so
    try:
        yield
    finally:
        gc.collect()
        if nothing_frozen:
            gc.unfreeze()


def _give_back() -> None:
    """Return freed memory to the kernel, or memory kept from an earlier call would hide this one's."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # other C libraries cannot do it
        ctypes.CDLL(None).malloc_trim(0)


def _status(name: str) -> int:
    """Return the bytes of an entry in the kernel's status of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


_accounts: dict[tuple[int, int], int] = {}
"""The open files of the kernel's accounts, by process and thread, since a fork needs its own."""


def queued_ns() -> int:
    """Return the nanoseconds that the calling thread has waited for a processor; 0 if unknown."""
    thread = (os.getpid(), get_native_id())
    try:
        if thread not in _accounts:
            _accounts[thread] = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_accounts[thread], 64, 0).split()[1])
    except (OSError, IndexError, ValueError):
        return 0
