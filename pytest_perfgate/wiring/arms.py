"""Where arms meet the world: their maker and their proof."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate.model.config import Config


def arms(root: Path, project: Config, paths: Sequence[str]) -> Any:
    """Makes arms of this repository."""
    from pytest_perfgate.adapters.arms.store import ArmStore
    from pytest_perfgate.model.arm import ArmSettings

    build = (project.build,) if project.build else ()
    mode = {"package": "overlay", "": "auto"}.get(project.arms, project.arms)
    return ArmStore(root, ArmSettings(mode=mode, build=build, editable=project.editable), paths)


def loaded_modules(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Files and hashes of the package under test, as this process has loaded it."""
    from pytest_perfgate.adapters.arms import proof

    return proof.loaded_modules(names) if names else ()
