"""The command-line options: their declarations, which of them go together, and what children inherit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_perfgate.model.protocol import ChildJob, Parent

STARTED_WITH = pytest.StashKey["dict[str, str]"]()
"""The environment of the process, saved before any conftest ran."""

CHILD: pytest.StashKey[tuple[Parent, ChildJob]] = pytest.StashKey()
"""The parent of a measuring child, and its job."""


def not_empty(text: str) -> str:
    """Refuse an empty value, which would look like an option that was not given."""
    if text.strip():
        return text
    from argparse import ArgumentTypeError

    raise ArgumentTypeError("the value is empty: is a variable unset?")


def from_one(text: str) -> int:
    """Return a whole number from 1."""
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    from argparse import ArgumentTypeError

    raise ArgumentTypeError(f"{text!r} is not a whole number from 1")


def a_file(text: str) -> str:
    """Refuse ``-``, which other programs take for the standard output: pytest writes its own text there."""
    if text.strip() != "-":
        return not_empty(text)
    from argparse import ArgumentTypeError

    raise ArgumentTypeError("name a file; pytest writes its own text to the standard output")


class Option:
    """One option: its name, its arguments for argparse, its defaults here and in CI."""

    __slots__ = ("ci", "doc", "local", "name", "settings")

    def __init__(self, name: str, doc: str, settings: dict[str, Any], local: str, ci: str = "") -> None:
        self.name, self.doc, self.settings, self.local, self.ci = name, doc, settings, local, ci


OPTIONS: tuple[Option, ...] = (
    Option(
        "--perfgate",
        "when to measure. full: in fresh processes before the first test; quick: inside the test; off: never",
        {"choices": ("full", "quick", "off"), "dest": "perfgate_mode"},
        "quick",
        "full",
    ),
    Option(
        "--perfgate-against",
        "compare with this revision, in two builds that run in turns; without REV with the merge base",
        {"metavar": "REV", "nargs": "?", "const": "@merge-base", "type": not_empty},
        "none",
    ),
    Option(
        "--perfgate-limit",
        "a limit for every gated test; replaces the test's own limit of the same metric and scope; repeatable",
        {"metavar": "LIMIT", "action": "append", "default": []},
        "none",
    ),
    Option(
        "--perfgate-capture",
        "a profile to take beside the timing, such as torch, nsys, ncu or cubin; repeatable",
        {"metavar": "NAME", "action": "append", "default": []},
        "none",
    ),
    Option(
        "--perfgate-metric",
        "a figure to measure without a limit: peak_memory, peak_vram, allocations, energy, compile_time; repeatable",
        {"metavar": "NAME", "action": "append", "default": []},
        "none",
    ),
    Option(
        "--perfgate-clocks",
        "lock the device's clocks, lock them where that is permitted, observe them, or leave them alone",
        {"choices": ("lock", "try-lock", "observe", "off")},
        "observe",
    ),
    Option(
        "--perfgate-budget",
        "longest time for measuring in the whole run, such as 10min",
        {"metavar": "TIME", "type": not_empty},
        "no end",
        "10 min",
    ),
    Option(
        "--perfgate-rounds",
        "fresh processes for each case in full mode. A number above 30 is also the most rounds of two builds "
        "(without it 30, in CI 60)",
        {"metavar": "N", "type": from_one},
        "3",
    ),
    Option(
        "--perfgate-shard",
        "run part K of N of the tests; auto reads K and N from the variables of CI; perfgate merge joins the records",
        {"metavar": "K/N", "type": not_empty},
        "all tests",
    ),
    Option(
        "--perfgate-shard-costs",
        "a record whose times balance the shards; use the same one for all shards",
        {"metavar": "RECORD", "type": not_empty},
        "by names alone",
    ),
    Option("--perfgate-device", "number, UUID or name of the device to measure on", {"metavar": "DEVICE"}, "the first"),
    Option(
        "--perfgate-policy",
        "what an outcome does to its test, such as undecided=fail. Keys: missing, unused, improved, undecided, "
        "suspect, moved, unmeasured, no_base, moved_by_change, own_gate; repeatable",
        {"metavar": "KEY=VALUE", "action": "append", "default": []},
        "missing=record",
        "missing=fail unused=fail unmeasured=fail moved_by_change=fail; in a merge request no_base=fail",
    ),
    Option(
        "--perfgate-table",
        "show a parametrised test as a table of two parameters, such as 'n x dtype' or 'n x dtype of mfu'; the word "
        "call stands for the name= of a call; repeatable",
        {"metavar": "PAIR", "action": "append", "default": []},
        "none",
    ),
    Option(
        "--perfgate-history",
        "file of the history, or an address of PostgreSQL",
        {"metavar": "PATH"},
        ".perfgate/history.db",
    ),
    Option(
        "--perfgate-json", "also write the record of this run to this file", {"metavar": "PATH", "type": a_file}, "none"
    ),
    Option("--perfgate-html", "write the report as one HTML file", {"metavar": "PATH", "type": a_file}, "none"),
    Option("--perfgate-markdown", "write the report as Markdown", {"metavar": "PATH", "type": a_file}, "none"),
)


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("perfgate", "performance gate")
    for option in OPTIONS:
        default = f" (default: {option.local}{f'; in CI {option.ci}' if option.ci else ''})"
        settings = {"dest": option.name[2:].replace("-", "_"), **option.settings}
        group.addoption(option.name, help=(option.doc + default).replace("%", "%%"), **settings)


def refuse_unknown(words: Sequence[str]) -> None:
    """Raise for an unknown option of ours, with the nearest name, which argparse does not propose."""
    names = [option.name for option in OPTIONS]
    for word in words:
        if word == "--":
            return
        name = word.partition("=")[0]
        if name.startswith("--perfgate") and name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else "pytest --help lists the options, under performance gate"
            raise pytest.UsageError(f"unknown option {name}\n  next  {fix}")


_SERVERS = ("JENKINS_", "TF_BUILD", "TEAMCITY_", "CODEBUILD_")
_SPEAKS = (
    *("CI", "GITHUB_", "GIT_", "BITBUCKET_", "BUILD", "CHANGE_", "DRONE_", "SEMAPHORE_", "SYSTEM_", "TRAVIS_"),
    *_SERVERS,
)
"""Prefixes of variables that affect judging; one that was set later is not from CI."""


def started_with() -> dict[str, str]:
    """Return the environment with CI's variables of the start, even if a plugin or ``sitecustomize`` changed them.

    Linux keeps the environment of a process's start. Inside a test of another pytest, the current one is used.
    """
    now = dict(os.environ)
    if "PYTEST_CURRENT_TEST" in now:
        return _with_ci(now)
    try:
        words = os.fsdecode(Path("/proc/self/environ").read_bytes()).split("\0")
    except OSError:
        return _with_ci(now)
    pairs = (word.partition("=") for word in words if word.startswith(_SPEAKS))
    return _with_ci({**now, **{name: text for name, equals, text in pairs if equals}})


def _with_ci(environment: dict[str, str]) -> dict[str, str]:
    if not any(name.startswith(_SERVERS) for name in environment):
        return environment
    from pytest_perfgate.model.project import with_ci

    return with_ci(environment)


def refuse_ranks(environment: Mapping[str, str]) -> None:
    """Raise in one of several processes of torchrun, whose variables each measuring child would get as well."""
    size = environment.get("WORLD_SIZE", "")
    if "LOCAL_RANK" in environment and size.isdecimal() and int(size) > 1:
        from pytest_perfgate.model.errors import PerfgateError

        raise PerfgateError("run-ranks", f"this is rank {environment.get('RANK', '?')} of {size} of one job")


def child_environment(config: pytest.Config) -> Mapping[str, str]:
    """Return the current environment, with the variables of CI and git as they were at the start."""
    stash = getattr(config, "stash", None)
    before = stash.get(STARTED_WITH, None) if stash is not None else None
    if before is None:
        return dict(os.environ)
    return {**{name: text for name, text in os.environ.items() if not name.startswith(_SPEAKS)}, **before}


def seconds(text: Any, place: str) -> float:
    """Return seconds from a number or from a text such as ``500 ms``."""
    from pytest_perfgate.model.errors import PerfgateError
    from pytest_perfgate.model.values import span_seconds

    number = span_seconds(str(text))
    if not number:
        raise PerfgateError("option-wrong", f"{text!r} is not a time such as '500 ms'", place=place)
    return number
