"""Arms on disk: detached worktrees, overlay environments, builds, and checks of what was loaded."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import unquote

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
    try:
        spans = _spans(file)
    except (struct.error, IndexError, ValueError):  # cut short, or without a table of sections: all of it counts
        spans = [(0, None)]
    for start, size in spans:
        file.seek(start)
        left = size
        while part := file.read(_PART if left is None else min(left, _PART)):
            left = None if left is None else left - len(part)
            yield part


_SEGMENT, _SECTION = struct.Struct("<IIQQQQQQ"), struct.Struct("<IIQQQQIIQQ")
_LOADED_SEGMENT, _NO_BITS, _IN_MEMORY = 1, 8, 2
_TABLE = ((40, 8), (60, 4))
"""The (start, size) of what the header says of the table of sections, which moves with what a debugger reads."""
_DEBUG = (b".debug_", b".zdebug_", b".symtab", b".strtab", b".shstrtab", b".gnu_debuglink")


def _spans(file: IO[bytes]) -> list[tuple[int, int | None]]:
    """Return (start, size) of what is hashed: a whole file, or what 64-bit ELF loads, its other data, and the rest."""
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        return [(0, None)]
    programs, sections, _, _, _, count_of_programs, _, count, names_at = struct.unpack_from("<QQIHHHHHH", head, 32)
    file.seek(programs)
    segments = list(_SEGMENT.iter_unpack(file.read(count_of_programs * _SEGMENT.size)))
    file.seek(sections)
    table = list(_SECTION.iter_unpack(file.read(count * _SECTION.size)))
    _, _, _, _, names_start, names_size, *_ = table[names_at]
    loaded = [(start, size) for kind, _, start, _, _, size, *_ in segments if kind == _LOADED_SEGMENT]
    stored = [section for section in table if section[1] != _NO_BITS]
    ends = [start + size for start, size in loaded] + [start + size for _, _, _, _, start, size, *_ in stored]
    end = max(*ends, sections + count * _SECTION.size)
    if not loaded or end > file.seek(0, os.SEEK_END):
        raise ValueError
    file.seek(names_start)
    names = file.read(names_size)
    cuts, separated = list(_TABLE), list[tuple[int, int]]()
    for name, _, flags, _, start, size, *_ in stored:
        if names[name:].startswith(b".note.gnu.build-id"):
            cuts.append((start, size))
        elif not flags & _IN_MEMORY and not names[name:].startswith(_DEBUG):
            separated.append((start, size))
    return [*(rest for start, size in loaded for rest in _without(start, size, cuts)), *separated, (end, None)]


def _without(start: int, size: int, cuts: Collection[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of a span without the cuts in it."""
    end = start + size
    for cut, length in sorted(cuts):
        if start <= cut and cut + length <= end:
            yield start, cut - start
            start = cut + length
    yield start, end - start


def hidden_projects(root: Path, projects: Sequence[str], sites: Sequence[str]) -> str:
    """Return ``set projects = [...] in [tool.perfgate]`` if editable packages of a repository would stay hidden, or "".

    The root is among them where it is installed too: that of a workspace may hold no package.
    """
    top = next((place for place in (root, *root.parents) if (place / ".git").exists()), root)
    texts = [file.read_bytes() for site in sites for file in sorted(Path(site).glob("*.dist-info/direct_url.json"))]
    urls = (re.search(rb'"url": ?"file://([^"]*)"', text) for text in texts)
    places = [Path(unquote(os.fsdecode(url[1]))).resolve() if url else None for url in urls]
    editable = [re.search(rb'"editable": ?true', text) is not None for text in texts]
    folders = {place for place, hidden in zip(places, editable) if place is not None and hidden} - {root}
    own = {Path(os.path.relpath(folder, root)).as_posix() for folder in folders if folder.is_relative_to(top)}
    listed = {Path(project).as_posix() for project in projects}
    if own <= listed:
        return ""
    names = sorted({*listed, *own, *(["."] if not listed and root in places else [])})
    return f"set projects = {json.dumps(names)} in [tool.perfgate]"
