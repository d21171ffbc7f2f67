"""Bytes of a trace: unpacked, cut between events, repaired if they are not JSON; and the fields read of events."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, Union

import msgspec

from pytest_perfgate.model.errors import PerfgateError, refusal
from pytest_perfgate.model.values import regex

CHUNK = 2**20

GZIP = b"\x1f\x8b"

CUTS = tuple(b'},%s"ph"' % gap for gap in (b"\n  {\n    ", b"\n  {", b" {", b"{", b"\n{", b"\n    {", b"\n  {\n   "))
"""Matches between two events and never in a legal string, which would escape quotes and line breaks."""

_LONGEST_CUT = max(map(len, CUTS))

_BETWEEN = regex(
    rb'\}\s*,\s*\{\s*(?:"(?:name|id)"\s*:\s*(?:-?\d+|"(?:[^"\\]|\\.){0,2000}")\s*,\s*)?"(?:ph|cat|pid|tid|ts|dur|args)"\s*:'
)
"""The same for other indents and orders; the second event is recognised by a key that only events have."""

_PACKED, _TAIL, _NEAR = 2**18, 2**18, 2**13

MARK = b"\xef\xbb\xbf"

OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')

BARE = re.compile(rb"\s*\[")
"""The opening of a file that is only a list of events."""

_NAME = rb'"name": "(?P<name>(?:(?!"\s*(?:\}|,\s*"[\w ]+"\s*:)).)*?)"(?=, "(?:pid|ph)": )'
"""A name whose own quotes are not escaped, as older versions of PyTorch wrote it: up to the key that follows it."""

_TOKEN = regex(_NAME + rb'|"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity|nan|inf|Inf|N/A)\b|,(?=\s*[\]}])', re.DOTALL)

_CONTROL, _QUOTE, _HALF = regex(rb"[\x00-\x1f]"), regex(rb'(?<!\\)"'), rb"\\u[dD][%s][0-9a-fA-F]{2}"

_ESCAPE = regex(
    rb"(?P<pair>" + _HALF % b"89abAB" + _HALF % b"c-fC-F" + rb")|(?P<half>" + _HALF % b"89a-fA-F" + rb")|"
    rb'(?P<good>\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\'
)

_FILLED = b"\xff" * 4

_RUN = regex(rb"([\x01-\x08\x0b\x0c\x0e-\x1f\x80-\xff])\1{3,}")
"""A run of four equal control characters, or of a byte that UTF-8 repeats at most three times."""


def blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the file's text in blocks, unpacked if it is gzip; offsets are for plain files."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(start)
            read = _unpacked(raw, path) if packed and not start else _plain(raw, end)
            yield from read if start else _unmarked(read, path, packed=packed)
    except OSError as broken:
        raise refusal(broken, str(path)) from broken


def _unmarked(read: Iterator[bytes], path: Path, *, packed: bool) -> Iterator[bytes]:
    """Yield the blocks without a byte-order mark."""
    first = next(read, b"")
    if wide := wide_encoding(first):
        convert = f"iconv -f {wide} -t UTF-8"
        command = f"gzip -dc {path.name} | {convert}" if packed else f"{convert} {path.name}"
        fix = f"convert it: {command} > utf8.json (PowerShell's > writes UTF-16)"
        what = f"the file is {wide} text, and a trace is UTF-8"
        raise PerfgateError("trace-encoding", what, fix=fix, place=str(path))
    yield first.removeprefix(MARK)
    yield from _read_ahead(read) if packed else read


def _read_ahead(read: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same blocks, each unpacked in a thread while the previous one is parsed."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, read, b"")
        while block := coming.result():
            coming = pool.submit(next, read, b"")
            yield block


def _plain(raw: BinaryIO, end: int | None) -> Iterator[bytes]:
    while block := raw.read(CHUNK if end is None else max(0, min(CHUNK, end - raw.tell()))):
        yield block


def _unpacked(raw: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield the text of one gzip member after the other; only padding may follow the last one."""
    size, packed = 0, raw.read(_PACKED)
    while packed:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            packed = packed or raw.read(_PACKED)
            if not packed:
                text = f"the gzip stream ends in the middle, after {size:,} unpacked bytes"
                raise PerfgateError("trace-truncated", text, place=str(path))
            try:
                block = member.decompress(packed, CHUNK)
            except zlib.error as broken:
                raise _damaged(broken, (raw.tell() - len(packed), raw.tell()), size, path) from broken
            packed = member.unconsumed_tail
            size += len(block)
            if block:
                yield block
        packed = _next_member(raw, member.unused_data, path)


def _damaged(broken: zlib.error, between: tuple[int, int], size: int, path: Path) -> PerfgateError:
    """Return the error for a damaged gzip; its checksum covers all content and so shows no place."""
    if "incorrect data check" in str(broken) or "incorrect length check" in str(broken):
        text = "the gzip's checksum does not fit what is packed in it: a byte somewhere in the file has changed"
    else:
        where = f"between its bytes {between[0]:,} and {between[1]:,}, after {size:,} unpacked bytes"
        text = f"the gzip stream is damaged {where}: {broken}"
    return PerfgateError("trace-unreadable", text, place=str(path))


def _next_member(raw: BinaryIO, rest: bytes, path: Path) -> bytes:
    """Return what follows a gzip member: another one, or nothing after padding."""
    while not (member := rest.lstrip(b"\0")):
        rest = raw.read(_PACKED)
        if not rest:
            return b""
    if not member.startswith(GZIP[: len(member)]):
        at = raw.tell() - len(member)
        text = f"the gzip stream ends at byte {at:,} of the file, and what follows is not gzip"
        raise PerfgateError("trace-trailing", text, place=str(path))
    return member


def wide_encoding(head: bytes) -> str:
    """Return the encoding of a text with two or four bytes a character, by its mark or its zeros; "" for others."""
    zeros = [at % 4 for at in range(min(len(head), 4)) if not head[at]]
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or len(zeros) == 3:
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    return "UTF-16LE" if zeros == [1, 3] else "UTF-16BE" if zeros == [0, 2] else ""


def readable(head: bytes) -> bytes:
    """Return the first bytes of a text in UTF-8 without a mark, also of wider encodings, to recognise its content."""
    if wide_encoding(head):
        return head.replace(b"\0", b"").lstrip(b"\xff\xfe")
    return head.removeprefix(MARK)


def last_cut(text: bytes | bytearray, searched: int = 0) -> int:
    """Return where the last certainly complete event ends, or -1; the part searched before has none."""
    tail = max(0, len(text) - _TAIL)
    first = max(0, min(searched, tail) - _LONGEST_CUT)
    for start in sorted({max(first, len(text) - _NEAR), max(tail, first), first}, reverse=True):
        at = text.rfind(CUTS[0], start)
        at = at if at >= 0 else max(text.rfind(cut, start) for cut in CUTS[1:])
        if at >= 0:
            return at
    ends = ([match.start() for match in _BETWEEN.finditer(text, max(0, len(text) - size))] for size in (_NEAR, _TAIL))
    return next(filter(None, ends), [-1])[-1]


def overwritten(text: bytes | bytearray, *, closely: bool = False) -> tuple[int, bytes] | None:
    """Return (position, byte) of an overwritten part, by bytes that no writer puts into a text.

    It hides quotes and brackets, and the rest may still parse as JSON with fewer events.
    """
    if b"\0" in text:
        return text.index(b"\0"), b"\0"
    if closely:
        run = _RUN.search(text)
        return (run.start(), run.group(1)) if run else None
    return (text.index(_FILLED), b"\xff") if b"\xff" in text and _FILLED in text else None


def repaired(text: bytes) -> bytes:
    """Return JSON with NaN, infinities and N/A as null, without trailing commas, and with texts escaped as UTF-8."""
    return _TOKEN.sub(_repaired_token, text)


def _repaired_token(match: re.Match[bytes]) -> bytes:
    token = match.group()
    if not token.startswith(b'"'):
        return b"" if token == b"," else b"null"
    if match["name"]:
        token = b'"name": "%s"' % _QUOTE.sub(rb'\\"', match["name"])
    clean = _ESCAPE.sub(_repaired_escape, token.decode("utf-8", errors="replace").encode("utf-8"))
    return _CONTROL.sub(lambda char: b"\\u%04x" % char.group()[0], clean)


def _repaired_escape(match: re.Match[bytes]) -> bytes:
    """Replace half of a surrogate pair, and escape a backslash that escapes nothing."""
    return b"\\ufffd" if match["half"] else match["pair"] or match["good"] or b"\\\\"


NOTHING = msgspec.Raw(b"")
Number = Union[int, str, float, None]
_Made = TypeVar("_Made", bound=msgspec.Struct)


class Arguments(msgspec.Struct, gc=False):
    """The arguments that analyses need, in PyTorch's order, in which the decoder looks for them."""

    external: int = msgspec.field(name="External id", default=-1)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    types: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    sequence: int = msgspec.field(name="Sequence number", default=-1)
    device: Union[int, str] = -1
    stream: Union[int, str, None] = -1
    correlation: int = -1
    size: Any = msgspec.field(name="bytes", default=-1)
    memory_of: Union[int, None] = msgspec.field(name="Device Type", default=0)
    """The device of a memory record: 0 is the host."""
    rank: Union[int, str, None] = None
    name: Any = None
    labels: Any = None
    collective: Union[str, None] = msgspec.field(name="Collective name", default=None)
    group: Any = msgspec.field(name="Process Group Name", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    sent: Any = msgspec.field(name="In msg nelems", default=None)
    received: Any = msgspec.field(name="Out msg nelems", default=None)
    dtype: Any = None


class Slice(msgspec.Struct, gc=False):
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
    base: Any = msgspec.field(name="baseTimeNanoseconds", default=None)


class FullFile(Header):
    """A whole file at once."""

    events: Union[list[Slice], None] = msgspec.field(name="traceEvents", default=None)


LIST = msgspec.json.Decoder(list[Slice])
WHOLE = msgspec.json.Decoder(FullFile)
AROUND = msgspec.json.Decoder(Header)

UNREADABLE = Slice(ph="X", cat="that is not an event")
"""Stands for something that is not an event, so that it is counted among those left out."""


def untyped_events(array: object) -> list[Slice]:
    """Return the events of untyped JSON, converted one by one."""
    return [_coerced(raw) if isinstance(raw, dict) else UNREADABLE for raw in array] if isinstance(array, list) else []


def _coerced(raw: dict[str, Any]) -> Slice:
    """Return an event with all fields of the right type; one without a time is counted by its category."""
    args = raw.get("args")
    event = _filled(Slice(), {name: value for name, value in raw.items() if name != "args"})
    event.args = _filled(Arguments(), args) if isinstance(args, dict) else None
    return event if event.ph or event.cat or not raw else UNREADABLE


def _filled(parsed: _Made, raw: Mapping[str, Any]) -> _Made:
    """Return a value with all fields of the right type, so that one wrong field does not lose the others."""
    for field in msgspec.structs.fields(parsed):
        if field.encode_name in raw:
            one, as_text = raw[field.encode_name], field.type is msgspec.Raw
            with suppress(msgspec.ValidationError):
                read = (
                    msgspec.Raw(msgspec.json.encode(one)) if as_text else msgspec.convert(one, field.type, strict=False)
                )
                setattr(parsed, field.name, read)
    return parsed
