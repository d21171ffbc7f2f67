"""A merge driver of git for baseline files, case by case."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pytest_perfgate.adapters.stores.baseline_text import HEADER, is_in_windows_lines, parse_entries, trimmed
from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.adapters.system.git import ask_git
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import Merging

_BOTH = "ours and theirs accepted it differently"


class Conflict(NamedTuple):
    """Contradicting edits of both sides."""

    name: str
    what: str


class _Case(NamedTuple):
    """A case with the comments and blank lines above it."""

    above: str
    line: str


class _File(NamedTuple):
    head: str
    cases: dict[str, _Case]
    tail: str


class _Part(NamedTuple):
    text: str
    what: str = ""
    """The conflict; empty if there is none."""


def merge_files(base: Path, ours: Path, theirs: Path, shown: str) -> tuple[Conflict, ...]:
    """Merge into ``ours`` and return the conflicts; an unreadable file keeps both sides whole, between markers."""
    try:
        text, conflicts = _merged(_read(base, shown), _read(ours, shown), _read(theirs, shown), shown)
    except PerfgateError as fault:
        marked = textual_conflict(base, ours, theirs)
        if marked is None:
            raise
        write_atomically(ours, marked)
        why = "it is left as git leaves a conflict, with both sides between markers"
        raise PerfgateError(fault.code.name, fault.what, why=why, fix=fault.fix, place=fault.place) from fault
    windows = is_in_windows_lines(ours.read_bytes().decode("utf-8"))
    write_atomically(ours, (text.replace("\n", "\r\n") if windows else text).encode("utf-8"))
    return conflicts


def _merged(old: _File, ours: _File, other: _File, shown: str) -> tuple[str, tuple[Conflict, ...]]:
    names = sorted({*old.cases, *ours.cases, *other.cases})
    parts = {name: _case(old.cases.get(name), ours.cases.get(name), other.cases.get(name)) for name in names}
    around = [_merge_texts(old.head, ours.head, other.head), _merge_texts(old.tail, ours.tail, other.tail)]
    text = "".join([around[0].text, *(part.text for part in parts.values()), around[1].text])
    comments = [Conflict("the comments around the lines", part.what) for part in around if part.what]
    conflicts = (*comments, *(Conflict(name, part.what) for name, part in parts.items() if part.what))
    if not conflicts:
        _check(text, {name for name, part in parts.items() if part.text}, shown)
    return text, conflicts


def _check(text: str, names: Iterable[str], shown: str) -> None:
    """Refuse a merge whose text does not contain the cases that went into it."""
    if set(parse_entries(text, place=shown, device="merge")) != set(names):
        raise PerfgateError("baseline-unwritable", "its lines cannot be merged one by one", place=shown)


def _case(old: _Case | None, ours: _Case | None, other: _Case | None) -> _Part:
    if ours is None or other is None:
        return _merge_removed(old, ours, other)
    before = old or _Case("", "")
    above, line = _merge_texts(before.above, ours.above, other.above), _merge_texts(before.line, ours.line, other.line)
    if line.what:
        return _conflict("".join(ours), "".join(other), _BOTH)
    if above.what:
        return _conflict("".join(ours), "".join(other), "ours and theirs wrote different comments above it")
    return _Part(above.text + line.text)


def _merge_removed(old: _Case | None, ours: _Case | None, other: _Case | None) -> _Part:
    """Return the result for a case that one side lacks: the other added it, or this side removed it."""
    remaining = ours or other
    if remaining is None or remaining == old:
        return _Part("")
    if old is None:
        return _Part("".join(remaining))
    done = ("removed it", "accepted it anew") if ours is None else ("accepted it anew", "removed it")
    return _conflict("".join(ours or ()), "".join(other or ()), f"ours {done[0]}, theirs {done[1]}")


def _merge_texts(old: str, ours: str, other: str) -> _Part:
    if other in {ours, old}:
        return _Part(ours)
    return _Part(other) if ours == old else _conflict(ours, other, "ours and theirs differ")


def _conflict(ours: str, other: str, what: str) -> _Part:
    return _Part(f"<<<<<<< ours\n{ours}=======\n{other}>>>>>>> theirs\n", what)


def _read(path: Path, shown: str) -> _File:
    """Return a file in its parts, each with its line ends; an empty file has no cases."""
    place = shown or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("baseline-unreadable", str(fault), place=place) from fault
    if not text.strip():
        return _File(HEADER, {}, "")
    entries = parse_entries(text, place=place, device="merge")
    lines = text.rstrip("\n").split("\n")
    at = 1 + next((n for n, line in enumerate(lines) if line.startswith("baselines:")), len(lines) - 1)
    head, cases = _joined(lines[:at]), {}
    for entry in sorted(entries.values(), key=lambda entry: entry.first):
        if entry.first < at:
            raise PerfgateError("baseline-unwritable", f"'{entry.name}' has no line of its own", place=place)
        after = trimmed(lines, entry)
        cases[entry.name] = _Case(_joined(lines[at : entry.first]), _joined(lines[entry.first : after]))
        at = after
    return _File(head, cases, _joined(lines[at:]))


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_ERROR = 128
"""Exit codes of ``git merge-file`` from here on are errors; smaller ones count conflicts."""

_SIDES = ("-L", "ours", "-L", "base", "-L", "theirs")


def textual_conflict(base: Path, ours: Path, theirs: Path) -> bytes | None:
    """Return our file with markers where the sides differ, or both whole; ``None`` if a side cannot be read."""
    try:
        own, other = ours.read_bytes(), theirs.read_bytes()
    except OSError:
        return None
    done = ask_git(ours.parent, "merge-file", "-p", *_SIDES, *(str(path.absolute()) for path in (ours, base, theirs)))
    if done is not None and 0 < done.returncode < _ERROR:
        return done.stdout
    return b"".join([b"<<<<<<< ours\n", _with_line_end(own), b"=======\n", _with_line_end(other), b">>>>>>> theirs\n"])


def _with_line_end(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def probe_merging(root: Path, folder: str) -> Merging | None:
    """Return the driver that merges baselines here; ``None`` if git does not answer."""
    sample = f"{folder}/device/test.py.yaml"
    attribute = ask_git(root, "check-attr", "-z", "merge", "--", sample)
    if attribute is None or attribute.returncode:
        return None
    driver = ask_git(root, "config", "--get", "merge.perfgate.driver")
    named = attribute.stdout.rstrip(b"\0").split(b"\0")[-1]
    command = driver.stdout.decode("utf-8", "replace").strip() if driver is not None else ""
    return Merging(attribute=named == b"perfgate", driver=command)
