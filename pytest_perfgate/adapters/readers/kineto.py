"""Reading traces of PyTorch's profiler in bounded memory."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pytest_perfgate.adapters.readers import kineto_text as text
from pytest_perfgate.adapters.readers.kineto_assembly import traces_of
from pytest_perfgate.adapters.readers.kineto_columns import Columns
from pytest_perfgate.adapters.readers.kineto_text import AROUND, LIST, WHOLE, FullFile, Header, Slice, untyped_events
from pytest_perfgate.adapters.system.files import uncollected
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    import subprocess

    from pytest_perfgate.adapters.readers.kineto_columns import Interned
    from pytest_perfgate.model.profiles import Trace


_BYTE = re.compile(r"\(byte (\d+)\)")

_LONGEST_HEADER = 64 * 2**20

_PROBE = 2**20

_CLOSING = ord("]")
_HEAD = 4096
"""The most bytes of a file's beginning that are examined."""

_COPIED = "copy the file again, or profile again and let the profiler's context end before the process exits"


def read_kineto(path: Path, *, frames: bool = False) -> tuple[Trace, ...]:
    """Return the traces in a file, one for each rank; with frames, Python's call stacks too."""
    start = None if frames else middle(path)
    with uncollected(), _within_limits(path):
        columns, header = _read(path, 0, None, frames=frames) if start is None else _read_both(path, start)
        return traces_of(columns, header)


def send_second_part() -> None:
    """Read from an offset, in a child, and send columns and header, or the error."""
    path, start = Path(sys.argv[1]), int(sys.argv[2])
    with uncollected():
        try:
            with _within_limits(path):
                sent: object = _read(path, start, None)
        except PerfgateError as error:
            sent = error
        with suppress(BrokenPipeError, MemoryError):  # the parent is gone, or reads all itself and reports the error
            import pickle

            pickle.dump(sent, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


def _read_both(path: Path, start: int) -> tuple[Columns, Header]:
    """Read the first half here, the second in a child; if the child dies, read all here."""
    with child(path, start) as running:
        columns, header = _read(path, 0, start)
        got = received(running)
    if got is None:
        return _read(path, 0, None)
    if isinstance(got, PerfgateError):
        raise got
    return _joined_columns(columns, got[0]), _joined_headers(header, got[1])


def _read(path: Path, start: int, end: int | None, *, frames: bool = False) -> tuple[Columns, Header]:
    """Return columns and header of the events between two offsets of the file."""
    columns, header = Columns(str(path), frames=frames), Header()
    for part in _parts(path, start, end):
        if isinstance(part, Header):
            header = _joined_headers(header, part)
        else:
            columns.add(part)
    return columns, header


@contextmanager
def _within_limits(path: Path) -> Iterator[None]:
    """Turn an exceeded depth or memory into an error about the file."""
    try:
        yield
    except RecursionError as deep:
        what = "lists or objects are nested deeper than any event of a trace"
        raise PerfgateError("trace-malformed", what, place=str(path)) from deep
    except MemoryError as full:
        size = path.stat().st_size / 1e6
        raise PerfgateError(
            "trace-memory", f"the memory is full; the file has {size:,.0f} MB", place=str(path)
        ) from full


def looks_like_kineto(path: Path, head: bytes) -> bool:
    """Return whether a file's first bytes, unpacked if it is gzip, are of a trace."""
    if head[:2] == text.GZIP:
        try:
            head = next(text.blocks(path), b"")[:_PROBE]
        except PerfgateError:
            return ".json" in path.name
        if not head.strip():
            return ".json" in path.name
    head = text.readable(head)
    start = head.lstrip()[:1]
    marks = (b'"traceEvents"', b'"deviceProperties"', b'"ph"', b'"schemaVersion"')
    if start in {b"{", b"["} and any(mark in head for mark in marks):
        return True
    return start == b"{" and len(head) >= _HEAD and _events_start_later(path)


def _events_start_later(path: Path) -> bool:
    """Return whether a list of events follows a header longer than the first bytes, as in traces of large jobs."""
    tail, behind = b"", 0
    try:
        for block in text.blocks(path):
            if text.OPENING.search(tail + block):
                return True
            tail, behind = block[-64:], behind + len(block)
            if behind > _LONGEST_HEADER:
                break
    except PerfgateError:
        pass
    return False


def _joined_headers(first: Header, second: Header) -> Header:
    names = Header.__struct_fields__
    return Header(**{name: getattr(first, name) or getattr(second, name) for name in names})


def _parts(path: Path, start: int = 0, end: int | None = None) -> Iterator[Header | list[Slice]]:
    """Yield the header and lists of events, in the order of the file."""
    stream = text.blocks(path, start, end)
    rest, offset, is_bare_list, searched = b"", start, False, 0
    if not start:
        head, opening = _opening(stream, path)
        if opening is None:
            raise _unopened(head, path)
        is_bare_list = opening.re is text.BARE
        _refuse_overwritten(head[: opening.end()], 0, path)
        if not is_bare_list:
            yield _decoded_header(head[: opening.end()] + b"]}", path)
        rest, offset = head[opening.end() :], opening.end()
    buffer = bytearray()
    for block in stream:
        buffer += block if buffer else b"[%b%b" % (rest, block)
        cut = text.last_cut(buffer, searched)
        searched = len(buffer) if cut < 0 else 0
        if cut < 0:
            continue
        _refuse_overwritten(buffer, offset - 1, path)
        following = buffer.index(b"{", cut + 1)
        ahead = buffer[following:]
        buffer[cut + 1] = _CLOSING  # overwrites a comma or a space to end the list here without a copy
        yield _decoded_list(memoryview(buffer)[: cut + 2], offset - 1, path)
        buffer = bytearray(b"[") + ahead
        offset += following - 1
    rest = bytes(memoryview(buffer)[1:]) if buffer else rest
    _refuse_overwritten(rest.rstrip(b"\0"), offset, path)
    if is_bare_list:
        yield _decoded_list(b"[" + rest, offset - 1, path)
    elif end is None:
        yield from _ending(rest, offset, path)
    elif rest.strip():
        yield _decoded_list(b"[" + rest.rstrip().rstrip(b",") + b"]", offset - 1, path)


def _refuse_overwritten(chunk: bytes | bytearray, offset: int, path: Path, *, closely: bool = False) -> None:
    """Refuse overwritten parts that still parse as JSON: their events would be missing, and limits would pass."""
    overwritten = text.overwritten(chunk, closely=closely)
    if overwritten:
        at, byte = overwritten
        count = len(chunk) - at - len(chunk[at:].lstrip(byte))
        what = f"{count:,} bytes {byte[0]:#04x} overwrite it from byte {offset + at:,} of the unpacked file on"
        raise PerfgateError("trace-malformed", what, fix="copy the file again from where it was made", place=str(path))


def _opening(stream: Iterator[bytes], path: Path) -> tuple[bytes, re.Match[bytes] | None]:
    head = b""
    for block in stream:
        head += block
        match = text.BARE.match(head) or text.OPENING.search(head)
        if match or len(head) > _LONGEST_HEADER:
            return head, match
    if not head.strip():
        inside = "what is packed in it is empty" if path.stat().st_size else "the file is empty"
        raise PerfgateError("trace-empty", inside, fix=_COPIED, place=str(path))
    return head, None


def _unopened(head: bytes, path: Path) -> PerfgateError:
    """Return the error for JSON without a list of events, or for broken JSON."""
    _decoded_header(head, path)
    what = '"traceEvents" holds no list' if b'"traceEvents"' in head else 'no "traceEvents" in this JSON'
    return PerfgateError("trace-not-a-trace", what, place=str(path))


def _ending(rest: bytes, offset: int, path: Path) -> Iterator[Header | list[Slice]]:
    prefix = b'{"traceEvents":['
    data = prefix + rest
    try:
        document = WHOLE.decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as first:
        document = _repaired_document(data, offset - len(prefix), path, first)
    if text.OPENING.search(rest):
        what = '"traceEvents" appears twice in this JSON, and readers differ in which they use'
        raise PerfgateError("trace-malformed", what, fix="export the trace again", place=str(path))
    yield document.events or []
    yield document


def _repaired_document(data: bytes, offset: int, path: Path, first: Exception) -> FullFile:
    _refuse_overwritten(data.rstrip(b"\0"), offset, path, closely=True)
    clean = text.repaired(data)
    try:
        return WHOLE.decode(clean)
    except msgspec.ValidationError:
        loose = _decoded_untyped(clean, offset, path)
    except msgspec.DecodeError:
        raise _malformed(first, data, offset, path) from first
    events = untyped_events(loose.get("traceEvents"))
    names = {field.name: loose.get(field.encode_name) for field in msgspec.structs.fields(Header)}
    return FullFile(events=events, **names)


def _decoded_list(text_of_list: bytes | memoryview, offset: int, path: Path) -> list[Slice]:
    try:
        return LIST.decode(text_of_list)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as first:
        chunk = bytes(text_of_list)
        _refuse_overwritten(chunk, offset, path, closely=True)
        clean = text.repaired(chunk)
        try:
            return LIST.decode(clean)
        except msgspec.ValidationError:
            return untyped_events(_decoded_untyped(clean, offset, path))
        except msgspec.DecodeError:
            raise _malformed(first, chunk, offset, path) from first


def _decoded_header(chunk: bytes, path: Path) -> Header:
    clean = text.repaired(chunk)
    try:
        return AROUND.decode(clean)
    except msgspec.ValidationError:
        return Header()
    except msgspec.DecodeError as broken:
        raise _malformed(broken, clean, 0, path) from broken


def _decoded_untyped(clean: bytes, offset: int, path: Path) -> Any:
    try:
        return msgspec.json.decode(clean)
    except msgspec.DecodeError as broken:
        raise _malformed(broken, clean, offset, path) from broken


def _end_of_root(rest: bytes) -> int:
    """Return where the object around the event list ends; 0 if the list stands alone."""
    opened = b'{"":[]'
    try:
        msgspec.json.decode(opened + rest)
    except msgspec.DecodeError as broken:
        match = _BYTE.search(str(broken))
        if match and "trailing characters" in str(broken):
            return int(match.group(1)) - 1 - len(opened)
    return 0


def _second(rest: bytes, at: str, path: Path) -> PerfgateError:
    """Return the error for what follows a document: another one, one event a line, or other text."""
    if rest.lstrip(b", \r\n\t")[:1] not in {b"{", b"["} or b":" not in rest[:200]:
        return PerfgateError("trace-trailing", f"the trace ends, and what follows{at} is no JSON", place=str(path))
    if rest.lstrip(b", \r\n\t")[:1] == b"{" and b'"ph"' in rest[:1000] and b'"traceEvents"' not in rest[:_PROBE]:
        what = f"it holds one event a line and no list of them: the second starts{at}"
        fix = "put them between [ and ] with commas: jq -s . FILE > list.json"
        return PerfgateError("trace-not-a-trace", what, place=str(path), fix=fix)
    return PerfgateError("trace-two-documents", f"another document starts{at}", place=str(path))


def _malformed(broken: Exception, chunk: bytes, offset: int, path: Path) -> PerfgateError:
    """Return the error for JSON that does not parse, with its place in the unpacked file."""
    reason = str(broken)
    match = _BYTE.search(reason)
    byte = int(match.group(1)) if match else 0
    if "trailing characters" in reason:
        byte += _end_of_root(chunk[byte - 1 :]) - 1  # the decoder is one byte past the error
        return _second(chunk[byte:], f" at byte {max(0, offset + byte):,} of the unpacked file", path)
    if "truncated" in reason or byte >= len(chunk):
        return PerfgateError("trace-truncated", "the JSON ends in the middle of an event list", place=str(path))
    at = f" at byte {max(0, offset + byte):,} of the unpacked file" if match else ""
    if "out of range" in reason:
        what = f"a number is larger than a computer's ({reason})"
        return PerfgateError("trace-malformed", what, fix="export the trace again", place=str(path))
    what = _BYTE.sub("", reason).strip() if match else reason
    return PerfgateError("trace-malformed", f"{what}{at}", place=str(path))


LARGE = 64 * 2**20
"""The size from which a second interpreter saves time."""

FIRST = 0.54
"""The part that this process reads itself; it is larger, because the child has to start first."""


def middle(path: Path) -> int | None:
    """Return where the first event of the second half starts; ``None`` for a file that one process reads faster."""
    if (os.cpu_count() or 1) < 2 or not path.is_file() or path.stat().st_size < LARGE:
        return None
    with path.open("rb") as raw:
        head = raw.read(64)
        if head.startswith(text.GZIP) or text.BARE.match(head.removeprefix(text.MARK)):
            return None
        start = int(path.stat().st_size * FIRST)
        raw.seek(start)
        probe = raw.read(_PROBE)
    cut = probe.find(b"},\n  {")  # between events as PyTorch writes them; no other list is as long
    return start + probe.index(b"{", cut + 1) if cut >= 0 else None


@contextmanager
def child(path: Path, start: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that reads from ``start`` to the end and writes its columns to standard output."""
    code = "from pytest_perfgate.adapters.readers.kineto import send_second_part; send_second_part()"
    folder = str(Path(__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *filter(None, sys.path)])}
    command = [sys.executable, "-c", code, str(path), str(start)]
    import subprocess

    running = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        if running.stdout:
            running.stdout.close()


def received(running: subprocess.Popen[bytes]) -> Any:
    """Return what the child sent: columns and header, or its error; ``None`` if it died."""
    import pickle

    if running.stdout is None:
        return None
    try:
        return pickle.load(running.stdout)  # noqa: S301 - written by our own child a moment ago
    except (EOFError, pickle.UnpicklingError):
        return None


def _joined_columns(first: Columns, second: Columns) -> Columns:
    """Append the second half's rows to the first's, with the first's numbers."""
    for chunk in second.chunks:
        chunk["name"] = _renumber(chunk["name"], first.names, second.names)
        chunk["argument"] = _renumber(chunk["argument"], first.arguments, second.arguments)
        on_device = chunk["on_device"]
        host = _renumber(np.where(on_device, -1, chunk["place"]), first.threads, second.threads)
        device = _renumber(np.where(on_device, chunk["place"], -1), first.queues, second.queues)
        chunk["place"] = np.where(on_device, device, host).astype(np.int32)
        chunk["index"] = chunk["index"] + first.seen
    first.messages.update((row + first.rows, message) for row, message in second.messages.items())
    first.chunks += second.chunks
    first.labels.update(second.labels)
    first.flows += second.flows
    first.dropped.update(second.dropped)
    first.split_events.update(second.split_events)
    first.rows += second.rows
    first.seen += second.seen
    first.untimed += second.untimed
    first.passed += second.passed
    first.device_memory |= second.device_memory
    return first


def _renumber(column: Any, first: Interned[Any], second: Interned[Any]) -> Any:
    numbers = np.array([first[key] for key in second] or [0], np.int32)
    return np.where(column >= 0, numbers[np.maximum(column, 0)], -1).astype(np.int32)
