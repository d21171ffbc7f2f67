"""The work of a call: what had to be computed and moved, whoever does it."""

from __future__ import annotations

from pytest_perfgate.model.values import value


@value
class Work:
    """Floating-point operations and unique bytes of one call, with the dtype that sets its peak."""

    flops: float | None = None
    bytes: float | None = None
    dtype: str = ""
    items: float | None = None
    unit: str = "items"
    working_set: float | None = None
    """Bytes touched at all; the byte roof applies where they exceed the last cache."""
    family: str = "custom"
    note: str = ""
    """What the figure rests on: a stated bound, a recorded mask, a hook."""

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None
