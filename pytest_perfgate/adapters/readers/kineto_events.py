"""What is read of each event of a Kineto trace, typed; everything else is skipped unparsed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Union

import msgspec

NOTHING = msgspec.Raw(b"")
Number = Union[int, str, float, None]


class Arguments(msgspec.Struct, gc=False):
    """The arguments that analyses need."""

    correlation: int = -1
    external: int = msgspec.field(name="External id", default=-1)
    sequence: int = msgspec.field(name="Sequence number", default=-1)
    forward_thread: int = msgspec.field(name="Fwd thread id", default=-1)
    device: Union[int, str] = -1
    stream: Union[int, str, None] = -1
    size: Any = msgspec.field(name="bytes", default=-1)
    rank: Union[int, str, None] = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    name: Any = None
    labels: Any = None
    collective: Union[str, None] = msgspec.field(name="Collective name", default=None)
    group: Any = msgspec.field(name="Process Group Name", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    sent: Any = msgspec.field(name="In msg nelems", default=None)
    received: Any = msgspec.field(name="Out msg nelems", default=None)
    dtype: Any = None
    memory_of: Union[int, None] = msgspec.field(name="Device Type", default=0)
    """Of a record of memory: 0 is the host."""


class Event(msgspec.Struct, gc=False):
    """One event."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Number = 0
    tid: Number = 0
    ts: Union[float, None] = None
    dur: Union[float, None] = None
    id: Any = None
    args: Union[Arguments, None] = None


class Header(msgspec.Struct):
    """What stands around the events."""

    distributed: Any = msgspec.field(name="distributedInfo", default=None)
    devices: Any = msgspec.field(name="deviceProperties", default=None)
    compute: Any = msgspec.field(name="computeProperties", default=None)
    record_shapes: Any = None
    base: Any = msgspec.field(name="baseTimeNanoseconds", default=None)


class Document(Header):
    """A whole file at once."""

    events: Union[list[Event], None] = msgspec.field(name="traceEvents", default=None)


LIST = msgspec.json.Decoder(list[Event])
WHOLE = msgspec.json.Decoder(Document)
BARE = msgspec.json.Decoder(Header)


UNREADABLE = Event(ph="X", cat="that is not an event")
"""Stands for what is none, so that it is counted among what was left out."""


def loose_events(found: object) -> list[Event]:
    """Events of untyped JSON, coerced one by one."""
    return [_coerced(raw) if isinstance(raw, dict) else UNREADABLE for raw in found] if isinstance(found, list) else []


def _coerced(raw: dict[str, Any]) -> Event:
    """An event of which every field is taken that has the right type; one without a time is counted by its category."""
    args = raw.get("args")
    event = Event()
    for field in msgspec.structs.fields(Event):
        if field.name in raw and field.name != "args":
            with suppress(msgspec.ValidationError):
                setattr(event, field.name, msgspec.convert(raw[field.name], field.type, strict=False))
    event.args = _coerced_arguments(args) if isinstance(args, dict) else None
    return event if event.ph or event.cat or not raw else UNREADABLE


def _coerced_arguments(args: dict[str, Any]) -> Arguments:
    """Arguments, each taken if it has the right type: one odd value does not lose the event."""
    made = Arguments()
    for field in msgspec.structs.fields(Arguments):
        if field.encode_name not in args:
            continue
        value = args[field.encode_name]
        if field.name in {"dims", "types", "strides", "concrete"}:
            setattr(made, field.name, msgspec.Raw(msgspec.json.encode(value)))
            continue
        try:
            setattr(made, field.name, msgspec.convert(value, field.type, strict=False))
        except msgspec.ValidationError:
            continue
    return made
