"""Finds and runs commands, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import json
import os
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import pytest_perfgate
from pytest_perfgate import wiring
from pytest_perfgate.cli import terminal_columns
from pytest_perfgate.model.errors import PerfgateError, refusal, speaks_of_a_file
from pytest_perfgate.wiring import stores

if TYPE_CHECKING:
    from pytest_perfgate.adapters.stores.baselines import Baselines
    from pytest_perfgate.adapters.stores.records import Records
    from pytest_perfgate.adapters.stores.repository import GitRepository
    from pytest_perfgate.model.ports import HistoryStore
    from pytest_perfgate.model.project import Config

USAGE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141

_MODULES = {
    "accept": ("accept", "review", "prune", "merge-driver"),
    "files": ("import", "check", "compare", "inspect", "profile", "scrub"),
    "history": ("history", "devlog"),
    "machine": ("calibrate", "ceilings", "clocks", "devices"),
    "run": ("run", "merge", "report"),
    "site": ("site", "regressions"),
}
"""Modules with several commands; any other command has a module of its name."""

_HOMES = {command: module for module, commands in _MODULES.items() for command in commands}


def command_module(name: str) -> ModuleType:
    """Return the module of a command, with ``run_NAME``, ``NAME_arguments`` and ``NAME_ABOUT``."""
    return import_module(f"pytest_perfgate.cli.{_HOMES.get(name, name)}")


def description(name: str) -> str:
    """Return the first text of ``perfgate NAME --help``."""
    return str(getattr(command_module(name), f"{_key(name).upper()}_ABOUT"))


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    getattr(command_module(name), f"{_key(name)}_arguments")(parser)


def _key(name: str) -> str:
    return name.replace("-", "_")


def dispatch(argv: list[str]) -> int:
    """Run ``perfgate COMMAND ...``."""
    sys.stdout, sys.stderr = (one or Path(os.devnull).open("w") for one in (sys.stdout, sys.stderr))  # noqa: SIM115 - ">&-"
    argv = [argv[1], "--help"] if argv[:1] == ["help"] and argv[1:] else argv
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
    from pytest_perfgate.model.project import with_ci

    os.environ.update(with_ci(os.environ))
    return _run_guarded(name, rest)


def overview() -> str:
    """Return all commands, by group."""
    lines = ["usage: perfgate COMMAND [...]      perfgate COMMAND --help", ""]
    for group, commands in GROUPS.items():
        lines += [group, *(f"  {name:<14} {text}" for name, text in commands.items()), ""]
    lines.append("All commands take --json. Exit codes: 0 kept, 1 regressed or broken, 2 usage,")
    lines.append("3 undecided, 4 not measured or invalid, 10 and up an error of perfgate's own.")
    return "\n".join(lines) + "\n"


def _run_guarded(name: str, rest: list[str]) -> int:
    try:
        with _readable_output():
            module = command_module(name)
            run = getattr(module, f"run_{_key(name)}")
            return int(run(_checked_output(_parsed(name, module, rest))))
    except PerfgateError as error:
        return _print_error(error, as_json="--json" in rest)
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
        return _print_error(refusal(denied), as_json="--json" in rest)


def _parsed(name: str, module: Any, rest: list[str]) -> argparse.Namespace:
    kind, page = _JsonParser if "--json" in rest else _SuggestingParser, partial(Page, width=terminal_columns() - 2)
    parser = kind(prog=f"perfgate {name}", description=description(name), formatter_class=page, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print JSON for another program")
    add_arguments(name, parser)
    options, rest_words = parser.parse_known_args(rest, argparse.Namespace(given=rest))
    if getattr(module, f"{_key(name).upper()}_PASSES_ON", False):
        options.words = rest_words
    elif rest_words or "--" in rest:  # files between options, for which argparse formats its whole usage first
        options = parser.parse_intermixed_args(rest, argparse.Namespace(given=rest))
    return options


class _SuggestingParser(argparse.ArgumentParser):
    """Adds the nearest known option to the error on an unknown one."""

    def error(self, message: str) -> NoReturn:
        super().error(f"{message}{self._suggestion(message)}")

    def _suggestion(self, message: str) -> str:
        from difflib import get_close_matches

        head, _, words = message.partition(": ")
        if head != "unrecognized arguments":
            return ""
        flags = [option for action in self._actions for option in action.option_strings]
        wrong = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
        nearest = " and ".join(close for word in wrong for close in get_close_matches(word, flags, n=1, cutoff=0.7))
        stated = " ".join(f"--set {word[2:]}=VALUE" for word in wrong) if "--set" in flags else ""
        return f"\n  next  did you mean {' or '.join(filter(None, (stated, nearest)))}?" if stated or nearest else ""


class _JsonParser(_SuggestingParser):
    """Reports a usage error as JSON if JSON was requested."""

    def error(self, message: str) -> NoReturn:
        sys.stdout.write(_error_json("command-usage", message, f"{self.prog} --help"))
        super().error(message)


def _checked_output(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options; refuse JSON and Markdown together on standard output."""
    if options.json and getattr(options, "markdown", "") == "-":
        what = "--json and --markdown - both write to standard output"
        raise PerfgateError("command-usage", what, fix="--markdown FILE")
    return options


def _print_error(error: PerfgateError, *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(_error_json(error.code.name, error.what, error.fix, error.why, error.place))
    sys.stderr.write(f"perfgate: {error.text()}\n")
    return error.exit


@contextlib.contextmanager
def _readable_output() -> Iterator[None]:
    """Write similar characters for those that a terminal cannot show, instead of failing."""
    codecs.register_error("similar", _similar)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="similar")
    yield
    sys.stdout.flush()


def _similar(fault: Any) -> tuple[str, int]:
    from pytest_perfgate.core.render.words import NEAR

    return json.dumps(fault.object[fault.start : fault.end].translate(NEAR))[1:-1], fault.end  # escaped as in JSON


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    names = [command for commands in GROUPS.values() for command in commands]
    nearest = get_close_matches(name, names, n=1)
    return f"did you mean 'perfgate {nearest[0]}'?" if nearest else "perfgate --help lists the commands"


def _error_json(code: str, what: str, then: str, why: str = "", place: str = "") -> str:
    fields = {"code": code, "what": what, "why": why, "next": then, "place": place}
    return json.dumps({"error": fields}, ensure_ascii=False) + "\n"


GROUPS: dict[str, dict[str, str]] = {
    "gate": {
        "run": "run pytest and exit by what the gate found",
        "merge": "join the records of a run's shards",
        "check": "check limits on files: traces, reports, cubins, records",
        "compare": "compare two files or two runs, with limits on the difference",
    },
    "accept": {
        "accept": "accept measured times as the baseline",
        "review": "accept or skip each changed case, on a terminal",
        "prune": "remove baselines whose tests are gone",
        "import": "start baselines from another tool's results",
        "merge-driver": "merge baseline files for git, line by line",
    },
    "look": {
        "inspect": "show what is in a file",
        "report": "show the last run, or a record, as text, HTML or Markdown",
        "history": "show a case over time",
        "regressions": "list lasting slowdowns over many runs",
        "site": "write the history of the project as pages",
        "devlog": "write the last run into a kernel's log",
    },
    "profile": {
        "profile": "run one test under a profiler and keep the profile",
        "scrub": "remove the environment from an Nsight Systems export",
    },
    "machine": {
        "calibrate": "measure the gate's error rates on this machine, with your tests",
        "ceilings": "measure the highest rates that this machine reaches",
        "clocks": "show, lock or reset the clocks of devices",
        "explain": "explain a code, outcome, term, metric, setting, option, command",
        "doctor": "show what works here, what does not, and how to fix it",
        "devices": "show data sheets of known devices; --here: of this machine",
    },
}


class Page(argparse.RawDescriptionHelpFormatter):
    """Formats help texts; indented lines are examples and stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002 - argparse passes it
        paragraphs = textwrap.dedent(text).strip().split("\n\n")
        filled = (p if p.startswith("  ") else textwrap.fill(p, width, break_on_hyphens=False) for p in paragraphs)
        return "\n\n".join(filled)


_SIGNS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", ".perfgate", ".git")


def add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", default="", metavar="DIR", help="the project's folder (default: found upwards)")


class Project:
    """A folder with tests, settings, baselines and records."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.root = _project_root(options.root)

    @cached_property
    def config(self) -> Config:
        return wiring.configuration(self.root)

    @cached_property
    def baselines(self) -> Baselines:
        return stores.baseline_store(self.root, self.config)

    @cached_property
    def records(self) -> Records:
        return stores.record_store(self.root)

    @cached_property
    def history(self) -> HistoryStore:
        return stores.history_store(self.root, self.config)

    @cached_property
    def repository(self) -> GitRepository:
        return stores.repository(self.root, self.config.target)

    @property
    def ci(self) -> bool:
        return bool(os.environ.get("CI"))

    def shown(self, path: Path) -> str:
        """Return a path relative to the project's root; one outside of it unchanged."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def _project_root(folder: str) -> Path:
    """Return the named folder, or the nearest folder upwards that looks like a project's."""
    if folder:
        if not Path(folder).is_dir():
            raise PerfgateError("command-usage", "--root names no folder", place=folder)
        return Path(folder).absolute()
    here = Path.cwd()
    return next((p for p in (here, *here.parents) if any((p / sign).exists() for sign in _SIGNS)), here)
