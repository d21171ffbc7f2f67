"""Normalisations: layer, batch, group, instance and root mean square, forward and backward."""

from __future__ import annotations

from pytest_perfgate.core.analysis.ops.dtypes import width
from pytest_perfgate.core.analysis.ops.elementwise import Shape, elements, streamed
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.work import Work


@exact
def norm(shape: Shape, channels: int, *, dtype: str, affine: bool = True, training: bool = False) -> Work:
    """Layer, batch, group or instance normalisation over ``channels`` statistics.

    Two operations an element normalise and, in training, three more gather the statistics; six a channel
    prepare scale and shift. Statistics and affine parameters are moved only where present.
    """
    count, size = elements(shape), width(dtype)
    flops = 6 * channels + 2 * count + (3 * count if training else 0)
    moved = 2 * count * size + 2 * channels * size * (training + affine)
    return streamed(flops, moved, dtype, "normalization")


layer_norm = batch_norm = group_norm = norm


@exact
def rms_norm(shape: Shape, channels: int, *, dtype: str, affine: bool = True) -> Work:
    """Root-mean-square normalisation of rows of ``channels`` elements."""
    count, size = elements(shape), width(dtype)
    rows = count // channels
    flops = rows * (2 * channels + 2) + count * (2 if affine else 1)
    moved = 2 * count * size + (channels * size if affine else 0)
    return streamed(flops, moved, dtype, "normalization")


@exact
def norm_backward(
    shape: Shape,
    channels: int,
    *,
    dtype: str,
    mask: tuple[bool, bool, bool] = (True, True, True),
    affine: bool = True,
) -> Work:
    """The gradients of input, weight and bias that ``mask`` asks for."""
    count, size = elements(shape), width(dtype)
    per_channel = count / channels
    flops = channels * (
        4 * per_channel + sum((5 * per_channel * mask[0], 2 * per_channel * mask[1], per_channel * mask[2]))
    )
    moved = count * size * (2 + mask[0]) + channels * size * (2 + affine + mask[1] + mask[2])
    return streamed(flops, moved, dtype, "normalization backward")
