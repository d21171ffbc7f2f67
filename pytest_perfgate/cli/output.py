"""What commands print: documents for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.cli.looking import columns, room, write, write_json
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError


def show(document: Document, options: Namespace) -> None:
    """The document as text, or as JSON where a program asked."""
    if options.json:
        write_json(plain(document))
    else:
        from pytest_perfgate.core.render.text import render_text

        write(render_text(document, columns(), room()))


def say(text: str, options: Namespace) -> None:
    """What was done; beside JSON or Markdown that is no part of the answer."""
    if options.json or getattr(options, "markdown", "") == "-":
        sys.stderr.write(f"{text}\n")
    else:
        write(text)


def say_written(options: Namespace) -> None:
    """Where the pages lie that were asked for."""
    for name in (options.html, options.markdown):
        if name and name != "-":
            say(f"wrote {name}", options)


def plain(value: Any) -> Any:
    """A value with JSON's own types only; what has no number in JSON becomes null."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(child) for key, child in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(child) for child in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def write_file(name: str, text: str) -> None:
    """Write a file that was asked for, with its folders."""
    path = placed(name)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise _unwritten(name, fault) from fault


def placed(name: str) -> Path:
    """The path of a file that was asked for, whose folders are there or are made."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise _unwritten(name, fault) from fault
    return path


def _unwritten(name: str, fault: OSError) -> PerfgateError:
    mend = "name a file in a folder that you may write to"
    return PerfgateError("delivery-failed", f"it cannot be written: {fault}", mend=mend, place=name)
