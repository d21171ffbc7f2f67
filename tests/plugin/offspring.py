"""Children of a forked run, forked too: a copy of the process from before the run began makes them.

Each is a process of its own, in a session of its own, with the folder, the variables and the output that the run gives
it. It has imported pytest already, which is most of what a child takes, and nothing of the project. A child with
another interpreter, with flags, or with variables that Python reads when it starts is started as ever.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from types import SimpleNamespace
from typing import Any, NoReturn

MOST = 1 << 20
"""Bytes of a request: words and variables of one child."""

Begin = Callable[[Mapping[str, Any]], NoReturn]
"""What makes a fork the process that is asked for, and ends it."""


class Parent:
    """The copy, and what a run asks of it: to fork, and how a fork ended."""

    def __init__(self, begin: Begin) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_by_one = Lock()
        self._run, self._pid = os.getpid(), os.fork()
        if self._pid == 0:
            self._line.close()
            serve(theirs, begin)
        theirs.close()
        atexit.register(self._end)

    def start(self, wanted: Mapping[str, object], out: int) -> int:
        return int(self._asked(wanted, [out]))

    def ended(self, pid: int) -> int | None:
        answer = self._asked({"ended": pid}, [])
        return None if answer is None else int(answer)

    def _end(self) -> None:
        """Nothing is left of it when the run has ended; a fork of the run itself leaves it alone."""
        if os.getpid() == self._run:
            with suppress(OSError):  # what a test waited for, or ended, is gone already
                self._line.shutdown(socket.SHUT_RDWR)
                os.waitpid(self._pid, 0)

    def _asked(self, request: Mapping[str, object], files: list[int]) -> Any:
        with self._one_by_one:
            socket.send_fds(self._line, [json.dumps(request).encode()], files)
            return json.loads(self._line.recv(MOST))


def serve(line: socket.socket, begin: Begin) -> None:
    """Until the run has ended; a fork goes its own way and never comes back here."""
    while True:
        text, files, _, _ = socket.recv_fds(line, MOST, 1)
        if not text:
            os._exit(0)
        request = json.loads(text)
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = born(line, request, files[0], begin)
            os.close(files[0])
        line.send(json.dumps(answer).encode())


def born(line: socket.socket, request: Mapping[str, Any], out: int, begin: Begin) -> int:
    """A fork that leads a session, as soon as it does: its group may be ended at once."""
    leads, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        line.close()
        os.close(leads)
        os.close(ready)
        begin({**request, "out": f"/proc/self/fd/{out}"})
    os.close(ready)
    os.read(leads, 1)
    os.close(leads)
    return pid


class Fork:
    """What ``subprocess.Popen`` is to its child."""

    def __init__(self, parent: Parent, pid: int) -> None:
        self.pid, self.returncode = pid, None
        self._parent = parent

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.ended(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (timeout if timeout is not None else 600)
        while (code := self.poll()) is None:
            if time.monotonic() >= until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.005)
        return code


def forking(parent: Parent, alike: Callable[[Sequence[str], Mapping[str, str]], bool]) -> SimpleNamespace:
    """The module ``subprocess`` for the code that starts children, with forks in place of the children that can be."""

    def started(command: Sequence[str], **options: Any) -> Any:
        env = options.get("env")
        if not env or not alike(command, env):
            return subprocess.Popen(command, **options)
        wanted = {"words": list(command), "cwd": str(options["cwd"]), "env": dict(env)}
        return Fork(parent, parent.start(wanted, options["stdout"].fileno()))

    return SimpleNamespace(**{**vars(subprocess), "Popen": started})
