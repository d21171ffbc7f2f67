"""Measure the highest rates that this machine reaches: a large product of each dtype, a large copy."""

from __future__ import annotations

import argparse
import datetime as dt
import sys

from pytest_perfgate.app.ceilings import measured_ceilings
from pytest_perfgate.app.devices import ceilings_document
from pytest_perfgate.cli.output import show
from pytest_perfgate.cli.project import Project, add_root
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
    bench = wiring_devices.ceiling_bench(project.config, options.runtime, options.clocks, _told)
    store = wiring_devices.ceiling_store(project.baselines)
    kept = store.read(bench.device.key)
    if options.show:
        show(ceilings_document(bench.device, kept, ""), options)
        return 0
    today = dt.datetime.now(dt.timezone.utc).date().isoformat()
    found = measured_ceilings(bench.device, bench.library, bench.take, bench.loads, today)
    where = "" if options.dry_run else project.shown(store.write(found))
    show(ceilings_document(bench.device, found, where), options)
    return 0


def _told(text: str) -> None:
    """What is waited for, beside what is answered."""
    sys.stderr.write(f"perfgate: {text}\n")
