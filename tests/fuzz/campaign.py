"""Damages files of one kind, many times, and sees whether three things stay true of their reader.

It neither crashes nor hangs nor takes memory without bound; what it accepts has the same figures or a notice, where the
damage must show; and its figures are figures that can be.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pytest_perfgate.model.errors import PerfgateError
from tests.fuzz.damage import Way
from tests.fuzz.readers import READERS, Reader
from tests.fuzz.seen import Seen

LONGEST_S = 20.0
"""Processor time of one mutant; a process that waits for a processor, or for anything else, is given ten times that."""
MOST_MEMORY = 2 << 30
"""Bytes of address space that a reader may take beside what the interpreter has."""


class Mutant(NamedTuple):
    """One damaged file: its number draws everything about it."""

    seed: str
    ways: tuple[str, ...]
    data: bytes
    same: bool


class Fault(NamedTuple):
    """What was not true of one."""

    number: int
    kind: str
    """crash, hang, memory, silent or impossible."""
    detail: str
    seed: str
    ways: tuple[str, ...]


class Outcome(NamedTuple):
    counts: Counter[str]
    """Mutants by what became of them: refused, noticed, same, other."""
    faults: list[Fault]
    seconds: float


def mutant(reader: Reader, files: dict[str, bytes], draw: str) -> Mutant:
    """The same one for the same draw."""
    rng = Random(draw)
    name = rng.choice(sorted(files))
    chosen = tuple(rng.choice(sorted(reader.ways)) for _ in range(rng.choice((1, 1, 1, 2))))
    data, ways = files[name], [reader.ways[way] for way in chosen]
    for way in ways:
        data = way.make(rng, data)
    return Mutant(name, chosen, data, _same(ways))


def _same(ways: list[Way]) -> bool:
    """Two ways together may undo each other's trace: a row that is longer and shorter has its width again."""
    return len(ways) == 1 and ways[0].same


def campaign(name: str, count: int, seed: int = 0, seconds: float = math.inf) -> Outcome:
    """So many mutants of one kind of file, each read in a process that may die of it."""
    reader, began = READERS[name], time.monotonic()
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    number = 0
    while number < count and time.monotonic() - began < seconds:
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=_worker, args=(there, name, range(number, count), seed), daemon=True
        )
        child.start()
        there.close()
        number = _followed(here, child, number, counts, faults, began + seconds) + 1
        child.join()
    files = dict(reader.seeds())
    described = [_described(fault, mutant(reader, files, f"{seed}/{name}/{fault.number}")) for fault in faults]
    return Outcome(counts, described, time.monotonic() - began)


def _described(fault: Fault, made: Mutant) -> Fault:
    return fault._replace(seed=made.seed, ways=made.ways)


def _followed(
    here: Connection, child: Any, number: int, counts: Counter[str], faults: list[Fault], until: float
) -> int:
    """The number of the last mutant that this worker was in."""
    while True:
        if time.monotonic() > until or _stuck(here, child.pid):
            os.kill(child.pid, signal.SIGKILL)
            if time.monotonic() <= until:
                counts["hang"] += 1
                faults.append(Fault(number, "hang", f"nothing for {LONGEST_S:.0f} s", "", ()))
            return number
        try:
            number, kind, text = here.recv()
        except EOFError:
            child.join()
            if child.exitcode:
                counts["crash"] += 1
                faults.append(Fault(number, "crash", f"the process ended with {child.exitcode}", "", ()))
            return number if child.exitcode else 1 << 60
        if kind in ("crash", "memory", "silent", "impossible"):
            faults.append(Fault(number, kind, text, "", ()))
        if kind != "begun":
            counts[kind] += 1


def _stuck(here: Connection, pid: int) -> bool:
    """Whether nothing comes, though the process has worked for long."""
    worked = _worked_s(pid)
    for _ in range(10):
        if here.poll(LONGEST_S):
            return False
        if _worked_s(pid) - worked >= LONGEST_S:
            return True
    return True


def _worked_s(pid: int) -> float:
    """Seconds of processor time that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _worker(there: Connection, name: str, numbers: range, seed: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    warnings.simplefilter("ignore")
    reader = READERS[name]
    files = dict(reader.seeds())
    with tempfile.TemporaryDirectory() as folder:
        clean = {one: _clean(reader, Path(folder), data) for one, data in files.items()}
        _bounded()
        for number in numbers:
            there.send((number, "begun", ""))
            made = mutant(reader, files, f"{seed}/{name}/{number}")
            there.send((number, *_judged(reader, Path(folder), made, clean[made.seed])))
            if number % 50 == 49:
                gc.collect()


def _bounded() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_MEMORY, resource.RLIM_INFINITY))


def _read(reader: Reader, folder: Path, data: bytes) -> Seen:
    place = folder / "pyproject.toml" if reader.suffix == ".toml" else folder / f"x{reader.suffix}"
    place.write_bytes(data)
    return reader.read(place)


def _clean(reader: Reader, folder: Path, data: bytes) -> Seen:
    """What the undamaged file comes to; some are refused as they are."""
    try:
        return _read(reader, folder, data)
    except PerfgateError as error:
        return Seen({"refused": error.code.name})


def _judged(reader: Reader, folder: Path, made: Mutant, clean: Seen) -> tuple[str, str]:
    try:
        reading = _read(reader, folder, made.data)
    except PerfgateError as error:
        return "refused", error.code.name
    except MemoryError:
        return "memory", "MemoryError"
    except BaseException as fault:
        last = traceback.extract_tb(fault.__traceback__)[-1]
        return "crash", f"{type(fault).__name__}: {str(fault)[:200]} ({Path(last.filename).name}:{last.lineno})"
    more = reading.notices - clean.notices
    if reading.odd and reading.odd != clean.odd:
        return "impossible", "; ".join(reading.odd[:3])
    if alike(reading.figures, clean.figures):
        return "same", ""
    if more:
        return "noticed", next(iter(more))
    if made.same:
        return "silent", "; ".join(_differences(clean, reading))
    return "other", ""


def _differences(clean: Seen, reading: Seen) -> Iterator[str]:
    names = [
        name for name in {**clean.figures, **reading.figures} if clean.figures.get(name) != reading.figures.get(name)
    ]
    for name in names[:3]:
        yield f"{name}: {str(clean.figures.get(name))[:120]} -> {str(reading.figures.get(name))[:120]}"


def alike(one: Any, other: Any) -> bool:
    """Figures in another order, or added up in another one, are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)
