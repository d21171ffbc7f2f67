"""A kernel and its plain version. ``PLANTED`` names the one that does its work twice."""

from __future__ import annotations

import os

PLANTED = os.environ.get("PLANTED", "").split()


def polynomial(coefficients: list[float], x: float) -> float:
    """The polynomial by Horner's rule."""
    total = 0.0
    for _ in range(2 if "kernel" in PLANTED else 1):
        total = 0.0
        for coefficient in coefficients:
            total = total * x + coefficient
    return total


def plain_polynomial(coefficients: list[float], x: float) -> float:
    """The polynomial by its definition."""
    total = 0.0
    for _ in range(2 if "reference" in PLANTED else 1):
        last = len(coefficients) - 1
        total = sum(coefficient * x ** (last - at) for at, coefficient in enumerate(coefficients))
    return total
