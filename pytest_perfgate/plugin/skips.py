"""What pytest skipped, and what it says of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import pytest

from pytest_perfgate.core.render.block import printable


def skip_reason(report: Union[pytest.TestReport, pytest.CollectReport]) -> str:
    """Why a test, or a file, says that it was skipped, in a line."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return printable(" ".join(said.removeprefix("Skipped: ").split()))


def skipped_files(config: pytest.Config) -> Mapping[str, str]:
    """Files that skipped themselves whole while they were collected, with the reason."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    return {report.nodeid: skip_reason(report) for report in skipped if isinstance(report, pytest.CollectReport)}
