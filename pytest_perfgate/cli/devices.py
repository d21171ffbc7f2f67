"""Data sheets of known devices: dense rates, the clock each printed figure implies, and what was reached."""

from __future__ import annotations

import argparse

from pytest_perfgate import wiring
from pytest_perfgate.app.devices import catalogue_document, machine_document, sheet_document
from pytest_perfgate.cli.output import show
from pytest_perfgate.cli.project import Project, add_root
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import devices as wiring_devices

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
        show(catalogue_document(tuple(catalogue)), options)
        return 0
    found = catalogue.find(word)
    if not found:
        raise PerfgateError("device-unknown", f"no data sheet matches {word!r}")
    show(sheet_document(found), options)
    return 0
