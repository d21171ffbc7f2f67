"""What we fail a test with is told once in full, and by its first line in pytest's list at the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.plugin.reporting import headed, refuse


@pytest.mark.parametrize(
    ("raised", "message"),
    [("REGRESSED  a\n  now 2 ms", "Failed: REGRESSED  a"), ("their own\nwords", "Failed: their own\nwords")],
)
def test_only_our_own_words_are_cut(raised: str, message: str) -> None:
    item: Any = SimpleNamespace(stash=pytest.Stash())
    with pytest.raises(pytest.fail.Exception, match="now 2 ms"):
        refuse(item, "REGRESSED  a\n  now 2 ms")
    report: Any = SimpleNamespace(longrepr=SimpleNamespace(reprcrash=SimpleNamespace(message=f"Failed: {raised}")))
    call: Any = SimpleNamespace(excinfo=SimpleNamespace(value=pytest.fail.Exception(raised)))
    headed(item, call, report)
    assert report.longrepr.reprcrash.message == message
    passed: Any = SimpleNamespace(longrepr=None)
    headed(item, SimpleNamespace(excinfo=None), passed)  # type: ignore[arg-type]
