"""Markers of what a test needs; the longest tests come first, so that no worker is left alone with one at the end."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what it runs in the background like that
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = (
    "tests/docs/test_pages.py::test_every_block_of_a_page_runs[README.md]",
    "tests/unit/adapters/arms/test_overlay.py::",
    "tests/plugin/test_planted.py::",
    "tests/plugin/test_against.py::",
    "tests/docs/test_pages.py::test_every_block_of_a_page_runs",
    "tests/plugin/test_capture_torch.py::",
    "tests/kill/test_kill.py::",
)


NEEDS = {
    "gpu": ("no GPU",),
    "torch": ("needs torch", "torch is not installed"),
    "nvcc": ("nvdisasm", "cuobjdump"),
    "corpus": ("PERFGATE_CORPUS",),
    "slow": ("PERFGATE_SLOW",),
}
"""Each marker, and what the reason of a skip reads where the need of that marker is missing."""


def missing_needs(reason: str) -> set[str]:
    return {marker for marker, words in NEEDS.items() if any(word in reason for word in words)}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test by the reasons of its ``skipif`` marks and by its fixtures: they say what it needs."""
    needs = {need for mark in item.iter_markers("skipif") for need in missing_needs(mark.kwargs.get("reason", ""))}
    if "corpus" in getattr(item, "fixturenames", ()):
        needs.add("corpus")
    for need in sorted(needs):
        item.add_marker(need)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Fail a test that skips for a need that it is not marked with: ``-m`` could not select it."""
    report = (yield).get_result()
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return
    unmarked = sorted(need for need in missing_needs(report.longrepr[2]) if item.get_closest_marker(need) is None)
    if unmarked:
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr[2]}: mark this test with {', '.join(unmarked)}"


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what lives as long as the session, neither while it is collected nor later."""
    gc.disable()
    yield
    gc.enable()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((at for at, long in enumerate(LONG) if item.nodeid.startswith(long)), len(LONG)))
