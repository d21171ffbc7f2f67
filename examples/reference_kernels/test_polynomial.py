"""A speed-up over a reference, compared with the accepted one and with an absolute limit.

Run it with ``pytest --perfgate=full``, accept it, and run it again with ``PLANTED=kernel``, then ``PLANTED=reference``:
the first is REGRESSED, the second MOVED, because the kernel is as fast as before.
"""

from __future__ import annotations

import pytest
from kernels import plain_polynomial, polynomial


@pytest.mark.perfgate("change(speedup(over=plain)) >= -15%", "speedup(over=plain) >= 1.1x")
@pytest.mark.parametrize("degree", [100, 400])
def test_polynomial(perfgate, degree):
    coefficients = [1.0 / (at + 1) for at in range(degree)]
    check = perfgate.same(as_=plain_polynomial, rtol=1e-6)
    perfgate(polynomial, coefficients, 0.5, name="ours", check=check)
    perfgate(plain_polynomial, coefficients, 0.5, name="plain")
