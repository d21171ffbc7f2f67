"""What a host's ceilings are measured with: products and a copy in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.ports import Call
from pytest_perfgate.model.values import array_value

SIZE = 1536
"""Rows and columns: large enough for a library to reach its best, small enough to take a moment."""
COPY = 4
"""Times the last cache."""
MOST_BYTES = 512 << 20
DEFAULT_CACHE = 32 << 20


@array_value
class Load:
    """Work of a known size."""

    name: str
    call: Call
    dtype: str = ""
    flops: float = 0.0
    bytes: float = 0.0


def host_loads(device: Device) -> Iterator[Load]:
    """A product in single and in double precision, and a copy larger than the last cache."""
    import numpy as np

    generator = np.random.default_rng(0)
    for dtype, kind in (("fp32", np.float32), ("fp64", np.float64)):
        a, b = (generator.standard_normal((SIZE, SIZE)).astype(kind) for _ in range(2))
        yield Load(name=f"product {dtype}", dtype=dtype, flops=2.0 * SIZE**3, call=_product(a, b, np.empty_like(a)))
    size = int(min(MOST_BYTES, COPY * (device.cache_bytes or DEFAULT_CACHE)))
    source = generator.integers(0, 256, size, dtype=np.uint8)
    yield Load(name="copy", bytes=2.0 * size, call=_copy(source, np.empty_like(source)))


def _product(a: Any, b: Any, out: Any) -> Call:
    import numpy as np

    return lambda: np.matmul(a, b, out=out)


def _copy(source: Any, target: Any) -> Call:
    import numpy as np

    return lambda: np.copyto(target, source)
