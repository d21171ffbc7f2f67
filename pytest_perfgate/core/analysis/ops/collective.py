"""Collectives move messages and compute nothing; the bus sees a share that depends on the ranks."""

from __future__ import annotations

from pytest_perfgate.model.work import Work

_FACTORS = {"allreduce": 2, "allgather": 1, "reducescatter": 1, "alltoall": 1, "gather": 1, "scatter": 1}
"""How many times (n - 1) / n of the message crosses each link."""


def collective(kind: str, message: float, ranks: int) -> Work:
    """A collective of ``message`` bytes a rank, as the bytes each link of the bus carries."""
    moved = message * bus_factor(kind, ranks)
    return Work(flops=0, bytes=moved, working_set=message, family="collective", note=kind)


def bus_factor(kind: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth of a collective among ``ranks``."""
    plain = "".join(char for char in kind.lower() if char.isalpha()).removesuffix("base").removesuffix("v")
    factor = next((f for name, f in _FACTORS.items() if name in plain), None)
    return factor * (ranks - 1) / ranks if factor and ranks > 0 else 1.0
