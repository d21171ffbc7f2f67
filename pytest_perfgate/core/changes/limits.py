"""What a change does to the limits and the bodies of tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from textwrap import shorten
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.marks import EXCUSES, Mark, marked
from pytest_perfgate.core.changes.source import (
    AROUND,
    FUNCTIONS,
    ITSELF,
    PARAMETERS,
    Parts,
    module_of,
    parts_of,
    split,
    tree_of,
)
from pytest_perfgate.core.changes.tests import same_bodies
from pytest_perfgate.core.limits.grammar import OF_FAMILIES, parse_limit
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Limit, Operator
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.core.limits.grammar import Kinds

Merged = Callable[[str, Sequence[Sequence[Limit]]], tuple[Limit, ...]]
"""Merges the limits of a test, by node id, with those of its marks and the project's own."""

Run = Mapping[str, Sequence[tuple[Limit, ...]]]
"""The limits of each test of a run, by node id without parameters, once for each different set."""

_SIDES = {
    Operator.AT_MOST: "upper",
    Operator.LESS: "upper",
    Operator.AT_LEAST: "lower",
    Operator.MORE: "lower",
    Operator.EQUAL: "equal",
}

LOOSER, OTHER, TIGHTER = range(3)
"""How an edit of a limit or a setting affects the gate, the most important first."""

_BASELINED = ("slowdown", *sorted(OF_FAMILIES))
"""Metrics whose limits need an accepted line; the removed line shows that their test is gone."""


@value
class StatedLimits:
    limits: tuple[Limit, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()
    """Texts that are not literals, or not readable limits."""


def relaxed(
    texts: Mapping[str, tuple[str | None, str | None]], kinds: Kinds, merged: Merged, run: Run | None = None
) -> Mapping[str, int]:
    """Return each limit of a gated test that these files remove or change, loosened ones first."""
    # If the files do not show the present limits, such as those of a class in another module, the run's are used.
    written = {path: (before or "", after or "") for path, (before, after) in texts.items()}
    then = {path: marked(before) for path, (before, _) in written.items()}
    now = {path: marked(after) for path, (_, after) in written.items()}
    weakened: dict[str, int] = {}
    for path, tests in then.items():
        lost = any(name not in now[path] for name in tests)
        names = same_bodies(*written[path]) if lost else {}
        closer = (name for name in now[path] if _test_of(name) in tests)  # parameters and calls with marks of their own
        for name in dict.fromkeys([*tests, *closer]):
            before = _nearest(tests, name)
            assert before is not None
            was = _stated_limits(f"{path}::{name}", before, kinds, merged)
            at, marks = _present(path, _renamed(name, names), now, then)
            part, whole = f"{at}::{_renamed(name, names)}", f"{at}::{_renamed(_test_of(name), names)}"
            collected = run.get(whole, ()) if run and part == whole else ()
            limits = None if marks is None else _stated_limits(f"{at}::{name}", marks, kinds, merged)
            for text, rank in _loosened(was, limits, collected):
                if f"{whole}: {text}" not in weakened:  # otherwise a parameter or a call repeats what its test shows
                    weakened[f"{part}: {text}"] = rank
    return dict(sorted(weakened.items(), key=lambda item: (item[1], item[0])))


def _loosened(
    was: StatedLimits, now: StatedLimits | None, collected: Sequence[tuple[Limit, ...]]
) -> Iterator[tuple[str, int]]:
    """Yield the changes of one test's limits: by its file, or if that is unclear, by the run."""
    if collected and (now is None or (now.unread and not was.unread)):
        return chain.from_iterable(_changed_limits(was, replace(was, limits=limits)) for limits in collected)
    return _removed_limits(was) if now is None else _changed_limits(was, now)


def _test_of(name: str) -> str:
    return name.partition("#")[0].partition("[")[0]


def _renamed(name: str, names: Mapping[str, str]) -> str:
    whole = _test_of(name)
    return names.get(whole, whole) + name.removeprefix(whole)


def _nearest(tests: Mapping[str, tuple[Mark, ...]], name: str) -> tuple[Mark, ...] | None:
    """Return the marks of a parameter or a call; without its own, those of its test."""
    return tests.get(name, tests.get(_test_of(name)))


def _present(
    path: str, name: str, now: Mapping[str, Mapping[str, tuple[Mark, ...]]], then: Mapping[str, Mapping[str, object]]
) -> tuple[str, tuple[Mark, ...] | None]:
    """Return where a test is now: in its file, or in the only other file where it is new."""
    here = _nearest(now[path], name)
    others = [p for p in now if _test_of(name) in now[p] and _test_of(name) not in then[p]]
    if here is not None or len(others) != 1:
        return path, here
    return others[0], _nearest(now[others[0]], name)


def _stated_limits(nodeid: str, marks: Sequence[Mark], kinds: Kinds, merged: Merged) -> StatedLimits:
    layers, unread = [], []
    for mark in marks:
        layer: list[Limit] = []
        for text in mark.limits:
            try:
                layer.append(parse_limit(text, kinds=kinds, on=mark.on, own=str))
            except PerfgateError:  # noqa: PERF203 - an unreadable text is compared as written
                unread.append(text)
        layers.append(layer)
        unread += mark.unread
    settings = {name: setting for mark in marks for name, setting in mark.settings}
    limits = merged(nodeid.partition("#")[0], layers)
    return StatedLimits(limits=limits, settings=tuple(settings.items()), unread=tuple(unread))


def _removed_limits(was: StatedLimits) -> Iterator[tuple[str, int]]:
    """Yield the limits of a removed or ungated test; none if the accepted line of each shows the removal."""
    lost = [limit for limit in was.limits if limit.source == "marker"]
    if any(limit.metric not in _BASELINED for limit in lost):
        yield from ((f"{_limit_text(limit)} -> none", LOOSER) for limit in lost)


def _changed_limits(was: StatedLimits, now: StatedLimits) -> Iterator[tuple[str, int]]:
    new = [text for text in now.unread if text not in was.unread]
    old = [text for text in was.unread if text not in now.unread]
    then_text, now_text = (shorten(", ".join(texts) or "none", 200, placeholder=" ...") for texts in (old, new))
    yield from _limits(was.limits, now.limits, f"not literal: {now_text}" if new else "none")
    if old:
        yield f"limits that perfgate cannot read: {then_text} -> {now_text}", LOOSER
    then, here = dict(was.settings), dict(now.settings)
    for name in {**then, **here}:
        if then.get(name) != here.get(name) and (not new or name in EXCUSES):
            rank = LOOSER if name in EXCUSES and name in here else OTHER
            yield f"{name}: {then.get(name, 'unset')} -> {here.get(name, 'unset')}", rank


def _limits(then: Sequence[Limit], now: Sequence[Limit], without: str) -> Iterator[tuple[str, int]]:
    before = [replace(was, text="", source="") for was in then]
    fresh = [limit for limit in now if replace(limit, text="", source="") not in before]
    same = [limit for limit in now if limit not in fresh]
    lost = [was for was in then if not any(_implies(limit, was) for limit in same)]
    successors = _pop_successors(lost, fresh)
    added = [_limit_text(limit) for limit in fresh if limit.source == "marker"]
    without += f"; new: {', '.join(added)}" if added else ""
    for at, was in enumerate(lost):
        new = successors.get(at)
        if new is not None:
            yield f"{_limit_text(was)} -> {_limit_text(new)}", TIGHTER if _implies(new, was) else LOOSER
        elif not any(_implies(limit, was) for limit in successors.values()):
            yield f"{_limit_text(was)} -> {without}", LOOSER


def _pop_successors(lost: Sequence[Limit], fresh: list[Limit]) -> dict[int, Limit]:
    """Take the limits that replace lost ones out of the new ones, and return them by the place of the lost one."""
    successors: dict[int, Limit] = {}
    for likeness in (attrgetter("key"), attrgetter("metric", "compare")):  # another scope only if none has the same
        for at, was in enumerate(lost):
            alike = (limit for limit in fresh if likeness(limit) == likeness(was))
            rivals = [limit for limit in alike if _SIDES[limit.operator] == _SIDES[was.operator]]
            if at not in successors and rivals:
                on_same = [rival for rival in rivals if rival.on == was.on]
                successors[at] = (on_same or rivals)[0]
                fresh.remove(successors[at])
    return successors


def _implies(limit: Limit, was: Limit) -> bool:
    """Return whether keeping one limit implies keeping the other, wherever the other applied."""
    if limit.key != was.key or limit.dimension is not was.dimension:
        return False
    if (limit.on and limit.on != was.on) or not set(limit.except_on) <= set(was.except_on):
        return False
    if _SIDES[limit.operator] != _SIDES[was.operator]:
        return False
    if was.operator is Operator.EQUAL:
        return limit.bound == was.bound
    slack = was.bound - limit.bound if _SIDES[was.operator] == "upper" else limit.bound - was.bound
    return slack > 0 or (
        slack == 0 and (limit.operator is was.operator or limit.operator in (Operator.LESS, Operator.MORE))
    )


def _limit_text(limit: Limit) -> str:
    on = f" on {', '.join(limit.on)}" if limit.on else ""
    except_on = f" except on {', '.join(limit.except_on)}" if limit.except_on else ""
    return f"{limit.text}{on}{except_on}"


_FIRST = (
    "limits", "tests", "policy", "target", "mode", "baselines", "devices", "confirmation", "pytest", "floor", "facts",
)  # fmt: skip
"""Settings that can remove or loosen a limit, the most direct ones first."""


def _other_parameters(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether cases that both versions have are parametrised differently."""
    shared = (name for name in before if name.startswith(PARAMETERS) and name in after)
    return any(before[name] != after[name] for name in shared)


def changed(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return each changed key with both values, first those that gates depend on."""
    differing = (key for key in {**then, **now} if then.get(key) != now.get(key))
    return tuple(f"{key}: {then.get(key, 'unset')} -> {now.get(key, 'unset')}" for key in sorted(differing, key=_rank))


def _rank(key: str) -> tuple[int, str]:
    word = "pytest" if ": " in key else re.split(r"[.\[:]", key)[0]
    return (_FIRST.index(word) if word in _FIRST else len(_FIRST), key)


def reworked(then: str, now: str) -> dict[str, tuple[str, ...]]:
    """Return what differs of each test in two versions of a file: itself, its parameters, or names that it reaches."""
    # A test that only one version has is left out.
    before, after = parts_of(then), parts_of(now)
    differing = {name: _bodies_differ(parts, after[name]) for name, parts in before.items() if name in after}
    return {name: parts for name, parts in differing.items() if parts}


def _bodies_differ(before: Parts, after: Parts) -> tuple[str, ...]:
    own = [(part, before[part] != after[part]) for part in (ITSELF, AROUND)]
    own.append((PARAMETERS, _other_parameters(before, after)))
    if any(differs for _, differs in own):
        return tuple(part for part, differs in own if differs)  # the names it uses now are checked elsewhere
    both: Mapping[str, str] = {**before, **after}
    differing = (name for name in both if before.get(name) != after.get(name) and not name.startswith(PARAMETERS))
    return tuple(sorted({name.removeprefix("self.") for name in differing}))


def same_test(then: str, now: str, test: str) -> bool:
    """Return whether a test file is the same for one of its tests, whatever its other tests."""
    # Limits, docstrings, and values of ``parametrize`` that only one version has are ignored.
    if tree_of(then) is None or tree_of(now) is None:
        return False
    (before, values), (after, new_values) = (_without_others(text, test) for text in (then, now))
    return before == after and not _other_parameters(values, new_values)


def same_program(then: str, now: str) -> bool:
    """Return whether two texts are the same program, apart from comments and blank lines."""
    return then == now or same_test(then, now, "")


def _without_others(text: str, test: str) -> tuple[list[str], dict[str, str]]:
    """Return a file's statements without its other tests, and the parameters of its tests by the ids of the cases."""
    parts = [part for part in module_of(text).body if not (test and _is_another(part, test))]
    values: dict[str, str] = {}
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, FUNCTIONS):
            values |= _bare_name(node)
    return [ast.dump(part) for part in parts], values


def _bare_name(test: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Remove a test's limits and parameter values, and return the values by the ids of their cases."""
    values: dict[str, str] = {}
    for number, mark in enumerate(test.decorator_list):
        if not isinstance(mark, ast.Call) or not isinstance(mark.func, ast.Attribute):
            continue
        if mark.func.attr == "perfgate":
            mark.args = []
        elif mark.func.attr == "parametrize":
            frame, arguments = split(mark)
            values |= {f"{PARAMETERS} {test.name} {number} {name}": ast.dump(node) for name, node in arguments.items()}
            test.decorator_list[number] = ast.Tuple(elts=frame, ctx=ast.Load())
    return values


def _is_another(part: ast.stmt, test: str) -> bool:
    return isinstance(part, FUNCTIONS) and part.name.startswith("test") and part.name != test
