"""What is held against a real GPU in one process: timers, streams, slowdowns, products."""

# ruff: noqa: SLF001 - torch's private entries, a kernel's constants

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from pytest_perfgate.app.machine import keyed, watched
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.wiring import devices as wired

TRIALS = 40
Row = dict[str, Any]
Call = Callable[[], Any]


class Check:
    """The torch runtime of this machine with every timer."""

    def __init__(self, clocks: str) -> None:
        from pytest_perfgate.adapters.devices.catalogue import lookup_spec
        from pytest_perfgate.adapters.runtimes.torch import TorchRuntime

        self.runtime = TorchRuntime(lookup_spec)
        self.plan = Plan(clocks=ClockPolicy(clocks), budget_ns=0.6e9, warmup_ns=50e6)
        self.timers = {name: getattr(wired, f"{name}_timer")() for name in ("events", "blocking", "graph", "cupti")}

    @staticmethod
    def runtime_module() -> Any:
        import torch

        return torch

    def why_not(self) -> str:
        found = self.runtime.availability()
        return "" if found.usable else found.why

    def measured(self, name: str, call: Call, timer: str, **work: float) -> Row:
        """One line: what a timer says of a call, or why it says nothing."""
        row: Row = {"what": name, "timer": timer}
        try:
            device = self.runtime.device()
            samples = watched(
                lambda: self.timers[timer].measure(call, self.plan, self.runtime), device, self.plan, wired.clocks()
            )
        except PerfgateError as error:
            return {**row, "refused": error.code.name, "why": error.what}
        except Exception as error:
            return {**row, "refused": type(error).__name__, "why": str(error)[:300]}
        took, overhead = median(samples.durations), samples.overhead / samples.batch
        row |= {"ns": took, "n": len(samples.durations), "gap_ns": samples.launch_gap, "stop": samples.stop.value}
        row |= {"overhead_ns": overhead, "problems": [problem.what for problem in samples.problems]}
        if samples.span:
            row["span_ns"] = median(samples.span)
        if samples.clock_hz:
            row["mhz"] = median(samples.clock_hz) / 1e6
        return {**row, **self._fraction(took - overhead, samples.clock_hz, work)}

    def _fraction(self, took: float, clocks: tuple[float, ...], work: dict[str, Any]) -> Row:
        roof = keyed(self.runtime.device(), self.plan, clocks).roof(Basis.CLOCK)
        rate = roof.rate(str(work.get("dtype", ""))) if roof else None
        return {"mfu": float(work["flops"]) / took * 1e9 / rate} if rate else {}


def machine(check: Check) -> Iterator[Row]:
    """What works here, and the cost of each instrument."""
    for timer in check.timers.values():
        found = timer.availability(check.runtime)
        yield {"what": timer.name, "works": found.usable, "why": found.why, "version": found.version}
    for name, found in (("clocks", wired.clocks().availability()),):
        yield {"what": name, "works": found.usable, "why": found.why, "version": found.version}
    overhead, resolution = wired.finest(check.runtime)
    yield {"what": "an empty pair of events", "overhead_ns": overhead, "resolution_ns": resolution}
    yield {"what": "host cost of a pair", **host_cost(check)}


def host_cost(check: Check, pairs: int = 2000) -> Row:
    """Nanoseconds that the host takes to record a pair around nothing: ours, and torch's own calls alone."""
    from pytest_perfgate.adapters.timers.pairs import allocate

    made = allocate(check.runtime, pairs)
    plain = [(start.inner, end.inner) for start, end in made]
    costs = {}
    for name, records in (("ours", made.records), ("bare", [(s.record, e.record) for s, e in plain])):
        check.runtime.synchronize()
        begun = time.perf_counter_ns()
        for start, end in records:
            start()
            end()
        costs[f"{name}_ns"] = (time.perf_counter_ns() - begun) / pairs
        check.runtime.synchronize()
    return {**costs, "ratio": costs["ours_ns"] / costs["bare_ns"]}


def agreement(check: Check) -> Iterator[Row]:
    """Events, a held queue, a graph and CUPTI on one call each; lines of 20 us and more agree within 1 %."""
    for name, call in calls(check.runtime_module()):
        rows = [check.measured(name, call, timer) for timer in check.timers]
        truth = next((row["ns"] for row in rows if row["timer"] == "cupti" and "ns" in row), None)
        for row in rows:
            if truth and "ns" in row and row["timer"] != "cupti":
                row["off"] = (row["ns"] - row["overhead_ns"]) / truth - 1
                limit = 0.01 if truth >= 20_000 else 0.03
                row["held"] = abs(row["off"]) <= limit or (truth < 20_000 and row["timer"] in {"events", "blocking"})
            yield row
        if not truth:
            yield {"what": name, "refused": "no truth", "why": "CUPTI gave no time to hold the others against"}


def calls(torch: Any) -> Iterator[tuple[str, Call]]:
    source = torch.randn(64 << 20, device="cuda")
    target = torch.empty_like(source)
    small = torch.randn(1024, device="cuda")
    yield "copy 256 MB", lambda: target.copy_(source)
    yield "short kernel", lambda: small.add_(1e-6)
    rows = torch.randn(4096, 4096, device="cuda")
    yield "softmax", lambda: torch.softmax(rows, dim=1)
    fused = triton_softmax(torch, rows)
    if fused is not None:
        yield "triton softmax", fused


def triton_softmax(torch: Any, rows: Any) -> Call | None:
    """Nothing where Triton is not installed: another softmax would not be Triton's."""
    try:
        from ci.gpu.kernels import softmax_rows
    except ImportError:
        return None
    out = torch.empty_like(rows)
    return lambda: softmax_rows(out, rows)


def overlap(check: Check) -> Iterator[Row]:
    """Work on another stream: events must call it escaped, CUPTI must see both."""
    torch = check.runtime_module()
    side, cycles = torch.cuda.Stream(), 2_000_000

    def call() -> None:
        torch.cuda._sleep(cycles // 10)
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)

    row = check.measured("two streams", call, "events")
    yield {**row, "held": any("another stream" in problem for problem in row.get("problems", []))}
    row = check.measured("two streams", call, "cupti")
    yield {**row, "held": row["span_ns"] >= row["ns"]} if "span_ns" in row else row


def ladder(check: Check) -> Iterator[Row]:
    """Products over sizes and dtypes: never above the peak, and rising with size."""
    torch = check.runtime_module()
    for dtype, kind in (("fp32", "float32"), ("tf32", "float32"), ("bf16", "bfloat16"), ("fp8", "float8_e4m3fn")):
        for size in (1024, 2048, 4096, 8192):
            name = f"{dtype} {size}"
            if not hasattr(torch, kind):
                yield {"what": name, "refused": "no such dtype in this torch"}
                continue
            try:
                call = product(torch, dtype, getattr(torch, kind), size)
            except Exception as error:
                yield {"what": name, "refused": type(error).__name__, "why": str(error)[:300]}
                continue
            row = check.measured(name, call, "events", flops=2.0 * size**3, dtype=dtype)
            yield {**row, "held": row["mfu"] <= 1} if "mfu" in row else row


def product(torch: Any, dtype: str, kind: Any, size: int) -> Call:
    a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
    if dtype == "fp8":
        one, columns = torch.ones((), device="cuda"), b.t().contiguous().t()
        return lambda: torch._scaled_mm(a, columns, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        torch.mm(a, b)

    return call


def slowdowns(check: Check) -> Iterator[Row]:
    """A kernel of about 100 us made 0, 1, 2 and 5 percent longer: in how many trials it is seen."""
    torch = check.runtime_module()
    base = 190_000
    timer, plan = check.timers["events"], replace(check.plan, budget_ns=20e6, warmup_ns=5e6)

    def took(percent: int) -> float:
        cycles = round(base * (1 + percent / 100))
        return median(timer.measure(lambda: torch.cuda._sleep(cycles), plan, check.runtime).durations)

    for percent in (2, 0, 1, 5):
        shifts = []
        for trial in range(TRIALS):
            first, second = (took(p) for p in ((percent, 0) if trial % 2 else (0, percent)))
            shifts.append((first / second if trial % 2 else second / first) - 1)
        seen = sum(shift > 0.01 for shift in shifts)
        row: Row = {"what": f"+{percent} %", "trials": TRIALS, "seen": seen, "median": median(shifts)}
        held = {0: seen <= 1, 2: seen >= 0.95 * TRIALS}
        yield {**row, "held": held[percent]} if percent in held else row
