"""Which of NVIDIA's tools are here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.cubin import every_tool
from pytest_perfgate.model.errors import PerfgateError


def has_tools(*names: str) -> bool:
    """Whether each of these tools is on PATH or in an installed wheel."""
    try:
        return all(every_tool(name) for name in names)
    except PerfgateError:
        return False


KEEPING = """#!/bin/sh
for file; do :; done
kept="{folder}/$1.$(sha256sum < "$file" | cut -c 1-40)"
if [ ! -f "$kept" ]; then
  "{tool}" "$@" > "$kept.$$" || exit
  mv "$kept.$$" "$kept"
fi
exec cat "$kept"
"""


def keep_listings(folder: Path) -> None:
    """Write an nvdisasm into a folder that runs the real one once for each cubin: its start takes half a second."""
    if has_tools("nvdisasm"):
        program = folder / "nvdisasm"
        program.write_text(KEEPING.format(folder=folder, tool=every_tool("nvdisasm")[0]))
        program.chmod(0o755)


needs_tools = pytest.mark.skipif(
    not has_tools("nvdisasm", "cuobjdump"),
    reason="nvdisasm and cuobjdump are not installed (extra: ncu)",
)
