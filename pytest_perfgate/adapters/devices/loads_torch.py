"""What a GPU's ceilings are measured with through torch: random data, never zeros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_perfgate.adapters.devices.loads_host import COPY, DEFAULT_CACHE, Load
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.ports import Call

SIZE = 8192
DTYPES = (("bf16", "bfloat16"), ("fp16", "float16"), ("tf32", "float32"), ("fp32", "float32"), ("fp64", "float64"))


def torch_loads(device: Device, where: str = "cuda", size: int = SIZE) -> Iterator[Load]:
    """A product of each dtype, and a copy larger than the last cache."""
    import torch

    for dtype, kind in DTYPES:
        a, b = (torch.randn(size, size, device=where, dtype=torch.float32).to(getattr(torch, kind)) for _ in range(2))
        tf32 = dtype == "tf32"
        yield Load(name=f"product {dtype}", dtype=dtype, flops=2.0 * size**3, call=_product(torch, a, b, tf32))
    count = int(COPY * (device.cache_bytes or DEFAULT_CACHE))
    source = torch.randint(0, 256, (count,), device=where, dtype=torch.uint8)
    target = torch.empty_like(source)
    yield Load(name="copy", bytes=2.0 * count, call=lambda: target.copy_(source))


def _product(torch: Any, a: Any, b: Any, tf32: bool) -> Call:
    """The precision of float32 products is a switch of the process: set just before, each time."""
    out = torch.empty_like(a)

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.mm(a, b, out=out)

    return call
