"""Convolutions as the dispatcher and the libraries behind it record them."""

from __future__ import annotations

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work, conv, conv_backward


def convolution(call: Call) -> Work:
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        stride=call.numbers(3) or 1,
        padding=call.numbers(4) or 0,
        dilation=call.numbers(5) or 1,
        transposed=call.flag(6),
        output_padding=call.numbers(7) or 0,
        groups=call.number(8),
        bias=call.tensor(2),
    )


def cudnn(call: Call) -> Work:
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        padding=call.numbers(2) or 0,
        stride=call.numbers(3) or 1,
        dilation=call.numbers(4) or 1,
        groups=call.number(5),
    )


def miopen(call: Call) -> Work:
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        padding=call.numbers(3) or 0,
        stride=call.numbers(4) or 1,
        dilation=call.numbers(5) or 1,
        groups=call.number(6),
        bias=call.tensor(2),
    )


def backward(call: Call) -> Work:
    mask = call.flags(10)
    if len(mask) != 3:
        raise ValueError("the output mask was not recorded")
    return conv_backward(
        call.shape(1),
        call.shape(2),
        dtype=call.dtype(1),
        mask=(mask[0], mask[1], mask[2]),
        stride=call.numbers(4) or 1,
        padding=call.numbers(5) or 0,
        dilation=call.numbers(6) or 1,
        transposed=call.flag(7),
        output_padding=call.numbers(8) or 0,
        groups=call.number(9),
    )


FORWARD = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::cudnn_convolution": cudnn,
    "aten::miopen_convolution": miopen,
}
BACKWARD = {"aten::convolution_backward": backward}
