"""What a device at its power limit tells, each in a process of its own; run by test_clocks.py on made drivers."""

from __future__ import annotations

from dataclasses import replace

from clock_scenarios import OBSERVE, Library, card, half_way, scenario

from pytest_perfgate.adapters.devices.clocks import NvmlClocks
from pytest_perfgate.model.measurement import SAMPLING
from pytest_perfgate.wiring.devices import energy_meter
from tests.waits import until


@scenario
def power_brake() -> dict:
    return half_way(0x80)


@scenario
def power_limited() -> dict:
    return half_way(0x4)


@scenario
def energy() -> dict:
    """The counter of joules through the wiring, as a measuring process reads it."""
    Library().watts = 300
    meter = energy_meter(card())
    assert meter is not None
    first = meter()
    return {"first": first, "more": meter() - first, "host": energy_meter(replace(card(), kind="host")) is None}


@scenario
def warmed_up() -> dict:
    """Idle looks settle nothing; at the power limit a clock may move, and the power may not; far below it may."""
    library = Library()
    with NvmlClocks().hold(card(), OBSERVE):
        looked(8)
        SAMPLING.loads += 1
        steady = [SAMPLING.steady()]
        looked(8)
        steady.append(SAMPLING.steady())
        library.swing = 50
        looked(8)
        steady.append(SAMPLING.steady())
        library.drawn = 100
        looked(8)
        steady.append(SAMPLING.steady())
        library.drawn = library.swing = 0
        looked(8)
        steady.append(SAMPLING.steady())
    return {"steady": steady, "after": SAMPLING.steady()}


def looked(count: int) -> None:
    """Until there were so many looks more."""
    wanted = Library().looks + count + 1
    until(lambda: Library().looks >= wanted)
