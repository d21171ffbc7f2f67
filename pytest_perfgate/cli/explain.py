"""Explains codes, terms, metrics, settings, options, commands and views; it holds the terms and their meanings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_perfgate.cli.output import show
from pytest_perfgate.core.judge.policy import ADVICE, CHOICES, CI, FIELDS, LABELS, LOCAL, RULE, UNJUDGED, effect
from pytest_perfgate.core.metric_kinds import EXAMPLES, by_name
from pytest_perfgate.model.errors import PerfgateError, codes, having, proposal
from pytest_perfgate.model.metric import Bullets, Document, MetricKind, Paragraph, Section
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.project import KEYS, POLICY_KEYS, TEST_KEYS


class Term(NamedTuple):
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


_LINKED = frozenset({  # terms whose first use pages link; everyday words are left out
    "baseline", "can detect", "ceiling", "confirmed regression", "interval", "merge base", "round", "sample", "suspect",
})  # fmt: skip

_CLASSES = ("compute", "memory", "launch", "communication", "synchronisation", "latency")
_MODES = ("profile", "profiling mode", "annotation", "event")

TERMS: tuple[Term, ...] = (
    Term("accept", "Write a measured time into the baseline, with a reason.", "accepting"),
    Term(
        "anchor",
        "The accepted time from which drift is counted: the oldest of ninety days, or that of a fixed revision.",
        "verdicts",
        ("drift",),
    ),
    Term(
        "base",
        "The revision that a change is compared with, and its build. It runs in turns with the head.",
        "against-a-revision",
        ("base revision", "arm"),
    ),
    Term(
        "baseline",
        "The accepted time of a case on a device: one line in a file under `baselines/` that people review.",
        "accepting",
        ("line",),
    ),
    Term(
        "can detect",
        "The smallest slowdown that a measurement would have shown. It says nothing about smaller ones.",
        "accepting",
        ("detects", "blind", "resolution"),
    ),
    Term("capture", "A profile beside the timing: annotation, ncu, nsys, torch, cupti, cubin.", "captures", _MODES),
    Term("case", "One call of one test with its parameters. It has its own limits, verdict and baseline.", "fixture"),
    Term("ceiling", "The highest rate that was measured on this machine; it lies below the peak.", "devices"),
    Term(
        "class",
        "What limits a kernel or window most: compute, memory, launches, communication, synchronisation, latency.",
        "classification",
        ("bottleneck", "bound", *(f"{kind}-bound" for kind in _CLASSES), "sync-bound", "launch overhead"),
    ),
    Term(
        "confirmed regression",
        "A slowdown that chance does not explain, shown by rounds of base and head: REGRESSED.",
        "verdicts",
        ("regression", "confirmed"),
    ),
    Term("floor", "A difference in time that a project sets. Smaller differences never count as slower.", "outcomes"),
    Term("head", "The change under test, and its build.", "against-a-revision"),
    Term("history", "The times of earlier full runs on this machine, `.perfgate/history.db`.", "verdicts"),
    Term("interval", "The range of a figure with 95 % confidence. The whole range must keep a limit.", "outcomes"),
    Term(
        "limit",
        "A condition that a case must keep, or its test fails: `METRIC OP VALUE`, such as `slowdown <= 3%`.",
        "limits",
        ("gate",),
    ),
    Term("merge base", "The newest commit that a change shares with its target branch. Its baselines judge.", "ci"),
    Term("metric", "A named figure that a limit can hold, such as `time` or `mfu`.", "limits"),
    Term("MFU", "Model FLOPs utilisation: the operations per second over the peak of the device.", "work"),
    Term("noise", "How times of unchanged code differ: in a process, between processes, between runs.", "verdicts"),
    Term("outcome", "The result of a limit: PASSED, REGRESSED and eleven more.", "outcomes", ("verdict",)),
    Term("peak", "The highest rate that the data sheet of the device allows at the clock it ran at.", "devices"),
    Term("policy", "The rule that says whether an outcome passes, warns or fails its test.", "outcomes"),
    Term("process", "A fresh Python process. It measures every case and gives one number for each.", "verdicts"),
    Term("record", "The file that a run writes: every sample, verdict and fact of the machine.", "ci"),
    Term(
        "round",
        "One fresh process; of two builds, a pair in turns on one core, which gives one difference.",
        "verdicts",
    ),
    Term("run", "One execution of the tests. Its result for a case is one number with an interval.", "outcomes"),
    Term("sample", "One timed call, or the mean of a batch of calls that are too short to time alone.", "timing"),
    Term(
        "SOL",
        "Speed of light: the rate that was reached over the rate that memory and arithmetic allow for this work.",
        "work",
        ("speed-of-light", "speed of light", "roofline", "roof", "% of SOL", "attained fraction", "efficiency"),
    ),
    Term("suspect", "A case that looks slower than its limit allows and is not confirmed yet.", "outcomes"),
    Term("work", "The operations and bytes of one call; `mfu` and `sol` need it.", "work"),
)


def find_term(word: str) -> Term | None:
    """Return the term of this name or synonym, or of its singular, or None."""
    names = {word.casefold(), *(word.casefold().removesuffix(ending) for ending in ("s", "es"))}
    return next((term for term in TERMS if names & {n.casefold() for n in (term.name, *term.also)}), None)


EXPLAIN_ABOUT = """Explain an error code, outcome, term, word of a block, metric, setting, option, command or view.

For any other word it lists what mentions it. Without a word it lists everything that it can explain.

  perfgate explain limit-syntax
  perfgate explain UNDECIDED
  perfgate explain "merge base"
"""
EXPLAIN_PASSES_ON = True  # a word may name an option, such as --perfgate-budget

_OUTCOMES = {outcome.name.replace("_", " "): outcome for outcome in Outcome}
_EFFECT = {Effect.PASS: "passes", Effect.WARN: "warns", Effect.FAIL: "fails"}


def explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("word", nargs="*", metavar="WORD", help="such as limit-syntax, UNDECIDED, mfu, budget")


def run_explain(options: argparse.Namespace) -> int:
    word = " ".join((*options.word, *options.words)).strip().strip("[]`")
    show(explain(word, _metrics_of_plugins) if word else overview(), options)
    return 0


def _metrics_of_plugins() -> Mapping[str, MetricKind]:
    from pytest_perfgate.cli.dispatch import Project
    from pytest_perfgate.wiring import command_line_tools

    return command_line_tools(Project(argparse.Namespace(root="")).root).kinds


def explain(word: str, metrics_of_plugins: Callable[[], Mapping[str, MetricKind]] = dict) -> Document:
    """Return the explanation of a word, or else what mentions it; the error for an unknown one names the nearest."""
    kinds = (kind(word) for kind in (_code, _outcome, _word, _metric, _setting))
    if sections := (*filter(None, kinds), *_programs(word)):
        return Document(title=word, blocks=sections)
    unread = ""
    try:
        if metric := _metric(word, metrics_of_plugins()):
            return Document(title=word, blocks=(metric,))
    except PerfgateError as error:  # most words need no project
        unread = f"; metrics of plugins were not read: {error.what}"
    entries = tuple(_entries())
    at = having(word, [f"{name} {text} {also}" for _, name, text, also in entries])
    if mentions := [f"{name} ({kind}): {text}" for kind, name, text, _ in (entries[place] for place in at)]:
        more = (f"and {len(mentions) - 12} more",) if len(mentions) > 12 else ()
        return Document(title=f"{word}: what mentions it", blocks=(Bullets(items=(*mentions[:12], *more)),))
    what = f"'{word}' is not explained, and nothing mentions it{unread}"
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
    from pytest_perfgate.core.trace_kinds import VIEWS
    from pytest_perfgate.plugin.options import OPTIONS

    yield from (("outcome", name, RULE[outcome].meaning, "") for name, outcome in _OUTCOMES.items())
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
    defaults = {option.name: f"by default {option.local}{option.ci and f', in CI {option.ci}'}" for option in OPTIONS}
    yield from (("option", option.name, f"{option.doc}; {defaults[option.name]}", "") for option in OPTIONS)
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
    outcome = _OUTCOMES.get(word.upper().replace("_", " "))
    if outcome is None:
        text = UNJUDGED.get(word.casefold(), "")
        meaning = f"{text[:1].upper()}{text[1:]}."
        return _section("In place of an outcome", meaning, page="outcomes.md") if text else None
    rule = RULE[outcome]
    local, ci = (_EFFECT[effect(outcome, policy)] for policy in (LOCAL, CI))
    choices = ", ".join(f"{rule.key}={c.value}" for c in CHOICES.get(rule.key, ()) if rule.key != outcome.value)
    return _section(
        "Outcome",
        f"{rule.meaning[0].upper()}{rule.meaning[1:]}.",
        f"Next: {ADVICE[outcome]}",
        f"Its test {local} locally and {ci} in CI." + (f" Another policy: {choices}." if choices else ""),
        rule.exit and f"Exit code of the commands where it fails: {rule.exit}.",
        page="outcomes.md",
    )


def _word(word: str) -> Section | None:
    return _section(f"Term: {term.name}", term.meaning, page=f"{term.page}.md") if (term := find_term(word)) else None


def _metric(word: str, kinds: Mapping[str, MetricKind] | None = None) -> Section | None:
    name, kinds = word.casefold().replace(" ", "_").replace("-", "_"), by_name() if kinds is None else kinds
    if (kind := kinds.get(name)) is None:
        return None
    better = {"lower": "Lower is better.", "higher": "Higher is better."}.get(kind.better.value, "")
    timed = f"a timed call{' or files (perfgate check, perfgate compare)' if {'rank', 'op'} & {*kind.scopes} else ''}"
    return _section(
        f"Metric: {kind.name}",
        f"{kind.doc[0].upper()}{kind.doc[1:]}. {better}".strip(),
        f"Dimension: {kind.dimension.value}. It comes from: {timed if kind.source == 'time' else kind.source}.",
        kind.name in EXAMPLES and f"As a limit: {EXAMPLES.get(kind.name)}",
        kind.scopes and f"Scopes that a limit may name, where they were measured: {', '.join(kind.scopes)}.",
        kind.aliases and f"Other names: {', '.join(kind.aliases)}.",
        page="limits.md",
    )


def _setting(word: str) -> Section | None:
    name = word.casefold().removeprefix("tool.perfgate.").removeprefix("policy.")
    if (key := next((key for key in (*KEYS, *POLICY_KEYS, *TEST_KEYS) if key.name == name), None)) is None:
        return None
    of_policy, table = key in POLICY_KEYS, "[tool.perfgate]" if key in KEYS else "[[tool.perfgate.tests]]"
    default = f"{getattr(LOCAL, name).value}, in CI {getattr(CI, name).value}" if of_policy else key.default or "none"
    return _section(
        f"Setting of {'[tool.perfgate.policy]' if of_policy else table}",
        f"{key.doc[0].upper()}{key.doc[1:]}.",
        key.choices and f"Values: {', '.join(key.choices)}.",
        f"Default: {default}.",
        page="options.md",
    )


def _programs(word: str) -> Iterator[Section]:
    names = {word.casefold().removeprefix("perfgate "), f"--{word.casefold().removeprefix('--').partition('=')[0]}"}
    for kind, name, text, _ in _entries():
        if kind in _CALLS and name in names:
            yield _section(kind.capitalize(), f"{text[0].upper()}{text[1:]}.", page=_CALLS[kind].format(name))


_CHECKOUT = Path(__file__).parents[2]

_CALLS = {
    "command": "perfgate {} --help",
    "view": "perfgate inspect FILE --view {}",
    "block word": "outcomes.md#the-block",
    "option": "options.md#options-of-pytest",
    "baseline field": "accepting.md#what-a-line-holds",
}


def _section(title: str, *lines: object, page: str) -> Section:
    path = page if page.startswith("perfgate ") else f"docs/{page}"
    has_page = path is page or (_CHECKOUT / path.partition("#")[0]).is_file()  # a wheel has no pages
    more = f"More: {path}" if has_page else ""
    return Section(title=title, blocks=tuple(Paragraph(text=str(line)) for line in (*lines, more) if line))
