"""Recorded calls of operators, parsed without evaluating anything, and their work by operator name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from pytest_perfgate.core.analysis.operators import layers, pointwise
from pytest_perfgate.core.analysis.work import known_dtype, width
from pytest_perfgate.model.values import Work, regex, value

_NUMBER = regex(r"-?\d+")


@value
class OperatorCall:
    """Arguments by position. An absent tensor is ``[]`` with an empty type."""

    name: str
    dims: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    concrete: tuple[Any, ...] = ()
    kernel: str = ""
    """The name of its longest kernel, which shows the element type of a list of tensors."""

    @property
    def recorded(self) -> bool:
        return bool(self.types and self.dims)

    def type(self, at: int) -> str:
        return str(self.types[at]) if at < len(self.types) else ""

    def tensor(self, at: int) -> bool:
        """Return whether a tensor was given there: it has an element type, whatever its shape."""
        return known_dtype(self.type(at)) is not None

    def shape(self, at: int) -> tuple[int, ...]:
        """Return the shape of a tensor; raise if it is absent."""
        if not self.tensor(at):
            raise ValueError(f"argument {at} of {self.name} is not a tensor")
        shape = tuple(self.dims[at])
        if any(type(side) is not int or not 0 <= side < 1 << 63 for side in shape):
            raise ValueError(f"argument {at} has the shape {list(shape)}")
        return shape

    def dtype(self, at: int = 0) -> str:
        dtype = known_dtype(self.type(at))
        if dtype is None:
            raise ValueError(f"argument {at} of {self.name} is not a tensor")
        return dtype

    def size(self, at: int) -> float:
        """Return the bytes of the tensor there; 0 if it is absent."""
        return prod(self.shape(at)) * width(self.type(at)) if self.tensor(at) else 0.0

    def text(self, at: int) -> str:
        return str(self.concrete[at]) if at < len(self.concrete) else ""

    def numbers(self, at: int) -> tuple[int, ...]:
        """Return a recorded list of integers of 64 bits, like PyTorch's."""
        numbers = tuple(int(n) for n in _NUMBER.findall(self.text(at)))
        if any(abs(number) >= 1 << 63 for number in numbers):
            raise ValueError(f"argument {at} of {self.name} has a number beyond 64 bits")
        return numbers

    def number(self, at: int) -> int:
        numbers = self.numbers(at)
        if not numbers:
            raise ValueError(f"argument {at} of {self.name} was not recorded")
        return numbers[0]

    def flag(self, at: int) -> bool:
        """Return a recorded boolean; ``False`` is recorded as text."""
        return self.text(at) in {"True", "true", "1"}

    def flags(self, at: int) -> tuple[bool, ...]:
        return tuple(word == "True" for word in re.findall(r"True|False", self.text(at)))

    def tensors(self) -> tuple[int, ...]:
        """Return the positions of tensors with recorded shapes."""
        return tuple(at for at in range(min(len(self.types), len(self.dims))) if self.tensor(at))

    def shapes(self, most: int | None = None) -> str:
        """Return the shapes of so many tensors as text; a list of tensors in brackets, shortened if long."""
        texts = [
            _shape(self.dims[at]) if self.tensor(at) else _listed_shapes(self.dims[at])
            for at in range(min(len(self.types), len(self.dims)))
            if self.tensor(at) or (self.type(at) == "TensorList" and self.dims[at])
        ]
        return " ".join(texts[:most])


def _shape(sizes: Sequence[object]) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def _listed_shapes(shapes: Sequence[object]) -> str:
    texts = [_shape(sizes) for sizes in shapes[:3] if isinstance(sizes, tuple)]
    more = [f"and {len(shapes) - 3} more"] if len(shapes) > 3 else []
    return f"[{', '.join((*texts, *more))}]"


def parse_call(name: str, arguments: Sequence[bytes]) -> OperatorCall:
    """Return the call of this recorded JSON; unreadable arguments count as not recorded."""
    dims, types, strides, concrete = (_parsed(text) for text in arguments)
    shaped = tuple(sizes if isinstance(sizes, tuple) else () for sizes in dims)
    return OperatorCall(
        name=name,
        dims=shaped + ((),) * (len(types) - len(shaped)) if shaped else (),
        types=tuple(map(str, types)),
        strides=tuple(steps if isinstance(steps, tuple) else () for steps in strides),
        concrete=concrete,
    )


def _parsed(text: bytes) -> tuple[Any, ...]:
    try:
        value = json.loads(text) if text else []
        return _frozen(value) if isinstance(value, list) else ()
    except (ValueError, RecursionError):
        return ()


def _frozen(parts: list[Any]) -> tuple[Any, ...]:
    return tuple(_frozen(item) if isinstance(item, list) else item for item in parts)


Model = Callable[[OperatorCall], Work]

_FAMILIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("GEMM", layers.MODELS),
    ("CONV_fwd", layers.CONVOLUTIONS),
    ("CONV_bwd", layers.CONVOLUTIONS_BACKWARD),
    ("SDPA_fwd", layers.ATTENTION),
    ("SDPA_bwd", layers.ATTENTION_BACKWARD),
    ("NORM_fwd", layers.NORMS),
    ("NORM_bwd", layers.NORMS_BACKWARD),
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


def model_of(name: str, extra: Mapping[str, Callable[..., Work]] | None) -> Model | None:
    """Return the model of an operator; a user's own takes precedence."""
    if extra and name in extra:
        return extra[name]
    if name in MODELS:
        return MODELS[name]
    if pointwise.NAME.match(name):
        return pointwise.triton
    return pointwise.each if pointwise.is_list_operator(name) else None


def category_of(name: str, kernel: str = "") -> str:
    """Return the family of an operator, by its name or by the name of a kernel it launched."""
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


def work_of(call: OperatorCall, extra: Mapping[str, Callable[..., Work]] | None = None) -> tuple[Work | None, str]:
    """Return the work of a recorded call, or ``None`` and the reason; never zero without a model."""
    model, of_user = model_of(call.name, extra), bool(extra and call.name in extra)
    if model is None:
        return None, _unmodelled(call.name)
    if not call.recorded and not of_user:
        return None, "the trace has no shapes: profile with record_shapes=True"
    try:
        work: object = model(call)
    except (ValueError, IndexError, TypeError, KeyError, ArithmeticError) as odd:
        return None, f"arguments do not fit the model: {odd}"
    except Exception as fault:
        if not of_user:
            raise
        return None, f"its model failed: {fault!r:.100}"
    if not isinstance(work, Work):
        return None, f"its model returned {work!r:.60}, which is no work"
    return work, ""


def _unmodelled(name: str) -> str:
    if name.startswith(_MESSAGES):
        return "it sends messages and computes nothing: --view ranks has its bytes and bandwidth"
    return "no model for this operator"


_FUSION = {
    "SDPA_fwd": "use the fused attention of the newest framework, or a shape its kernels prefer",
    "GEMM": "merge products that share an input into one, or raise the batch",
    "CONV_fwd": "channels-last layout, or a convolution folded with its neighbours",
    "NORM_fwd": "torch.compile, which folds a normalisation into its neighbours",
    "elementwise": "torch.compile, which fuses chains of elementwise operators",
}


def fusion_of(category: str, name: str) -> str:
    """Return the fusion that is possible by changing the model."""
    if name.startswith("triton_"):
        return "none: torch.compile made this kernel of several operators"
    if "softmax" in name:
        return "part of attention: torch.nn.functional.scaled_dot_product_attention; else torch.compile"
    return _FUSION.get(category, "torch.compile, which fuses it with its neighbours")
