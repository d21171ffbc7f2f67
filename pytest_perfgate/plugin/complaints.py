"""Our own errors, on their way out of pytest as a sentence and not as a trace."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
