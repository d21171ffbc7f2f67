"""Two traces compared, as metrics and documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.operators import category_of, fusion_of
from pytest_perfgate.core.analysis.trace.matching import BEYOND, Edit, Match, Roofs
from pytest_perfgate.core.analysis.trace.operators import hardware_table, short_name
from pytest_perfgate.core.analysis.trace.survey import trace_metric
from pytest_perfgate.core.analysis.trace.tables import brief
from pytest_perfgate.core.analysis.trace.timeline import Timeline
from pytest_perfgate.core.render.words import plural, quantity, signed
from pytest_perfgate.model.metric import (
    HALF,
    Absent,
    Block,
    Bullets,
    Column,
    Document,
    Link,
    MetricSet,
    Paragraph,
    Section,
    Table,
    labels,
)
from pytest_perfgate.model.values import Dimension

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT

SIDES = ("reference", "target")

PARTS = ("computation", "exposed_comm", "exposed_memcpy", "exposed_memset", "idle", "busy", "total")

_CALLED = {
    "exposed_comm": "exposed communication",
    "exposed_memcpy": "exposed copies",
    "exposed_memset": "exposed memory sets",
}
"""Parts whose names in tables differ from their fields."""

ON_HOST = ("computation", "idle", "busy", "total")
"""The parts that a program without a GPU has too."""

UNLIKE = "one trace is of the host, the other of a GPU: their times are not compared"


def pair_metrics(scope: str, pairs: Iterable[Match]) -> MetricSet:
    """Return both times, calls, difference, slowdown, and the expected ratio; missing ones are absent."""
    metrics, absent = [], []
    for pair in pairs:
        shaped = {"shapes": pair.detail.replace("×", "x")} if pair.detail else {}
        where = labels(**{scope: pair.name}, **shaped)
        for side, time, calls in zip(SIDES, (pair.before, pair.after), pair.calls):
            there = tuple(sorted((*where, ("side", side))))
            metrics.append(trace_metric("compared_calls", calls, _COUNT, there))
            metrics += [trace_metric("compared_time", time, _TIME, there)] if time is not None else []
        if pair.before is not None and pair.after is not None:
            metrics.append(trace_metric("difference", pair.after - pair.before, _TIME, where))
        if pair.expected is not None:
            metrics.append(trace_metric("expected_slowdown", pair.expected - 1, _PART, where))
        if pair.ratio is None:
            absent.append(Absent(name="slowdown", labels=where, why=pair.remark))
        else:
            metrics.append(trace_metric("slowdown", pair.ratio - 1, _PART, where, pair.remark))
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def no_common_metrics() -> MetricSet:
    """Return absent metrics: a trace of the host and one of a GPU have no common figure."""
    names = ("slowdown", "difference", "expected_slowdown", "compared_time", "compared_calls", "tree_edits")
    return MetricSet(
        absent=tuple(
            Absent(name=name, why=UNLIKE, fix="compare two traces of the host, or two of a GPU") for name in names
        )
    )


def part_metrics(before: Timeline, after: Timeline, parts: Sequence[str]) -> MetricSet:
    """Return the time of each part on both sides."""
    metrics = []
    for name in parts:
        then, now, where = getattr(before, name), getattr(after, name), labels(part=name)
        for side, time in zip(SIDES, (then, now)):
            metrics.append(trace_metric("compared_time", time, _TIME, labels(part=name, side=side)))
        metrics.append(trace_metric("difference", now - then, _TIME, where))
        metrics += [trace_metric("slowdown", now / then - 1, _PART, where)] if then else []
    return MetricSet(metrics=tuple(metrics))


def tree_metrics(edits_made: Sequence[Edit]) -> MetricSet:
    """Return the number of operators by which the call trees differ."""
    return MetricSet(metrics=(trace_metric("tree_edits", sum(edit.size for edit in edits_made), _COUNT, ()),))


def window_slowdown(before: Timeline | None, after: Timeline | None, parts: Sequence[str] = PARTS) -> MetricSet:
    """Return total time of the window with idle time, relative to the reference."""
    if before is None or after is None or not before.total:
        return MetricSet(absent=(Absent(name="slowdown", why="one of the traces has no single device's activity"),))
    whole = MetricSet(metrics=(trace_metric("slowdown", after.total / before.total - 1, _PART, ()),))
    return whole | part_metrics(before, after, parts)


def pair_table(pairs: Sequence[Match], of: str, limit: int = 0) -> Table:
    """Return one row for each pair, the largest first."""
    return Table(
        columns=Column.header(
            f"{of} | arguments | calls, reference: count | calls, target: count | reference: time | target: time | "
            "difference: time | relative: fraction | bound | expected: fraction | remark",
            absent="-",
        ),
        rows=tuple(
            (
                pair.name,
                pair.detail,
                *pair.calls,
                pair.before,
                pair.after,
                pair.after - pair.before if pair.after is not None and pair.before is not None else None,
                pair.ratio - 1 if pair.ratio is not None else None,
                pair.bound,
                pair.expected - 1 if pair.expected is not None else None,
                pair.remark.partition(":")[0],
            )
            for pair in pairs
        ),
        note="Times are a call's mean. Expected is what the ratio of bandwidths or peaks explains. "
        "Investigate what is unexpected; where the target is faster than expected, the reference may have room.",
        limit=limit,
    )


def timeline_pair_table(before: Timeline, after: Timeline) -> Table:
    """Return the time of each part on both sides."""
    rows = []
    for name in PARTS:
        then, now = getattr(before, name), getattr(after, name)
        if then or now:
            rows.append((_CALLED.get(name, name), then, now, now - then, now / then - 1 if then else None))
    return Table(
        columns=Column.header("part | reference: time | target: time | difference: time | relative: fraction"),
        rows=tuple(rows),
    )


def edit_block(edits_made: Sequence[Edit], limit: int = 0, *, compared: bool) -> Block:
    """Return the table of edits, or a sentence if there are none."""
    if edits_made:
        return edit_table(edits_made, limit)
    return Paragraph(text="The call trees are alike." if compared else "The call trees are not compared.")


def edit_table(edits_made: Sequence[Edit], limit: int) -> Table:
    """Return the differences of the call trees, the largest first."""
    ordered = sorted(edits_made, key=lambda edit: -edit.size)
    return Table(
        columns=Column.header("under | reference | target | operators: count"),
        rows=tuple((e.path, e.before, e.after, e.size) for e in ordered),
        limit=limit,
    )


def comparison_document(
    title: str, lines: tuple[Timeline | None, Timeline | None], tables: Sequence[tuple[str, Block]], note: str
) -> Document:
    """Return the change in a sentence, timelines, then what differs."""
    blocks: list[Block] = [Paragraph(text=_neutral(lines))]
    if lines[0] is not None and lines[1] is not None:
        blocks.append(Section(title="Where the time went", blocks=(timeline_pair_table(lines[0], lines[1]),)))
    full = [(name, one) for name, one in tables if not isinstance(one, Table) or one.rows]
    blocks += [Section(title=name, blocks=(one,)) for name, one in full]
    return Document(title=title, subtitle=note, blocks=tuple(blocks))


def key_findings(lines: Lines, pairs: Sequence[Match], roofs: Roofs) -> tuple[str, ...]:
    """Return the main points: the change, which side of the roof caused it, what hardware does not explain."""
    known = [pair for pair in pairs if pair.before is not None and pair.after is not None]
    spent = {side: sum(pair.total[0] for pair in known if pair.bound == side) for side in ("memory", "compute")}
    total, texts = lines[0].computation if lines[0] else 0, []
    if total and any(spent.values()):
        side = max(spent, key=lambda name: spent[name])
        part = min(spent[side] / total, 1.0)  # streams overlap
        texts.append(f"Operators bound by {side} take {part * 100:.0f} % of the reference's compute time.")
        if part > HALF:
            texts += _dominates(side, lines, roofs)
    remarks = Counter(pair.remark.partition(",")[0].partition(":")[0].replace("no ", "without ") for pair in known)
    texts.append(f"Argument sets in both: {', '.join(f'{n:,} {word}' for word, n in remarks.items()) or 'none'}.")
    odd = max((pair for pair in known if pair.unexpected), key=lambda pair: _saving(pair) or 0.0, default=None)
    if odd is not None:
        texts.append(f"The largest that hardware does not explain is {odd.name} {odd.detail}: {_saved(odd, lines[1])}.")
    if lines[0] and lines[1]:
        idle = [line.share(line.idle) for line in lines if line]
        then, now = (f"{share * 100:.1f} %" for share in idle)
        if max(idle) >= 0.01:
            texts.append(f"Idle time is {now} of the target's window and {then} of the reference's.")
    return tuple(texts)


def _dominates(bound: str, lines: Lines, roofs: Roofs) -> list[str]:
    """Return whether the hardware of one side of the roof explains the change of compute time."""
    rates = _rates(bound, roofs)
    if rates is None or not lines[0] or not lines[1] or not lines[0].computation:
        return []
    ratio, expected = lines[1].computation / lines[0].computation, rates[0] / rates[1]
    if _equals(expected):
        return [
            f"{_reason(bound, roofs)}, so no difference is expected. Compute time is {ratio:.2f} times the reference's."
        ]
    near = 1 / BEYOND < ratio / expected < BEYOND
    ends = f": this suggests that {bound} dominates" if near else f", which {bound} does not explain: see the operators"
    wanted = f"{_reason(bound, roofs)}, so its compute time should be {expected:.2f} times the reference's"
    return [f"{wanted}. It is {ratio:.2f} times{ends}."]


def _rates(bound: str, roofs: Roofs) -> tuple[float, float] | None:
    """Return the bandwidths of both, or their peaks of a common type."""
    before, after = roofs.before, roofs.after
    if before is None or after is None or bound not in ("memory", "compute"):
        return None
    rates = before.bandwidth, after.bandwidth
    if bound == "compute":
        shared = [dtype for dtype, _ in before.compute if after.rate(dtype)]
        first = next((dtype for dtype in ("bf16", "fp16", *shared) if dtype in shared), "")
        rates = before.rate(first), after.rate(first)
    return (rates[0], rates[1]) if rates[0] and rates[1] else None


def _reason(bound: str, roofs: Roofs) -> str:
    """Return the difference in hardware that explains a change, in words."""
    rates = _rates(bound, roofs)
    if rates is None:
        return ""
    what, times = "bandwidth" if bound == "memory" else "peak", rates[1] / rates[0]
    return f"The {what} is the same" if _equals(times) else f"The target's {what} is {times:.2f} times the reference's"


def _equals(ratio: float) -> bool:
    return abs(ratio - 1) < 0.005


Lines = tuple[Timeline | None, Timeline | None]

_ASIDE = ("calls, reference", "calls, target", "difference")
"""Columns that are left out of a page for decisions."""

_NO_KERNELS = ("arguments", "bound", "expected")
"""Columns that are empty in a table of kernels."""


def neutral_comparison(subject: str, lines: Lines, pairs: Sequence[Match], roofs: Roofs) -> Document:
    """Return what differs in neutral terms, with recommendations for the target only."""
    from pytest_perfgate.core.analysis.trace.findings import time_outside

    aside = Bullets(
        items=tuple(f"{finding.title}: {finding.advice}" for finding in time_outside(lines[1])) if lines[1] else ()
    )
    outside = (Section(title="Outside of computation", blocks=(aside,)),) if aside.items else ()
    odd = sorted((pair for pair in pairs if pair.unexpected), key=lambda pair: -(_saving(pair) or 0.0))[:6]
    advised = (*outside, *(_advised(pair, number, lines[1]) for number, pair in enumerate(odd, 1)))
    apart = tuple(_detailed(pair, number, roofs) for number, pair in enumerate(odd, 1))
    none = Paragraph(text="No operator differs by more than the hardware explains, or no roof is known.")
    parts = [timeline_pair_table(lines[0], lines[1])] if lines[0] and lines[1] else []
    method = (
        "Expected differences: the ratio of bandwidths where an operator is bound by memory, of peaks where it is "
        "bound by compute; beyond 1.5 times that, a difference is called unexpected."
    )
    return Document(
        title=f"Comparison of {subject}",
        blocks=(
            Section(title="Executive summary", blocks=(Paragraph(text=_neutral(lines)), *parts)),
            Section(title="Key findings", blocks=(Bullets(items=key_findings(lines, pairs, roofs)),)),
            Section(title="Recommendations for the target", blocks=advised or (none,)),
            Section(
                title="Detailed comparison",
                blocks=(
                    *apart,
                    Section(title="All argument sets", blocks=(brief(pair_table(pairs, "operator", 30), *_ASIDE),)),
                ),
                anchor="detail",
            ),
            Section(
                title="Appendix",
                blocks=(hardware_table(reference=roofs.before, target=roofs.after), Paragraph(text=method)),
            ),
        ),
    )


def _advised(pair: Match, number: int, line: Timeline | None) -> Section:
    """Return what the hardware does not explain, and both paths."""
    alike = _equals(pair.expected or 1.0)
    hardware = "the hardware is alike" if alike else f"the hardware alone would make it {_change(pair.expected)}"
    items = (
        f"Gap: {_change(pair.ratio)} than the reference; {hardware}",
        f"Action: fusion or algorithm: {fusion_of(category_of(pair.name), pair.name)}",
        "Action: kernel only: replay it on the target and look at which kernel is selected",
        f"Impact: {_saved(pair, line)}",
    )
    blocks = (Bullets(items=items), Link(text=f"Details: {pair.name}", anchor=f"detail-{number}"))
    return Section(title=f"Priority {number}: {pair.name} {pair.detail}".rstrip(), blocks=blocks)


def _detailed(pair: Match, number: int, roofs: Roofs) -> Section:
    """Return one operator with both times, the expected ratio and its reason."""
    reason = _reason(pair.bound, roofs)
    change = "no difference" if _equals(pair.expected or 1.0) else _change(pair.expected)
    expected = f"{change}, bound by {pair.bound}" + (f". {reason}" if reason else "")
    kernels = [f"; longest kernel {short_name(name)}" if name else "" for name in pair.kernels]
    beyond = f"{(pair.ratio or 0.0) / (pair.expected or 1.0):.3g} times as long as expected"
    items = (
        f"Reference: {quantity(pair.before, _TIME)} a call, {plural(pair.calls[0], 'call')}{kernels[0]}",
        f"Target: {quantity(pair.after, _TIME)} a call, {plural(pair.calls[1], 'call')}{kernels[1]}",
        f"Difference: {_change(pair.ratio)}, {beyond}" + ("; look at kernel selection" if pair.doubled else ""),
        f"Expected: {expected}",
    )
    return Section(
        title=f"{pair.name} {pair.detail}".rstrip(), blocks=(Bullets(items=items),), anchor=f"detail-{number}"
    )


def _change(ratio: float | None) -> str:
    """Return how much slower or faster a ratio of times is."""
    change = (ratio or 1.0) - 1
    return f"{abs(change) * 100:.0f} % {'slower' if change >= 0 else 'faster'}"


def comparative_rough(
    subject: str,
    lines: Lines,
    parts: tuple[Sequence[Match], Sequence[Match], Sequence[Match]],
    note: str,
    collectives: Table,
) -> Document:
    """Return every table of the comparison."""
    blocks: list[Block] = [Paragraph(text=_neutral(lines))]
    ops, exact, kernels = parts
    if lines[0] and lines[1]:
        blocks.append(Section(title="Timeline", blocks=(timeline_pair_table(lines[0], lines[1]),)))
    of_kernels = replace(brief(pair_table(kernels, "kernel"), *_NO_KERNELS), note="Times are a call's mean.")
    blocks += [
        Section(title="Operators", blocks=(replace(brief(pair_table(ops, "operator"), "arguments"), note=""),)),
        Section(title="By arguments", blocks=(pair_table(exact, "operator"),)),
        Section(title="Kernels", blocks=(of_kernels,)),
    ]
    blocks += [Section(title="Collectives", blocks=(collectives,))] if collectives.rows else []
    return Document(title=f"Comparison of {subject} (rough)", subtitle=note, blocks=tuple(blocks))


def _saving(pair: Match) -> float | None:
    """Return the target's time beyond what the hardware explains, over all calls."""
    if pair.before is None or pair.after is None or pair.expected is None:
        return None
    return (pair.after - pair.before * pair.expected) * pair.calls[1]


def _saved(pair: Match, line: Timeline | None) -> str:
    saved = _saving(pair)
    if saved is None:
        return "unknown"
    part = f"{saved / line.computation * 100:.0f} % of " if line and line.computation else "of "
    return f"up to {quantity(saved, _TIME)}, {part}the target's compute time"


def _neutral(lines: Lines) -> str:
    if not lines[0] or not lines[1]:
        return "The times are not compared: one of the traces has no single device's activity."
    computed = _changed(lines[0].computation, lines[1].computation)
    return f"Compute time of the target is {computed}; the whole window is {_changed(lines[0].total, lines[1].total)}."


def _changed(before: float, after: float) -> str:
    """Return a time of the target, and its change against the reference's."""
    change = signed(after / before - 1) if before else "not comparable"
    return f"{quantity(float(after), _TIME)}, {change} against the reference's {quantity(float(before), _TIME)}"
