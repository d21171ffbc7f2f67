"""The diagnosis of one kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.classify import THRESHOLDS, Bottleneck, Classification, Signals, classify
from pytest_perfgate.core.analysis.decisions import NO_ROW, Fact, recommendations
from pytest_perfgate.core.analysis.kernels.counters import INSIDE, PIPES, launches_of, leading, plain, stalls
from pytest_perfgate.core.analysis.kernels.sass_facts import Loop, main_loop, spilled, static_shared
from pytest_perfgate.core.analysis.kernels.sass_mix import LOCAL, Mix, barriers_a_stage, executed_mix, mix, usual_stall
from pytest_perfgate.core.analysis.occupancy import (
    ENOUGH_WARPS,
    MOST_REGISTERS,
    WARP,
    Cliff,
    Occupancy,
    cliff,
    occupancy,
    register_edge,
)
from pytest_perfgate.model.metric import Finding
from pytest_perfgate.model.profiles import FROM_LOG
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import SmLimits
    from pytest_perfgate.model.profiles import Counter, KernelFacts

_HEAVY_LOADS = 5
"""The compute instructions a load below which loads are many."""

_HEAVY = {"tensor cores": "HMMA", "FMA": "FFMA"}
"""The mix that a busy pipe indicates if there is no machine code."""


@array_value
class Diagnosis:
    """The facts of one kernel, and what follows from them."""

    facts: KernelFacts
    name: str
    numbers: Mapping[str, float]
    """Metrics by plain name."""
    answered: Mapping[str, str]
    """The full name behind each plain one."""
    classification: Classification
    advice: tuple[Finding, ...]
    occupancy: Occupancy | None = None
    cliff: Cliff | None = None
    sm: SmLimits | None = None
    whole: Mix | None = None
    inner: Mix | None = None
    """The mix of the main loop, or of the whole kernel if there is no loop."""
    loop: Loop | None = None
    ran: Mix | None = None
    """The executed mix, if a profiler counted it."""
    stalls: Mapping[str, float] = field(default_factory=dict)
    pipe: tuple[str, float] | None = None

    @property
    def spent(self) -> float:
        """The time of all launches that it stands for; zero if it is not known."""
        return self.numbers.get("duration", 0.0) * launches_of(self.facts.counters)


def diagnose(
    facts: KernelFacts,
    name: str,
    sm: SmLimits | None,
    signals: Signals | None = None,
    extra: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Return everything that follows from the facts; ``signals`` and ``extra`` add the caller's knowledge."""
    plain_numbers = [
        (entry.name, full, number)
        for entry, full, number in plain(facts.counters)
        if entry.name != "duration" or facts.duration is not None  # a time of zero or less is no duration
    ]
    numbers = {**{n: number for n, _, number in plain_numbers}, **dict(_static_numbers(facts)), **(extra or {})}
    loop = main_loop(facts.code) if facts.code else None
    whole = mix(facts.code) if facts.code else None
    inner = mix(facts.code, loop.rows) if facts.code and loop else whole
    ran = executed_mix(facts.executed) if facts.executed else None
    none_spilled = "" if "spills" in numbers else why_no_spills(ran, facts.counters)
    numbers |= {"spills": 0.0} if none_spilled else {}
    fit, step = _fit(facts, sm)
    inputs = _with_warps(signals, fit, numbers) if signals else _signals(facts, numbers, fit, sm)
    classification = _unexplained(classify(inputs), inputs, numbers)
    code = _code_facts(facts, whole, inner, loop)
    known = {**_reported_facts(facts, numbers, fit, step), **_next_steps(facts, fit, step, sm)}
    situation = {**known, **_executed_facts(ran), **code}
    room = _possible_speed_up(classification, inputs)
    if classification.bottleneck is not Bottleneck.NOT_COLLECTED:
        situation["class"] = classification.bottleneck.value
        if not facts.arch.startswith("gfx"):  # no reader collects stall reasons of AMD
            situation["cause"] = classification.cause
    if room is not None:
        situation["room"] = room
    return Diagnosis(
        facts=facts,
        name=name,
        numbers=numbers,
        answered={n: full for n, full, _ in plain_numbers} | ({"spills": none_spilled} if none_spilled else {}),
        classification=classification,
        advice=recommendations(situation),
        occupancy=fit,
        cliff=step,
        sm=sm,
        whole=whole,
        inner=inner,
        loop=loop,
        ran=ran,
        stalls=stalls(facts.counters),
        pipe=leading(facts.counters, PIPES),
    )


def _static_numbers(facts: KernelFacts) -> Iterator[tuple[str, float]]:
    if facts.resources is not None:
        yield from [("registers", facts.resources.registers)] if "registers" not in facts.resources.unstated else ()
        if "stack" not in facts.resources.unstated and (facts.code is not None or facts.resources.source == FROM_LOG):
            if (bytes_spilled := spilled(facts)) is not None:
                yield "spills", bytes_spilled
            yield "stack", facts.resources.stack
        if "shared" not in facts.resources.unstated:
            yield "smem", shared_of(facts)
    if facts.duration is not None and not math.isnan(facts.duration):
        yield "duration", facts.duration


def shared_of(facts: KernelFacts) -> int:
    """Return the bytes that a block requests: static ones, and those of the launch if it is known."""
    return static_shared(facts) + (facts.launch.shared_dynamic if facts.launch else 0)


def _fit(facts: KernelFacts, sm: SmLimits | None) -> tuple[Occupancy | None, Cliff | None]:
    if sm is None or facts.launch is None or facts.resources is None or "shared" in facts.resources.unstated:
        return None, None
    threads, registers, shared = facts.launch.threads, facts.resources.registers, shared_of(facts)
    carved = facts.counters.get("launch__shared_mem_config_size")
    configured = int(carved.value) if carved else None
    fit = occupancy(
        sm, threads=threads, registers=registers, shared=shared, configured=configured, most=facts.most_threads
    )
    return fit, None if fit.why_none else cliff(sm, threads=threads, registers=registers, shared=shared)


def _with_warps(signals: Signals, fit: Occupancy | None, numbers: Mapping[str, float]) -> Signals:
    """Return the caller's signals of the roofs with the warps of the launch, or why it cannot start."""
    if fit and fit.why_none:
        return replace(signals, problems=(*signals.problems, fit.why_none))
    return replace(signals, warps=resident(fit, numbers)) if fit and signals.warps is None else signals


def _signals(facts: KernelFacts, numbers: Mapping[str, float], fit: Occupancy | None, sm: SmLimits | None) -> Signals:
    """Return the signals of counters for both roofs; without pipes, the multiprocessor's own figure is used."""
    pipe = leading(facts.counters, PIPES)
    waits = stalls(facts.counters)
    warps = facts.counters.get("sm__warps_active.avg.per_cycle_active")
    achieved = numbers.get("occupancy")
    active = None
    if warps:
        active = warps.value
    elif achieved is not None and sm:
        active = achieved * sm.warps
    elif fit:
        active = resident(fit, numbers)
    return Signals(
        compute=pipe[1] if pipe else numbers.get("sm"),
        memory=numbers.get("dram"),
        warps=active,
        l2_hit=numbers.get("l2_hit"),
        stall=max(waits.items(), key=lambda pair: pair[1]) if waits else None,
        waves=numbers.get("waves"),
        inside=leading(facts.counters, INSIDE),
        problems=tuple(problem.what for problem in facts.problems),
    )


def _unexplained(classified: Classification, signals: Signals, numbers: Mapping[str, float]) -> Classification:
    """Return a busy multiprocessor without a busy pipe as unexplained, instead of as latency."""
    busy, inside = numbers.get("sm", 0.0), signals.inside[1] if signals.inside else 0.0
    if classified.bottleneck is not Bottleneck.LATENCY or busy < THRESHOLDS.roof or inside >= THRESHOLDS.roof:
        return classified
    note = f"the multiprocessors are {busy * 100:.1f} % busy, and none of the known pipes explains it"
    return replace(
        classified, notes=(*classified.notes, f"{note} (--section ComputeWorkloadAnalysis collects them all)")
    )


def _reported_facts(
    facts: KernelFacts, numbers: Mapping[str, float], fit: Occupancy | None, step: Cliff | None
) -> dict[str, Fact]:
    known: dict[str, Fact] = {n: numbers[n] for n in ("waves", "l2_hit", "spills") if n in numbers}
    if "waves" in numbers and numbers["waves"] < 1:
        known["small_problem"] = "yes"
    if "occupancy" in numbers and fit and fit.fraction:
        known["warps"] = numbers["occupancy"] * fit.warps / fit.fraction
    elif fit:
        known["warps"] = resident(fit, numbers)
    if fit and numbers.get("waves", 1.0) >= 1:
        known["theoretical_warps"] = fit.warps
    inside, pipe = leading(facts.counters, INSIDE), leading(facts.counters, PIPES)
    if inside:
        known["inside"] = inside[1]
    if pipe and pipe[0] in _HEAVY:
        known["mix"] = _HEAVY[pipe[0]]
    if step and not (step.crossed and step.moot):
        known["cliff_distance"] = step.edge - step.shared
    return known


def _next_steps(facts: KernelFacts, fit: Occupancy | None, step: Cliff | None, sm: SmLimits | None) -> dict[str, Fact]:
    """Return the effect of usual remedies on the blocks that fit: twice the shared memory, more registers."""
    if fit is None or step is None or sm is None or facts.resources is None:
        return {}
    known: dict[str, Fact] = {
        "blocks": fit.blocks,
        "doubled_blocks": step.doubled_blocks if step.shared else fit.blocks,
    }
    registers = facts.resources.registers
    most = register_edge(sm, threads=fit.threads, registers=registers, shared=step.shared)
    return {**known, "registers": registers, "register_edge": most if most is not None else MOST_REGISTERS}


def _executed_facts(ran: Mix | None) -> dict[str, Fact]:
    """Return the facts of executed instructions without machine code, whose main loop would say more."""
    if ran is None:
        return {}
    known: dict[str, Fact] = {
        "local_instructions": sum(ran.counts.get(name, 0) for name in LOCAL),
        "async_copies": ran.counts.get("LDGSTS", 0) + ran.bulk,
    }
    return {**known, **({"mix": ran.compute} if ran.compute else {}), **({"ratio": ran.ratio} if ran.ratio else {})}


def _code_facts(facts: KernelFacts, whole: Mix | None, inner: Mix | None, loop: Loop | None) -> dict[str, Fact]:
    if whole is None or inner is None or facts.code is None:
        return {}
    rows = loop.rows if loop else range(len(facts.code))
    known: dict[str, Fact] = {
        "local_instructions": sum(whole.counts.get(name, 0) for name in LOCAL),
        "async_copies": whole.counts.get("LDGSTS", 0) + whole.bulk,
        "mix": inner.compute,
        "load_heavy": "yes" if _load_heavy(inner) else "no",
    }
    optional = {
        "ratio": inner.ratio,
        "wide_loads": inner.wide,
        "narrow_loads_in_loop": sum(n for width, n in inner.widths if width < 16) if loop else None,
        "barriers_a_stage": barriers_a_stage(facts.code, loop.rows) if loop else None,
        "ffma_stall": usual_stall(facts.code, "FFMA", rows),
        "imma_stall": usual_stall(facts.code, "IMMA", rows),
    }
    return {**known, **{name: number for name, number in optional.items() if number is not None}}


def _load_heavy(inner: Mix) -> bool:
    """Return whether loads are a large part of the main loop's instructions."""
    few = inner.ratio is not None and inner.ratio < _HEAVY_LOADS
    return few or bool(inner.loads and not inner.bulk and not inner.computing)


def _possible_speed_up(classified: Classification, signals: Signals) -> float | None:
    """Return the possible speed-up under the nearest roof; None for a bound that was not measured."""
    of_a_roof = (Bottleneck.COMPUTE, Bottleneck.MEMORY, Bottleneck.BALANCED)
    if not classified.measured or classified.bottleneck not in of_a_roof:
        return None
    nearest = max((n for n in (signals.compute, signals.memory) if n), default=None)
    return max(0.0, 1 / nearest - 1) if nearest else None


_ROUNDED = 0.05
"""The rounding of ``waves`` in reports, which may change the number of blocks by one."""


def resident(fit: Occupancy, numbers: Mapping[str, float]) -> int:
    """Return the warps that can be resident: of the blocks that a multiprocessor holds, or that the grid has for it."""
    waves = numbers.get("waves", math.inf)
    if waves >= 1:
        return fit.warps
    blocks = max(1, math.ceil(waves * fit.blocks - _ROUNDED))
    return min(fit.warps, blocks * -(-fit.threads // WARP))


def theoretical_warps(fit: Occupancy, sm: SmLimits, numbers: Mapping[str, float]) -> str:
    """Return the sentence on latency; warps are only called sufficient if grid and active warps agree."""
    return f"Theoretical warps/SM: {fit.warps} of {sm.warps} ({_judged(fit, sm, numbers)})"


def _judged(fit: Occupancy, sm: SmLimits, numbers: Mapping[str, float]) -> str:
    achieved, waves = numbers.get("occupancy"), numbers.get("waves")
    active = achieved * sm.warps if achieved is not None else None
    if not fit.enough:
        return f"insufficient: fewer than {ENOUGH_WARPS} to hide latency"
    if active is not None and active < ENOUGH_WARPS:
        return f"{active:.1f} were active: fewer than {ENOUGH_WARPS} to hide latency"
    if active is None and waves is not None and waves < 1:
        few = f", fewer than {ENOUGH_WARPS} to hide latency" if resident(fit, numbers) < ENOUGH_WARPS else ""
        return f"{waves:.2g} waves of blocks: at most {resident(fit, numbers)} are there{few}"
    return "sufficient to hide latency"


_TOUCHES = ("sass__inst_executed_local_loads", "sass__inst_executed_local_stores")


def why_no_spills(ran: Mix | None, counters: Mapping[str, Counter]) -> str:
    """Return why a kernel spills nothing; "" if unknown, since executed instructions have no byte counts."""
    if ran is not None:
        return "" if _touched(ran) else "no LDL or STL was executed"
    values = [counters[name].value for name in _TOUCHES if name in counters]
    return " and ".join(f"{name} is 0" for name in _TOUCHES) if values == [0, 0] else ""


def why_no_bytes(ran: Mix | None) -> str:
    """Return what is known of spills whose bytes were not collected."""
    touched = _touched(ran) if ran is not None else 0
    return (
        f"{touched:,} LDL and STL were executed, and how many bytes a thread has was not collected" if touched else ""
    )


def depth_unknown(whole: Mix) -> str:
    """Return why the size of a used stack is unknown."""
    return f"{_touched(whole):,} LDL and STL use a stack of no fixed size: a function calls itself"


def _touched(ran: Mix) -> int:
    return sum(ran.counts.get(name, 0) for name in LOCAL)


def weighted(diagnoses: Sequence[Diagnosis], name: str) -> float | None:
    """Return the mean of a metric over time; None if any kernel lacks it."""
    pairs = [(d.numbers.get(name), d.numbers.get("duration")) for d in diagnoses]
    known = [(number, spent) for number, spent in pairs if number is not None and spent]
    total = sum(spent for _, spent in known)
    return sum(number * spent for number, spent in known) / total if len(known) == len(pairs) and total else None


def class_or_code(diagnosis: Diagnosis) -> str:
    """Return its class with the evidence; without counters, what its code shows."""
    by_code = "" if diagnosis.classification.evidence else ", ".join(code_evidence(diagnosis))
    return f"class not collected; {by_code}" if by_code else diagnosis.classification.sentence


def code_evidence(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what resources and machine code show of a kernel, in a few words."""
    numbers, occupied = diagnosis.numbers, diagnosis.occupancy
    if occupied is not None and occupied.why_none:
        yield occupied.why_none
    if "registers" in numbers:
        yield f"{numbers['registers']:.0f} registers"
    if numbers.get("spills"):
        touched = sum(diagnosis.whole.counts.get(name, 0) for name in LOCAL) if diagnosis.whole else 0
        by = f" ({touched:,} LDL and STL)" if touched else ""
        yield f"{numbers['spills']:,.0f} bytes of local memory a thread{by}"
    if occupied is not None and not occupied.why_none:
        blocks = f"{occupied.blocks} block{'' if occupied.blocks == 1 else 's'}"
        yield f"{blocks} and {occupied.warps} warps/SM by {' and '.join(occupied.limiting)}"
    yield from _loop(diagnosis)


def _loop(diagnosis: Diagnosis) -> Iterator[str]:
    inner = diagnosis.inner
    if inner is None or not inner.computing:
        return
    where = "in the main loop" if diagnosis.loop else "in the kernel"
    against = f" for {inner.loads:,} load{'' if inner.loads == 1 else 's'}" if inner.ratio is not None else ""
    yield f"{inner.computed}{against} {where}"


def findings_of(diagnoses: Sequence[Diagnosis]) -> tuple[Finding, ...]:
    """Return the class of each kernel with its numbers, our advice, then the profiler's own rules."""
    # The longest kernel comes first; without times, the one with most findings.
    ranked = sorted(diagnoses, key=lambda d: (d.spent, len(_advice(d))), reverse=True)
    return tuple(finding for d in ranked for finding in _of(d, alone=len(diagnoses) == 1))


def _advice(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.advice if finding.trigger != NO_ROW]


def _of(diagnosis: Diagnosis, *, alone: bool) -> Iterator[Finding]:
    classification, advice = diagnosis.classification, _advice(diagnosis)
    code = tuple(code_evidence(diagnosis))
    if classification.bottleneck is not Bottleneck.NOT_COLLECTED:
        yield Finding(
            title=diagnosis.name,
            detail="; ".join((classification.sentence, *classification.notes)),
            trigger=", ".join(classification.evidence),
            scope=diagnosis.name,
        )
    elif code and (alone or advice):
        yield Finding(title=diagnosis.name, detail=", ".join(code), trigger=code[0], scope=diagnosis.name)
    yield from (replace(finding, scope=diagnosis.name) for finding in advice)
    yield from diagnosis.facts.findings
