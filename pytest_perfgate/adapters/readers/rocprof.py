"""AMD kernels: traces and counters of rocprofv3, results of rocprof v1 and v2, tables of rocprof-compute."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_perfgate.adapters.readers.csv_rows import Lines, Row, header_of, refuse_repeated, refuse_zeros, row_of
from pytest_perfgate.adapters.readers.rocprof_forms import form_of, identity_of, wrong_in
from pytest_perfgate.adapters.readers.rocprof_passes import joined
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import KernelFacts

FILES = ("*counter_collection.csv", "*kernel_trace.csv")
"""Of rocprofv3, in a folder; passes lie in folders of their own."""
_OTHERS = ("pmc_perf.csv", "pmc_perf*.csv", "results.csv", "*_kernel_stats.csv", "results.stats.csv")
"""Where there are none of those: the first of these that there is."""
_KINDS = (FILES, *((name,) for name in _OTHERS))
_SAME = {"*_kernel_stats.csv": FILES, "results.stats.csv": ("results.csv",), "pmc_perf*.csv": ("pmc_perf.csv",)}
"""What one run of a tool leaves twice: these say nothing of a kernel that the others in their folder do not."""


def read_rocprof(paths: Sequence[Path]) -> tuple[KernelFacts, ...]:
    """Every dispatch of these files and folders; passes and traces of one dispatch become one."""
    files = [file for path in paths for file in _files(Path(path))]
    found = joined([tuple(_read(file)) for file in files])
    return tuple(replace(facts, index=number) for number, facts in enumerate(found))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for names in _KINDS:
        found = _named(path, names)
        if found:
            _refuse_unread(path, found)
            return found
    raise PerfgateError("rocprof-csv", "no file of rocprof is in it", place=str(path))


def _named(path: Path, names: Sequence[str]) -> list[Path]:
    return sorted({file for name in names for file in path.rglob(name) if file.is_file()})


def _refuse_unread(path: Path, read: Sequence[Path]) -> None:
    """Dispatches of another kind of file would be left out of every limit, and nobody would know."""
    folders = {(name, file.parent) for names in _KINDS for name in names for file in read if file.match(name)}
    unread = {
        file
        for (name,) in _KINDS[1:]
        for file in _named(path, (name,))
        if file not in read
        and not any((kept, file.parent) in folders for kept in _SAME.get(name, ()))
        and _is_of_rocprof(file)
    }
    if unread:
        others = ", ".join(str(file.relative_to(path)) for file in sorted(unread))
        what = f"{read[0].relative_to(path)} is of one kind, and also here and not read: {others}"
        why = "limits would hold for a part of the kernels and look like all of them"
        raise PerfgateError(
            "rocprof-csv", what, why=why, mend="name one of the files, or a folder of one kind", place=str(path)
        )


def _is_of_rocprof(file: Path) -> bool:
    """By its columns: other tools write a ``results.csv`` as well."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        try:
            form_of([row for row, _ in zip(csv.DictReader(stream), range(1))], file)
        except (PerfgateError, csv.Error):
            return False
    return True


def _read(path: Path) -> Iterator[KernelFacts]:
    rows = _rows(path)
    form = form_of([row for _, row in rows], path)
    fault = partial(_fault, path)
    for line, row in rows:
        wrong = wrong_in(row)
        if wrong:
            raise fault(f"line {line}: {wrong}", "a cell under the wrong column, or a file that is damaged")
    refuse_repeated([(line, key) for line, row in rows if (key := identity_of(row, form))], "dispatch", fault)
    machine = _machine(path)
    for facts in form([row for _, row in rows], path):
        yield replace(facts, arch=machine.get("gpu_arch", "gfx"), device=machine.get("gpu_model", ""))


def _rows(path: Path) -> list[tuple[int, Row]]:
    """(line, row) of a file; none where it holds nothing but a header."""
    fault = partial(_fault, path)
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    refuse_zeros(text, fault)
    records = list(Lines(list(io.StringIO(text)), ",", 1, fault).records())
    if not records:
        return []
    header = header_of(records[0][1], records[0][0], fault)
    return [(line, row_of(header, cells, line, fault)) for line, cells in records[1:]]


def _fault(path: Path, what: str, why: str) -> PerfgateError:
    return PerfgateError("rocprof-csv", what, why=why, place=str(path))


def _machine(path: Path) -> Row:
    """What rocprof-compute wrote of the machine beside its counters."""
    beside = path.with_name(path.name.replace("pmc_perf", "sysinfo"))
    if beside == path or not beside.is_file():
        return {}
    rows = list(csv.DictReader(io.StringIO(beside.read_text(encoding="utf-8-sig", errors="replace"))))
    return rows[0] if rows else {}
