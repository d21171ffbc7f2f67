"""Results of airspeed velocity: one file a commit and environment, parameters spread out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import member, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult


def read_asv(path: Path) -> BenchFile:
    """Times alone: memory and tracked numbers have other units, which the file does not name."""
    body = read_json(path, "asv")
    columns = body.get("result_columns") or ["result", "params"]
    machine = (body.get("params") or {}).get("machine", "")
    results = tuple(
        result
        for name, row in member(body, "results", dict, str(path)).items()
        if _timed(name)
        for result in _results(name, row, columns)
    )
    return BenchFile(
        tool="asv",
        results=results,
        commit=str(body.get("commit_hash") or ""),
        when=_date(body.get("date")),
        machine=machine,
    )


def _timed(name: str) -> bool:
    return name.rpartition(".")[2].lower().startswith(("time", "timeraw"))


def _results(name: str, row: Any, columns: list[str]) -> Iterator[BenchResult]:
    """Version 2 has rows with columns; before, a mapping or the bare number stood here."""
    if isinstance(row, list):
        fields = dict(zip(columns, row))
    elif isinstance(row, dict):
        fields = row
    else:
        fields = {"result": [row]}
    values, params = fields.get("result"), fields.get("params") or []
    times = values if isinstance(values, list) else [values]
    for combination, time in zip(product(*params), times):
        found = number(time)
        tail = f"[{'-'.join(map(str, combination))}]" if combination else ""
        yield BenchResult(
            name=f"{name}{tail}",
            time=found * 1e9 if found is not None else None,
            skipped="" if found is not None else "failed or skipped",
        )


def _date(milliseconds: Any) -> str:
    import datetime as dt

    found = number(milliseconds)
    return dt.datetime.fromtimestamp(found / 1e3, dt.timezone.utc).isoformat() if found else ""
