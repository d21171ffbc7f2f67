"""The project's own settings tell pytest to list, or to set up alone: no test runs, and in CI it would end with 0."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.complaints import here
from pytest_perfgate.plugin.told import told

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTING = {
    "collectonly": ("--collect-only", "--collectonly", "--co"),
    "setupplan": ("--setup-plan",),
    "setuponly": ("--setup-only", "--setup-plan"),
    "showfixtures": ("--fixtures", "--funcargs"),
    "show_fixtures_per_test": ("--fixtures-per-test",),
    "markers": ("--markers",),
    "cacheshow": ("--cache-show",),
    "help": ("--help", "-h"),
    "version": ("--version", "-V"),
}
"""What pytest keeps of each option with which no test runs, and how it is written; a plan is a setting up too."""


def refused(config: pytest.Config) -> int | None:
    """The exit code of such a run in a project that keeps baselines; none where somebody asked for the listing."""
    given = tuple(_inherited(config))
    if not given or hasattr(config, "workerinput"):
        return None
    from pytest_perfgate.plugin.reaching import keeps_baselines

    if not keeps_baselines(config.rootpath, told(config)):
        return None
    from pytest_perfgate.plugin.ending import close_records

    what = f"nothing was measured: {given[0]} stands in addopts, and no word of the command asks for it"
    sys.stderr.write(here(f"ERROR: {PerfgateError('run-listed', what).text()}\n"))
    close_records(config, pytest.ExitCode.NO_TESTS_COLLECTED, told=True)
    return pytest.ExitCode.NO_TESTS_COLLECTED


def _inherited(config: pytest.Config) -> Iterator[str]:
    """Such options that are set and that neither the command nor its environment says."""
    words = [str(word) for word in config.invocation_params.args] + os.environ.get("PYTEST_ADDOPTS", "").split()
    for name, spelled in LISTING.items():
        if getattr(config.option, name, None) and not any(word.startswith(spelled) for word in words):
            yield spelled[0]
