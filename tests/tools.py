"""Which of NVIDIA's tools are here."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.readers.cubin import every_tool
from pytest_perfgate.model.errors import PerfgateError


def has_tools(*names: str) -> bool:
    """Whether each of these tools is on PATH or in an installed wheel."""
    try:
        return all(every_tool(name) for name in names)
    except PerfgateError:
        return False


needs_tools = pytest.mark.skipif(
    not has_tools("nvdisasm", "cuobjdump"),
    reason="nvdisasm and cuobjdump are not installed (extra: ncu)",
)
