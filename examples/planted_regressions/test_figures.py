"""Limits on figures that get worse while the time stays the same. Run it twice with ``pytest --perfgate=full``.

Run it the second time with a regression: ``PLANTED="memory tail compile bytes registers" pytest --perfgate=full``.
"""

from __future__ import annotations

import pytest
from kernels import bytes_sent, compiled_kernel, lookup, request, scaled


@pytest.mark.perfgate("change(peak_memory) <= 1%")
def test_memory(perfgate):
    perfgate(scaled)


@pytest.mark.perfgate("change(time(q=99%)) <= 50%")
def test_tail(perfgate):
    perfgate(request)


@pytest.mark.perfgate("change(compile_time) <= 50%", rounds=6)
def test_compile(perfgate):
    perfgate(lookup)


@pytest.mark.perfgate("change(bytes_sent) <= 0")
def test_bytes(perfgate):
    perfgate.metric("bytes_sent", bytes_sent(), unit="B", exact=True)


@pytest.mark.perfgate("change(registers) <= 0")
def test_registers(perfgate, tmp_path):
    perfgate.read(compiled_kernel(tmp_path / "scale.log"))
