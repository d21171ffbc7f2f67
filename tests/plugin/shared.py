"""One run of pytest that several tests look at, whatever worker of pytest-xdist they land on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pytest_perfgate.adapters.system.files import locked
from tests.plugin.projects import Project, Run


class Shared:
    """Runs by name; the first who asks for one makes it, the others wait for it and read it."""

    def __init__(self, folder: Path) -> None:
        own = bool(os.environ.get("PYTEST_XDIST_WORKER"))
        self._folder = (folder.parent if own else folder) / "shared"

    def __call__(self, name: str, make: Callable[[Project], Run]) -> Run:
        path = self._folder / f"{name}.json"
        self._folder.mkdir(exist_ok=True)
        with locked(self._folder, path):
            if not path.exists():
                root = self._folder / name
                root.mkdir()
                path.write_text(json.dumps(asdict(make(Project(root)))), encoding="utf-8")
        data = json.loads(path.read_text(encoding="utf-8"))
        tests = {test: (outcome, text) for test, (outcome, text) in data.pop("tests").items()}
        return Run(**data, tests=tests)
