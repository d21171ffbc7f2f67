"""Starts children in process groups of their own, and ends whole groups; maps over files on a Dask cluster."""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import IO, Any, TypeVar

from pytest_perfgate.adapters.children.channel import (
    MARK,
    PARENT,
    VARIABLE,
    ForkedProcess,
    Line,
    any_running,
    marked,
)
from pytest_perfgate.clock import seconds
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Answer, ChildSpec, Command, Fork, Forked, Hello

_TAIL_BYTES = 4000

_PROGRESS = frozenset(".sxXFE\n")
"""What pytest writes for each test, which explains no error."""

_POLL_S = 0.2

_START_S, _SEND_S = 120.0, 120.0

_END_S, _GRACE_S = 5.0, 3.0


_WATCHER = r"""
groups=
while read -r sign group; do
  if [ "$sign" = + ]; then groups="$groups $group"; continue; fi
  rest=
  for one in $groups; do [ "$one" = "$group" ] || rest="$rest $one"; done
  groups=$rest
done
[ -n "$groups" ] || exit 0
elsewhere() { grep -laz "^PERFGATE_PARENT=$parent\$" /proc/[0-9]*/environ | cut -d/ -f3; }
for one in $groups; do kill -s TERM -- "-$one"; done
kill -s TERM $(elsewhere)
sleep 1
for one in $groups; do kill -s KILL -- "-$one"; done
kill -s KILL $(elsewhere)
"""
"""A script that records running groups, and ends them when its parent is gone, since no other process could."""


class Watcher:
    """A shell that outlives this process until its children's groups have ended."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def begin(self, group: int) -> None:
        with self._lock:
            if self._shell is None:
                quiet = subprocess.DEVNULL
                with suppress(OSError):  # without a shell, children still end with their parent
                    self._shell = subprocess.Popen(
                        ["/bin/sh", "-c", _WATCHER], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet,
                        cwd="/", env={"PATH": os.defpath, "parent": str(os.getpid())}, start_new_session=True,
                    )  # fmt: skip
                    atexit.register(self._end_shell)
            self._write_line(f"+ {group}\n")

    def end(self, group: int) -> None:
        with self._lock:
            self._write_line(f"- {group}\n")

    def _end_shell(self) -> None:
        """End the shell with this process; it ends what still runs."""
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._shell.stdin.close()
                self._shell.wait(timeout=_GRACE_S)

    def _write_line(self, text: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(text.encode())
                self._shell.stdin.flush()


WATCHER = Watcher()


class LocalSpawner:
    """Children on this machine."""

    def spawn(self, spec: ChildSpec) -> LocalChild:
        listener = socket.create_server(("127.0.0.1", 0))
        token, mark = secrets.token_hex(16), secrets.token_hex(8)
        address = f"{listener.getsockname()[1]}:{token}"
        output = tempfile.TemporaryFile()  # noqa: SIM115 - kept as long as the child
        try:
            process = subprocess.Popen(
                _command(spec),
                cwd=spec.cwd,
                env={**dict(spec.env), VARIABLE: address, PARENT: str(os.getpid()), MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as fault:
            output.close()
            listener.close()
            raise PerfgateError("child-start", f"{_command(spec)[0]} does not start: {fault}") from fault
        WATCHER.begin(process.pid)
        _pin(process.pid, spec.cpus)
        return LocalChild(spec.label, ProcessFamily(process, mark), listener, token, output)


class LocalChild:
    """One running child."""

    def __init__(
        self, label: str, family: ProcessFamily, listener: socket.socket, token: str, output: IO[bytes]
    ) -> None:
        self.label, self._family, self._output = label, family, output
        self._listener, self._token = listener, token
        self._process = family.leader
        self._line: Line | None = None
        self._last_text = ""
        self._close_lock, self._request_lock = threading.Lock(), threading.Lock()
        self._closed = False

    def fork(self) -> LocalChild:
        listener, token, mark = socket.create_server(("127.0.0.1", 0)), secrets.token_hex(16), secrets.token_hex(8)
        output = tempfile.NamedTemporaryFile()  # noqa: SIM115 - kept as long as the child
        try:
            pid = self._forked(Fork(address=f"{listener.getsockname()[1]}:{token}", output=output.name, mark=mark))
        except PerfgateError:
            output.close()
            listener.close()
            raise
        WATCHER.begin(pid)
        return LocalChild(self.label, ProcessFamily(ForkedProcess(pid, self._request), mark), listener, token, output)

    def _forked(self, order: Fork) -> int:
        answer = self._request(order)
        if not isinstance(answer, Forked) or not answer.pid:
            raise PerfgateError("child-start", getattr(answer, "why", "") or f"{self.label} answered {answer}")
        return answer.pid

    def _request(self, command: Command) -> Answer:
        with self._request_lock:
            self.send(command)
            return self.receive(_SEND_S)

    def send(self, command: Command) -> None:
        try:
            self._answering().send(command, _SEND_S)
        except TimeoutError as fault:
            raise self._hang_error(f"read nothing for {_SEND_S:.0f} s") from fault
        except OSError as fault:
            raise self._crash_error() from fault

    def receive(self, timeout_s: float) -> Answer:
        line = self._answering()
        try:
            answer: Answer = line.receive(timeout_s)
        except TimeoutError as fault:
            raise self._hang_error(f"sent nothing for {timeout_s:.0f} s") from fault
        except (EOFError, OSError) as fault:
            raise self._crash_error() from fault
        except PerfgateError:
            self.close()
            raise
        return answer

    def close(self) -> None:
        """End everything that the child started, even if it died: first by a request, then by force."""
        with self._close_lock:
            if self._closed:
                return
            self._last_text = self.tail()
            if self._line is not None:
                self._line.close()
            self._listener.close()
            self._family.end()
            WATCHER.end(self._process.pid)
            self._output.close()
            self._closed = True

    def tail(self) -> str:
        if self._output.closed:
            return self._last_text
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        return self._output.read().decode("utf-8", "replace").strip()

    def _answering(self) -> Line:
        """Return the line once the child has connected; connections without the token are closed."""
        deadline = seconds() + _START_S
        while self._line is None:
            if self._process.poll() is not None:
                raise self._crash_error()
            if seconds() > deadline:
                raise self._hang_error(f"did not connect within {_START_S:.0f} s")
            self._line = _accept_child(self._listener, self._token)
        return self._line

    def _hang_error(self, what: str) -> PerfgateError:
        self.close()
        return PerfgateError("child-hung", f"{self.label} {what}{self._last_output()}")

    def _crash_error(self) -> PerfgateError:
        try:
            code = self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            how = f"closed its channel and still ran {_END_S:.0f} s later"
        else:
            how = f"died of {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            how += " (as where memory runs out)" if code == -signal.SIGKILL else ""
        self.close()
        return PerfgateError("child-crashed", f"{self.label} {how}{self._last_output()}")

    def _last_output(self) -> str:
        output = self.tail()
        if set(output) <= _PROGRESS:
            return ""
        return "; its last output:" + "".join(f"\n    {line}" for line in output.splitlines()[-12:])


def _command(spec: ChildSpec) -> list[str]:
    return [*spec.prefix, *spec.python, *spec.argv]


def _accept_child(listener: socket.socket, token: str) -> Line | None:
    listener.settimeout(_POLL_S)
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        return None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line = Line(connection)
    try:
        hello = line.receive(5.0)
    except (OSError, EOFError, PerfgateError):
        hello = None
    if isinstance(hello, Hello) and secrets.compare_digest(hello.token, token):
        return line
    line.close()
    return None


def _pin(pid: int, cpus: tuple[int, ...]) -> None:
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, cpus)


class ProcessFamily:
    """A child and what it started: its process group, and on Linux processes that moved to another session."""

    def __init__(self, leader: subprocess.Popen[bytes] | ForkedProcess, mark: str) -> None:
        self.leader, self._mark = leader, mark

    def end(self) -> None:
        """Ask every member to end, and kill those that do not; the leader may be dead already."""
        for how, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _END_S)):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader.pid, how)
            over = self.leader.poll() is not None  # then nothing new starts, and one reading of all processes will do
            others = marked(self._mark)
            for one in others:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(one, how)
            if self._ends(others, seconds() + patience_s, again=bool(others) or not over):
                break
        self.leader.poll()

    def _ends(self, others: tuple[int, ...], until: float, *, again: bool) -> bool:
        """Return whether all of them ended in time; a killed one loses its mark shortly before it ends."""
        with suppress(subprocess.TimeoutExpired):
            self.leader.wait(timeout=max(0.0, until - seconds()))
            while _is_running(self.leader.pid, others) or (again and marked(self._mark)):
                if seconds() > until:
                    return False
                time.sleep(0.02)
            return True
        return False


def _is_running(group: int, others: tuple[int, ...]) -> bool:
    """Return whether a group or others have a running member; zombies, which many containers keep, do not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return bool(others) and any_running(group, others)
    return any_running(group, others)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def interpreter(*, here: bool, prelude: str = "") -> tuple[str, ...]:
    """Return this interpreter with its flags, running pytest; ``here`` puts the working directory on the path."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # noqa: SLF001 - what multiprocessing uses
    drop = "" if here else "'' in sys.path and sys.path.remove(''); "
    return (sys.executable, *flags, "-c", f"import sys; {prelude}{drop}import pytest; sys.exit(pytest.main())")


T = TypeVar("T")

R = TypeVar("R")

LOCAL = "local"


def mapper(address: str) -> Callable[[Callable[[T], R], Sequence[T]], Iterable[R]]:
    """Return a function that maps over items: on the scheduler ``tcp://HOST:PORT``, or ``local`` in processes here."""
    if not address:
        return map
    if find_spec("distributed") is None:
        raise PerfgateError(
            "cluster-tool", f"workers={address} needs Dask's distributed", fix="pip install distributed"
        )
    return lambda function, items: _on_cluster(address, function, items)


_AT_ONCE = 4
"""Items in progress for each thread of the cluster; unfetched answers use the workers' memory."""


def _on_cluster(address: str, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Yield answers as they arrive; other workers take over the items of a lost one."""
    from distributed import Client, as_completed

    try:
        client = Client(processes=True, threads_per_worker=1) if address == LOCAL else Client(address, timeout=10)
    except (OSError, ValueError, RuntimeError) as broken:
        raise PerfgateError("cluster-tool", f"no scheduler answers at {address}: {broken}") from broken
    with client:
        waiting, owners = iter(items), dict[str, T]()

        def submit(count: int) -> list[Any]:
            futures = []
            for item in islice(waiting, count):
                future = client.submit(partial(attempted, function), item, pure=False)
                owners[future.key] = item
                futures.append(future)
            return futures

        running = as_completed(submit(_AT_ONCE * max(1, sum(client.ncores().values()))))
        for future in running:
            answer = _answer(future, owners.pop(future.key))
            running.update(submit(1))
            yield answer


def _answer(future: Any, item: Any) -> Any:
    """Return a worker's answer; raise with the item's name if it was unreadable or the worker was lost."""
    place = str(item[-1] if isinstance(item, tuple) else item)
    try:
        answer = future.result()
    except Exception as fault:
        if type(fault).__name__ == "KilledWorker":
            raise PerfgateError("cluster-lost", "every worker that read it died", place=place) from fault
        raise PerfgateError("cluster-tool", f"{type(fault).__name__}: {fault}", place=place) from fault
    if isinstance(answer, PerfgateError):
        raise PerfgateError(answer.code.name, answer.what, why=answer.why, fix=answer.fix, place=answer.place or place)
    return answer


def attempted(function: Callable[[T], R], item: T) -> R | PerfgateError:
    """Call the function, and return an error instead of raising: a worker that raises logs a stack trace."""
    try:
        return function(item)
    except PerfgateError as error:
        return error
