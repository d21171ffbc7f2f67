"""Show, lock or reset the clocks of devices.

show never touches a card. lock holds until reset; runs that lock by themselves need neither.
"""

from __future__ import annotations

import argparse
from typing import Any

from pytest_perfgate.app.clocks import clocks_document, reset, shown
from pytest_perfgate.cli.output import show
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import devices as wiring_devices


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="show", choices=("show", "lock", "reset"))
    parser.add_argument(
        "--mhz", type=float, default=0.0, help="SM clock to lock at (default: the catalogue's, or base)"
    )
    parser.add_argument("--device", type=int, default=-1, help="index as nvidia-smi counts (default: all)")
    add_root(parser)


def run(options: argparse.Namespace) -> int:
    project, locks = Project(options), wiring_devices.clock_locks()
    cards = _cards(options.device, must=options.action != "show")
    if options.action == "lock":
        for card in cards:
            wiring_devices.keep_lock(card, options.mhz * 1e6 or wiring_devices.sheet_lock(project.config, card))
    if options.action == "reset":
        reset(cards, locks.read_locks(), wiring_devices.lift)
    show(clocks_document(shown(cards, locks.read_locks()), wiring_devices.management().availability()), options)
    return 0


def _cards(index: int, *, must: bool) -> list[Any]:
    nvml = wiring_devices.management()
    found = nvml.availability()
    if not found.usable:
        if must:
            raise PerfgateError("clocks-unsupported", found.why, mend=found.mend)
        return []
    cards = list(nvml.every())
    return cards if index < 0 else cards[index : index + 1]
