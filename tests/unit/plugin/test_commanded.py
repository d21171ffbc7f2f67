from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.plugin.ending import commanded_notes


def session(limits: list[str] | None, args: list[str], *, ci: bool = True) -> Any:
    config = SimpleNamespace(
        option=SimpleNamespace(perfgate_limit=limits, perfgate_policy=["suspect=fail"] if limits else []),
        invocation_params=SimpleNamespace(args=args),
    )
    context = SimpleNamespace(policy=Policy(ci=ci))
    return SimpleNamespace(settings=SimpleNamespace(pytest=config), court=SimpleNamespace(context=context))


@pytest.mark.parametrize(
    ("args", "environment", "author"),
    [
        (["--perfgate-limit=slowdown <= 90%"], "", "the command"),
        (["--perfgate-limit", "slowdown <= 90%"], "", "the command"),
        ([], "-q --perfgate-limit 'slowdown <= 90%'", "PYTEST_ADDOPTS"),
        ([], "", "addopts or a conftest"),
    ],
)
def test_a_limit_or_a_policy_of_an_option_is_always_shown_in_ci(
    monkeypatch: pytest.MonkeyPatch, args: list[str], environment: str, author: str
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", environment)
    (note,) = commanded_notes(session(["slowdown <= 90%"], args))
    assert (note.kind, note.effect) == ("commanded", Effect.WARN)
    assert note.names[0] == f"--perfgate-limit 'slowdown <= 90%', by {author}"
    assert note.names[1].startswith("--perfgate-policy 'suspect=fail'")
    assert commanded_notes(session(["slowdown <= 90%"], args, ci=False)) == commanded_notes(session(None, args)) == ()
