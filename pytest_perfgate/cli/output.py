"""Output of commands: documents, JSON, files."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import math
import sys
from argparse import ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.inspections import (
    InspectContext,
    JudgingLook,
    parse_strict_policy,
    picture,
    view,
    with_pictures_first,
)
from pytest_perfgate.cli import terminal_columns
from pytest_perfgate.core.render.words import figure_note, plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Compare, Outcome
from pytest_perfgate.model.values import regex

if TYPE_CHECKING:
    from pytest_perfgate.model.metric import Analysis, Document
    from pytest_perfgate.model.verdict import Verdict


def show(document: Document, options: Namespace) -> None:
    """Print the document as text, or as JSON if requested."""
    if options.json:
        write_json(plain(document))
    else:
        from pytest_perfgate.core.render.text import render_text

        write(render_text(document, columns(), room()))


def say(text: str, options: Namespace) -> None:
    """Print what was done; not to standard output if that holds JSON or Markdown."""
    if options.json or getattr(options, "markdown", "") == "-":
        sys.stderr.write(f"{text}\n")
    else:
        write(text)


def say_written(options: Namespace) -> None:
    """Print where the requested pages are."""
    for name in (options.html, options.markdown):
        if name and name != "-":
            say(f"wrote {name}", options)


def plain(value: Any) -> Any:
    """Return a value in JSON's own types; numbers that JSON lacks become null."""
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
    """Write a requested file, and create its folders."""
    write_bytes(name, text.encode("utf-8"))


def write_bytes(name: str, data: bytes) -> None:
    """Write a requested binary file, and create its folders."""
    path = placed(name)
    try:
        path.write_bytes(data)
    except OSError as fault:
        raise _write_error(name, fault) from fault


def placed(name: str) -> Path:
    """Return the path of a requested file, after creating its folders."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise _write_error(name, fault) from fault
    return path


def _write_error(name: str, fault: OSError) -> PerfgateError:
    fix = "name a file in a folder that you may write to"
    return PerfgateError("delivery-failed", f"it cannot be written: {fault}", fix=fix, place=name)


_USUAL, _LEAST = 100, 60

_SUGAR = {
    "compat": "reproduce another tool's figures: tracelens, pithtrain",
    "anchor": "NVTX pattern whose median range is the window",
    "preset": "how a program names its ranges: pithtrain, megatron, ddp",
    "step": "the step to look at",
    "start": "window start, such as 1.5ms",
    "end": "window end",
    "peak": "a peak, such as bf16=708TFLOPS (compare: the target's)",
    "bandwidth": "memory bandwidth, such as 5.3TB/s (compare: the target's)",
    "device": "a device of the catalogue, such as 'H100 SXM' (compare: the target's)",
    "arch": "an architecture, such as sm_90",
    "threads": "threads per block",
}


def columns() -> int:
    """Return the width: a hundred, as in a log, or that of a narrower terminal, so that no word is cut."""
    return max(_LEAST, min(_USUAL, room()))


def room() -> int:
    """Return the width for tables: the whole terminal."""
    return terminal_columns() if sys.stdout.isatty() else _USUAL


def draws_bars() -> bool:
    """Return whether the output is a terminal with room for bars."""
    return sys.stdout.isatty() and room() >= _USUAL


def glance(document: Document, analysis: Analysis) -> Document:
    """Return the document with its first picture on top if the terminal has room for its bars."""
    if not draws_bars() or not analysis.pictures:
        return document
    return with_pictures_first(document, analysis, [next(iter(analysis.pictures))])


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options that are passed on to the inspector."""
    group = parser.add_argument_group("what to look at (each kind of file has its own; all by --set too)")
    for name, text in _SUGAR.items():
        group.add_argument(f"--{name}", help=text, metavar=name.upper())
    every = "any option of this kind of file; a wrong NAME lists them all"
    group.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="pairs", help=every)


def add_picture_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--picture",
        action="append",
        default=[],
        metavar="NAME:FILE",
        help="write one picture as SVG or PNG, such as roofline:OUT.svg; repeatable (names: --view pictures)",
    )


def write_pictures(options: argparse.Namespace, analysis: Analysis) -> bool:
    """Write each requested picture to its file."""
    if not options.picture:
        return False
    from pytest_perfgate.core.render.drawing import standalone
    from pytest_perfgate.wiring.profiling import write_picture

    for request in options.picture:
        name, colon, path = request.partition(":")
        if not colon or not path:
            raise PerfgateError("command-usage", f"--picture {request} names no file", fix=f"--picture {name}:OUT.svg")
        write_picture(placed(path), standalone(picture(analysis, name).svg))
        say(f"wrote {path}", options)
    return True


def inspect_context(options: argparse.Namespace) -> InspectContext:
    """Return the tools of this command line with the given options."""
    from pytest_perfgate.wiring import command_line_tools

    chosen = {name: getattr(options, name) for name in _SUGAR if getattr(options, name, None) is not None}
    for pair in options.pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise PerfgateError("option-unknown", f"--set {pair} has no value", fix="--set NAME=VALUE")
        chosen[name] = text
    tools = command_line_tools(Path.cwd())
    return InspectContext(inspectors=tools.inspectors, peek=tools.peek, kinds=tools.kinds, options=chosen)


def judging_look(options: argparse.Namespace) -> JudgingLook:
    """Return the same for a command that judges, with the given policy."""
    c, policy = inspect_context(options), parse_strict_policy(options.policy)
    return JudgingLook(inspectors=c.inspectors, peek=c.peek, kinds=c.kinds, options=c.options, policy=policy)


def named_files(paths: list[str]) -> list[Path]:
    """Return the files of the command line; raise if one is missing."""
    for path in paths:
        if not Path(path).exists() and path != "-":
            raise PerfgateError("artifact-missing", "there is no such file", place=path)
        if not (Path(path).is_file() or Path(path).is_dir()):
            why = "a file is read more than once: first for its kind, then for its figures"
            fix = "write it into a file first"
            raise PerfgateError("artifact-unknown", "it is a pipe or a device", why=why, fix=fix, place=path)
    return [Path(path) for path in paths]


def write(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def write_json(value: Any) -> None:
    """Write JSON with a line for each member of a list, searchable and a fifth of the size of full indentation."""
    import json
    from functools import partial

    dumped = partial(json.dumps, ensure_ascii=False, default=str, allow_nan=False)

    def lines(part: Any) -> str:
        return "[\n" + ",\n".join(map(dumped, part)) + "\n]" if part and isinstance(part, list) else dumped(part)

    if not isinstance(value, dict):
        write(lines(value))
    else:
        write("{\n" + ",\n".join(f"{dumped(str(name))}: {lines(part)}" for name, part in value.items()) + "\n}")


def analysis_json(analysis: Analysis, documents: dict[str, Document], verdicts: tuple[Verdict, ...] = ()) -> Any:
    """Return an analysis for other programs."""
    return plain(
        {
            "kind": analysis.kind,
            "subject": analysis.subject,
            "window": analysis.window,
            "metrics": [_without_empty(plain(metric)) for metric in analysis.metrics.metrics],
            "absent": [_without_empty(plain(absent)) for absent in analysis.metrics.absent_once()],
            "findings": analysis.findings,
            "problems": analysis.problems,
            "views": documents,
            "verdicts": verdicts,
        }
    )


_BARE = (None, "", False)


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a metric's fields without empty ones: a report of three kernels has eight thousand metrics."""
    return {name: value for name, value in fields.items() if name == "value" or value not in _BARE}


_WIDEST = 110

_OPERATOR = regex(r"[<>]=?|==|=<|=>|!=|≤|≥")


def split_limits(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return files and limits: a word with an operator that is not a file is a limit."""
    limits = [word for word in words if _OPERATOR.search(word) and not Path(word).exists()]
    files = [word for word in words if word not in limits]
    if not [word for word in files if word != "--"]:
        raise PerfgateError("artifact-missing", "no file was named", fix="perfgate check FILE... LIMIT...")
    return files, limits


def split_sides(words: Sequence[str], limits: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return before and after: two files, or two lists around ``--``; limits need two that differ."""
    at = words.index("--") if "--" in words else 1
    before, after = list(words[:at]), list(words[at + ("--" in words) :])
    if not before or not after or ("--" not in words and len(after) > 1):
        what = f"{plural(len(words), 'file')}: a comparison needs two files, or two lists around --"
        fix = "perfgate compare BEFORE AFTER, or BEFORE... -- AFTER..."
        raise PerfgateError("artifact-mixed", what, fix=fix)
    if limits and {Path(path).resolve() for path in before} == {Path(path).resolve() for path in after}:
        why, fix = "a file never differs from itself, so no limit could be missed", "name the file of the other run"
        raise PerfgateError("artifact-mixed", f"{before[0]} is on both sides", why=why, fix=fix)
    return before, after


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output and the policies of every command that judges files."""
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit file of the verdicts")
    parser.add_argument("--html", metavar="FILE", help="write verdicts and view as one HTML page")
    parser.add_argument("--markdown", metavar="FILE", help="write verdicts and view as Markdown; - for standard output")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what an outcome does, such as unmeasured=warn; repeatable (default: as in CI)",
    )


def deliver(options: argparse.Namespace, analysis: Analysis, verdicts: tuple[Verdict, ...]) -> None:
    """Print one line for each verdict, or JSON."""
    if options.json:
        shown = getattr(options, "view", "")
        documents = {shown: view(analysis, shown)} if shown else {}
        write_json(analysis_json(analysis, documents, verdicts))
    elif options.markdown != "-":
        write("\n".join(summary_lines(analysis.subject, verdicts)))


def write_files(options: argparse.Namespace, analysis: Analysis, verdicts: tuple[Verdict, ...]) -> None:
    if options.junit:
        from pytest_perfgate.wiring import write_junit

        write_junit(placed(options.junit), analysis.subject, verdicts)
    if options.html or options.markdown:
        from pytest_perfgate.core.render.html import render_html, render_markdown
        from pytest_perfgate.core.render.report import verdicts_document

        verdict_documents = [verdicts_document(analysis.subject, verdicts)] if verdicts else []
        shown = view(analysis, getattr(options, "view", ""))
        documents = [*verdict_documents, shown]
        text = "\n".join(map(render_markdown, documents))
        if options.html:
            write_file(options.html, render_html([*verdict_documents, with_pictures_first(shown, analysis)]))
        if options.markdown == "-":
            write(text)
        elif options.markdown:
            write_file(options.markdown, text)
        say_written(options)


_MOST, _PASSED = 20, 3
"""The most verdicts of one outcome under one limit that a terminal shows, of more that passed; the worst come first."""


def summary_lines(subject: str, verdicts: Sequence[Verdict]) -> list[str]:
    """Return verdicts for a terminal: their subject, each with its reason, and a count."""
    shared = set(verdicts[0].evidence).intersection(*(v.evidence for v in verdicts))
    lines = [subject if len(subject) <= _WIDEST else f"{subject[: _WIDEST - 1]}\N{HORIZONTAL ELLIPSIS}"]
    lines += [f"  {name:<6} {text}" for name, text in verdicts[0].evidence if (name, text) in shared]
    groups = Counter((verdict.outcome, verdict.limit.text) for verdict in verdicts)
    many = {group: _PASSED if group[0] is Outcome.PASSED else _MOST for group, n in groups.items() if n > _MOST}
    rest = {group: groups[group] - most for group, most in many.items()}
    listed: Counter[tuple[Outcome, str]] = Counter()
    for verdict in verdicts:
        group = (verdict.outcome, verdict.limit.text)
        listed[group] += 1
        if listed[group] > many.get(group, _MOST):
            continue
        lines.append(f"{verdict.outcome.value.upper():<13} {_of_change(verdict)}{verdict.sentence}")
        lines += [f"  {name:<6} {text}" for name, text in verdict.evidence if (name, text) not in shared]
        lines += [f"  next   {command}" for command in verdict.next]
    lines += [f"{of.value.upper():<13} {n:,} more under {text}, none worse (--json)" for (of, text), n in rest.items()]
    counts = Counter(verdict.outcome.value for verdict in verdicts)
    return [*lines, ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())]


def _of_change(verdict: Verdict) -> str:
    """Return the limit as the start of a sentence on a change."""
    names_itself = verdict.sentence.startswith(verdict.limit.metric)
    if verdict.limit.compare is Compare.FIGURE or names_itself:
        return ""
    figures = figure_note(verdict) if verdict.outcome is Outcome.PASSED else ""
    labels = verdict.metric.labels if verdict.metric and verdict.metric.labels != verdict.limit.labels else ()
    of = f" ({', '.join(f'{name}={text}' for name, text in labels)})" if labels else ""
    return f"{verdict.limit.text}{of}{figures}{': ' if verdict.sentence else ''}"


def from_one(text: str) -> int:
    """Return a whole number from 1, or raise."""
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a whole number from 1")


def above_zero(text: str) -> float:
    number = _finite(text)
    if not number > 0:
        raise ArgumentTypeError(f"{text!r} is not a number above zero")
    return number


def percent(text: str) -> float:
    return above_zero(text.removesuffix("%"))


def from_zero(text: str) -> float:
    number = _finite(text)
    if not number >= 0:
        raise ArgumentTypeError(f"{text!r} is not a number from zero")
    return number


def _finite(text: str) -> float:
    """Return a number; refuse NaN and infinity, which fail every comparison."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
