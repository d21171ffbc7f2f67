"""Several kernels side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_perfgate.core.analysis.kernels.bottleneck import Timing, bottleneck_report
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
from pytest_perfgate.core.analysis.kernels.plain import PLAIN
from pytest_perfgate.core.analysis.sass.changes import changes, same_code
from pytest_perfgate.core.analysis.sass.identity import identity
from pytest_perfgate.core.analysis.sass.loops import loops
from pytest_perfgate.model.document import Block, Bullets, Cell, Column, Document, Paragraph, Section, Table
from pytest_perfgate.model.quantity import Dimension

_COUNT, _BYTES, _PART, _TIME = Dimension.COUNT, Dimension.BYTES, Dimension.FRACTION, Dimension.TIME
_Key = tuple[str, str]
"""Kernel and architecture."""


def code_overview(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """What a cubin says of each kernel: one line each."""
    columns = (
        Column(name="kernel"), Column(name="arch"), Column(name="registers", dimension=_COUNT),
        Column(name="spills", dimension=_BYTES), Column(name="smem", dimension=_BYTES),
        Column(name="occupancy limit", dimension=_PART, digits=3), Column(name="limited by"),
        Column(name="tensor", dimension=_COUNT), Column(name="16-byte loads", dimension=_PART, digits=3),
        Column(name="compute : load"), Column(name="code"),
    )  # fmt: skip
    return Document(
        title=title,
        blocks=(Table(columns=columns, rows=tuple(_code_row(d) for d in diagnoses)), *_loud(diagnoses)),
        subtitle="registers and shared memory as the cubin says; loops and loads from its machine code",
    )


def _code_row(diagnosis: Diagnosis) -> tuple[Cell, ...]:
    held, inner, whole = diagnosis.occupancy, diagnosis.inner, diagnosis.whole
    return (
        diagnosis.name,
        diagnosis.facts.arch,
        diagnosis.numbers.get("registers"),
        diagnosis.numbers.get("spills"),
        diagnosis.numbers.get("smem"),
        held.fraction if held else None,
        ", ".join(held.limiting) if held else "launch not known",
        whole.counts.get("MMA") if whole else None,
        inner.wide if inner else None,
        f"{inner.ratio:.3g}" if inner and inner.ratio is not None else "-",
        identity(diagnosis.facts.code) if diagnosis.facts.code else "",
    )


def counter_overview(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """What counters say of each kernel, the longest first."""
    ranked = sorted(diagnoses, key=lambda d: d.numbers.get("duration", 0.0), reverse=True)
    every = [entry.name for entry in PLAIN if entry.name not in {"duration", "registers", "spills"}]
    names = [name for name in every if any(name in d.numbers for d in ranked)]
    missing = ", ".join(name for name in every if name not in names)
    columns = (
        Column(name="kernel"),
        Column(name="duration", dimension=_TIME),
        *(Column(name=n, dimension=Dimension.PLAIN if n == "waves" else _PART, digits=3) for n in names),
        Column(name="registers", dimension=_COUNT),
        Column(name="class"),
    )
    rows = tuple(
        (d.name, d.numbers.get("duration"), *(d.numbers.get(n) for n in names), d.numbers.get("registers"),
         d.classification.bottleneck.value)
        for d in ranked
    )  # fmt: skip
    table = Table(columns=columns, rows=rows, note=f"Not collected for any of them: {missing}." if missing else "")
    return Document(title=title, blocks=(table, *_evidence(ranked), *_loud(ranked)))


def _evidence(diagnoses: Sequence[Diagnosis]) -> Iterator[Block]:
    told = Counter(f"{d.name}: {d.classification.sentence}" for d in diagnoses if d.classification.evidence)
    silent = len(diagnoses) - sum(told.values())
    items = [f"{line} ({number:,} launches)" if number > 1 else line for line, number in told.items()]
    items += [f"Not collected for {'any' if silent == len(diagnoses) else f'{silent:,}'} of them"] if silent else []
    yield Section(title="Classes and their evidence", blocks=(Bullets(items=tuple(items)),))


def _loud(diagnoses: Sequence[Diagnosis]) -> Iterator[Block]:
    """What a person should not have to look for."""
    items = [f"{d.name}: {f.title} ({f.trigger})" for d in diagnoses for f in d.advice if f.title != "Micro-benchmark"]
    rules = [f"{d.name}: {f.title} — {f.detail}" for d in diagnoses for f in d.facts.findings if f.gain]
    if items:
        yield Section(title="Findings", blocks=(Bullets(items=tuple(dict.fromkeys(items))),))
    if rules:
        yield Section(title="Rules of the profiler", blocks=(Bullets(items=tuple(dict.fromkeys(rules))),))


def mix_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Counts of every kernel, and its loops."""
    blocks: list[Block] = []
    for d in diagnoses:
        if d.whole is None or d.facts.code is None:
            continue
        rows = tuple(
            (name, count, d.inner.counts.get(name, 0) if d.inner and d.loop else None)
            for name, count in sorted(d.whole.counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if count
        )
        found = tuple(
            (
                f"0x{16 * loop.first:04x}",
                f"0x{16 * loop.last:04x}",
                len(loop.rows),
                _kind(loop == d.loop, loop.innermost),
            )
            for loop in loops(d.facts.code)
        )
        table = Table(columns=(Column(name="opcode"), Column(name="kernel", dimension=_COUNT),
                               Column(name="main loop", dimension=_COUNT)), rows=rows)  # fmt: skip
        nest = Table(columns=(Column(name="from"), Column(name="to"), Column(name="instructions", dimension=_COUNT),
                              Column(name="loop")), rows=found)  # fmt: skip
        blocks.append(Section(title=f"{d.name} ({d.facts.arch})", blocks=(table, nest) if found else (table,)))
    return Document(title=title, blocks=tuple(blocks) or (Paragraph(text="not collected: no machine code"),))


def _kind(main: bool, innermost: bool) -> str:
    return ", ".join(word for word, said in (("main", main), ("innermost", innermost)) if said)


def bottleneck_view(diagnoses: Sequence[Diagnosis], title: str, timing: Timing | None = None) -> Document:
    """The bottleneck report of each kernel in one document; ``timing`` is of the one kernel that there is."""
    reports = [bottleneck_report(d, timing if len(diagnoses) == 1 else None) for d in diagnoses]
    if len(reports) == 1:
        return reports[0]
    return Document(
        title=title,
        blocks=tuple(
            Section(title=f"{report.title} ({d.facts.arch})", blocks=report.blocks)
            for report, d in zip(reports, diagnoses)
        ),
    )


def changes_view(before: Sequence[Diagnosis], after: Sequence[Diagnosis], title: str) -> Document:
    """What the compiler changed between two builds, kernel by kernel."""
    there = {(d.name, d.facts.arch): d for d in after}
    here = {(d.name, d.facts.arch): d for d in before}
    blocks: list[Block] = []
    renamed = _renamed(here, there)
    for key, old in here.items():
        other = renamed.get(key, key)
        said = f", taken for {other[0]} now: no other kernel is left on either side" if key in renamed else ""
        blocks.append(Section(title=f"{key[0]} ({key[1]}){said}", blocks=tuple(_pair(old, there.get(other)))))
    added = [f"{name} ({arch})" for name, arch in there if (name, arch) not in {*here, *renamed.values()}]
    if added:
        blocks.append(Section(title="Only in the second", blocks=(Bullets(items=tuple(added)),)))
    return Document(title=title, blocks=(*_compilers(before, after), *blocks))


def _renamed(here: Iterable[_Key], there: Iterable[_Key]) -> dict[_Key, _Key]:
    """The one kernel of an architecture without a partner in the second build, by its like in the first."""
    gone, come = (_by_arch(set(side) - set(other)) for side, other in ((here, there), (there, here)))
    return {gone[arch][0]: come[arch][0] for arch in gone if len(gone[arch]) == len(come.get(arch, ())) == 1}


def _by_arch(keys: Iterable[_Key]) -> dict[str, list[_Key]]:
    found: dict[str, list[_Key]] = {}
    for key in keys:
        found.setdefault(key[1], []).append(key)
    return found


def _compilers(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Iterator[Block]:
    """Machine code depends on the compiler: a change of it is said before any other."""
    old, new = (sorted({d.facts.code.compiler for d in side if d.facts.code}) for side in (before, after))
    if old != new:
        told = [", ".join(filter(None, names)) or "not said" for names in (old, new)]
        yield Paragraph(text=f"Another compiler: {told[0]} before, {told[1]} now.")


def _pair(old: Diagnosis, new: Diagnosis | None) -> Iterator[Block]:
    if new is None:
        yield Paragraph(text="only in the first")
    elif same_code(old.facts, new.facts):
        yield Paragraph(text="the same machine code, to the last control bit")
    else:
        rows = tuple((c.what, c.before, c.after) for c in changes(old.facts, new.facts))
        yield Table(
            columns=(
                Column(name="fact"),
                Column(name="before", dimension=_COUNT),
                Column(name="after", dimension=_COUNT),
            ),
            rows=rows,
        )
