"""What ``inspect``, ``check`` and ``compare`` share: options of files, tools, writing what was found."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_perfgate.app.check import Look, parse_strict_policy
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import Verdict

_USUAL, _LEAST = 100, 60
_SUGAR = {
    "compat": "reproduce another tool's figures: tracelens, pithtrain",
    "anchor": "NVTX pattern whose median range is the window",
    "preset": "how a program names its ranges: pithtrain, megatron, ddp",
    "step": "the step to look at",
    "start": "window start, such as 1.5ms",
    "end": "window end",
    "peak": "a peak, such as bf16=708TFLOPS",
    "bandwidth": "memory bandwidth, such as 5.3TB/s",
    "device": "a device of the catalogue, such as 'H100 SXM'",
    "arch": "an architecture, such as sm_90",
    "threads": "threads per block",
}


def columns() -> int:
    """A hundred, which a log has; of a narrower terminal its own, so that no word is torn."""
    return max(_LEAST, min(_USUAL, shutil.get_terminal_size().columns)) if sys.stdout.isatty() else _USUAL


def room() -> int:
    """What a table may take: all of a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _USUAL


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that travel to the inspector as they are."""
    group = parser.add_argument_group("what to look at (each kind of file has its own; all by --set too)")
    for name, text in _SUGAR.items():
        group.add_argument(f"--{name}", help=text, metavar=name.upper())
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="pairs", help="an option of the file's kind"
    )


def look(options: argparse.Namespace) -> Look:
    """The tools of this command line with the options given."""
    from pytest_perfgate.wiring import command_line_tools

    given = {name: getattr(options, name) for name in _SUGAR if getattr(options, name, None) is not None}
    for pair in options.pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise PerfgateError("option-unknown", f"--set {pair} has no value", mend="--set NAME=VALUE")
        given[name] = text
    tools = command_line_tools(Path.cwd())
    return Look(inspectors=tools.inspectors, peek=tools.peek, kinds=tools.kinds, options=given)


def judging_look(options: argparse.Namespace) -> Look:
    """The same for a command that judges, under the policy that was given."""
    return replace(look(options), policy=parse_strict_policy(options.policy))


def named_files(paths: list[str]) -> list[Path]:
    """The files of the command line; a missing one is an error, whatever the others are."""
    for path in paths:
        if not Path(path).exists():
            raise PerfgateError("artifact-missing", "there is no such file", place=path)
    return [Path(path) for path in paths]


def write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def write_json(value: Any) -> None:
    import json

    write(json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False))


def analysis_json(analysis: Analysis, documents: dict[str, Document], verdicts: tuple[Verdict, ...] = ()) -> Any:
    """An analysis for another program; numbers that are not finite become null."""
    from dataclasses import asdict

    return finite(
        {
            "kind": analysis.kind,
            "subject": analysis.subject,
            "window": analysis.window,
            "metrics": [asdict(metric) for metric in analysis.metrics.metrics],
            "absent": [asdict(absent) for absent in analysis.metrics.absent],
            "findings": [asdict(finding) for finding in analysis.findings],
            "problems": [asdict(problem) for problem in analysis.problems],
            "views": {name: asdict(document) for name, document in documents.items()},
            "verdicts": [asdict(verdict) for verdict in verdicts],
        }
    )


def finite(value: Any) -> Any:
    """The same value with every NaN and infinity as nothing, since JSON has neither."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
