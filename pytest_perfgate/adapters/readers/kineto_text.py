"""Bytes of a trace: unpacked, cut between events, and mended where a writer broke JSON."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_perfgate.model.errors import PerfgateError

CHUNK = 4 * 2**20
CUTS = (b"},\n  {", b'}, {"ph"', b'},{"ph"', b'},\n{"ph"', b'},\n    {"ph"')
"""Between two events and never inside a legal string: a quote or line break there would be escaped."""
MARK = b"\xef\xbb\xbf"
_WIDE = {b"\xff\xfe", b"\xfe\xff"}
OPENING = re.compile(rb'"traceEvents"\s*:\s*\[')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity|nan|inf|Inf|N/A)\b', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(rb'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_NUMBERS = {b"NaN", b"Infinity", b"nan", b"inf", b"Inf", b"N/A"}


def blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The file's text in blocks, unpacked where it is gzip; offsets are for plain files."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(start)
            read = _unpacked(raw, path) if packed and not start else _plain(raw, end)
            yield from read if start else _unmarked(read, path)
    except OSError as broken:
        raise PerfgateError("trace-unreadable", str(broken.strerror or broken), place=str(path)) from broken


def _unmarked(read: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """The blocks without the byte-order mark that some editors put in front."""
    first = next(read, b"")
    if first[:2] in _WIDE:
        what = "the file is UTF-16 text, and a trace is UTF-8"
        raise PerfgateError("trace-malformed", what, mend="save it as UTF-8", place=str(path))
    yield first.removeprefix(MARK)
    yield from read


def _plain(raw: BinaryIO, end: int | None) -> Iterator[bytes]:
    while block := raw.read(CHUNK if end is None else max(0, min(CHUNK, end - raw.tell()))):
        yield block


def _unpacked(raw: object, path: Path) -> Iterator[bytes]:
    done = 0
    try:
        with gzip.GzipFile(fileobj=raw) as stream:  # type: ignore[call-overload]
            while block := stream.read(CHUNK):
                done += len(block)
                yield block
    except EOFError as cut:
        raise PerfgateError(
            "trace-truncated", f"the gzip stream ends in the middle, after {done:,} unpacked bytes", place=str(path)
        ) from cut
    except (zlib.error, gzip.BadGzipFile) as broken:
        raise PerfgateError(
            "trace-unreadable", f"the gzip stream is damaged after {done:,} unpacked bytes: {broken}", place=str(path)
        ) from broken


def readable(head: bytes) -> bytes:
    """The first bytes of a text as UTF-8 without a mark, UTF-16 included, to tell what it is about."""
    if head[:2] in _WIDE:
        return head.decode("utf-16", errors="ignore").encode()
    return head.removeprefix(MARK)


def last_cut(text: bytes) -> int:
    """Where the last event that is surely whole ends, or -1."""
    at = text.rfind(CUTS[0])
    return at if at >= 0 else max(text.rfind(cut) for cut in CUTS[1:])


def mended(text: bytes) -> bytes:
    """The same JSON with NaN, infinities and N/A as null, control characters and paths escaped, bad UTF-8 replaced."""
    return _TOKEN.sub(_mended_token, text)


def _mended_token(found: re.Match[bytes]) -> bytes:
    token = found.group()
    if token.lstrip(b"-") in _NUMBERS:
        return b"null"
    clean = token.decode("utf-8", errors="replace").encode("utf-8")
    clean = _ESCAPE.sub(lambda mark: mark.group(1) or b"\\\\", clean)
    return _CONTROL.sub(lambda char: b"\\u%04x" % char.group()[0], clean)
