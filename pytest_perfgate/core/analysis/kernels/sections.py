"""Sections of the bottleneck report that rest on resources and machine code."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, shared_of
from pytest_perfgate.core.analysis.occupancy import ENOUGH_WARPS, Occupancy
from pytest_perfgate.core.analysis.sass.control import usual_stall
from pytest_perfgate.core.analysis.sass.mix import COUNTED, LOCAL, Mix
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.device import SmLimits
from pytest_perfgate.model.document import Block, Bullets, Column, Paragraph, Table
from pytest_perfgate.model.kernel import KernelFacts
from pytest_perfgate.model.quantity import Dimension

LOW, HIGH = 5.0, 20.0
"""Compute instructions a load, under which cp.async pays and over which it does not."""
_NO_CODE = "not collected (machine code: perfgate profile NODEID --mode cubin, or perfgate inspect FILE.cubin)"
_NOTES = {
    "IMMA": "S04 is the compiler being careful; S02 brought 0 to 1.6 % where it was measured with care",
    "LDL": "local memory: registers or arrays that did not fit",
    "STL": "local memory: registers or arrays that did not fit",
    "LDGSTS": "cp.async",
    "UBLKCP": "bulk copy",
    "UTMALDG": "TMA load",
}


def occupancy_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """The table of four resources, with the one that limits."""
    held, sm, facts = diagnosis.occupancy, diagnosis.sm, diagnosis.facts
    if held is None or sm is None or facts.resources is None:
        yield Paragraph(text=_no_occupancy(facts))
        return
    yield Table(
        columns=(Column(name="Resource"), Column(name="Per block"), Column(name="Limit/SM"),
                 Column(name="Blocks/SM", dimension=Dimension.COUNT)),
        rows=tuple(_resource_rows(held, sm, facts)),
    )  # fmt: skip
    enough = "sufficient" if held.enough else f"insufficient: fewer than {ENOUGH_WARPS}"
    achieved = diagnosis.numbers.get("occupancy")
    yield Bullets(
        items=(
            held.why_none or f"Active warps/SM: {held.warps} of {sm.warps} ({enough} to hide latency)",
            f"Achieved occupancy: {quantity(achieved, Dimension.FRACTION, 3)}",
        )
    )


def _no_occupancy(facts: KernelFacts) -> str:
    known = f"{facts.resources.registers} registers a thread; " if facts.resources else ""
    return f"{known}blocks and warps not collected (the launch is not known: --set threads=256 --set smem=48KiB)"


def _resource_rows(held: Occupancy, sm: SmLimits, facts: KernelFacts) -> Iterator[tuple[str | float | None, ...]]:
    limits = dict(held.limits)
    carved = facts.counters.get("launch__shared_mem_config_size")
    room = quantity(carved.value if carved else sm.smem_bytes, Dimension.BYTES) + (" configured" if carved else "")
    registers = facts.resources.registers if facts.resources else 0
    yield "Registers", f"{registers}/thread", f"{sm.registers:,}", limits["registers"]
    yield "Shared memory", quantity(held.shared, Dimension.BYTES), room, limits["shared memory"]
    yield "Warps", str(-(-held.threads // 32)), str(sm.warps), limits["warps"]
    yield "Blocks", "1", str(sm.blocks), limits["blocks"]
    yield f"Limiting: {', '.join(held.limiting)}", "", "", held.blocks


def ratio_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Compute instructions for each global load in the main loop, and what that means for cp.async."""
    inner = diagnosis.inner
    if inner is None:
        yield Paragraph(text=_NO_CODE)
        return
    where = "in the main loop" if diagnosis.loop else "in the kernel (no loop was found)"
    widths = " + ".join(f"{count} x {width} bytes" for width, count in inner.widths) or "none"
    yield Bullets(
        items=(
            f"Compute instructions {where}: {inner.computing:,} {inner.compute}".rstrip(),
            f"Global loads {where}: {widths}" + (f", {inner.bulk} bulk copies" if inner.bulk else ""),
            f"Ratio: {_ratio(inner)}",
            *([f"Local memory {where}: {local} instructions"] if (local := _local(inner)) else []),
        )
    )


def _local(inner: Mix) -> int:
    return sum(inner.counts.get(name, 0) for name in LOCAL)


def _ratio(inner: Mix) -> str:
    if inner.ratio is None:
        why = "bulk copies load whole tiles" if inner.bulk else "nothing is loaded" if not inner.loads else "no compute"
        return f"none ({why})"
    said = "high: cp.async does not pay" if inner.ratio > HIGH else "low: cp.async pays" if inner.ratio < LOW else (
        "medium: measure with and without cp.async"
    )  # fmt: skip
    return f"{inner.ratio:.3g} : 1 ({said})"


def mix_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Instructions of the kernel and of its main loop, with the usual stall of each."""
    code, whole, inner = diagnosis.facts.code, diagnosis.whole, diagnosis.inner
    if code is None or whole is None or inner is None:
        yield Paragraph(text=_NO_CODE)
        return
    rows = diagnosis.loop.rows if diagnosis.loop else range(len(code))
    yield Table(
        columns=(Column(name="Instruction"), Column(name="Kernel", dimension=Dimension.COUNT),
                 Column(name="Main loop", dimension=Dimension.COUNT), Column(name="Usual stall"), Column(name="Note")),
        rows=tuple(
            (name, whole.counts[name], inner.counts.get(name, 0) if diagnosis.loop else None,
             _stall(usual_stall(code, name.partition(".")[0], rows)), _note(name, diagnosis))
            for name in COUNTED
            if whole.counts.get(name)
        ),
        note=f"{whole.instructions:,} instructions, {_looped(diagnosis)}. {code.compiler}".rstrip(),
    )  # fmt: skip


def _looped(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.inner.instructions:,} in the main loop" if diagnosis.inner and diagnosis.loop else "no loop"


def _stall(cycles: int | None) -> str:
    return "" if cycles is None else f"S{cycles:02d}"


def _note(name: str, diagnosis: Diagnosis) -> str:
    if name == "HMMA" and diagnosis.facts.arch in {"sm_80", "sm_86"}:
        return "S08 is the hardware's minimum"
    if name == "BAR.SYNC" and diagnosis.inner and diagnosis.inner.counts.get(name, 0) > 2:
        return "many barriers between stages"
    return _NOTES.get(name, "")


def cliff_section(diagnosis: Diagnosis) -> Iterator[Block]:
    """Where the block stands before the drop from two blocks to one."""
    step = diagnosis.cliff
    if step is None:
        asked = quantity(shared_of(diagnosis.facts), Dimension.BYTES) if diagnosis.facts.resources else "not collected"
        yield Paragraph(text=f"Shared memory a block: {asked}; distance to the cliff not collected (launch not known).")
        return
    edge, own = quantity(step.edge, Dimension.BYTES), quantity(step.shared, Dimension.BYTES)
    if step.moot:
        yield Paragraph(text=f"Moot: {step.moot} alone allow one block only ({own} a block, the cliff is at {edge}).")
        return
    side = f"above the cliff of {edge}: one block where two would fit" if step.crossed else f"under the cliff of {edge}"
    double = "would cross the cliff" if step.doubling_crosses else f"would leave {step.doubled_blocks} blocks/SM"
    yield Bullets(
        items=(
            f"Shared memory a block: {own}, {side}",
            f"Blocks/SM: {step.blocks}" + ("" if step.crossed else _next_drop(diagnosis)),
            f"Double buffering {double}" if step.shared else "Double buffering: no shared memory is used",
        )
    )


def _next_drop(diagnosis: Diagnosis) -> str:
    step, held = diagnosis.cliff, diagnosis.occupancy
    if step is None or held is None:
        return ""
    alone = dict(held.limits)["shared memory"]
    return (
        f" (shared memory alone: {alone}, one less when a block takes over {quantity(step.next_edge, Dimension.BYTES)})"
    )
