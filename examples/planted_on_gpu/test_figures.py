"""Limits on figures of a GPU, as in ``examples/planted_regressions``. Run it twice with ``pytest --perfgate=full``.

Run it the second time with a regression: ``PLANTED="memory speedup" pytest --perfgate=full``.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)

from kernels import fused, rows, scaled, unfused  # noqa: E402


@pytest.mark.perfgate("change(peak_vram) <= 1%")
def test_memory(perfgate):
    perfgate(scaled, rows())


@pytest.mark.perfgate("change(speedup(over=unfused)) >= -5%")
def test_speedup(perfgate):
    numbers = rows()
    perfgate(fused, numbers, name="fused")
    perfgate(unfused, numbers, name="unfused")
