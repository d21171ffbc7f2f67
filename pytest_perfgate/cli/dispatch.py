"""Find the command, run it, and turn every failure into a sentence and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import pytest_perfgate
from pytest_perfgate.cli.commands import GROUPS
from pytest_perfgate.cli.page import Page
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.refusals import refusal, speaks_of_a_file

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


_HOMES = {"merge-driver": "merge_driver"}
"""Commands that stand in a module of another name."""


def command_module(name: str) -> ModuleType:
    """The module of a command: it holds ``run_NAME``, ``NAME_arguments`` and ``NAME_ABOUT``."""
    return import_module(f"pytest_perfgate.cli.{_HOMES.get(name, name)}")


def description(name: str) -> str:
    """The text that ``perfgate NAME --help`` begins with."""
    return str(getattr(command_module(name), f"{_key(name).upper()}_ABOUT"))


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Give the parser the arguments of a command."""
    getattr(command_module(name), f"{_key(name)}_arguments")(parser)


def _key(name: str) -> str:
    return name.replace("-", "_")


def dispatch(argv: list[str]) -> int:
    """Run ``perfgate COMMAND ...``."""
    if not argv or argv[0] in {"-h", "--help", "help"}:
        sys.stdout.write(overview())
        return 0 if argv else USAGE
    if argv[0] in {"-V", "--version"}:
        sys.stdout.write(f"perfgate {pytest_perfgate.__version__}\n")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in {command for commands in GROUPS.values() for command in commands}:
        if "--json" in rest:
            sys.stdout.write(_error_json("command-usage", f"there is no command '{name}'", _nearest(name)))
        sys.stderr.write(f"perfgate: there is no command '{name}'\n  next  {_nearest(name)}\n")
        return USAGE
    return _guarded(name, rest)


def overview() -> str:
    """What there is, by group."""
    lines = ["usage: perfgate COMMAND [...]      perfgate COMMAND --help", ""]
    for group, commands in GROUPS.items():
        lines += [group, *(f"  {name:<14} {text}" for name, text in commands.items()), ""]
    lines.append("All commands take --json. Exit codes: 0 kept, 1 regressed or broken, 2 usage,")
    lines.append("3 undecided, 4 not measured or invalid, 10 and up an error of perfgate's own.")
    return "\n".join(lines) + "\n"


def _guarded(name: str, rest: list[str]) -> int:
    try:
        with _tidy_output():
            module = command_module(name)
            run = getattr(module, f"run_{_key(name)}")
            return int(run(_alone(_parsed(name, module, rest))))
    except PerfgateError as error:
        return _said(error, as_json="--json" in rest)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as denied:
        if not speaks_of_a_file(denied):
            raise
        return _said(refusal(denied), as_json="--json" in rest)


def _parsed(name: str, module: Any, rest: list[str]) -> argparse.Namespace:
    parser = (_Told if "--json" in rest else _Near)(
        prog=f"perfgate {name}",
        description=description(name),
        formatter_class=Page,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print JSON for another program")
    add_arguments(name, parser)
    if not getattr(module, f"{_key(name).upper()}_PASSES_ON", False):
        return parser.parse_intermixed_args(rest, argparse.Namespace(given=rest))
    options, words = parser.parse_known_args(rest)
    options.words = words
    return options


class _Near(argparse.ArgumentParser):
    """An option that is none is told with the one that was meant."""

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}{self._meant(message)}")

    def _meant(self, message: str) -> str:
        from difflib import get_close_matches

        told, _, words = message.partition(": ")
        if told != "unrecognized arguments":
            return ""
        known = [option for action in self._actions for option in action.option_strings]
        wrong = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
        near = [close for word in wrong for close in get_close_matches(word, known, n=1)]
        return f"\n  next  did you mean {' and '.join(near)}?" if near else ""


class _Told(_Near):
    """A program that asked for JSON reads there, too, what it asked wrongly."""

    def error(self, message: str) -> NoReturn:
        sys.stdout.write(_error_json("command-usage", message, f"{self.prog} --help"))
        super().error(message)


def _alone(options: argparse.Namespace) -> argparse.Namespace:
    """JSON stands alone on standard output."""
    if options.json and getattr(options, "markdown", "") == "-":
        what = "--json and --markdown - both speak on standard output"
        raise PerfgateError("command-usage", what, mend="--markdown FILE")
    return options


def _said(error: PerfgateError, *, as_json: bool) -> int:
    if as_json:
        said = {"code": error.code.name, "what": error.what, "why": error.why, "next": error.mend}
        sys.stdout.write(json.dumps({"error": {**said, "place": error.place}}, ensure_ascii=False) + "\n")
    sys.stderr.write(f"perfgate: {error.text()}\n")
    return error.exit


@contextlib.contextmanager
def _tidy_output() -> Iterator[None]:
    """A terminal that cannot show a character gets a replacement instead of a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    yield
    sys.stdout.flush()


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    names = [command for commands in GROUPS.values() for command in commands]
    near = get_close_matches(name, names, n=1)
    return f"did you mean 'perfgate {near[0]}'?" if near else "perfgate --help lists the commands"


def _error_json(code: str, what: str, then: str) -> str:
    said = {"code": code, "what": what, "why": "", "next": then, "place": ""}
    return json.dumps({"error": said}, ensure_ascii=False) + "\n"
