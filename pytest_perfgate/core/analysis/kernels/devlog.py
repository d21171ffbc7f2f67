"""What a kernel's log keeps of each version: its class with the evidence, and what changed since the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_perfgate.core.analysis.classify import Bottleneck
from pytest_perfgate.core.analysis.kernels.comparison import moved_table, paired
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.evidence import code_evidence
from pytest_perfgate.core.analysis.sass.changes import Change, changes, same_code
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.document import Block, Bullets, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.quantity import Dimension

MOST = 10
"""Changes of the instruction mix that an entry shows; the rest is counted."""
_RESOURCES = frozenset({"registers", "shared memory", "stack", "spills"})


def devlog_part(now: Sequence[Diagnosis], then: Sequence[Diagnosis] = ()) -> Document:
    """One section a kernel; with a version before, what moved in it."""
    partners = {id(new): old for old, new in paired(then, now)}
    sections: list[Block] = [
        Section(title=d.name, blocks=tuple(_kernel(d, partners.get(id(d)), bool(then)))) for d in now
    ]
    gone = [d.name for d in then if all(d is not old for old in partners.values())]
    if gone:
        sections.append(Paragraph(text=f"No longer there: {', '.join(dict.fromkeys(gone))}."))
    return Document(title="Kernels", blocks=tuple(sections))


def _kernel(new: Diagnosis, old: Diagnosis | None, compared: bool) -> Iterator[Block]:
    yield Bullets(items=tuple(_said(new, old)))
    if old is not None:
        yield moved_table(old, new)
        yield from _code(old, new)
    elif compared:
        yield Paragraph(text="New in this version.")


def _said(new: Diagnosis, old: Diagnosis | None) -> Iterator[str]:
    yield f"Bottleneck: {_class(new)}"
    if old is not None and old.classification.bottleneck is not new.classification.bottleneck:
        yield f"Before: {_class(old)}"
    told = ", ".join(code_evidence(new))
    if told:
        yield f"Code: {told}"


def _class(diagnosis: Diagnosis) -> str:
    found = diagnosis.classification
    if found.bottleneck is Bottleneck.NOT_COLLECTED:
        return "not collected"
    return ". ".join((found.sentence, *found.notes))


def _code(old: Diagnosis, new: Diagnosis) -> Iterator[Block]:
    """What the compiler changed, the largest differences first; resources stand in the table above."""
    if old.facts.code is None or new.facts.code is None:
        return
    if same_code(old.facts, new.facts):
        yield Paragraph(text="The same machine code, to the last control bit.")
        return
    found = [change for change in changes(old.facts, new.facts) if change.what not in _RESOURCES]
    ranked = sorted(found, key=_size, reverse=True)
    if not ranked:
        yield Paragraph(text="Other operands or another order; the counts of instructions are the same.")
        return
    more = len(ranked) - MOST
    yield Table(
        columns=tuple(Column(name=name) for name in ("Instructions", "Previous", "Current", "Change")),
        rows=tuple(map(_row, ranked[:MOST])),
        note=f"{more} smaller changes are left out." if more > 0 else "",
    )


def _size(change: Change) -> float:
    return abs((change.after or 0) - (change.before or 0))


def _row(change: Change) -> tuple[str, str, str, str]:
    before, after = change.before or 0, change.after or 0
    shown = [quantity(number, Dimension.COUNT) for number in (before, after)]
    return change.what, shown[0], shown[1], f"{after - before:+,.0f}"
