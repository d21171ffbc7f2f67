"""Reads ``[tool.perfgate]`` of pyproject.toml; every complaint names its path in the file."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_perfgate.model.config import KEYS, POLICIES, TEST_KEYS, Config, ConfigKey, ConfigPattern, ConfigProject
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import span_seconds


def read_config(root: Path) -> Config:
    """The settings of the project whose ``pyproject.toml`` lies in this folder."""
    path = root / "pyproject.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("config-unreadable", f"{path.name} cannot be read: {fault}", place=str(path)) from fault
    return parse_config(text, place=path.name)


def parse_config(text: str, *, place: str) -> Config:
    """The settings that a TOML text makes."""
    if "perfgate" not in text:
        return Config()
    try:
        table = toml_reader().loads(text)
    except ValueError as fault:
        raise PerfgateError("config-unreadable", f"not TOML: {fault}", place=place) from fault
    own = table.get("tool", {}).get("perfgate", {})
    where = f"{place}: tool.perfgate"
    if not isinstance(own, dict):
        raise _wrong(where, "a table", own)
    return Config(**_fields(own, KEYS, where), source=place)


def toml_reader() -> Any:
    """The standard reader, or before Python 3.11 the one that pytest brings along."""
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _fields(table: Mapping[str, Any], keys: Sequence[ConfigKey], place: str) -> dict[str, Any]:
    known = {key.name: key for key in keys}
    for name in table:
        if name not in known:
            raise _unknown(name, known, place)
    return {name: _READERS[known[name].kind](given, f"{place}.{name}", known[name]) for name, given in table.items()}


def _unknown(name: str, known: Iterable[str], place: str) -> PerfgateError:
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    mend = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(sorted(known))}"
    return PerfgateError("config-unknown-key", f"{name!r} is no setting", mend=mend, place=place)


def _wrong(place: str, wanted: str, given: object) -> PerfgateError:
    return PerfgateError("config-value", f"expected {wanted}, found {given!r}", place=place)


def _text(given: Any, place: str, key: ConfigKey) -> str:
    del key
    if not isinstance(given, str):
        raise _wrong(place, "a text", given)
    return given


def _texts(given: Any, place: str, key: ConfigKey) -> tuple[str, ...]:
    del key
    items = [given] if isinstance(given, str) else given
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _wrong(place, "a text or a list of texts", given)
    return tuple(items)


def _words(given: Any, place: str, key: ConfigKey) -> tuple[str, ...]:
    return tuple(shlex.split(given)) if isinstance(given, str) else _texts(given, place, key)


def _count(given: Any, place: str, key: ConfigKey) -> int:
    del key
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise _wrong(place, "a whole number from 1", given)
    return given


_LASTING = frozenset({"budget", "timeout"})
"""Spans in which something is to happen; a warm-up or a floor may be none."""


def _seconds(given: Any, place: str, key: ConfigKey) -> float:
    span = parse_seconds(given, place)
    if not span and key.name in _LASTING:
        raise _wrong(place, "more than no time at all", given)
    return span


def parse_seconds(given: Any, place: str) -> float:
    """Seconds from a number, or from a text with a unit such as ``200 ms``."""
    span = None if isinstance(given, bool) else span_seconds(str(given))
    if span is None:
        raise _wrong(place, "seconds, or a text such as '200 ms'", given)
    return span


def _choice(given: Any, place: str, key: ConfigKey) -> str:
    if given not in key.choices:
        raise _wrong(place, f"one of {', '.join(key.choices)}", given)
    return str(given)


def _policy(given: Any, place: str, key: ConfigKey) -> tuple[tuple[str, str], ...]:
    del key
    if not isinstance(given, dict):
        raise _wrong(place, "a table", given)
    allowed = {name: values for name, values, _ in POLICIES}
    for name, chosen in given.items():
        if name not in allowed:
            raise _unknown(name, allowed, place)
        if chosen not in allowed[name]:
            raise _wrong(f"{place}.{name}", f"one of {', '.join(allowed[name])}", chosen)
    return tuple(given.items())


def _tests(given: Any, place: str, key: ConfigKey) -> tuple[ConfigPattern, ...]:
    del key
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        raise _wrong(place, "a list of tables, [[tool.perfgate.tests]]", given)
    patterns = []
    for number, entry in enumerate(given):
        here = f"{place}[{number}]"
        if "pattern" not in entry:
            raise PerfgateError("config-value", "a table of tests needs its pattern", place=here)
        patterns.append(ConfigPattern(**_fields(entry, TEST_KEYS, here), place=here))
    return tuple(patterns)


def _projects(given: Any, place: str, key: ConfigKey) -> tuple[ConfigProject, ...]:
    """Folders, or tables with a folder and the command that builds it."""
    del key
    if not isinstance(given, list):
        raise _wrong(place, "a list of folders", given)
    return tuple(_project(entry, f"{place}[{number}]") for number, entry in enumerate(given))


def _project(entry: Any, place: str) -> ConfigProject:
    table = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "path" not in table:
        raise _wrong(place, "a folder, or {path = ..., build = ...}", entry)
    return ConfigProject(**_fields(table, _PROJECT_KEYS, place))


def _tables(given: Any, place: str, key: ConfigKey) -> tuple[tuple[str, object], ...]:
    """Tables by name; whoever needs them knows their keys."""
    del key
    if not isinstance(given, dict) or not all(isinstance(entry, dict) for entry in given.values()):
        raise _wrong(place, "tables by name", given)
    return tuple(given.items())


def _options(given: Any, place: str, key: ConfigKey) -> tuple[tuple[str, str], ...]:
    """Options of an inspector by name; the inspector knows which there are."""
    del key
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise _wrong(place, "texts by name", given)
    return tuple(given.items())


_PROJECT_KEYS = (ConfigKey(name="path", kind="text", doc=""), ConfigKey(name="build", kind="text", doc=""))
_READERS: dict[str, Callable[[Any, str, ConfigKey], Any]] = {
    "text": _text,
    "texts": _texts,
    "words": _words,
    "count": _count,
    "seconds": _seconds,
    "choice": _choice,
    "policy": _policy,
    "tests": _tests,
    "tables": _tables,
    "projects": _projects,
    "options": _options,
}
