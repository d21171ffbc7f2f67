"""The composition root of looking into files from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Union

from pytest_perfgate.app.inspect import choose, inspect
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.wiring import command_line_tools

Place = Union[str, Path]


def look(*paths: Place, **options: Any) -> Analysis:
    """Look into a file, or the several of one job; options are those of ``perfgate inspect --set``."""
    tools = command_line_tools(Path.cwd())
    return inspect([Path(path) for path in paths], _texts(options), inspectors=tools.inspectors, peek=tools.peek)


def compare(before: Place, after: Place, **options: Any) -> Analysis:
    """Compare two files of one kind; the first is the reference."""
    tools = command_line_tools(Path.cwd())
    paths, given = [Path(before), Path(after)], _texts(options)
    inspector = choose(paths, given, inspectors=tools.inspectors, peek=tools.peek)
    return inspector.compare(paths[:1], paths[1:], given)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}
