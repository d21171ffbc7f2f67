"""Views of several kernels: side by side, rules, health."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.decisions import gain_text, text_of
from pytest_perfgate.core.analysis.kernels.bottleneck import Timing, bottleneck_report
from pytest_perfgate.core.analysis.kernels.counters import PLAIN, launches_of
from pytest_perfgate.core.analysis.kernels.sass_facts import changes, identity, loops, same_code, unread_note
from pytest_perfgate.core.render.words import distinct_names, quantity, signed
from pytest_perfgate.model.metric import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Finding,
    Metric,
    Paragraph,
    Section,
    Table,
    labels,
)
from pytest_perfgate.model.values import Dimension, grouped, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis

_COUNT, _BYTES, _PART, _TIME = Dimension.COUNT, Dimension.BYTES, Dimension.FRACTION, Dimension.TIME
_STATED = (("registers", _COUNT), ("spills", _BYTES), ("smem", _BYTES))
_Key = tuple[str, str]
"""Kernel and architecture."""


def code_overview(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return what a cubin shows of each kernel: one row each."""
    columns = (
        *Column.header("kernel | arch | file"),
        *(Column(name=name, dimension=dimension, absent="unknown") for name, dimension in _STATED),
        *Column.header("occupancy limit: fraction 3 | limited by", absent="-"),
        *Column.header("tensor: count"),
        *Column.header("16-byte loads: fraction 3", absent="-"),
        Column(name="compute : load"),
        Column(name="code"),
    )
    sources = [d.facts.source for d in diagnoses]
    files = distinct_names(sources) if len(set(sources)) > 1 else [""] * len(sources)
    unknown = None if any(d.occupancy for d in diagnoses) else ""  # a column without any is left out
    note = "" if all(d.facts.launch for d in diagnoses) else "Occupancy: launch not known (--threads 256)."
    table = Table(columns=columns, rows=tuple(_code_row(*pair, unknown) for pair in zip(diagnoses, files)), note=note)
    if any(d.facts.code for d in diagnoses):
        subtitle = "registers and shared memory as the cubin says; loops and loads from its machine code"
    else:
        subtitle = "registers, stack and shared memory as ptxas -v printed them; a log holds no machine code"
    subtitle = "; ".join(filter(None, (subtitle, unread_note(d.facts for d in diagnoses))))
    return Document(title=title, blocks=(table, *_notable(diagnoses)), subtitle=subtitle)


def _code_row(diagnosis: Diagnosis, file: str, unknown: str | None) -> tuple[Cell, ...]:
    occupied, inner, whole = diagnosis.occupancy, diagnosis.inner, diagnosis.whole
    return (
        diagnosis.name, diagnosis.facts.arch, file,
        *(diagnosis.numbers.get(name) for name, _ in _STATED),
        *((occupied.fraction, ", ".join(occupied.limiting)) if occupied else (unknown, unknown)),
        whole.counts.get("MMA") if whole else None, inner.wide if inner else None,
        f"{inner.ratio:.3g}" if inner and inner.ratio is not None else "-",
        identity(diagnosis.facts.code) if diagnosis.facts.code else "",
    )  # fmt: skip


def counter_overview(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return what counters show of each kernel, the longest first."""
    ranked = sorted(diagnoses, key=lambda d: d.numbers.get("duration", 0.0), reverse=True)
    every = [entry.name for entry in PLAIN if entry.name not in {"duration", "registers", "spills"}]
    classes = any(d.classification.evidence for d in ranked)
    columns = [
        Column(name="duration", dimension=_TIME),
        *(Column(name=n, dimension=Dimension.PLAIN if n == "waves" else _PART, digits=3) for n in every),
        Column(name="registers", dimension=_COUNT),
    ]
    names = [column.name for column in columns if any(column.name in d.numbers for d in ranked)]
    missing = [column.name for column in columns if column.name not in names]
    columns = [*Column.header("kernel"), *(column for column in columns if column.name in names)]
    rows: list[tuple[Cell, ...]] = [(d.name, *(d.numbers.get(name) for name in names)) for d in ranked]
    if classes:
        columns += Column.header("class")
        rows = [(*row, d.classification.bottleneck.value) for row, d in zip(rows, ranked)]
    else:
        missing.append("class")
    by_name = tuple(_by_name(ranked))
    note = f"Not collected for any of them: {', '.join(missing)}." if missing else ""
    table = Table(columns=tuple(columns), rows=tuple(rows), note=note, limit=_LAUNCHES if by_name else 0)
    return Document(title=title, blocks=(*by_name, table, *_evidence(ranked), *_notable(ranked)))


_LAUNCHES = 20
"""The most single launches that are listed below a table by kernel."""


def _by_name(ranked: Sequence[Diagnosis]) -> Iterator[Table]:
    """Yield launches of one kernel summed up, if one has several and all have times."""
    launches: Counter[str] = Counter()
    spent: dict[str, float] = {}
    for d in ranked:
        launches[d.name] += launches_of(d.facts.counters)
        spent[d.name] = spent.get(d.name, 0.0) + d.spent
    whole = sum(spent.values())
    if set(launches.values()) <= {1} or not all("duration" in d.numbers for d in ranked) or not whole:
        return
    yield Table(
        title="By kernel",
        columns=Column.header("kernel | launches: count | total: time | mean: time | of the time: fraction 3"),
        rows=tuple((name, launches[name], time, time / launches[name], time / whole)
                   for name, time in sorted(spent.items(), key=lambda pair: -pair[1]) if launches[name]),
    )  # fmt: skip


def _evidence(diagnoses: Sequence[Diagnosis]) -> Iterator[Block]:
    counts = Counter(f"{d.name}: {d.classification.sentence}" for d in diagnoses if d.classification.evidence)
    silent = len(diagnoses) - sum(counts.values())
    items = [f"{line} ({number:,} launches)" if number > 1 else line for line, number in counts.items()]
    items += [f"Not collected for {silent:,} of them"] if silent else []
    if counts:
        yield Section(title="Classes and their evidence", blocks=(Bullets(items=tuple(items)),))


def _notable(diagnoses: Sequence[Diagnosis]) -> Iterator[Block]:
    """Yield what a reader should not have to search for."""
    builds, texts = defaultdict[str, set[str]](set), defaultdict[tuple[str, str], set[str]](set)
    for d in diagnoses:
        builds[d.name].add(d.facts.arch)
        for f in (f for f in d.advice if f.title != "Micro-benchmark"):
            texts[d.name, f"{text_of(f)} Next: {f.advice}."].add(d.facts.arch)
    of = {key: "" if arches == builds[key[0]] else f" ({', '.join(sorted(arches))})" for key, arches in texts.items()}
    items = [f"{name}{of[name, text]}: {text}" for name, text in texts]
    rules = [f"{d.name}: {rule_text(f)}" for d in diagnoses for f in d.facts.findings if f.gain]
    if items:
        yield Section(title="Findings", blocks=(Bullets(items=tuple(items)),))
    if rules:
        blocks = Bullets(items=tuple(dict.fromkeys(rules))), Paragraph(text="The rest of each: --view rules.")
        yield Section(title="Rules of the profiler", blocks=blocks)


def rule_text(finding: Finding) -> str:
    """Return a rule of the profiler with its gain and its first sentence."""
    first = re.split(r"(?<=[a-z0-9)%]\.)\s+(?=[A-Z])", finding.detail, maxsplit=1)[0]
    return f"{finding.title} ({gain_text(finding)}{', of a part of the kernel' if finding.doubt else ''}): {first}"


def mix_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return counts of every kernel, and its loops."""
    blocks: list[Block] = []
    for d in diagnoses:
        if d.whole is None or d.facts.code is None:
            continue
        rows = tuple(
            (name, count, d.inner.counts.get(name, 0) if d.inner and d.loop else None)
            for name, count in sorted(d.whole.counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if count
        )
        loop_rows = tuple(
            (f"0x{16 * loop.first:04x}", f"0x{16 * loop.last:04x}", len(loop.rows),
             _kind(loop == d.loop, loop.innermost))
            for loop in loops(d.facts.code)
        )  # fmt: skip
        table = Table(columns=Column.header("opcode | kernel: count | main loop: count"), rows=rows)
        nest = Table(columns=Column.header("from | to | instructions: count | loop"), rows=loop_rows)
        blocks.append(Section(title=f"{d.name} ({d.facts.arch})", blocks=(table, nest) if loop_rows else (table,)))
    return Document(title=title, blocks=tuple(blocks) or (Paragraph(text="not collected: no machine code"),))


def _kind(main: bool, innermost: bool) -> str:
    return ", ".join(word for word, label in (("main", main), ("innermost", innermost)) if label)


def bottleneck_view(diagnoses: Sequence[Diagnosis], title: str, timing: Timing | None = None) -> Document:
    """Return the bottleneck reports of all kernels in one document; ``timing`` requires a single kernel."""
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
    """Return what the compiler changed between two builds, kernel by kernel."""
    there = {(d.name, d.facts.arch): d for d in after}
    here = {(d.name, d.facts.arch): d for d in before}
    blocks: list[Block] = []
    renamed = _renamed(here, there)
    for key, old in here.items():
        other = renamed.get(key, key)
        text = f", taken for {other[0]} now: no other kernel is left on either side" if key in renamed else ""
        blocks.append(Section(title=f"{key[0]} ({key[1]}){text}", blocks=tuple(_pair(old, there.get(other)))))
    if added := [f"{name} ({arch})" for name, arch in there if (name, arch) not in {*here, *renamed.values()}]:
        blocks.append(Section(title="Only in the second", blocks=(Bullets(items=tuple(added)),)))
    return Document(title=title, blocks=(*_compilers(before, after), *blocks))


def _renamed(here: Iterable[_Key], there: Iterable[_Key]) -> dict[_Key, _Key]:
    """Return the only unmatched kernel of an architecture in each build as a renamed pair."""
    sides = ((here, there), (there, here))
    gone, come = (grouped(set(side) - set(other), lambda key: key[1]) for side, other in sides)
    return {gone[arch][0]: come[arch][0] for arch in gone if len(gone[arch]) == len(come.get(arch, ())) == 1}


def _compilers(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Iterator[Block]:
    """Yield a change of compiler, first, since machine code depends on it."""
    old, new = (sorted({d.facts.code.compiler for d in side if d.facts.code}) for side in (before, after))
    if old != new:
        compilers = [", ".join(filter(None, names)) or "not said" for names in (old, new)]
        yield Paragraph(text=f"Another compiler: {compilers[0]} before, {compilers[1]} now.")


def _pair(old: Diagnosis, new: Diagnosis | None) -> Iterator[Block]:
    if new is None:
        yield Paragraph(text="only in the first")
    elif same_code(old.facts, new.facts):
        yield Paragraph(text="the same machine code, to the last control bit")
    else:
        rows = tuple((c.what, c.before, c.after) for c in changes(old.facts, new.facts))
        same = Paragraph(text="the same instructions, with other operands or in another order")
        yield Table(columns=Column.header("fact | before: count | after: count"), rows=rows) if rows else same


@value
class Health:
    """A metric, its healthy bound (for spills, the healthy value), and its meaning beyond that."""

    name: str
    dimension: Dimension
    bound: float
    otherwise: str
    at_bound: bool = False

    def keeps(self, number: float) -> bool:
        return number <= self.bound if self.at_bound else number > self.bound

    @property
    def words(self) -> str:
        return f"{'' if self.at_bound else 'over '}{quantity(self.bound, self.dimension)}"


def _over(name: str, bound: float, otherwise: str, dimension: Dimension = Dimension.FRACTION) -> Health:
    return Health(name=name, dimension=dimension, bound=bound, otherwise=otherwise)


HEALTH: tuple[Health, ...] = (
    _over("tc_util", 0.60, "memory- or latency-bound: look at dram and occupancy"),
    _over("dram", 0.70, "compute- or latency-bound: look at tc_util and occupancy"),
    _over("occupancy", 0.25, "registers or shared memory hold it down"),
    _over("l2_hit", 0.80, "little reuse: swizzle, tiles, layout"),
    Health(
        name="spills",
        dimension=Dimension.BYTES,
        bound=0.0,
        otherwise="smaller tiles, fewer accumulators",
        at_bound=True,
    ),
    _over("waves", 1.0, "more blocks", Dimension.PLAIN),
)
"""The healthy bound is above the class's: DRAM limits from 60 % on, and is used well from 70 %."""

_SIDES = frozenset({"tc_util", "dram"})
"""Metrics of which one may be low, since a kernel is limited on one side: only both low are unhealthy."""


def unhealthy_metrics(numbers: Mapping[str, float]) -> Iterator[tuple[Health, float]]:
    """Yield unhealthy metrics; one busy side excuses the other, and missing metrics are not judged."""
    bad = [(row, numbers[row.name]) for row in HEALTH if row.name in numbers and not row.keeps(numbers[row.name])]
    excused = any(row.name in numbers and row.keeps(numbers[row.name]) for row in HEALTH if row.name in _SIDES)
    return ((row, number) for row, number in bad if not (excused and row.name in _SIDES))


def health_sentence(row: Health, number: float, numbers: Mapping[str, float]) -> str:
    why = _otherwise(row, numbers)
    return f"{row.name} {quantity(number, row.dimension, 3)} (healthy: {row.words}): {why}"


def _otherwise(row: Health, numbers: Mapping[str, float]) -> str:
    """Return the meaning; a grid that does not fill the device once leaves it partly idle anyway."""
    few = row.name == "occupancy" and numbers.get("waves", 1.0) < 1
    return "too few blocks for the device: see waves" if few else row.otherwise


def health_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return every kernel compared with the table."""
    columns = Column.header("metric | value | healthy if | what it says")
    return Document(
        title=f"{title}: health",
        blocks=tuple(
            Section(title=d.name, blocks=(Table(columns=columns, rows=tuple(_rows(d.numbers))),)) for d in diagnoses
        ),
    )


def _rows(numbers: Mapping[str, float]) -> Iterator[tuple[str, str, str, str]]:
    bad = {row.name for row, _ in unhealthy_metrics(numbers)}
    for row in HEALTH:
        number = numbers.get(row.name)
        text = "the other side binds" if row.name not in bad else _otherwise(row, numbers)
        if number is None or row.keeps(number):
            text = "" if number is None else "healthy"
        yield row.name, quantity(number, row.dimension, 3), row.words, text


def rules_view(diagnoses: Sequence[Diagnosis], title: str) -> Document:
    """Return every rule's result with its estimated gain, the largest first."""
    sections = tuple(
        Section(
            title=d.name,
            blocks=(Bullets(items=tuple(map(_finding_text, sorted(d.facts.findings, key=_gain, reverse=True)))),),
        )
        for d in diagnoses
        if d.facts.findings
    )
    return Document(title=f"{title}: rules of the profiler", blocks=sections or (Paragraph(text="not collected"),))


def _gain(finding: Finding) -> float:
    return finding.gain.high if finding.gain else 0.0


def _finding_text(finding: Finding) -> str:
    gain = "; ".join(filter(None, (gain_text(finding), finding.doubt))) if finding.gain else ""
    return f"{finding.title}{f' ({gain})' if gain else ''}: {finding.detail} [{finding.trigger}]"


SHOWN = (
    ("duration", Dimension.TIME), ("tc_util", Dimension.FRACTION), ("dram", Dimension.FRACTION),
    ("sm", Dimension.FRACTION), ("occupancy", Dimension.FRACTION), ("l2_hit", Dimension.FRACTION),
    ("registers", Dimension.COUNT), ("spills", Dimension.BYTES), ("smem", Dimension.BYTES), ("waves", Dimension.PLAIN),
)  # fmt: skip

_MOVED = Column.header("Metric | Previous | Current | Change")
_APART = 20  # pairs with a table of their own


def paired(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> list[tuple[Diagnosis, Diagnosis]]:
    """Return launches matched by name and order; unmatched ones are listed elsewhere."""
    there = grouped(after, lambda d: d.name)
    return [(d, there[d.name].pop(0)) for d in before if there.get(d.name)]


def slowdowns(before: Sequence[Diagnosis], after: Sequence[Diagnosis]) -> Iterator[Metric]:
    """Yield the time ratio of each pair, minus one."""
    for old, new in paired(before, after):
        then, now = old.numbers.get("duration"), new.numbers.get("duration")
        if then and now:
            where, ratio = labels(kernel=new.name), now / then - 1
            yield Metric(name="slowdown", value=ratio, dimension=Dimension.FRACTION, labels=where)


def counters_compared(before: Sequence[Diagnosis], after: Sequence[Diagnosis], subject: str) -> Document:
    """Return the pairs whose times changed most, a table of the others, and the kernels that are new or gone."""
    pairs = sorted(paired(before, after), key=_moved, reverse=True)
    blocks: list[Block] = [Section(title=new.name, blocks=(moved_table(old, new),)) for old, new in pairs[:_APART]]
    if others := tuple((new.name, *row) for old, new in pairs[_APART:] for row in moved_table(old, new).rows):
        blocks.append(Table(title="Other pairs", columns=(Column(name="Kernel"), *_MOVED), rows=others, limit=_APART))
    matched = {id(diagnosis) for pair in pairs for diagnosis in pair}
    for title, side in (("Only in the first", before), ("Only in the second", after)):
        if names := tuple(diagnosis.name for diagnosis in side if id(diagnosis) not in matched):
            blocks.append(Section(title=title, blocks=(Bullets(items=names),)))
    return Document(title=f"Kernels compared: {subject}", blocks=tuple(blocks))


def _moved(pair: tuple[Diagnosis, Diagnosis]) -> float:
    then, now = (side.numbers.get("duration", 0.0) for side in pair)
    return abs(now - then)


def moved_table(old: Diagnosis, new: Diagnosis) -> Table:
    """Return metric, before, after, change; cells are text, since every row has another dimension."""
    rows: list[tuple[Cell, ...]] = []
    for name, dimension in SHOWN:
        then, now = old.numbers.get(name), new.numbers.get(name)
        if then is None and now is None:
            continue
        change = signed(now / then - 1) if then and now is not None else "--"
        rows.append((name, quantity(then, dimension), quantity(now, dimension), change))
    if old.classification.evidence or new.classification.evidence:
        rows.append(("class", old.classification.bottleneck.value, new.classification.bottleneck.value, ""))
    return Table(columns=_MOVED, rows=tuple(rows))
