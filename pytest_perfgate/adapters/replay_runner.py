"""Repeats recorded operations with PyTorch alone; part of a replay package, independent of perfgate."""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8_e4m3fn",
    "fp4": "float4_e2m1fn_x2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=Path, default=Path(__file__).with_name("operations.json"))
    parser.add_argument("--device", default="")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat is 1 or more")
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    form = json.loads(options.operations.read_text(encoding="utf-8"))
    results = [replay(operation, device, options.repeat) for operation in form["operations"]]
    print(json.dumps(results, indent=2) if options.json else "\n".join(map(line, results)))


def line(result: dict[str, Any]) -> str:
    if "error" in result:
        return f"{result['name']}: {result['error']}"
    shapes = " ".join("x".join(map(str, t["shape"])) or "scalar" for t in result["inputs"])
    return f"{result['ran_as']}  {shapes}  {result['median_us']:.1f} us on {result['device']}"


def replay(operation: dict[str, Any], device: str, repeat: int) -> dict[str, Any]:
    """Run one operation; return its arguments, its results and the median time, or why it does not run here."""
    result: dict[str, Any] = {"name": operation["name"], "device": device}
    try:
        values = [replay_argument(argument, device) for argument in operation["inputs"]]
        every = [part for value in values for part in (value if isinstance(value, list) else [value])]
        result["inputs"] = [described(value) for value in every if hasattr(value, "stride")]
        ran_as, call = bound(operation["name"], values, device)
        outcome = call()
        times = [timed(call, device) for _ in range(repeat)]
    except Exception as broken:  # noqa: BLE001 - whatever an operation raises, the others run
        return {**result, "error": f"{type(broken).__name__}: {str(broken).partition(chr(10))[0]}"}
    outcomes = outcome if isinstance(outcome, (tuple, list)) else (outcome,)
    outputs = [described(value) for value in outcomes if hasattr(value, "stride") and value.numel()]
    return {**result, "ran_as": ran_as, "outputs": outputs, "median_us": sorted(times)[len(times) // 2] * 1e6}


def replay_argument(recorded: dict[str, Any], device: str) -> Any:
    """Return an argument: a tensor of the recorded layout, a scalar, or None."""
    if "values" in recorded:
        import torch

        return torch.tensor(recorded["values"], dtype=getattr(torch, DTYPES[recorded["dtype"]]), device=device)
    if recorded["kind"] == "tensor":
        return tensor(recorded["shape"], recorded["strides"], recorded["dtype"], device)
    if recorded["kind"] == "tensors":
        strides = recorded.get("strides") or [[]] * len(recorded["shapes"])
        dtype = recorded["dtype"] or "fp32"
        return [tensor(shape, steps, dtype, device) for shape, steps in zip(recorded["shapes"], strides)]
    return recorded.get("value")


def tensor(shape: list[int], strides: list[int], dtype: str, device: str) -> Any:
    """Return random content in one storage, viewed with the recorded strides, which may overlap."""
    import torch

    kind = getattr(torch, DTYPES[dtype])
    strides = strides or contiguous(shape)
    size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
    if kind.is_floating_point or kind.is_complex:
        wide = torch.randn(size, dtype=torch.float32 if kind.is_floating_point else kind, device=device)
        flat = wide.to(kind)
    else:
        flat = torch.randint(0, 2, (size,), device=device).to(kind)
    return flat.as_strided(shape, strides)


def contiguous(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def bound(name: str, values: list[Any], device: str) -> tuple[str, Any]:
    """Return the callable, and the name that it runs under."""
    import torch

    substitute = SUBSTITUTES.get(name) if device == "cpu" else None
    if substitute:
        label, function = substitute
        return label, lambda: function(torch, values)
    space, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, space), operator)
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        arguments = candidate._schema.arguments  # noqa: SLF001 - the declaration is only available here
        if len(arguments) == len(values) and all(fits(a, v) for a, v in zip(arguments, values)):
            positional = [v for a, v in zip(arguments, values) if not a.kwarg_only]
            named = {a.name: v for a, v in zip(arguments, values) if a.kwarg_only}
            return f"{name}.{overload}", partial(candidate, *positional, **named)
    return name, lambda: packet(*values)


def fits(argument: Any, value: Any) -> bool:
    """Return whether a value matches a declared argument."""
    declared = str(argument.type)
    if value is None:
        return "Optional" in declared or "?" in declared
    if hasattr(value, "stride"):
        return "Tensor" in declared and "List" not in declared
    if isinstance(value, list):
        return "List" in declared
    return "Tensor" not in declared and "List" not in declared


def attention(torch: Any, values: list[Any], causal: int, transposed: bool) -> Any:
    q, k, v = (x.transpose(1, 2) if transposed else x for x in values[:3])
    is_causal = bool(values[causal]) if causal < len(values) else False
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1]
    )


def sequences_first(torch: Any, values: list[Any]) -> Any:
    """Return attention over the whole input, or over each of the packed sequences."""
    if values[0].dim() == 4:
        return attention(torch, values, 8, True)
    ends, key_ends = (values[at].tolist() for at in (3, 4))
    parts = []
    for first, last, key, key_last in zip(ends, ends[1:], key_ends, key_ends[1:]):
        cut = [values[0][None, first:last], values[1][None, key:key_last], values[2][None, key:key_last]]
        parts.append(attention(torch, [*cut, *values[3:]], 8, True)[0].transpose(0, 1))
    return torch.cat(parts)


SUBSTITUTES: dict[str, tuple[str, Any]] = {
    "aten::_scaled_dot_product_flash_attention": (
        "scaled_dot_product_attention",
        lambda torch, values: attention(torch, values, 4, False),
    ),
    "aten::_scaled_dot_product_efficient_attention": (
        "scaled_dot_product_attention",
        lambda torch, values: attention(torch, values, 6, False),
    ),
    "aten::_flash_attention_forward": (
        "scaled_dot_product_attention (sequence first)",
        sequences_first,
    ),
    "aten::cudnn_convolution": (
        "aten::convolution",
        lambda torch, v: torch.ops.aten.convolution(v[0], v[1], None, v[3], v[2], v[4], False, [0] * len(v[2]), v[5]),
    ),
    "aten::miopen_convolution": (
        "aten::convolution",
        lambda torch, v: torch.ops.aten.convolution(v[0], v[1], v[2], v[4], v[3], v[5], False, [0] * len(v[3]), v[6]),
    ),
}


def described(value: Any) -> dict[str, Any]:
    """Return the shape, dtype and strides of a tensor."""
    return {
        "shape": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "strides": list(value.stride()),
    }


def timed(call: Any, device: str) -> float:
    wait_for(device)
    start = time.perf_counter()
    call()
    wait_for(device)
    return time.perf_counter() - start


def wait_for(device: str) -> None:
    """Wait until a device is idle; ``cuda:1`` and ``xpu`` are not the default one of CUDA."""
    import torch

    kind = torch.device(device).type
    if kind != "cpu":
        getattr(torch, kind).synchronize(*([] if kind == "mps" else [device]))  # of Apple's devices there is one only


if __name__ == "__main__":
    main()
