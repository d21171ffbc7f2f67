"""The settings that decide what a gate asks, flat and as text, as any revision has them."""

from __future__ import annotations

import configparser
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.stores.configuration import toml_reader
from pytest_perfgate.adapters.stores.declared import parse_declared
from pytest_perfgate.model.tools import DEPENDENCIES

Text = Callable[[str], "str | None"]
"""A file's text by its path below the root; ``None`` where there is none."""

_TOLD = (
    "addopts", "testpaths", "norecursedirs", "python_files", "python_classes", "python_functions",
    "collect_imported_tests", "pythonpath", "usefixtures",
)  # fmt: skip
"""What pytest is told of the tests that it looks for, of where it finds what they import, and of what runs around."""
_TOML = ("pytest.toml", ".pytest.toml")
_INI = (("pytest.ini", "pytest"), (".pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))


def settings_at(root: Path, show: Callable[[str, str], str | None], revision: str = "") -> Mapping[str, str]:
    """Every key of ``[tool.perfgate]``, what pytest is told of tests, and dependencies; of a revision, or of here.

    A file that does not read has no settings: where it is the one that is here, the run has ended before.
    """
    text: Text = (lambda path: show(revision, path)) if revision else (lambda path: _here(root / path))
    return dict(_all(text))


def folder_at(show: Callable[[str, str], str | None], revision: str) -> str:
    """The folder that a revision keeps its baselines in."""
    found = _table(_tool(show(revision, "pyproject.toml") or "").get("perfgate")).get("baselines")
    return found if isinstance(found, str) and found else "baselines"


def devices_at(show: Callable[[str, str], str | None], revision: str) -> tuple[str, ...]:
    """Patterns of the devices whose baselines a revision lists as its own."""
    found = _table(_tool(show(revision, "pyproject.toml") or "").get("perfgate")).get("devices")
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def target_at(text: str) -> str:
    """The branch that a ``pyproject.toml`` names as the target of changes."""
    found = _table(_tool(text).get("perfgate")).get("target")
    return found if isinstance(found, str) else ""


def _here(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _all(text: Text) -> Iterator[tuple[str, str]]:
    own = text("pyproject.toml") or ""
    if declared := parse_declared(own):
        yield DEPENDENCIES, _text(sorted(declared))
    tool = _tool(own)
    yield from _flat(_table(tool.get("perfgate")))
    pytest = _table(tool.get("pytest"))
    yield from _collecting({**_table(pytest.get("ini_options")), **pytest}, "pytest")
    for file in _TOML:
        yield from _collecting(_table(_parsed(text(file) or "").get("pytest")), file)
    for file, section in _INI:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text(file) or "")
        except configparser.Error:
            continue
        if parser.has_section(section):
            yield from _collecting(dict(parser.items(section)), file)


def _tool(text: str) -> Mapping[str, Any]:
    return _table(_parsed(text).get("tool"))


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        return _table(toml_reader().loads(text)) if text else {}
    except ValueError:
        return {}


def _table(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _collecting(table: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    for name in _TOLD:
        if name in table:
            yield f"{place}: {name}", _text(table[name])


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, given in table.items():
        at = f"{before}{name}"
        if isinstance(given, dict):
            yield from _flat(given, f"{at}.")
        elif isinstance(given, list) and given and all(isinstance(entry, dict) for entry in given):
            for number, entry in enumerate(given):
                own = f"{at}[{entry.get('pattern', entry.get('path', number))}]"
                yield from _flat(
                    {key: value for key, value in entry.items() if key != "pattern"} or {"": ""}, f"{own}."
                )
        else:
            yield at, _text(given)


def _text(given: object) -> str:
    return json.dumps(given, ensure_ascii=False, default=str)
