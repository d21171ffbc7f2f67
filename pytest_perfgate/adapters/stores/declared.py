"""What a project declares to depend on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.stores.configuration import toml_reader

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def declared_names(root: Path, projects: Iterable[str]) -> frozenset[str]:
    """Names in ``[project] dependencies`` of these folders, as an index spells them; none of a broken file."""
    texts = (_text(root / project / "pyproject.toml") for project in projects)
    found = (_NAME.match(requirement) for text in texts for requirement in parse_declared(text))
    return frozenset(plain_name(one.group(1)) for one in found if one is not None)


def parse_declared(text: str) -> tuple[str, ...]:
    """The requirements of a ``pyproject.toml``, one text each."""
    if "dependencies" not in text:
        return ()
    try:
        project: Any = toml_reader().loads(text).get("project")
    except ValueError:
        return ()
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()


def plain_name(name: str) -> str:
    """Dots, dashes and underscores are one in the name of a package, and so are capitals."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
