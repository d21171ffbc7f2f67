"""An operation as data that a stand-alone runner can repeat: nothing in it is ever evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.operators.lists import element_types
from pytest_perfgate.core.analysis.operators.packed import packed_ends
from pytest_perfgate.core.analysis.ops.dtypes import known_dtype
from pytest_perfgate.core.analysis.trace.operators import OperatorRow

SCHEMA = 1
_AS_WIDE = {"1 bytes": "uint8", "2 bytes": "bf16", "4 bytes": "fp32", "8 bytes": "int64", "16 bytes": "complex128"}
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
    """Arguments by position, each with its kind; contents only where an operator cannot run on random ones."""
    made = [_input(call, at) for at in range(len(call.types))]
    for at, values in packed_ends(call).items():
        made[at]["values"] = list(values)
    return made


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
        return _list(call, at)
    found = parse_scalar(call.text(at))
    return {"kind": "none"} if found is None else {"kind": "scalar", "value": found}


def _list(call: Call, at: int) -> dict[str, Any]:
    """A list of tensors; its element type is the kernel's, or one as wide where only the width is known."""
    sorts = element_types(call.kernel)
    before = sum(call.type(earlier) == "TensorList" for earlier in range(at))
    sort = sorts[min(before, len(sorts) - 1)] if sorts else ""
    return {
        "kind": "tensors",
        "dtype": _AS_WIDE.get(sort) or known_dtype(sort),
        "shapes": [list(shape) for shape in call.dims[at]],
        "strides": [list(steps) for steps in call.strides[at]] if at < len(call.strides) else [],
    }


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
