"""Ceilings, clocks, devices."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from typing import Any

from pytest_perfgate import wiring
from pytest_perfgate.app.devices import (
    catalogue_document,
    ceilings_document,
    clocks_document,
    machine_document,
    measured_ceilings,
    reset,
    sheet_document,
    shown,
)
from pytest_perfgate.cli.dispatch import Project, add_root
from pytest_perfgate.cli.output import above_zero, room, show
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import devices as wiring_clocks
from pytest_perfgate.wiring import devices as wiring_devices

CEILINGS_ABOUT = """Measure the highest rates that this machine reaches: a large product of each dtype, a large copy.

They are kept beside the baselines and give a host, or a device without a data sheet, its roof.
"""


def ceilings_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runtime", default="host", choices=("host", "torch"), help="what to measure with")
    parser.add_argument("--dry-run", action="store_true", help="measure and show, keep nothing")
    parser.add_argument("--show", action="store_true", help="show what is kept, measure nothing")
    parser.add_argument("--clocks", default="observe", choices=("lock", "observe", "off"), help="policy on a GPU")
    add_root(parser)


def run_ceilings(options: argparse.Namespace) -> int:
    project = Project(options)
    bench = wiring_devices.ceiling_bench(project.config, options.runtime, options.clocks, _progress)
    store = wiring_devices.ceiling_store(project.baselines)
    stored = store.read(bench.device.key)
    if options.show:
        show(ceilings_document(bench.device, stored, ""), options)
        return 0
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    measured = measured_ceilings(bench.device, bench.library, bench.take, bench.loads, today)
    where = "" if options.dry_run else project.shown(store.write(measured))
    show(ceilings_document(bench.device, measured, where), options)
    return 0


def _progress(text: str) -> None:
    """What is waited for, beside what is answered."""
    sys.stderr.write(f"perfgate: {text}\n")


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
    locked = [lock for lock in locks.read_locks() if named is None or lock.device in named]
    show(clocks_document(shown(cards, locked), wiring_clocks.management().availability()), options)
    return 0


def _plain_uuid(card: Any) -> str:
    """As libraries other than the driver's write it."""
    return str(card.uuid()).removeprefix("GPU-")


def _cards(device: str, *, must: bool) -> list[Any]:
    nvml = wiring_clocks.management()
    availability = nvml.availability()
    if not availability.usable:
        if must:
            raise PerfgateError("clocks-unsupported", availability.why, mend=availability.mend)
        return []
    cards: list[Any] = list(nvml.every())
    if not device:
        return cards
    chosen = [card for at, card in enumerate(cards) if device in {str(at), card.uuid(), _plain_uuid(card)}]
    if not chosen:
        what = f"there is no device {device!r}: {plural(len(cards), 'device')} here"
        raise PerfgateError("device-unmapped", what, mend="perfgate clocks show: their numbers, from 0, and UUIDs")
    return chosen


DEVICES_ABOUT = """Data sheets of known devices: dense rates, the clock that each figure implies, what was reached.

Without a name: the whole catalogue, the project's own devices in front. --here: what this machine has.
"""


def devices_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="*", help="a device, an architecture (sm_90) or a die (GH100)")
    parser.add_argument("--here", action="store_true", help="the devices of this machine")
    add_root(parser)


def run_devices(options: argparse.Namespace) -> int:
    if options.here:
        show(machine_document(wiring.here(Project(options).config)), options)
        return 0
    catalogue = wiring_devices.catalogue(Project(options).config)
    word = " ".join(options.name)
    if not word:
        show(catalogue_document(tuple(catalogue), 0 if options.json else room()), options)
        return 0
    devices = catalogue.find(word)
    if not devices:
        raise PerfgateError("device-unknown", f"no data sheet matches {word!r}")
    show(sheet_document(devices), options)
    return 0
