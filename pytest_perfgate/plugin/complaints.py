"""Our own errors, on their way out of pytest as a sentence and not as a trace."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextmanager
def usage_errors() -> Iterator[None]:
    """Our own errors leave pytest as usage errors: the sentence, no trace."""
    try:
        yield
    except PerfgateError as fault:
        raise pytest.UsageError(fault.text()) from None


@contextmanager
def readable() -> Iterator[None]:
    """Our own errors fail the test with their sentence, without the trace of our code."""
    try:
        yield
    except PerfgateError as fault:
        raise pytest.fail.Exception(fault.text(), pytrace=False) from None


def complain(config: pytest.Config, fault: PerfgateError) -> None:
    """At the end of a run: it fails with the sentence, and what pytest has to say of its tests is still said."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("")
        reporter.write_line(f"ERROR: {fault.text()}", red=True)
    fail(config)


def fail(config: pytest.Config) -> None:
    """A run of which something was lost has not passed."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
