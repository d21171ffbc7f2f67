"""Paths and commands as they work from where the user stands, which need not be the project's folder."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_OURS = re.compile(r"perfgate (accept|report|review|prune|history|doctor|ceilings|clocks)\b")
_NAMED = re.compile(r"((?:pytest|perfgate profile)\b[^']*?\s)('(?:[^']|'\"'\"')*'|[\w@%+=:./-]*::[\w@%+=:./-]*\w)")
"""A command that takes node ids as pytest does, from where it is started, and the first of them."""


class Standpoint:
    """The folder in which pytest was started, seen beside the project's own."""

    def __init__(self, config: pytest.Config) -> None:
        self._here = Path(config.invocation_params.dir)
        self._root = config.rootpath
        self._way = self.path(self._root)

    def path(self, path: Path) -> str:
        """How to reach a file or a folder from here; on another drive there is only its whole name."""
        try:
            return Path(os.path.relpath(path, self._here)).as_posix()
        except ValueError:
            return str(path)

    def nodeid(self, name: str) -> str:
        """A test as pytest takes it here."""
        return name if self._way == "." else f"{self._way}/{name}"

    def command(self, text: str) -> str:
        """A command that was written for the project's folder."""
        if self._way == ".":
            return text
        if _OURS.match(text):
            return f"{text} --root {shlex.quote(self._way)}"
        if found := _NAMED.match(text):
            (name,) = shlex.split(found[2])
            return f"{found[1]}{shlex.quote(self.nodeid(name))}{text[found.end() :]}"
        return f"{text} {shlex.quote(self._way)}" if text.startswith("pytest ") else text
