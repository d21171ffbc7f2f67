"""Tests of another project in one run: settings, baselines and children are those of the rootdir alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def outside(item: pytest.Item) -> PerfgateError | None:
    """What is wrong with a test that no path below the rootdir leads to; its node id may be that of another one."""
    top, path = item.config.rootpath, item.path
    if path.is_relative_to(top) or _is_same(top / item.nodeid.partition("::")[0], path):
        return None
    here = item.config.invocation_params.dir
    return PerfgateError("test-outside", f"{_from(here, path)} lies outside the rootdir, {_from(here, top)}")


def _is_same(one: Path, other: Path) -> bool:
    """Whether the node id leads there all the same, by a link."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _from(here: Path, path: Path) -> str:
    try:
        return os.path.relpath(path, here)
    except ValueError:  # another drive
        return str(path)
