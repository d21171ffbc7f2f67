"""Tests of plugin/session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.plugin.options import OPTIONS
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.state import Settings


def options_with(**fields: Any) -> Any:
    """Options as they are where nobody gave one, but for these."""
    names = {option.settings.get("dest", option.name[2:].replace("-", "_")): option for option in OPTIONS}
    plain = {name: option.settings.get("default") for name, option in names.items()}
    return SimpleNamespace(**{**plain, "usepdb": False, "trace": False, **fields})


@pytest.mark.parametrize("mode", ["quick", "full", "off"])
@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("perfgate_budget", "bad", "'bad' is not a time"),
        ("perfgate_policy", ["missing=foo"], "'missing' cannot be 'foo'"),
    ],
)
def test_what_does_not_read_is_said_before_the_first_test(
    mode: str, option: str, text: Any, message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    config: Any = SimpleNamespace(
        option=options_with(**{"perfgate_mode": mode, option: text}), rootpath=tmp_path, stash={}
    )
    with pytest.raises(pytest.UsageError, match=message):
        GateSession(Settings(config)).prepare([])


NAME = "t.py::test_a"


def report(outcome: str, when: str = "call", **fields: Any) -> Any:
    reason = ("t.py", 3, "Skipped: no\nboard \x1b[2J") if outcome == "skipped" else None
    return SimpleNamespace(
        nodeid=NAME, when=when, outcome=outcome, skipped=outcome == "skipped", longrepr=reason, **fields
    )


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report("skipped", "setup")], {NAME: "no board \\x1b[2J"}),
        ([report("passed", "setup"), report("skipped"), report("passed", "teardown")], {NAME: "no board \\x1b[2J"}),
        ([report("skipped", wasxfail="")], {}),
        ([report("skipped", context="a subtest"), report("passed")], {}),
        ([report("skipped"), report("passed", context="a subtest")], {NAME: "no board \\x1b[2J"}),
        ([report("skipped"), report("passed")], {}),
    ],
)
def test_what_was_skipped_in_the_end(reports: list[Any], expected: dict[str, str]) -> None:
    case: Any = SimpleNamespace(nodeid=NAME)
    settings: Any = None
    session = GateSession(settings)
    session.cases = {NAME: case, "t.py::test_b": case}
    for one in reports:
        session.note(one)
    assert session.skipped == expected
