"""Arms on disk: detached worktrees, overlay environments, builds, and checks of what was loaded."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

_PART = 1 << 20
_OVERLAP = 32
"""The bytes of a part that are searched again with the next one: more than a suffix has."""


def hash_of(path: Path, suffixes: Collection[str] = ()) -> tuple[str, set[str]]:
    """Return a hash of a file and the suffixes that it mentions; it is read in parts, since data may be gigabytes.

    Of a library or program (ELF) it covers all but what a debugger reads and the build's identifier: those name the
    folder and the lines of the source, so two builds of the same code differ in them.
    """
    digest, mentioned, before = hashlib.sha256(), set[str](), b""
    try:
        with path.open("rb") as file:
            for part in _parts(file):
                digest.update(part)
                mentioned |= {suffix for suffix in suffixes if suffix.encode() in before + part}
                before = part[-_OVERLAP:]
    except OSError:
        return str(path.readlink()) if path.is_symlink() else "unreadable", mentioned
    return digest.hexdigest()[:16], mentioned


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in parts, of ELF by sections."""
    try:
        spans = _spans(file)
    except (struct.error, IndexError, ValueError):  # cut short, or no ELF after all
        spans = [(0, None)]
    for start, size in spans:
        file.seek(start)
        left = size
        while part := file.read(_PART if left is None else min(left, _PART)):
            left = None if left is None else left - len(part)
            yield part


_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS = 8
_DEBUG = (b".debug_", b".zdebug_", b".symtab", b".strtab", b".shstrtab", b".gnu_debuglink", b".note.gnu.build-id")


def _spans(file: IO[bytes]) -> list[tuple[int, int | None]]:
    """Return (start, size) of what is hashed: a whole file, or the sections of 64-bit ELF and what follows them."""
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        return [(0, None)]
    programs, sections, _, _, program_size, program_count, section_size, count, names_at = struct.unpack_from(
        "<QQIHHHHHH", head, 32
    )
    if not count or section_size != _SECTION.size:
        return [(0, None)]
    file.seek(sections)
    table = list(_SECTION.iter_unpack(file.read(count * section_size)))
    _, _, _, _, names_start, names_size, *_ = table[names_at]
    file.seek(names_start)
    names = file.read(names_size)
    spans: list[tuple[int, int | None]] = [(16, 16), (programs, program_size * program_count)]
    end = sections + count * section_size
    for name, kind, _, _, start, size, *_ in table:
        if kind != _NO_BITS:
            end = max(end, start + size)
            spans += [] if names[name:].startswith(_DEBUG) else [(start, size)]
    return [*spans, (end, None)]
