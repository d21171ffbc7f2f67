"""The settings of ``[tool.perfgate]``."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import (
    DEPENDENCIES,
    KEYS,
    POLICIES,
    TEST_KEYS,
    Config,
    ConfigKey,
    ConfigPattern,
    ConfigProject,
)
from pytest_perfgate.model.values import regex, span_seconds

_DAMAGED = frozenset("\0\x1f")
"""UTF-16 read as UTF-8 has NUL before each letter, and a gzip file begins with the other byte."""


def read_config(root: Path, *, whole: bool = False) -> Config:
    """Return the settings of the ``pyproject.toml`` in this folder; ``whole`` parses it in any case."""
    path = root / "pyproject.toml"
    if path.exists() and not path.is_file():
        raise PerfgateError("config-unreadable", f"{path.name} is no file", place=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as fault:
        raise PerfgateError("config-unreadable", f"{path.name} cannot be read: {fault}", place=str(path)) from fault
    return parse_config(text, place=path.name, whole=whole)


def parse_config(text: str, *, place: str, whole: bool = False) -> Config:
    """Return the settings of a TOML text; one without the word perfgate is only parsed with ``whole``."""
    if not whole and "perfgate" not in text and not _DAMAGED.intersection(text):
        return Config()
    try:
        table = toml_reader().loads(text)
    except ValueError as fault:
        where = str(fault).replace("at end of document", f"at line {len(text.splitlines())}, its end")
        raise PerfgateError("config-unreadable", f"not TOML: {where}", place=place) from fault
    own = _table(table.get("tool")).get("perfgate", {})
    where = f"{place}: tool.perfgate"
    if not isinstance(own, dict):
        raise _wrong(where, "a table", own)
    return Config(**_fields(own, KEYS, where), source=place)


def toml_reader() -> Any:
    """Return the standard TOML reader, or before Python 3.11 the one that pytest includes."""
    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _fields(table: Mapping[str, Any], keys: Sequence[ConfigKey], place: str) -> dict[str, Any]:
    by_name = {key.name: key for key in keys}
    for name in table:
        if name not in by_name:
            raise _unknown(name, by_name, place)
    return {
        name: _READERS[by_name[name].kind](setting, f"{place}.{name}", by_name[name]) for name, setting in table.items()
    }


_RENAMED = {"conviction": "confirmation", "baseless": "no_base"}
"""Former names of settings and policies, with the present ones."""


def _unknown(name: str, allowed: Iterable[str], place: str) -> PerfgateError:
    names, today = list(allowed), _RENAMED.get(name, "")
    if today in names:
        return PerfgateError("config-unknown-key", f"{name!r} is now {today!r}", fix=f"write {today}", place=place)
    import difflib

    near = difflib.get_close_matches(name, names, n=3)
    fix = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(sorted(names))}"
    return PerfgateError("config-unknown-key", f"{name!r} is not a setting", fix=fix, place=place)


def _wrong(place: str, wanted: str, setting: object) -> PerfgateError:
    return PerfgateError("config-value", f"expected {wanted}, found {setting!r}", place=place)


def _text(setting: Any, place: str, key: ConfigKey) -> str:
    del key
    if not isinstance(setting, str):
        raise _wrong(place, "a text", setting)
    return setting


def _texts(setting: Any, place: str, key: ConfigKey) -> tuple[str, ...]:
    del key
    items = [setting] if isinstance(setting, str) else setting
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise _wrong(place, "a text or a list of texts", setting)
    return tuple(items)


def _words(setting: Any, place: str, key: ConfigKey) -> tuple[str, ...]:
    return _parts(setting, place) if isinstance(setting, str) else _texts(setting, place, key)


def _commands(setting: Any, place: str, key: ConfigKey) -> str:
    """Return commands, one a line, that a shell could divide into words."""
    text = _text(setting, place, key)
    for line in text.splitlines():
        _parts(line, place, comments=True)
    return text


def _parts(command: str, place: str, *, comments: bool = False) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command, comments=comments))
    except ValueError:
        raise _wrong(place, "a command with all of its quotes closed", command) from None


def _count(setting: Any, place: str, key: ConfigKey) -> int:
    del key
    if not isinstance(setting, int) or isinstance(setting, bool) or setting < 1:
        raise _wrong(place, "a whole number from 1", setting)
    return setting


_LASTING = frozenset({"budget", "timeout"})
"""Spans that must be positive; a warm-up or a floor may be zero."""


def _seconds(setting: Any, place: str, key: ConfigKey) -> float:
    span = parse_seconds(setting, place)
    if not span and key.name in _LASTING:
        raise _wrong(place, "more than no time at all", setting)
    return span


def parse_seconds(setting: Any, place: str) -> float:
    """Return seconds from a number, or from a text with a unit such as ``200 ms``."""
    span = None if isinstance(setting, bool) else span_seconds(str(setting))
    if span is None:
        raise _wrong(place, "seconds, or a text such as '200 ms'", setting)
    return span


def _choice(setting: Any, place: str, key: ConfigKey) -> str:
    if setting not in key.choices:
        raise _not_among(key.choices, place, setting)
    return str(setting)


def _not_among(words: Sequence[str], place: str, setting: Any) -> PerfgateError:
    import difflib

    near = difflib.get_close_matches(str(setting), words, n=1)
    fix = f"did you mean {near[0]!r}?" if near else f"write {' or '.join(map(repr, words))}"
    return PerfgateError("config-value", f"expected one of {', '.join(words)}, found {setting!r}", fix=fix, place=place)


def _share(setting: Any, place: str, key: ConfigKey) -> float:
    """Return ``10%`` as a fraction; ``off`` as infinity."""
    del key
    if setting == "off":
        return math.inf
    match = re.fullmatch(r"([0-9]+\.?[0-9]*)\s*%", setting) if isinstance(setting, str) else None
    if match is None:
        fix = "a revision is named by anchor_revision" if isinstance(setting, str) else ""
        what = f"expected a share such as 10%, or off, found {setting!r}"
        raise PerfgateError("config-value", what, fix=fix, place=place)
    return float(match[1]) / 100


def _policy(setting: Any, place: str, key: ConfigKey) -> tuple[tuple[str, str], ...]:
    del key
    if not isinstance(setting, dict):
        raise _wrong(place, "a table", setting)
    allowed = {name: values for name, values, _ in POLICIES}
    for name, chosen in setting.items():
        if name not in allowed:
            raise _unknown(name, allowed, place)
        if chosen not in allowed[name]:
            raise _not_among(allowed[name], f"{place}.{name}", chosen)
    return tuple(setting.items())


def _tests(setting: Any, place: str, key: ConfigKey) -> tuple[ConfigPattern, ...]:
    del key
    if not isinstance(setting, list) or not all(isinstance(entry, dict) for entry in setting):
        raise _wrong(place, "a list of tables, [[tool.perfgate.tests]]", setting)
    patterns = []
    for number, entry in enumerate(setting):
        entry_place = f"{place}[{number}]"
        if "pattern" not in entry:
            raise PerfgateError("config-value", "a table of tests needs its pattern", place=entry_place)
        patterns.append(ConfigPattern(**_fields(entry, TEST_KEYS, entry_place), place=entry_place))
    return tuple(patterns)


def _projects(setting: Any, place: str, key: ConfigKey) -> tuple[ConfigProject, ...]:
    """Return folders, or tables with a folder and the command that builds it."""
    del key
    if not isinstance(setting, list):
        raise _wrong(place, "a list of folders", setting)
    return tuple(_project(entry, f"{place}[{number}]") for number, entry in enumerate(setting))


def _project(entry: Any, place: str) -> ConfigProject:
    table = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or "path" not in table:
        raise _wrong(place, "a folder, or {path = ..., build = ...}", entry)
    return ConfigProject(**_fields(table, _PROJECT_KEYS, place))


def _tables(setting: Any, place: str, key: ConfigKey) -> tuple[tuple[str, object], ...]:
    """Return tables by name; their keys are checked where they are used."""
    del key
    if not isinstance(setting, dict) or not all(isinstance(entry, dict) for entry in setting.values()):
        raise _wrong(place, "tables by name", setting)
    return tuple(setting.items())


def _options(setting: Any, place: str, key: ConfigKey) -> tuple[tuple[str, str], ...]:
    """Return options of an inspector by name; the inspector checks them."""
    del key
    if not isinstance(setting, dict) or not all(isinstance(text, str) for text in setting.values()):
        raise _wrong(place, "texts by name", setting)
    return tuple(setting.items())


_PROJECT_KEYS = (ConfigKey(name="path", kind="text", doc=""), ConfigKey(name="build", kind="commands", doc=""))

_READERS: dict[str, Callable[[Any, str, ConfigKey], Any]] = {
    "text": _text,
    "texts": _texts,
    "words": _words,
    "commands": _commands,
    "count": _count,
    "seconds": _seconds,
    "choice": _choice,
    "share": _share,
    "policy": _policy,
    "tests": _tests,
    "tables": _tables,
    "projects": _projects,
    "options": _options,
}

Text = Callable[[str], "str | None"]
"""Returns a file's text by its path below the root; ``None`` if it does not exist."""

_SILENT = re.compile(
    r"(log|junit|doctest|tmp_path|truncation|verbosity|faulthandler|strict|xfail|enable_assertion|timeout|asyncio)_.*"
    r"|ini_options|strict|minversion|required_plugins|markers|filterwarnings|console_output_style|cache_dir|timeout"
)
"""Settings that only change what pytest reports or insists on; a conftest may read any other as the size of a test."""

_TOML = ("pytest.toml", ".pytest.toml")

_INI = (("pytest.ini", "pytest"), (".pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"))


def settings_at(root: Path, show: Callable[[str, str], str | None], revision: str = "") -> Mapping[str, str]:
    """Return all of ``[tool.perfgate]``, settings of pytest and its plugins, and dependencies, at a revision or here.

    An unreadable file gives no settings; an unreadable one in the work tree has already ended the run.
    """
    text: Text = (lambda path: show(revision, path)) if revision else (lambda path: _read_text(root / path))
    return dict(_all(text))


def folder_at(show: Callable[[str, str], str | None], revision: str) -> str:
    """Return the folder in which a revision keeps its baselines."""
    folder = _table(_tool(show(revision, "pyproject.toml") or "").get("perfgate")).get("baselines")
    return folder if isinstance(folder, str) and folder else "baselines"


def devices_at(show: Callable[[str, str], str | None], revision: str) -> tuple[str, ...]:
    """Return the patterns of the devices whose baselines a revision lists as its own."""
    patterns = _table(_tool(show(revision, "pyproject.toml") or "").get("perfgate")).get("devices")
    return tuple(pattern for pattern in patterns if isinstance(pattern, str)) if isinstance(patterns, list) else ()


def target_at(text: str) -> str:
    """Return the branch that a ``pyproject.toml`` names as the target of changes."""
    target = _table(_tool(text).get("perfgate")).get("target")
    return target if isinstance(target, str) else ""


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _all(text: Text) -> Iterator[tuple[str, str]]:
    own = text("pyproject.toml") or ""
    if declared := parse_declared(own):
        yield DEPENDENCIES, _setting_text(sorted(declared))
    tool = _tool(own)
    yield from _flatten(_table(tool.get("perfgate")))
    pytest = _table(tool.get("pytest"))
    yield from _collecting({**_table(pytest.get("ini_options")), **pytest}, "pytest")
    yield from _flatten(_table(tool.get("pytest_env")), "pytest_env: ")
    for file in _TOML:
        yield from _collecting(_table(_parsed(text(file) or "").get("pytest")), file)
    import configparser

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


def _table(setting: object) -> Mapping[str, Any]:
    return setting if isinstance(setting, dict) else {}


def _collecting(table: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    for name in table:
        if not _SILENT.fullmatch(name):
            yield f"{place}: {name}", _setting_text(table[name])


def _flatten(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, setting in table.items():
        at = f"{before}{name}"
        if isinstance(setting, dict):
            yield from _flatten(setting, f"{at}.")
        elif isinstance(setting, list) and setting and all(isinstance(entry, dict) for entry in setting):
            for number, entry in enumerate(setting):
                own = f"{at}[{entry.get('pattern', entry.get('path', number))}]"
                yield from _flatten(
                    {key: value for key, value in entry.items() if key != "pattern"} or {"": ""}, f"{own}."
                )
        else:
            yield at, _setting_text(setting)


def _setting_text(setting: object) -> str:
    return json.dumps(setting, ensure_ascii=False, default=str)


_NAME = regex(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def declared_names(root: Path, projects: Iterable[str]) -> frozenset[str]:
    """Return the normalised names in ``[project] dependencies`` of these folders; none for a broken file."""
    texts = (_read_text(root / project / "pyproject.toml") or "" for project in projects)
    matches = (_NAME.match(requirement) for text in texts for requirement in parse_declared(text))
    return frozenset(plain_name(match.group(1)) for match in matches if match is not None)


def parse_declared(text: str) -> tuple[str, ...]:
    """Return the requirements of a ``pyproject.toml``, one text each."""
    if "dependencies" not in text:
        return ()
    try:
        project: Any = toml_reader().loads(text).get("project")
    except ValueError:
        return ()
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return tuple(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else ()


def plain_name(name: str) -> str:
    """Return a package's name with dots, dashes, underscores and capitals normalised."""
    return re.sub(r"[-_.]+", "-", name).lower()
