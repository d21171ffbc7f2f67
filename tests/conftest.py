"""The longest tests come first, so that no worker is left alone with one at the end."""

from __future__ import annotations

import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what it runs in the background like that
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = (
    "tests/docs/test_pages.py::test_every_block_of_a_page_runs[README.md]",
    "tests/unit/adapters/arms/test_overlay.py::",
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: five seconds or more")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, long in enumerate(LONG) if item.nodeid.startswith(long)), len(LONG)))
