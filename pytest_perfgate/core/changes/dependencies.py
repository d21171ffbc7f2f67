"""What a change does to what is installed (pins, lock files, toolchains): two builds share it and cannot compare it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from pytest_perfgate.core.render.words import first_of
from pytest_perfgate.model.values import value

_FILES = re.compile(
    r"(^|/)(requirements[\w.-]*\.(txt|in)|constraints[\w.-]*\.txt|[\w.-]+\.lock|package-lock\.json|go\.sum"
    r"|environment[\w.-]*\.ya?ml|conda-lock\.ya?ml|pixi\.toml|Pipfile|flake\.(nix|lock)"
    r"|\.python-version|\.tool-versions|mise\.toml|rust-toolchain(\.toml)?|[\w.-]*Dockerfile[\w.-]*|[\w.-]+\.cmake)$"
)
"""Lock files, pins of an environment, and what names a toolchain or an image."""

_SHOWN = 3

Move = tuple[str, str, str]
"""A fact of the environment: its name, what it was when the line was accepted, what it is."""


@value
class EnvironmentEdits:
    """What the change under test edits of it."""

    requirements: tuple[str, ...] = ()
    """Declared dependencies, ``-numpy>=1`` and ``+numpy>=2``."""
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements or self.files)

    def text(self) -> str:
        """``this change edits -fastdep>=1.0, +fastdep>=1.1``."""
        return f"this change edits {first_of((*self.requirements, *self.files), _SHOWN)}"


def environment_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that decide what is installed or built with."""
    return tuple(path for path in paths if _FILES.search(path))


def requirements(then: str, now: str) -> tuple[str, ...]:
    """Of two lists of declared dependencies as JSON, what one has and the other has not."""
    before, after = json.loads(then), json.loads(now)
    return (*(f"-{one}" for one in before if one not in after), *(f"+{one}" for one in after if one not in before))


def brought(moves: Iterable[Move], edits: EnvironmentEdits, installed: Collection[str]) -> str:
    """Why a time that moved is the change's own doing; empty where it is not.

    ``installed`` names what files of a project decide: packages and Python, no device and no driver.
    """
    known = tuple(moves)
    packages = {_package(name) for name, _, _ in known if name in installed}
    declared = {_package(one[1:]) for one in edits.requirements}
    by_pin = bool(packages & declared)
    by_file = bool(edits.files and packages)
    unexplained = bool(edits) and not known
    return edits.text() if by_pin or by_file or unexplained else ""


def _package(requirement: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[@(]", requirement.strip(), maxsplit=1)[0]).lower()
