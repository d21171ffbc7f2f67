"""Messages of the child protocol as JSON lines, and single values of the model as JSON."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from pytest_perfgate.model import children
from pytest_perfgate.model.children import Answer, Command
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plain import plain

T = TypeVar("T")
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        children.Job, children.Go, children.Skip, children.Measure, children.Finish, children.Hello,
        children.Collected, children.Ready, children.Entered, children.Waits, children.Taken, children.Finished,
        children.Bye,
    )
}  # fmt: skip


class _Envelope(msgspec.Struct):
    kind: str
    body: msgspec.Raw


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_DECODERS: dict[type, Any] = {}
_ONE_BY_ONE = threading.Lock()
"""msgspec crashes where two threads ask it for the first time what the same dataclass holds."""


def encode_line(message: Answer | Command) -> bytes:
    """One message as one line."""
    body = msgspec.Raw(msgspec.json.encode(message, enc_hook=plain))
    return msgspec.json.encode(_Envelope(kind=type(message).__name__, body=body)) + b"\n"


def decode_line(line: bytes) -> Any:
    """The message of a line; whatever is no message is ``child-garbled``."""
    try:
        envelope = _ENVELOPE.decode(line)
        return _decoder(_KINDS[envelope.kind]).decode(envelope.body)
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError) as fault:
        shown = line[:60].decode("utf-8", "replace")
        raise PerfgateError("child-garbled", f"the channel carried {shown!r}, which is no message: {fault}") from fault


def encode_value(model_value: object) -> bytes:
    """A value of the model as JSON: for files between processes of one run."""
    return msgspec.json.encode(model_value, enc_hook=plain)


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    with _ONE_BY_ONE:
        if kind not in _DECODERS:
            _DECODERS[kind] = msgspec.json.Decoder(kind)
        found: msgspec.json.Decoder[T] = _DECODERS[kind]
        return found


def decode_value(text: bytes, kind: type[T]) -> T:
    """The value again; half a file is ``child-garbled``."""
    try:
        return _decoder(kind).decode(text)
    except msgspec.MsgspecError as fault:
        raise PerfgateError("child-garbled", f"no value of this version: {fault}") from fault
