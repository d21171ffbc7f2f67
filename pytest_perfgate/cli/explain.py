"""Explain an error code, an outcome, a word of the glossary, a metric or a setting."""

from __future__ import annotations

import argparse

from pytest_perfgate.cli.output import show
from pytest_perfgate.core.glossary import ADVICE, TERMS, find_term
from pytest_perfgate.core.judge.policy import CHOICES, CI, LOCAL, RULE, effect
from pytest_perfgate.core.limits.scope import proposal
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import CODES, PerfgateError
from pytest_perfgate.model.metric import Document, Paragraph, Section
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.project import KEYS

EXPLAIN_ABOUT = """Explain an error code, an outcome, a word of the glossary, a metric or a setting.

Without a word: everything that can be explained.

  perfgate explain limit-syntax
  perfgate explain UNDECIDED
  perfgate explain "merge base"
"""

_EFFECT = {Effect.PASS: "passes", Effect.WARN: "warns", Effect.FAIL: "fails"}


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", nargs="*", metavar="WORD", help="such as limit-syntax, UNDECIDED, baseline, mfu, budget"
    )


def run_explain(options: argparse.Namespace) -> int:
    word = " ".join(options.word).strip().strip("[]`")
    show(explain(word) if word else overview(), options)
    return 0


def explain(word: str) -> Document:
    """What perfgate knows of a word; an unknown one is an error that names the nearest."""
    sections = tuple(filter(None, (kind(word) for kind in (_code, _outcome, _term, _metric, _setting))))
    if sections:
        return Document(title=word, blocks=sections)
    known = [*CODES, *(_shown(outcome) for outcome in Outcome), *(term.name for term in TERMS), *by_name()]
    what = f"'{word}' is not an error code, an outcome, a term, a metric or a setting"
    raise PerfgateError("explain-unknown", what, mend=proposal(word, known))


def overview() -> Document:
    """Everything that can be explained, by kind."""
    kinds = {
        "Outcomes": [_shown(outcome) for outcome in Outcome],
        "Terms": [term.name for term in TERMS],
        "Metrics": sorted(kind.name for kind in by_name().values()),
        "Settings": [key.name for key in KEYS],
        "Error codes": sorted(CODES),
    }
    return Document(
        title="perfgate explain WORD",
        blocks=tuple(
            Section(title=title, blocks=(Paragraph(text=", ".join(dict.fromkeys(words))),))
            for title, words in kinds.items()
        ),
    )


def _code(word: str) -> Section | None:
    code = CODES.get(word.casefold())
    if code is None:
        return None
    return _section(
        "Error code",
        f"{code.title}.",
        code.why and f"Why it matters: {code.why}.",
        f"Next: {code.mend}",
        f"Exit code of the commands: {code.family.exit} ({code.family.name.lower()}).",
        page=f"errors.md#{code.name}",
    )


def _outcome(word: str) -> Section | None:
    outcome = {_shown(one): one for one in Outcome}.get(word.upper().replace("_", " "))
    if outcome is None:
        return None
    rule = RULE[outcome]
    here, ci = (_EFFECT[effect(outcome, policy)] for policy in (LOCAL, CI))
    choices = ", ".join(f"{rule.key}={choice.value}" for choice in CHOICES[rule.key]) if rule.key else ""
    return _section(
        "Outcome",
        f"{rule.meaning[0].upper()}{rule.meaning[1:]}.",
        f"Next: {ADVICE[outcome]}",
        f"Its test {here} locally and {ci} in CI." + (f" Another policy: {choices}." if choices else ""),
        rule.exit and f"Exit code of the commands where it fails: {rule.exit}.",
        page="outcomes.md",
    )


def _term(word: str) -> Section | None:
    term = find_term(word)
    if term is None:
        return None
    return _section(f"Term: {term.name}", term.meaning, page=f"{term.page}.md")


def _metric(word: str) -> Section | None:
    kind = by_name().get(word.casefold())
    if kind is None:
        return None
    better = {"lower": "Lower is better.", "higher": "Higher is better."}.get(kind.better.value, "")
    return _section(
        f"Metric: {kind.name}",
        f"{kind.doc[0].upper()}{kind.doc[1:]}. {better}".strip(),
        f"Dimension: {kind.dimension.value}. It comes from: {kind.source}.",
        kind.scopes and f"Scopes: {', '.join(kind.scopes)}.",
        kind.aliases and f"Other names: {', '.join(kind.aliases)}.",
        page="limits.md",
    )


def _setting(word: str) -> Section | None:
    key = next((key for key in KEYS if key.name == word.casefold()), None)
    if key is None:
        return None
    return _section(
        "Setting of [tool.perfgate]",
        f"{key.doc[0].upper()}{key.doc[1:]}.",
        key.choices and f"Values: {', '.join(key.choices)}.",
        f"Default: {key.default or 'none'}.",
        page="options.md",
    )


def _section(title: str, *lines: object, page: str) -> Section:
    texts = [str(line) for line in (*lines, f"More: docs/{page}") if line]
    return Section(title=title, blocks=tuple(Paragraph(text=text) for text in texts))


def _shown(outcome: Outcome) -> str:
    return outcome.name.replace("_", " ")
