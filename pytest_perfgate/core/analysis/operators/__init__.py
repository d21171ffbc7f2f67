"""The work of an operator as a trace records it: a table by name, one file a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_perfgate.core.analysis.operators import attention, layers, pointwise
from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.model.values import Work

Model = Callable[[Call], Work]

_FAMILIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("GEMM", layers.MODELS),
    ("CONV_fwd", layers.FORWARD),
    ("CONV_bwd", layers.BACKWARD),
    ("SDPA_fwd", attention.FORWARD),
    ("SDPA_bwd", attention.BACKWARD),
    ("NORM_fwd", layers.NORM_FORWARD),
    ("NORM_bwd", layers.NORM_BACKWARD),
    ("elementwise", pointwise.ELEMENTWISE),
    ("reduce", pointwise.REDUCTIONS),
    ("softmax", pointwise.SOFTMAX),
    ("gather", pointwise.GATHERS),
    ("loss", pointwise.LOSSES),
    ("rope", pointwise.ROTATIONS),
    ("MoE", layers.EXPERTS),
    ("concatenation", pointwise.JOINED),
)

MODELS: Mapping[str, Model] = {name: model for _, family in _FAMILIES for name, model in family.items()}

CATEGORIES: Mapping[str, str] = {name: category for category, family in _FAMILIES for name in family}

_MESSAGES = ("c10d::", "nccl:", "record_param_comms", "_c10d_functional::")


def model_of(name: str, extra: Mapping[str, Callable[..., Work]] | None = None) -> Model | None:
    """The model of an operator; a user's own comes first."""
    if extra and name in extra:
        return extra[name]
    if name in MODELS:
        return MODELS[name]
    if pointwise.NAME.match(name):
        return pointwise.triton
    return pointwise.each if pointwise.known(name) else None


def category_of(name: str, kernel: str = "") -> str:
    """The family of an operator, by its name or by the name of a kernel it launched."""
    if name in CATEGORIES:
        return CATEGORIES[name]
    if name.startswith("triton"):
        return "triton"
    if "attention" in name or "flash_attn" in name.lower():
        return "SDPA_bwd" if "backward" in name else "SDPA_fwd"
    for word, category in (
        ("elementwise", "elementwise"),
        ("reduce", "reduce"),
        ("multi_tensor", "multi_tensor_apply"),
    ):
        if kernel.startswith("void at::native") and word in kernel:
            return category
    return "other"


def work_of(call: Call, extra: Mapping[str, Callable[..., Work]] | None = None) -> tuple[Work | None, str]:
    """The work of a recorded call, or ``None`` and the reason; never zero for want of a model."""
    model = model_of(call.name, extra)
    if model is None:
        return None, _unmodelled(call.name)
    if not call.recorded and not (extra and call.name in extra):
        return None, "the trace has no shapes: profile with record_shapes=True"
    try:
        return model(call), ""
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError) as odd:
        return None, f"arguments do not fit the model: {odd}"


def _unmodelled(name: str) -> str:
    if name.startswith(_MESSAGES):
        return "it sends messages and computes nothing: --view ranks has its bytes and bandwidth"
    return "no model for this operator"
