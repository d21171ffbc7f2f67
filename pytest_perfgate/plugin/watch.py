"""What stands around a profiled call beside its instrument: the lease, the clocks, and a note of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.machine import lease_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey, ClockPolicy, Plan
from pytest_perfgate.model.profiling import Assignment
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.plugin.asked import Asked
    from pytest_perfgate.plugin.measuring import Measuring

ESCAPED = "work-escaped"


def stated(work: Work) -> Iterator[tuple[str, str]]:
    """The work of the call, each amount with its unit: as an inspector of kernels takes it."""
    if work.flops:
        yield "flops", f"{work.flops:.17g}FLOP"
    if work.bytes:
        yield "bytes", f"{work.bytes:.17g}B"
    if work.items:
        yield "items", f"{work.items:.17g} {work.unit}"
    if work.dtype:
        yield "dtype", work.dtype


class Watch:
    """One profiled process."""

    def __init__(
        self, assigned: Assignment, measuring: Measuring, params: tuple[tuple[str, str], ...], *, awake: bool = True
    ) -> None:
        self.mode, self.folder = assigned.mode, Path(assigned.out)
        self.entered = 0
        self._awake = awake
        self._call, self._clocks = assigned.call, assigned.clocks
        self._measuring = measuring
        self._facts: dict[str, Any] = {"parameters": dict(params)}

    def wants(self, key: CaseKey) -> bool:
        """Whether this call is to be watched."""
        return self._awake and (self._call is None or self._call == key.name)

    @contextmanager
    def over(self, call: Any, plan: Plan, work: Work | None) -> Iterator[None]:
        """The device is ours and its clocks are held, or watched, while the instrument looks."""
        plan = self._planned(plan)
        device = self._measuring.device(plan, call)
        self.entered += 1
        self._note(device, plan, work)
        instruments = self._measuring.instruments
        gpu = device.kind == "gpu"
        with instruments.leases.hold(lease_name(device)) if instruments.leases and gpu else nullcontext():
            if instruments.clocks is None or not gpu:
                yield
                return
            with instruments.clocks.hold(device, plan) as watch:
                yield
            held = {"hz": list(watch.clock_hz()), "problems": [p.what for p in watch.problems()]}
            self._facts["clocks"] = {"policy": plan.clocks.value, **held, **dict(watch.facts())}

    def times(self, asked: Asked, plan: Plan) -> None:
        """Event mode: the call timed by the device's own events; work on a second stream is out of their sight."""
        from pytest_perfgate.wiring.profiling import write_times

        plan = replace(self._planned(plan), timer="events")
        self.entered += 1
        device = self._measuring.device(plan, asked.timed())
        if device.kind != "gpu":
            what = f"this mode needs a GPU: {device.name or device.key} has no events of its own"
            raise PerfgateError("profile-tool", what, mend="run it on a machine with a GPU, or --mode torch")
        capture = self._measuring.capture(asked, plan)
        self._note(capture.device, plan, asked.work)
        escaped = [p for samples in capture.samples for p in samples.problems if p.code == ESCAPED]
        if escaped:
            what = f"refused: {escaped[0].what}"
            raise PerfgateError("profile-tool", what, mend="--mode nsys, torch or cupti see every stream")
        write_times(self.folder, capture)

    def facts(self) -> dict[str, Any]:
        """What the profile was taken with."""
        return self._facts

    def _planned(self, plan: Plan) -> Plan:
        return replace(plan, clocks=ClockPolicy(self._clocks)) if self._clocks else plan

    def _note(self, device: Device, plan: Plan, work: Work | None) -> None:
        self._facts["clocks"] = {"policy": plan.clocks.value}
        self._facts["device"] = {"name": device.name, "key": device.key, "kind": device.kind, "index": device.index}
        if work is not None and work.dtype:
            self._facts["dtype"] = work.dtype
        if work is not None:
            self._facts["work"] = dict(stated(work))
