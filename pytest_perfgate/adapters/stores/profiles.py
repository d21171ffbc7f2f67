"""Where profiles lie: ``.perfgate/profiles/<mode>/<case>/<params>/<timestamp>/``."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.system.files import file_tail, indented, replace_content

_UNSAFE = re.compile(r"[^\w.\-=+]+")
_LONGEST = 80
_TAIL_LINES = 20
_PARAMETERS, _READ = "params.json", "metrics.json"
"""Written before anything is read, and after it was."""
Pages = Callable[[Path, Mapping[str, Any]], None]


class ProfileFolders:
    """Folders of profiles under a project's root."""

    def __init__(self, root: Path, pages: Pages | None = None) -> None:
        self._root, self._pages = root, pages

    def fresh(self, mode: str, nodeid: str) -> Path:
        """An empty folder for one profile; two at once get two."""
        case, _, params = nodeid.partition("[")
        home = (
            self._root / ".perfgate" / "profiles" / safe(mode) / safe(case) / (safe(params.removesuffix("]")) or "none")
        )
        stamp = time.strftime("%Y%m%dT%H%M%S")
        for number in range(1000):
            folder = home / (f"{stamp}-{number}" if number else stamp)
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            return folder
        raise FileExistsError(home)

    def earlier(self, folder: Path) -> Path | None:
        """The profile of the same case before this one, where there is one."""
        others = sorted(path for path in folder.parent.iterdir() if path.is_dir() and path.name < folder.name)
        return others[-1] if others else None

    def statement(self, artifact: Path) -> dict[str, str]:
        """What is known beside an artifact, as options of an inspector: the work of the call, the profile before."""
        folder = next((home for home in artifact.parents if (home / _PARAMETERS).is_file()), None)
        if folder is None:
            return {}
        held = json.loads((folder / _PARAMETERS).read_text(encoding="utf-8"))
        before = self.earlier(folder)
        baseline = before / artifact.relative_to(folder) if before and (before / _READ).is_file() else None
        given = {"problem": held.get("parameters"), **(held.get("work") or {})}
        if baseline is not None and baseline.is_file():
            given["baseline"] = baseline
        return {name: _named(text) for name, text in given.items() if text}

    def write_text(self, folder: Path, name: str, text: str) -> None:
        """Whole or not at all."""
        replace_content(folder / name, text.encode("utf-8"))

    def write_json(self, folder: Path, name: str, value: Any) -> None:
        self.write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    def read_json(self, folder: Path, name: str) -> dict[str, Any]:
        """What a child left; empty where it left nothing, or died while it wrote."""
        try:
            held = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        (folder / name).unlink()
        return held if isinstance(held, dict) else {}

    def tail(self, folder: Path, name: str) -> str:
        """The last lines of a log, indented."""
        return indented(file_tail(folder / name, _TAIL_LINES)).removeprefix("\n")

    def write_pages(self, folder: Path, views: Mapping[str, Any]) -> None:
        """Tables, pictures and pages of all views."""
        if self._pages is not None:
            self._pages(folder, views)


def _named(given: Any) -> str:
    """Parameters by name in one line; anything else as its text."""
    return ", ".join(f"{name}={text}" for name, text in given.items()) if isinstance(given, dict) else str(given)


def safe(text: str) -> str:
    """A file name that says where it is from and cannot leave its folder."""
    return _UNSAFE.sub("-", text.replace("..", "-")).strip("-.")[:_LONGEST]
