"""Words of a command line into files and limits; verdicts into lines and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.app.inspect import view
from pytest_perfgate.cli import looking
from pytest_perfgate.model.analysis import Analysis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import Verdict

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
        what = f"{len(words)} files, and no way to tell which side each is on"
        mend = "perfgate compare BEFORE AFTER, or BEFORE... -- AFTER..."
        raise PerfgateError("artifact-mixed", what, mend=mend)
    return before, after


def deliver(options: argparse.Namespace, analysis: Analysis, verdicts: tuple[Verdict, ...]) -> None:
    """One line a verdict, or JSON; the JUnit file where it is asked for."""
    if options.junit:
        from pytest_perfgate.wiring import write_junit

        write_junit(Path(options.junit), analysis.subject, verdicts)
    if options.json:
        shown = getattr(options, "view", "")
        documents = {shown: view(analysis, shown)} if shown else {}
        looking.write_json(looking.analysis_json(analysis, documents, verdicts))
        return
    for verdict in verdicts:
        looking.write("\n".join(verdict_lines(verdict, analysis.subject)))


def verdict_lines(verdict: Verdict, subject: str) -> list[str]:
    """A verdict as a terminal shows it: the outcome, the sentence, what it rests on, what to do."""
    lines = [f"{verdict.outcome.value.upper():<13} {subject}  {verdict.sentence}"]
    lines += [f"  {name:<6} {text}" for name, text in verdict.evidence]
    return lines + [f"  next   {command}" for command in verdict.next]
