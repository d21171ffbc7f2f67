"""Tests that were renamed, moved or removed, and the files that the base has of its own."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.fixtures import CONFTEST, Texts, another_test, collectable, conftest_error, imported
from pytest_perfgate.core.changes.marks import marked
from pytest_perfgate.core.changes.source import (
    FIXTURES,
    PARAMETERS,
    Function,
    Scope,
    bodies_of,
    defined,
    first_name,
    meaning,
    module_of,
    parts_of,
    tests_in,
    tree_of,
    used_names,
)
from pytest_perfgate.model.errors import nearest
from pytest_perfgate.model.plan import CaseKey, Reach
from pytest_perfgate.model.values import first_of, grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Baseline
    from pytest_perfgate.model.plan import Case


def same_bodies(then: str, now: str) -> dict[str, str]:
    """Return each function that is gone from a file, with the only new function of the same body."""
    # A body of several functions is not unique; a file that does not parse has no functions.
    before, after = bodies_of(then), bodies_of(now)
    gone = {name: body for name, body in before.items() if name not in after}
    new = {name: body for name, body in after.items() if name not in before}
    times = Counter(gone.values()), Counter(new.values())
    marked = {body: name for name, body in new.items() if times[1][body] == 1}
    return {name: marked[body] for name, body in gone.items() if times[0][body] == 1 and body in marked}


def same_function(then: str, now: str, test: str) -> bool:
    """Return whether a test's function, without parameters and calls, has the same body in two files."""
    name, _ = function_of(test)
    body = bodies_of(then).get(name)
    return body is not None and body == bodies_of(now).get(name)


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


def is_new(then: str | None, now: str, nodeid: str) -> bool:
    """Return whether a test is new in this version of its file; a renamed test with the same content is not."""
    if then is None:
        return True
    existing = {*bodies_of(then), *same_bodies(then, now).values()}
    return tree_of(then) is not None and _test_of(nodeid) in bodies_of(now).keys() - existing


def _test_of(nodeid: str) -> str:
    return function_of(nodeid.partition("::")[2])[0]


_Pair = tuple[str, str]


def rename_candidates(
    gone: Sequence[str], new: Sequence[str], names: Mapping[str, str] | None = None
) -> Iterator[_Pair]:
    """Yield the possible new name of each removed test; each new test is used once at most."""
    # ``names`` are functions known to be renamed, and come first; then tests of the same family, then those of another
    # function with the same parameters, then any of a similar name.
    renamed = dict(renamed_nodes(gone, new, names or {}))
    yield from renamed.items()
    taken = set(renamed.values())
    lost, added = [name for name in gone if name not in renamed], [name for name in new if name not in taken]
    for among in (_family, _parallel, lambda new: lambda _: new):
        paired = dict(_paired(lost, added, among(added)))
        yield from paired.items()
        taken = set(paired.values())
        lost, added = [name for name in lost if name not in paired], [name for name in added if name not in taken]


def _paired(lost: Sequence[str], candidates: Sequence[str], among: Callable[[str], Iterable[str]]) -> Iterator[_Pair]:
    """Pair each lost test with the most similar remaining candidate."""
    free = set(candidates)
    for name in lost:
        match = _like(name, [candidate for candidate in among(name) if candidate in free])
        if match:
            free.remove(match)
            yield name, match


def _like(name: str, new: Sequence[str]) -> str:
    """Return the new test with the most similar own name, without the path; "" if none is similar."""
    tests: dict[str, str] = {}
    path, _, own_name = name.partition("::")
    for test in sorted(new, key=lambda test: test.partition("::")[0] != path):  # those of its own file first
        tests.setdefault(test.partition("::")[2], test)
    return next((tests[near] for near in nearest(own_name, tests)), "")


def _family(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests that only differ in their parameters."""
    families = grouped(new, lambda name: name.partition("[")[0])
    return lambda name: families.get(CaseKey(nodeid=name).family, ())


def _parallel(new: Sequence[str]) -> Callable[[str], Iterable[str]]:
    """Return a function that finds new tests of other functions with the same parameters and call."""
    groups = grouped(new, _rest)
    return lambda name: groups.get(_rest(name), ()) if _rest(name) else ()


def _rest(name: str) -> str:
    return function_of(name.partition("::")[2])[1]


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
        before, after = (sorted(name for where, name in lines if where == device) for lines in (old, fresh))
        for was, now in rename_candidates(before, after, functions):
            yield Successor(gone=old[device, was], new=fresh[device, now])


def absent(texts: Texts, collected: frozenset[str], reach: Reach) -> Iterator[str]:
    """Yield removed or uncollected tests of these files, each with the reason; parameters are ignored."""
    here = {node.partition("[")[0] for node in collected}
    for path, (then, now) in texts.items():
        names, present = same_bodies(then or "", now or ""), marked(now or "")
        for test in dict.fromkeys(name.partition("#")[0].partition("[")[0] for name in marked(then or "")):
            node = f"{path}::{test}"
            if node in here or not reach.holds(node) or not test.rpartition("::")[2].startswith("test"):
                continue
            place = "here, and not collected" if test in present else "gone"
            yield f"{node}: {f'now {names[test]}' if test in names else place}"


def hidden(texts: Texts, collected: frozenset[str], reach: Reach, *, hides: bool, lined: set[str]) -> Iterator[str]:
    """Yield tests without a line that pytest collected before the change, and that it does not gate any more."""
    # Where no test of a file was collected, its conftest leaves it out on this machine, unless the change ``hides`` it.
    here = {node.partition("[")[0] for node in collected}
    files = {node.partition("::")[0] for node in collected}
    lost = {at: {t for t in collectable(then or "", at) if f"{at}::{t}" not in here} for at, (then, _) in texts.items()}
    tests = {path: sorted(lost[path] & marked(texts[path][0] or "").keys()) for path in texts if lost[path]}
    now = {path: marked(text or "") for path, (_, text) in texts.items()} if any(tests.values()) else {}
    for path, (then, text) in texts.items():
        names = same_bodies(then or "", text or "") if tests.get(path) else {}
        left_out = frozenset() if hides or path in files else collectable(text or "", path)
        for test in tests.get(path, ()):
            node, new = f"{path}::{test}", names.get(test, test)
            places = [path] if new in now[path] else [place for place in now if test in now[place]]
            after = [f"{place}::{new if place == path else test}" for place in places]
            outside = (after and new in left_out) or path in here or not reach.holds(node)
            if not outside and here.isdisjoint({node, *after}) and (after or node not in lined):
                place = after[0] if after and after[0] != node else "here"
                yield f"{node}: {f'{place}, and not collected' if after else 'gone, or not gated any more'}"


@lru_cache(maxsize=64)
def edited_in_calls(then: str, now: str) -> Mapping[str, tuple[str, ...]]:
    """Return tests of which only functions and classes are edited that the file has and the test times, with these."""
    # What prepares the data, a fixture or a constant may change how much work is timed.
    before, after = parts_of(then), parts_of(now)
    edited = {test: _edited_functions(before[test], after[test]) for test in before.keys() & after.keys()}
    tests = {test for test, names in edited.items() if names}
    timed = dict.fromkeys(tests, frozenset[str]())
    for body in [module_of(text).body for text in (then, now)] if tests else ():
        calls = {test: _reached_in_calls(node, defined(body)) for test, node, _ in tests_in(body, ()) if test in tests}
        timed = {test: timed[test] | names for test, names in calls.items()}
    return {test: tuple(sorted(edited[test])) for test in tests if edited[test] <= timed[test]}


def _edited_functions(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the functions and classes among the parts of a test that differ; none if another part differs."""
    pairs = {name: (before.get(name), after.get(name)) for name in {*before, *after}}
    edited = {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and not _is_import(*pair)}
    functions = all(_is_function(side) for pair in edited.values() for side in pair)
    return {name.removeprefix(f"{PARAMETERS}: ") for name in edited} if functions else set()


def _is_import(then: str | None, now: str | None) -> bool:
    """Return whether a name is one that a version imports and the other lacks."""
    return None in (then, now) and (then or now or "").startswith("Import")


def _is_function(source: str | None) -> bool:
    """Return whether a name is a function or class, or missing in this version."""
    return source is None or (source.partition("(")[0].endswith("Def") and "'fixture'" not in source)


def _reached_in_calls(test: Function, scope: Scope) -> set[str]:
    """Return the names that timed calls and regions reach; by a parameter that is called, those of its marks."""
    local, names = defined(test.body), set[str]()
    arguments = {one.arg for one in ast.walk(test.args) if isinstance(one, ast.arg)}
    for node in ast.walk(test):
        lines: list[ast.AST] = []
        if isinstance(node, ast.With) and any(first_name(item.context_expr) in FIXTURES for item in node.items):
            lines = [*node.body]
        elif isinstance(node, ast.Call) and first_name(node.func) in FIXTURES:
            lines = [*node.args[:1]]
        calls = [one.func for line in lines for one in ast.walk(line) if isinstance(one, ast.Call)]
        roots = {first_name(one) for one in (*lines, *calls)}
        parameters = test.decorator_list if roots & arguments else ()
        timed = used_names([*lines, *parameters, *(one for root in roots for one in local.get(root, ()))])
        names.update({*timed} - (arguments - roots))  # what prepares the data of a fixture is not timed
    return names | meaning(names, scope).keys()


# The files that the base has of its own: which version of a test's file and conftests it runs.


@lru_cache(maxsize=64)
def edited_modules(test_file: str, versions: tuple[tuple[str, str | None, str], ...]) -> tuple[str, ...]:
    """Return the edited modules among these files, then and now, that a test file imports, also through others."""
    before = {path: then for path, then, now in versions if then != now and PurePosixPath(path).name != CONFTEST}
    now = {path: text for path, _, text in versions}
    modules = imported(test_file, now) if before.keys() - {test_file} else ()
    both = {path: (then, now[path]) for path in modules if (then := before.get(path)) is not None}
    return tuple(path for path, texts in both.items() if len({ast.dump(module_of(text)) for text in texts}) == 2)


Versions = Callable[[str], "tuple[str | None, str]"]
"""Returns a file's text at the base, or None, and in the working copy, by its path from the root."""

_ENDED, _RAN = "the base build ended with exit code", ", and ran "


class OwnFiles:
    """Test files and conftests that the base arm takes from its own revision.

    It does so because the change edits what a test times in its file, or because it fails with the head's files. At
    each failure a test takes one more of its own: its file first, or its conftests if pytest does not start there.
    """

    def __init__(self, versions: Versions | None, alike: Sequence[Case] = ()) -> None:
        """``alike`` are tests for which nothing but their own files can differ."""
        self._versions = versions
        self._read: dict[str, tuple[str | None, str]] = {}
        self._reasons: dict[str, str] = {}
        self._files: set[str] = set()
        self._conftests: dict[str, bool] = {}  # whether the base has any
        self._modules: dict[str, tuple[str, ...]] = {}  # modules beside a test that it loads
        self.take_edited(alike, {})

    def take_edited(self, cases: Iterable[Case], loaded: Mapping[str, Sequence[str]]) -> frozenset[str]:
        """Take edited modules that tests load, and files in which only functions that a test times are edited."""
        taken = set()
        for case in cases:
            then, now = self._both(case.path)
            names = edited_in_calls(then, now).get(_test_of(case.nodeid)) if then and then != now else None
            if names and self._take_file(case, f"has another {first_of(names, 3)} in {case.path}"):
                taken.add(case.nodeid)
            if case.nodeid in loaded and case.nodeid not in self._modules:
                files = (case.path, *(path for path in loaded[case.nodeid] if path.endswith(".py")))
                versions = ((path, *self._both(path)) for path in files)
                self._modules[case.nodeid] = modules = edited_modules(case.path, tuple(versions))
                if modules:
                    self._reasons.setdefault(case.nodeid, f"has another {first_of(modules, 3)}")
                    taken.add(case.nodeid)
        return frozenset(taken)

    def take(self, lost: Iterable[Case], errors: Sequence[str]) -> None:
        """Take the files of tests that the base could not collect but has in its own version."""
        for case in lost:
            error = next((error for error in errors if error.startswith(f"{case.path}: ")), None)
            if error is not None:
                self._take_more(case, f"cannot collect this test file as it is here ({error[len(case.path) + 2 :]})")

    def take_conftests(self, cases: Sequence[Case], error: str) -> bool:
        """Return whether some tests take the base's conftests, since pytest ended there before the first test."""
        if not error.startswith(_ENDED):
            return False
        edited = {case.nodeid: self._edited_conftests(case) for case in cases}
        message, named = conftest_error(error, {path for paths in edited.values() for path in paths})
        why = f"cannot start with a {CONFTEST} as it is here ({message})"
        near = [case for case in cases if not named.isdisjoint(edited[case.nodeid])]
        return bool([case for case in near or cases if self._take_conftests(case, why)])

    def falls_back(self, case: Case, error: str) -> bool:
        """Return whether a test that raised only in the base arm is to be run there with more of its own files."""
        return self._take_more(case, f"fails at this test as it is here ({error})")

    def take_again(self, reasons: Iterable[tuple[Case, str]]) -> None:
        """Take the files that the base took for these reasons in a run that was cut short."""
        for case, reason in reasons:
            why, _, ran = reason.rpartition(_RAN)
            for files, take in (("test file", self._take_file), (CONFTEST, self._take_conftests)):
                if files in ran:
                    take(case, why)

    def version(self, nodeid: str) -> tuple[bool, bool, tuple[str, ...]]:
        """Return whether the base runs a test from its own file, with its own conftests, and which own modules."""
        return nodeid in self._files, nodeid in self._conftests, self._modules.get(nodeid, ())

    def same_version(self, cases: Sequence[Case]) -> list[Case]:
        """Return the next cases that share one version of their files, since a process loads a file only once."""
        least = min((self.version(case.nodeid) for case in cases), default=None)
        return [case for case in cases if self.version(case.nodeid) == least]

    def files(self, cases: Iterable[Case]) -> tuple[tuple[str, str], ...]:
        """Return the files that the base arm loads instead of the head's for these cases."""
        paths = dict.fromkeys(path for case in cases for path in self.paths(case))
        return tuple((path, self._both(path)[0] or "") for path in paths)

    def paths(self, case: Case) -> tuple[str, ...]:
        """Return the files of a test that the base takes from its own revision."""
        of_file, of_conftests, modules = self.version(case.nodeid)
        return (*([case.path] if of_file else ()), *(self._edited_conftests(case) if of_conftests else ()), *modules)

    def reason(self, nodeid: str) -> str:
        """Return why the base takes files of its own for a test, and which; "" if it takes none."""
        own = (("test file", nodeid in self._files), (CONFTEST, self._conftests.get(nodeid, False)))
        names = [name for name, is_own in own if is_own] + [*self._modules.get(nodeid, ())]
        ran = [f"its own {' and '.join(names)}"] if names else []
        if not self._conftests.get(nodeid, True):
            ran.append(f"without {CONFTEST}")
        return f"{self._reasons[nodeid]}{_RAN}{' '.join(ran)}" if ran else ""

    def edited(self, case: Case) -> bool:
        """Return whether the change edits the file of a test or its conftests."""
        return len({*self._both(case.path)}) == 2 or bool(self._edited_conftests(case))

    def differs(self, case: Case) -> bool:
        """Return whether a test differs in the base by the files that are its own there."""
        files = {path: self._both(path) for path in self.paths(case)}
        now = self._both(case.path)[1]
        return another_test(_test_of(case.nodeid), {case.path: files.pop(case.path, (now, now))}, files)

    def _take_more(self, case: Case, why: str) -> bool:
        has = _test_of(case.nodeid) in bodies_of(self._both(case.path)[0] or "")
        return has and (self._take_file(case, why) or self._take_conftests(case, why))

    def _take_file(self, case: Case, why: str) -> bool:
        then, now = self._both(case.path)
        if case.nodeid in self._files or then == now:
            return False
        self._files.add(case.nodeid)
        self._reasons.setdefault(case.nodeid, why)
        return True

    def _take_conftests(self, case: Case, why: str) -> bool:
        paths = self._edited_conftests(case)
        if case.nodeid in self._conftests or not paths:
            return False
        self._conftests[case.nodeid] = any(self._both(path)[0] is not None for path in paths)
        self._reasons.setdefault(case.nodeid, why)
        return True

    def _edited_conftests(self, case: Case) -> list[str]:
        """Return the conftests of a test that differ at the base, or that it lacks."""
        above = [str(folder / CONFTEST) for folder in PurePosixPath(case.path).parents]
        versions = ((path, *self._both(path)) for path in above)
        return [path for path, base, head in versions if (base or "") != head]

    def _both(self, path: str) -> tuple[str | None, str]:
        if path not in self._read:
            self._read[path] = self._versions(path) if self._versions is not None else (None, "")
        return self._read[path]
