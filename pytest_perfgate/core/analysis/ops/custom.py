"""Work that a user states: items of any unit, operations and bytes of a kernel of their own."""

from __future__ import annotations

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.core.analysis.ops.stated import stated
from pytest_perfgate.model.work import Work


@exact
def items(count: float, unit: str = "items") -> Work:
    """``count`` of something that throughput is told in: tokens, images, requests."""
    return Work(items=stated("count", count), unit=unit, family="items")


@exact
def custom(
    *,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002 - the name that users expect
    dtype: str = "",
    working_set: float | None = None,
    note: str = "",
) -> Work:
    """Operations and bytes as the user counts them; at least one of the two."""
    if flops is None and bytes is None:
        raise ValueError("custom work states flops=, bytes= or both")
    for name, count in (("flops", flops), ("bytes", bytes), ("working_set", working_set)):
        if count is not None:
            stated(name, count)
    return Work(
        flops=flops,
        bytes=bytes,
        dtype=dtype_name(dtype) if dtype else "",
        working_set=bytes if working_set is None else working_set,
        note=note,
    )
