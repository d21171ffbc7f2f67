"""Writes docs/record.schema.json, the JSON schema of a record, from the values of the model; a test holds it true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pytest_perfgate.adapters.stores.record_files import SHARED
from pytest_perfgate.model.verdict import RunReport

PAGE = Path(__file__).resolve().parents[1] / "docs" / "record.schema.json"
_FIGURE = {
    "type": "string",
    "description": "an accepted figure as its line has it: registers(kernel=gemm): 128",
}
_PLACE = {"type": "integer", "minimum": 0}
_SEVERAL = {"type": "array", "items": _PLACE}
_REFERENCE = {"type": "object", "properties": {"shared": {"anyOf": [_PLACE, _SEVERAL]}}, "required": ["shared"]}


def record_schema() -> dict[str, Any]:
    """Return the schema of a record file, for programs that read it."""
    (run,), components = msgspec.json.schema_components([RunReport], ref_template="#/$defs/{name}")
    names = {kind.__name__ for kind in SHARED}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The record of a run of pytest-perfgate",
        "description": (
            "Times are nanoseconds, fractions 0-1. A field that is missing has its default. "
            '{"shared": N} stands for entry N of the list "shared", {"shared": [N, M]} for a list of such entries; '
            '{"float": "nan"} for what JSON cannot write. '
            'Samples are left out of "run": their counts '
            "(durations, 0, clocks of each process of each case) say how the doubles in the sample file are cut."
        ),
        "type": "object",
        "required": ["perfgate", "run", "shared", "samples"],
        "properties": {
            "perfgate": {"const": 1},
            "run": run,
            "shared": {"type": "array", "items": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in sorted(names)]}},
            "samples": {
                "type": "object",
                "properties": {
                    "file": {"type": "string"},
                    "data": {"type": "string", "contentEncoding": "base64"},
                    "counts": {"type": "array"},
                },
                "required": ["counts"],
            },
        },
        "$defs": _referring({**components, "Reference": _REFERENCE, "Figure": _FIGURE}, names),
    }


def _referring(node: Any, names: set[str]) -> Any:
    """Wherever a shared value may stand, a reference may stand too; what has a default may be missing."""
    if isinstance(node, list):
        return [_referring(child, names) for child in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref", "").rpartition("/")[2] in names:
        return {"anyOf": [node, {"$ref": "#/$defs/Reference"}]}
    items = node.get("items")
    if isinstance(items, dict) and items.get("$ref", "").rpartition("/")[2] in names:
        return {"anyOf": [{**node, "items": _referring(items, names)}, {"$ref": "#/$defs/Reference"}]}
    made = {key: _referring(child, names) for key, child in node.items()}
    if "required" in made and "samples" not in made["required"]:
        optional = {"durations"}
        made["required"] = [name for name in made["required"] if name not in optional]
    return made


if __name__ == "__main__":
    PAGE.write_text(json.dumps(record_schema(), indent=1) + "\n", encoding="utf-8")
