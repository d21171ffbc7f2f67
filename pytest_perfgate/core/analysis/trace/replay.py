"""An operation as data that a stand-alone runner can repeat: nothing in it is ever evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops.dtypes import known_dtype
from pytest_perfgate.core.analysis.trace.operators import OperatorRow

SCHEMA = 1
_INTEGER = re.compile(r"^-?\d+$")
_FLOAT = re.compile(r"^-?(?:\d+\.\d*|\.\d+|\d+)(?:e[+-]?\d+)?$|^-?(?:inf|nan)$")
_LIST = re.compile(r"^\[[^\[\]]*\]$")


def replay_ir(rows: Sequence[OperatorRow], source: str) -> dict[str, Any]:
    """The intermediate form of several operations: names, shapes, dtypes, strides, scalars."""
    return {"schema": SCHEMA, "source": source, "operations": [_operation(row) for row in rows]}


def render_ir(form: dict[str, Any]) -> str:
    """The form as JSON text."""
    return json.dumps(form, indent=2, sort_keys=True) + "\n"


def _operation(row: OperatorRow) -> dict[str, Any]:
    return {
        "name": row.call.name,
        "inputs": inputs(row.call),
        "calls": row.count,
        "mean_us": row.mean / 1e3,
        "kernel": row.kernel,
        "flops": row.work.flops if row.work else None,
        "bytes": row.work.bytes if row.work else None,
    }


def inputs(call: Call) -> list[dict[str, Any]]:
    """Arguments by position, each with its kind."""
    return [_input(call, at) for at in range(len(call.types))]


def _input(call: Call, at: int) -> dict[str, Any]:
    if call.tensor(at):
        strides = call.strides[at] if at < len(call.strides) else ()
        return {
            "kind": "tensor",
            "dtype": known_dtype(call.type(at)),
            "recorded": call.type(at),
            "shape": list(call.shape(at)),
            "strides": list(strides),
        }
    if call.type(at) == "TensorList":
        shapes = [list(shape) for shape in call.dims[at]] if at < len(call.dims) else []
        return {"kind": "tensors", "dtype": None, "shapes": shapes}
    found = parse_scalar(call.text(at))
    return {"kind": "none"} if found is None else {"kind": "scalar", "value": found}


def parse_scalar(text: str) -> Any:
    """A recorded scalar or list of scalars; text that is neither stays text, an empty one is absent."""
    text = text.strip()
    if not text or text == "None":
        return None
    if text in {"True", "False"}:
        return text == "True"
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _LIST.match(text):
        return [parse_scalar(part) for part in text[1:-1].split(",") if part.strip()]
    return text
