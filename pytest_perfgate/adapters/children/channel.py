"""Messages between parent and child as JSON lines over a socket, and how a child ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from pytest_perfgate.adapters.system.processes import PROC, stat_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Answer, Command, Fork, Forked, Hello, Reap, Reaped
from pytest_perfgate.model.values import plain

VARIABLE = "PERFGATE_CHANNEL"
"""``port:token`` on the loopback interface; launchers pass it on, while they close descriptors."""


class Line:
    """Messages as lines over a stream socket, in both directions."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest = connection, b""

    def send(self, message: Answer | Command, timeout_s: float | None = None) -> None:
        """Send a message; raise ``TimeoutError`` if the other side does not take it."""
        self._connection.settimeout(timeout_s)
        self._connection.sendall(encode_line(message))

    def receive(self, timeout_s: float | None = None) -> Any:
        """Return the next message; raise ``EOFError`` if the other side is gone, ``TimeoutError`` if it is silent."""
        self._connection.settimeout(timeout_s)
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = self._connection.recv(1 << 16)
            if not part:
                self._rest = b""
                rest = b"".join(parts)
                raise EOFError(f"closed after {len(rest)} bytes of an unfinished message" if rest else "closed")
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return decode_line(line)

    def drop(self) -> None:
        """Close this end of a connection that another process continues to use."""
        self._connection.close()

    def close(self) -> None:
        """End both directions; a thread that waits for a message wakes up."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class ParentChannel:
    """The parent, seen from its child; when the channel closes, the child ends."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def send(self, answer: Answer) -> None:
        try:
            self._line.send(answer)
        except OSError:
            _exit_now()

    def receive(self) -> Command:
        try:
            command: Command = self._line.receive()
        except (EOFError, OSError):
            _exit_now()
        return command

    def forked(self, refusal: Callable[[], str]) -> tuple[ParentChannel, str]:
        """Fork as often as the parent asks; return only in a fork, with its own channel and output file.

        The forking process never returns: it ends with its parent, and its forks end with it.
        """
        me = os.getpid()
        while True:
            order = self.receive()
            if isinstance(order, Reap):
                self.send(Reaped(code=_exit_code(order.pid)))
            elif not isinstance(order, Fork):
                _exit_now()
            elif why := refusal():
                self.send(Forked(why=why))
            elif pid := os.fork():
                with suppress(OSError):  # the fork does the same: one of both is first
                    os.setpgid(pid, pid)
                self.send(Forked(pid=pid))
            else:
                end_with_parent()
                os.setpgid(0, 0)
                if os.getppid() != me:
                    _exit_now()
                self._line.drop()
                os.environ[MARK] = order.mark  # marks the fork's own children, apart from those of its siblings
                return connect_parent(order.address), order.output


def connect_parent(address: str) -> ParentChannel:
    """Connect to the parent whose address is in our environment."""
    port, _, token = address.partition(":")
    try:
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
    except (OSError, ValueError) as fault:
        raise PerfgateError("child-orphan", f"{VARIABLE}={address!r} leads nowhere: {fault}") from fault
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    end_with_parent()
    channel = ParentChannel(Line(connection))
    channel.send(Hello(token=token))
    return channel


def _exit_code(pid: int) -> int | None:
    """Return the exit code of a fork, a signal as a negative number; None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if ended else None


def _exit_now() -> Any:
    """Exit at once, because the parent is gone, without running any more of the user's tests."""
    os._exit(0)


T = TypeVar("T")

_KINDS: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Command), *get_args(Answer))}


_DECODERS: dict[type, Any] = {}

_ONE_BY_ONE = threading.Lock()
"""msgspec crashes if two threads need the fields of one dataclass for the first time."""


def encode_line(message: Answer | Command) -> bytes:
    """Return one message as a line: its kind and its JSON."""
    return type(message).__name__.encode() + b" " + encode_value(message) + b"\n"


def decode_line(line: bytes) -> Any:
    """Return the message of a line; anything else is ``child-garbled``."""
    name, _, body = line.partition(b" ")
    try:
        return _value(body, _KINDS[name.decode()])
    except (msgspec.MsgspecError, ValueError, KeyError) as fault:
        shown = line[:60].decode("utf-8", "replace")
        what = f"the channel carried {shown!r}, which is not a message: {fault}"
        raise PerfgateError("child-garbled", what) from fault


def encode_value(model_value: object) -> bytes:
    """Return a value of the model as JSON, for messages and files between processes of one run."""
    try:
        return msgspec.json.encode(model_value, enc_hook=plain)
    except UnicodeEncodeError:  # surrogates: of a path whose bytes are not UTF-8, or in a test's own text
        return json.dumps(msgspec.to_builtins(model_value, str_keys=True, enc_hook=plain)).encode()


def decode_value(text: bytes, kind: type[T]) -> T:
    """Return the value of a text; an incomplete one is ``child-garbled``."""
    try:
        return _value(text, kind)
    except (msgspec.MsgspecError, ValueError) as fault:
        raise PerfgateError("child-garbled", f"no value of this version: {fault}") from fault


def _value(text: bytes, kind: type[T]) -> T:
    """Return the value of a text; msgspec reads no surrogates alone, and Python's own reader does."""
    with _ONE_BY_ONE:
        decoder = _DECODERS[kind] = _DECODERS.get(kind) or msgspec.json.Decoder(kind)
    surrogates = b"\\ud" in text
    result: T = msgspec.convert(json.loads(text), kind, str_keys=True) if surrogates else decoder.decode(text)
    return result


_SET_END_WITH_PARENT = 1

PARENT, MARK = "PERFGATE_PARENT", "PERFGATE_CHILD"
"""Variables that all processes started by a child inherit, in any session: the run's process, and the child's mark."""


def end_with_parent() -> None:
    """Make Linux end this process when its parent is killed, since a call may take long with the clocks locked.

    On other systems a child notices only when its call returns.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_SET_END_WITH_PARENT, int(signal.SIGTERM), 0, 0, 0)


def leftover_children(processes: Path = PROC) -> tuple[int, ...]:
    """Return their process ids as far as this user may see them; empty without ``/proc``."""
    parents = ((folder.name, _parent(folder)) for folder in processes.glob("[0-9]*") if not _is_contained(folder))
    return tuple(sorted(int(pid) for pid, parent in parents if parent and not (processes / parent).exists()))


def marked(mark: str, processes: Path = PROC) -> tuple[int, ...]:
    """Return the running processes that were started with this mark."""
    word = f"{MARK}={mark}".encode()
    return tuple(int(folder.name) for folder in processes.glob("[0-9]*") if word in _environ(folder))


def any_running(group: int, others: Collection[int] = ()) -> bool:
    """Return whether a process group or other processes have a running member; True without ``/proc``."""
    if not PROC.is_dir():
        return True
    folders = PROC.glob("[0-9]*")
    members = (folder for folder in folders if stat_of(folder)[2:3] == [str(group)] or int(folder.name) in others)
    return any(stat_of(folder)[:1] not in ([], ["Z"], ["X"]) for folder in members)


def _parent(folder: Path) -> str:
    """Return the parent of a child, by the variable that it was started with."""
    values = (line[len(PARENT) + 1 :] for line in _environ(folder) if line.startswith(PARENT.encode() + b"="))
    text = next(values, b"").decode("ascii", "replace")
    return text if text.isdecimal() else ""


def _is_contained(folder: Path) -> bool:
    """Return whether a process is in a container, where another process has the number of its parent."""
    try:
        lines = (folder / "status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in lines)


def _environ(folder: Path) -> list[bytes]:
    """Return the variables that a process was started with; none if it has ended.

    During ``exec`` a process has memory but no arguments or variables yet, so it is asked again.
    """
    until = time.monotonic() + 1
    try:
        while not (text := (folder / "environ").read_bytes()) and time.monotonic() < until:
            if stat_of(folder)[20:21] in ([], ["0"]) or (folder / "cmdline").read_bytes():
                break
            time.sleep(0.001)
        return text.split(b"\0")
    except OSError:
        return []


class ForkedProcess:
    """A fork of a child; the child reports its number and its end."""

    def __init__(self, pid: int, ask: Callable[[Command], Answer]) -> None:
        self.pid, self._ask = pid, ask
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            try:
                answer = self._ask(Reap(pid=self.pid))
                self._code = answer.code if isinstance(answer, Reaped) else None
            except PerfgateError:  # the preload is gone, and its forks end with it
                self._code = None if any_running(self.pid) else -int(signal.SIGTERM)
        return self._code

    def wait(self, timeout: float) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(0.01)
        return code
