"""What is held against a real GPU in one process: timers, streams, slowdowns, products."""

# ruff: noqa: SLF001 - torch's private entries, a kernel's constants

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from ci.gpu.calls import Call, calls
from ci.gpu.card import spoiled, under_bar, watched_clocks
from ci.gpu.truth import HUNG, proof_failure, truths
from pytest_perfgate.app.instrument import keyed, watched
from pytest_perfgate.model.device import Basis
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan
from pytest_perfgate.wiring import devices as wired

TRIALS = 40
PROFILED = 3
"""Processes of torch's profiler."""
INSTRUMENTS = ("events", "blocking", "graph", "cupti", "auto")
LONG_NS, SHORT_NS = 20_000, 2_000
"""From here on a timer agrees within 1 %, and within 3 %; nothing is promised of shorter calls."""
ATTENTIONS = 5
NO_TIME = "no time"
NOTES = frozenset({"offset", "agreement", "other streams", "warm-up"})
"""What a timer says of itself, for a row."""
Row = dict[str, Any]


class Check:
    """The torch runtime of this machine with every timer."""

    def __init__(self, clocks: str, seconds: float = 60.0) -> None:
        from pytest_perfgate.adapters.devices.visible import lookup_spec
        from pytest_perfgate.adapters.runtimes.torch import TorchRuntime

        self.runtime = TorchRuntime(lookup_spec)
        self.plan = Plan(clocks=ClockPolicy(clocks), budget_ns=0.6e9, warmup_ns=50e6)
        self.timers = {name: getattr(wired, f"{name}_timer")() for name in INSTRUMENTS}
        self.ends = time.monotonic() + seconds

    @staticmethod
    def runtime_module() -> Any:
        import torch

        return torch

    def why_not(self) -> str:
        availability = self.runtime.availability()
        return "" if availability.usable else availability.why

    def measured(self, name: str, call: Call, timer: str, *, setup: Call | None = None, **work: float) -> Row:
        """Return one line: what a timer reads of a call, or why it reads nothing; ``setup`` comes before each call."""
        row: Row = {"what": name, "timer": timer}
        if time.monotonic() > self.ends:
            return {**row, "refused": NO_TIME, "why": "the time of this part is over"}
        try:
            device = self.runtime.device()
            samples = watched(
                lambda plan: self.timers[timer].measure(call, plan, self.runtime, setup),
                device, self.plan, wired.clocks(), time.perf_counter_ns,
            )  # fmt: skip
        except PerfgateError as error:
            return {**row, "refused": error.code.name, "why": error.what}
        except Exception as error:
            return {**row, "refused": type(error).__name__, "why": str(error)[:300]}
        by = {"by": samples.timer} if timer == "auto" else {}
        return {**row, **by, **timer_row(samples), **self._fraction(samples, work)}

    def _fraction(self, samples: Any, work: dict[str, Any]) -> Row:
        """Return the fraction of the peak; a device without a data sheet loses only that."""
        took = median(samples.durations)
        try:
            roof = keyed(self.runtime.device(), self.plan, samples.clock_hz).roof(Basis.CLOCK)
        except Exception as error:
            return {"no peak": f"{type(error).__name__}: {error}"[:300]}
        rate = roof.rate(str(work.get("dtype", ""))) if roof else None
        return {"mfu": float(work["flops"]) / took * 1e9 / rate} if rate else {}


def timer_row(samples: Any) -> Row:
    """Return what a timer read, as the figures of a row."""
    took, overhead = median(samples.durations), samples.overhead / samples.batch
    row: Row = {"ns": took, "n": len(samples.durations), "gap_ns": samples.launch_gap, "stop": samples.stop.value}
    row |= {"overhead_ns": overhead, "problems": [problem.what for problem in samples.problems]}
    if spoilt := spoiled(samples.problems):
        row["invalid"] = spoilt
    if samples.busy:
        row |= {"busy_ns": median(samples.busy), "kernels": dict(samples.notes).get("kernels", "")}
    if samples.clock_hz:
        row["mhz"] = median(samples.clock_hz) / 1e6
    if samples.capped is not None:
        row |= {"at the power limit": samples.capped, "watts": samples.watts}
    row["warm-up s"] = samples.warmup_ns / 1e9
    return row | {name: note for name, note in samples.notes if name in NOTES}


def machine(check: Check) -> Iterator[Row]:
    """Yield the cost of each instrument, and what works here; a library that may end the process comes last."""
    yield from costs(check)
    for name, availability in (("clocks", wired.clocks().availability()),):
        yield {"what": name, "works": availability.usable, "why": availability.why, "version": availability.version}
    for timer in sorted(check.timers.values(), key=lambda timer: timer.name in {"cupti", "auto"}):
        try:
            availability = timer.availability(check.runtime)
        except Exception as error:
            yield {"what": timer.name, "refused": type(error).__name__, "why": str(error)[:300]}
            continue
        yield {
            "what": timer.name,
            "works": availability.usable,
            "why": availability.why,
            "version": availability.version,
        }


def costs(check: Check) -> Iterator[Row]:
    """Yield the cost of an empty pair on the device, and of a pair on the host, or why there is none."""
    try:
        overhead, resolution = wired.finest(check.runtime)
        yield {"what": "an empty pair of events", "overhead_ns": overhead, "resolution_ns": resolution}
        yield {"what": "host cost of a pair, beside the loop of do_bench", **host_cost(check)}
    except Exception as error:
        yield {"what": "the cost of a pair", "refused": type(error).__name__, "why": str(error)[:300]}


def host_cost(check: Check, pairs: int = 500) -> Row:
    """Return the host's nanoseconds for an empty pair: in our loop, and in one like that of ``do_bench``.

    Its clearing of the cache is left out, so the bar is the harder one.
    """
    from pytest_perfgate.adapters.timers.event_pairs import allocate, read

    made = allocate(check.runtime, pairs)
    plain = [(start.inner, end.inner) for start, end in made]

    def nothing() -> None:
        """Do nothing, in place of a launch."""

    def ours() -> None:
        for start, end in made.records:
            start()
            nothing()
            end()
        check.runtime.synchronize()
        read(made)

    def theirs() -> None:
        for at in range(pairs):
            plain[at][0].record()
            nothing()
            plain[at][1].record()
        check.runtime.synchronize()
        [start.elapsed_time(end) for start, end in plain]

    costs = {f"{loop.__name__}_ns": min(host_duration(loop) for _ in range(5)) / pairs for loop in (ours, theirs)}
    ratio = costs["ours_ns"] / costs["theirs_ns"]
    return {**costs, "ratio": ratio, "bar": "host", "held": ratio <= 1}


def host_duration(loop: Call) -> float:
    """Return the nanoseconds of a loop by the host's clock."""
    begun = time.perf_counter_ns()
    loop()
    return time.perf_counter_ns() - begun


def agreement(check: Check) -> Iterator[Row]:
    """Yield what each timer reads of one call each, beside the device's records.

    What ``auto`` takes agrees within 1 % from 20 us on, or is no further off than it says itself, or than the
    processes of the profiler are apart: memory and power of another process are not those of this one.
    """
    yield from proof(check)
    answers: list[tuple[dict[str, float], str]] = []
    while len(answers) < PROFILED and not any(HUNG in why for _, why in answers):  # two would take the part's time
        answers.append(truths(check.plan.clocks.value))
    truths_by_name, apart = middles(figures for figures, _ in answers)
    if why := "; ".join(dict.fromkeys(why for _, why in answers if why)):
        yield {"what": "torch's profiler", "refused": "not all", "why": why}
    for name, call in calls(check.runtime_module()):
        truth, rows = truths_by_name.get(name), {}
        for timer in sorted(check.timers, key=lambda timer: timer != "cupti" or name in truths_by_name):
            row = rows[timer] = check.measured(name, call, timer)
            if timer == "cupti":
                truth = truth or row.get("ns")
            if truth and "ns" in row:
                row["off"] = row["ns"] / truth - 1
            near = max(0.01, allowance(row), apart.get(name, 0.0))
            shows = shows_long(row, truth, named=name in truths_by_name)
            yield under_bar(row, "long", abs(row.get("off", 1.0)) <= near) if shows else row
        if name in apart:
            yield {"what": name, "timer": "torch's profiler", "its processes apart": apart[name]}
        yield judged(name, rows, truth, named=name in truths_by_name)


def shows_long(row: Row, truth: float | None, *, named: bool) -> bool:
    """Return whether a row shows the bar of long calls: CUPTI's records prove nothing about CUPTI's own times."""
    its_own = row.get("by") == "cupti" and not named
    return bool(truth and truth >= LONG_NS and row["timer"] == "auto" and row.get("refused") != NO_TIME and not its_own)


def middles(answers: Iterable[Mapping[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median of several processes by the name of a call, and how far they lie apart."""
    every: dict[str, list[float]] = {}
    for figures in answers:
        for name, figure in figures.items():
            every.setdefault(name, []).append(figure)
    return (
        {name: median(figures) for name, figures in every.items()},
        {name: max(figures) / min(figures) - 1 for name, figures in every.items()},
    )


def allowance(row: Row) -> float:
    """Return how far off a timer says that it may be: ``up to 1.7 % longer``, ``1 to 7 % off``."""
    match = re.search(r"(?:up|\d) to ([\d.]+) ?%", row.get("agreement", ""))
    return float(match[1]) / 100 if match else 0.0


def proof(check: Check) -> Iterator[Row]:
    """Yield whether CUPTI's counter can be proved in another process; if not, leave CUPTI out of this one."""
    if not check.timers["cupti"].availability(check.runtime).usable:
        return
    why = proof_failure()
    outcome: Row = {"refused": "not proved", "why": why} if why else {"proved": True}
    yield {"what": "CUPTI's counter of lost records", **outcome}
    if why:
        del check.timers["cupti"]
        check.timers["auto"].leave_out("cupti")


def judged(name: str, rows: dict[str, Row], truth: float | None, *, named: bool) -> Row:
    """Return the truth that the timers are compared with, and for a short kernel the best of those that can see it."""
    if not truth:
        return {"what": name, "refused": "no truth", "why": "neither torch's profiler nor CUPTI gave a time"}
    row: Row = {"what": name, "timer": "torch's profiler" if named else "cupti", "ns": truth}
    offs = {
        timer: rows[timer]["off"] for timer in (("graph", "cupti") if named else ("graph",)) if "off" in rows[timer]
    }
    if not SHORT_NS <= truth < LONG_NS or not offs:
        return row
    best = min(offs, key=lambda timer: abs(offs[timer]))
    if abs(offs[best]) > 0.03 and any(one.get("refused") == NO_TIME for one in rows.values()):
        return row
    beside = (best,) if named else (best, "cupti")
    spoilt = [why for timer in beside for why in rows[timer].get("invalid", ())]
    return under_bar({**row, "best": best, "off": offs[best]}, "short", abs(offs[best]) <= 0.03, spoilt)


def overlap(check: Check) -> Iterator[Row]:
    """Yield rows of work on another stream: events must report it, CUPTI must see both streams.

    What stays on this stream takes some 400 us, so that a slow pair of events is no reason to refuse it.
    """
    torch = check.runtime_module()
    side, cycles = torch.cuda.Stream(), 2_000_000

    def call() -> None:
        torch.cuda._sleep(cycles * 2 // 5)
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)

    row = check.measured("two streams", call, "events")
    caught = any("another stream" in problem for problem in row.get("problems", []))
    yield under_bar(row, "escape", caught) if "ns" in row else row
    row = check.measured("two streams", call, "cupti")
    yield {**row, "held": row["kernels"] == "2 a call on 2 streams"} if "kernels" in row else row
    yield attention(check)


def attention(check: Check) -> Row:
    """Return a row of torch's attention on one stream: the host's jitter must not be taken for work elsewhere."""
    torch = check.runtime_module()
    rows = [torch.randn(4, 16, 1024, 128, device="cuda").to(torch.bfloat16) for _ in range(3)]
    plain, count = check.plan, 0
    check.plan = replace(plain, budget_ns=50e6)
    try:
        for _ in range(ATTENTIONS):
            row = check.measured("attention", lambda: torch.nn.functional.scaled_dot_product_attention(*rows), "events")
            if "ns" not in row:
                return row
            count += any("another stream" in problem for problem in row["problems"])
    finally:
        check.plan = plain
    return under_bar({**row, "measured": ATTENTIONS, "taken for work elsewhere": count}, "quiet", not count)


def ladder(check: Check) -> Iterator[Row]:
    """Yield products over sizes and dtypes: never above the peak, and rising with size."""
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
            row = check.measured(name, call, "auto", flops=2.0 * size**3, dtype=dtype)
            yield under_bar(row, "roof", row["mfu"] <= 1) if "mfu" in row else row


def product(torch: Any, dtype: str, kind: Any, size: int) -> Call:
    a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
    if dtype == "fp8":
        one, columns = torch.ones((), device="cuda"), b.t().contiguous().t()
        return lambda: torch._scaled_mm(a, columns, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    return lambda: torch.mm(a, b)


def fitting(check: Check, call: Call, plan: Plan) -> Any:
    """Return the timer for a call: events, or a graph if a pair of events takes too long for it."""
    try:
        check.timers["events"].measure(call, plan, check.runtime)
    except PerfgateError as error:
        if error.code.name != "timer-too-coarse":
            raise
        return check.timers["graph"]
    return check.timers["events"]


def slowdowns(check: Check) -> Iterator[Row]:
    """Yield in how many trials a kernel of about 100 us that is 0, 1, 2 or 5 percent longer is detected.

    The trials of a row follow one warm-up: each of its own would wait a third of a second until the card had settled.
    """
    torch = check.runtime_module()
    base = 190_000
    plan = replace(check.plan, budget_ns=20e6, warmup_ns=5e6)
    timer = fitting(check, lambda: torch.cuda._sleep(base), plan)

    def took(percent: int, warmup_ns: float = 0.0) -> float:
        cycles, warm = round(base * (1 + percent / 100)), replace(plan, warmup_ns=warmup_ns)
        return median(timer.measure(lambda: torch.cuda._sleep(cycles), warm, check.runtime).durations)

    for percent in (2, 0, 1, 5):
        shifts = []
        with watched_clocks(check) as problems:
            took(0, plan.warmup_ns)
            for trial in range(TRIALS):
                first, second = (took(p) for p in ((percent, 0) if trial % 2 else (0, percent)))
                shifts.append((first / second if trial % 2 else second / first) - 1)
        detected = sum(shift > 0.01 for shift in shifts)
        row: Row = {"what": f"+{percent} %", "timer": timer.name, "trials": TRIALS, "seen": detected}
        row["median"] = median(shifts)
        good = {0: detected <= 1, 2: detected >= 0.95 * TRIALS}
        yield under_bar(row, "seen", good[percent], problems) if percent in good else {**row, "problems": problems}
