from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.children.channel import VARIABLE, Line, decode_line, encode_line
from pytest_perfgate.adapters.children.spawn import LocalNursery
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.model.protocol import Bye, ChildSpec, Entered, Go, Hello, Measure, Ready

MESSAGES = [
    Go(),
    Measure(plan=Plan(budget_ns=2e7)),
    Ready(nodeid="tests/a b.py::test[naïve-µ]"),
    Entered(key=CaseKey(nodeid="n", name="fwd")),
    Bye(modules=(("a.py", "00"),)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_messages_come_back_as_they_went(message: object) -> None:
    line = encode_line(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line) == message


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"{}", b'{"kind":"Nobody","body":{}}', b'{"kind":"Ready","body":{}}', b"\xff\xfe"]
)
def test_what_is_no_message_is_garbled(line: bytes) -> None:
    with pytest.raises(PerfgateError, match="no message"):
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


def spec(code: str) -> ChildSpec:
    return ChildSpec(argv=("-c", code), python=(sys.executable, "-S"), cwd=Path(), env=(), label="the test's child")


CALLS = f"""
import os, socket
port, token = os.environ["{VARIABLE}"].split(":")
def call(text):
    line = socket.create_connection(("127.0.0.1", int(port)))
    line.sendall(text.encode() + b"\\n")
    return line
"""


def test_a_stranger_without_the_token_is_hung_up_on() -> None:
    hello = '{"kind": "Hello", "body": {"token": "%s", "pid": 1}}'
    code = f"{CALLS}\nstranger = call('{hello}' % 'guess')\nown = call('{hello}' % token)\n"
    code += 'own.sendall(b\'{"kind": "Bye", "body": {}}\\n\'); own.recv(1)'
    child = LocalNursery().spawn(spec(code))
    try:
        assert child.receive(10) == Bye()
    finally:
        child.close()


def test_a_child_that_dies_before_it_calls_says_what_it_printed() -> None:
    child = LocalNursery().spawn(spec("import sys; sys.exit('no such option: --frobnicate')"))
    with pytest.raises(PerfgateError, match="exit code 1") as caught:
        child.receive(10)
    assert "--frobnicate" in str(caught.value)
    child.close()


def test_a_launcher_that_is_not_there_is_named() -> None:
    with pytest.raises(PerfgateError, match="no-such-launcher does not start"):
        LocalNursery().spawn(ChildSpec(argv=(), python=("x",), cwd=Path(), env=(), prefix=("no-such-launcher",)))


def test_hello_is_a_message_too() -> None:
    assert decode_line(encode_line(Hello(token="t", pid=1))) == Hello(token="t", pid=1)
