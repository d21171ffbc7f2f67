"""Tables of the pages that are made from data: ``python -m tests.docs.tables`` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pytest_perfgate.cli.explain import TERMS
from pytest_perfgate.core.analysis.trace.figures import FIGURES
from pytest_perfgate.core.judge.policy import ADVICE, CHOICES, CI, LABELS, LOCAL, RULES, UNJUDGED, effect
from pytest_perfgate.core.limits.grammar import UNITLESS, UNITS
from pytest_perfgate.core.metric_kinds import BUILT_IN
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.plan import Effect

DOCS = Path(__file__).resolve().parents[2] / "docs"
CAPTURE = ("stage", "rank", "gpu", "stream", "step", "kernel", "op", "category", "pid")
ARGUMENTS = ("shapes", "types", "strides", "scalars")
_NOTES = {
    "unused": "tests that are gone, and baselines that no limit asks for",
    "moved_by_change": "MOVED where the change itself edits a dependency, a lock file, a toolchain or an image",
    "own_gate": "in CI, the change edits limits, marks, lines, settings or tests by which it is judged",
    "no_base": "committed lines that CI judges without a merge base; where CI names a target branch, `fail` by default",
}
SCOPES = {  # larger sets first: a metric that takes one whole says its name
    "trace": (*CAPTURE, *ARGUMENTS, "launcher", "module", "target", "part", "side", "collective", "group"),
    "capture": CAPTURE,
    "operator": ("op", "category", "rank", "gpu", "step", *ARGUMENTS),
    "kernel": ("kernel", "arch", "launch"),
}
"""Sets of scopes that many metrics share, so that the table of metrics can be read."""
_TEST = {Effect.PASS: "passes", Effect.WARN: "warns", Effect.FAIL: "fails"}


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def outcomes() -> str:
    rows = [
        [
            rule.outcome.name.replace("_", " "),
            rule.meaning,
            _TEST[effect(rule.outcome, LOCAL)],
            _TEST[effect(rule.outcome, CI)],
            f"`{rule.key}`" if rule.key else "",
            str(rule.exit) if rule.exit else "",
        ]
        for rule in RULES
    ]
    rows += [[word, meaning, _TEST[Effect.PASS], _TEST[Effect.PASS], "", ""] for word, meaning in UNJUDGED.items()]
    return table(["outcome", "rule", "test, locally", "test, in CI", "policy", "exit code where it fails"], rows)


def labels() -> str:
    return table(["word", "what it means"], [[f"`{word}`", meaning] for word, meaning in LABELS.items()])


def policies() -> str:
    rows = [
        [
            f"`{key}`",
            ", ".join(f"`{c.value}`" for c in choices),
            f"`{getattr(LOCAL, key).value}`",
            f"`{getattr(CI, key).value}`",
            ", ".join(r.outcome.name.replace("_", " ") for r in RULES if r.key == key) or _NOTES[key],
        ]
        for key, choices in CHOICES.items()
    ]
    return table(["key", "choices", "locally", "in CI", "decides about"], rows)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def scopes_of(kind: MetricKind) -> str:
    """The bare word first, then the sets that the metric takes whole, then what is left over."""
    words = [f"bare `{kind.positional}`"] if kind.positional else []
    remaining = [scope for scope in kind.scopes if scope != "case"]
    for name, shared in SCOPES.items():
        if set(shared) <= set(remaining):
            words.append(f"*{name}*")
            remaining = [scope for scope in remaining if scope not in shared]
    return ", ".join([*words, *(f"`{scope}`" for scope in remaining if scope != kind.positional)])


def metrics() -> str:
    rows = [
        [
            quoted([kind.name, *kind.aliases]),
            kind.doc,
            kind.dimension.value,
            kind.better.value,
            scopes_of(kind),
            kind.source,
        ]
        for kind in BUILT_IN
    ]
    return table(["metric", "what it is", "dimension", "better", "scopes beside `case`", "comes from"], rows)


def scopes() -> str:
    return table(["set", "scopes"], [[f"*{name}*", quoted(members)] for name, members in SCOPES.items()])


def units() -> str:
    rows = [
        [
            dimension.value,
            ", ".join(f"`{unit}`" for unit in symbols) or "none",
            "yes" if dimension in UNITLESS else "below 1" if dimension.value == "fraction" else "only 0",
        ]
        for dimension, symbols in UNITS.items()
    ]
    return table(["dimension", "units", "a bare number"], rows)


def figures() -> str:
    rows = [
        [figure.view, figure.shown, f"`{figure.metric}`", ", ".join(f"`{s}`" for s in figure.scopes.split(", ") if s)]
        for figure in FIGURES
    ]
    return table(["view", "figure", "metric", "scopes beside `case`"], rows)


def advice() -> str:
    return table(
        ["outcome", "what to do"], [[outcome.name.replace("_", " "), text] for outcome, text in ADVICE.items()]
    )


def terms() -> str:
    rows = [
        [f'<a id="{anchor(term.name)}"></a>**{term.name}**', term.meaning, f"[{term.page}]({term.page}.md)"]
        for term in sorted(TERMS, key=lambda term: term.name.casefold())
    ]
    return table(["term", "meaning", "more"], rows)


def anchor(name: str) -> str:
    return name.casefold().replace(" ", "-")


TABLES = {
    "glossary.md": {"terms": terms},
    "outcomes.md": {"outcomes": outcomes, "advice": advice, "labels": labels, "policies": policies},
    "traces.md": {"figures": figures},
    "limits.md": {"metrics": metrics, "scopes": scopes, "units": units},
}


def with_tables(page: str, text: str) -> str:
    """The page with its tables as the data says."""
    for name, rendered in TABLES[page].items():
        pattern = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda m, body=rendered(): f"{m[1]}{body}\n{m[2]}", text, flags=re.DOTALL)
        assert count == 1, f"docs/{page} has no place for its table of {name}"
    return text


def main() -> None:
    for page in TABLES:
        path = DOCS / page
        path.write_text(with_tables(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
