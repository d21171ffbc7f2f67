"""Where arms meet the world: their maker and their proof."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate.model.arm import Leftover
    from pytest_perfgate.model.config import Config


def arms(root: Path, project: Config, paths: Sequence[str]) -> Any:
    """Makes arms of this repository."""
    from pytest_perfgate.adapters.arms.store import ArmStore
    from pytest_perfgate.model.arm import ArmSettings

    settings = ArmSettings(
        mode={"package": "overlay", "": "auto"}.get(project.arms, project.arms),
        projects=tuple(one.path for one in project.projects) or (".",),
        builds=tuple((one.path, one.build) for one in project.projects if one.build),
        build=tuple(project.build.splitlines()),
        editable=tuple(str((root / place).resolve()) for place in project.editable),
        tests=project.test_paths,
        packages=project.packages,
        accepted=project.baselines,
    )
    return ArmStore(root, settings, paths)


def taken_for_package(root: Path, project: Config) -> str:
    """What mends it where a build of this project would take its baselines for a package; empty where none would."""
    from pytest_perfgate.adapters.arms import backend

    return backend.taken_for_package(root, project.baselines)


def loaded_modules(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files and hashes of the package under test, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import proof

    return proof.loaded_modules(names) if names else ()


def beside_modules(root: Path, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files and hashes of tests and of what lies beside them, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import proof

    return proof.beside_modules(root, names)


def leftovers(root: Path, project: Config) -> tuple[Leftover, ...]:
    """What runs in two arms left behind: arms, locks, rounds, worktrees, children."""
    from pytest_perfgate.adapters.children.strays import stray_children
    from pytest_perfgate.model.arm import Leftover

    pids = stray_children()
    strays = (Leftover(path=str(pid), what="a child whose parent is gone", mend=f"kill {pid}") for pid in pids)
    return (*arms(root, project, ()).leftovers(), *strays)
