"""Test files that the base arm cannot run as the head has them: it takes its own revision's version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_perfgate.app.duet import BASE, HEAD, Met
from pytest_perfgate.core.gate.bodies import has_test, same_test
from pytest_perfgate.model.plan import Case

Texts = Callable[[str], "tuple[str | None, str]"]
"""A test file's text at the base, where it is there, and in the working copy; by its path from the root."""
_UNCOLLECTED = "cannot collect this test file"


def base_alone(met: Met) -> bool:
    """Whether a test raised in the base arm and passed in the head's."""
    return met.finished[BASE].outcome == "failed" and met.finished[HEAD].outcome == "passed"


class OwnFiles:
    """Which tests the base arm runs from a file of its own, found out by its failing at the head's."""

    def __init__(self, texts: Texts | None) -> None:
        self._texts = texts
        self._read: dict[str, tuple[str | None, str]] = {}
        self.tests: dict[str, str] = {}
        """Why, by node id."""

    def take(self, lost: Iterable[Case], errors: Sequence[str]) -> None:
        """Of tests that the base arm could not collect, those that its own version of the file has too."""
        for case in lost:
            if any(error.startswith(f"{case.path}:") for error in errors):
                self._taken(case, _UNCOLLECTED)

    def instead(self, case: Case, met: Met) -> bool:
        """Whether a test that raised in the base arm alone is to be tried there as its own revision has it."""
        said = met.finished[BASE].text
        return base_alone(met) and self._taken(case, f"fails at this test as it is here ({said})")

    def alike(self, cases: Sequence[Case]) -> list[Case]:
        """The next that share one version of their files: one process collects a file once."""
        by_head = [case for case in cases if case.nodeid not in self.tests]
        return by_head or list(cases)

    def files(self, cases: Iterable[Case]) -> tuple[tuple[str, str], ...]:
        """What the base arm collects in place of the head's, where these are to be run."""
        paths = dict.fromkeys(case.path for case in cases if case.nodeid in self.tests)
        return tuple((path, then) for path in paths if (then := self._versions(path)[0]) is not None)

    def edited(self, case: Case) -> bool:
        """Whether the change edits the file of a test."""
        then, now = self._versions(case.path)
        return then != now

    def another(self, case: Case) -> bool:
        """Whether a test says something else in the two versions of its file."""
        then, now = self._versions(case.path)
        return then is not None and not same_test(then, now, case.nodeid)

    def _taken(self, case: Case, why: str) -> bool:
        then, now = self._versions(case.path)
        if case.nodeid in self.tests or then in {None, now} or not has_test(then or "", case.nodeid):
            return False
        self.tests[case.nodeid] = why
        return True

    def _versions(self, path: str) -> tuple[str | None, str]:
        if path not in self._read:
            self._read[path] = self._texts(path) if self._texts is not None else (None, "")
        return self._read[path]
