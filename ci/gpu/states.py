"""A product at the power limit, and what checking outputs costs where they lie."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from ci.gpu.held import Row, barred
from ci.gpu.parts import Check
from pytest_perfgate.adapters.runtimes.arrays import ArrayContents

PAIRS = 8
SEEN, ALIKE = 0.02, 0.02
LEAST_MS = 50.0
"""For a gigabyte, all steps of a check together."""


def power(check: Check) -> Iterator[Row]:
    """A bf16 product of 4096 with 5 % more to do, in turns with itself: judged, whatever power does to the clock."""
    torch = check.runtime_module()
    deep = {"+5 %": 4304, "+0 %": 4096}
    b = {k: torch.randn(k, 4096, device="cuda").to(torch.bfloat16) for k in set(deep.values())}
    a = {k: torch.randn(4096, k, device="cuda").to(torch.bfloat16) for k in set(deep.values())}
    plain = check.plan
    check.plan = replace(plain, budget_ns=100e6)
    try:
        for name, k in deep.items():
            rows: list[Row] = []
            shifts = []
            for _ in range(PAIRS):
                pair = [check.measured(name, lambda n=n: torch.mm(a[n], b[n]), "auto") for n in (4096, k)]
                rows += pair
                if all("ns" in row for row in pair):
                    shifts.append(pair[1]["ns"] / pair[0]["ns"] - 1)
            yield _judged(name, rows, shifts)
    finally:
        check.plan = plain


def _judged(name: str, rows: list[Row], shifts: list[float]) -> Row:
    """The last row with the shifts of all pairs; what the card's heat or a stranger spoiled is invalid."""
    if len(shifts) < PAIRS:
        return next(row for row in rows if "ns" not in row)
    row: Row = {**rows[-1], "pairs": len(shifts), "median": median(shifts), "least": min(shifts), "most": max(shifts)}
    good = min(shifts) > SEEN if name == "+5 %" else max(map(abs, shifts)) < ALIKE
    return barred(row, "power", good, [why for one in rows for why in one.get("invalid", ())])


def checks(check: Check, numbers: int = 1 << 28, device: str = "cuda") -> Iterator[Row]:
    """Each step of a check on an array of a gigabyte, by the host's clock, and the bytes that it brings there."""
    torch, contents = check.runtime_module(), ArrayContents()
    array = torch.randn(numbers, device=device)
    if not contents.within(array):
        yield {"what": "all of a check", "refused": "no array", "why": f"{type(array).__name__} holds no bytes"}
        return
    kept: dict[str, Any] = {}
    steps: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("saved", lambda: kept.setdefault("saved", contents.saved(array))),
        ("fingerprint", lambda: contents.fingerprint(array)),
        ("unchanged", lambda: contents.unchanged(array, kept["saved"])),
        ("fill", lambda: contents.fill(array, 0x3F)),
        ("holding", lambda: contents.holding(array, 0x3F, kept["saved"])),
        ("restore", lambda: contents.restore(array, kept["saved"])),
    )
    total = 0.0
    for name, step in steps:
        check.runtime.synchronize()
        begun = time.perf_counter()
        step()
        check.runtime.synchronize()
        took = 1e3 * (time.perf_counter() - begun)
        total += took
        yield {"what": name, "ms": took, "bytes": array.nbytes}
    yield barred({"what": "all of a check", "ms": total, "bytes": array.nbytes}, "checks", total <= LEAST_MS)
