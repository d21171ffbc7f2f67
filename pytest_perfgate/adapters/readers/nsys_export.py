"""One open export of Nsight Systems: totals by SQL, and columns of its events."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_perfgate.adapters.readers import nsys_connection as tables
from pytest_perfgate.adapters.readers.nsys_columns import chunks, numbers, read_calls, read_ranges, read_timed
from pytest_perfgate.adapters.readers.nsys_connection import (
    Connection,
    check_layout,
    complete,
    connect,
    missing_columns,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import (
    Activity,
    ApiTotal,
    Calls,
    ExportFacts,
    Extent,
    KernelTotal,
    Ranges,
    TimedCalls,
    activity,
    in_context,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


_VERSION = re.compile(r"_v\d+$")

_AT_ONCE = 500

_PROCESS = (1 << 24) - 1
"""The process id in a ``globalPid`` without its lower 24 bits, as NVIDIA's manual specifies."""

_LATEST = (1 << 63) - 1
"""The largest number of SQLite."""

_TOUCHES = "start < ? AND end > ?"

_DAY = 24 * 3600 * 10**9


def open_export(path: Path, report: Path | None = None) -> Export:
    """Return an export with kernels in it, named by the report that it was made of; raise for anything else."""
    connection = connect(path)
    connection.path = report or path
    try:
        check_layout(connection)
        export = Export(connection)
        _check_kernels(export.facts(), connection.has(tables.KERNELS))
    except PerfgateError:
        connection.close()
        raise
    return export


def _check_kernels(facts: ExportFacts, has_table: bool) -> None:
    """Raise if there are no kernels, or if graphs hide all of them."""
    if tables.KERNELS in facts.tables:
        return
    if facts.graphs:
        raise PerfgateError("nsys-graphs", f"{facts.graphs:,} graph launches and no kernel", place=facts.path)
    table = "an empty kernel table" if has_table else "no kernel table"
    tables_text = ", ".join(facts.tables) or "nothing of the GPU"
    raise PerfgateError("nsys-no-kernels", f"{table}; the file holds {tables_text}", place=facts.path)


def _place(row: Sequence[object], path: Path) -> tuple[int, int, int]:
    try:
        process, device, context = (int(str(cell or 0)) for cell in row)
    except ValueError as fault:
        what = f"a kernel's process, device or context is a text: {fault}"
        raise PerfgateError("nsys-damaged", what, place=str(path)) from fault
    return process >> 24, device, context


def _require_numeric_times(db: Connection, table: str) -> None:
    """Check a table once for times that are texts: SQL would sort them after every number, and sum them."""
    if table in db.checked or not {"start", "end"} <= db.columns(table).keys():
        return
    db.checked.add(table)
    later = f"start > {_LATEST} OR end > {_LATEST}"
    if db.rows(f"SELECT 1 FROM {db.source(table)} WHERE {later} LIMIT 1"):
        raise PerfgateError("nsys-damaged", f"a time is a text in {table}", place=str(db.path))


def _check_places(places: Collection[tuple[int, int, int]], path: str) -> None:
    """Refuse (process with machine, device, context) whose shortened numbers would be equal."""
    out_of_range = [device for _, device, _ in places if not 0 <= device <= MOST_DEVICES]
    if out_of_range:
        what = f"kernels of device number {out_of_range[0]}; numbers from 0 to {MOST_DEVICES} are read"
        raise PerfgateError("nsys-schema", what, place=path)
    machines: dict[int, int] = {}
    for process, _, _ in places:
        if machines.setdefault(process & _PROCESS, process) != process:
            what = f"process {process & _PROCESS} occurs on two machines"
            raise PerfgateError("nsys-ranks", what, place=path, fix="profile each machine into a report of its own")


def _by_process(spans: Mapping[int, tuple[int, int]], side: int) -> str:
    """Return SQL for one edge of each process's span; a plain number if all are equal."""
    edges = {pid: int(span[side]) for pid, span in spans.items()}
    if len(set(edges.values())) == 1:
        return str(next(iter(edges.values())))
    listed = " ".join(f"WHEN {int(pid)} THEN {edge}" for pid, edge in edges.items())
    return f"(CASE globalTid >> 24 & {_PROCESS} {listed} END)"


class Export:
    """Reads only what is requested."""

    def __init__(self, connection: Connection) -> None:
        self._db = connection

    def facts(self) -> ExportFacts:
        return replace(self._facts, foreign=self._db.foreign[0])

    @cached_property
    def _facts(self) -> ExportFacts:
        return read_facts(self._db)

    def processes(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({(process & _PROCESS, device) for process, device, _ in self._places}))

    @cached_property
    def _places(self) -> tuple[tuple[int, int, int], ...]:
        """Return (process with its machine, device, context) of all kernels."""
        columns = (self._column(tables.KERNELS, name) for name in ("globalPid", "deviceId", "contextId"))
        rows = self._db.rows(
            f"SELECT DISTINCT {', '.join(columns)} FROM {self._db.source(tables.KERNELS)} WHERE {tables.TIMED}"
        )
        places = {_place(row, self._db.path) for row in rows}
        _check_places(places, str(self._db.path))
        return tuple(places)

    def extents(self) -> tuple[Extent, ...]:
        place = ", ".join(self._column(tables.KERNELS, name) for name in ("globalPid", "deviceId"))
        return _extents(self._db, place, several=len(self.processes()) != 1)

    def _key(self, name: str) -> str:
        pid, device = (self._column(tables.KERNELS, column) for column in ("globalPid", "deviceId"))
        return packed(pid, device, name)

    def threads(self) -> tuple[tuple[int, str], ...]:
        if not complete(self._db, tables.THREADS):
            return ()
        rows = self._db.rows(f"SELECT globalTid, nameId FROM {self._db.source(tables.THREADS)} ORDER BY globalTid")
        named = [(int(thread or 0) >> 24 & _PROCESS, int(name or 0)) for thread, name in rows]
        names = self.names([name for _, name in named])
        return tuple((pid, names[name]) for pid, name in named if name in names)

    def ranges(self) -> Ranges:
        return read_ranges(self._db, self.names)

    def full_names(self) -> dict[int, str]:
        if self._name != "shortName" or "demangledName" not in self._db.columns(tables.KERNELS):
            return {}
        rows = self._db.rows(f"SELECT id, value FROM {self._db.source(tables.STRINGS)} WHERE value LIKE '%::%'")
        return {int(number): str(text) for number, text in rows}

    def kernels(self, low: int, high: int, whole: Collection[int] = ()) -> Activity:
        return self._activity(tables.KERNELS, self._named(whole), low, high)

    def _named(self, whole: Collection[int]) -> str:
        """Return the column of a kernel's name, or of its full name for these."""
        listed = ", ".join(str(int(number)) for number in whole)
        return (
            f"CASE WHEN demangledName IN ({listed}) THEN demangledName ELSE {self._name} END" if listed else self._name
        )

    def copies(self, low: int, high: int) -> Activity:
        copies = self._activity(tables.COPIES, "0", low, high)
        sets = self._activity(tables.MEMSETS, "1", low, high)
        return activity([np.concatenate(pair) for pair in zip(copies.columns(), sets.columns())])

    def _activity(self, table: str, name: str, low: int, high: int) -> Activity:
        """Return activities; lengths are shorter to transfer than ends, and three small columns are packed into one."""
        if not {"start", "end"} <= self._db.columns(table).keys():
            return activity([np.empty(0, dtype=np.int64)] * 7)
        where = packed(*(self._column(table, column) for column in ("globalPid", "deviceId", "streamId")))
        listed = ["start", "end - start", where, self._column(table, "correlationId", missing="-1"), name]
        if self._several_contexts:
            listed.append(self._column(table, "contextId"))
        start, length, keys, correlation, names, *context = numbers(self._db, table, listed, _TOUCHES, (high, low))
        pid, device, stream = unpacked(keys)
        stream = in_context(stream, context[0]) if context else stream
        return activity([start, start + length, pid, device, stream, correlation, names])

    @cached_property
    def _several_contexts(self) -> bool:
        """Return whether a process has several contexts on one device."""
        return len(self._places) > len({(process, device) for process, device, _ in self._places})

    @cached_property
    def _name(self) -> str:
        have = self._db.columns(tables.KERNELS)
        return next((name for name in ("shortName", "demangledName", "mangledName") if name in have), "-1")

    def _column(self, table: str, column: str, suffix: str = "", missing: str = "0") -> str:
        return f"{column} {suffix}" if column in self._db.columns(table) else missing

    def calls(self, first: int, last: int) -> Calls:
        _require_numeric_times(self._db, tables.RUNTIME)
        return read_calls(self._db, first, last)

    def names(self, ids: Sequence[int]) -> dict[int, str]:
        names: dict[int, str] = {}
        for first in range(0, len(ids), _AT_ONCE):
            part = ", ".join(str(int(number)) for number in ids[first : first + _AT_ONCE])
            rows = self._db.rows(f"SELECT id, value FROM {self._db.source(tables.STRINGS)} WHERE id IN ({part})")
            names.update((int(number), "" if text is None else str(text)) for number, text in rows)
        return names

    def kernel_totals(self, low: int, high: int, whole: Collection[int] = ()) -> tuple[KernelTotal, ...]:
        columns = [self._key(self._named(whole)), "end - start"]
        totals = sums(chunks(self._db, tables.KERNELS, columns, "start BETWEEN ? AND ?", (low, high - 1)))
        names = self.names([key.name for key in totals])
        return tuple(
            KernelTotal(pid=key.pid, device=key.device, name=names.get(key.name, f"kernel {key.name}"),
                        count=row.calls, total_ns=row.total_ns, least_ns=row.least_ns, most_ns=row.most_ns)
            for key, row in totals.items()
        )  # fmt: skip

    def api_totals(self, spans: Mapping[int, tuple[int, int]]) -> tuple[ApiTotal, ...]:
        """Return the totals of API calls by name without the version of the interface.

        Older exports record a call twice, as ``cudaMalloc`` around ``cudaMalloc_v3020``; the outer one counts.
        """
        if not complete(self._db, tables.RUNTIME):
            return ()
        low, high = (_by_process(spans, side) for side in (0, 1))
        listed = [packed("globalTid", "0", "nameId"), f"min(end, {high}) - max(start, {low})"]
        hull = (max(until for _, until in spans.values()), min(since for since, _ in spans.values()))
        own = f"{_TOUCHES} AND start < {high} AND end > {low}"
        _require_numeric_times(self._db, tables.RUNTIME)
        totals = sums(chunks(self._db, tables.RUNTIME, listed, own, hull))
        names = self.names([key[2] for key in totals])
        best: dict[tuple[int, str], ApiTotal] = {}
        for key, row in totals.items():
            name = _VERSION.sub("", names.get(key[2], "?"))
            total = ApiTotal(pid=key[0], name=name, count=row[0], total_ns=row[1])
            best[key[0], name] = max(total, best.get((key[0], name), total), key=lambda one: one.total_ns)
        return tuple(best.values())

    def timed(self, low: int, high: int, kinds: Sequence[re.Pattern[str]]) -> tuple[TimedCalls, ...]:
        _require_numeric_times(self._db, tables.RUNTIME)
        return read_timed(self._db, low, high, kinds)


def _extents(db: Connection, place: str, *, several: bool) -> tuple[Extent, ...]:
    """Return the span of each process and device; without groups, SQLite need not sort the kernels."""
    listed = f"{place}, count(*), CAST(min(start) AS INTEGER), CAST(max(end) AS INTEGER)"
    edges: dict[tuple[int, int], list[Any]] = {}
    for row in db.rows(
        f"SELECT {listed} FROM {db.source(tables.KERNELS)} WHERE {tables.TIMED}{' GROUP BY 1, 2' if several else ''}"
    ):
        process, device, _ = _place((*row[:2], 0), db.path)
        edges.setdefault((process & _PROCESS, device), []).append(row[2:])
    return tuple(
        Extent(pid=pid, device=device, first=min(row[1] for row in rows), last=max(row[2] for row in rows),
               kernels=sum(row[0] for row in rows))
        for (pid, device), rows in sorted(edges.items())
    )  # fmt: skip


class Key(NamedTuple):
    """Whose kernels a total is of."""

    pid: int
    device: int
    name: int


class KernelSum(NamedTuple):
    """How many kernels there are, and how long they took."""

    calls: int
    total_ns: int
    least_ns: int
    most_ns: int


_NAME, _DEVICE = 32, 7

MOST_DEVICES = (1 << _DEVICE) - 1


def packed(process: str, device: str, name: str) -> str:
    """Return SQL for one 63-bit number, because three columns would take half as long again to transfer."""
    low = f"ifnull({device}, 0) & 127) << {_NAME} | (ifnull({name}, 0) & 4294967295)"
    return f"((ifnull({process}, 0) >> 24 & 16777215) << {_NAME + _DEVICE}) | (({low})"


def unpacked(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the three columns of packed numbers."""
    return keys >> _NAME + _DEVICE, keys >> _NAME & 127, keys & 0xFFFFFFFF


def sums(parts: Iterable[list[Ints]]) -> dict[Key, KernelSum]:
    """Return count, total, least and most of the second column by the packed first."""
    totals: dict[int, KernelSum] = {}
    for keys, amount in parts:
        for key, row in _chunk(keys, amount):
            old = totals.get(key)
            totals[key] = row if old is None else _joined(old, row)
    return {_unpacked(key): row for key, row in totals.items()}


def _joined(a: KernelSum, b: KernelSum) -> KernelSum:
    return KernelSum(a.calls + b.calls, a.total_ns + b.total_ns, min(a.least_ns, b.least_ns), max(a.most_ns, b.most_ns))


def _unpacked(key: int) -> Key:
    return Key(key >> _NAME + _DEVICE, key >> _NAME & 127, key & 0xFFFFFFFF)


def _chunk(keys: Ints, amount: Ints) -> Iterator[tuple[int, KernelSum]]:
    order = np.argsort(keys, kind="stable")
    keys, amount = keys[order], amount[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    columns = [np.diff(np.append(first, len(keys))), *(how.reduceat(amount, first) for how in _HOW)]
    for key, count, total, least, most in zip(keys[first].tolist(), *(column.tolist() for column in columns)):
        yield key, KernelSum(count, total, least, most)


_HOW = (np.add, np.minimum, np.maximum)

_LISTED = (tables.KERNELS, tables.RANGES, tables.RUNTIME, tables.COPIES, tables.MEMSETS, tables.GRAPHS)


def read_facts(db: Connection) -> ExportFacts:
    """Return versions, devices and filled tables; only small tables are counted."""
    meta = _metadata(db)
    filled = tuple(t for t in _LISTED if db.has(t) and db.rows(f"SELECT 1 FROM {db.source(t)} LIMIT 1"))
    graphs = db.rows(f"SELECT count(*) FROM {db.source(tables.GRAPHS)}")[0][0] if tables.GRAPHS in filled else 0
    _require_numeric_times(db, tables.RANGES)
    return ExportFacts(
        path=str(db.path),
        product=meta.get("EXPORT_PRODUCT_VERSION", ""),
        schema=meta.get("EXPORT_SCHEMA_VERSION", ""),
        gpus=_gpus(db),
        tables=filled,
        graphs=int(graphs),
        lacking=missing_columns(db, filled),
        untimed=tuple(_untimed(db, filled)),
    )


def _untimed(db: Connection, filled: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield, by table, device activities without a start or an end, or longer than a day."""
    for table in (tables.KERNELS, tables.COPIES, tables.MEMSETS):
        if table in filled and {"start", "end"} <= db.columns(table).keys():
            _require_numeric_times(db, table)
            condition = f"NOT ({tables.TIMED}) OR end - start > {_DAY}"
            count = int(db.rows(f"SELECT count(*) FROM {db.source(table)} WHERE {condition}")[0][0])
            if count:
                yield table, count


def _metadata(db: Connection) -> dict[str, str]:
    wanted = "('EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION')"
    for table in tables.METADATA:
        if {"name", "value"} <= db.columns(table).keys():
            rows = db.rows(f"SELECT name, value FROM {db.source(table)} WHERE name IN {wanted} AND value IS NOT NULL")
            return {str(name): str(text) for name, text in rows}
    return {}


def _gpus(db: Connection) -> tuple[tuple[int, str], ...]:
    """Return device names by the number in kernels' rows, as NVIDIA's reports join them; CUDA's may differ."""
    for table in tables.GPUS:
        have = db.columns(table)
        numbers = [name for name in ("id", "deviceId", "cuDevice") if name in have]
        if "name" in have and numbers:
            device = ", ".join([*numbers, "NULL"])
            rows = db.rows(f"SELECT coalesce({device}), name FROM {db.source(table)} WHERE name IS NOT NULL ORDER BY 1")
            return tuple((int(index), str(name)) for index, name in rows if index is not None)
    return ()
