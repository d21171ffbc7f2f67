"""TraceLens' work models, as far as they differ from ours."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_perfgate.core.analysis.operators import MODELS, category_of
from pytest_perfgate.core.analysis.operators.pointwise import NAME as FUSED
from pytest_perfgate.core.analysis.operators.pointwise import fused_operators
from pytest_perfgate.core.analysis.work import known_dtype, width
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.operators import OperatorCall

UNARY = {
    f"aten::{n}"
    for n in ("copy", "copy_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_", "sigmoid", "rsqrt", "silu",
              "neg", "pow")
}  # fmt: skip

BINARY = {f"aten::{n}" for n in ("div", "div_", "mul", "mul_", "add", "add_", "sigmoid_backward", "threshold_backward")}

REDUCE = {
    f"aten::{n}"
    for n in ("sum", "mean", "max", "min", "norm", "linalg_norm", "std", "var", "logsumexp", "cumsum", "cumprod",
              "amin", "amax")
}  # fmt: skip

_REDUCED = ("mean", "max", "min", "norm")
"""Words in a name that show the kind of a reduction; without one it is a sum."""

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"}

FLASH = {"FlashAttnFunc", "flash_attn::_flash_attn_forward"}
"""Operators of the library whose tensors have the heads after the tokens."""

ATTENTION = {f"aten::_scaled_dot_product_{kind}_attention" for kind in ("flash", "efficient", "cudnn")} | FLASH

_FUSED_COST = {
    **dict.fromkeys(("add", "sub", "mul", "div", "relu", "mean", "sum", "abs", "neg", "ne", "eq", "lt", "gt"), 1),
    **dict.fromkeys(("pow", "sqrt", "rsqrt", "var", "reciprocal"), 2),
    **dict.fromkeys(("exp", "log", "sigmoid", "tanh", "silu"), 4),
    "gelu": 8,
}
"""Operations an element; operators that are not listed count as none."""

_FUSED_BYTES = {"BFloat16": 2, "Half": 2, "Float": 4, "Double": 8, "Byte": 1, "Char": 1, "Int": 4, "Long": 8}
"""Bytes of an element by the C++ name; other names count as unknown."""

_SHEETS = (
    ("GEMM", PRODUCTS),
    ("CONV_fwd", {"aten::convolution"}),
    ("CONV_bwd", {"aten::convolution_backward"}),
    ("SDPA_fwd", ATTENTION),
    ("UnaryElementwise", UNARY),
    ("BinaryElementwise", BINARY),
    ("Reduce_fwd", REDUCE),
)


@value
class PeerWork:
    """Work as the reference counts it."""

    flops: float
    moved: float | None
    """``None`` if the size of an element is unknown."""
    spec: str
    parameters: tuple[tuple[str, Any], ...]


def sheet_of(name: str) -> str:
    """Return the sheet of an operator; "" if the reference has no model."""
    if "_norm" in name and MODELS.get(name) and name not in {"aten::norm", "aten::rms_norm"} and "linalg" not in name:
        return "Normalization"
    if FUSED.match(name):
        return "triton"
    return next((sheet for sheet, names in _SHEETS if name in names), "")


def modelled(name: str) -> bool:
    """Return whether the reference has a model of an operator, even one without figures."""
    return bool(sheet_of(name))


def category(name: str, kernel: str) -> str:
    """Return the reference's category: by its own registry, else by the kernel's name."""
    if name == "aten::_flash_attention_forward" or name in {"aten::index_select", "aten::embedding"}:
        return "other"
    sheet = sheet_of(name)
    if sheet == "CONV_bwd" or name in FLASH:
        return sheet
    if sheet in {"UnaryElementwise", "BinaryElementwise"}:
        return "elementwise"
    if sheet == "Reduce_fwd":
        return "reduce"
    if sheet or name in {"aten::cudnn_convolution", "aten::miopen_convolution"}:
        return category_of(name)
    if not kernel.startswith("void at::native"):
        return "other"
    return next((word for word in ("elementwise", "reduce", "multi_tensor_apply") if word in kernel), "other")


def figures(call: OperatorCall, kernels: tuple[str, ...] = ()) -> PeerWork:
    """Return work and parameters of a call; raise if the arguments do not fit."""
    sheet = sheet_of(call.name)
    _require_arguments(call, sheet)
    maker = {
        "GEMM": _product,
        "CONV_fwd": _convolution,
        "CONV_bwd": _convolution_backward,
        "SDPA_fwd": _attention,
        "UnaryElementwise": _unary,
        "BinaryElementwise": _binary,
        "Reduce_fwd": _reduction,
        "triton": _triton,
    }.get(sheet)
    if sheet == "Normalization":
        flops, moved = norm_figures(call)
        return PeerWork(flops=flops, moved=moved, spec=_spec("vector", call.type(0)), parameters=norm_parameters(call))
    if maker is None:
        raise ValueError("no model")
    return maker(call, kernels)


def _product(call: OperatorCall, kernels: tuple[str, ...]) -> PeerWork:
    work = MODELS[call.name](call)
    first = 1 if call.name in {"aten::addmm", "aten::baddbmm"} else 0
    a, b = call.shape(first), call.shape(first + 1)
    batch = [("B", a[0] if len(a) == 3 else 1)]
    parameters: list[tuple[str, Any]] = [
        *(batch if len(a) == 3 else ()),
        ("M", a[-2]),
        ("N", b[-1]),
        ("K", a[-1]),
        ("bias", first == 1),
        ("stride_A", _stride(call, first)),
        ("stride_B", _stride(call, first + 1)),
        ("dtype_A_B", (call.type(first), call.type(first + 1))),
        *(batch if len(a) != 3 else ()),
    ]
    layout = next((k for k in kernels if "Cijk_A" in k), "")
    if layout:
        parameters.append(("transpose", ("Cijk_Alik" in layout, "_Bjlk" in layout)))
    return _figures(work.flops, work.bytes, _spec("matrix", call.type(first)), parameters)


def _stride(call: OperatorCall, at: int) -> Any:
    """Return an argument's stride, which older versions do not record."""
    return call.strides[at] if at < len(call.strides) else None


def _require_arguments(call: OperatorCall, sheet: str) -> None:
    """Raise if an argument that the reference reads is missing, as in calls of older versions."""
    needed = {
        "UnaryElementwise": call.strides,
        "BinaryElementwise": call.strides and call.types,
        "Normalization": call.strides and (call.concrete or call.name in _WITHOUT_VALUES),
        "SDPA_fwd": call.concrete,
    }
    if not needed.get(sheet, True):
        raise ValueError("not all arguments were recorded")


_WITHOUT_VALUES = {"aten::group_norm", "aten::native_group_norm", "aten::cudnn_batch_norm_backward"}
"""Normalisations of which the reference reads no value."""


def _convolution(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """A bias is never counted: its recorded value is an empty text, which counts as false."""
    from pytest_perfgate.core.analysis.work_layers import conv

    options = _conv_options(call, 3)
    work = conv(call.shape(0), call.shape(1), dtype=call.dtype(0), **options)
    return _figures(work.flops, work.bytes, _spec("matrix", call.type(0)), _conv_parameters(call, 0, options, False))


def _convolution_backward(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """Gradients of the input and of the weight, whatever the mask; an empty list means no bias."""
    out, x, w = call.shape(0), call.shape(1), call.shape(2)
    options = _conv_options(call, 4)
    bias: Any = bool(call.dims[3]) or [] if len(call.dims) > 3 else False
    through, summed = (prod(x), x) if options["transposed"] else (prod(out), out)
    flops = 2 * prod(w[1:]) * through + 2 * prod(w) * prod(summed) // summed[1] + (prod(out) if bias else 0)
    moved = 2 * (prod(out) + prod(w) + prod(x)) * _bytes(call.type(1)) + (prod(out) + out[1] if bias else 0)
    return _figures(flops, moved, _spec("matrix", call.type(1)), _conv_parameters(call, 1, options, bias))


def _conv_options(call: OperatorCall, at: int) -> dict[str, Any]:
    names = ("stride", "padding", "dilation")
    pairs = {name: call.numbers(at + number) for number, name in enumerate(names)}
    return {
        **pairs,
        "transposed": call.flag(at + 3),
        "output_padding": call.numbers(at + 4),
        "groups": call.number(at + 5),
    }


def _conv_parameters(call: OperatorCall, at: int, options: dict[str, Any], bias: object) -> list[tuple[str, Any]]:
    """Return the columns of its sheet, with the input at this position and the weight at the next."""
    return [
        ("convNd", f"conv{len(call.shape(at)) - 2}d"),
        ("input_shape", call.shape(at)),
        ("filter_shape", call.shape(at + 1)),
        ("dtype_input_weight", (call.type(at), call.type(at + 1))),
        ("input_stride", _stride(call, at)),
        ("weight_stride", _stride(call, at + 1)),
        ("bias", bias),
        *((("transposed_conv" if name == "transposed" else name), value) for name, value in options.items()),
    ]


def _attention(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """A causal mask halves the products for equal numbers of queries and keys; otherwise there is no figure."""
    library = call.name in FLASH
    q, k, v = ((s[0], s[2], s[1], s[3]) if library else s for s in map(call.shape, (0, 1, 2)))  # heads first
    dropout, mask = (3, 5) if library else (3, 4) if "flash" in call.name else (5, 6)
    causal = call.flag(mask)
    if causal and q[2] != k[2]:
        raise ValueError("a causal mask over another number of keys")
    batch, heads, queries, size = q
    kv_heads, keys = k[1:3]
    flops = 2.0 * batch * heads * queries * keys * (size + v[3]) / (2 if causal else 1)
    moved = 2 * (prod(q) + prod(k) + prod(v) + batch * heads * queries * v[3])
    strides = [(f"{name}_stride", call.strides[at]) for at, name in enumerate("qkv")] if library else []
    parameters = [
        ("B", batch),
        ("N_Q", queries),
        ("H_Q", heads),
        ("N_KV", keys),
        ("H_KV", kv_heads),
        ("d_h_qk", size),
        ("d_h_v", v[3]),
        *strides,
        ("dropout", float(call.text(dropout) or 0)),
        ("causal", causal),
        ("flash_impl", library or "flash" in call.name),
        ("dtype_A_B", (call.type(0), call.type(1))),
    ]
    return _figures(flops, moved, _spec("matrix", call.type(0)), parameters)


def _unary(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    second = len(call.dims) > 1 and bool(call.dims[1])
    out = call.type(1) if second else None
    count = prod(call.shape(0))
    moved = count * (_bytes(call.type(0)) + _bytes(out or call.type(0)))
    parameters = [
        ("op_shape", call.shape(0)),
        ("dtype_in_out", (call.type(0), out)),
        ("stride_input", _stride(call, 0)),
        ("stride_output", _stride(call, 1) if second else None),
    ]
    return _figures(count, moved, _spec("vector", call.type(0)), parameters)


def _binary(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """A scalar operand counts as four bytes; of two tensors the wider element is written."""
    one, two = (tuple(call.dims[at]) for at in (0, 1))
    count = prod(np.broadcast_shapes(one, two))
    first, second = _bytes(call.type(0)), _bytes(call.type(1))
    written = max(first, second) if one and two else first
    moved = prod(one) * first + prod(two) * second + count * written
    parameters = [
        ("shape_in1", one),
        ("shape_in2", two),
        ("dtype_in1_in2_out", (call.type(0), call.type(1), None)),
        ("stride_input1", _stride(call, 0)),
        ("stride_input2", _stride(call, 1)),
        ("stride_output", None),
    ]
    return _figures(count, moved, _spec("vector", call.type(0)), parameters)


def _reduction(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """The result counts as one element whatever the reduced dimensions; without shapes there is no work."""
    if not call.dims:
        parameters = [("num_input_elems", 0), ("num_output_elems", 0), ("dtype_in_out", (None, None))]
        return PeerWork(flops=0.0, moved=None, spec="", parameters=tuple(parameters))
    count = prod(call.shape(0) if call.types else call.dims[0])
    written = count if "cum" in call.name else 1
    parameters = [
        ("num_input_elems", count),
        ("num_output_elems", written),
        ("dtype_in_out", (call.type(0) or None, None)),
        ("reduce_type", next((word for word in _REDUCED if word in call.name), "sum")),
    ]
    moved = (count + written) * _bytes(call.type(0)) if call.types else None
    return PeerWork(flops=count, moved=moved, spec=_spec("vector", call.type(0)), parameters=tuple(parameters))


def _triton(call: OperatorCall, _: tuple[str, ...]) -> PeerWork:
    """Costs by fused name over the launch grid; pointwise kernels write their first tensor once more."""
    tensors = call.tensors()
    numbers = [call.number(at) for at in range(len(call.types)) if not call.tensor(at)]
    reduces = call.name.startswith(("triton_red_", "triton_per_")) and len(numbers) > 1
    grid = numbers[-2:] if reduces else [numbers[-1], 1]
    names = fused_operators(call.name)
    known = {at: _FUSED_BYTES.get(call.type(at).removeprefix("c10::"), 0) for at in tensors}
    moved = sum(prod(call.shape(at)) * known[at] for at in tensors)
    moved += known[tensors[0]] * grid[0] if "_poi_" in call.name else 0
    first = next((call.type(at).removeprefix("c10::").lower() for at in tensors if known[at]), "")
    listed = sorted({*names, *(("_unsafe_view",) if "_unsafe_view" in call.name else ())})
    parameters = [
        ("fused_ops", ", ".join(f"aten.{name}" for name in listed)),
        ("xnumel", grid[0]),
        ("rnumel", grid[1]),
    ]
    flops = prod(grid) * sum(_FUSED_COST.get(name, 0) for name in names)
    return _figures(flops, moved, f"vector_{first}" if first else "", parameters)


def _figures(flops: float | None, moved: float | None, spec: str, parameters: list[tuple[str, Any]]) -> PeerWork:
    return PeerWork(flops=flops or 0.0, moved=moved or 0.0, spec=spec, parameters=tuple(parameters))


def _bytes(dtype: str) -> float:
    return width(dtype) if known_dtype(dtype) else 4.0


def _spec(unit: str, dtype: str) -> str:
    plain = known_dtype(dtype) or ""
    return f"{unit}_{plain}" if plain.startswith(("fp", "bf")) else ""


def norm_figures(call: OperatorCall) -> tuple[float, float]:
    """Return operations and bytes."""
    count, channels, size = prod(call.shape(0)), _channels(call), call.size(0) / max(prod(call.shape(0)), 1)
    backward, squared = call.name.endswith("_backward"), "rms" in call.name
    if squared:
        if backward:
            flags = call.flags(5)
            second = len(flags) > 1 and flags[1]
            return count * (10 if second else 8), size * (3 * count + 2 * channels)
        rows = count // channels
        return rows * (2 * channels + 2) + 2 * count, size * (2 * count + channels)
    if not backward:
        return 6 * channels + 5 * count, size * (2 * count + 6 * channels)
    if "miopen" in call.name or "cudnn" in call.name:
        return 4 * count + 3 * channels, size * (2 * count + channels)
    vectors = 1 if "layer" in call.name and not _has_bias(call) else 4
    return 9 * count, size * (3 * count + vectors * channels)


def norm_parameters(call: OperatorCall) -> tuple[tuple[str, Any], ...]:
    """Return the columns of its sheet."""
    backward, squared = call.name.endswith("_backward"), "rms" in call.name
    library = "miopen" in call.name or "cudnn" in call.name
    layered = "layer" in call.name and backward
    parameters: list[tuple[str, Any]] = [
        ("op_shape", call.shape(0)),
        ("dtype_in_out", (call.type(0), None)),
        ("stride_input", _stride(call, 0)),
        ("stride_output", None),
        ("num_channels", float(_channels(call)) if "group" in call.name and backward else _channels(call)),
        ("has_bias", not squared and (not layered or _has_bias(call))),
        ("is_affine", _has_bias(call) if layered else True),
        ("is_training", not squared and not (backward and library)),
    ]
    if backward:
        mask = {"native_layer": call.flags(7), "native_group": call.flags(9), "rms": call.flags(5)}
        outputs = next((list(flags) for part, flags in mask.items() if part in call.name), [True])
        parameters.append(("output_mask", outputs))
    return tuple(parameters)


def _channels(call: OperatorCall) -> int:
    shape = call.shape(0)
    backward = call.name.endswith("_backward")
    if "layer" in call.name or "rms" in call.name:
        return prod(call.numbers(2 if backward else 1))
    if "group" in call.name and backward:
        return call.shape(2)[1]
    return shape[1]


def _has_bias(call: OperatorCall) -> bool:
    return call.tensor(6) or not call.name.endswith("_backward")
