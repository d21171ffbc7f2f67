"""Aggregates as the reference names them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Row = dict[str, object]
PARTS = ("mean", "median", "std", "min", "max")


def aggregates(column: str, numbers: Sequence[float], parts: Sequence[str] = PARTS) -> Row:
    """``column_mean`` and its siblings; the deviation of one number is unknown."""
    found = np.asarray(numbers, np.float64)
    known = {
        "mean": float(found.mean()),
        "median": float(np.median(found)),
        "std": float(found.std(ddof=1)) if len(found) > 1 else None,
        "min": float(found.min()),
        "max": float(found.max()),
        "sum": float(found.sum()),
    }
    return {f"{column}_{part}": known[part] for part in parts}


def with_shares(rows: list[Row], column: str) -> list[Row]:
    """Rows by falling column, with their percentage and its running sum."""
    ordered = sorted(rows, key=lambda row: (-float(row[column]), _order(row)))  # type: ignore[arg-type]
    total = sum(float(row[column]) for row in ordered)  # type: ignore[arg-type, misc]
    running = 0.0
    for row in ordered:
        share = 100 * float(row[column]) / total if total else 0.0  # type: ignore[arg-type]
        running += share
        row["Percentage (%)"], row["Cumulative Percentage (%)"] = share, running
    return ordered


def _order(row: Row) -> int:
    return int(row.get("ex_UID") or row.get("UID_first") or 0)  # type: ignore[call-overload, no-any-return]


Kernels = Sequence[Sequence[tuple[str, object, float]]]


def kernel_summary(lists: Kernels) -> str:
    """Kernels by their position in a call, the shortest first, as the reference writes them into a cell."""
    return "[" + ", ".join(_entry(name, stream, spent) for name, stream, spent in _columns(lists)) + "]"


def _columns(lists: Kernels) -> list[tuple[str, object, list[float]]]:
    template = next((call for call in lists if call), [])
    same = [call for call in lists if len(call) == len(template)]
    found = [(name, stream, [call[at][2] for call in same]) for at, (name, stream, _) in enumerate(template)]
    return sorted(found, key=lambda column: sum(column[2]))


def _entry(name: str, stream: object, spent: Sequence[float]) -> str:
    found = np.asarray(spent)
    parts = {
        "total_duration_us": found.sum(),
        "mean_duration_us": found.mean(),
        "median_duration_us": np.median(found),
        "std_dev_duration_us": found.std(),
        "min_duration_us": found.min(),
        "max_duration_us": found.max(),
    }
    head = f"{{'name': {name!r}, 'stream': {stream}, 'count': {len(found)}, "
    return head + ", ".join(f"'{key}': np.float64({float(number)!r})" for key, number in parts.items()) + "}"


def truncated_summary(lists: Kernels) -> str:
    """The same in short."""
    entries = []
    for name, stream, spent in _columns(lists):
        mean = float(np.round(np.mean(spent), 2))
        short = name if len(name) <= 64 else name[:64] + "..."
        entries.append(f"{{'name': {short!r}, 'stream': {stream}, 'mean_duration_us': np.float64({mean!r})}}")
    return "[" + ", ".join(entries) + "]"
