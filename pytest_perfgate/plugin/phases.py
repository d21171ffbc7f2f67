"""Before and after the test itself: what a fixture asks of us in a wrong way is a sentence there too."""

from __future__ import annotations

from collections.abc import Container, Generator
from typing import Any

import pytest

from pytest_perfgate.plugin.complaints import readable
from pytest_perfgate.plugin.frames import UsersFrames
from pytest_perfgate.plugin.spared import spare


class ReadablePhases:
    """Hooks of whoever runs tests."""

    def died(self) -> Container[str]:
        """Tests whose child did not survive them."""
        raise NotImplementedError

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        spare(item, self.died())
        with readable(), UsersFrames(item.config):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        with readable(), UsersFrames(item.config):
            return (yield)
