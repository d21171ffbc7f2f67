"""What a call has to compute and move, by family of operators: ``from pytest_perfgate import work``.

Free of numpy, because tests name their work while pytest collects them.
"""

from __future__ import annotations

from pytest_perfgate.core.analysis.ops.attention import attention, attention_backward, kept_area
from pytest_perfgate.core.analysis.ops.collective import bus_factor, collective
from pytest_perfgate.core.analysis.ops.convolution import conv, conv_backward, convolution_shape
from pytest_perfgate.core.analysis.ops.custom import custom, items
from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.elementwise import (
    copy,
    cross_entropy,
    elementwise,
    embedding,
    reduction,
    rope,
    softmax,
)
from pytest_perfgate.core.analysis.ops.experts import fused_moe, grouped_gemm
from pytest_perfgate.core.analysis.ops.matrix import bmm, gemm, gemm_backward, mixed_gemm
from pytest_perfgate.core.analysis.ops.normalization import (
    batch_norm,
    group_norm,
    layer_norm,
    norm,
    norm_backward,
    rms_norm,
)
from pytest_perfgate.core.analysis.ops.packed import packed_attention
from pytest_perfgate.model.work import Work

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
