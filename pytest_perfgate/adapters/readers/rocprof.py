"""Results of rocprofv3, v1, v2 and rocprof-compute."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.readers.fields import (
    PageLines,
    Row,
    cells_of,
    header_of,
    refuse_repeated,
    refuse_zeros,
    text_of,
)
from pytest_perfgate.adapters.readers.rocprof_forms import IDENTITY, form_of, number_of
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.profiles import KernelFacts

FILES = ("*counter_collection.csv", "*kernel_trace.csv")
"""Files of rocprofv3 in a folder; passes are in folders of their own."""

_OTHERS = ("pmc_perf.csv", "pmc_perf*.csv", "results.csv", "*_kernel_stats.csv", "results.stats.csv")
"""If there are none of those, the first of these that exists."""

_KINDS = (FILES, *((name,) for name in _OTHERS))

_SAME = {"*_kernel_stats.csv": FILES, "results.stats.csv": ("results.csv",), "pmc_perf*.csv": ("pmc_perf.csv",)}
"""Files of one run that add nothing on kernels to others in their folder."""


def read_rocprof(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    """Return every dispatch of these files and folders, with its passes and traces joined."""
    files = [file for path in paths for file in _files(Path(path))]
    launches = joined([_read(file) for file in files])
    return tuple(
        facts if facts.index == number else replace(facts, index=number) for number, facts in enumerate(launches)
    )


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for names in _KINDS:
        files = _named(path, names)
        if files:
            _refuse_unread(path, files)
            return files
    raise PerfgateError("rocprof-csv", "no file of rocprof is in it", place=str(path))


def _named(path: Path, names: Sequence[str]) -> list[Path]:
    return sorted({file for name in names for file in path.rglob(name) if file.is_file()})


def _refuse_unread(path: Path, read: Sequence[Path]) -> None:
    """Refuse unread files with other dispatches, which limits would otherwise miss."""
    folders = {(name, file.parent) for names in _KINDS for name in names for file in read if file.match(name)}
    unread = set()
    for (name,) in _KINDS[1:]:
        others = (file for file in _named(path, (name,)) if file not in read)
        unmatched = (f for f in others if not any((column, f.parent) in folders for column in _SAME.get(name, ())))
        unread |= set(filter(_is_of_rocprof, unmatched))
    if unread:
        names = ", ".join(str(file.relative_to(path)) for file in sorted(unread))
        what = f"{read[0].relative_to(path)} is of one kind, and also here and not read: {names}"
        why = "limits would check a part of the kernels and seem to check all"
        raise PerfgateError(
            "rocprof-csv", what, why=why, fix="name one of the files, or a folder of one kind", place=str(path)
        )


def _is_of_rocprof(file: Path) -> bool:
    """Return whether a file is of rocprof by its columns, since other tools write a ``results.csv`` too."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        try:
            form_of(next(csv.DictReader(stream), {}), file)
        except (PerfgateError, csv.Error):
            return False
    return True


def _read(path: Path) -> list[KernelFacts]:
    header, records = _records(path)
    form = form_of(header if records else (), path)
    fault, keys, identity = partial(_fault, path), [], IDENTITY.get(form, ())
    for line, cells in records:
        row = dict(zip(header, cells))
        if wrong := _wrong_in(row):
            raise fault(f"line {line}: {wrong}", "a cell under the wrong column, or a file that is damaged")
        if key := _identity(row, identity):
            keys.append((line, key))
    refuse_repeated(keys, "dispatch", fault)
    # Rows are made twice, since a million of them at a time would fill the memory.
    every, machine = form((dict(zip(header, cells)) for _, cells in records), path), _machine(path)
    arch, device = machine.get("gpu_arch") or "gfx", machine.get("gpu_model") or ""
    return [replace(facts, arch=arch, device=device) for facts in every] if machine else list(every)


def _wrong_in(row: Row) -> str:
    """Return an impossible value of a dispatch: an end before its start, a year of work, a negative size or count."""
    for begin, end in _SPANS:
        first, last = number_of(row.get(begin)), number_of(row.get(end))
        if first and last and last < first:
            return f"{end} {row[end]} is before {begin} {row[begin]}"
        if first and last and last - first > _YEAR:
            return f"{end} {row[end]} is over a year after {begin} {row[begin]}"
    for name in _LENGTHS:
        if (number_of(row.get(name)) or 0.0) > _YEAR:
            return f"{name} is {row[name]} ns, over a year"
    for name, cell in row.items():
        if "-" in cell and name not in _SIGNED and (number_of(cell) or 0.0) < 0:
            return f"{name} is {cell}, and it is at least 0"
    return ""


def _identity(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """Return the values that identify a row in its file; empty if it has none, such as a row for each counter."""
    if names and row.get(names[0]):
        return tuple([row[name] for name in names if name in row])
    timed = names and any(row.get(begin, "0").strip("0") for begin in ("Start_Timestamp", "BeginNs"))
    return tuple(row.values()) if timed else ()


_LENGTHS = ("DurationNs", "TotalDurationNs", "AverageNs", "MaxNs", "Mean(ns)")

_YEAR = 365 * 86400e9

_SPANS = (("Start_Timestamp", "End_Timestamp"), ("BeginNs", "EndNs"))

_SIGNED = frozenset(("Agent_Id", "Queue_Id", "Stream_Id", "queue-id", "gpu-id", "Queue_ID", "GPU_ID"))  # -1: none


def _records(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a file, and (line, cells) of its rows."""
    fault = partial(_fault, path)
    text = text_of(path.read_bytes())
    refuse_zeros(text, fault)
    records = PageLines((line[0] for line in _LINE.finditer(text)), ",", 1, fault).records()
    first = next(records, None)
    if first is None:
        return [], []
    header = header_of(first[1], first[0], fault)
    rows = [(line, cells_of(header, [*map(intern, cells)], line, fault)) for line, cells in records]
    if not text.endswith("\n"):
        raise fault(
            "its last line has no line break", "rocprof writes one; a number that is cut reads as a smaller one"
        )
    return header, rows


_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a StringIO holds a copy of four bytes a character


def _fault(path: Path, what: str, why: str) -> PerfgateError:
    return PerfgateError("rocprof-csv", what, why=why, place=str(path))


def _machine(path: Path) -> Row:
    """Return the machine that rocprof-compute recorded beside its counters."""
    sysinfo = path.with_name(path.name.replace("pmc_perf", "sysinfo"))
    if sysinfo == path or not sysinfo.is_file():
        return {}
    rows = list(csv.DictReader(io.StringIO(sysinfo.read_text(encoding="utf-8-sig", errors="replace"))))
    return rows[0] if rows else {}


_PASS = re.compile(r"(?:pmc|pass)_(\d+)")

Key = tuple[str, ...]


def joined(files: Sequence[Sequence[KernelFacts]]) -> tuple[KernelFacts, ...]:
    """Return dispatches with the counters of all their passes, and the times of a trace."""
    every = [facts for one in files for facts in one]
    counted = [facts for facts in every if facts.counters]
    if not counted:
        return tuple(every)
    traced = [facts for facts in every if not facts.counters]
    times = {key: facts for facts in traced for key in _trace_keys(facts)}
    used: set[int] = set()
    merged = [_with_time(facts, times, used) for facts in _passes(counted)]
    return (*merged, *(facts for facts in traced if id(facts) not in used))


def _passes(counted: Sequence[KernelFacts]) -> list[KernelFacts]:
    """Return one entry for each dispatch, in the order of first occurrence."""
    ordinals = _ordinals(counted)
    by_file = not any(_number(facts.source) for facts in counted) and not _disjoint(counted)
    by_key: dict[Key, KernelFacts] = {}
    for facts in sorted(counted, key=lambda facts: _number(facts.source)):
        root = _root(facts.source)
        process = ordinals[_number(facts.source), root, facts.notes.get("process", "")]
        key = (root, str(process), *_dispatch(facts), *((facts.source,) if by_file else ()))
        by_key[key] = _merge(by_key[key], facts) if key in by_key else facts
    return list(by_key.values())


def _merge(first: KernelFacts, other: KernelFacts) -> KernelFacts:
    """Join two passes; a counter of both keeps the first value."""
    return replace(
        first,
        counters={**other.counters, **first.counters},
        duration=first.duration if first.duration is not None else other.duration,
        resources=first.resources or other.resources,
    )


def _ordinals(counted: Iterable[KernelFacts]) -> dict[tuple[int, str, str], int]:
    """Return the ordinal of each process in its pass; passes run the program again with other process ids."""
    agents: dict[tuple[int, str], set[str]] = {}
    for facts in counted:
        agents.setdefault((_number(facts.source), _root(facts.source)), set()).add(facts.notes.get("process", ""))
    for root in {root for _, root in agents}:
        counts = {number: len(names) for (number, home), names in agents.items() if home == root and number}
        if len(set(counts.values())) > 1:
            what = "passes have different numbers of processes: their dispatches cannot be matched"
            raise PerfgateError("rocprof-csv", what, place=root, fix="name the files of one process")
    return {
        (*where, process): at
        for where, names in agents.items()
        for at, process in enumerate(sorted(names, key=lambda name: (len(name), name)))
    }


@cache
def _number(source: str) -> int:
    """Return the number of the pass; zero if the folders have none."""
    matches = [_PASS.fullmatch(part) for part in Path(source).parts]
    return next((int(one[1]) for one in reversed(matches) if one), 0)


@cache
def _root(source: str) -> str:
    """Return the folder that holds the passes; "" if there are none."""
    parts = Path(source).parts
    at = next((n for n in range(len(parts) - 1, -1, -1) if _PASS.fullmatch(parts[n])), 0)
    return str(Path(*parts[:at])) if at else ""


def _disjoint(counted: Sequence[KernelFacts]) -> bool:
    """Return whether files share no counter, so that they are passes, whatever their names."""
    names: dict[str, set[str]] = {}
    for facts in counted:
        names.setdefault(facts.source, set()).update(facts.counters)
    return sum(map(len, names.values())) == len(set().union(*names.values()))


def _dispatch(facts: KernelFacts) -> Key:
    """Return the key of a dispatch; statistics have none, so that their kernel's name is used."""
    return facts.name, facts.notes.get("dispatch", ""), facts.notes.get("agent", "")


def _trace_keys(facts: KernelFacts) -> tuple[Key, Key]:
    """Return the key with the process, and without it, since older traces do not name the process."""
    name, dispatch, _ = _dispatch(facts)
    return (name, dispatch, facts.notes.get("process", "")), (name, dispatch, "")


def _with_time(facts: KernelFacts, times: dict[Key, KernelFacts], used: set[int]) -> KernelFacts:
    keys = _trace_keys(facts)
    time = next((times[key] for key in keys if key in times and _may_be(facts, times[key])), None)
    if time is None:
        return facts
    used.add(id(time))
    return replace(facts, duration=facts.duration if facts.duration is not None else time.duration)


def _may_be(facts: KernelFacts, other: KernelFacts) -> bool:
    """Return whether both may be of one process, or of different passes."""
    process, others = facts.notes.get("process", ""), other.notes.get("process", "")
    return not process or not others or process == others or _number(facts.source) != _number(other.source)
