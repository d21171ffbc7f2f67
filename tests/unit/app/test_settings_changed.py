"""A change is judged by its own settings; in CI each that it changes is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from pytest_perfgate.app.changed_project import changed_settings
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.ports import DEPENDENCIES
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import SuiteNote

THEN = {"limits": '["slowdown <= 10%"]', "warmup": "0.1", "policy.moved": '"fail"', "mode": '"full"'}
NOW = {
    "limits": '["slowdown <= 300%"]',
    "warmup": "0.2",
    "target": '"pr"',
    "mode": '"full"',
    "pytest: addopts": '"-k x"',
}


class Lines(NamedTuple):
    """A store of one device."""

    accepted: bool

    def devices(self) -> list[str]:
        return ["host-x"]

    def paths(self, _device: str, _revision: str) -> list[str]:
        return ["t.py"] * self.accepted


def notes(
    now: dict[str, str], *, ci: bool = True, base: str = "c0ffee", then: dict[str, str] = THEN, lines: bool = True
) -> list[SuiteNote]:
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(settings=lambda revision: then if revision else now, baselines=Lines(lines)),
    )
    return list(changed_settings(court))


def test_what_can_loosen_a_limit_is_named_first_with_before_and_after() -> None:
    (note,) = notes(NOW)
    assert (note.kind, note.effect) == ("settings", Effect.WARN)
    assert note.text == "5 settings changed since c0ffee; this run was judged by the new"
    assert note.names == (
        'limits: ["slowdown <= 10%"] -> ["slowdown <= 300%"]',
        'policy.moved: "fail" -> unset',
        'target: unset -> "pr"',
        'pytest: addopts: unset -> "-k x"',
        "warmup: 0.1 -> 0.2",
    )


def test_dependencies_that_the_change_declares_otherwise_are_a_note_of_their_own() -> None:
    then = THEN | {DEPENDENCIES: '["fakedep==1.0", "numpy"]'}
    first, _ = notes({**NOW, DEPENDENCIES: '["fakedep==2.0", "numpy"]'}, then=then)
    assert first.text == "declared dependencies changed since c0ffee; two arms share what is installed now"
    assert first.names == ("-fakedep==1.0", "+fakedep==2.0")
    assert len(notes(NOW, then=THEN)) == 1


def test_nothing_is_said_where_nothing_changed_or_nobody_relies_on_it() -> None:
    assert notes(NOW, then={}, lines=False) == [], "a gate that is new loosens nothing"
    assert notes(NOW, then={})
    assert notes(THEN) == notes(NOW, ci=False) == notes(NOW, base="") == []
