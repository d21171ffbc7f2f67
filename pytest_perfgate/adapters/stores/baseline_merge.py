"""Three baseline files into one: what one side changed is taken, what both changed is a conflict of one line."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.stores.baseline_text import HEADER, Entry, parse_entries
from pytest_perfgate.adapters.stores.files import write_atomically
from pytest_perfgate.model.errors import PerfgateError

Lines = dict[str, str]


def merge_files(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[str, ...]:
    """Merge into ``ours``; the names of cases that both sides changed."""
    old, mine, other = (_lines(path, shown) for path in (base, ours, theirs))
    merged: list[str] = []
    conflicts: list[str] = []
    for name in sorted({*old, *mine, *other}):
        a, b, before = mine.get(name), other.get(name), old.get(name)
        if b in (a, before):
            merged += [a] if a else []
        elif a == before:
            merged += [b] if b else []
        else:
            conflicts.append(name)
            merged += ["<<<<<<< ours", *([a] if a else []), "=======", *([b] if b else []), ">>>>>>> theirs"]
    write_atomically(ours, (_head(ours) + "".join(f"{line}\n" for line in merged)).encode("utf-8"))
    return tuple(conflicts)


def _lines(path: Path, shown: str) -> Lines:
    """Each case with its text, comments above it included."""
    try:
        text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("baseline-unreadable", str(fault), place=shown or str(path)) from fault
    if not text.strip():
        return {}
    entries = parse_entries(text, place=shown or str(path), device="merge")
    lines = text.rstrip("\n").split("\n")
    return {name: _text(lines, entry) for name, entry in entries.items()}


def _text(lines: list[str], entry: Entry) -> str:
    first = entry.first
    while first and lines[first - 1].startswith("  #"):
        first -= 1
    return "\n".join(lines[first : entry.after]).rstrip("\n")


def _head(path: Path) -> str:
    """What stands above the cases in our file."""
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    head, found, _ = text.partition("\nbaselines:")
    return f"{head}\nbaselines:\n" if found else HEADER
