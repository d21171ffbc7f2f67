"""What a run owes the machine when its measuring is over, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.wiring.clocks import lift_left

if TYPE_CHECKING:
    import pytest


@contextmanager
def tidied(config: pytest.Config) -> Iterator[None]:
    """A child that was killed leaves the clocks that it locked: the run that it belonged to puts them back."""
    try:
        yield
    finally:
        for line in lift_left():
            Progress(config, line).close()
