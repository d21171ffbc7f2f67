"""Tests that were renamed, moved or removed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Union

from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.model.errors import nearest
from pytest_perfgate.model.plan import CaseKey, Reach
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def same_bodies(then: str, now: str) -> dict[str, str]:
    """Return each function that is gone from a file, with the only new function of the same body.

    A body of several functions is not unique; a file that does not parse has no functions.
    """
    before, after = _bodies(then), _bodies(now)
    gone = {name: body for name, body in before.items() if name not in after}
    new = {name: body for name, body in after.items() if name not in before}
    times = Counter(gone.values()), Counter(new.values())
    marked = {body: name for name, body in new.items() if times[1][body] == 1}
    return {name: marked[body] for name, body in gone.items() if times[0][body] == 1 and body in marked}


def same_function(then: str, now: str, test: str) -> bool:
    """Return whether a test's function, without parameters and calls, has the same body in two files."""
    name, _ = function_of(test)
    body = _bodies(then).get(name)
    return body is not None and body == _bodies(now).get(name)


def renamed_nodes(gone: Iterable[str], new: Iterable[str], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield removed node ids, with those of the same parameters under the new name of their function."""
    present = set(new)
    for node in gone:
        path, _, test = node.partition("::")
        name, rest = function_of(test)
        match = f"{path}::{names.get(name, '')}{rest}"
        if match in present:
            yield node, match


def function_of(test: str) -> tuple[str, str]:
    """Return ``Class::test`` and what follows it: parameters, the name of a call."""
    name = test.partition("#")[0].partition("[")[0]
    return name, test.removeprefix(name)


@lru_cache(maxsize=8)
def _bodies(text: str) -> Mapping[str, str]:
    """Return each function's body, without its name and its decorators; many cases ask for those of one file."""
    return {name: _body_text(function) for name, function in _functions(_tree(text), "")}


def _tests(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return the same, with the parameters of each function."""
    return {name: (_body_text(function), _parameters(function)) for name, function in _functions(_tree(text), "")}


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _functions(node: ast.AST | None, prefix: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node) if node is not None else ():
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}::")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}", child


def _body_text(function: _Function) -> str:
    documented = ast.get_docstring(function) is not None
    parts = [
        part for part in ast.iter_child_nodes(function.args) if not (isinstance(part, ast.arg) and part.arg == "self")
    ]
    return "\n".join(ast.dump(part) for part in (*parts, *function.body[documented:]))


def _parameters(function: _Function) -> list[str]:
    return [text for text in map(ast.dump, function.decorator_list) if "parametrize" in text]


def same_test(then: str, now: str, nodeid: str) -> bool:
    """Return whether a test's function and parameters are the same in both versions of its file."""
    name = _test_of(nodeid)
    before, after = _tests(then), _tests(now)
    return name in after and before.get(name) == after[name]


def has_test(text: str, nodeid: str) -> bool:
    """Return whether a file defines the function of a test."""
    return _test_of(nodeid) in _bodies(text)


def is_new(then: str | None, now: str, nodeid: str) -> bool:
    """Return whether a test is new in this version of its file; a renamed test with the same content is not."""
    if then is None:
        return True
    existing = {*_bodies(then), *same_bodies(then, now).values()}
    return _tree(then) is not None and _test_of(nodeid) in _bodies(now).keys() - existing


def _test_of(nodeid: str) -> str:
    return function_of(nodeid.partition("::")[2])[0]


_Pair = tuple[str, str]


def rename_candidates(
    gone: Sequence[str], new: Sequence[str], names: Mapping[str, str] | None = None
) -> Iterator[_Pair]:
    """Yield the possible new name of each removed test; each new test is used once at most.

    ``names`` are functions known to be renamed, and come first; then tests of the same family, then those of another
    function with the same parameters, then any of a similar name.
    """
    renamed = dict(renamed_nodes(gone, new, names or {}))
    yield from renamed.items()
    taken = set(renamed.values())
    lost, added = [name for name in gone if name not in renamed], [name for name in new if name not in taken]
    for among in (_family, _parallel, _any):
        paired = dict(_paired(lost, added, among(added)))
        yield from paired.items()
        taken = set(paired.values())
        lost, added = [name for name in lost if name not in paired], [name for name in added if name not in taken]


def _paired(lost: Sequence[str], candidates: Sequence[str], among: Callable[[str], Iterable[str]]) -> Iterator[_Pair]:
    """Pair each lost test with the most similar remaining candidate."""
    free = set(candidates)
    for name in lost:
        if match := _like(name, [one for one in among(name) if one in free]):
            free.remove(match)
            yield name, match


def _like(name: str, new: Sequence[str]) -> str:
    """Return the new test with the most similar own name, without the path; "" if none is similar."""
    tests: dict[str, str] = {}
    for one in sorted(new, key=lambda one: one.partition("::")[0] != name.partition("::")[0]):
        tests.setdefault(one.partition("::")[2], one)
    return next((tests[near] for near in nearest(name.partition("::")[2], tests)), "")


def _family(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests that only differ in their parameters."""
    families = _grouped(new, lambda name: name.partition("[")[0])
    return lambda name: families.get(CaseKey(nodeid=name).family, ())


def _parallel(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests of other functions with the same parameters and call."""
    groups = _grouped(new, _rest)
    return lambda name: groups.get(_rest(name), ()) if _rest(name) else ()


def _any(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    return lambda _name: new


def _rest(name: str) -> str:
    return function_of(name.partition("::")[2])[1]


def _grouped(names: Iterable[str], mark: Callable[[str], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(mark(name), []).append(name)
    return groups


@value
class Successor:
    """A new line and the removed line that it replaces."""

    gone: Baseline
    new: Baseline

    @property
    def slower(self) -> float:
        """Return how much slower it is; 0 for times that were measured differently."""
        theirs, ours = self.gone.identity, self.new.identity
        if theirs is not None and ours is not None and theirs.differences(ours):
            return 0.0
        return self.new.time / self.gone.time - 1


def successors(
    gone: Iterable[Baseline], new: Iterable[Baseline], functions: Mapping[str, str] | None = None
) -> Iterator[Successor]:
    """Yield new lines of a device, each with the removed line that it probably replaces."""
    old, fresh = ({(line.device, str(line.key)): line for line in lines} for lines in (gone, new))
    for device in sorted({device for device, _ in fresh}):
        before, after = (sorted(name for at, name in lines if at == device) for lines in (old, fresh))
        for was, now in rename_candidates(before, after, functions):
            yield Successor(gone=old[device, was], new=fresh[device, now])


def absent(path: str, then: str, now: str | None, collected: frozenset[str], reach: Reach) -> Iterator[str]:
    """Yield removed or uncollected tests of one file, each with the reason; parameters are ignored."""
    tests = dict.fromkeys(name.partition("#")[0].partition("[")[0] for name in marked(then))
    here, names = {node.partition("[")[0] for node in collected}, same_bodies(then, now or "")
    present = marked(now or "")
    for test in tests:
        node = f"{path}::{test}"
        if node in here or not reach.holds(node) or not test.rpartition("::")[2].startswith("test"):
            continue
        place = f"now {names[test]}" if test in names else "here, and not collected" if test in present else "gone"
        yield f"{node}: {place}"


def forerunner(files: Mapping[str, bool], device: str, path: str, below: str) -> str:
    """Return the file that held the lines of a test file before, or "".

    In a sibling folder only a removed file counts, since an existing one is of another project. ``below`` is this
    root's path from the top of the repository: a root above it would name the test by a longer path.
    """
    tails = {f"/{device}/{path}.yaml": False}
    parts = PurePosixPath(below).parts
    tails |= {f"/{device}/{'/'.join(parts[at:])}/{path}.yaml": True for at in range(len(parts))}
    candidates = (
        one
        for one, ending in files.items()
        for tail, above in tails.items()
        if one.endswith(tail) and (above or not ending)
    )
    return next(candidates, "")
