"""The comment on a pull request: what failed on top, the rest folded away."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.render.block import printable, render_block
from pytest_perfgate.core.render.markdown import render_markdown
from pytest_perfgate.core.render.own_gate import HEADING, other_notes, own_gate_lines
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.report import headline, sentence, summary_line, verdict_table
from pytest_perfgate.model.document import Document
from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.verdict import RunReport

_SHOWN = 20
_ORDER = list(Outcome)


def render_comment(report: RunReport) -> str:
    """Markdown that reads well in a few lines and holds all when it is opened."""
    cases = sorted(report.cases, key=lambda case: (-_ORDER.index(case.worst), str(case.key)))
    told = [case for case in cases if case.effect is not Effect.PASS or case.worst is Outcome.ACCEPTED]
    lines = [f"### perfgate: {headline(report)}", ""]
    edits = own_gate_lines(report.cases, report.notes)
    lines += [f"**{sentence(HEADING)}**", "", *_bullets(edits), ""] if edits else []
    lines += [summary_line(report), ""]
    notes = other_notes(report.cases, report.notes)
    lines += [f"- **{note.effect.value}** {note.text}" for note in notes]
    lines += [""] if notes else []
    for case in told[:_SHOWN]:
        block = render_block(case).rstrip("\n")
        fence = "`" * (3 + block.count("```"))
        lines += [f"{fence}text", block, fence, ""]
    lines += [f"and {len(told) - _SHOWN} more", ""] if len(told) > _SHOWN else []
    table = render_markdown(Document(title="all", blocks=(verdict_table(cases, limit=200),))).partition("\n")[2]
    lines += [f"<details><summary>All {plural(len(cases), 'case')}</summary>", table.rstrip("\n"), "", "</details>"]
    return "\n".join(lines) + "\n"


def _bullets(edits: Sequence[tuple[str, str]]) -> list[str]:
    """A line an edit, as far as a comment should go."""
    lines = [f"- {word}: `{printable(text)}`" for word, text in edits[:_SHOWN]]
    return lines + ([f"- and {len(edits) - _SHOWN} more"] if len(edits) > _SHOWN else [])
