"""Explain this machine in one screen: devices, libraries, timers, clocks, permissions, and how finely it sees.

It changes nothing. The last table times one call against itself for a few seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_perfgate import wiring
from pytest_perfgate.app.doctor import diagnosis, same_against_same
from pytest_perfgate.cli.output import show


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="how long to time a call against itself; 0: not at all"
    )


def run(options: argparse.Namespace) -> int:
    from pytest_perfgate.wiring_devices import host_runtime, host_timer, reference_call

    ward = wiring.ward(Path.cwd())
    same = None
    if options.seconds > 0:
        same = same_against_same(reference_call(), host_runtime(), host_timer(), options.seconds)
    show(diagnosis(ward, same), options)
    return 0
