"""Files that tests import or read, and those of a test that the base takes from its own revision."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_perfgate.core.changes.fixtures import CONFTEST, another_test, conftest_error, imported
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
    used_names,
)
from pytest_perfgate.model.values import first_of

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case


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


@lru_cache(maxsize=64)
def edited_modules(test_file: str, versions: tuple[tuple[str, str | None, str], ...]) -> tuple[str, ...]:
    """Return the edited modules among these files, then and now, that a test file imports, also through others."""
    before = {path: then for path, then, now in versions if then != now and PurePosixPath(path).name != CONFTEST}
    now = {path: text for path, _, text in versions}
    modules = imported(test_file, now) if before.keys() - {test_file} else ()
    both = {path: (then, now[path]) for path in modules if (then := before.get(path)) is not None}
    return tuple(path for path, texts in both.items() if len({ast.dump(module_of(text)) for text in texts}) == 2)


_BESIDE = re.compile(
    r"(^|/)\.|^docs?/|\.(py[icxd]?|pxi|ipynb|cmake|build|in|bat|ps1|lock|html|css)$"
    r"|^(?!(.*/)?(tests?|data)/).*\.(md|rst|png|svg)$"
    r"|\.(?P<source>c|cc|cpp|cxx|h|hh|hpp|hxx|inl|cuh?|hip|f|f90|for|rs|go|s|asm|mm?|sh)$"
    r"|(^|/)(pyproject\.toml|setup\.cfg|(pytest|tox)\.ini|cmakelists\.txt|package(-lock)?\.json|makefile|dockerfile)$"
    r"|(^|/)((codecov|mkdocs)\.yml|(license|readme|copying|authors|changelog|codeowners|news|changes|history)(\.[a-z]+)?)$",
    re.IGNORECASE,
)
"""Suffixes of code, which arms load or compare by file, of pages, of project files and of hidden files."""


def may_be_read(path: str, baselines: str = "baselines", *, same: bool = False) -> bool:
    """Return whether code may read a file that is not imported; with the ``same`` package, also a source to compile."""
    match = _BESIDE.search(path)
    return (match is None or bool(same and match["source"])) and not path.startswith(f"{baselines.rstrip('/')}/")


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
        nodeids = set()
        for case in cases:
            then, now = self._both(case.path)
            names = edited_in_calls(then, now).get(case.function) if then and then != now else None
            if names and self._take_file(case, f"has another {first_of(names, 3)} in {case.path}"):
                nodeids.add(case.nodeid)
            if case.nodeid in loaded and case.nodeid not in self._modules:
                files = (case.path, *(path for path in loaded[case.nodeid] if path.endswith(".py")))
                versions = ((path, *self._both(path)) for path in files)
                self._modules[case.nodeid] = modules = edited_modules(case.path, tuple(versions))
                if modules:
                    self._reasons.setdefault(case.nodeid, f"has another {first_of(modules, 3)}")
                    nodeids.add(case.nodeid)
        return frozenset(nodeids)

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
        affected = [case for case in cases if not named.isdisjoint(edited[case.nodeid])]
        return bool([case for case in affected or cases if self._take_conftests(case, why)])

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
        return another_test(case.function, {case.path: files.pop(case.path, (now, now))}, files)

    def _take_more(self, case: Case, why: str) -> bool:
        has = case.function in bodies_of(self._both(case.path)[0] or "")
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
