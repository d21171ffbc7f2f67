"""The work of a call, what it computes and moves, by family of operators: ``from pytest_perfgate import work``.

It does not need numpy, because tests state their work while pytest collects them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.work import (
    bmm,
    bus_factor,
    collective,
    custom,
    dtype_name,
    gemm,
    gemm_backward,
    items,
    mixed_gemm,
    width,
)
from pytest_perfgate.core.analysis.work_layers import (
    attention,
    attention_backward,
    batch_norm,
    conv,
    conv_backward,
    convolution_shape,
    copy,
    cross_entropy,
    elementwise,
    embedding,
    fused_moe,
    group_norm,
    grouped_gemm,
    kept_area,
    layer_norm,
    norm,
    norm_backward,
    packed_attention,
    reduction,
    rms_norm,
    rope,
    softmax,
)
from pytest_perfgate.model.values import Work

__all__ = [
    "Work",
    "attention",
    "attention_backward",
    "batch_norm",
    "bmm",
    "bus_factor",
    "collective",
    "conv",
    "conv_backward",
    "convolution_shape",
    "copy",
    "cross_entropy",
    "custom",
    "dtype_name",
    "elementwise",
    "embedding",
    "fused_moe",
    "gemm",
    "gemm_backward",
    "group_norm",
    "grouped_gemm",
    "items",
    "kept_area",
    "layer_norm",
    "mixed_gemm",
    "norm",
    "norm_backward",
    "packed_attention",
    "reduction",
    "rms_norm",
    "rope",
    "softmax",
    "width",
]

_OTHER_NAMES = {
    "add": "elementwise",
    "all_reduce": "collective",
    "bytes": "custom(bytes=...)",
    "dot": "gemm",
    "flops": "custom(flops=...)",
    "linear": "gemm",
    "matmul": "gemm",
    "memcpy": "copy",
    "mm": "gemm",
    "mul": "elementwise",
    "scaled_dot_product_attention": "attention",
    "sdpa": "attention",
    "sum": "reduction",
}
"""Names that other libraries use."""

if not TYPE_CHECKING:  # a type checker reports an unknown name itself

    def __getattr__(name: str) -> object:
        from pytest_perfgate.model.errors import proposal

        other = _OTHER_NAMES.get(name)
        fix = f"did you mean '{other}'?" if other else proposal(name, __all__, all_of="it has")
        raise AttributeError(f"work has no '{name}'; {fix}")
