"""Reports of kernels: a compact result for programs, a summary, a devlog."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.analysis.classify import Bottleneck, bound_name
from pytest_perfgate.core.analysis.decisions import NO_ROW, NOTHING, advice_items, gain_text, sentence
from pytest_perfgate.core.analysis.kernels.bottleneck import recommendations
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, class_or_code, code_evidence, weighted
from pytest_perfgate.core.analysis.kernels.sass_facts import FactChange, changes, same_code
from pytest_perfgate.core.analysis.kernels.views import (
    SHOWN,
    health_sentence,
    moved_table,
    paired,
    rule_text,
    unhealthy_metrics,
)
from pytest_perfgate.core.render.words import ABSENT, plural, quantity, significant
from pytest_perfgate.model.metric import Block, Bullets, Column, Document, Finding, Paragraph, Section, Table
from pytest_perfgate.model.values import Dimension, array_value, grouped

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.roofline import Placement

SCHEMA, _TOP, _LONG = 1, 3, 120

_LOCAL = "a local estimate"
"""The doubt of a gain that the profiler estimates for a part of the kernel."""

_STAGES = Column.header("Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue")


@array_value
class ContractInputs:
    """The caller's facts beside a report: the kernel's version, the call, the report of the version before."""

    version: str = ""
    configuration: Mapping[str, str] = field(default_factory=dict)
    baseline: tuple[Diagnosis, ...] = ()


def contract_document(diagnoses: Sequence[Diagnosis], inputs: ContractInputs | None = None) -> Document:
    """Return configuration, stages, the bottleneck of the longest stage, three opportunities, the baseline."""
    inputs = inputs or ContractInputs()
    longest = longest_stage(diagnoses)
    cause, settings = f"Root cause: {root_cause(longest)}", configuration(diagnoses, inputs)
    sections: list[Block] = [
        Section(
            title="Configuration",
            blocks=(Table(columns=tuple(Column(name=n) for n in settings), rows=(tuple(settings.values()),)),),
        ),
        Section(
            title="Stages",
            blocks=(Table(columns=_STAGES, rows=tuple(map(_stage, diagnoses))),),
        ),
        Section(title=f"Bottleneck: {bottleneck_name(longest)}", blocks=(Paragraph(text=cause),)),
        Section(title="Top 3 Opportunities", blocks=(Bullets(items=tuple(_opportunities(diagnoses)), ordered=True),)),
    ]
    for old, new in paired(inputs.baseline, diagnoses):
        sections.append(Section(title=f"vs Baseline: {new.name}", blocks=(moved_table(old, new),)))
    version = inputs.version or "(version not stated)"
    return Document(title=f"Profile: {longest.name} {version}", blocks=tuple(sections))


def configuration(diagnoses: Sequence[Diagnosis], inputs: ContractInputs) -> dict[str, str]:
    """Return how the longest stage was launched and profiled, with the stated facts of the call."""
    profiler = profiler_of(diagnoses)
    return {
        **_by_parameter(inputs.configuration),
        **_configuration(longest_stage(diagnoses)),
        **({"profiler": profiler} if profiler else {}),
    }


def _by_parameter(settings: Mapping[str, str]) -> dict[str, str]:
    """Return an entry for each parameter of a test; another text of the problem keeps one."""
    parts = [part.partition("=") for part in settings.get("parameters", "").split(", ")]
    if not all(name.isidentifier() and text and "=" not in text for name, _, text in parts):
        return dict(settings)
    rest = {name: text for name, text in settings.items() if name != "parameters"}
    return {**{name: text for name, _, text in parts}, **rest}


def profiler_of(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the instrument with its version if the report has it: ``ncu 2025.3.1``."""
    names = dict.fromkeys(d.facts.notes.get("profiler", "") for d in diagnoses)
    return ", ".join(filter(None, names))


def longest_stage(diagnoses: Sequence[Diagnosis]) -> Diagnosis:
    return max(diagnoses, key=lambda d: d.spent)


def _configuration(diagnosis: Diagnosis) -> dict[str, str]:
    launch = diagnosis.facts.launch
    return {
        "device": diagnosis.facts.device or ABSENT,
        "arch": diagnosis.facts.arch or ABSENT,
        "block": " x ".join(map(str, launch.block)) if launch else ABSENT,
        "grid": " x ".join(map(str, launch.grid)) if launch and launch.blocks else ABSENT,
    }


def bottleneck_name(diagnosis: Diagnosis) -> str:
    """Return ``Memory-bound``; a class that is not a bound keeps its name."""
    return bound_name(diagnosis.classification.bottleneck).capitalize()


def root_cause(diagnosis: Diagnosis) -> str:
    """Return at most two sentences on the cause."""
    classification = diagnosis.classification
    return " ".join((f"{diagnosis.name} is {classification.sentence}.", *map(sentence, classification.notes[:1])))


def _stage(diagnosis: Diagnosis) -> tuple[str, ...]:
    numbers = diagnosis.numbers
    return (
        diagnosis.name,
        significant(numbers["duration"] / 1e3).replace(",", "") if "duration" in numbers else ABSENT,
        *(significant(numbers[n] * 100, 3) if n in numbers else ABSENT for n in ("tc_util", "dram", "occupancy")),
        bottleneck_name(diagnosis),
        _issue(diagnosis),
    )


def _issue(diagnosis: Diagnosis) -> str:
    first = (*diagnosis.advice, *(finding for _, finding in top_opportunities([diagnosis])))
    titles = (finding.title for finding in first if finding.trigger != NO_ROW)
    ill = (f"{row.name} {quantity(number, row.dimension, 3)}" for row, number in unhealthy_metrics(diagnosis.numbers))
    return next(titles, None) or next(ill, "none seen")


Chance = tuple[Diagnosis, Finding]
"""A piece of advice with its kernel."""


def top_opportunities(diagnoses: Sequence[Diagnosis]) -> tuple[Chance, ...]:
    """Return our advice and the profiler's rules by the time that they may save, always with our first one."""
    own, rules = _own_advice(diagnoses), [(d, f) for d in diagnoses for f in d.facts.findings if f.gain]
    every = sorted([*own, *rules], key=_saving, reverse=True)
    ranked = [chances[0] for chances in grouped(every, _title).values()]
    top = ranked[:_TOP]
    return tuple(top if not own or own[0] in top else [*top[: _TOP - 1], own[0]])


def _own_advice(diagnoses: Sequence[Diagnosis]) -> list[Chance]:
    """Return our advice, that of the longest kernel first."""
    longest_first = sorted(diagnoses, key=lambda d: d.spent, reverse=True)
    return [(d, finding) for d in longest_first for finding in d.advice if finding.trigger != NO_ROW]


def _saving(chance: Chance) -> tuple[int, float]:
    """Return the time that it may save; estimates of a part of the kernel rank below those of all of it."""
    diagnosis, finding = chance
    if finding.gain is None:
        return 0, 0.0
    gain = finding.gain.high
    return 1 if finding.doubt.startswith(_LOCAL) else 2, (diagnosis.spent or 1.0) * gain / (1 + gain)


def _title(chance: Chance) -> str:
    return chance[1].title


def _short(name: str) -> str:
    return name if len(name) <= _LONG else f"{name[: _LONG - 41]}…{name[-40:]}"


def _opportunities(diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
    for diagnosis, finding in top_opportunities(diagnoses):
        kernel = f"{_short(diagnosis.name)}: " if len(diagnoses) > 1 else ""
        gain = f"est. {finding.gain.high * 100:.0f} % gain at most" if finding.gain else gain_text(finding)
        doubt = f" ({finding.doubt.removeprefix('at most ')})" if finding.doubt else ""
        yield f"{kernel}{finding.title} — {gain}{doubt} — trigger: {finding.trigger}"


def contract_data(diagnoses: Sequence[Diagnosis], inputs: ContractInputs | None = None) -> dict[str, Any]:
    """Return the same as plain data; a number that was not collected is ``null``, never zero."""
    inputs = inputs or ContractInputs()
    longest = longest_stage(diagnoses)
    settings = configuration(diagnoses, inputs)
    return {
        "schema": SCHEMA,
        "kernel": longest.name,
        "version": inputs.version or None,
        "configuration": {name: None if text == ABSENT else text for name, text in settings.items()},
        "stages": [_stage_data(d) for d in diagnoses],
        "bottleneck": {
            "class": longest.classification.bottleneck.value,
            "measured": longest.classification.measured,
            "evidence": list(longest.classification.evidence),
            "runner_up": longest.classification.runner_up.value if longest.classification.runner_up else None,
            "distance": longest.classification.distance,
        },
        "opportunities": [
            {
                "name": finding.title,
                "kernel": diagnosis.name,
                "gain": [finding.gain.low, finding.gain.high] if finding.gain else None,
                "trigger": finding.trigger,
                "advice": finding.advice,
                "doubt": finding.doubt,
                "conflicts": list(finding.conflicts),
            }
            for diagnosis, finding in top_opportunities(diagnoses)
        ],
        "baseline": [
            {"name": new.name, "previous": _stage_data(old), "current": _stage_data(new)}
            for old, new in paired(inputs.baseline, diagnoses)
        ],
    }


def contract_text(diagnoses: Sequence[Diagnosis], inputs: ContractInputs | None) -> str:
    """Return the JSON as a file."""
    return json.dumps(contract_data(diagnoses, inputs), indent=2, ensure_ascii=False) + "\n"


def _stage_data(diagnosis: Diagnosis) -> dict[str, Any]:
    numbers = {n: diagnosis.numbers.get(n) for n in ("duration", "tc_util", "dram", "sm", "occupancy", "l2_hit")}
    return {"name": diagnosis.name, "class": diagnosis.classification.bottleneck.value, **numbers}


def analysis_report(
    diagnoses: Sequence[Diagnosis], title: str, extra: Sequence[tuple[str, str]] = (), placed: Placement | None = None
) -> Document:
    """Return the report; ``extra`` adds figures of the run, such as throughput, ``placed`` its place under the roof."""
    longest = longest_stage(diagnoses)
    mfu = placed.compute if placed and not placed.impossible else None
    total = sum(d.spent for d in diagnoses)
    share = longest.spent / total if total else None
    part = f" ({quantity(share, Dimension.FRACTION, 3)} of the time)" if share is not None else ""
    by_code = longest.classification.bottleneck in (Bottleneck.NOT_COLLECTED, Bottleneck.INVALID)
    advice = tuple(recommendations(longest)) if by_code else (_advice(diagnoses, total, mfu),)
    findings = tuple(dict.fromkeys(_findings(diagnoses, longest))) or (NOTHING,)
    others = Counter(d.classification.named for d in diagnoses if d is not longest)
    rest = f" The others: {', '.join(f'{count} {name}' for name, count in others.items())}." if others else ""
    return Document(
        title=title,
        blocks=(
            Section(
                title="Summary", blocks=(Paragraph(text=f"{longest.name}{part}: {class_or_code(longest)}.{rest}"),)
            ),
            Section(title="Metrics", blocks=(Bullets(items=tuple(_metrics(diagnoses, total, extra))),)),
            Section(title="Findings", blocks=(Bullets(items=findings, ordered=True),)),
            Section(title="Recommendations", blocks=advice),
        ),
    )


def _metrics(diagnoses: Sequence[Diagnosis], total: float, extra: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from (f"{name}: {text}" for name, text in extra)
    yield f"Kernel count: {len(diagnoses)}"
    if total or "Kernel time" not in dict(extra):
        yield f"Kernel time: {quantity(total or None, Dimension.TIME)}"
    parts = {words: weighted(diagnoses, name) for name, words in _COUNTED}
    moved = [(d.facts.counters.get(_DRAM), d.numbers.get("duration")) for d in diagnoses]
    if total and all(counter is not None and spent for counter, spent in moved):
        rate = sum(counter.value * spent for counter, spent in moved if counter is not None and spent) / total
        dram = parts.pop(_OF_PEAK)
        of_peak = f" ({_part(dram)} of its peak)" if dram is not None else ""
        yield f"Memory bandwidth: {quantity(rate, Dimension.BANDWIDTH)}{of_peak}"
    yield from (f"{words}: {_part(part)}" for words, part in parts.items() if part is not None)
    missing = [words for words, part in parts.items() if part is None]
    yield from [f"Not collected: {'; '.join(missing)}"] if missing else []


_OF_PEAK = "Memory bandwidth, of its peak"
_COUNTED = (
    ("tc_util", "Tensor-core utilisation"),
    ("dram", _OF_PEAK),
    ("sm", "Multiprocessor throughput, of its peak"),
    ("occupancy", "Achieved occupancy"),
    ("l2_hit", "L2 hit rate"),
)

_DRAM = "dram__bytes.sum.per_second"


def _findings(diagnoses: Sequence[Diagnosis], longest: Diagnosis) -> Iterator[str]:
    """Yield what stands out, the longest kernel first; its class is in the summary."""
    for d in sorted(diagnoses, key=lambda d: d.spent, reverse=True):
        covered = {"l2_hit"} if d.classification.notes else set[str]()  # the class says it
        name, ill = _short(d.name), ((row, n) for row, n in unhealthy_metrics(d.numbers) if row.name not in covered)
        if d is not longest:
            yield f"{name}: {class_or_code(d)}"
        yield from (f"{name}: {note}" for note in d.classification.notes)
        yield from (f"{name}: {health_sentence(row, n, d.numbers)}" for row, n in ill)
        yield from (f"{name}: {rule_text(f)}" for f in d.facts.findings if f.gain)


def _advice(diagnoses: Sequence[Diagnosis], total: float, mfu: float | None) -> Block:
    """Return what to try, for the longest kernel first; advice for several kernels once, for the one with most time."""
    chances = _own_advice(diagnoses) or [(longest_stage(diagnoses), f) for f in longest_stage(diagnoses).advice]
    items = []
    for (diagnosis, finding), *more in grouped(chances, _title).values():
        share = diagnosis.spent / total if total else None
        share = 1.0 if len(diagnoses) == 1 else share
        also = f" and {plural(len(more), 'more kernel')}" if more else ""
        kernel = f"{_short(diagnosis.name)}{also}: " if len(diagnoses) > 1 else ""
        items.append(f"{kernel}{next(advice_items([finding]))}{_of_all(finding, share, mfu)}")
    return Bullets(items=tuple(items), ordered=True)


def _of_all(finding: Finding, share: float | None, mfu: float | None) -> str:
    """Return the gain of a kernel as a share of the whole."""
    if finding.gain is None or share is None:
        return ""
    times = 1 / (1 - share + share / (1 + finding.gain.high))
    after = f", MFU {_part(mfu)} to {_part(mfu * times)}" if mfu else ""
    return f" Of the whole: at most {quantity(times - 1, Dimension.FRACTION, 2)} more throughput{after}."


def _part(fraction: float) -> str:
    return quantity(fraction, Dimension.FRACTION, 3)


MOST = 10
"""The most changes of the instruction mix in an entry; the rest is counted."""

_RESOURCES = frozenset({"registers", "shared memory", "stack", "spills"})


def devlog_part(now: Sequence[Diagnosis], then: Sequence[Diagnosis]) -> Document:
    """Return one section for each kernel; with an earlier version, what changed."""
    partners = {id(new): old for old, new in paired(then, now)}
    sections: list[Block] = [
        Section(title=d.name, blocks=tuple(_kernel(d, partners.get(id(d)), bool(then)))) for d in now
    ]
    gone = [d.name for d in then if all(d is not old for old in partners.values())]
    if gone:
        sections.append(Paragraph(text=f"No longer there: {', '.join(dict.fromkeys(gone))}."))
    return Document(title="Kernels", blocks=tuple(sections))


def _kernel(new: Diagnosis, old: Diagnosis | None, compared: bool) -> Iterator[Block]:
    yield Bullets(items=tuple(_bottleneck_lines(new, old)))
    if old is not None:
        yield moved_table(old, new)
        yield from _code(old, new)
        return
    if compared:
        yield Paragraph(text="New in this version.")
    rows = [(name, quantity(new.numbers[name], dimension)) for name, dimension in SHOWN if name in new.numbers]
    if rows:
        yield Table(columns=Column.header("Metric | Value"), rows=tuple(rows))


def _bottleneck_lines(new: Diagnosis, old: Diagnosis | None) -> Iterator[str]:
    yield f"Bottleneck: {_class(new)}"
    if old is not None and old.classification.bottleneck is not new.classification.bottleneck:
        yield f"Before: {_class(old)}"
    if evidence := ", ".join(code_evidence(new)):
        yield f"Code: {evidence}"
    if ill := "; ".join(health_sentence(row, number, new.numbers) for row, number in unhealthy_metrics(new.numbers)):
        yield f"Unhealthy: {ill}"


def _class(diagnosis: Diagnosis) -> str:
    classification = diagnosis.classification
    if classification.bottleneck is Bottleneck.NOT_COLLECTED:
        return "not collected"
    return ". ".join((classification.sentence, *classification.notes))


def _code(old: Diagnosis, new: Diagnosis) -> Iterator[Block]:
    """Yield what the compiler changed, the largest differences first; resources are in the table above."""
    if old.facts.code is None or new.facts.code is None:
        return
    if same_code(old.facts, new.facts):
        yield Paragraph(text="The same machine code, to the last control bit.")
        return
    differences = [change for change in changes(old.facts, new.facts) if change.what not in _RESOURCES]
    ranked = sorted(differences, key=lambda change: abs((change.after or 0) - (change.before or 0)), reverse=True)
    if not ranked:
        yield Paragraph(text="Other operands or another order; the counts of instructions are the same.")
        return
    more = len(ranked) - MOST
    yield Table(
        columns=Column.header("Instructions | Previous | Current | Change"),
        rows=tuple(map(_row, ranked[:MOST])),
        note=f"{more} smaller changes are left out." if more > 0 else "",
    )


def _row(change: FactChange) -> tuple[str, str, str, str]:
    before, after = change.before or 0, change.after or 0
    shown = [quantity(number, Dimension.COUNT) for number in (before, after)]
    return change.what, shown[0], shown[1], f"{after - before:+,.0f}"
