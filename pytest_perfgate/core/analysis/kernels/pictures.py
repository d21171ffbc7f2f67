"""Pictures of kernels: the roofline of a profiler's counters, and occupancy with its cliffs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.analysis.kernels.diagnosis import shared_of
from pytest_perfgate.core.analysis.kernels.views import paired
from pytest_perfgate.core.analysis.occupancy import MOST_THREADS, WARP, Occupancy, occupancy
from pytest_perfgate.core.render.charts import Panel, Row, occupancy_stairs, stacked
from pytest_perfgate.core.render.rooflines import Ceiling, Point, roofline
from pytest_perfgate.core.render.words import plural, quantity
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Bar, Picture
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.kernels.bottleneck import Timing
    from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis
    from pytest_perfgate.model.device import SmLimits
    from pytest_perfgate.model.profiles import Counter, KernelFacts, Launch, Resources

_POINTS, _BARS = 12, 20

_OPS = (("fp64", "d", 1), ("fp32", "f", 1), ("fp16", "h", 2))
"""Types, with the first letter of their instructions, and how many numbers a thread's instruction computes."""

_PER_CYCLE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"

_LIMIT = "derived__sm__sass_thread_inst_executed_op_{}fma_pred_on_x{}"
"""Of HFMA2, older profilers give ``x2``, which counts one of its two numbers, and newer ones ``x4``."""


@value
class PlacedLaunch:
    """A launch under the roof of its own clocks: operations and bytes a second."""

    dtype: str
    rate: float
    moved: float
    peaks: tuple[tuple[str, float], ...]
    bandwidth: float

    @property
    def intensity(self) -> float:
        return self.rate / self.moved

    @property
    def share(self) -> float:
        """Return the fraction of the nearer roof."""
        return self.rate / min(dict(self.peaks)[self.dtype], self.intensity * self.bandwidth)

    @property
    def bound(self) -> str:
        return "compute" if self.intensity * self.bandwidth >= dict(self.peaks)[self.dtype] else "memory"


def placed(counters: Mapping[str, Counter]) -> PlacedLaunch | None:
    """Return what the roofline's sections counted; ``None`` if they are missing, or nothing was computed."""

    def number(name: str) -> float:
        counter = counters.get(name)
        return counter.value if counter else 0.0

    clock, units = number("smsp__cycles_elapsed.avg.per_second"), number("sm__cycles_elapsed.avg.per_second")
    moved = number("dram__bytes.sum.per_second")
    band = number("dram__bytes.sum.peak_sustained") * number("dram__cycles_elapsed.avg.per_second")
    rates, peaks = {}, []
    for dtype, letter, lanes in _OPS:
        add, mul, fma = (number(_PER_CYCLE.format(f"{letter}{op}")) for op in ("add", "mul", "fma"))
        rates[dtype] = lanes * (add + mul + 2 * fma) * clock
        limit = number(_LIMIT.format(letter, 2 * lanes)) or lanes * number(_LIMIT.format(letter, 2))
        peaks += [(dtype, limit * units)] if limit * units else []
    dtype = max(rates, key=rates.__getitem__)
    if not rates[dtype] or not moved or not band or dtype not in dict(peaks):
        return None
    return PlacedLaunch(dtype=dtype, rate=rates[dtype], moved=moved, peaks=tuple(peaks), bandwidth=band)


_TENSOR = 0.01
"""From this share of the tensor cores on, these counters miss too many operations."""


def by_counters(diagnosis: Diagnosis, timing: Timing) -> Timing:
    """Return the timing with what the profiler counted, unless work was stated or tensor cores computed."""
    from pytest_perfgate.core.analysis.roofline import Placement

    at = placed(diagnosis.facts.counters)
    if timing.placement is not None or at is None or diagnosis.numbers.get("tc_util", 1.0) > _TENSOR:
        return timing
    peak = dict(at.peaks)[at.dtype]
    place = Placement(
        flops_rate=at.rate,
        bandwidth=at.moved,
        intensity=at.intensity,
        compute=at.rate / peak,
        memory=at.moved / at.bandwidth,
        bound=at.bound,
        ideal_ns=None,
    )
    basis = "the roof at the clocks that ran; operations and DRAM bytes as the profiler counted them"
    return replace(timing, placement=place, ridge=peak / at.bandwidth, dtype=at.dtype, basis=basis)


_FAR = 2.0
"""By this factor a statement may differ from what ran: causal masks, padding, fast algorithms."""


def counted_instead(diagnoses: Sequence[Diagnosis], flops: float | None) -> str:
    """Return what the profiler counted if that is far from the stated operations and no tensor core ran."""
    counted = 0.0
    for d in diagnoses:
        at, busy = placed(d.facts.counters), d.numbers.get("tc_util", 1.0)
        if at is None or busy > _TENSOR:
            return ""
        counted += at.rate * d.numbers.get("duration", 0.0) / 1e9
    if not flops or not counted or 1 / _FAR <= flops / counted <= _FAR:
        return ""
    return f"counted {quantity(counted, Dimension.WORK)} and not {quantity(flops, Dimension.WORK)}"


def kernels_roofline(diagnoses: Sequence[Diagnosis], before: Sequence[Diagnosis]) -> Picture:
    """Draw launches under the roof of the longest one's clocks; of two reports each with its earlier place."""
    known = [(d, at) for d in diagnoses if (at := placed(d.facts.counters)) is not None]
    if not known:
        raise PerfgateError(
            "picture-none",
            "no launch has the counters of a roofline",
            fix="collect it with --section SpeedOfLight_RooflineChart",
        )
    past = {id(new): placed(old.facts.counters) for old, new in paired(before, diagnoses)}
    known.sort(key=lambda pair: -pair[0].numbers.get("duration", 0.0))
    top = known[0][1]
    used = {at.dtype for _, at in known}
    points = [_point(d, at, past.get(id(d))) for d, at in known[:_POINTS]]
    balance = max(rate for dtype, rate in top.peaks if dtype in used) / top.bandwidth
    alt = f"Roofline of {plural(len(points), 'launch', 'launches')}, balance at {balance:,.0f} operations per byte"
    alt += "; lines lead from where each was before" if any(point.before for point in points) else ""
    peaks = tuple((dtype, rate) for dtype, rate in top.peaks if dtype in used)
    note = f"roof: the clocks that ran in {points[0].label}; operations without tensor cores"
    return roofline(alt, points, Ceiling(peaks=peaks, bandwidth=top.bandwidth, note=note))


def _point(d: Diagnosis, at: PlacedLaunch, then: PlacedLaunch | None) -> Point:
    time = d.numbers.get("duration")
    text = f"{quantity(time, Dimension.TIME, 3)}, " if time else ""
    return Point(
        label=d.name,
        intensity=at.intensity,
        rate=at.rate,
        text=f"{text}{at.dtype} {at.share * 100:.0f} % of its {at.bound} roof",
        bound=at.bound,
        before=(then.intensity, then.rate) if then else None,
    )


def launches_picture(diagnoses: Sequence[Diagnosis]) -> Picture:
    """Draw the time of each launch."""
    timed = [(d, time) for d in diagnoses if (time := d.numbers.get("duration"))]
    if not timed:
        raise PerfgateError("picture-none", "no launch has a duration")
    timed.sort(key=lambda pair: -pair[1])
    rows = []
    for d, time in timed[:_BARS]:
        text = quantity(time, Dimension.TIME, 3)
        if d.classification.evidence:
            text += f", {d.classification.bottleneck.value}"
        rows.append(Row(label=d.name, amounts=(time,), text=text))
    rest = len(timed) - len(rows)
    note = f"{rest} shorter ones are not drawn" if rest else ""
    order = ", the longest first" if len(timed) > 1 else ""
    alt = f"Time of {plural(len(timed), 'launch', 'launches')}{order}"
    return stacked("launches", alt, rows, (("compute", "time"),), _time, note)


def _time(number: float) -> str:
    return quantity(number, Dimension.TIME, 3) if number else "0"


def occupancy_picture(diagnoses: Sequence[Diagnosis]) -> Picture:
    """Draw the warps of the longest kernel against registers, shared memory and threads."""
    known = [(d, fit) for d in diagnoses for fit in [d.occupancy] if fit is not None]
    if not known:
        raise PerfgateError(
            "picture-none",
            "the launch of no kernel is known, or the limits of its architecture are not",
            fix="give the threads a block: --threads 256",
        )
    d, fit = max(known, key=lambda pair: pair[0].numbers.get("duration", 0.0))
    launch, resources, sm = d.facts.launch, d.facts.resources, d.sm
    if launch is None or resources is None or sm is None:
        raise PerfgateError("picture-none", "the launch of no kernel is known")
    limiting = " and ".join(fit.limiting)
    alt = f"Occupancy of {d.name} on {d.facts.arch}: {fit.warps} of {sm.warps} warps, limited by {limiting}"
    panels = tuple(_panels(d.facts, launch, resources, sm))
    return occupancy_stairs(alt, panels, list(_limits(fit, sm)))


def _limits(fit: Occupancy, sm: SmLimits) -> Iterator[Bar]:
    """Yield how many blocks each resource would allow by itself."""
    most = max(1, *(blocks for _, blocks in fit.limits))
    for name, blocks in fit.limits:
        suffix = ", the limit" if name in fit.limiting else ""
        yield Bar(label=name, parts=(blocks / most,), text=f"{plural(blocks, 'block')}{suffix}")
    yield Bar(label="resident warps", parts=(fit.fraction,), text=f"{fit.warps} of {sm.warps}")


def _panels(facts: KernelFacts, launch: Launch, resources: Resources, sm: SmLimits) -> Iterator[Panel]:
    threads, registers, shared = launch.threads, resources.registers, shared_of(facts)

    def warps(**other: int) -> float:
        resources_of_block = {"threads": threads, "registers": registers, "shared": shared, **other}
        return float(occupancy(sm, **resources_of_block, most=facts.most_threads).warps)

    yield _panel("registers a thread", range(16, 256), registers, lambda at: warps(registers=at))
    sizes = [half / 2 for half in range(2 * sm.smem_block_bytes // _KIB + 1)]
    yield _panel("KiB of shared memory a block", sizes, shared / _KIB, lambda at: warps(shared=round(at * _KIB)))
    yield _panel("threads a block", range(WARP, MOST_THREADS + WARP, WARP), threads, lambda at: warps(threads=at))


_KIB = 1024


def _panel(label: str, places: Sequence[float], here: float, level: Callable[[Any], float]) -> Panel:
    """Return the figure over these places, and the last place before it falls."""
    levels = [(float(at), level(at)) for at in places]
    steps = [levels[0], *(two for one, two in pairwise(levels) if two[1] != one[1])]
    now = level(here)
    falls = next((at for at, warps in levels if at > here and warps < now), None)
    cliff = max((at for at, _ in levels if falls is not None and at < falls), default=None)
    if steps[-1][0] < levels[-1][0]:
        steps.append(levels[-1])
    return Panel(label=label, stairs=tuple(steps), here=(float(here), now), cliff=cliff, text="{:.4g}".format)


def draw(name: str, diagnoses: Sequence[Diagnosis], before: Sequence[Diagnosis] = ()) -> Picture:
    if name == "roofline":
        return kernels_roofline(diagnoses, before)
    return {"occupancy": occupancy_picture, "launches": launches_picture}[name](diagnoses)
