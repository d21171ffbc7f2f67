"""What a device at its power limit tells, each in a process of its own; run by test_clocks.py on made drivers."""

from __future__ import annotations

from clock_scenarios import OBSERVE, Library, card, half_way, scenario, wait

from pytest_perfgate.adapters.devices.clocks import NvmlClocks
from pytest_perfgate.model.sampling import SAMPLING


@scenario
def power_brake() -> dict:
    return half_way(0x80)


@scenario
def power_limited() -> dict:
    return half_way(0x4)


@scenario
def warmed_up() -> dict:
    """Idle looks settle nothing; at the power limit a clock may move, and the power may not."""
    library = Library()
    with NvmlClocks().hold(card(), OBSERVE):
        looked(6)
        SAMPLING.loads += 1
        told = [SAMPLING.steady()]
        looked(6)
        told.append(SAMPLING.steady())
        library.watts = 700
        looked(1)
        told.append(SAMPLING.steady())
        looked(6)
        told.append(SAMPLING.steady())
    return {"steady": told, "after": SAMPLING.steady()}


def looked(count: int) -> None:
    """Until there were so many looks more."""
    wanted = Library().looks + count + 1
    wait(lambda: Library().looks >= wanted)
