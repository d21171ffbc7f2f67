"""Show, lock or reset the clocks of devices."""

from __future__ import annotations

import argparse
from typing import Any

from pytest_perfgate.app.clocks import clocks_document, reset, shown
from pytest_perfgate.cli.numbers import above_zero
from pytest_perfgate.cli.output import show
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import clocks as wiring_clocks

CLOCKS_ABOUT = """Show, lock or reset the clocks of devices.

show never touches a card. lock holds until reset; runs that lock by themselves need neither.
"""


def clocks_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="show", choices=("show", "lock", "reset"))
    parser.add_argument(
        "--mhz", type=above_zero, default=0.0, help="SM clock to lock at (default: the catalogue's, or base)"
    )
    parser.add_argument("--device", default="", help="number as nvidia-smi counts, or UUID (default: all)")
    add_root(parser)


def run_clocks(options: argparse.Namespace) -> int:
    project, locks = Project(options), wiring_clocks.clock_locks()
    cards = _cards(options.device, must=options.action != "show")
    if options.action == "lock":
        for card in cards:
            wiring_clocks.keep_lock(card, options.mhz * 1e6 or wiring_clocks.sheet_lock(project.config, card))
    if options.action == "reset":
        reset(cards, locks.read_locks(), wiring_clocks.lift)
    named = {card.uuid() for card in cards} if options.device and cards else None
    left = [lock for lock in locks.read_locks() if named is None or lock.device in named]
    show(clocks_document(shown(cards, left), wiring_clocks.management().availability()), options)
    return 0


def _plain_uuid(card: Any) -> str:
    """As libraries other than the driver's write it."""
    return str(card.uuid()).removeprefix("GPU-")


def _cards(device: str, *, must: bool) -> list[Any]:
    nvml = wiring_clocks.management()
    found = nvml.availability()
    if not found.usable:
        if must:
            raise PerfgateError("clocks-unsupported", found.why, mend=found.mend)
        return []
    cards = list(nvml.every())
    if not device:
        return cards
    chosen = [card for at, card in enumerate(cards) if device in {str(at), card.uuid(), _plain_uuid(card)}]
    if not chosen:
        what = f"there is no device {device!r}: {plural(len(cards), 'device')} here"
        raise PerfgateError("device-unmapped", what, mend="perfgate clocks show: their numbers, from 0, and UUIDs")
    return chosen
