"""The project that a command works on: its folder, its settings, its stores, each read when first asked for."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate import wiring
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import stores

if TYPE_CHECKING:
    from pytest_perfgate.adapters.stores.baselines import Baselines
    from pytest_perfgate.model.config import Config

_SIGNS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", ".perfgate", ".git")


def add_root(parser: ArgumentParser) -> None:
    parser.add_argument("--root", default="", metavar="DIR", help="the project's folder (default: found upwards)")


class Project:
    """A folder with tests, settings, baselines and records."""

    def __init__(self, options: Namespace) -> None:
        self.root = _found(options.root)

    @cached_property
    def config(self) -> Config:
        return wiring.configuration(self.root)

    @cached_property
    def baselines(self) -> Baselines:
        found: Baselines = stores.baseline_store(self.root, self.config)
        return found

    @cached_property
    def records(self) -> Any:
        return stores.record_store(self.root)

    @cached_property
    def history(self) -> Any:
        return stores.history_store(self.root, self.config)

    @cached_property
    def repository(self) -> Any:
        return stores.repository(self.root, self.config.target)

    @property
    def ci(self) -> bool:
        return bool(os.environ.get("CI"))

    def shown(self, path: Path) -> str:
        """A path as a person in this project writes it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def _found(given: str) -> Path:
    """The folder that was named, or the nearest upwards that looks like a project's."""
    if given:
        if not Path(given).is_dir():
            raise PerfgateError("command-usage", "--root names no folder", place=given)
        return Path(given).absolute()
    here = Path.cwd()
    return next((p for p in (here, *here.parents) if any((p / sign).exists() for sign in _SIGNS)), here)
