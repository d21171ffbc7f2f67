"""Results of airspeed velocity: one file a commit and environment, parameters spread out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product, zip_longest
from math import prod
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import mapping, member, nanoseconds, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.errors import PerfgateError

_MOST = 100_000
"""Combinations of one benchmark's parameters: a file of a kilobyte could name billions."""


def read_asv(path: Path) -> BenchFile:
    """Times alone: memory and tracked numbers have other units, which the file does not name."""
    body, place = read_json(path, "asv"), f"{path}: results"
    columns = body.get("result_columns") or ["result", "params"]
    if not isinstance(columns, list) or "result" not in columns or not all(isinstance(one, str) for one in columns):
        raise PerfgateError("artifact-unreadable", "result_columns names no result", place=str(path))
    rows = member(body, "results", dict, str(path))
    timed = [name for name in rows if _timed(name)]
    return BenchFile(
        tool="asv",
        results=tuple(result for name in timed for result in _results(name, rows[name], columns, place)),
        commit=str(body.get("commit_hash") or ""),
        when=_date(body.get("date")),
        machine=str(mapping(body.get("params")).get("machine") or ""),
        untimed=len(rows) - len(timed),
    )


def _timed(name: str) -> bool:
    return name.rpartition(".")[2].lower().startswith("time")


def _results(name: str, row: Any, columns: list[str], place: str) -> Iterator[BenchResult]:
    """One for each combination of parameters; nothing at all stands for a benchmark that failed in all."""
    values, params = _fields(row, columns)
    if not isinstance(params, list) or not all(isinstance(axis, list) for axis in params):
        raise PerfgateError("artifact-unreadable", f"the parameters of {name} are no lists", place=place)
    count = prod(map(len, params))
    listed = values if isinstance(values, list) else [values]
    if len(listed) > count or count > _MOST:
        what = f"{name} has {len(listed)} results of {count:,} combinations of parameters"
        raise PerfgateError("artifact-unreadable", what, place=place)
    for combination, found in zip_longest(product(*params), listed):
        time = nanoseconds(found)
        yield BenchResult(
            name=f"{name}[{'-'.join(map(str, combination))}]" if combination else name,
            time=time,
            skipped="" if time is not None else "failed or skipped" if number(found) is None else "below zero",
        )


def _fields(row: Any, columns: list[str]) -> tuple[Any, Any]:
    """(results, parameters): version 2 has rows with columns; before, a mapping or the bare number stood here."""
    if isinstance(row, list):
        row = dict(zip(columns, row))
    return (row.get("result"), row.get("params") or []) if isinstance(row, Mapping) else (row, [])


def _date(milliseconds: Any) -> str:
    import datetime as dt

    found = number(milliseconds)
    try:
        return dt.datetime.fromtimestamp(found / 1e3, dt.timezone.utc).isoformat() if found else ""
    except (OverflowError, ValueError, OSError):
        return ""
