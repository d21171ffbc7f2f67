"""Normalisations: each variant keeps its channels, affine tensors and mask in places of its own."""

from __future__ import annotations

from math import prod

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work, norm, norm_backward, rms_norm


def batch(call: Call, training: int = 5) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(1), training=call.flag(training))


def layer(call: Call) -> Work:
    """Statistics are always taken: a row is normalised by its own."""
    shape, inner = call.shape(0), prod(call.numbers(1))
    return norm(shape, inner, dtype=call.dtype(0), affine=call.tensor(2), training=True)


def group(call: Call) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(2), training=True)


def native_group(call: Call) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(1), training=True)


def instance(call: Call) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(1), training=call.flag(5))


def root_mean_square(call: Call) -> Work:
    return rms_norm(call.shape(0), prod(call.numbers(1)), dtype=call.dtype(0), affine=call.tensor(2))


def batch_backward(call: Call) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), mask=_mask(call, 9), affine=call.tensor(2))


def miopen_backward(call: Call) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(2))


def layer_backward(call: Call) -> Work:
    shape, inner = call.shape(0), prod(call.numbers(2))
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=_mask(call, 7), affine=call.tensor(5))


def group_backward(call: Call) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), mask=_mask(call, 9), affine=call.tensor(4))


def rms_backward(call: Call) -> Work:
    shape, inner = call.shape(0), prod(call.numbers(2))
    mask = call.flags(5)
    whole = (mask[0], mask[1], False) if len(mask) == 2 else (True, True, False)
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=whole, affine=call.tensor(4))


def _mask(call: Call, at: int) -> tuple[bool, bool, bool]:
    found = call.flags(at)
    if len(found) != 3:
        raise ValueError("the output mask was not recorded")
    return found[0], found[1], found[2]


FORWARD = {
    **dict.fromkeys(("aten::batch_norm", "aten::native_batch_norm", "aten::cudnn_batch_norm"), batch),
    "aten::miopen_batch_norm": batch,
    "aten::layer_norm": layer,
    "aten::native_layer_norm": layer,
    "aten::group_norm": group,
    "aten::native_group_norm": native_group,
    "aten::instance_norm": instance,
    "aten::_fused_rms_norm": root_mean_square,
    "aten::rms_norm": root_mean_square,
}
BACKWARD = {
    "aten::native_batch_norm_backward": batch_backward,
    "aten::miopen_batch_norm_backward": miopen_backward,
    "aten::cudnn_batch_norm_backward": miopen_backward,
    "aten::native_layer_norm_backward": layer_backward,
    "aten::native_group_norm_backward": group_backward,
    "aten::_fused_rms_norm_backward": rms_backward,
}
