"""What a person states of a kernel beside its files: the problem, its time, its work, the device it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pytest_perfgate.core.analysis.classify import Signals
from pytest_perfgate.core.analysis.kernels.bottleneck import Timing
from pytest_perfgate.core.analysis.ops.dtypes import known_dtype
from pytest_perfgate.core.analysis.roofline import Placement, place, ridge
from pytest_perfgate.core.analysis.roofs import datasheet_roof
from pytest_perfgate.core.gate.units import UNITS
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.device import Device, DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work

OPTIONS = (
    ("problem", "the problem in words, such as 'GEMM, M=N=K=4096'"),
    ("flops", "operations, such as 137.4GFLOP"),
    ("bytes", "unique bytes moved, such as 201MB"),
    ("items", "what throughput is told in, such as '8192 tokens'"),
    ("dtype", "the type that sets the peak, such as fp16"),
    ("device", "the device of the catalogue that it ran on, such as 'H100 SXM'"),
)
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S*)\s*")


@value
class Stated:
    """The options as values."""

    problem: str = ""
    time_ns: float | None = None
    work: Work | None = None
    roof: Roof | None = None
    device: str = ""
    dtype: str = ""

    @property
    def configuration(self) -> dict[str, str]:
        """What the contract says of the call beside its launch."""
        given = {"parameters": self.problem, "dtype": self.dtype}
        return {name: text for name, text in given.items() if text}

    def placed(self, time_ns: float | None) -> Placement | None:
        """The work done in a time, held against the roof as far as it is known."""
        return place(self.work, time_ns, self.roof or _NO_ROOF) if self.work and time_ns else None


_NO_ROOF = datasheet_roof(Device(key="", name="", kind="gpu"), DeviceSpec(name="", pattern="", arch=""))


def parse_stated(options: Mapping[str, str], spec: DeviceSpec | None) -> Stated:
    """Options as values; what does not read is an error, never left out."""
    flops, moved = _amount(options, "flops", Dimension.WORK), _amount(options, "bytes", Dimension.BYTES)
    items, unit = _items(options.get("items", ""))
    dtype = options.get("dtype", "")
    if dtype and known_dtype(dtype) is None:
        raise PerfgateError("kernel-option", f"dtype={dtype} is no type that is known here", mend="fp16, bf16, fp32, …")
    work = Work(flops=flops, bytes=moved, dtype=known_dtype(dtype) or "", items=items, unit=unit, working_set=moved)
    return Stated(
        problem=options.get("problem", ""),
        time_ns=_amount(options, "time", Dimension.TIME),
        work=work if any(number is not None for number in (flops, moved, items)) else None,
        roof=datasheet_roof(Device(key="", name=spec.name, kind="gpu"), spec) if spec else None,
        device=spec.name if spec else "",
        dtype=known_dtype(dtype) or "",
    )


def _amount(options: Mapping[str, str], name: str, dimension: Dimension) -> float | None:
    text = options.get(name)
    if text is None:
        return None
    found = _AMOUNT.fullmatch(text)
    units = UNITS[dimension]
    if found is None or found[2] not in units or not float(found[1]) > 0:
        known = ", ".join(list(units)[:6])
        raise PerfgateError("kernel-option", f"{name}={text} does not read", mend=f"a number with a unit: {known}")
    return float(found[1]) * units[found[2]]


def _items(text: str) -> tuple[float | None, str]:
    found = _AMOUNT.fullmatch(text)
    if not text:
        return None, "items"
    if found is None:
        raise PerfgateError("kernel-option", f"items={text} does not read", mend="items='8192 tokens'")
    return float(found[1]), found[2] or "items"


def timing(stated: Stated, time_ns: float | None, by: str) -> Timing:
    """Baseline and roofline of a report."""
    return Timing(
        problem=stated.problem,
        time_ns=time_ns,
        by=by,
        placement=stated.placed(time_ns),
        ridge=ridge(stated.roof, stated.dtype) if stated.roof else None,
        dtype=stated.dtype,
        basis=f"{stated.roof.basis.value} of {stated.device}" if stated.roof else "",
    )


def signals(stated: Stated, time_ns: float | None) -> Signals | None:
    """Both fractions of the roof as timed; nothing where there is no time, no work or no roof."""
    placed = stated.placed(time_ns)
    if placed is None or stated.roof is None or (placed.compute is None and placed.memory is None):
        return None
    balance = ridge(stated.roof, stated.dtype)
    return Signals(compute=placed.compute, memory=placed.memory, intensity=placed.intensity, ridge=balance)


def run_figures(stated: Stated, time_ns: float | None) -> Iterator[tuple[str, str]]:
    """Figures of the whole run for the analysis report; what cannot be told is left to the report to say."""
    placed, work = stated.placed(time_ns), stated.work
    if placed is None or work is None or not time_ns:
        return
    if work.items is not None:
        rate = quantity(work.items / time_ns * 1e9, Dimension.RATE).removesuffix("/s").strip()
        yield "Throughput", f"{rate} {work.unit}/s"
    if placed.flops_rate is not None:
        yield "Achieved rate", quantity(placed.flops_rate, Dimension.FLOPS)
    if placed.compute is not None:
        yield "MFU", quantity(placed.compute, Dimension.FRACTION, 3)
    if placed.fraction:
        yield "% of SOL", f"{quantity(placed.fraction, Dimension.FRACTION, 3)} (room for {1 / placed.fraction:.2f} x)"
    if placed.bandwidth is not None:
        part = f" ({quantity(placed.memory, Dimension.FRACTION, 3)} of peak)" if placed.memory is not None else ""
        yield "Bandwidth of unique bytes", quantity(placed.bandwidth, Dimension.BANDWIDTH) + part
