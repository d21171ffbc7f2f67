"""Rules of advice, as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Union

from pytest_perfgate.core.analysis.occupancy import MOST_REGISTERS
from pytest_perfgate.model.metric import Block, Bullets, Document, Finding, Interval, Paragraph, Section, Severity
from pytest_perfgate.model.values import value

Fact = Union[str, float]

Situation = Mapping[str, Fact]
"""Known facts of a kernel by name; unknown ones are absent."""

NO_ROW = "no other advice applies"

_ASKS = {
    "<": lambda have, want: have < want,
    "<=": lambda have, want: have <= want,
    ">": lambda have, want: have > want,
    ">=": lambda have, want: have >= want,
    "==": lambda have, want: have == want,
}

Test = tuple[str, str, Union[str, float]]
"""(fact, comparison, bound)."""


@value
class AdviceRow:
    name: str
    when: tuple[Test, ...]
    advice: str
    why: str = ""
    gain: tuple[float, float] | None = None
    """The speed-up minus one that was measured elsewhere; without one, the room under the roof bounds it."""
    doubt: str = ""
    conflicts: tuple[str, ...] = ()
    up_to_roof: bool = True
    last: bool = False
    """Whether it applies only if no other rule does."""


_TWICE, _PRESSURE, _ACCUMULATORS, _CAP = (
    "twice the shared memory",
    "larger tiles",
    "more accumulators",
    "a register cap",
)
"""Conflicts that are computed for the kernel: ``conflict_text``."""

_OCCUPANCY = "smaller tiles lower the reuse of what was loaded"

ROWS: tuple[AdviceRow, ...] = (
    AdviceRow(
        name="Software pipelining with cp.async",
        when=(("class", "==", "memory"), ("ratio", "<", 5.0), ("cliff_distance", ">=", 0.0), ("async_copies", "==", 0)),
        advice="overlap global loads with compute: cp.async (LDGSTS), or bulk copies from sm_90 on",
        why="few compute instructions stand between loads, so nothing hides their latency",
        gain=(0.0, 0.35),
        doubt="35 % was seen on one integer GEMM with 8 IMMA a tile; other kernels differ",
        conflicts=(_TWICE,),
    ),
    AdviceRow(
        name="Change the algorithm",
        when=(("class", "==", "memory"), ("ratio", ">", 20.0), ("warps", ">=", 8.0)),
        advice="load less: implicit GEMM, split-Q, im2col; do not add cp.async",
        why="enough warps compute between loads: latency is hidden already, the bytes themselves are the limit; "
        "cp.async cost 5 % on a flash attention kernel with 64 HMMA a tile",
    ),
    AdviceRow(
        name="Tighten stalls on independent FFMA",
        when=(("class", "==", "compute"), ("mix", "==", "FFMA"), ("ffma_stall", ">=", 2.0)),
        advice="independent FFMA can issue every cycle or two: more accumulators in flight, or edit the control words",
        conflicts=(_ACCUMULATORS,),
    ),
    AdviceRow(
        name="More reuse for the tensor cores",
        when=(("class", "==", "compute"), ("mix", "==", "HMMA")),
        advice="larger M and N tiles, a longer K loop; the stall of HMMA itself is the hardware's minimum on Ampere",
        conflicts=(_PRESSURE,),
    ),
    AdviceRow(
        name="Tighten stalls on IMMA",
        when=(("class", "==", "compute"), ("mix", "==", "IMMA"), ("imma_stall", ">=", 4.0)),
        advice="the compiler's S04 for IMMA is cautious: S02 is possible by editing the control words",
        gain=(0.0, 0.20),
        doubt="15-20 % has been claimed; one careful measurement found 1.6 %, and 0 % where it was pipelined",
    ),
    AdviceRow(
        name="More warps a multiprocessor",
        when=(("class", "==", "latency"), ("theoretical_warps", "<", 8.0)),
        advice="less shared memory or fewer registers a block, until 8 warps a multiprocessor or more fit",
        conflicts=(_OCCUPANCY, _CAP),
    ),
    AdviceRow(
        name="Step back from the shared-memory cliff",
        when=(("cliff_distance", "<", 0.0),),
        advice="a smaller tile, so that two blocks fit; or accept one block with more compute for each load",
        gain=(0.0, 1.0),
        doubt="one block less cost a factor of two on GA104; a kernel that hides latency itself loses less",
        conflicts=(_OCCUPANCY,),
    ),
    AdviceRow(
        name="Measure cp.async both ways",
        when=(("ratio", ">=", 5.0), ("ratio", "<=", 20.0), ("class", "==", "memory")),
        advice="time it with and without cp.async: between 5 and 20 compute instructions a load it can go either way",
        conflicts=(_TWICE,),
    ),
    AdviceRow(
        name="Fewer trips through L1 and shared memory",
        when=(("class", "==", "latency"), ("inside", ">=", 0.60)),
        advice="reuse in registers (a tile of results a thread), wider loads, coalesced addresses",
        why="the load-store path inside the chip is the limit, not DRAM and not arithmetic",
        conflicts=(_PRESSURE,),
        up_to_roof=False,
    ),
    AdviceRow(
        name="Fewer, longer launches",
        when=(("class", "==", "launch"),),
        why="starting kernels takes much of the time, on the host or between short kernels",
        advice="a CUDA graph, fused small kernels, or a persistent kernel",
    ),
    AdviceRow(
        name="Overlap communication",
        when=(("class", "==", "communication"),),
        why="nothing computes beside collectives that the next work waits for",
        advice="overlap on streams and in buckets, smaller or fewer collectives, check the topology",
    ),
    AdviceRow(
        name="Remove blocking synchronisations",
        when=(("class", "==", "synchronisation"),),
        why="the host waits until the device is done, and then the device until the host has launched again",
        advice="keep values on the device; wait on events instead of the whole device",
    ),
    AdviceRow(
        name="Better locality in L2",
        when=(("class", "==", "memory"), ("l2_hit", "<", 0.80)),
        advice="swizzle the schedule, tile size, layout, TMA hints, head grouping",
    ),
    AdviceRow(
        name="Measure larger problems",
        when=(("class", "==", "latency"), ("small_problem", "==", "yes")),
        advice="measure again at 1024 to 8192 before believing it: a small problem looks latency-bound",
        up_to_roof=False,
    ),
    AdviceRow(
        name="Avoid local memory",
        when=(("local_instructions", ">", 0.0),),
        advice="smaller tiles, fewer accumulators, so that nothing goes through local memory",
        why="registers that do not fit are written to local memory and read back",
        conflicts=(_OCCUPANCY,),
        up_to_roof=False,
    ),
    AdviceRow(
        name="Fill the device",
        when=(("waves", "<", 1.0),),
        advice="more blocks: smaller tiles, split-K, or a larger problem; some multiprocessors have nothing to do",
        up_to_roof=False,
    ),
    AdviceRow(
        name="Sixteen-byte loads",
        when=(("load_heavy", "==", "yes"), ("wide_loads", "<", 0.5), ("narrow_loads_in_loop", ">", 0.0)),
        advice="load 16 bytes a thread (float4, or eight halves) where rows are aligned",
        why="up to four times as many load instructions move the same bytes, and each takes a slot to issue",
        up_to_roof=False,
    ),
    AdviceRow(
        name="Fewer barriers",
        when=(("class", "==", "latency"), ("barriers_a_stage", ">", 2.0)),
        advice="one barrier a stage suffices with two buffers; named barriers or mbarrier between warps",
        conflicts=(_TWICE,),
    ),
    AdviceRow(
        name="Collect the leading stall",
        when=(("class", "==", "latency"), ("cause", "==", "not collected")),
        advice="know what warps wait for before changing anything: perfgate profile NODEID --mode annotation",
        up_to_roof=False,
    ),
    AdviceRow(
        name="Micro-benchmark",
        when=(),
        advice="time each candidate change alone, then combine what paid",
        last=True,
        up_to_roof=False,
    ),
)  # fmt: skip


def recommendations(situation: Situation, rows: Sequence[AdviceRow] = ROWS) -> tuple[Finding, ...]:
    """Return advice whose conditions all hold, the largest gain first, each with what triggered it."""
    findings = [_finding(row, situation) for row in rows if not row.last and _applies(row, situation)]
    if not findings:
        findings = [_finding(row, situation) for row in rows if row.last and _applies(row, situation)]
    return tuple(sorted(findings, key=_expected_gain, reverse=True))


def _applies(row: AdviceRow, situation: Situation) -> bool:
    return all(_holds(test, situation) for test in row.when)


def _holds(test: Test, situation: Situation) -> bool:
    name, sign, wanted = test
    have = situation.get(name)
    if have is None or isinstance(have, str) is not isinstance(wanted, str):
        return False
    return bool(_ASKS[sign](have, wanted))


def _expected_gain(finding: Finding) -> float:
    return (finding.gain.low + finding.gain.high) / 2 if finding.gain else -1.0


def _finding(row: AdviceRow, situation: Situation) -> Finding:
    gain, doubt = _gain(row, situation)
    return Finding(
        title=row.name,
        detail=sentence(row.why) if row.why else "",
        trigger=", ".join(f"{name}={_written(situation[name])}" for name in dict.fromkeys(n for n, *_ in row.when))
        or NO_ROW,
        advice=row.advice,
        gain=gain,
        doubt=doubt,
        conflicts=tuple(filter(None, (conflict_text(name, situation) for name in row.conflicts))),
        severity=Severity.NOTE,
    )


def conflict_text(name: str, situation: Situation) -> str:
    """Return what a remedy would cost this kernel; "" if it is known to cost nothing."""
    if name == _TWICE:
        return _doubled(situation)
    if name == _CAP:
        spilled = situation.get("spills")
        already = isinstance(spilled, (int, float)) and spilled > 0
        return f"{spilled:,.0f} bytes a thread are spilled already" if already else "capping registers may spill them"
    if name not in (_PRESSURE, _ACCUMULATORS):
        return name
    now, most, blocks = (situation.get(fact) for fact in ("registers", "register_edge", "blocks"))
    if not isinstance(now, (int, float)) or not isinstance(most, (int, float)) or not isinstance(blocks, (int, float)):
        return f"{name} need more registers: occupancy may fall, or registers spill"
    if most >= MOST_REGISTERS:
        return f"{name} need more registers: over {MOST_REGISTERS} a thread they spill ({now:.0f} now)"
    fewer = "no block fits" if blocks <= 1 else f"at most {blocks - 1:.0f} block{'s fit' if blocks > 2 else ' fits'}"
    return f"{name} need more registers: with over {most:.0f} a thread ({now:.0f} now) {fewer}"


def _doubled(situation: Situation) -> str:
    now, then = situation.get("blocks"), situation.get("doubled_blocks")
    if not isinstance(now, (int, float)) or not isinstance(then, (int, float)):
        return "double buffering doubles shared memory: it may cross the cliff"
    if then >= now:
        return ""
    if not then:
        return "double buffering would not fit in shared memory"
    return f"double buffering would leave {then:.0f} of {now:.0f} blocks a multiprocessor"


NOTHING = "Nothing that the known patterns cover."

_WINDOWS, _OF_WINDOW = {"communication", "synchronisation", "launch"}, "the part of the window that it takes"


def _gain(row: AdviceRow, situation: Situation) -> tuple[Interval | None, str]:
    """Return the gain that was measured elsewhere, limited by the room under the nearest roof."""
    room = situation.get("room")
    if row.gain is None:
        if row.up_to_roof and isinstance(room, (int, float)):
            most = _OF_WINDOW if situation.get("class") in _WINDOWS else "the room under the nearest roof"
            return Interval(low=0.0, high=float(room)), f"at most {most}"
        return None, row.doubt
    low, high = row.gain
    if row.up_to_roof and isinstance(room, (int, float)):
        low, high = min(low, float(room)), min(high, float(room))
    return Interval(low=low, high=high), row.doubt


def _written(fact: Fact) -> str:
    return fact if isinstance(fact, str) else f"{fact:.0f}" if abs(fact) >= 1000 else f"{fact:.4g}"


def advice_items(advice: Sequence[Finding]) -> Iterator[str]:
    """Yield one item for each, in the given order."""
    for finding in advice:
        bound = f", {finding.doubt}" if finding.doubt.startswith("at most") else ""
        doubt = f"Doubt: {finding.doubt}" if finding.doubt and not bound else ""
        texts = (finding.advice, finding.detail, doubt, *(f"Conflict: {conflict}" for conflict in finding.conflicts))
        first = f"{finding.title} — {gain_text(finding)}{bound} — trigger: {finding.trigger}."
        yield " ".join((first, *map(sentence, filter(None, texts))))


def gain_text(finding: Finding) -> str:
    """Return ``estimated 0-35 % gain``; a gain that was not measured says so."""
    if finding.gain is None:
        return "gain not known"
    low, high = finding.gain.low * 100, finding.gain.high * 100
    return f"estimated {low:.0f}-{high:.0f} % gain" if round(low) != round(high) else f"estimated {high:.0f} % gain"


def sentence(text: str) -> str:
    """Return text as a sentence with capital and full stop; a name of code keeps its letters."""
    word = text.partition(" ")[0]
    code = "_" in word or "::" in word or word[1:] != word[1:].lower()
    return (text[:1] if code else text[:1].upper()) + text[1:] + ("" if text.endswith(".") else ".")


def four_sections(
    heading: tuple[str, str],
    summary: str,
    metrics: Iterable[str],
    findings: Sequence[Finding],
    advice: tuple[Block, ...] = (),
) -> Document:
    """Return summary, metrics, findings with evidence, and recommendations, by default those of the findings."""
    title, note = heading
    facts = tuple(map(text_of, findings)) or (NOTHING,)
    items = tuple(advice_items([finding for finding in findings if finding.advice]))
    first = Bullets(items=items, ordered=True) if items else Paragraph(text="None: nothing stands out.")
    return Document(
        title=title,
        subtitle=note,
        blocks=(
            Section(title="Summary", blocks=(Paragraph(text=summary),)),
            Section(title="Metrics", blocks=(Bullets(items=tuple(metrics)),)),
            Section(title="Findings", blocks=(Bullets(items=facts, ordered=True),)),
            Section(title="Recommendations", blocks=advice or (first,)),
        ),
    )


def findings_block(findings: Sequence[Finding]) -> Block:
    """Return findings as sentences with their trigger, and each advice once."""
    first = {f.advice: f for f in reversed(findings)}
    items = tuple(text_of(f) + (f" Next: {f.advice}." if f.advice and first[f.advice] is f else "") for f in findings)
    return Bullets(items=items) if items else Paragraph(text=NOTHING)


def text_of(finding: Finding) -> str:
    trigger = f"[{finding.trigger}]" if finding.trigger else ""
    return " ".join(filter(None, (*map(sentence, filter(None, (finding.title, finding.detail))), trigger)))


def saving(low: float, high: float) -> Interval:
    """Return shares of the window that may be saved, as speed-ups minus one."""
    most = 1 - 1e-3
    return Interval(low=1 / (1 - min(low, most)) - 1, high=1 / (1 - min(high, most)) - 1, confidence=0.0)


def saved(gain: Interval) -> tuple[float, float]:
    """Return speed-ups minus one as shares of the window."""
    return 1 - 1 / (1 + gain.low), 1 - 1 / (1 + gain.high)


_BUSY, _WORTH, _GRAVE = 0.95, 0.05, 0.2
"""Shares of a window: sufficient computation, other time that is worth a finding, and a warning."""

_OUTSIDE = (
    ("idle", "Idle time takes"),
    ("exposed_share", "Exposed communication takes"),
    ("exposed_memcpy_share", "Exposed copies take"),
)


def outside_computation(
    computation: float, shares: Sequence[float], window: str, advice: Sequence[str]
) -> Iterator[Finding]:
    """Yield idle time, exposed communication and exposed copies, if computation is under 95 % of a window."""
    next_steps = (*advice, "use pinned memory and a stream of its own")
    for (name, words), share, next_step in zip(_OUTSIDE, shares, next_steps):
        if computation < _BUSY and share >= _WORTH:
            yield Finding(
                title=f"{words} {share * 100:.0f} % of {window}",
                detail=f"Computation fills {computation * 100:.1f} %; look here before looking at kernels.",
                trigger=f"{name}={share:.3f}",
                advice=next_step,
                severity=Severity.WARNING if share > _GRAVE else Severity.NOTE,
                gain=saving(0.0, share),
            )


SHORT_NS, _MANY = 10_000, 20


def mostly_short(count: int, short: int) -> bool:
    """Return whether most kernels are short, of enough kernels to be meaningful."""
    return count >= _MANY and short > count / 2


def short_kernels(counts: tuple[int, int], part: float, where: str = "") -> Iterator[Finding]:
    """Yield a finding if most computing kernels are short, with counts and their part of the time."""
    count, short = counts
    if mostly_short(count, short) and part >= _WORTH:
        yield Finding(
            title=f"{short:,} of {count:,} kernels{where} are shorter than 10 µs",
            detail=f"They hold {part * 100:.0f} % of compute time; launching costs about as much as running.",
            trigger=f"short_kernels={short / count:.3f}",
            advice="fuse them (torch.compile) or launch them as one CUDA graph",
        )
