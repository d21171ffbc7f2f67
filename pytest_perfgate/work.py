"""What a call has to compute and move, by family of operators: ``from pytest_perfgate import work``.

Free of numpy, because tests name their work while pytest collects them.
"""

from __future__ import annotations

from pytest_perfgate.core.analysis.work.attention import attention, attention_backward, kept_area, packed_attention
from pytest_perfgate.core.analysis.work.layers import (
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
    layer_norm,
    norm,
    norm_backward,
    reduction,
    rms_norm,
    rope,
    softmax,
)
from pytest_perfgate.core.analysis.work.products import (
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
