"""A product at the power limit, and what checking outputs costs where they lie."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from ci.gpu.card import Row, under_bar
from ci.gpu.parts import Check
from pytest_perfgate.adapters.runtimes.arrays import ArrayContents

PAIRS, TURNS, TURN_NS = 8, 5, 20e6
SEEN, ALIKE = 0.02, 0.02
LEAST_MS, LITTLE = 50.0, 1 << 18
"""For a gigabyte, all steps of a check together; and the numbers of the array on which they are used first."""
MOST_BYTES, MOST_SHARE = 1_000_000, 0.05
"""Brought to the host by a check, and its part of the time in which a case is sampled."""
Step = Callable[[], Any]


def power(check: Check) -> Iterator[Row]:
    """Compare a bf16 product of 4096 with 5 % more to do with itself, in turns, whatever power does to the clock.

    A pair is warmed up and then alternates, since at the limit the clock falls further for seconds.
    """
    torch = check.runtime_module()
    deep = {"+5 %": 4304, "+0 %": 4096}
    b = {k: torch.randn(k, 4096, device="cuda").to(torch.bfloat16) for k in set(deep.values())}
    a = {k: torch.randn(4096, k, device="cuda").to(torch.bfloat16) for k in set(deep.values())}
    plain = check.plan
    try:
        for name, k in deep.items():
            rows: list[Row] = []
            shifts = []
            for number in range(PAIRS):
                sides = [partial(torch.mm, a[n], b[n]) for n in (4096, k)]
                check.plan = replace(plain, budget_ns=50e6)
                rows += (pair := [check.measured(name, side, "auto") for side in sides])
                if any("ns" not in row for row in pair):
                    break
                warm_up = pair[1]["warm-up s"]
                check.plan = replace(check.plan, budget_ns=TURN_NS, warmup_ns=0.0, in_turns=True)
                turns = [in_turn(check, name, sides, number + turn) for turn in range(TURNS)]
                rows += chain(*turns)
                if any("ns" not in row for row in rows):
                    break
                rows.append({**rows[-1], "warm-up s": warm_up})
                shifts.append(median(turn[1]["ns"] for turn in turns) / median(turn[0]["ns"] for turn in turns) - 1)
            yield _judged(name, rows, shifts)
    finally:
        check.plan = plain


def in_turn(check: Check, name: str, sides: Sequence[Step], number: int) -> list[Row]:
    """Return one short sample of each side; every second turn begins with the other side, as between builds."""
    order = (0, 1) if number % 2 else (1, 0)
    rows = {side: check.measured(name, sides[side], "auto") for side in order}
    return [rows[0], rows[1]]


def _judged(name: str, rows: list[Row], shifts: list[float]) -> Row:
    """Return the last row with the shifts of all pairs; heat or another program makes it invalid.

    A card that the product never brought to its limit shows nothing about the limit.
    """
    if len(shifts) < PAIRS:  # what came of the time that was there is no bar, and still a figure
        refused = next(row for row in rows if "ns" not in row)
        return {**refused, "pairs": len(shifts), "shifts": ", ".join(f"{100 * shift:+.2f} %" for shift in shifts)}
    shares = [row["at the power limit"] for row in rows if "at the power limit" in row]
    limited = max(shares, default=0.0)
    spoilt = [why for one in rows for why in one.get("invalid", ())]
    if not limited and not spoilt:
        why = (
            "no sample was at the card's power limit"
            if shares
            else "the card does not report whether it is at its limit"
        )
        return {**rows[-1], "refused": "below the limit" if shares else "not reported", "why": why}
    row: Row = {
        **rows[-1],
        "at the power limit": limited,
        "pairs": len(shifts),
        "median": median(shifts),
        "least": min(shifts),
        "most": max(shifts),
    }
    good = min(shifts) > SEEN if name == "+5 %" else abs(median(shifts)) < ALIKE
    return under_bar(row, "power", good, spoilt)


def checks(check: Check, numbers: int = 1 << 28, device: str = "cuda") -> Iterator[Row]:
    """Yield each step on a gigabyte by the host's clock, what is copied to the host, and the share of a whole check."""
    torch, contents = check.runtime_module(), ArrayContents()
    array = torch.randn(numbers, device=device)
    if not contents.within(array):
        yield {"what": "all of a check", "refused": "no array", "why": f"{type(array).__name__} holds no bytes"}
        return
    first = sum(took for _, took in timed(check, steps_of(contents, torch.randn(LITTLE, device=device))))
    yield {"what": "first use, on a megabyte: kernels are loaded", "ms": first}
    steps = steps_of(contents, array)
    total = 0.0
    for name, took in timed(check, steps):
        total += took
        yield {"what": name, "ms": took}
    yield under_bar({"what": "all of a check", "ms": total, "array": array.nbytes}, "checks", total <= LEAST_MS)
    yield copied_bytes(torch, [step for _, step in steps])
    yield share(check, "copy", copied(torch, numbers // 4, device), contents)


def steps_of(contents: ArrayContents, array: Any) -> Sequence[tuple[str, Step]]:
    """Return what an output check does with an array, in its order."""
    copies: dict[str, Any] = {}
    return (
        ("saved", lambda: copies.__setitem__("saved", contents.saved(array))),
        ("fingerprint", lambda: contents.fingerprint(array)),
        ("unchanged", lambda: contents.unchanged(array, copies["saved"])),
        ("fill", lambda: contents.fill(array, 0x3F)),
        ("holding", lambda: contents.holding(array, 0x3F, copies["saved"])),
        ("restore", lambda: contents.restore(array, copies["saved"])),
    )


def timed(check: Check, steps: Sequence[tuple[str, Step]]) -> Iterator[tuple[str, float]]:
    """Yield the milliseconds of each step by the host's clock."""
    for name, step in steps:
        check.runtime.synchronize()
        begun = time.perf_counter()
        step()
        check.runtime.synchronize()
        yield name, 1e3 * (time.perf_counter() - begun)


def copied_bytes(torch: Any, steps: Sequence[Step]) -> Row:
    """Return the bytes that the device copies to the host over all steps, by torch's profiler."""
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as profiler:
        for step in steps:
            step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return to_host(json.loads(path.read_text(encoding="utf-8"))["traceEvents"])


def to_host(events: Sequence[Mapping[str, Any]]) -> Row:
    """Return the copies to the host in a trace; a check that reads nothing back is no evidence."""
    copies = [e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memcpy" and "DtoH" in e.get("name", "")]
    row: Row = {"what": "brought to the host", "copies": len(copies), "bytes": sum(copies)}
    if not copies:
        return {**row, "refused": "not seen", "why": "torch's profiler saw no copy to the host"}
    return under_bar(row, "brought", sum(copies) <= MOST_BYTES)


def copied(torch: Any, numbers: int, device: str) -> Step:
    source = torch.randn(numbers, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def share(check: Check, name: str, call: Step, contents: ArrayContents) -> Row:
    """Return what a whole check of a call takes beside its sampling, with the budget that a case has."""
    from pytest_perfgate.app.output_check import OutputCheck, Subject
    from pytest_perfgate.model.plan import CaseKey, Plan
    from pytest_perfgate.plugin.calls import MeasuredCall

    measured = MeasuredCall(CaseKey(nodeid=name), call, check=lambda _: True)
    call_with_result = measured.with_last_result()
    subject = Subject(
        once=measured.called, last=lambda: call_with_result.last, check=measured.judge, reach=(call,),
        synchronize=check.runtime.synchronize,
    )  # fmt: skip
    scrutiny = OutputCheck(subject, contents)
    measured.called()
    check.runtime.synchronize()
    stamps = [time.perf_counter()]
    scrutiny.before()
    stamps.append(time.perf_counter())
    check.timers["auto"].measure(call_with_result, Plan(clocks=check.plan.clocks), check.runtime)
    stamps.append(time.perf_counter())
    problems = scrutiny.after()
    stamps.append(time.perf_counter())
    before, sampling, after = (1e3 * (b - a) for a, b in pairwise(stamps))
    row: Row = {"what": f"checks of a {name}", "ms": before + after, "sampling ms": sampling}
    row |= {"share": (before + after) / sampling, "problems": [problem.what for problem in problems]}
    return under_bar(row, "share", not problems and before + after <= MOST_SHARE * sampling)
