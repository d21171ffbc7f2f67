"""Arms: one side of a comparison, an environment with one revision of the package under test."""

from __future__ import annotations

from typing import Protocol

from pytest_perfgate.model.values import value


@value
class ArmSettings:
    """How arms are made, from ``[tool.perfgate]``."""

    mode: str = "auto"
    """``overlay`` installs the package beside its dependencies; ``worktree`` runs inside a checkout."""
    projects: tuple[str, ...] = (".",)
    """Folders with a ``pyproject.toml`` or ``setup.py``, relative to the repository."""
    build: tuple[str, ...] = ()
    """Commands instead of a wheel build; ``{source}``, ``{site}`` and ``{python}`` are filled in."""
    editable: tuple[str, ...] = ()
    """Source folders of other editable dependencies, which an overlay cannot see by itself."""
    tests: tuple[str, ...] = ()
    """Paths that a worktree arm takes from the working copy."""
    timeout_s: float = 900.0
    builds: tuple[tuple[str, str], ...] = ()
    """(project, command) of projects that are built by a command of their own."""
    packages: tuple[str, ...] = ()
    """Import names that the proof of an arm speaks of; none means all that was built."""
    accepted: str = "baselines"
    """Folder of the baselines below the root, which a build must not take for a package."""


@value
class Arm:
    """A prepared side: how to start pytest in it, and what it must prove to have loaded."""

    name: str
    revision: str
    tree: str
    dirty: bool
    mode: str
    python: str
    launch: tuple[str, ...]
    """The command line up to and including pytest."""
    environment: tuple[tuple[str, str], ...]
    """Variables set on top of the caller's: caches that the arms must not share."""
    cwd: str
    root: str
    """Every module of the package under test must lie below this folder."""
    modules: tuple[str, ...]
    """Top-level import names of the package under test."""
    digest: str
    reused: bool = False
    content: str = ""
    """Hash of all files that this side may load as the package under test; empty where it was not taken."""


@value
class Leftover:
    """Something that an interrupted run left behind."""

    path: str
    what: str
    mend: str


class Arms(Protocol):
    """Makes arms, keeps them for the next run, and finds what was left behind."""

    def prepare(self, name: str, revision: str) -> Arm:
        """The arm of a commit; an empty revision means the working copy as it stands."""

    def leftovers(self) -> tuple[Leftover, ...]: ...

    def remove(self) -> None:
        """Delete every arm and its registration."""
