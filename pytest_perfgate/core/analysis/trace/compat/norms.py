"""Normalisations as the reference counts them: affine and training taken as true where a text says otherwise."""

from __future__ import annotations

from math import prod
from typing import Any

from pytest_perfgate.core.analysis.operators.call import Call


def norm_figures(call: Call) -> tuple[float, float]:
    """Operations and bytes."""
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


def norm_parameters(call: Call) -> tuple[tuple[str, Any], ...]:
    """The columns of its sheet."""
    backward, squared = call.name.endswith("_backward"), "rms" in call.name
    library = "miopen" in call.name or "cudnn" in call.name
    layered = "layer" in call.name and backward
    parameters: list[tuple[str, Any]] = [
        ("op_shape", call.shape(0)),
        ("dtype_in_out", (call.type(0), None)),
        ("stride_input", call.strides[0]),
        ("stride_output", None),
        ("num_channels", float(_channels(call)) if "group" in call.name and backward else _channels(call)),
        ("has_bias", False if squared else _has_bias(call) if layered else True),
        ("is_affine", _has_bias(call) if layered else True),
        ("is_training", not squared and not (backward and library)),
    ]
    if backward:
        mask = {"native_layer": call.flags(7), "native_group": call.flags(9), "rms": call.flags(5)}
        found = next((list(flags) for part, flags in mask.items() if part in call.name), [True])
        parameters.append(("output_mask", found))
    return tuple(parameters)


def _channels(call: Call) -> int:
    shape = call.shape(0)
    backward = call.name.endswith("_backward")
    if "layer" in call.name or "rms" in call.name:
        return prod(call.numbers(2 if backward else 1))
    if "group" in call.name and backward:
        return call.shape(2)[1]
    return shape[1]


def _has_bias(call: Call) -> bool:
    return call.tensor(6) or not call.name.endswith("_backward")
