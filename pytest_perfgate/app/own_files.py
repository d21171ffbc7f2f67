"""Test files that the base arm cannot collect as the head has them: it takes its own revision's version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_perfgate.core.gate.bodies import same_test
from pytest_perfgate.model.plan import Case

Texts = Callable[[str], "tuple[str | None, str]"]
"""A test file's text at the base, where it is there, and in the working copy; by its path from the root."""


class OwnFiles:
    """Which files the base arm has of its own, found out by its failing to collect the head's."""

    def __init__(self, texts: Texts | None) -> None:
        self._texts = texts
        self.files: dict[str, str] = {}

    def take(self, lost: Iterable[Case], errors: Sequence[str]) -> list[Case]:
        """Of tests that the base arm could not collect, those that are the same in its own version of the file."""
        failed = [case for case in lost if any(error.startswith(f"{case.path}:") for error in errors)]
        found = {path: self._texts(path) for path in {case.path for case in failed} - self.files.keys() if self._texts}
        self.files |= {path: then for path, (then, _) in found.items() if then is not None}
        return [case for case in failed if case.path in found and _same(found[case.path], case.nodeid)]


def _same(texts: tuple[str | None, str], nodeid: str) -> bool:
    then, now = texts
    return then is not None and same_test(then, now, nodeid)
