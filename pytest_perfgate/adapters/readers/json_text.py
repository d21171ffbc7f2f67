"""JSON files of other tools: read whole, with errors that name the file and the place in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.model.errors import PerfgateError


def read_json(path: Path, tool: str) -> dict[str, Any]:
    """The object that a file holds."""
    import msgspec

    try:
        data = path.read_bytes()
    except OSError as fault:
        raise PerfgateError("artifact-unreadable", f"it cannot be opened: {fault}", place=str(path)) from fault
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        body = _lenient(data, path, tool, fault)
    if not isinstance(body, dict):
        raise PerfgateError("artifact-unreadable", f"{tool} writes an object, not this", place=str(path))
    return body


def _lenient(data: bytes, path: Path, tool: str, fault: Exception) -> Any:
    """Python's own JSON takes NaN and a byte-order mark, which some tools write."""
    import json

    try:
        return json.loads(data.decode("utf-8-sig"))
    except ValueError:
        what = f"it is no JSON of {tool}: {fault}"
        raise PerfgateError("artifact-unreadable", what, place=str(path)) from fault


def number(found: Any) -> float | None:
    """A finite number, also one written as text; anything else is none."""
    try:
        read = float(found) if not isinstance(found, bool) and found is not None else math.nan
    except (TypeError, ValueError):
        return None
    return read if math.isfinite(read) else None


def nanoseconds(found: Any, unit: float = 1e9) -> float | None:
    """A time in its unit; none that is below zero is one."""
    read = number(found)
    return read * unit if read is not None and read >= 0 else None


def objects(found: Any, place: str) -> list[Any]:
    """A list of objects; nothing at all is an empty one."""
    listed = [] if found is None else found
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise PerfgateError("artifact-unreadable", "a list of objects belongs here", place=place)
    return listed


def mapping(found: Any) -> Mapping[str, Any]:
    """An object, or an empty one where something else stands: of what a figure does not rest on."""
    return found if isinstance(found, Mapping) else {}


def member(node: Any, name: str, kind: type, place: str) -> Any:
    """A member that must be there and of this type."""
    found = node.get(name) if isinstance(node, Mapping) else None
    if not isinstance(found, kind):
        raise PerfgateError("artifact-unreadable", f"'{name}' is missing or of another type", place=place)
    return found
