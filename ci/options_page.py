"""Writes docs/options.md from the option table and the configuration table; a test holds it true."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.model.project import KEYS, POLICIES, TEST_KEYS, ConfigKey
from pytest_perfgate.plugin.collect import KEYWORDS
from pytest_perfgate.plugin.options import OPTIONS
from pytest_perfgate.wiring.built_ins import BuiltIns

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
HEAD = """# Options and configuration

The command line wins over the marker, the marker over `[tool.perfgate]`, and that over the default. "In CI" means that
the environment variable `CI` is set. `perfgate COMMAND --help` lists the options of a command.

## Options of pytest

"""
FILES_HEAD = """
## Options of a kind of file

`inspect`, `check` and `compare` take these by `--set NAME=VALUE`; some have a short form, such as `--peak`. A file of
another kind refuses them. The results of other benchmark tools have none.

"""
TITLES = {
    "kineto": "PyTorch traces",
    "nsys": "Nsight Systems",
    "cubin": "cubins",
    "ncu": "Nsight Compute",
    "rocprof": "rocprof",
}
TESTS_HEAD = """
### `[[tool.perfgate.tests]]`

Settings for the tests whose node ids match a pattern (`*` and `?`; brackets stand for themselves). Where several
entries match, a later one replaces an earlier one. A run of all tests names at its end a pattern that matches no gated
test, and fails in CI.

"""
KINDS = {
    "text": "text",
    "texts": "text or list",
    "words": "command line or list",
    "commands": "text",
    "count": "whole number",
    "seconds": 'seconds or `"200 ms"`',
    "choice": "",
    "share": "share",
    "policy": "table",
    "tests": "list of tables",
    "tables": "tables by name",
    "projects": "list of folders or tables",
    "options": "texts by name",
}


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *(" | ".join(row) for row in rows)]
    return "".join(f"| {line} |\n" for line in lines)


def code(option: str) -> str:
    """Return an option as code; alternatives stand apart, since the site shows the backslash of an escaped bar."""
    return f"`{option}`".replace("|", "` or `")


def option_rows() -> list[list[str]]:
    rows = []
    for option in OPTIONS:
        settings = option.settings
        value = "|".join(settings["choices"]) if "choices" in settings else settings.get("metavar", "")
        shown = code(f"{option.name} [{value}]" if settings.get("nargs") == "?" else f"{option.name}={value}")
        in_ci = f"; in CI {option.ci}" if option.ci and option.ci != option.local else ""
        rows.append([shown, option.doc, option.local + in_ci])
    return rows


def file_rows() -> list[list[str]]:
    """Return one row for each option of a kind of file; kinds that share it stand in the same row."""
    kinds_of: dict[tuple[str, str], list[str]] = {}
    for kind in BuiltIns().pytest_perfgate_inspectors():
        for name, doc in kind.options:
            if name != "limits":  # the command itself passes these
                kinds_of.setdefault((name, doc), []).append(TITLES[kind.name])
    rows = sorted(kinds_of.items(), key=lambda row: (row[1][0] != TITLES["kineto"], row[0]))
    return [[f"`{name}`", ", ".join(kinds), doc.replace("|", "\\|")] for (name, doc), kinds in rows]


def key_rows(keys: tuple[ConfigKey, ...]) -> list[list[str]]:
    return [
        [f"`{key.name}`", " or ".join(f"`{c}`" for c in key.choices) or KINDS[key.kind], key.doc, key.default or "none"]
        for key in keys
    ]


def policy_rows() -> list[list[str]]:
    return [[f"`{name}`", " or ".join(f"`{value}`" for value in values), doc] for name, values, doc in POLICIES]


def render() -> str:
    heads = ["key", "value", "meaning", "default"]
    return (
        HEAD
        + table(["option", "meaning", "default"], option_rows())
        + FILES_HEAD
        + table(["option", "of", "meaning"], file_rows())
        + "\n## Keywords of the marker\n\nPositional texts are limits; the keywords are "
        + ", ".join(f"`{name}`" for name in KEYWORDS)
        + ".\n\n## `[tool.perfgate]` in pyproject.toml\n\nA key that is not listed is an error.\n\n"
        + table(heads, key_rows(KEYS))
        + TESTS_HEAD
        + table(heads[:3], [row[:3] for row in key_rows(TEST_KEYS)])
        + "\n### `[tool.perfgate.policy]`\n\n"
        + table(["key", "values", "asked when"], policy_rows())
    )


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
