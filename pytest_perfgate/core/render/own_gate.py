"""Everything by which a change edits its own gate, as one list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_perfgate.model.limit import Effect, Outcome
from pytest_perfgate.model.verdict import CaseReport, Excuse, SuiteNote

HEADING = "this change edits its own gate"
EDITS: Mapping[str, str] = {
    "limits": "limit or mark",
    "settings": "setting",
    "loosened": "slower line",
    "widened": "weaker line",
    "renamed": "replaced line",
    "taken away": "removed line",
    "uprooted": "moved project",
    "removed": "removed test",
    "newly marked": "deselected",
    "reworked": "edited test",
    "borrowed": "fixture or hook",
    "binary": "binary file",
    "committed": "committed file",
}
"""Notes on what a change edits, with the word that stands before each of their lines; what weighs most first."""
_EFFECTS: Mapping[str, str] = {"quick": "quick mode", "left out": "not measured", "commanded": "option"}
"""Notes that a run has without such a change too: listed where there is one, and never what fails it."""


def own_gate_lines(reports: Iterable[CaseReport], notes: Sequence[SuiteNote]) -> tuple[tuple[str, str], ...]:
    """A word and a text for each edit; empty where the change leaves its gate alone."""
    cases = tuple(reports)
    edits = (*edit_lines(notes), *_accepted(cases))
    return (*edits, *_excused(cases), *_lines(notes, _EFFECTS)) if edits else ()


def edit_lines(notes: Sequence[SuiteNote]) -> tuple[tuple[str, str], ...]:
    """Those of the notes alone: a line that is accepted with a reason is how a slower time comes in."""
    return tuple(_lines(notes, EDITS))


def other_notes(reports: Iterable[CaseReport], notes: Sequence[SuiteNote]) -> tuple[SuiteNote, ...]:
    """Notes that are not in the list."""
    listed = {*EDITS, *_EFFECTS} if own_gate_lines(reports, notes) else set()
    return tuple(note for note in notes if note.kind not in listed or note.effect is Effect.PASS)


def _lines(notes: Sequence[SuiteNote], kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for kind, word in kinds.items():
        for note in notes:
            if note.kind == kind and note.effect is not Effect.PASS:
                yield from ((word, text) for text in note.names or (note.text,))


def _accepted(reports: Sequence[CaseReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        for verdict in report.verdicts:
            if verdict.outcome is Outcome.ACCEPTED:
                yield "accepted line", f"{report.key}  {verdict.limit.text}: {verdict.sentence}"


def _excused(reports: Sequence[CaseReport]) -> Iterator[tuple[str, str]]:
    for report in reports:
        if report.excuse is Excuse.EXPECTED_TO_FAIL:
            yield "xfail hides", f"{report.worst.value}: {report.key}"
