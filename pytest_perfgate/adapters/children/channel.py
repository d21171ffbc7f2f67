"""The control channel: JSON lines over a socket of this machine, closed by either side's end."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

from pytest_perfgate.adapters.children.codec import decode_line, encode_line
from pytest_perfgate.adapters.children.strays import end_with_parent
from pytest_perfgate.model.children import Answer, Command, Hello
from pytest_perfgate.model.errors import PerfgateError

VARIABLE = "PERFGATE_CHANNEL"
"""``port:token`` on the loopback interface: inherited through launchers, where descriptors are closed."""


class Line:
    """Whole lines from a stream socket, in both directions."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest = connection, b""

    def send(self, message: Answer | Command, timeout_s: float | None = None) -> None:
        """Hands a message over; ``TimeoutError`` when the other side does not take it."""
        self._connection.settimeout(timeout_s)
        self._connection.sendall(encode_line(message))

    def receive(self, timeout_s: float | None = None) -> Any:
        """The next message; ``EOFError`` when the other side is gone, ``TimeoutError`` when it is silent."""
        self._connection.settimeout(timeout_s)
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = self._connection.recv(1 << 16)
            if not part:
                self._rest = b""
                left = b"".join(parts)
                raise EOFError(f"closed after {len(left)} bytes of an unfinished message" if left else "closed")
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return decode_line(line)

    def close(self) -> None:
        """Ends both directions; a thread that waits for a message wakes up."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class ParentChannel:
    """The parent, seen from its child: when the channel closes, the child ends."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def send(self, answer: Answer) -> None:
        try:
            self._line.send(answer)
        except OSError:
            _leave()

    def receive(self) -> Command:
        try:
            command: Command = self._line.receive()
        except (EOFError, OSError):
            _leave()
        return command


def connect_parent(address: str) -> ParentChannel:
    """Answer the parent that left its address in our environment."""
    port, _, token = address.partition(":")
    try:
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
    except (OSError, ValueError) as fault:
        raise PerfgateError("child-orphan", f"{VARIABLE}={address!r} leads nowhere: {fault}") from fault
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(None)
    end_with_parent()
    channel = ParentChannel(Line(connection))
    channel.send(Hello(token=token, pid=os.getpid()))
    return channel


def _leave() -> Any:
    """The parent is gone: leave without a word, and without running anything more of the user's tests."""
    os._exit(0)
