"""Instructions and source lines with the most stalls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.render.words import ABSENT
from pytest_perfgate.model.metric import Block, Cell, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
    from pytest_perfgate.model.profiles import KernelFacts, SourceLine

HOTTEST = 20

_MISSING = (
    "not collected: the report holds no samples with machine code (--section SourceCounters, and --import-source yes "
    "for the source)"
)

_COUNT, _PART = Dimension.COUNT, Dimension.FRACTION


class _Shown(NamedTuple):
    """A column that is left out if it would be empty."""

    column: Column
    cell: Callable[[SourceLine], Cell]
    otherwise: Cell = ABSENT


_COLUMNS = (
    _Shown(Column(name="waits for"), lambda line: line.reason),
    _Shown(Column(name="offset"), lambda line: f"0x{line.offset:04x}"),
    _Shown(Column(name="instruction"), lambda line: line.text, "(not in the report)"),
    _Shown(Column(name="executed", dimension=_COUNT), lambda line: line.executed, None),
    _Shown(Column(name="source"), lambda line: line.place),
)


def annotation_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return samples by instruction and by source line, the most frequent first."""
    return Document(
        title=f"{title}: where they wait",
        blocks=tuple(Section(title=d.name, blocks=tuple(_blocks(d.facts))) for d in diagnoses),
    )


def _blocks(facts: KernelFacts) -> Iterator[Block]:
    total = sampled(facts)
    if not total:
        yield Paragraph(text=_MISSING)
        return
    hottest = sorted(facts.lines, key=lambda line: -(line.samples or 0.0))[:HOTTEST]
    shown = [line for line in hottest if line.samples]
    share = sum(line.samples or 0.0 for line in shown) / total
    columns = [column for column in _COLUMNS if any(column.cell(line) for line in shown)]
    hint = "" if any(line.text for line in shown) else " The report holds no machine code, only where it was sampled."
    yield Table(
        columns=(Column(name="share", dimension=_PART, digits=3), *(c.column for c in columns)),
        rows=tuple(((line.samples or 0.0) / total, *(c.cell(line) or c.otherwise for c in columns)) for line in shown),
        title="Hottest instructions",
        note=f"{len(shown)} of {len(facts.lines)} instructions, {share * 100:.0f} % of {total:,.0f} samples.{hint}",
    )
    if any(line.place for line in facts.lines):
        yield _by_source(facts, total)


def _by_source(facts: KernelFacts, total: float) -> Table:
    rows = sorted(source_lines(facts).items(), key=lambda pair: -pair[1][0])[:HOTTEST]
    return Table(
        columns=Column.header("share: fraction 3 | waits for | source | line"),
        rows=tuple(
            (count / total, reason or ABSENT, place, source_text(facts, place))
            for place, (count, reason) in rows
            if count
        ),
        title="Hottest source lines",
    )


def sampled(facts: KernelFacts) -> float:
    """Return all samples on instructions."""
    return sum(line.samples or 0.0 for line in facts.lines)


def source_lines(facts: KernelFacts) -> dict[str, tuple[float, str]]:
    """Return (samples, leading reason) by place, without instructions that have no place."""
    reasons: dict[str, dict[str, float]] = {}
    for line in facts.lines:
        if line.place:
            here = reasons.setdefault(line.place, {})
            here[line.reason] = here.get(line.reason, 0.0) + (line.samples or 0.0)
    return {place: (sum(here.values()), _leading(here)) for place, here in reasons.items()}


def _leading(reasons: Mapping[str, float]) -> str:
    return max(filter(None, reasons), key=lambda reason: reasons[reason], default="")


def source_text(facts: KernelFacts, place: str) -> str:
    """Return the source line at a place, if the report includes the file."""
    name, _, number = place.rpartition(":")
    lines = facts.sources.get(name, "").splitlines()
    return lines[int(number) - 1].strip() if number.isdigit() and 0 < int(number) <= len(lines) else ""


_ODD = re.compile(r"[^\w.-]+")

_LONGEST = 80

_HEADER = "offset\tshare\tsamples\texecuted\twaits for\tinstruction\tsource"


def code_files(diagnoses: Sequence[Diagnosis]) -> Mapping[str, Callable[[], str]]:
    """Return ``sass/KERNEL.tsv``, ``source/KERNEL/FILE.txt`` and ``ptx/KERNEL.ptx`` of all in the reports."""
    return dict(pair for stem, d in _stems(diagnoses) for pair in _files(stem, d.facts))


def _stems(diagnoses: Sequence[Diagnosis]) -> Iterator[tuple[str, Diagnosis]]:
    """Yield a file name for each launch; repeated launches of a kernel are numbered."""
    used: dict[str, int] = {}
    for diagnosis in diagnoses:
        name = _safe(diagnosis.name)
        used[name] = used.get(name, 0) + 1
        yield (name if used[name] == 1 else f"{name}-{used[name]}"), diagnosis


def _files(stem: str, facts: KernelFacts) -> Iterator[tuple[str, Callable[[], str]]]:
    if facts.lines:
        yield f"sass/{stem}.tsv", partial(sass_text, facts)
    for name in facts.sources:
        if any(line.place.startswith(f"{name}:") for line in facts.lines):
            yield f"source/{stem}/{_safe(PurePath(name).name)}.txt", partial(annotated_source, facts, name)
    if any(line.ptx for line in facts.lines):
        yield f"ptx/{stem}.ptx", partial(ptx_text, facts)


def _safe(name: str) -> str:
    return _ODD.sub("-", shareable(name, Names())).strip("-.")[:_LONGEST] or "kernel"


def sass_text(facts: KernelFacts) -> str:
    """Return every instruction in order, tab-separated; what was not collected is an empty cell."""
    total = sampled(facts)
    rows = (
        (
            f"0x{line.offset:04x}",
            f"{line.samples / total:.4f}" if line.samples is not None and total else "",
            _cell(line.samples),
            _cell(line.executed),
            line.reason,
            line.text.replace("\t", " "),
            line.place,
        )
        for line in facts.lines
    )
    return "\n".join((_HEADER, *("\t".join(row) for row in rows))) + "\n"


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"


def annotated_source(facts: KernelFacts, name: str) -> str:
    """Return the file as compiled, each line with its share of samples and its stall reason."""
    total, source = sampled(facts), source_lines(facts)
    lines = []
    for number, text in enumerate(facts.sources[name].splitlines(), 1):
        count, reason = source.get(f"{name}:{number}", (0.0, ""))
        share = f"{100 * count / total:5.1f} %" if count and total else ""
        lines.append(f"{share:>7}  {reason if share else '':<22.22}  {number:>5} | {text}".rstrip())
    return "\n".join(lines) + "\n"


def ptx_text(facts: KernelFacts) -> str:
    """Return the PTX of the instructions in order; neighbours from one line are merged."""
    lines: list[str] = []
    for line in facts.lines:
        if line.ptx and (not lines or lines[-1] != line.ptx):
            lines.append(line.ptx)
    return "\n".join(lines) + "\n"
