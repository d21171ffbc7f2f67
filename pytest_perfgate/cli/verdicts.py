"""Words of a command line into files and limits; verdicts into lines and files."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.app.inspect import view
from pytest_perfgate.cli import looking
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
    looking.write("\n".join(summary_lines(analysis.subject, verdicts)))


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
