"""Which tests were skipped in the end, and why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.plugin.session import GateSession

NAME = "t.py::test_a"


def report(outcome: str, when: str = "call", **fields: Any) -> Any:
    said = ("t.py", 3, "Skipped: no\nboard \x1b[2J") if outcome == "skipped" else None
    return SimpleNamespace(
        nodeid=NAME, when=when, outcome=outcome, skipped=outcome == "skipped", longrepr=said, **fields
    )


@pytest.mark.parametrize(
    ("reports", "found"),
    [
        ([report("skipped", "setup")], {NAME: "no board \\x1b[2J"}),
        ([report("passed", "setup"), report("skipped"), report("passed", "teardown")], {NAME: "no board \\x1b[2J"}),
        ([report("skipped", wasxfail="")], {}),
        ([report("skipped", context="a subtest"), report("passed")], {}),
        ([report("skipped"), report("passed", context="a subtest")], {NAME: "no board \\x1b[2J"}),
        ([report("skipped"), report("passed")], {}),
    ],
)
def test_what_was_skipped_in_the_end(reports: list[Any], found: dict[str, str]) -> None:
    case: Any = SimpleNamespace(nodeid=NAME)
    settings: Any = None
    session = GateSession(settings)
    session.cases = {NAME: case, "t.py::test_b": case}
    for one in reports:
        session.note(one)
    assert session.skipped == found
