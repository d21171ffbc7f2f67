"""Explains codes, terms, metrics, settings, commands, views and rules; it holds the terms and their meanings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pytest_perfgate.cli.output import show
from pytest_perfgate.core.judge.policy import ADVICE, CHOICES, CI, FIELDS, LABELS, LOCAL, RULE, UNJUDGED, effect
from pytest_perfgate.core.metric_kinds import EXAMPLES, by_name
from pytest_perfgate.model.errors import PerfgateError, codes, having, proposal
from pytest_perfgate.model.metric import Bullets, Document, Paragraph, Section
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.project import KEYS, POLICY_KEYS
from pytest_perfgate.model.values import value


@value
class Term:
    """A term, its meaning in one line, and the page with details."""

    name: str
    meaning: str
    page: str
    also: tuple[str, ...] = ()
    """Synonyms that `perfgate explain` also accepts."""

    @property
    def linked(self) -> bool:
        """Return whether pages link its first use."""
        return self.name in _LINKED


def _term(name: str, meaning: str, page: str, *also: str) -> Term:
    return Term(name=name, meaning=meaning, page=page, also=also)


_LINKED = frozenset({
    "baseline", "can detect", "ceiling", "confirmed regression", "interval", "merge base", "round", "sample", "suspect",
})  # fmt: skip
"""Terms whose first use pages link; everyday words are left out."""

_CLASSES = ("compute", "memory", "launch", "communication", "synchronisation", "latency")
_MODES = ("profile", "profiling mode", "annotation", "event")

TERMS: tuple[Term, ...] = (
    _term("accept", "Write a measured time into the baseline, with a reason.", "accepting"),
    _term(
        "anchor",
        "The accepted time from which drift is counted: the oldest of ninety days, or that of a fixed revision.",
        "verdicts",
        "drift",
    ),
    _term(
        "base",
        "The revision that a change is compared with, and its build. It runs in turns with the head.",
        "against-a-revision",
        *("base revision", "arm", "arms"),
    ),
    _term(
        "baseline",
        "The accepted time of a case on a device: one line in a file under `baselines/` that people review.",
        "accepting",
        "line",
        "baselines",
    ),
    _term(
        "can detect",
        "The smallest slowdown that a measurement would have shown. It says nothing about smaller ones.",
        "accepting",
        *("blind", "blind below", "resolution"),
    ),
    _term("capture", "A profile beside the timing: annotation, ncu, nsys, torch, cupti, cubin.", "captures", *_MODES),
    _term("case", "One call of one test with its parameters. It has its own limits, verdict and baseline.", "fixture"),
    _term("ceiling", "The highest rate that was measured on this machine; it lies below the peak.", "devices"),
    _term(
        "class",
        "What limits a kernel or window most: compute, memory, launches, communication, synchronisation, latency.",
        "classification",
        *("bottleneck", "bound", *(f"{kind}-bound" for kind in _CLASSES), "sync-bound", "launch overhead"),
    ),
    _term(
        "confirmed regression",
        "A slowdown that chance does not explain, shown by rounds of base and head: REGRESSED.",
        "verdicts",
        *("regression", "confirmed"),
    ),
    _term("floor", "A difference in time that a project sets. Smaller differences never count as slower.", "outcomes"),
    _term("head", "The change under test, and its build.", "against-a-revision"),
    _term("history", "The times of earlier full runs on this machine, `.perfgate/history.db`.", "verdicts"),
    _term("interval", "The range of a figure with 95 % confidence. The whole range must keep a limit.", "outcomes"),
    _term(
        "limit",
        "A condition that a case must keep, or its test fails: `METRIC OP VALUE`, such as `slowdown <= 3%`.",
        "limits",
        *("gate", "gates"),
    ),
    _term("merge base", "The newest commit that a change shares with its target branch. Its baselines judge.", "ci"),
    _term("metric", "A named figure that a limit can hold, such as `time` or `mfu`.", "limits"),
    _term("MFU", "Model FLOPs utilisation: the operations per second over the peak of the device.", "work"),
    _term("noise", "How times of unchanged code differ: in a process, between processes, between runs.", "verdicts"),
    _term("outcome", "The result of a limit: PASSED, REGRESSED and eleven more.", "outcomes", "verdict"),
    _term("peak", "The highest rate that the data sheet of the device allows at the clock it ran at.", "devices"),
    _term("policy", "The rule that says whether an outcome passes, warns or fails its test.", "outcomes"),
    _term("process", "A fresh Python process. It measures every case and gives one number for each.", "verdicts"),
    _term("record", "The file that a run writes: every sample, verdict and fact of the machine.", "ci"),
    _term(
        "round",
        "Two fresh processes, base and head, in turns on one core. It gives one difference.",
        "verdicts",
        "rounds",
    ),
    _term(
        "run",
        "One execution of the tests. Its result for a case is one number with an interval.",
        "outcomes",
        "sitting",
    ),
    _term("sample", "One timed call, or the mean of a batch of calls that are too short to time alone.", "timing"),
    _term(
        "SOL",
        "Speed of light: the rate that was reached over the rate that memory and arithmetic allow for this work.",
        "work",
        *("speed-of-light", "speed of light", "roofline", "roof", "% of SOL", "attained fraction", "efficiency"),
    ),
    _term(
        "suspect", "A case that looks slower than its limit allows and is not confirmed yet.", "outcomes", "suspects"
    ),
    _term("work", "The operations and bytes of one call; `mfu` and `sol` need it.", "work"),
)


def find_term(word: str) -> Term | None:
    """Return the term of this name or synonym, or None."""
    name = word.casefold()
    return next((term for term in TERMS if name in {n.casefold() for n in (term.name, *term.also)}), None)


EXPLAIN_ABOUT = """Explain an error code, outcome, term, word of a block, metric, setting, command or view.

For any other word it lists what mentions it. Without a word it lists everything that it can explain.

  perfgate explain limit-syntax
  perfgate explain UNDECIDED
  perfgate explain "merge base"
"""

_EFFECT = {Effect.PASS: "passes", Effect.WARN: "warns", Effect.FAIL: "fails"}


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", nargs="*", metavar="WORD", help="such as limit-syntax, UNDECIDED, mfu, budget")


def run_explain(options: argparse.Namespace) -> int:
    word = " ".join(options.word).strip().strip("[]`")
    show(explain(word) if word else overview(), options)
    return 0


def explain(word: str) -> Document:
    """Return the explanation of a word, or else what mentions it; the error for an unknown one names the nearest."""
    kinds = (kind(word) for kind in (_code, _outcome, _word, _metric, _setting))
    sections = (*filter(None, kinds), *_programs(word))
    if sections:
        return Document(title=word, blocks=sections)
    entries = tuple(_entries())
    mentions = [entries[at] for at in having(word, [f"{name} {text} {also}" for _, name, text, also in entries])]
    if mentions:
        lines = [f"{name} ({kind}): {text}" for kind, name, text, _ in mentions]
        more = (f"and {len(lines) - 12} more",) if len(lines) > 12 else ()
        return Document(title=f"{word}: what mentions it", blocks=(Bullets(items=(*lines[:12], *more)),))
    what = f"'{word}' is not explained, and nothing mentions it"
    raise PerfgateError("explain-unknown", what, fix=proposal(word, (name for _, name, *_ in entries)))


def overview() -> Document:
    """Return everything that can be explained, by kind."""
    kinds: dict[str, list[str]] = {}
    for kind, name, *_ in _entries():
        kinds.setdefault(kind, []).append(name)
    sections = (
        Section(title=f"{kind.capitalize()}s", blocks=(Paragraph(text=", ".join(dict.fromkeys(names))),))
        for kind, names in kinds.items()
        if kind != "rule"
    )
    return Document(title="perfgate explain WORD", blocks=tuple(sections))


def _entries() -> Iterator[tuple[str, str, str, str]]:
    """Yield the kind, the name, the text and the synonyms of all that can be explained."""
    from pytest_perfgate.cli.dispatch import GROUPS
    from pytest_perfgate.core.analysis.decisions import ROWS
    from pytest_perfgate.core.analysis.foreign_files import VIEWS

    yield from (("outcome", _shown(outcome), RULE[outcome].meaning, "") for outcome in Outcome)
    yield from (("outcome", name, text, "") for name, text in UNJUDGED.items())
    yield from (("block word", name, text, "") for name, text in LABELS.items())
    yield from (("baseline field", name, text, "") for name, text in FIELDS.items())
    yield from (("term", term.name, term.meaning, " ".join(term.also)) for term in TERMS)
    yield from (("metric", kind.name, kind.doc, " ".join(kind.aliases)) for _, kind in sorted(by_name().items()))
    yield from (("command", name, text, "") for commands in GROUPS.values() for name, text in commands.items())
    yield from (("view", name, text, "") for name, text in VIEWS.items())
    facts = ((row, " and ".join(f"{name} {sign} {fact}" for name, sign, fact in row.when)) for row in ROWS)
    yield from (("rule", row.name, f"{row.advice}; where {when}", "") for row, when in facts)
    yield from (("setting", key.name, key.doc, "") for key in (*KEYS, *POLICY_KEYS))
    yield from (("error code", code.name, code.title, "") for code in sorted(codes().values(), key=lambda c: c.name))


def _code(word: str) -> Section | None:
    if (code := codes().get(word.casefold())) is None:
        return None
    return _section(
        "Error code",
        f"{code.title}.",
        code.why and f"Why it matters: {code.why}.",
        f"Next: {code.fix}",
        f"Exit code where it stops a command: {code.family.exit} ({code.family.name.lower()}); of an INVALID limit: 4.",
        page=f"errors.md#{code.name}",
    )


def _outcome(word: str) -> Section | None:
    outcome = {_shown(one): one for one in Outcome}.get(word.upper().replace("_", " "))
    if outcome is None:
        text = UNJUDGED.get(word.casefold(), "")
        meaning = f"{text[:1].upper()}{text[1:]}."
        return _section("In place of an outcome", meaning, page="outcomes.md") if text else None
    rule = RULE[outcome]
    local, ci = (_EFFECT[effect(outcome, policy)] for policy in (LOCAL, CI))
    choices = ", ".join(f"{rule.key}={choice.value}" for choice in CHOICES[rule.key]) if rule.key else ""
    return _section(
        "Outcome",
        f"{rule.meaning[0].upper()}{rule.meaning[1:]}.",
        f"Next: {ADVICE[outcome]}",
        f"Its test {local} locally and {ci} in CI." + (f" Another policy: {choices}." if choices else ""),
        rule.exit and f"Exit code of the commands where it fails: {rule.exit}.",
        page="outcomes.md",
    )


def _word(word: str) -> Section | None:
    term = find_term(word)
    return _section(f"Term: {term.name}", term.meaning, page=f"{term.page}.md") if term else None


def _metric(word: str) -> Section | None:
    if (kind := by_name().get(word.casefold().replace(" ", "_").replace("-", "_"))) is None:
        return None
    better = {"lower": "Lower is better.", "higher": "Higher is better."}.get(kind.better.value, "")
    return _section(
        f"Metric: {kind.name}",
        f"{kind.doc[0].upper()}{kind.doc[1:]}. {better}".strip(),
        f"Dimension: {kind.dimension.value}. It comes from: {kind.source}.",
        kind.name in EXAMPLES and f"As a limit: {EXAMPLES.get(kind.name)}",
        kind.scopes and f"Scopes that a limit may name, where they were measured: {', '.join(kind.scopes)}.",
        kind.aliases and f"Other names: {', '.join(kind.aliases)}.",
        page="limits.md",
    )


def _setting(word: str) -> Section | None:
    name = word.casefold().removeprefix("policy.")
    if (key := next((key for key in (*KEYS, *POLICY_KEYS) if key.name == name), None)) is None:
        return None
    of_policy = key in POLICY_KEYS
    default = f"{getattr(LOCAL, name).value}, in CI {getattr(CI, name).value}" if of_policy else key.default or "none"
    return _section(
        f"Setting of [tool.perfgate{'.policy' if of_policy else ''}]",
        f"{key.doc[0].upper()}{key.doc[1:]}.",
        key.choices and f"Values: {', '.join(key.choices)}.",
        f"Default: {default}.",
        page="options.md",
    )


def _programs(word: str) -> Iterator[Section]:
    for kind, name, text, _ in _entries():
        if name == word.casefold() and kind in _CALLS:
            yield _section(kind.capitalize(), f"{text[0].upper()}{text[1:]}.", page=_CALLS[kind].format(name))


_CALLS = {
    "command": "perfgate {} --help",
    "view": "perfgate inspect FILE --view {}",
    "block word": "outcomes.md#the-block",
    "baseline field": "accepting.md#what-a-line-holds",
}


def _section(title: str, *lines: object, page: str) -> Section:
    more = page if page.startswith("perfgate ") else f"docs/{page}"
    return Section(title=title, blocks=tuple(Paragraph(text=str(line)) for line in (*lines, f"More: {more}") if line))


def _shown(outcome: Outcome) -> str:
    return outcome.name.replace("_", " ")
