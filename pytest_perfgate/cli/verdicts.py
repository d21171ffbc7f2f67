"""Words of a command line into files and limits; verdicts into lines and files."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.app.inspect import view
from pytest_perfgate.cli import looking
from pytest_perfgate.cli.output import placed, say_written, write_file
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import Verdict

_WIDEST = 110
_OPERATOR = re.compile(r"[<>]=?|==|=<|=>|!=|≤|≥")


def split_limits(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and limits: a word with an operator that is no file is a limit."""
    limits = [word for word in words if _OPERATOR.search(word) and not Path(word).exists()]
    files = [word for word in words if word not in limits]
    if not [word for word in files if word != "--"]:
        raise PerfgateError("artifact-missing", "no file was named", mend="perfgate check FILE... LIMIT...")
    return files, limits


def split_sides(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Before and after: two files, or two lists around ``--``."""
    if "--" in words:
        at = list(words).index("--")
        before, after = list(words[:at]), list(words[at + 1 :])
    else:
        before, after = list(words[:1]), list(words[1:])
    if not before or not after or ("--" not in words and len(after) > 1):
        what = f"{plural(len(words), 'file')}, and no way to tell which side each is on"
        mend = "perfgate compare BEFORE AFTER, or BEFORE... -- AFTER..."
        raise PerfgateError("artifact-mixed", what, mend=mend)
    return before, after


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where verdicts go, and what an outcome does: alike for every command that judges files."""
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
    """One line a verdict, or JSON."""
    if options.json:
        shown = getattr(options, "view", "")
        documents = {shown: view(analysis, shown)} if shown else {}
        looking.write_json(looking.analysis_json(analysis, documents, verdicts))
    elif options.markdown != "-":
        looking.write("\n".join(summary_lines(analysis.subject, verdicts)))


def write_files(options: argparse.Namespace, analysis: Analysis, verdicts: tuple[Verdict, ...]) -> None:
    """The files that were asked for."""
    if options.junit:
        from pytest_perfgate.wiring import write_junit

        write_junit(placed(options.junit), analysis.subject, verdicts)
    if options.html or options.markdown:
        from pytest_perfgate.core.render.html import render_html
        from pytest_perfgate.core.render.markdown import render_markdown
        from pytest_perfgate.core.render.verdicts import verdicts_document

        held = [verdicts_document(analysis.subject, verdicts)] if verdicts else []
        documents = [*held, view(analysis, getattr(options, "view", ""))]
        text = "\n".join(map(render_markdown, documents))
        if options.html:
            write_file(options.html, render_html(documents))
        if options.markdown == "-":
            looking.write(text)
        elif options.markdown:
            write_file(options.markdown, text)
        say_written(options)


def summary_lines(subject: str, verdicts: Sequence[Verdict]) -> list[str]:
    """Verdicts as a terminal shows them: what they are about, each with what it rests on, and a count."""
    shared = set(verdicts[0].evidence).intersection(*(v.evidence for v in verdicts))
    lines = [subject if len(subject) <= _WIDEST else f"{subject[: _WIDEST - 1]}\N{HORIZONTAL ELLIPSIS}"]
    lines += [f"  {name:<6} {text}" for name, text in verdicts[0].evidence if (name, text) in shared]
    for verdict in verdicts:
        lines.append(f"{verdict.outcome.value.upper():<13} {verdict.sentence}")
        lines += [f"  {name:<6} {text}" for name, text in verdict.evidence if (name, text) not in shared]
        lines += [f"  next   {command}" for command in verdict.next]
    counts = Counter(verdict.outcome.value for verdict in verdicts)
    return [*lines, ", ".join(f"{count} {outcome}" for outcome, count in counts.items())]
