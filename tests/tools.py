"""Which of NVIDIA's tools are here."""

from __future__ import annotations

from pytest_perfgate.adapters.readers.tools import every_tool
from pytest_perfgate.model.errors import PerfgateError


def has_tools(*names: str) -> bool:
    """Whether each of these tools is on PATH or in an installed wheel."""
    try:
        return all(every_tool(name) for name in names)
    except PerfgateError:
        return False
