"""The line of the merge base judges whole, whatever the change under test makes of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.accepted import Accepted
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.repository import Base
from pytest_perfgate.plugin.standing_in import standing_in
from tests.unit.core.gate.bench import HOST, KEY, accepted, measured

THEN = accepted(1e6, place="c0ffee: baselines")


def judging(now: Baseline, then: Baseline = THEN) -> tuple[Baseline | None, Baseline | None]:
    store = SimpleNamespace(read=lambda _device, _path, revision="": {str(KEY): then if revision else now})
    tools: Any = SimpleNamespace(repository=SimpleNamespace(base=lambda: Base(commit="c0ffee")), baselines=store)
    return Accepted(tools).judging(measured(1e6))


@pytest.mark.parametrize(
    "edit",
    [
        {"time": 2e6},
        {"commit": "deadbeefdead"},
        {"scatter": 9.0},
        {"sittings": 9},
        {"blind": 9.0},
        {"expires": "2030-01-01"},
        {"environment": "0c01c77f7d"},
        {"identity": Identity(device=HOST.key, data="v2")},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_whatever_a_verdict_leans_on_is_the_merge_base_s(edit: dict[str, Any]) -> None:
    now = replace(THEN, **edit)
    assert judging(now) == (THEN, now)


def test_words_alone_are_no_edit_and_messages_name_the_file_that_is_here() -> None:
    now = replace(THEN, why="in other words", place="baselines")
    assert judging(now) == (replace(THEN, place="baselines"), None)


def test_no_commit_of_the_change_itself_stands_in_for_what_was_accepted() -> None:
    asked: list[str] = []
    repository = SimpleNamespace(missing=frozenset, brought=lambda _commit, _folder, until: asked.append(until) or "")
    for commit, until in (("c0ffee", "c0ffee"), ("", "HEAD")):
        court = SimpleNamespace(
            tools=SimpleNamespace(repository=repository), accepted=SimpleNamespace(base=Base(commit=commit))
        )
        session: Any = SimpleNamespace(
            court=court, settings=SimpleNamespace(project=SimpleNamespace(baselines="baselines"))
        )
        assert standing_in(session, "deadbeef") == ("deadbeef", "")
        assert asked.pop() == until
