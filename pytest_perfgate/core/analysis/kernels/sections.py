"""Sections of the bottleneck report on resources and machine code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, shared_of, theoretical_warps
from pytest_perfgate.core.analysis.kernels.sass_mix import (
    LOCAL,
    TENSOR,
    TENSOR_TOTAL,
    Mix,
    barriers_a_stage,
    counted,
    others,
)
from pytest_perfgate.core.analysis.occupancy import UNLINKED, WARP, Occupancy, edge, occupancy, register_cap
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.metric import Block, Bullets, Column, Paragraph, Table
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.device import SmLimits
    from pytest_perfgate.model.profiles import KernelFacts

_TIGHT = {
    "IMMA": (4, "S02 is possible: 15-20 % is claimed, 0 to 1.6 % was measured with care"),
    "FFMA": (4, "independent FFMAs could issue at S01"),
}
"""The stall from which a note is worth its line."""

_HMMA = 8
"""The stall of one HMMA before the next on Ampere; a shorter one means other instructions in between."""

_ENOUGH_BARRIERS = 2
"""Barriers of a stage: one when it is filled, one before it is filled again."""

LOW, HIGH = 5.0, 20.0
"""The compute instructions a load below which cp.async pays, and above which it does not."""

_TILED = ("LDS", "LDSM", "STS", "LDGSTS")
"""Opcodes that show tiles in shared memory."""

_NO_CODE = (
    "Not collected: it needs the machine code (perfgate profile NODEID --mode cubin, perfgate inspect FILE.cubin)."
)

_NO_CODE_EITHER = "Not collected: it needs the machine code as well."

_NOTES = {
    **dict.fromkeys(("LDL", "STL"), "local memory: registers or arrays that did not fit"),
    "LDGSTS": "cp.async",
    "UBLKCP": "bulk copy",
    "UTMALDG": "TMA load",
}


def occupancy_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Yield the table of four resources, with the limiting one."""
    options, sm, facts = diagnosis.occupancy, diagnosis.sm, diagnosis.facts
    if options is None or sm is None or facts.resources is None:
        yield from _possible(sm, facts)
        return
    yield Table(
        columns=Column.header("Resource | Per block | Limit/SM | Blocks/SM: count"),
        rows=tuple(_resource_rows(options, sm, facts)),
    )
    achieved = diagnosis.numbers.get("occupancy")
    yield Bullets(
        items=(
            options.why_none[:1].upper() + options.why_none[1:] or theoretical_warps(options, sm, diagnosis.numbers),
            *_capped(options, sm, facts, diagnosis.numbers.get("spills", 0.0)),
            f"Achieved occupancy: {quantity(achieved, Dimension.FRACTION, 3)}"
            + ("" if achieved is not None else " (perfgate profile NODEID --mode annotation)"),
        )
    )


def _capped(fit: Occupancy, sm: SmLimits, facts: KernelFacts, spilled: float) -> Iterator[str]:
    """Yield the effect of a cap on registers, if they alone limit the blocks."""
    if fit.why_none or fit.limiting != ("registers",) or facts.resources is None:
        return
    registers = facts.resources.registers
    cap = register_cap(sm, threads=fit.threads, registers=registers, shared=shared_of(facts))
    if cap is not None:
        bounds = f"--maxrregcount={cap}, or __launch_bounds__({fit.threads}, {fit.blocks + 1})"
        most = f"{cap} registers a thread at the most, {registers} now"
        also = f", as {spilled:,.0f} bytes a thread do already" if spilled else ""
        yield f"A block more with {most} ({bounds}); what does not fit spills{also}"


_SIZES = (64, 128, 256, 512, 1024)


def _possible(sm: SmLimits | None, facts: KernelFacts) -> Iterator[Block]:
    """Yield the occupancy of blocks of usual sizes, if the launch is unknown."""
    if sm is None or facts.resources is None or "shared" in facts.resources.unstated:
        yield Paragraph(text=f"Not collected: {_unknown(facts)}.")
        return
    registers, shared, most = facts.resources.registers, shared_of(facts), facts.most_threads
    sizes = sorted({*(n for n in _SIZES if not most or n <= most), *([most] if most else [])})
    options = [(size, occupancy(sm, threads=size, registers=registers, shared=shared)) for size in sizes]
    bound = f" The code was compiled for blocks of {most} threads at the most." if most else ""
    yield Table(
        columns=Column.header(
            "Threads a block: count | Blocks/SM: count | Warps/SM: count | Occupancy: fraction 3 | Limited by"
        ),
        rows=tuple((n, h.blocks, h.warps, h.fraction, h.why_none or ", ".join(h.limiting)) for n, h in options),
        note=f"The launch is not known ({_launch_hint(facts)}); {registers} registers a thread and "
        f"{quantity(shared, Dimension.BYTES)} of static shared memory decide this.{bound}",
    )


def _launch_hint(facts: KernelFacts) -> str:
    return f"--threads {min(256, facts.most_threads or 256)} --set smem=48KiB"


def _unknown(facts: KernelFacts) -> str:
    """Return what is missing for occupancy."""
    if facts.resources is None:
        return "the registers of a thread are not known here"
    if "shared" in facts.resources.unstated:
        return UNLINKED if facts.code else "the shared memory of a block is not known here (--section LaunchStats)"
    return f"the limits of {facts.arch or 'this architecture'} are not known here"


def _resource_rows(fit: Occupancy, sm: SmLimits, facts: KernelFacts) -> Iterator[tuple[str | float | None, ...]]:
    limits = dict(fit.limits)
    carved = facts.counters.get("launch__shared_mem_config_size")
    room = quantity(carved.value if carved else sm.smem_bytes, Dimension.BYTES) + (" configured" if carved else "")
    registers = facts.resources.registers if facts.resources else 0
    warps = -(-fit.threads // WARP)
    by_driver = quantity(sm.smem_reserved, Dimension.BYTES)
    reserved = f" ({by_driver} of it the driver's)" if fit.shared > sm.smem_reserved else ", the driver's"
    yield "Registers", f"{fit.registers * warps:,} ({registers} a thread)", f"{sm.registers:,}", limits["registers"]
    yield (
        "Shared memory",
        quantity(fit.shared, Dimension.BYTES) + (reserved if sm.smem_reserved else ""),
        room,
        limits["shared memory"],
    )
    yield "Warps", str(warps), str(sm.warps), limits["warps"]
    yield "Blocks", "1", str(sm.blocks), limits["blocks"]
    yield f"Limiting: {', '.join(fit.limiting)}", "", "", fit.blocks


def ratio_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Yield compute instructions for each global load in the main loop, and what that means for cp.async."""
    inner = diagnosis.inner
    if inner is None:
        yield _executed_ratio(diagnosis.ran) if diagnosis.ran else Paragraph(text=_NO_CODE)
        return
    where = "in the main loop" if diagnosis.loop else "in the kernel (no loop was found)"
    local = sum(inner.counts.get(name, 0) for name in LOCAL)
    widths = " + ".join(f"{count} x {width} bytes" for width, count in inner.widths) or "none"
    bulk = f", {plural(inner.bulk, 'bulk copy', 'bulk copies')}" if inner.bulk else ""
    yield Bullets(
        items=(
            f"Compute instructions {where}: {inner.computed}",
            f"Global loads {where}: {widths}{bulk}",
            f"Ratio: {_ratio(inner, diagnosis.whole)}",
            *([f"Local memory {where}: {local} instructions"] if local else []),
        )
    )


def _executed_ratio(ran: Mix) -> Block:
    """Return the ratio of executed instructions, with all loops by their real frequency."""
    return Bullets(
        items=(
            f"Compute instructions executed: {ran.computed}",
            f"Global loads executed: {ran.loads:,}" + (f", {ran.bulk:,} of them bulk copies" if ran.bulk else ""),
            f"Ratio: {_ratio(ran, ran)}",
        )
    )


def _ratio(inner: Mix, whole: Mix | None) -> str:
    """Return the ratio and its meaning for cp.async; for a kernel that uses it, whether it pays."""
    if inner.ratio is None:
        return f"none ({inner.no_ratio})"
    copies = whole is not None and bool(whole.counts.get("LDGSTS") or whole.bulk)
    how = "cp.async" if whole is None or whole.counts.get("LDGSTS") or not whole.bulk else "bulk copies"
    if inner.ratio > HIGH:
        text = f"high: {how}, which it uses, does not pay" if copies else "high: cp.async does not pay"
    elif inner.ratio >= LOW:
        text = f"medium: it uses {how}; measure without" if copies else "medium: measure with and without cp.async"
    elif copies:
        text = f"low: {how} pays, and is in use"
    elif any(inner.counts.get(name) for name in _TILED):
        text = "low: cp.async pays"
    else:
        text = "low: loads dominate, and no tile goes through shared memory, where cp.async would put it"
    return f"{inner.ratio:.3g} : 1 ({text})"


def mix_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Yield instructions of the kernel and of its main loop, with the usual stall of each."""
    code, whole, inner = diagnosis.facts.code, diagnosis.whole, diagnosis.inner
    if code is None or whole is None or inner is None:
        yield _executed_table(diagnosis.ran) if diagnosis.ran else Paragraph(text=_NO_CODE_EITHER)
        return
    rows = diagnosis.loop.rows if diagnosis.loop else range(len(code))
    yield Table(
        columns=Column.header("Instruction | Kernel: count | Main loop: count | Usual stall | Note"),
        rows=(
            *((name, whole.counts[name], inner.counts.get(name, 0) if diagnosis.loop else None,
               "" if stall is None else f"S{stall:02d}", _note(name, diagnosis, stall))
              for name, stall in counted(code, whole, rows)),
            *others(whole, inner if diagnosis.loop else None),
        ),
        note=f"{whole.instructions:,} instructions, {_looped(diagnosis)}. {code.compiler}".rstrip(),
    )  # fmt: skip


_SHOWN, _LEAST = 16, 0.001

_TELLING = frozenset((*TENSOR, *LOCAL))
"""Rows that are shown even if there are few."""


def _executed_table(ran: Mix) -> Block:
    """Return the most executed opcodes; stalls need the machine code."""
    telling = {n: c for n, c in ran.counts.items() if c >= _LEAST * ran.instructions or (c and n in _TELLING)}
    ranked = sorted(((n, c) for n, c in telling.items() if n != TENSOR_TOTAL), key=lambda pair: -pair[1])
    return Table(
        columns=Column.header("Instruction | Executed: count | Share: fraction 3 | Note"),
        rows=tuple((n, count, count / (ran.instructions or 1), _NOTES.get(n, "")) for n, count in ranked[:_SHOWN]),
        note=f"{ran.instructions:,} warp instructions as the profiler counted them; stalls by instruction need the "
        "machine code.",
    )


def _looped(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.inner.instructions:,} in the main loop" if diagnosis.inner and diagnosis.loop else "no loop"


def _note(name: str, diagnosis: Diagnosis, stall: int | None) -> str:
    if name == "HMMA" and diagnosis.facts.arch in {"sm_80", "sm_86"} and (stall is None or stall >= _HMMA):
        return "S08 is the hardware's minimum"
    if name == "BAR.SYNC" and diagnosis.facts.code and diagnosis.loop:
        each = barriers_a_stage(diagnosis.facts.code, diagnosis.loop.rows)
        return f"{each:.2g} a stage: two suffice, one with two buffers" if each > _ENOUGH_BARRIERS else ""
    if name == "HFMA2" and diagnosis.whole and diagnosis.whole.constants:
        return f"{diagnosis.whole.constants} of the kernel's only write a constant: no computing"
    least, advice = _TIGHT.get(name, (16, ""))
    return advice if stall is not None and stall >= least else _NOTES.get(name, "")


def cliff_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Yield the block's position before the drop from two blocks to one."""
    step = diagnosis.cliff
    if step is None:
        yield Paragraph(text=_static_cliff(diagnosis))
        return
    brink, own = quantity(step.edge, Dimension.BYTES), quantity(step.shared, Dimension.BYTES)
    if step.moot:
        yield Paragraph(text=f"Moot: {step.moot} alone allow one block only ({own} a block, the cliff is at {brink}).")
        return
    above = f"above the cliff of {brink}: one block where two would fit"
    side = above if step.crossed else f"under the cliff of {brink}"
    outcome = f"would leave {step.doubled_blocks} blocks/SM" if step.doubled_blocks else "would not fit"
    double = "would cross the cliff" if step.doubling_crosses else outcome
    yield Bullets(
        items=(
            f"Shared memory a block: {own}, {side}",
            f"Blocks/SM: {step.blocks}" + ("" if step.crossed else _next_drop(diagnosis)),
            f"Double buffering {double}" if step.shared else "Double buffering: no shared memory is used",
        )
    )


def _static_cliff(diagnosis: Diagnosis) -> str:
    """Return what is known without a launch."""
    if diagnosis.facts.resources is None or "shared" in diagnosis.facts.resources.unstated:
        return "Shared memory a block: not collected."
    own = quantity(shared_of(diagnosis.facts), Dimension.BYTES)
    at = f"the cliff is at {quantity(edge(diagnosis.sm), Dimension.BYTES)}; " if diagnosis.sm else ""
    unknown = f"what the launch adds is not known ({_launch_hint(diagnosis.facts)})"
    how = (diagnosis.occupancy and diagnosis.occupancy.why_none) or unknown
    kind = "Shared memory" if diagnosis.facts.launch else "Static shared memory"
    return f"{kind} a block: {own}; {at}{how}."


def _next_drop(diagnosis: Diagnosis) -> str:
    step, options = diagnosis.cliff, diagnosis.occupancy
    if step is None or options is None:
        return ""
    carved, now = diagnosis.facts.counters.get("launch__shared_mem_config_size"), dict(options.limits)["shared memory"]
    small = f"; {now} in the {quantity(carved.value, Dimension.BYTES)} that were configured" if carved else ""
    drop = f"{step.alone}, one less when a block takes over {quantity(step.next_edge, Dimension.BYTES)}"
    return f" (shared memory alone: {drop}{small if now != step.alone else ''})"
