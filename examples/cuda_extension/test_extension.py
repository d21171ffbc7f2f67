"""A CUDA C++ kernel in an extension that setuptools builds: ``pip install --no-build-isolation .``"""

from __future__ import annotations

import pytest

from pytest_perfgate import work

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)
scale_kernels = pytest.importorskip("scale_kernels", reason="the extension is not built", exc_type=ImportError)


@pytest.mark.perfgate("bandwidth >= 1 TB/s", "slowdown <= 3%")
def test_saxpy(perfgate):
    x = torch.randn(1 << 26, device="cuda", generator=torch.Generator("cuda").manual_seed(7))
    y = torch.zeros_like(x)

    def fresh():
        return x, y.zero_(), 2.0

    perfgate(
        scale_kernels.saxpy_, setup=fresh, work=work.custom(bytes=3 * x.nbytes),
        check=lambda found: bool(torch.equal(found, 2.0 * x)),
    )  # fmt: skip
