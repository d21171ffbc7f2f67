"""The calls that every instrument is held against: a few kernels of torch and one of Triton."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Call = Callable[[], Any]


def calls(torch: Any) -> Iterator[tuple[str, Call]]:
    """Yield calls that take from a few microseconds to a hundred."""
    source = torch.randn(64 << 20, device="cuda")
    target = torch.empty_like(source)
    yield "copy 256 MB", lambda: target.copy_(source)
    rows = torch.randn(4096, 4096, device="cuda")
    yield "softmax", lambda: torch.softmax(rows, dim=1)
    fused = triton_softmax(torch, rows)
    if fused is not None:
        yield "triton softmax", fused
    medium = torch.randn(4 << 20, device="cuda")
    yield "add 16 MB", lambda: medium.add_(1e-6)
    yield "two kernels", lambda: (torch.softmax(rows, dim=1), medium.add_(1e-6))
    small = torch.randn(1024, device="cuda")
    yield "short kernel", lambda: small.add_(1e-6)


def triton_softmax(torch: Any, rows: Any) -> Call | None:
    """Return Triton's softmax; None without Triton."""
    try:
        from ci.gpu.kernels import softmax_rows
    except ImportError:
        return None
    out = torch.empty_like(rows)
    return lambda: softmax_rows(out, rows)
